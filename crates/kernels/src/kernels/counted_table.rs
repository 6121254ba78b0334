//! The verdicts on counted instructions, as a table and as JSON. Every form names the clock.

use crate::counted_change::{CountedRow, SideCount};
use crate::instruction_counts::InstructionCounts;
use serde_json::json;
use syscost::command::ab::Form;
use syscost::command::flag::{Format, Only};
use syscost::command::page::{self, Tone};
use syscost::record::Verdict;
use syscost::render::guest_text::{describe_guest, difference_lines};
use syscost::render::table::Layout;
use syscost_platform::error::Result;

/// How the verdicts are written.
#[derive(clap::Args)]
pub(super) struct CountedForm {
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Show only what has changed
    #[arg(long)]
    changes: bool,
}

impl CountedForm {
    /// The same choice of form for a comparison by turns.
    pub(super) fn pairs_form(&self) -> Form {
        let format = if self.json { Format::Json } else { Format::Terminal };
        Form::new(format, self.changes.then_some(Only::Changed))
    }
}

const HEAD: [&str; 6] = ["case", "A (instructions)", "B (instructions)", "change", "verdict", "boots"];

/// The verdicts, for a person or, in a pipe, for a program.
///
/// # Errors
/// They cannot be written as JSON.
pub(super) fn render_counts(
    counts: &InstructionCounts,
    rows: &[CountedRow],
    form: &CountedForm,
    layout: Layout,
) -> Result<String> {
    let shown: Vec<_> = rows.iter().filter(|row| !form.changes || row.verdict.is_change()).collect();
    if form.json {
        let value = json!({
            "clock": counts.clock,
            "unit": "instructions",
            "sides": counts.sides,
            "notes": counts.notes,
            "threshold": counts.threshold,
            "rows": shown,
        });
        return Ok(format!("{value:#}\n"));
    }
    let cells: Vec<_> = shown.iter().map(|row| row_cells(row)).collect();
    if page::is_piped() {
        for side in counts.sides.iter().flat_map(|side| &side.faults) {
            page::warn(side);
        }
        return Ok(page::tabbed_rows(&cells));
    }
    let tones = shown.iter().map(|row| Tone::from_verdict(row.verdict));
    let table = page::table(HEAD, tones.zip(cells), usize::MAX, layout);
    Ok(format!("{}\n{table}\n{}", table_header(counts, layout), table_notes(rows, &shown, layout)))
}

fn row_cells(row: &CountedRow) -> [String; 6] {
    let figure = |side: &Option<SideCount>| side.as_ref().map_or("–".into(), format_count);
    let boots = row.sides.iter().flatten().map(|side| side.boots).min();
    [
        row.id.clone() + if row.canary { " (canary)" } else { "" },
        figure(&row.sides[0]),
        figure(&row.sides[1]),
        row.change.map_or("–".into(), |change| format!("{:+.2} %", 100.0 * change)),
        row.verdict.to_string(),
        boots.map_or("–".into(), |boots| boots.to_string()),
    ]
}

/// The count, `≈` before one that differs between boots.
fn format_count(side: &SideCount) -> String {
    let mark = if side.exact { "" } else { "≈ " };
    format!("{mark}{:.3}", side.instructions)
}

/// The identities of the kernels, and their differences.
fn table_header(counts: &InstructionCounts, layout: Layout) -> String {
    let width = page::prose_width(layout);
    let mut said: Vec<String> = Vec::new();
    for (label, side) in ["A: ", "B: "].iter().zip(&counts.sides) {
        said.push(page::wrap(label, &describe_guest(side), width));
        said.extend(
            side.faults.iter().map(|fault| page::paint(Tone::Red, &page::wrap("   ", fault, width), layout)),
        );
    }
    said.push(page::wrap(
        "",
        &format!("counted: instructions (icount), not time; {}", counts.machine),
        width,
    ));
    said.extend(
        difference_lines(&counts.sides, &counts.notes)
            .iter()
            .map(|note| page::wrap("differs: ", note, width)),
    );
    said.join("\n") + "\n"
}

/// Reasons, moved canaries and the count of verdicts.
fn table_notes(rows: &[CountedRow], shown: &[&CountedRow], layout: Layout) -> String {
    let reasons = shown.iter().filter_map(|row| Some(format!("{}: {}", row.id, row.reason.as_ref()?)));
    let moved = rows.iter().filter(|row| row.canary && row.verdict.is_change()).map(|row| {
        format!("the canary {} moved: no kernel can change it, so the guests ran different programs or processors", row.id)
    });
    let verdicts: Vec<_> = rows.iter().map(|row| row.verdict).collect();
    let last = format!(
        "{}: {}",
        page::count_with_noun(rows.len(), "case", "cases"),
        Verdict::format_counts(&verdicts)
    );
    page::wrap_sentences(reasons.chain(moved).chain([last]), layout)
}

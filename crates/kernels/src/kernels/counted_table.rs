//! The verdicts on counted instructions, as a table and as JSON. Every form names the clock.

use crate::counted_change::{CountedRow, SideCount};
use crate::executed::function_table::MovedFunction;
use crate::instruction_counts::{CountingMethod, InstructionCounts};
use serde_json::json;
use syscost_analysis::render::guest_text::{describe_guest, difference_lines};
use syscost_command_line::flag::Form;
use syscost_command_line::page::{self, Tone};
use syscost_engine::record::Verdict;
use syscost_engine::record::guest_side::GuestSide;
use syscost_engine::render::table::Layout;
use syscost_platform::error::Result;

/// The most functions of a case that are named.
const NAMED: usize = 3;

const HEAD: [&str; 6] = ["case", "A (instructions)", "B (instructions)", "change", "verdict", "boots"];

/// The verdicts as a table for a terminal, as tab-separated rows in a pipe, or as JSON.
///
/// # Errors
/// They cannot be written as JSON.
pub(super) fn render_counts(
    counts: &InstructionCounts,
    rows: &[CountedRow],
    form: &Form,
    layout: Layout,
) -> Result<String> {
    if form.json {
        let value = json!({
            "clock": counts.clock,
            "method": counts.method,
            "unit": "instructions",
            "sides": counts.sides,
            "notes": counts.notes,
            "threshold": counts.threshold,
            "rows": rows,
        });
        return Ok(format!("{value:#}\n"));
    }
    let cells: Vec<_> = rows.iter().map(row_cells).collect();
    if page::is_piped() {
        for side in counts.sides.iter().flat_map(|side| &side.faults) {
            page::warn(side);
        }
        return Ok(page::tabbed_rows(&cells));
    }
    let with_functions = rows.iter().zip(cells).flat_map(|(row, cells)| {
        let functions = row.moved.iter().take(NAMED).map(|moved| (Tone::Plain, moved_cells(moved)));
        std::iter::once((Tone::from_verdict(row.verdict), cells)).chain(functions)
    });
    let table = page::table(HEAD, with_functions, usize::MAX, layout);
    let header = kernel_lines(&counts.sides, &counts.notes, &counted_text(counts), layout);
    Ok(format!("{header}\n{table}\n{}", table_notes(rows, layout)))
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

/// The row of a function whose instructions changed, to be shown below the row of its case.
fn moved_cells(moved: &MovedFunction) -> [String; 6] {
    let [a, b] = moved.own.map(|own| if own == 0.0 { "–".into() } else { format!("{own:.3}") });
    let by = format!("{:+.3}", moved.own[1] - moved.own[0]);
    [format!("  {}", moved.name), a, b, by, String::new(), String::new()]
}

/// The instructions per iteration, with `≈` before a count that differs between boots.
fn format_count(side: &SideCount) -> String {
    let mark = if side.exact { "" } else { "≈ " };
    format!("{mark}{:.3}", side.instructions)
}

/// The unit of the counts and the method of counting, for the header.
fn counted_text(counts: &InstructionCounts) -> String {
    let how = match counts.method {
        CountingMethod::Executed => "executed instructions, a repeated string instruction as one",
        CountingMethod::Clock => "instructions (icount), each repetition of a string instruction as one",
    };
    let refusal = counts.refusal.as_ref().map_or(String::new(), |why| format!("; {why}"));
    format!("{how}; not time; {}{refusal}", counts.machine)
}

/// The header: the identities of the kernels, their faults, the unit of the counts, and the differences between the kernels.
pub(super) fn kernel_lines(
    sides: &[GuestSide; 2],
    notes: &[String],
    counted: &str,
    layout: Layout,
) -> String {
    let width = page::prose_width(layout);
    let mut said: Vec<String> = Vec::new();
    for (label, side) in ["A: ", "B: "].iter().zip(sides) {
        said.push(page::wrap(label, &describe_guest(side), width));
        said.extend(
            side.faults.iter().map(|fault| page::paint(Tone::Red, &page::wrap("   ", fault, width), layout)),
        );
    }
    said.push(page::wrap("counted: ", counted, width));
    said.extend(difference_lines(sides, notes).iter().map(|note| page::wrap("differs: ", note, width)));
    said.join("\n") + "\n"
}

/// The notes below the table: reasons, canaries that changed, and the number of each verdict.
fn table_notes(rows: &[CountedRow], layout: Layout) -> String {
    let reasons = rows.iter().filter_map(|row| Some(format!("{}: {}", row.id, row.reason.as_ref()?)));
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

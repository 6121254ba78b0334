//! The verdicts of a comparison by pairs, in every format.

use crate::command::answer::{Compared, ending};
use crate::command::flag::{Format, Only};
use crate::command::page::{self, Tone};
use crate::error::{Error, Result};
use crate::record::Verdict;
use crate::record::paired::Paired;
use crate::record::quantity;
use crate::render::table::Layout;
use crate::study::sequential::Row;
use serde_json::json;

/// Format of the verdicts.
#[derive(clap::Args)]
pub(in crate::command) struct Form {
    /// How to write the verdicts
    #[arg(long, value_enum, default_value_t = Format::Terminal)]
    format: Format,
    /// Which rows
    #[arg(long, value_enum)]
    only: Option<Only>,
}

/// Writes the rows to the standard output.
///
/// # Errors
/// The output cannot be written.
pub(in crate::command) fn write(paired: &Paired, rows: &[Row], form: &Form, layout: Layout) -> Result<()> {
    let shown: Vec<_> =
        rows.iter().filter(|row| form.only.is_none() || row.judgement.verdict.is_change()).collect();
    page::write(&match form.format {
        Format::Terminal => terminal(paired, &shown, rows, layout),
        Format::Markdown => markdown(paired, &shown, rows),
        Format::Json => json_text(paired, &shown)?,
        Format::Csv => csv(&shown),
    })
}

/// What the heads and marks mean.
const LEGEND: &str = "canary: arithmetic, which neither side can change; pairs: those judged, + those disturbed and left \
                      out; smallest seen: the smallest change that so many pairs show four times in five.";

const HEAD: [&str; 8] = ["case", "A", "B", "change", "95 % interval", "verdict", "pairs", "smallest seen"];

fn cells(row: &Row) -> [String; 8] {
    let measured = row.pairs > 0;
    let text = |text: String| if measured { text } else { "–".into() };
    let change = &row.judgement.change;
    let rejected = if row.rejected > 0 { format!(" +{}", row.rejected) } else { String::new() };
    [
        row.id.clone() + if row.canary { " (canary)" } else { "" },
        text(quantity::duration(row.cost_ns[0])),
        text(quantity::duration(row.cost_ns[1])),
        text(percent(change.estimate)),
        text(format!("[{}, {}]", percent(change.low), percent(change.high))),
        row.judgement.verdict.to_string(),
        format!("{}{rejected}", row.pairs),
        row.detectable.map_or("–".into(), |share| format!("{:.1} %", 100.0 * share)),
    ]
}

/// Two decimals; what rounds to nothing has no minus.
fn percent(share: f64) -> String {
    let percent = 100.0 * share;
    let percent = if percent.abs() < 0.005 { 0.0 } else { percent };
    format!("{percent:+.2} %")
}

fn terminal(paired: &Paired, shown: &[&Row], all: &[Row], layout: Layout) -> String {
    let width = page::prose(layout);
    let mut text = String::new();
    for (label, side) in ["A: ", "B: "].iter().zip(&paired.sides) {
        text += &(page::wrap(label, side, width) + "\n");
    }
    text.push('\n');
    let (lines, left_out) = lines(shown, layout);
    for (at, line) in lines.into_iter().enumerate() {
        let tone = at.checked_sub(1).and_then(|at| Tone::of(shown[at].judgement.verdict));
        let tone = if at == 0 { Some(Tone::Bold) } else { tone };
        text += &tone.map_or(line.clone(), |tone| page::paint(tone, &line, layout));
        text.push('\n');
    }
    text.push('\n');
    for sentence in sentences(paired, shown, all).into_iter().chain(left_out) {
        text += &(page::wrap("", &sentence, width) + "\n\n");
    }
    text + &answered(all, layout)
}

/// The table, whole where the terminal is wide enough, and what its columns mean or which were left out.
fn lines(shown: &[&Row], layout: Layout) -> (Vec<String>, Option<String>) {
    let rows: Vec<_> =
        std::iter::once(HEAD.map(str::to_owned)).chain(shown.iter().map(|row| cells(row))).collect();
    let whole = page::aligned(&rows, usize::MAX);
    match layout.width {
        Some(width) if whole.iter().any(|line| page::length(line) > usize::from(width)) => {
            let few =
                rows.into_iter().map(|[case, a, b, change, _, verdict, ..]| [case, a, b, change, verdict]);
            let said = format!(
                "Not shown at {width} columns: 95 % interval, pairs, smallest seen; a wider terminal shows them."
            );
            (page::aligned(&few.collect::<Vec<_>>(), usize::MAX), Some(said))
        }
        _ => (whole, Some(LEGEND.into())),
    }
}

/// The answer over all cases that a side can change.
fn answered(all: &[Row], layout: Layout) -> String {
    let compared = all.iter().filter(|row| !row.canary).map(|row| Compared {
        id: &row.id,
        verdict: row.judgement.verdict,
        change: Some(row.judgement.change.estimate),
    });
    let rest = "The pairs are kept: `syscost ab --judge FILE` judges them again, `--format markdown` is for a discussion.";
    ending(&compared.collect::<Vec<_>>(), rest, layout)
}

/// The sentences below the rows: reasons of inconclusive verdicts, moved canaries, notes.
fn sentences(paired: &Paired, shown: &[&Row], all: &[Row]) -> Vec<String> {
    let mut said = Vec::new();
    for row in shown {
        let words = row.judgement.reason.iter().chain(&row.remark);
        said.extend(words.map(|words| format!("{}: {words}", row.id)));
    }
    for row in all.iter().filter(|row| row.canary && row.judgement.verdict.is_change()) {
        said.push(format!(
            "the canary {} moved by {}: neither side can change arithmetic, so the machine runs at another speed \
             for one of them, and every row above holds that too",
            row.id,
            percent(row.judgement.change.estimate)
        ));
    }
    for case in &paired.cases {
        said.extend(case.notes.iter().map(|note| format!("note ({}): {note}", case.id)));
    }
    said.extend(paired.notes.iter().map(|note| format!("note: {note}")));
    said.dedup();
    said
}

/// The number of rows with each verdict, in words, without the canaries.
pub(in crate::command) fn count(rows: &[Row]) -> String {
    let counts = Verdict::ALL.iter().filter_map(|verdict| {
        let count = rows.iter().filter(|row| row.judgement.verdict == *verdict && !row.canary).count();
        (count > 0).then(|| format!("{count} {verdict}"))
    });
    let counts: Vec<_> = counts.collect();
    if counts.is_empty() { "no case was compared".into() } else { counts.join(", ") }
}

fn markdown(paired: &Paired, shown: &[&Row], all: &[Row]) -> String {
    let row =
        |cells: [String; 8]| format!("| {} |\n", cells.map(|cell| cell.replace('|', "\\|")).join(" | "));
    let mut text = format!("A: {}  \nB: {}\n\n", paired.sides[0], paired.sides[1]);
    text += &row(HEAD.map(str::to_owned));
    text += "|---|---:|---:|---:|---|---|---:|---:|\n";
    text.extend(shown.iter().map(|shown| row(cells(shown))));
    text.push('\n');
    let said = sentences(paired, shown, all).into_iter().chain([count(all)]);
    text.extend(said.map(|sentence| format!("* {sentence}\n")));
    text
}

fn json_text(paired: &Paired, shown: &[&Row]) -> Result<String> {
    let rows =
        serde_json::to_value(shown).map_err(|e| Error::file("the rows", "writing as JSON", e.into()))?;
    let value = json!({
        "run": paired.run, "seed": paired.seed, "by_turns": paired.by_turns, "sides": paired.sides,
        "rule": { "threshold": paired.rule.threshold, "margin": paired.rule.margin }, "rows": rows,
    });
    Ok(format!("{value:#}\n"))
}

fn csv(shown: &[&Row]) -> String {
    let mut text = "id,a_ns,b_ns,change,low,high,verdict,p,pairs,rejected,detectable\n".to_owned();
    for row in shown {
        let Row { id, cost_ns: [a, b], pairs, rejected, .. } = row;
        let (change, verdict, p) = (row.judgement.change, row.judgement.verdict, row.judgement.p);
        let detectable = row.detectable.map(|share| share.to_string()).unwrap_or_default();
        text += &format!(
            "{id},{a},{b},{},{},{},{verdict},{p},{pairs},{rejected},{detectable}\n",
            change.estimate, change.low, change.high
        );
    }
    text
}

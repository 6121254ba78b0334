//! The verdicts of a comparison by pairs, in every format.

use super::answer::{self, Compared, group_sentences};
use super::guest_text::heading_lines;
use super::sheet::{Column, LF, csv_table, markdown_table, number_cell};
use crate::error::Result;
use crate::record::paired::{Ended, Paired, Why};
use crate::study::exact_count::count_sentence;
use crate::study::sequential::{Row, layout_sentence};
use serde_json::{Value, json};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use syscost_engine::record::guest_side::ClockKind;
use syscost_engine::record::{Verdict, quantity};
use syscost_engine::render::cell::Tone;
use syscost_engine::render::display_width;
use syscost_engine::render::table::Layout;
use syscost_engine::render::terminal_text::{count_with_noun, prose_width, table, wrap, wrap_sentences};

/// The rows that are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowChoice {
    /// All rows of a small comparison. For a large one the canaries, and the rows that are neither the same nor
    /// inconclusive. CSV and JSON have all rows.
    Usual,
    /// The rows that are faster or slower.
    Changed,
    /// All rows.
    All,
}

impl RowChoice {
    /// The rows for a program: only the changed ones for [`Self::Changed`], otherwise all.
    fn rows_for_program(self, rows: &[Row]) -> Vec<&Row> {
        rows.iter().filter(|row| self != Self::Changed || row.judgement.verdict.is_change()).collect()
    }
}

/// The most rows up to which all are shown. If there are more, the cases without a change are only counted.
const MANY: usize = 40;
/// The most reasons for skipped cases that are shown.
const REASONS: usize = 3;

/// The report of a comparison for a person.
pub struct PairedTable<'a> {
    paired: &'a Paired,
    /// The rows of the table.
    shown: Vec<&'a Row>,
    /// The rows of all cases that either side could run.
    all: Vec<&'a Row>,
    /// The number of cases that have no row because there are too many.
    folded: usize,
}

impl<'a> PairedTable<'a> {
    /// The report of these rows of a comparison.
    pub fn new(paired: &'a Paired, rows: &'a [Row], choice: RowChoice) -> Self {
        let skipped: BTreeSet<&str> = skipped_cases(paired).map(|(id, _)| id).collect();
        let all: Vec<_> = rows.iter().filter(|row| !skipped.contains(row.id.as_str())).collect();
        let folds = choice == RowChoice::Usual && all.len() > MANY;
        let is_shown = |row: &&&Row| match choice {
            RowChoice::Changed => row.judgement.verdict.is_change(),
            RowChoice::All => true,
            RowChoice::Usual => {
                !folds
                    || row.canary
                    || !matches!(row.judgement.verdict, Verdict::Same | Verdict::Inconclusive)
            }
        };
        let shown: Vec<_> = all.iter().filter(is_shown).copied().collect();
        let folded = if folds { all.len() - shown.len() } else { 0 };
        Self { paired, shown, all, folded }
    }
}

/// The ids of the cases that neither side could run, each with the reason.
fn skipped_cases(paired: &Paired) -> impl Iterator<Item = (&str, &str)> {
    paired.cases.iter().filter_map(|case| match &case.ended {
        Some(Ended { why: Why::Skipped, sentence }) => Some((case.id.as_str(), sentence.as_str())),
        _ => None,
    })
}

/// The legend of the heads and marks.
const LEGEND: &str = "canary: arithmetic, which neither side can change; pairs: those judged, + those disturbed and left \
                      out; smallest seen: the smallest change that this number of pairs shows four times in five.";

/// The heads of the columns. Times that are not this machine's have the mark of their clock.
fn column_heads(clock: ClockKind) -> [String; 8] {
    let [a, b] = ["A", "B"].map(|side| match clock {
        ClockKind::Host => side.to_owned(),
        other => format!("{side} ({other})"),
    });
    let rest = ["change", "95 % interval", "verdict", "pairs", "smallest seen"].map(str::to_owned);
    let [change, interval, verdict, pairs, smallest] = rest;
    ["case".into(), a, b, change, interval, verdict, pairs, smallest]
}

fn row_cells(row: &Row) -> [String; 8] {
    let measured = row.pairs > 0;
    let text = |text: String| if measured { text } else { "–".into() };
    let change = &row.judgement.change;
    let rejected = if row.rejected > 0 { format!(" +{}", row.rejected) } else { String::new() };
    [
        row.id.clone() + if row.canary { " (canary)" } else { "" },
        text(quantity::format_duration(row.cost_ns[0])),
        text(quantity::format_duration(row.cost_ns[1])),
        text(signed_percent(change.estimate)),
        text(format!("[{}, {}]", signed_percent(change.low), signed_percent(change.high))),
        row.judgement.verdict.to_string(),
        format!("{}{rejected}", row.pairs),
        row.detectable.map_or("–".into(), |share| format!("{:.1} %", 100.0 * share)),
    ]
}

/// A share in percent with sign and two decimals; a value that rounds to 0 has no minus.
fn signed_percent(share: f64) -> String {
    let percent = 100.0 * share;
    let percent = if percent.abs() < 0.005 { 0.0 } else { percent };
    format!("{percent:+.2} %")
}

impl PairedTable<'_> {
    /// The report for a terminal.
    pub fn render_terminal(&self, layout: Layout) -> String {
        let width = prose_width(layout);
        let mut text = String::new();
        for (label, side) in ["A: ", "B: "].iter().zip(&self.paired.sides) {
            text += &(wrap(label, side, width) + "\n");
        }
        text += &wrap_sentences(self.paired.guests.iter().flat_map(heading_lines), layout);
        text.push('\n');
        let (table, columns) = table_and_legend(&self.shown, self.paired.clock_kind(), layout);
        text += &(table + "\n");
        for sentence in self.sentences_below().into_iter().chain([columns]) {
            text += &(wrap("", &sentence, width) + "\n\n");
        }
        text + &render_answer(&self.all, layout)
    }

    /// The report in Markdown, for a discussion.
    pub fn render_markdown(&self) -> String {
        let mut text = format!("A: {}  \nB: {}\n\n", self.paired.sides[0], self.paired.sides[1]);
        let guests: Vec<_> = self.paired.guests.iter().flat_map(heading_lines).collect();
        text.extend(guests.iter().map(|sentence| format!("* {sentence}\n")));
        text += if guests.is_empty() { "" } else { "\n" };
        let rows = self.shown.iter().map(|shown| row_cells(shown).to_vec());
        text += &markdown_table(
            column_heads(self.paired.clock_kind()),
            |column| [0, 4, 5].contains(&column),
            rows,
        );
        text.push('\n');
        let said = self.sentences_below().into_iter().chain([verdict_counts(&self.all)]);
        text.extend(said.map(|sentence| format!("* {sentence}\n")));
        text
    }

    /// The sentences below the rows: the number of folded cases, reasons of verdicts, moved canaries, skipped
    /// cases, notes.
    fn sentences_below(&self) -> Vec<String> {
        let mut said = Vec::new();
        if self.folded > 0 {
            said.push(format!(
                "{}, the same or inconclusive: `--only all` shows them",
                count_with_noun(self.folded, "case has no row", "cases have no row")
            ));
        }
        // Rows that the user did not select have no sentence. If rows were folded, those have their sentences, too.
        let rows = if self.folded > 0 { &self.all } else { &self.shown };
        said.extend(group_sentences(rows.iter().flat_map(|row| {
            let words = row.judgement.reason.iter().chain(&row.remark);
            words.map(|words| (row.id.as_str(), words.clone()))
        })));
        said.extend(layout_sentence(self.all.iter().copied()));
        for row in self.all.iter().filter(|row| row.canary && row.judgement.verdict.is_change()) {
            said.push(format!(
                "the canary {} moved by {}: neither side can change arithmetic, so the machine runs at another speed \
                 for one of them, and every row above holds that too",
                row.id,
                signed_percent(row.judgement.change.estimate)
            ));
        }
        let counts =
            self.paired.cases.iter().filter_map(|case| Some((case.id.as_str(), count_sentence(case)?)));
        said.extend(group_sentences(counts));
        said.extend(why_skipped(self.paired));
        let notes = self
            .paired
            .cases
            .iter()
            .flat_map(|case| case.notes.iter().map(|note| (case.id.as_str(), format!("note: {note}"))));
        said.extend(group_sentences(notes));
        said.extend(self.paired.notes.iter().map(|note| format!("note: {note}")));
        said.dedup();
        said
    }
}

/// The table, with all columns if the terminal is wide enough, and its legend or the columns that were left out.
fn table_and_legend(shown: &[&Row], clock: ClockKind, layout: Layout) -> (String, String) {
    let rows = || shown.iter().map(|row| (Tone::from_verdict(row.judgement.verdict), row_cells(row)));
    let whole = |layout| table(column_heads(clock), rows(), usize::MAX, layout);
    let is_too_wide =
        |width: &u16| whole(Layout::default()).lines().any(|line| display_width(line) > usize::from(*width));
    let Some(width) = layout.width.filter(is_too_wide) else { return (whole(layout), LEGEND.into()) };
    let few = |[case, a, b, change, _, verdict, ..]: [String; 8]| [case, a, b, change, verdict];
    let rows = rows().map(|(tone, cells)| (tone, few(cells)));
    let said = format!(
        "Not shown at {width} columns: 95 % interval, pairs, smallest seen; a wider terminal shows them."
    );
    (table(few(column_heads(clock)), rows, usize::MAX, layout), said)
}

/// The answer over all cases that a side can change.
fn render_answer(all: &[&Row], layout: Layout) -> String {
    let compared = all.iter().filter(|row| !row.canary).map(|row| Compared {
        id: &row.id,
        verdict: row.judgement.verdict,
        change: Some(row.judgement.change.estimate),
    });
    let rest = "The pairs are kept: `syscost ab --judge FILE` judges them again, `--format markdown` is for a discussion.";
    answer::render_answer(&compared.collect::<Vec<_>>(), rest, layout)
}

/// A sentence with the number of cases that neither side could run, and the most frequent reasons.
fn why_skipped(paired: &Paired) -> Option<String> {
    let mut reasons: BTreeMap<&str, usize> = BTreeMap::new();
    skipped_cases(paired).for_each(|(_, why)| *reasons.entry(why).or_default() += 1);
    let mut reasons: Vec<_> = reasons.into_iter().collect();
    reasons.sort_by_key(|&(why, cases)| (Reverse(cases), why));
    let all: usize = reasons.iter().map(|(_, cases)| cases).sum();
    let named = reasons
        .iter()
        .take(REASONS)
        .map(|(why, cases)| if all == *cases { (*why).to_owned() } else { format!("{cases}: {why}") });
    let named =
        named.chain((reasons.len() > REASONS).then(|| "others, which `--format json` has".to_owned()));
    let all = count_with_noun(all, "case was", "cases were");
    (!reasons.is_empty())
        .then(|| format!("{all} skipped on both sides: {}", named.collect::<Vec<_>>().join("; ")))
}

/// The number of rows with each verdict, in words, without the canaries.
fn verdict_counts(rows: &[&Row]) -> String {
    let verdicts: Vec<_> = rows.iter().filter(|row| !row.canary).map(|row| row.judgement.verdict).collect();
    if verdicts.is_empty() { "no case was compared".into() } else { Verdict::format_counts(&verdicts) }
}

/// The comparison and the chosen rows as JSON.
pub fn comparison_json(paired: &Paired, rows: &[Row], choice: RowChoice) -> Value {
    json!({
        "run": paired.run, "clock": paired.clock_kind(), "guests": paired.guests, "seed": paired.seed, "by_turns": paired.by_turns, "sides": paired.sides,
        "rule": { "threshold": paired.rule.threshold, "margin": paired.rule.margin },
        "rows": choice.rows_for_program(rows),
    })
}

/// The columns of CSV for a row and the clock of its times.
fn csv_columns<'a>() -> [Column<(&'a Row, ClockKind)>; 12] {
    [
        ("id", |(row, _)| row.id.clone()),
        ("a_ns", |(row, _)| row.cost_ns[0].to_string()),
        ("b_ns", |(row, _)| row.cost_ns[1].to_string()),
        ("change", |(row, _)| row.judgement.change.estimate.to_string()),
        ("low", |(row, _)| row.judgement.change.low.to_string()),
        ("high", |(row, _)| row.judgement.change.high.to_string()),
        ("verdict", |(row, _)| row.judgement.verdict.to_string()),
        ("p", |(row, _)| row.judgement.p.to_string()),
        ("pairs", |(row, _)| row.pairs.to_string()),
        ("rejected", |(row, _)| row.rejected.to_string()),
        ("detectable", |(row, _)| number_cell(row.detectable)),
        ("clock", |(_, clock)| clock.to_string()),
    ]
}

/// The chosen rows as CSV.
///
/// # Errors
/// Those of [`csv_table`].
pub fn rows_csv(clock: ClockKind, rows: &[Row], choice: RowChoice) -> Result<String> {
    let rows = choice.rows_for_program(rows).into_iter();
    csv_table(LF, &csv_columns(), rows.map(|row| (row, clock)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::paired::{CasePairs, PairRecord};

    /// A case with 24 pairs that have this log ratio.
    fn case(id: String, difference: f64) -> CasePairs {
        let pair =
            PairRecord { difference, cost_ns: [100.0, 100.0 * difference.exp()], ..PairRecord::default() };
        CasePairs { id, pairs: vec![pair; 24], ..CasePairs::default() }
    }

    fn ended(id: &str, why: Why, sentence: &str) -> CasePairs {
        let ended = Some(Ended { why, sentence: sentence.into() });
        CasePairs { id: id.into(), ended, ..CasePairs::default() }
    }

    fn paired(same: usize) -> Paired {
        let mut cases: Vec<_> = (0..same).map(|at| case(format!("same/{at}"), 0.0)).collect();
        cases.push(case("call/slow".into(), 0.1));
        cases.extend(
            ["a", "b", "c"].map(|id| ended(&format!("full/{id}"), Why::Skipped, "at full scale only")),
        );
        cases.push(ended("peer/one", Why::Skipped, "no peer is named"));
        cases.push(ended("new/one", Why::Lone, "only side B has it"));
        let sides = ["old", "new"].map(str::to_owned);
        Paired { by_turns: true, sides, cases, ..Paired::default() }
    }

    fn terminal_text(same: usize, choice: RowChoice) -> String {
        let paired = paired(same);
        let rows = paired.judge();
        PairedTable::new(&paired, &rows, choice).render_terminal(Layout::default())
    }

    #[test]
    fn a_comparison_of_everything_shows_what_changed_and_counts_the_rest() {
        let text = terminal_text(100, RowChoice::Usual);
        assert!(
            text.contains("call/slow") && text.contains("new/one") && !text.contains("same/1 "),
            "{text}"
        );
        assert!(
            text.contains("100 cases have no row, the same or inconclusive: `--only all` shows them"),
            "{text}"
        );
        assert!(
            text.contains("4 cases were skipped on both sides: 3: at full scale only; 1: no peer"),
            "{text}"
        );
        assert!(text.contains("1 of 102 is slower") && text.lines().count() < 30, "{text}");
    }

    #[test]
    fn few_rows_or_all_selected_rows_are_shown() {
        assert!(
            terminal_text(20, RowChoice::Usual).contains("same/19")
                && terminal_text(100, RowChoice::All).contains("same/99")
        );
        let changed = terminal_text(20, RowChoice::Changed);
        assert!(changed.contains("call/slow") && !changed.contains("same/19"), "{changed}");
        assert!(!terminal_text(100, RowChoice::All).contains("full/a"), "neither side could run it");
    }
}

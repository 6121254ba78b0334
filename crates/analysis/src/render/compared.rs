//! Comparisons as text: marks, sentences, CSV and Markdown.

use super::sheet::{CRLF, Column, csv_table, markdown_table, number_cell};
use crate::error::Result;
use crate::study::comparison::{Baseline, Basis, Cell, Change, Comparison, Relation, Replicate, Row};
use std::collections::BTreeMap;
use std::fmt::Write;
use syscost_engine::environment::{Difference, Weight};
use syscost_engine::record::Interval;
use syscost_engine::record::quantity::{self, format_amount, format_change};
use syscost_engine::record::verdict::Verdict;
use syscost_engine::render::enumerate_names;

// Prints a change in few characters, in the style of mmtests: stars around a significant change, brackets around others.

/// The legend of the marks, printed above every table.
pub const LEGEND: &str = "+ is slower (it takes more), - is faster. *+5.2%* changed, (+0.3%) the same, \
    (+3.1%)? neither is shown, ! not comparable.";

impl Change {
    /// The change with the mark of its verdict.
    pub fn mark(&self) -> String {
        let size = self.ratio.map(quantity::format_change).unwrap_or_default();
        match self.verdict {
            Verdict::Slower | Verdict::Faster => format!("*{size}*"),
            Verdict::Same => format!("({size})"),
            Verdict::Inconclusive => format!("({size})?"),
            Verdict::Incomparable => "!".into(),
        }
    }
}

// Sentences about a comparison: its sides above the table, its rows below it.

/// The most characters of a fact's value in a note; longer values are only in the JSON.
const LONGEST_FACT: usize = 24;

impl Baseline {
    /// A line on the baseline and the way in which it is compared, such as `kernel 6.12.3, 5 boots, 15 processes, default; by
    /// boots, canaries +0.1%`.
    pub fn summary(&self) -> String {
        let mut parts = vec![match self.kernels.len() {
            0 => "kernel unknown".to_owned(),
            1 => format!("kernel {}", self.kernels[0]),
            _ => format!("kernels {}", self.kernels.join(", ")),
        }];
        parts.push(format!("{} {}", self.boots, Replicate::Boot.name(self.boots)));
        if self.sessions != self.boots {
            parts.push(format!("{} {}", self.sessions, Replicate::Session.name(self.sessions)));
        }
        parts.push(format!(
            "{} {}",
            self.processes,
            if self.processes == 1 { "process" } else { "processes" }
        ));
        parts.push(self.scale.clone());
        let mut text = parts.join(", ");
        if self.sessions < 2 {
            text.push_str(", unreplicated");
        }
        if let Some(relation) = &self.relation {
            text.push_str(&format!("; by {}", relation.replicate.name(2)));
            let said = |what, ratio: Option<f64>| {
                ratio.map(|ratio| format!(", {what} {}", quantity::format_change(ratio)))
            };
            text.extend(said("cycle", relation.cycle).or(said("canaries", relation.canary)));
        }
        text
    }
}

impl Relation {
    /// Notes on the differences from the first baseline; warnings come first.
    pub fn notes(&self) -> Vec<String> {
        let mut notes: Vec<String> = self.incomparable.iter().cloned().collect();
        notes.extend(self.warnings.iter().map(|sentence| format!("warning: {sentence}")));
        let heavy = self.differences.iter().filter(|d| d.weight > Weight::Fact);
        notes.extend(heavy.map(|d| format!("{}: {}: {} → {}", d.weight.name(), d.field, d.ours, d.theirs)));
        // The summary has the release of the kernel already.
        let is_fact = |d: &&Difference| d.weight == Weight::Fact && d.field != "kernel_release";
        let facts: Vec<_> = self.differences.iter().filter(is_fact).map(fact_text).collect();
        if !facts.is_empty() {
            notes.push(format!("differs too: {}", facts.join("; ")));
        }
        notes
    }
}

fn fact_text(difference: &Difference) -> String {
    let Difference { field, ours, theirs, .. } = difference;
    match syscost_engine::render::display_width(ours).max(syscost_engine::render::display_width(theirs))
        > LONGEST_FACT
    {
        true => (*field).to_owned(),
        false => format!("{field} {ours} → {theirs}"),
    }
}

impl Comparison {
    /// The reasons why rows have no verdict, each once with its baselines and rows. An interval that is too wide is no such
    /// reason, because the table shows it.
    pub fn remarks(&self) -> Vec<String> {
        let mut of_reason: BTreeMap<(usize, &str), Vec<&str>> = BTreeMap::new();
        for row in &self.rows {
            for (column, cell) in row.cells.iter().enumerate() {
                if let Some(reason) = cell.change.as_ref().and_then(remark_reason) {
                    of_reason.entry((column, reason)).or_default().push(&row.id);
                }
            }
        }
        let mut columns: BTreeMap<(&str, &[&str]), Vec<&str>> = BTreeMap::new();
        for ((column, reason), ids) in &of_reason {
            columns.entry((reason, ids)).or_default().push(&self.baselines[*column].name);
        }
        let mut columns: Vec<_> = columns.into_iter().collect();
        columns.sort_by_key(|((reason, ids), _)| (std::cmp::Reverse(ids.len()), *reason));
        columns.iter().map(|((reason, ids), names)| self.remark_line(names, reason, ids)).collect()
    }

    fn remark_line(&self, names: &[&str], reason: &str, ids: &[&str]) -> String {
        let names = match names.len() + 1 {
            all if all == self.baselines.len() && all > 2 => "all baselines".to_owned(),
            _ => enumerate_names(names, "baselines more"),
        };
        let rows = if ids.len() == self.rows.len() {
            "all cases".to_owned()
        } else {
            enumerate_names(ids, "cases more")
        };
        format!("{names}: {rows}: {reason}")
    }
}

/// The reason to print below the table for a change, if it needs one.
fn remark_reason(change: &Change) -> Option<&str> {
    match change.basis {
        Some(Basis::Replicates) => None,
        Some(Basis::History) => {
            Some("too few replicates a side; judged by how those in other records deviate")
        }
        None => change.reason.as_deref(),
    }
}

/// A line of CSV: a case in one baseline.
struct CsvLine<'a> {
    first: &'a str,
    baseline: &'a Baseline,
    row: &'a Row,
    cell: &'a Cell,
}

impl CsvLine<'_> {
    fn value(&self, end: fn(Interval) -> f64) -> String {
        number_cell(self.cell.value.map(end))
    }

    fn change(&self, part: fn(&Change) -> String) -> String {
        self.cell.change.as_ref().map(part).unwrap_or_default()
    }
}

fn csv_columns<'a>() -> [Column<CsvLine<'a>>; 19] {
    [
        ("id", |line| line.row.id.clone()),
        ("group", |line| line.row.group.clone()),
        ("baseline", |line| line.baseline.name.clone()),
        ("against", |line| if line.cell.change.is_some() { line.first.to_owned() } else { String::new() }),
        ("unit", |line| line.baseline.unit.clone()),
        ("value", |line| line.value(|value| value.estimate)),
        ("value_low", |line| line.value(|value| value.low)),
        ("value_high", |line| line.value(|value| value.high)),
        ("ratio", |line| line.change(|change| number_cell(change.ratio))),
        ("ratio_low", |line| line.change(|change| number_cell(change.interval.map(|ends| ends[0])))),
        ("ratio_high", |line| line.change(|change| number_cell(change.interval.map(|ends| ends[1])))),
        ("verdict", |line| line.change(|change| change.verdict.to_string())),
        ("basis", |line| line.change(|change| change.basis.map_or("", Basis::name).to_owned())),
        ("p", |line| line.change(|change| number_cell(change.p))),
        ("p_among_all", |line| line.change(|change| number_cell(change.p_among_all))),
        ("replicates_against", |line| line.change(|change| change.replicates[0].to_string())),
        ("replicates", |line| line.change(|change| change.replicates[1].to_string())),
        ("detectable_percent", |line| line.change(|change| number_cell(change.detectable_percent))),
        ("reason", |line| line.change(|change| change.reason.clone().unwrap_or_default())),
    ]
}

impl Basis {
    fn name(self) -> &'static str {
        match self {
            Self::Replicates => "replicates",
            Self::History => "history",
        }
    }
}

/// The comparison as CSV: a head, and one line for each case and baseline. The first baseline's lines end after its values.
///
/// # Errors
/// Never in practice: the text is made in memory.
pub fn csv(comparison: &Comparison) -> Result<String> {
    let first = comparison.baselines.first().map_or("", |first| &first.name);
    let lines = comparison.rows.iter().flat_map(|row| {
        let cells = comparison.baselines.iter().zip(&row.cells);
        cells.map(move |(baseline, cell)| CsvLine { first, baseline, row, cell })
    });
    csv_table(CRLF, &csv_columns(), lines)
}

// Markdown tables, which a forge or a mail reader shows, one for each group.

/// The baselines, a table for each group, and the remarks.
pub fn markdown(comparison: &Comparison) -> String {
    let names: Vec<_> = comparison.baselines.iter().map(|baseline| baseline.name.as_str()).collect();
    let mut text = format!("# {}\n\n{}\n\n", names.join(" · "), LEGEND.replace('*', "**"));
    comparison.baselines.iter().for_each(|baseline| text.push_str(&baseline_item(baseline)));
    for rows in comparison.rows.chunk_by(|a, b| a.group == b.group) {
        let _ = write!(text, "\n## {}\n\n", rows[0].group);
        text.push_str(&group_table(&comparison.baselines, rows));
    }
    text.push('\n');
    comparison.remarks().iter().for_each(|remark| _ = writeln!(text, "* {remark}"));
    let _ = writeln!(text, "\n{}", comparison.tally);
    text
}

fn baseline_item(baseline: &Baseline) -> String {
    let mut text = format!("* **{}**: {}\n", baseline.name, baseline.summary());
    if let Some(relation) = &baseline.relation {
        relation.notes().iter().for_each(|note| _ = writeln!(text, "  * {note}"));
    }
    text
}

fn group_table(baselines: &[Baseline], rows: &[Row]) -> String {
    let names = baselines.iter().map(|baseline| baseline.name.as_str());
    let heads = std::iter::once("operation").chain(names);
    let rows = rows.iter().map(|row| {
        let cells = row.cells.iter().zip(baselines).map(|(shown, baseline)| cell_text(shown, &baseline.unit));
        std::iter::once(format!("`{}`", row.id)).chain(cells).collect()
    });
    markdown_table(heads, |column| column == 0, rows)
}

fn cell_text(cell: &Cell, unit: &str) -> String {
    let value = cell.value.map(|value| format_amount(value.estimate, unit)).unwrap_or_default();
    let mark = cell.change.as_ref().map(|c| match (c.verdict, c.ratio) {
        (Verdict::Slower | Verdict::Faster, Some(ratio)) => format!("**{}**", format_change(ratio)),
        _ => c.mark(),
    });
    [value, mark.unwrap_or_default()].join(" ").trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::study::comparison::fixture_head::{head, scale_cases};
    use crate::study::comparison::{Options, compare};

    #[test]
    fn the_legend_shows_every_mark() {
        let marks = [
            (Verdict::Slower, 1.052),
            (Verdict::Same, 1.003),
            (Verdict::Inconclusive, 1.031),
            (Verdict::Incomparable, 1.0),
        ];
        for (verdict, ratio) in marks {
            let mark = Change { verdict, ratio: Some(ratio), ..Change::default() }.mark();
            assert!(LEGEND.contains(&format!("{mark} ")), "{mark}");
        }
    }

    #[test]
    fn a_summary_says_what_it_is_and_how_it_is_compared() {
        let comparison = compare(&[head("6.1", 5, 3), head("6.2", 1, 1)], &[], Options::default());
        let [first, second] = [0, 1].map(|at| comparison.baselines[at].summary());
        assert_eq!(first, "kernel 6.1, 5 boots, 15 processes, default");
        assert_eq!(second, "kernel 6.2, 1 boot, 1 process, default, unreplicated; by boots, canaries 0.0%");
    }

    #[test]
    fn weighty_differences_come_first_and_facts_are_short() {
        let (mut a, mut b) = (head("a", 1, 1), head("b", 1, 1));
        // Without a processor model it is unknown whether there is a hypervisor.
        for head in [&mut a, &mut b] {
            head.fingerprints[0].cpu_model = Some("EPYC".into());
        }
        b.fingerprints[0].kernel_version = Some("#1 SMP PREEMPT_DYNAMIC and a long date".into());
        b.fingerprints[0].microcode = Some("0x2".into());
        b.fingerprints[0].hypervisor = Some("KVM".into());
        b.fingerprints[0].memory_bytes = Some(7);
        let comparison = compare(&[a, b], &[], Options::default());
        let notes = comparison.baselines[1].relation.as_ref().expect("a relation").notes();
        assert_eq!(
            notes,
            [
                "warning: hypervisor: none → KVM",
                "differs too: kernel_version; microcode unknown → 0x2; memory_bytes unknown → 7"
            ]
        );
    }

    #[test]
    fn a_reason_is_printed_once() {
        let all = compare(&[head("a", 1, 1), head("b", 1, 1), head("c", 1, 1)], &[], Options::default());
        assert_eq!(all.remarks().len(), 1);
        assert!(all.remarks()[0].starts_with("all baselines: all cases: unreplicated: one boot a side"));
        let mut part = head("b", 5, 1);
        part.series[2].version = "another".into();
        let remarks = compare(&[head("a", 5, 1), part], &[], Options::default()).remarks();
        assert!(
            remarks.len() == 1 && remarks[0].starts_with("b: syscall/getpid: another version"),
            "{remarks:?}"
        );
    }

    #[test]
    fn every_case_has_a_line_a_baseline_with_all_columns() {
        let heads = [head("old", 1, 1), head("new", 1, 1)];
        let text = csv(&compare(&heads, &[], Options::default())).unwrap();
        let lines: Vec<&str> = text.split_terminator("\r\n").collect();
        assert_eq!(lines.len(), 1 + 4 * 2);
        let columns = |line: &str| {
            let unquoted: String = line.split('"').step_by(2).collect();
            unquoted.matches(',').count() + 1
        };
        assert!(lines.iter().all(|line| columns(line) == csv_columns().len()), "{text}");
        assert!(lines[1].starts_with("known_work/add,known_work,old,,ns,100,99,101,,,,,"), "{}", lines[1]);
        assert!(lines[2].starts_with("known_work/add,known_work,new,old,ns,100,99,101,1,,,inconclusive,,"));
    }

    #[test]
    fn a_change_is_bold_and_every_row_has_all_cells() {
        let (old, mut new) = (head("old", 5, 1), head("new", 5, 1));
        scale_cases(&mut new, "syscall/getpid", 1.1);
        let text = markdown(&compare(&[old, new], &[], Options::default()));
        assert!(text.contains("| `syscall/getpid` | 100.0 ns | 110.0 ns **+10.0%** |"), "{text}");
        assert!(text.contains("| `syscall/openat-close` | 100.0 ns | 100.0 ns (0.0%) |"), "{text}");
        let rows: Vec<&str> = text.lines().filter(|line| line.starts_with('|')).collect();
        assert!(rows.len() == 4 + 2 * 2 && rows.iter().all(|row| row.matches('|').count() == 4), "{text}");
    }
}

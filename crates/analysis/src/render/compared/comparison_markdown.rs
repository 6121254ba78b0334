//! Tables that a forge or a mail reader shows, one a group.

use super::LEGEND;
use crate::render::markdown_table::markdown_table;
use crate::study::comparison::{Baseline, Cell, Comparison, Row};
use std::fmt::Write;
use syscost_engine::record::quantity::{format_amount, format_change};
use syscost_engine::record::verdict::Verdict;

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
    fn a_change_is_set_off_and_every_row_is_whole() {
        let (old, mut new) = (head("old", 5, 1), head("new", 5, 1));
        scale_cases(&mut new, "syscall/getpid", 1.1);
        let text = markdown(&compare(&[old, new], &[], Options::default()));
        assert!(text.contains("| `syscall/getpid` | 100.0 ns | 110.0 ns **+10.0%** |"), "{text}");
        assert!(text.contains("| `syscall/openat-close` | 100.0 ns | 100.0 ns (0.0%) |"), "{text}");
        let rows: Vec<&str> = text.lines().filter(|line| line.starts_with('|')).collect();
        assert!(rows.len() == 4 + 2 * 2 && rows.iter().all(|row| row.matches('|').count() == 4), "{text}");
    }
}

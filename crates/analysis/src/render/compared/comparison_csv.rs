//! One line a case and baseline, as a spreadsheet or a data frame wants it.

use crate::error::Result;
use crate::render::format::{CRLF, csv_text, interval_columns, number_cell};
use crate::study::comparison::{Baseline, Basis, Cell, Change, Comparison, Row};

const HEAD: [&str; 19] = [
    "id",
    "group",
    "baseline",
    "against",
    "unit",
    "value",
    "value_low",
    "value_high",
    "ratio",
    "ratio_low",
    "ratio_high",
    "verdict",
    "basis",
    "p",
    "p_among_all",
    "replicates_against",
    "replicates",
    "detectable_percent",
    "reason",
];

/// A head, and a line a case and baseline; the first baseline's lines end after its values.
///
/// # Errors
/// Never in practice: the text is made in memory.
pub fn csv(comparison: &Comparison) -> Result<String> {
    let lines = comparison.rows.iter().flat_map(|row| {
        let cells = comparison.baselines.iter().zip(&row.cells);
        cells.map(move |(baseline, cell)| csv_cells(comparison, row, baseline, cell))
    });
    csv_text(CRLF, std::iter::once(HEAD.map(str::to_owned).to_vec()).chain(lines))
}

fn csv_cells(comparison: &Comparison, row: &Row, baseline: &Baseline, cell: &Cell) -> Vec<String> {
    let against = cell.change.as_ref().and(comparison.baselines.first()).map_or("", |first| &first.name);
    let mut cells =
        [&row.id, &row.group, &baseline.name, against, &baseline.unit].map(str::to_owned).to_vec();
    cells.extend(interval_columns(cell.value).map(number_cell));
    if let Some(change) = &cell.change {
        cells.extend(verdict_cells(change));
    }
    cells.resize(HEAD.len() - 1, String::new());
    cells.push(cell.change.as_ref().and_then(|change| change.reason.clone()).unwrap_or_default());
    cells
}

fn verdict_cells(change: &Change) -> Vec<String> {
    let basis = match change.basis {
        Some(Basis::Replicates) => "replicates",
        Some(Basis::History) => "history",
        None => "",
    };
    let [against, own] = change.replicates.map(|n| n.to_string());
    vec![
        number_cell(change.ratio),
        number_cell(change.interval.map(|ends| ends[0])),
        number_cell(change.interval.map(|ends| ends[1])),
        change.verdict.to_string(),
        basis.to_owned(),
        number_cell(change.p),
        number_cell(change.p_among_all),
        against,
        own,
        number_cell(change.detectable_percent),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::study::comparison::fixture_head::head;
    use crate::study::comparison::{Options, compare};

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
        assert!(lines.iter().all(|line| columns(line) == HEAD.len()), "{text}");
        assert!(lines[1].starts_with("known_work/add,known_work,old,,ns,100,99,101,,,,,"), "{}", lines[1]);
        assert!(lines[2].starts_with("known_work/add,known_work,new,old,ns,100,99,101,1,,,inconclusive,,"));
    }
}

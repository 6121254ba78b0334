//! The rows that are shown, and their order: the largest change first.

use super::{Change, Comparison, Row};
use crate::statistic::median;
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt;
use syscost_engine::record::verdict::Verdict;

/// The sort key of a row: rank of its verdict, then size of its change, whose bits are in the order of the sizes.
type Weight = (u8, u64);

impl Comparison {
    /// Keeps some rows and their tally. Verdicts stay, because each was given among all rows.
    pub fn keep_rows(&mut self, wanted: impl Fn(&str) -> bool) {
        self.rows.retain(|row| wanted(&row.id));
        self.tally = Tally::from_rows(&self.rows);
    }

    /// Keeps the rows with a change and counts the others.
    pub fn keep_changed(&mut self) {
        let before = self.rows.len();
        self.rows.retain(|row| row.changes().any(|change| change.verdict.is_change()));
        self.left_out += before - self.rows.len();
    }

    /// Groups by their weightiest change, and rows within a group by theirs; of equal ones the earlier first.
    pub fn sort_by_weight(&mut self) {
        let mut of_group: BTreeMap<String, (Reverse<Weight>, usize)> = BTreeMap::new();
        for (at, row) in self.rows.iter().enumerate() {
            let own = Reverse(row_weight(row));
            let group = of_group.entry(row.group.clone()).or_insert((own, at));
            group.0 = own.min(group.0);
        }
        self.rows.sort_by_key(|row| (of_group[&row.group], Reverse(row_weight(row))));
    }

    /// Rows of one group together, otherwise as they are.
    pub fn sort_by_group(&mut self) {
        let mut first: BTreeMap<String, usize> = BTreeMap::new();
        for (at, row) in self.rows.iter().enumerate() {
            first.entry(row.group.clone()).or_insert(at);
        }
        self.rows.sort_by_key(|row| first[&row.group]);
    }
}

fn row_weight(row: &Row) -> Weight {
    row.changes().map(change_weight).max().unwrap_or_default()
}

fn change_weight(change: &Change) -> Weight {
    let rank = match change.verdict {
        Verdict::Slower | Verdict::Faster => 3,
        Verdict::Inconclusive => 2,
        Verdict::Same => 1,
        Verdict::Incomparable => 0,
    };
    (rank, change.ratio.map_or(0, |ratio| ratio.ln().abs().to_bits()))
}

// The summary of a comparison.

/// The number of changes by verdict, and the median of the smallest changes that could be shown.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Tally {
    /// Each verdict with its number.
    pub verdicts: BTreeMap<Verdict, usize>,
    /// The median, over all for which it is known, of the smallest change that would have been found, percent.
    pub detectable_percent: Option<f64>,
}

impl Tally {
    /// The sum of these rows.
    pub(super) fn from_rows(rows: &[Row]) -> Self {
        let changes = || rows.iter().flat_map(Row::changes);
        let count = |verdict| changes().filter(|change| change.verdict == verdict).count();
        let detectable: Vec<f64> = changes().filter_map(|change| change.detectable_percent).collect();
        Self {
            verdicts: Verdict::ALL.into_iter().map(|verdict| (verdict, count(verdict))).collect(),
            detectable_percent: (!detectable.is_empty()).then(|| median(&detectable)),
        }
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = |verdict| self.verdicts.get(&verdict).copied().unwrap_or_default();
        let counts = Verdict::ALL.map(|verdict| format!("{} {verdict}", count(verdict)));
        f.write_str(&counts.join(", "))?;
        match self.detectable_percent {
            Some(percent) => write!(f, "; the median row could have shown a change of {percent:.1} %"),
            None => f.write_str("; how small a change could have been shown is not known"),
        }
    }
}

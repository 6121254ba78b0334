//! The rows that are shown, and their order: the largest change first.

use super::{Change, Comparison, Row, Tally};
use std::cmp::Reverse;
use std::collections::BTreeMap;
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

//! The rows that are shown, and their order: the largest change first.

use super::{Change, Comparison, Row, Tally};
use crate::record::verdict::Verdict;
use std::collections::BTreeMap;

/// The sort key of a row: rank of its verdict, then size of its change.
type Weight = (u8, f64);

impl Comparison {
    /// Keeps some rows and their tally. Verdicts stay, because each was given among all rows.
    pub fn keep(&mut self, wanted: impl Fn(&str) -> bool) {
        self.rows.retain(|row| wanted(&row.id));
        self.tally = Tally::of(&self.rows);
    }

    /// Keeps the rows with a change and counts the others.
    pub fn keep_changed(&mut self) {
        let before = self.rows.len();
        self.rows.retain(|row| row.changes().any(|change| change.verdict.is_change()));
        self.left_out += before - self.rows.len();
    }

    /// Groups by their weightiest change, and rows within a group by theirs; of equal ones the earlier first.
    pub fn sort_by_weight(&mut self) {
        let mut of_group: BTreeMap<String, (Weight, usize)> = BTreeMap::new();
        for (at, row) in self.rows.iter().enumerate() {
            let entry = of_group.entry(row.group.clone()).or_insert(((0, 0.0), at));
            if heavier(weight(row), entry.0) {
                entry.0 = weight(row);
            }
        }
        self.rows.sort_by(|a, b| {
            let (of_a, of_b) = (of_group[&a.group], of_group[&b.group]);
            let groups = descending(of_a.0, of_b.0).then(of_a.1.cmp(&of_b.1));
            groups.then_with(|| descending(weight(a), weight(b)))
        });
    }

    /// Rows of one group together, otherwise as they are.
    pub fn sort_by_table(&mut self) {
        let mut first: BTreeMap<String, usize> = BTreeMap::new();
        for (at, row) in self.rows.iter().enumerate() {
            first.entry(row.group.clone()).or_insert(at);
        }
        self.rows.sort_by_key(|row| first[&row.group]);
    }
}

fn weight(row: &Row) -> Weight {
    row.changes().map(weight_of).fold((0, 0.0), |best, next| if heavier(next, best) { next } else { best })
}

fn weight_of(change: &Change) -> Weight {
    let rank = match change.verdict {
        Verdict::Slower | Verdict::Faster => 3,
        Verdict::Inconclusive => 2,
        Verdict::Same => 1,
        Verdict::Incomparable => 0,
    };
    (rank, change.ratio.map_or(0.0, |ratio| ratio.ln().abs()))
}

fn heavier(a: Weight, b: Weight) -> bool {
    descending(a, b).is_lt()
}

fn descending(a: Weight, b: Weight) -> std::cmp::Ordering {
    b.0.cmp(&a.0).then_with(|| b.1.total_cmp(&a.1))
}

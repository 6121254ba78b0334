//! What is said of a comparison in sentences: of its sides above the table, of its rows below it.

use super::{Baseline, Comparison, Relation};
use crate::environment::{Difference, Weight};
use crate::record::quantity;
use std::collections::BTreeMap;

/// Longer values of a fact are in the JSON.
const LONGEST_FACT: usize = 24;

impl Baseline {
    /// What it is, in a line: `kernel 6.12.3, 5 boots, 15 processes, default`.
    pub fn summary(&self) -> String {
        let kernels = match self.kernels.len() {
            0 => "kernel unknown".to_owned(),
            1 => format!("kernel {}", self.kernels[0]),
            _ => format!("kernels {}", self.kernels.join(", ")),
        };
        let count =
            |n: usize, one: &str, several: &str| format!("{n} {}", if n == 1 { one } else { several });
        let parts = [
            kernels,
            count(self.boots, "boot", "boots"),
            count(self.sessions, "session", "sessions"),
            count(self.processes, "process", "processes")
                + if self.processes == 1 { " (unreplicated)" } else { "" },
            self.scale.clone(),
        ];
        parts.join(", ")
    }
}

impl Relation {
    /// In what it differs from the first, warnings first.
    pub fn notes(&self) -> Vec<String> {
        let mut notes: Vec<String> = self.incomparable.iter().cloned().collect();
        notes.extend(self.warnings.iter().map(|sentence| format!("warning: {sentence}")));
        let heavy = self.differences.iter().filter(|d| d.weight > Weight::Fact);
        notes.extend(heavy.map(|d| format!("{}: {}: {} → {}", word(d.weight), d.field, d.ours, d.theirs)));
        let facts: Vec<_> = self.differences.iter().filter(|d| d.weight == Weight::Fact).map(fact).collect();
        if !facts.is_empty() {
            notes.push(format!("differs too: {}", facts.join("; ")));
        }
        if let Some(ratio) = self.canary {
            notes.push(format!(
                "compared by {}, canaries {}",
                self.replicate.word(2),
                quantity::change(ratio)
            ));
        }
        notes
    }
}

fn fact(difference: &Difference) -> String {
    let Difference { field, ours, theirs, .. } = difference;
    match ours.chars().count().max(theirs.chars().count()) > LONGEST_FACT {
        true => (*field).to_owned(),
        false => format!("{field} {ours} → {theirs}"),
    }
}

fn word(weight: Weight) -> &'static str {
    match weight {
        Weight::Fact => "fact",
        Weight::Warning => "warning",
        Weight::Incomparable => "incomparable",
    }
}

impl Comparison {
    /// Why rows have no verdict: each reason once, with its rows. Where the interval alone is too wide, the table
    /// says enough.
    pub fn remarks(&self) -> Vec<String> {
        let mut of_reason: BTreeMap<(usize, &str), Vec<&str>> = BTreeMap::new();
        for row in &self.rows {
            for (column, cell) in row.cells.iter().enumerate() {
                let change = cell.change.as_ref().filter(|change| change.basis.is_none());
                if let Some(reason) = change.and_then(|change| change.reason.as_deref()) {
                    of_reason.entry((column, reason)).or_default().push(&row.id);
                }
            }
        }
        of_reason.iter().map(|((column, reason), ids)| self.remark(*column, reason, ids)).collect()
    }

    fn remark(&self, column: usize, reason: &str, ids: &[&str]) -> String {
        let name = &self.baselines[column].name;
        let rows = match ids {
            all if all.len() == self.rows.len() => "all cases".to_owned(),
            [some @ .., last] if some.len() < 3 => [some, &[*last]].concat().join(", "),
            [first, second, others @ ..] => format!("{first}, {second} and {} others", others.len()),
            _ => String::new(),
        };
        format!("{name}: {rows}: {reason}")
    }
}

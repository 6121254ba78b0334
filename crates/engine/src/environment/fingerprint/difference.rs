//! How two fingerprints differ, and how much that matters to a comparison.

use super::Fingerprint;
use super::field_table::{BETWEEN, FIELDS, Field, Series, Weight};
use serde::Serialize;

/// One field in which two machines differ.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// Name of the field of [`Fingerprint`].
    pub field: &'static str,
    /// Its value in the first fingerprint.
    pub ours: String,
    /// Its value in the second.
    pub theirs: String,
    /// How much it matters to a comparison.
    pub weight: Weight,
    /// What it does to the history of a machine. An unknown value is never of another series.
    pub series: Series,
}

impl Fingerprint {
    /// Every field with its value as text, in a fixed order; `None` where it is unknown.
    pub fn field_values(&self) -> impl Iterator<Item = (&'static str, Option<String>)> {
        FIELDS.iter().map(|field| (field.name, (field.show)(self)))
    }

    /// Whether runs with the two fingerprints are of one series: no field that all numbers depend on is known to
    /// differ.
    pub fn is_same_series(&self, other: &Self) -> bool {
        !self.differences(other).iter().any(|difference| difference.series == Series::Another)
    }

    /// The fields in which two fingerprints differ, the most important first.
    ///
    /// A value that is unknown on one side weighs one step less, because it may be the same.
    pub fn differences(&self, other: &Self) -> Vec<Difference> {
        let mut differences: Vec<_> = FIELDS.iter().filter_map(|field| field.compare(self, other)).collect();
        differences.sort_by_key(|d| std::cmp::Reverse(d.weight));
        differences
    }
}

impl Field {
    fn compare(&self, ours: &Fingerprint, theirs: &Fingerprint) -> Option<Difference> {
        let (a, b) = ((self.show)(ours), (self.show)(theirs));
        if a == b {
            return None;
        }
        let (weight, series) = match a.is_some() && b.is_some() {
            true => (self.weight, self.series),
            false => (self.weight.step_down(), Series::Same),
        };
        let text = |value: Option<String>| value.unwrap_or_else(|| "unknown".to_owned());
        let (ours, theirs) = drop_common_entries(&text(a), &text(b));
        Some(Difference { field: self.name, ours, theirs, weight, series })
    }
}

/// Removes the entries that both lists have, so that a difference in two of twenty mitigations stays readable.
fn drop_common_entries(ours: &str, theirs: &str) -> (String, String) {
    (entries_only_in(ours, theirs), entries_only_in(theirs, ours))
}

fn entries_only_in(ours: &str, theirs: &str) -> String {
    let theirs: Vec<_> = theirs.split(BETWEEN).collect();
    let only: Vec<_> = ours.split(BETWEEN).filter(|part| !theirs.contains(part)).collect();
    if only.is_empty() { "nothing more".to_owned() } else { only.join(BETWEEN) }
}

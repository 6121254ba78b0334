//! The summary of a comparison.

use super::Row;
use crate::statistic::median;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt;
use syscost_engine::record::verdict::Verdict;

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

//! How a comparison came out on the whole.

use super::Comparison;
use crate::record::verdict::Verdict;
use crate::statistic::median;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt;

/// How many changes there are of each verdict, and what the median one could have shown.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Tally {
    /// Each verdict with its number.
    pub verdicts: BTreeMap<Verdict, usize>,
    /// The median, over all for which it is known, of the smallest change that would have been found, percent.
    pub detectable_percent: Option<f64>,
}

impl Comparison {
    /// The sum of the rows that are here.
    pub fn tally(&self) -> Tally {
        let count = |verdict| self.changes().filter(|change| change.verdict == verdict).count();
        let detectable: Vec<f64> = self.changes().filter_map(|change| change.detectable_percent).collect();
        Tally {
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

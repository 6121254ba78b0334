//! The verdict of a comparison on one case.

use super::Outcome;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The verdict on one case. If no change was shown, the verdict is [`Same`](Self::Same) or [`Inconclusive`](Self::Inconclusive).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// The cost fell by more than the threshold.
    Faster,
    /// The cost rose by more than the threshold.
    Slower,
    /// The change is shown to be too small to matter.
    Same,
    /// Neither a change nor its absence was shown. This is not a pass.
    #[default]
    Inconclusive,
    /// The two numbers cannot be compared.
    Incomparable,
}

impl Verdict {
    /// Every verdict, in the order in which counts list them.
    pub const ALL: [Self; 5] =
        [Self::Slower, Self::Faster, Self::Same, Self::Inconclusive, Self::Incomparable];

    /// Its name in a record.
    pub fn name(self) -> &'static str {
        match self {
            Self::Faster => "faster",
            Self::Slower => "slower",
            Self::Same => "same",
            Self::Inconclusive => "inconclusive",
            Self::Incomparable => "incomparable",
        }
    }

    /// The number of each verdict, as text: `2 slower, 5 same`. Verdicts that do not occur are left out.
    pub fn format_counts(verdicts: &[Self]) -> String {
        let count = |verdict| verdicts.iter().filter(|other| **other == verdict).count();
        let counts = Self::ALL.into_iter().map(|verdict| (count(verdict), verdict));
        let parts =
            counts.filter(|(count, _)| *count > 0).map(|(count, verdict)| format!("{count} {verdict}"));
        parts.collect::<Vec<_>>().join(", ")
    }

    /// Whether a change was shown.
    pub fn is_change(self) -> bool {
        matches!(self, Self::Faster | Self::Slower)
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

// Counts of cases by outcome.

/// The number of cases by outcome.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Cases with a number.
    pub measured: usize,
    /// Measured cases with a claim that could not be checked.
    pub unwitnessed: usize,
    /// Measured cases whose figures are not settled.
    pub unsettled: usize,
    /// Cases skipped because the machine lacks a need.
    pub skipped: usize,
    /// Cases whose measurement was prevented by other activity on the machine.
    pub disturbed: usize,
    /// Cases with a disproved claim or a failed operation.
    pub failed: usize,
}

impl std::fmt::Display for Tally {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { measured, unwitnessed, unsettled, skipped, disturbed, failed } = self;
        write!(f, "{measured} measured")?;
        if *unwitnessed > 0 {
            write!(f, ", {unwitnessed} of them unwitnessed")?;
        }
        write!(f, ", {skipped} skipped, ")?;
        if *disturbed > 0 {
            write!(f, "{disturbed} disturbed, ")?;
        }
        write!(f, "{failed} failed")?;
        if *unsettled > 0 {
            write!(f, "; not settled: {unsettled} of {measured}")?;
        }
        Ok(())
    }
}

impl Tally {
    /// Counts one more case.
    pub fn add(&mut self, outcome: &Outcome) {
        if let Outcome::Measured(measured) = outcome {
            self.unwitnessed += usize::from(measured.is_unwitnessed());
            self.unsettled += usize::from(!measured.is_settled());
        }
        *match outcome {
            Outcome::Measured(_) => &mut self.measured,
            Outcome::Skipped(_) => &mut self.skipped,
            Outcome::Disturbed(_) => &mut self.disturbed,
            Outcome::Failed(_) => &mut self.failed,
        } += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{Measured, NEVER_ASKED};

    #[test]
    fn a_verdict_is_displayed_as_it_is_serialized() {
        for verdict in Verdict::ALL {
            let json = serde_json::to_string(&verdict).unwrap();
            assert_eq!(json, format!("\"{verdict}\""));
            assert_eq!(serde_json::from_str::<Verdict>(&json).unwrap(), verdict);
        }
    }

    #[test]
    fn counts_of_verdicts_are_listed_in_order() {
        use Verdict::{Faster, Same, Slower};
        assert_eq!(Verdict::format_counts(&[Same, Faster, Slower, Same]), "1 slower, 1 faster, 2 same");
        assert_eq!(Verdict::format_counts(&[]), "");
    }

    #[test]
    fn only_faster_and_slower_are_changes() {
        let changes: Vec<_> = Verdict::ALL.into_iter().filter(|verdict| verdict.is_change()).collect();
        assert_eq!(changes, [Verdict::Slower, Verdict::Faster]);
    }

    #[test]
    fn a_case_with_a_claim_that_could_not_be_checked_is_counted_as_unwitnessed() {
        let mut tally = Tally::default();
        for sentence in [format!("{NEVER_ASKED}a count: time grows"), "no witness could be called".into()] {
            tally.add(&Outcome::Measured(Box::new(Measured {
                unasked: vec![sentence],
                ..Measured::default()
            })));
        }
        assert_eq!(tally.to_string(), "2 measured, 1 of them unwitnessed, 0 skipped, 0 failed");
        let left_out = vec!["others had the CPU".into()];
        tally.add(&Outcome::Measured(Box::new(Measured { left_out, ..Measured::default() })));
        assert!(tally.to_string().ends_with("0 failed; not settled: 1 of 3"), "{tally}");
    }
}

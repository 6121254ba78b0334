//! How many cases ended in each way.

use super::Outcome;

/// Numbers of cases, by how they ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Those with a number.
    pub measured: usize,
    /// Those of them of which a claim could not be asked.
    pub unwitnessed: usize,
    /// Those of them whose figures are not settled.
    pub unsettled: usize,
    /// Those whose need is missing.
    pub skipped: usize,
    /// Those that the machine did not let be measured.
    pub disturbed: usize,
    /// Those that are disproved or broken.
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
    /// Counts one more.
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
    fn a_number_of_which_a_claim_could_not_be_asked_is_counted_as_unwitnessed() {
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

//! How many executions a case gets. A run goes over its cases in rounds; every round takes fresh processes, in another
//! order. After the first rounds only cases that are not settled get further ones, while the run's time lasts.

use super::arguments::{Arguments, Mode};
use super::options::Options;
use crate::case::Scale;
use crate::record::quantity::DISPLACED;
use std::time::Duration;

/// Executions of every case.
const FEWEST: usize = 3;
/// Executions of a case that takes long.
const FEWEST_OF_LONG: usize = 2;
/// An execution of this length is long, seconds.
const LONG: f64 = 1.5;
/// Executions of a case that does not settle.
const MOST: usize = 12;
/// Time of a run for each of its cases, seconds: five minutes for the default suite.
const EACH: f64 = 0.5;
/// The same at full scale.
const EACH_AT_FULL: f64 = 8.0;
/// Executions of a case that are tried before it is given up without a number.
const TRIES: usize = 3;

/// The rounds of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Rounds {
    fewest: usize,
    most: usize,
    /// No further execution begins after this time, unless a case has too few.
    pub(super) time: Duration,
}

impl Rounds {
    /// One execution of each case: a test, a brief look, a count that needs no second one, one of a session's processes.
    pub(super) const ONE: Self = Self { fewest: 1, most: 1, time: Duration::MAX };

    /// The rounds of a run over this number of cases.
    pub(super) fn of(arguments: &Arguments, options: &Options, cases: usize) -> Self {
        let once =
            arguments.mode != Mode::Measure || options.scale == Scale::Smoke || options.unit == DISPLACED;
        if once {
            return Self::ONE;
        }
        let each = if options.scale == Scale::Full { EACH_AT_FULL } else { EACH };
        let seconds = options.seconds.unwrap_or(each * cases as f64);
        Self { fewest: FEWEST, most: MOST, time: Duration::from_secs_f64(seconds) }
    }

    /// The default rounds, without a limit of time.
    #[cfg(test)]
    pub(super) const fn of_test() -> Self {
        Self { fewest: FEWEST, most: MOST, time: Duration::MAX }
    }

    /// Executions that a case needs whose longest took so many seconds.
    pub(super) fn needed(&self, seconds: f64) -> usize {
        if seconds > LONG { self.fewest.min(FEWEST_OF_LONG) } else { self.fewest }
    }

    /// Executions of a case that has no number yet, of which so many were disturbed: these count half.
    pub(super) fn tries(&self, disturbed: usize) -> usize {
        self.fewest.max(TRIES + disturbed / 2)
    }

    /// Whether a case may have another execution after so many because it is not settled.
    pub(super) fn allows(&self, executions: usize) -> bool {
        executions < self.most
    }

    /// Executions of so many cases that are certain.
    pub(super) fn certain(&self, cases: usize) -> usize {
        self.fewest * cases
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_case_that_takes_long_needs_fewer_and_one_round_is_one() {
        let rounds = Rounds { fewest: 3, most: 12, time: Duration::from_secs(1) };
        assert_eq!((rounds.needed(0.1), rounds.needed(4.0), rounds.tries(0), rounds.tries(4)), (3, 2, 3, 5));
        assert!(rounds.allows(11) && !rounds.allows(12));
        assert_eq!((Rounds::ONE.needed(4.0), Rounds::ONE.tries(0)), (1, 3));
    }
}

//! The number of executions of a case. A run goes over its cases in rounds; every round uses fresh processes, in another
//! order. After the first rounds only cases that are not settled get further executions, while the run's time lasts.

use super::arguments::{Arguments, Mode};
use super::options::Options;
use crate::case::Scale;
use crate::record::quantity::{DISPLACED, is_instruction_unit};
use std::time::Duration;

/// Executions of every case.
const FEWEST: usize = 3;
/// Executions of a case that takes long.
const FEWEST_OF_LONG: usize = 2;
/// Executions of every case whose instructions are counted: enough to notice a count that differs between processes.
const FEWEST_OF_COUNTED: usize = 5;
/// An execution that takes more seconds than this is long: its case needs only [`FEWEST_OF_LONG`].
const LONG_SECONDS: f64 = 0.5;
/// The most time that a case which does not settle may take, in multiples of the average time of a case.
const MOST_TIME_FACTOR: f64 = 2.5;
/// The most executions of a case that does not settle.
const MOST: usize = 12;
/// Executions of every case of a brief run, and of headline cases before other cases. One alone would show no spread.
const FEWEST_OF_BRIEF: usize = 2;
/// Seconds per case that one execution of every case takes. A whole run with a shorter limit is brief.
const EXECUTION_SECONDS: f64 = 0.15;
/// Seconds of a run per case. With the time for Criterion's files, the default suite takes five minutes.
const CASE_SECONDS: f64 = 0.43;
/// Seconds of a run per case at full scale.
const CASE_SECONDS_AT_FULL: f64 = 8.0;
/// A claim about time counts as disproved once this many executions have run and all contradict it; those in which other
/// tasks were seen do not count. At a load of four to five on two CPUs 3 in 100 executions of honest cases were contradicted
/// (113 of 3574). If executions are independent, six of six are one case in a billion; the run spreads them as far as it can.
pub(super) const CONDEMNING: usize = 6;

/// The rounds of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Rounds {
    fewest: usize,
    fewest_of_long: usize,
    most: usize,
    /// The limit of the whole run that the user set, seconds.
    seconds: Option<f64>,
    /// Seconds for each of its cases.
    each: f64,
}

impl Rounds {
    /// One execution of each case: for a test, for smoke scale, for displacement, and for each process of a session.
    pub(super) const ONE: Self =
        Self { fewest: 1, fewest_of_long: 1, most: 1, seconds: None, each: CASE_SECONDS };

    /// The rounds of a run.
    pub(super) fn new(arguments: &Arguments, options: &Options) -> Self {
        let once =
            arguments.mode != Mode::Measure || options.scale == Scale::Smoke || options.unit == DISPLACED;
        if once {
            let seconds = options.seconds.filter(|_| arguments.mode == Mode::Measure);
            return Self { seconds, ..Self::ONE };
        }
        let each = if options.scale == Scale::Full { CASE_SECONDS_AT_FULL } else { CASE_SECONDS };
        let (fewest, fewest_of_long) = if is_instruction_unit(&options.unit) {
            (FEWEST_OF_COUNTED, FEWEST_OF_COUNTED)
        } else {
            (FEWEST, FEWEST_OF_LONG)
        };
        Self { fewest, fewest_of_long, most: MOST, seconds: options.seconds, each }
    }

    /// The rounds of a run that measures headline cases alone, for lack of time for this number of cases; `None` if time suffices.
    pub(super) fn brief(&self, cases: usize) -> Option<Self> {
        let brief = self.seconds.is_some_and(|seconds| seconds < EXECUTION_SECONDS * cases as f64);
        (brief && self.fewest > FEWEST_OF_BRIEF).then_some(Self { fewest: FEWEST_OF_BRIEF, ..*self })
    }

    /// Whether only the headline cases are measured.
    pub(super) fn is_brief(&self) -> bool {
        self.fewest == FEWEST_OF_BRIEF
    }

    /// Executions that headline cases get before other cases are measured; never more than every case gets.
    pub(super) fn headline_rounds(&self) -> usize {
        self.fewest.min(FEWEST_OF_BRIEF)
    }

    /// The time after which a case that has enough executions gets no more of them. `cases` is the number of cases that this
    /// machine can run.
    pub(super) fn time_limit(&self, cases: usize) -> Duration {
        Duration::from_secs_f64(self.seconds.unwrap_or(self.each * cases as f64))
    }

    #[cfg(test)]
    pub(super) fn in_seconds(self, seconds: f64) -> Self {
        Self { seconds: Some(seconds), ..self }
    }

    #[cfg(test)]
    pub(super) const fn default_without_limit() -> Self {
        Self { fewest: FEWEST, fewest_of_long: FEWEST_OF_LONG, most: MOST, seconds: None, each: CASE_SECONDS }
    }

    /// The time after which no case begins, if the user set one.
    pub(super) fn limit(&self) -> Option<Duration> {
        self.seconds.map(Duration::from_secs_f64)
    }

    /// Executions that a case needs if its longest execution took `seconds`.
    pub(super) fn needed_executions(&self, seconds: f64) -> usize {
        if seconds > LONG_SECONDS { self.fewest.min(self.fewest_of_long) } else { self.fewest }
    }

    /// The fewest executions with which a case that needs `needed` can count as settled. A brief run needs fewer than the interval
    /// requires, so it continues while its time lasts.
    pub(super) fn executions_to_settle(&self, needed: usize) -> usize {
        if self.is_brief() { FEWEST } else { needed }
    }

    /// The most executions of a case that has no number yet. `disturbed` executions do not count, up to a limit.
    pub(super) fn max_attempts(&self, disturbed: usize) -> usize {
        self.fewest.max(CONDEMNING + disturbed.min(CONDEMNING))
    }

    /// Whether an unsettled case may have another execution after these `executions` of at most `seconds` each. A
    /// slow case gets at most [`MOST_TIME_FACTOR`] times the average time of a case, unless the user set the time of the run.
    pub(super) fn allows_another_execution(&self, executions: usize, seconds: f64) -> bool {
        let is_too_long = (executions + 1) as f64 * seconds > MOST_TIME_FACTOR * self.each;
        executions < self.most && (self.seconds.is_some() || !is_too_long)
    }

    /// The fewest executions that a run of this number of cases makes.
    pub(super) fn minimum_executions(&self, cases: usize) -> usize {
        self.fewest * cases
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_brief_run_goes_on_while_its_time_lasts() {
        let whole = Rounds::default_without_limit().in_seconds(20.0);
        let brief = whole.brief(500).expect("no time for 500 cases");
        assert_eq!((brief.needed_executions(0.1), brief.executions_to_settle(2)), (2, 3));
        assert!(brief.is_brief() && !whole.is_brief() && !Rounds::ONE.is_brief());
        assert_eq!(whole.executions_to_settle(whole.needed_executions(4.0)), 2);
        assert_eq!(Rounds::ONE.executions_to_settle(1), 1);
    }

    #[test]
    fn a_long_case_needs_fewer_executions_and_a_single_round_needs_one() {
        let rounds = Rounds::default_without_limit();
        assert_eq!(
            (
                rounds.needed_executions(0.1),
                rounds.needed_executions(4.0),
                rounds.max_attempts(0),
                rounds.max_attempts(4),
                rounds.max_attempts(99)
            ),
            (3, 2, 6, 10, 12)
        );
        assert!(
            rounds.allows_another_execution(11, 0.01)
                && !rounds.allows_another_execution(12, 0.01)
                && !rounds.allows_another_execution(3, 0.4)
        );
        assert!(
            Rounds { seconds: Some(600.0), ..rounds }.allows_another_execution(3, 0.4),
            "a time given by the user is used up"
        );
        assert_eq!(rounds.time_limit(100), Duration::from_secs(43));
        let timed = Rounds { seconds: Some(20.0), ..rounds };
        assert_eq!(timed.brief(567).map(|brief| brief.needed_executions(0.1)), Some(2));
        assert_eq!((timed.brief(40), rounds.brief(567), Rounds::ONE.brief(567)), (None, None, None));
        assert_eq!((rounds.headline_rounds(), Rounds::ONE.headline_rounds()), (2, 1));
        assert_eq!((Rounds::ONE.needed_executions(4.0), Rounds::ONE.max_attempts(0)), (1, 6));
    }
}

//! How many executions a case gets. A run goes over its cases in rounds; every round takes fresh processes, in another
//! order. After the first rounds only cases that are not settled get further ones, while the run's time lasts.

use super::arguments::{Arguments, Mode};
use super::options::Options;
use crate::case::Scale;
use crate::record::quantity::{DISPLACED, is_instruction_unit};
use std::time::Duration;

/// Executions of every case.
const FEWEST: usize = 3;
/// Executions of a case that takes long.
const FEWEST_OF_LONG: usize = 2;
/// Executions of every case whose instructions are counted: a count that differs between processes is to be seen to.
const FEWEST_OF_COUNTED: usize = 5;
/// An execution that takes more seconds than this is long: its case needs only [`FEWEST_OF_LONG`].
const LONG: f64 = 0.5;
/// The most time that a case which does not settle may take, in multiples of the average time of a case.
const SHARE: f64 = 2.5;
/// The most executions of a case that does not settle.
const MOST: usize = 12;
/// Executions of every case of a brief run, and of the headline cases before those of others: one says nothing of the next.
const FEWEST_OF_BRIEF: usize = 2;
/// Time that one execution of every case takes, seconds for each: a whole run of less time is brief.
const EACH_ONCE: f64 = 0.15;
/// Time of a run for each of its cases, seconds: with what Criterion's files take, five minutes for the default suite.
const EACH: f64 = 0.43;
/// The same at full scale.
const EACH_AT_FULL: f64 = 8.0;
/// Executions that all contradict a claim about time before the claim counts as disproved; those in which other tasks were
/// seen have no vote. At a load of four to five on two CPUs 3 in 100 executions of honest cases were contradicted (113 of
/// 3574): six of six would be one case in a billion if they were independent, and they are as far apart as the run allows.
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
    /// One execution of each case: a test, a brief look, a count that needs no second one, one of a session's processes.
    pub(super) const ONE: Self = Self { fewest: 1, fewest_of_long: 1, most: 1, seconds: None, each: EACH };

    /// The rounds of a run.
    pub(super) fn new(arguments: &Arguments, options: &Options) -> Self {
        let once =
            arguments.mode != Mode::Measure || options.scale == Scale::Smoke || options.unit == DISPLACED;
        if once {
            let seconds = options.seconds.filter(|_| arguments.mode == Mode::Measure);
            return Self { seconds, ..Self::ONE };
        }
        let each = if options.scale == Scale::Full { EACH_AT_FULL } else { EACH };
        let (fewest, fewest_of_long) = if is_instruction_unit(&options.unit) {
            (FEWEST_OF_COUNTED, FEWEST_OF_COUNTED)
        } else {
            (FEWEST, FEWEST_OF_LONG)
        };
        Self { fewest, fewest_of_long, most: MOST, seconds: options.seconds, each }
    }

    /// The rounds of a run that has no time for all of these cases and measures the headline cases alone; `None` if it has.
    pub(super) fn brief(&self, cases: usize) -> Option<Self> {
        let brief = self.seconds.is_some_and(|seconds| seconds < EACH_ONCE * cases as f64);
        (brief && self.fewest > FEWEST_OF_BRIEF).then_some(Self { fewest: FEWEST_OF_BRIEF, ..*self })
    }

    /// Whether only the headline cases are measured.
    pub(super) fn is_brief(&self) -> bool {
        self.fewest == FEWEST_OF_BRIEF
    }

    /// Executions of the headline cases before those of others: no more than every case gets.
    pub(super) fn headline_rounds(&self) -> usize {
        self.fewest.min(FEWEST_OF_BRIEF)
    }

    /// The time after which no further execution of a case begins that has enough of them; `cases` are those that this
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
        Self { fewest: FEWEST, fewest_of_long: FEWEST_OF_LONG, most: MOST, seconds: None, each: EACH }
    }

    /// The time after which no case begins, if the user set one.
    pub(super) fn limit(&self) -> Option<Duration> {
        self.seconds.map(Duration::from_secs_f64)
    }

    /// Executions that a case needs if its longest execution took `seconds`.
    pub(super) fn needed_executions(&self, seconds: f64) -> usize {
        if seconds > LONG { self.fewest.min(self.fewest_of_long) } else { self.fewest }
    }

    /// Executions from which on a case that needs this many can count as settled. Those of a brief run are fewer than its interval
    /// wants: it goes on while its time lasts.
    pub(super) fn executions_to_settle(&self, needed: usize) -> usize {
        if self.is_brief() { FEWEST } else { needed }
    }

    /// Executions of a case that has no number yet. Those that were `disturbed` do not count, up to a limit.
    pub(super) fn max_attempts(&self, disturbed: usize) -> usize {
        self.fewest.max(CONDEMNING + disturbed.min(CONDEMNING))
    }

    /// Whether an unsettled case may have another execution after these `executions` of at most `seconds` each. A
    /// slow case gets at most [`SHARE`] times the average time of a case, unless the user set the time of the run.
    pub(super) fn allows_another_execution(&self, executions: usize, seconds: f64) -> bool {
        let dear = (executions + 1) as f64 * seconds > SHARE * self.each;
        executions < self.most && (self.seconds.is_some() || !dear)
    }

    /// Executions that a run of this number of cases makes at least.
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
    fn a_case_that_takes_long_needs_fewer_and_one_round_is_one() {
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

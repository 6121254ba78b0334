//! Two sides whose instructions are counted, and not their times: a few processes a side and case, one after the other, since a
//! count may differ from process to process.

use super::experiment::{Experiment, Testbed};
use super::running_side::{Draw, Start};
use super::turns::{CaseResult, Shape, combine_halves, request_preparation};
use crate::error::Result;
use crate::platform::signal;
use crate::record::paired::{CasePairs, Paired, Why};
use std::time::Duration;
use syscost_engine::pair::{Prepare, Ready};
use syscost_engine::record::EventRate;
use syscost_engine::trial::CaseEnd;

/// Silence after which a side counts as hung: stepping through the longest operation, and its claims.
const PATIENCE: Duration = Duration::from_secs(120);

/// Processes a side …
const PROCESSES: usize = 3;
/// … and of a case that seems to have changed: of a count that has two values by chance, three may be alike.
const PROCESSES_OF_CHANGED: usize = 8;

impl Testbed {
    /// Counts these cases on both sides. The result has counts, and no pairs. `watch` is called before each case.
    pub fn count_cases(
        &self,
        experiment: &Experiment<'_>,
        ids: &[String],
        watch: &mut dyn FnMut(&str),
    ) -> Paired {
        let mut paired = self.new_record(&experiment.plan);
        for id in ids {
            watch(id);
            let counted = self.count_case(experiment, id);
            if signal::pending().is_some() {
                break;
            }
            paired.cases.push(counted_case(id, counted));
        }
        paired
    }

    fn count_case(&self, experiment: &Experiment<'_>, id: &str) -> CaseResult<[Ready; 2]> {
        let one_of_each = |is_first| {
            combine_halves(
                experiment.starts.map(|start| Some(self.count_side(start, experiment, id, is_first))),
            )
        };
        let mut all = one_of_each(true)?;
        for process in 1..PROCESSES_OF_CHANGED {
            if process >= PROCESSES && all[0].counts == all[1].counts {
                break;
            }
            for (ready, next) in all.iter_mut().zip(one_of_each(false)?) {
                widen_counts(&mut ready.counts, &next.counts);
            }
        }
        Ok(all)
    }

    fn count_side(
        &self,
        start: &dyn Start,
        experiment: &Experiment<'_>,
        id: &str,
        prove: bool,
    ) -> CaseResult<Ready> {
        let side: Result<_> = start.start_side(Draw::default(), self.aside());
        let request = Prepare {
            case: id.to_owned(),
            cpu: self.cpu(),
            clock: self.clock_scale(),
            batch_ns: Shape::BATCH_NS,
            prove,
            scale: experiment.plan.scale,
            spin: 0.0,
            instructions: true,
            sampled: false,
        };
        request_preparation(
            &mut side.map_err(|error| CaseEnd::CutShort(error.to_string()))?,
            request,
            PATIENCE,
        )
    }
}

/// Widens the ranges of these counts to those of another process.
fn widen_counts(counts: &mut [EventRate], others: &[EventRate]) {
    for count in counts {
        let other = others.iter().find(|other| other.name == count.name).and_then(|other| other.rate);
        if let (Some(rate), Some(other)) = (&mut count.rate, other) {
            *rate = rate.widened_to(other);
        }
    }
}

fn counted_case(id: &str, sides: CaseResult<[Ready; 2]>) -> CasePairs {
    let mut case = CasePairs { id: id.to_owned(), ..CasePairs::default() };
    match sides {
        Ok(ready) => {
            case.versions = ready.each_ref().map(|ready| ready.version.clone());
            case.evidence = ready.each_ref().map(|ready| ready.evidence.clone());
            case.counts = ready.map(|ready| ready.counts);
        }
        Err(CaseEnd::Skipped(sentence)) => case.end_without_verdict(Why::Skipped, sentence),
        Err(end) => case.end_without_verdict(Why::Failed, end.into_sentence()),
    }
    case
}

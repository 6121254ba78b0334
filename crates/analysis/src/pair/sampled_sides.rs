//! Samples the stacks of processes while they run a case: pairs of two sides, or successive processes of one side.

mod code_names;

use super::experiment::{Experiment, Testbed};
use super::running_side::{Draw, Start};
use super::sequence::{CasePairing, Schedule, rejection_reason};
use super::turns::{CaseResult, Half, PairSpec, Shape, combine_halves, request_preparation, run_half};
use crate::error::Result;
use crate::platform::signal;
use crate::platform::stack_sampler::StackSampler;
use crate::record::paired::{CasePairs, FunctionTime, Paired, ProcessTimes, SampledCase, Why};
use crate::statistic::{Random, median};
use crate::study::function_times::{USER, kernel_class};
use code_names::CodeNames;
use std::collections::{BTreeMap, HashSet};
use std::time::Duration;
use syscost_engine::pair::{Prepare, Ready};
use syscost_engine::record::EventRate;
use syscost_engine::trial::{CaseEnd, SampledStacks, Turn};

/// The row and class of time without samples: the thread waited, or its CPU was taken.
const UNSAMPLED: &str = "(waiting, or not sampled)";
/// The row of time without samples if only programs may be sampled.
const KERNEL_OR_WAITING: &str = "(the kernel, or waiting)";
/// The note for a machine where only programs may be sampled, with the remedy.
const PROGRAMS_ONLY: &str =
    "the kernel's functions are not sampled: `sysctl kernel.perf_event_paranoid=1`, or root, allows it";
/// The ends of the names of the clock's functions that start and stop a timed section. They are no part of the operation.
const MARKS: [&str; 2] = ["Clock>::start_apart", "Clock>::stop_apart"];
/// The number of turns of a sampled process, as a multiple of a timed one's, because there are only some thousand samples a
/// second.
const LONGER: usize = 3;
/// The most attempts, as a multiple of the wanted observations. Attempts may fail or be disturbed.
const ATTEMPTS: usize = 2;

/// Samples the cases of a comparison.
pub struct CaseSampler<'a> {
    pairing: CasePairing<'a>,
    names: CodeNames,
}

impl<'a> CaseSampler<'a> {
    /// A sampler of these sides. [`check_perf_events`] must have succeeded before.
    pub fn new(testbed: &'a Testbed, experiment: &'a Experiment<'a>) -> Self {
        let pairing = testbed.case_pairing(&experiment.plan, experiment.starts, 0);
        Self { pairing, names: CodeNames::new() }
    }

    /// Samples `count` pairs of a case.
    ///
    /// # Errors
    /// A side's state cannot be entered.
    pub fn sample_pairs(
        &mut self,
        id: &str,
        count: usize,
        schedule: &mut dyn Schedule,
    ) -> Result<SampledCase> {
        self.sample_case(id, count, |sampler, shape, number, random| {
            let link = (sampler.pairing.is_relinked() && number > 0).then_some(number as u32);
            let spec = sampler.spec(id, shape, link);
            let pair = match schedule.run_pair(&spec, random)? {
                Ok(pair) => pair,
                Err(end) => return Ok(Err(end)),
            };
            if let Some(why) = rejection_reason(&pair, sampler.pairing.one_frequency) {
                return Ok(Err(CaseEnd::Disturbed(why)));
            }
            let notes = pair.ready.iter().flat_map(|ready| ready.notes.clone()).collect();
            let sides = pair.turns.into_iter().zip(pair.samples);
            Ok(Ok(Sampled { shape: pair.shape, sides: sides.collect(), notes }))
        })
    }

    /// Samples `count` processes of side A.
    ///
    /// # Errors
    /// No known case.
    pub fn sample_processes(&mut self, id: &str, count: usize) -> Result<SampledCase> {
        self.sample_case(id, count, |sampler, shape, _, random| {
            let half = run_half(&sampler.spec(id, shape, None), 0, shape, random);
            Ok(half.map(|Half { ready, shape, turns, samples }| Sampled {
                shape,
                sides: vec![(turns, samples)],
                notes: ready.notes,
            }))
        })
    }

    fn spec<'b>(&'b self, case: &'b str, shape: Option<Shape>, link: Option<u32>) -> PairSpec<'b> {
        PairSpec { sampled: true, ..self.pairing.pair_spec(case, shape, link) }
    }

    fn sample_case(
        &mut self,
        id: &str,
        count: usize,
        mut observe: impl FnMut(&Self, Option<Shape>, usize, &mut Random) -> Result<CaseResult<Sampled>>,
    ) -> Result<SampledCase> {
        let mut case = SampledCase { id: id.to_owned(), ..SampledCase::default() };
        let (mut shape, mut random, mut lost) = (None, Random::new(self.pairing.plan.seed), Vec::new());
        for number in 0..ATTEMPTS * count {
            if case.observations.len() == count || signal::pending().is_some() {
                break;
            }
            match observe(self, shape, number, &mut random)? {
                Ok(sampled) => {
                    // Only the first observation proves the case. It has the usual number of turns.
                    shape = shape.or(Some(Shape { rounds: LONGER * sampled.shape.rounds, ..sampled.shape }));
                    add_notes(&mut case.notes, sampled.notes.iter().cloned());
                    self.add_observation(&mut case, sampled);
                }
                Err(end @ (CaseEnd::Skipped(_) | CaseEnd::Failed(_))) => {
                    case.failure = Some(end.into_sentence());
                    break;
                }
                Err(end) => lost.push(end.into_sentence()),
            }
        }
        let first = lost.first().cloned();
        if case.observations.is_empty() {
            case.failure.get_or_insert_with(|| first.unwrap_or_else(|| "a signal ended it".into()));
        } else if let Some(first) = first {
            case.notes.push(format!("{} more are not counted, the first of them since {first}", lost.len()));
        }
        Ok(case)
    }

    fn add_observation(&mut self, case: &mut SampledCase, sampled: Sampled) {
        if self.pairing.is_relinked() {
            self.names.forget_files();
        }
        let mut observation = Vec::new();
        for (turns, samples) in sampled.sides {
            let Some(samples) = samples else { continue };
            if samples.lost > 0 {
                let lost = format!("{} samples of a process were lost: its turns are long", samples.lost);
                add_notes(&mut case.notes, [lost]);
            }
            let note =
                if samples.with_kernel { self.names.kernel_note() } else { Some(PROGRAMS_ONLY.into()) };
            add_notes(&mut case.notes, note);
            case.event.clone_from(&samples.event);
            let ns = |ticks: f64| self.pairing.testbed.ticks_to_nanoseconds(ticks);
            let batches: Vec<_> =
                turns.iter().flat_map(|turn| &turn.ticks).map(|ticks| ns(*ticks as f64)).collect();
            let timed_ns = batches.iter().sum::<f64>();
            let operation_ns = median(&batches) / sampled.shape.iterations as f64;
            observation.push(process_times(&samples, operation_ns, timed_ns, &mut self.names));
        }
        case.observations.push(observation);
    }
}

/// One observation: the shape of its turns, and for each process its turns and samples.
struct Sampled {
    shape: Shape,
    sides: Vec<(Vec<Turn>, Option<SampledStacks>)>,
    notes: Vec<String>,
}

fn add_notes(notes: &mut Vec<String>, more: impl IntoIterator<Item = String>) {
    for note in more {
        if !notes.contains(&note) {
            notes.push(note);
        }
    }
}

/// Checks that stacks can be sampled. It is called before a build, which takes minutes.
///
/// # Errors
/// [`Missing`](crate::error::Error::Missing): perf events are not available. The sentence names the remedy.
pub fn check_perf_events() -> Result<()> {
    StackSampler::open(None, 1e9).map(drop)
}

/// The times of an operation by function and class, from samples within timed sections of `timed_ns` in all.
fn process_times(
    samples: &SampledStacks,
    operation_ns: f64,
    timed_ns: f64,
    names: &mut CodeNames,
) -> ProcessTimes {
    let known: Vec<_> = samples
        .addresses
        .iter()
        .map(|code| {
            (names.name(code, &samples.program), code.file.is_none() && code_names::is_kernel(code.address))
        })
        .collect();
    let stacks = samples.stacks.iter().map(|(count, places)| {
        (*count, places.iter().filter_map(|place| known.get(*place as usize)).collect::<Vec<_>>())
    });
    let is_mark = |(name, _): &(String, bool)| MARKS.iter().any(|mark| name.ends_with(mark));
    let stacks: Vec<_> =
        stacks.filter(|(_, stack)| stack.first().is_some_and(|executed| !is_mark(executed))).collect();
    let count = stacks.iter().map(|(count, _)| count).sum::<u64>();
    // There can be fewer samples than the period gives: the event may miss some, and a waiting thread is not sampled.
    let wanted = (timed_ns / samples.period_ns as f64).max(count as f64);
    let mut functions = BTreeMap::<String, FunctionTime>::new();
    let mut classes = BTreeMap::<String, f64>::new();
    for (count, stack) in &stacks {
        let ns = operation_ns * *count as f64 / wanted;
        let (executed, in_kernel) = stack[0];
        functions.entry(executed.clone()).or_default().own_ns += ns;
        // A recursive function counts once per stack.
        for name in stack.iter().map(|(name, _)| name).collect::<HashSet<_>>() {
            functions.entry(name.clone()).or_default().with_callees_ns += ns;
        }
        let kernel = stack.iter().filter(|(_, in_kernel)| *in_kernel).map(|(name, _)| name.as_str());
        let class = if *in_kernel { kernel_class(kernel) } else { USER };
        *classes.entry(class.to_owned()).or_default() += ns;
    }
    let unsampled = operation_ns * (1.0 - count as f64 / wanted);
    let name = if samples.with_kernel { UNSAMPLED } else { KERNEL_OR_WAITING };
    functions.insert(name.into(), FunctionTime { own_ns: unsampled, with_callees_ns: unsampled });
    classes.insert(name.trim_matches(['(', ')']).into(), unsampled);
    ProcessTimes { operation_ns, samples: count, functions, classes }
}

// Counts the instructions of two sides instead of their times. Each side runs several successive processes per case, because
// a count may differ between processes.

/// Silence after which a side counts as hung. It allows for single-stepping through the longest operation and its claims.
const PATIENCE: Duration = Duration::from_secs(120);

/// Number of processes per side of a case whose counts agree.
const PROCESSES: usize = 3;
/// Number of processes per side of a case that seems to have changed. If a count has two values by chance, three processes
/// may happen to agree.
const PROCESSES_OF_CHANGED: usize = 8;

impl Testbed {
    /// Counts these cases on both sides. The result has counts but no pairs. `watch` is called before each case.
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
        let side: Result<_> = start.start_side(Draw::default(), &self.aside);
        let request = Prepare {
            case: id.to_owned(),
            cpu: self.cpu,
            clock: self.clock.scale(),
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

/// Widens the ranges of these counts to include the counts of another process.
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

#[cfg(test)]
mod tests {
    use super::*;
    use syscost_engine::trial::CodeAddress;

    #[test]
    fn functions_and_classes_sum_up_to_the_operation() {
        let in_file = |place| CodeAddress { address: place, file: Some("/nowhere/lib.so".into()) };
        let samples = SampledStacks {
            with_kernel: true,
            period_ns: 100,
            addresses: vec![in_file(1), CodeAddress { address: 8, file: None }],
            // The function of the second stack calls itself.
            stacks: vec![(30, vec![0, 1]), (10, vec![1, 1, 0])],
            ..SampledStacks::default()
        };
        let times = process_times(&samples, 50.0, 5_000.0, &mut CodeNames::new());
        let time = |name: &str| times.functions[name];
        let near = |a: f64, b: f64| (a - b).abs() < 1e-9;
        assert!(near(time("(in lib.so)").own_ns, 30.0) && near(time("(in lib.so)").with_callees_ns, 40.0));
        assert!(
            near(time("(code in no file)").own_ns, 10.0)
                && near(time("(code in no file)").with_callees_ns, 40.0)
        );
        assert!(near(time(UNSAMPLED).own_ns, 10.0), "{times:?}");
        assert!(near(times.functions.values().map(|time| time.own_ns).sum(), 50.0));
        assert!(near(times.classes.values().sum(), 50.0) && near(times.classes["user"], 40.0));
        assert_eq!(times.samples, 40);
    }
}

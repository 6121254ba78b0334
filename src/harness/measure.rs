//! The measuring process: one group, one thread, one CPU, and silence.

mod busy;
mod displaced;
mod meanwhile;
mod panic;
mod shared;
mod wheel;

use super::arguments::{Arguments, Mode};
use super::drive::Options;
use super::home::criterion_home;
use super::measurement::{Counted, CycleTime, EventCount, open_counter};
use super::message::{Message, Sender};
use crate::case::{Case, Cpus, Group, Place, Scale};
use crate::clock::Clock;
use crate::environment::Accounting;
use crate::platform::kernel_files::KernelFiles;
use crate::platform::output::Silence;
use crate::platform::{cpu, process, signal};
use crate::record::quantity::{DISPLACED, NANOSECONDS};
use crate::record::{CaseRecord, ClockRun, GroupRun, Measured, Outcome};
use crate::trial::{Bench, CaseEnd, Trial, scratch};
use crate::{Error, Result};
use criterion::{Criterion, SamplingMode};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::rc::Rc;
use std::time::Duration;

use shared::{Shared, configured};
use wheel::Wheel;

/// How often a case is tried while other tasks disturb it.
const ATTEMPTS: u32 = 4;

/// How Criterion samples at one scale.
struct Sampling {
    samples: usize,
    warm_up: Duration,
    measurement: Duration,
    resamples: usize,
}

impl Sampling {
    /// Criterion wants at least ten samples and warns below a thousand resamples.
    fn at(scale: Scale) -> Self {
        let (samples, warm_up, measurement, resamples) = match scale {
            Scale::Smoke => (10, 5, 10, 1_001),
            Scale::Default => (50, 20, 150, 10_000),
            Scale::Full => (100, 500, 3_000, 100_000),
        };
        let [warm_up, measurement] = [warm_up, measurement].map(Duration::from_millis);
        Self { samples, warm_up, measurement, resamples }
    }
}

/// Measures the group of this name and reports to the driver. Whatever ends the process early, a panic of
/// Criterion's included, the driver is told why, because there it becomes part of the record.
pub(super) fn process(groups: &[Group], name: &str, arguments: &Arguments) -> Result<ExitCode> {
    signal::watch()?;
    process::die_with_parent()?;
    let mut sender = Sender::open()?;
    panic::remember();
    let ended = catch_unwind(AssertUnwindSafe(|| measure(groups, name, arguments, &mut sender)));
    let reason = match ended {
        Ok(Ok(())) => return Ok(ExitCode::SUCCESS),
        Ok(Err(error)) => error.to_string(),
        Err(_) => panic::last(),
    };
    sender.send(&Message::Broken(reason))?;
    Ok(ExitCode::FAILURE)
}

fn measure(groups: &[Group], name: &str, arguments: &Arguments, sender: &mut Sender) -> Result<()> {
    let group = groups.iter().find(|group| group.name == name);
    let group = group.ok_or_else(|| Error::Usage(format!("this binary has no group {name}")))?;
    let options = Options::from_environment()?;
    // Before it is pinned: the clock compares the counters of all CPUs.
    let clock = Rc::new(Clock::start_up());
    let allowed = cpu::allowed();
    let (claimed, notes) = settle();
    let pinned = claimed.as_ref().map(|claimed| claimed.cpu);
    sender.send(&Message::Ready(ready(group, &clock, pinned, notes, &options)))?;
    let scratch = scratch::make_in(&options.place())?;
    let place = Place {
        scratch: scratch.path().to_path_buf(),
        scale: options.scale,
        cpus: Cpus::around(pinned, allowed),
    };
    let bench = Bench { place: &place, clock: &clock, pinned };
    let unit = options.unit.as_str();
    if unit == NANOSECONDS || unit == DISPLACED {
        let measurement = CycleTime::with(Rc::clone(&clock));
        Process { group, bench, arguments, unit, sender }.measure(measurement)?;
    } else {
        let measurement = EventCount::open(unit)?;
        Process { group, bench, arguments, unit, sender }.measure(measurement)?;
    }
    finish(&clock, sender)
}

/// Claims and pins a CPU, locks and touches memory; what cannot be done is a note, for the numbers are still
/// true.
fn settle() -> (Option<cpu::Claimed>, Vec<String>) {
    let mut notes = Vec::new();
    let claimed = cpu::claim().filter(|claimed| match cpu::pin(claimed.cpu) {
        Ok(()) => true,
        Err(error) => {
            notes.push(format!("not pinned to a CPU: {error}"));
            false
        }
    });
    if claimed.is_none() && notes.is_empty() {
        notes.push("not pinned to a CPU: none could be claimed for this run alone".into());
    }
    process::touch_stack();
    if let Err(error) = process::lock_memory() {
        notes.push(format!("not locked in memory: {error}"));
    }
    (claimed, notes)
}

/// What a reader must know of the numbers of a whole run.
fn about_the_run(options: &Options) -> Vec<String> {
    let mut notes = Vec::new();
    if options.scale == Scale::Smoke {
        notes.push(
            "smoke scale: few samples and small parameters, cold is not cold; no number to keep".into(),
        );
    }
    if options.unit == DISPLACED {
        notes.extend(Accounting::of(&KernelFiles::live()).sentences());
    } else if open_counter(&options.unit).is_ok_and(|counter| counter.user_space_only) {
        notes.push(format!(
            "{} are counted in user space only: perf_event_paranoid keeps the kernel's",
            options.unit
        ));
    }
    notes
}

fn ready(
    group: &Group,
    clock: &Clock,
    cpu: Option<usize>,
    mut notes: Vec<String>,
    options: &Options,
) -> GroupRun {
    notes.extend(about_the_run(options));
    if let Some(reason) = clock.unfit() {
        notes.push(format!("measured by {} because {reason}", clock.source()));
    }
    let step_ns = clock.step_ns();
    if options.unit == NANOSECONDS && step_ns >= 2.0 && (group.cases)().iter().any(|case| case.one_by_one) {
        notes.push(format!(
            "the counter moves in steps of {step_ns:.2} ns: single operations are multiples of it"
        ));
    }
    if let Some(ppm) = clock.calibration().published_error_ppm().filter(|ppm| ppm.abs() > 500.0) {
        notes.push(format!("the clock's measured frequency differs from the published one by {ppm:.0} ppm"));
    }
    GroupRun {
        name: group.name.into(),
        version: group.version_text(),
        clock: facts(clock),
        cpu,
        notes,
        ..GroupRun::default()
    }
}

/// What the record keeps of a clock.
fn facts(clock: &Clock) -> ClockRun {
    ClockRun {
        source: clock.source().into(),
        hz: clock.hz(),
        uncertainty_ppm: clock.calibration().uncertainty_ppm,
        step: clock.calibration().step,
        hz_at_end: None,
        published: clock.calibration().published.clone(),
        unfit: clock.unfit().map(ToString::to_string),
    }
}

fn finish(clock: &Clock, sender: &mut Sender) -> Result<()> {
    let mut facts = facts(clock);
    match clock.verify() {
        Ok(hz) => facts.hz_at_end = Some(hz),
        Err(reason) => sender.send(&Message::Note(format!("the clock cannot be trusted: {reason}")))?,
    }
    sender.send(&Message::End(facts))
}

/// What stays the same from case to case.
struct Process<'a> {
    group: &'a Group,
    bench: Bench<'a>,
    arguments: &'a Arguments,
    unit: &'a str,
    sender: &'a mut Sender,
}

impl Process<'_> {
    fn measure<M: Counted>(self, measurement: M) -> Result<()> {
        let matches = self.arguments.matcher()?;
        // The driver has put the home of this unit there.
        let home = criterion_home();
        let sampling = Sampling::at(self.bench.place.scale);
        let measurement = Rc::new(measurement);
        // Criterion gives an id that it has met before another directory, so every attempt gets its own.
        let criterion = || configured(&sampling, Shared(Rc::clone(&measurement)), &home);
        let mut accounting_told = self.unit == DISPLACED;
        let (mut unquiet, mut busy) = (displaced::Unquiet::default(), busy::Busy::default());
        for case in (self.group.cases)() {
            let id = self.group.id(&case);
            if !matches(&id) {
                continue;
            }
            self.sender.send(&Message::Begin(id.clone()))?;
            if case.displaced.is_some() && !std::mem::replace(&mut accounting_told, true) {
                for note in Accounting::of(&KernelFiles::live()).sentences() {
                    self.sender.send(&Message::Note(note))?;
                }
            }
            let outcome = match self.attempts(&case, criterion, &measurement, &sampling) {
                Ok(measured) => Outcome::Measured(measured),
                Err(CaseEnd::Skipped(sentence)) => Outcome::Skipped(sentence),
                Err(CaseEnd::Failed(sentence) | CaseEnd::Disturbed(sentence)) => Outcome::Failed(sentence),
                Err(CaseEnd::Interrupted) => return Ok(()),
            };
            busy.look(&id, &outcome);
            for note in unquiet.flags(&id, &outcome) {
                self.sender.send(&Message::Note(note))?;
            }
            self.sender.send(&Message::Done(Box::new(CaseRecord { id, title: case.title, outcome })))?;
        }
        unquiet
            .note()
            .into_iter()
            .chain(busy.note())
            .try_for_each(|note| self.sender.send(&Message::Note(note)))
    }

    /// Measures a case, again if the machine was not ours. A case that panics ends itself and no other.
    fn attempts<M: Counted>(
        &self,
        case: &Case,
        criterion: impl Fn() -> Criterion<Shared<M>>,
        measurement: &M,
        sampling: &Sampling,
    ) -> std::result::Result<Box<Measured>, CaseEnd> {
        let attempt = || {
            let attempted = || self.outcome(case, &mut criterion(), measurement, sampling);
            let beginning = meanwhile::Beginning::look();
            let ended = catch_unwind(AssertUnwindSafe(attempted));
            let mut outcome = ended.unwrap_or_else(|payload| Err(panic::halt_of(payload)));
            if let (Ok(measured), Some(beginning)) = (&mut outcome, beginning) {
                measured.meanwhile = beginning.end();
            }
            outcome
        };
        let disturbed =
            |outcome: &std::result::Result<_, CaseEnd>| matches!(outcome, Err(CaseEnd::Disturbed(_)));
        let mut outcome = attempt();
        for _ in 1..ATTEMPTS {
            if !disturbed(&outcome) {
                break;
            }
            outcome = attempt();
        }
        outcome
    }

    fn outcome<M: Counted>(
        &self,
        case: &Case,
        criterion: &mut Criterion<Shared<M>>,
        measurement: &M,
        sampling: &Sampling,
    ) -> std::result::Result<Box<Measured>, CaseEnd> {
        if self.arguments.mode == Mode::Foreign {
            return self.left_to_criterion(case, criterion, measurement);
        }
        if self.unit == DISPLACED || case.displaced.is_some() {
            return self.displaced(case, criterion, measurement);
        }
        let event = if self.unit == NANOSECONDS { None } else { Some(open_counter(self.unit)?) };
        let mut trial = Trial::prepare(case, self.bench, event)?;
        trial.prove()?;
        let samples = match self.arguments.samples {
            Some(samples) => samples,
            None => trial.affordable(sampling.samples)?,
        };
        if self.arguments.mode == Mode::Test {
            trial.begin(); // there is no warm-up
        }
        let mut wheel =
            Wheel { trial: Some(trial), first_phase: measurement.phase(), left: samples, outcome: None };
        let silence = if self.arguments.loud { Silence::for_now()? } else { Silence::new()? };
        {
            let mut group = criterion.benchmark_group(self.group.name);
            group.sampling_mode(SamplingMode::Flat).sample_size(samples);
            group.bench_function(&case.name, |b| {
                b.iter_custom(|n| measurement.value(wheel.turn(n, samples, measurement.phase())));
            });
        }
        drop(silence);
        wheel.outcome(self.arguments.mode, samples)
    }

    /// Criterion's own modes (a profile, an old baseline looked at again): it runs the operation as it likes, and
    /// nothing of it is ours to judge.
    fn left_to_criterion<M: Counted>(
        &self,
        case: &Case,
        criterion: &mut Criterion<Shared<M>>,
        measurement: &M,
    ) -> std::result::Result<Box<Measured>, CaseEnd> {
        let mut subject = (case.set_up)(self.bench.place)?;
        let mut group = criterion.benchmark_group(self.group.name);
        group.sampling_mode(SamplingMode::Flat);
        group.bench_function(&case.name, |b| {
            b.iter_custom(|n| match subject.run(n, self.bench.clock) {
                Ok(ticks) => measurement.value(ticks.0.max(1)),
                Err(error) => std::panic::resume_unwind(Box::new(CaseEnd::from(error))),
            });
        });
        Err(CaseEnd::Skipped("left to Criterion".into()))
    }
}

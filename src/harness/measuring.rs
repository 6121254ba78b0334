//! The measuring process: measures one group on one CPU and sends each outcome to the driver. It prints nothing itself.

mod background_activity;
mod criterion_drive;
mod panic;
mod replay;
mod sampling;
mod settling;

use super::measurement::{Counted, CycleTime, EventCount};
use crate::case::{Case, Cpus, Group, Place, Scale};
use crate::clock::Clock;
use crate::driver::{
    Arguments, Assignment, CaseExecution, ExecutionEnd, Message, Mode, Sender, Task, Wanted, criterion_home,
    open_counter, parse_events,
};
use crate::environment::Accounting;
use crate::error::{Error, Result};
use crate::exit::Exit;
use crate::platform::kernel_files::KernelFiles;
use crate::platform::output::Silence;
use crate::platform::perf_event::Event;
use crate::platform::process::{self, inheritance};
use crate::platform::{cpu, signal};
use crate::record::baseline::criterion_name;
use crate::record::quantity::{DISPLACED, NANOSECONDS, is_time_unit};
use crate::record::{ClockRun, GroupRun};
use crate::trial::{self, Bench, CaseEnd, SAMPLE_STRETCH, Trial, measure_displaced, scratch};
use criterion::{Criterion, SamplingMode};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::rc::Rc;
use std::time::{Duration, Instant};

use criterion_drive::{Batches, configured_criterion};
use sampling::Sampling;
use settling::claim_cpu_and_memory;

/// Does what the driver has assigned to this process. If it ends early, even by a panic in Criterion, the driver receives
/// the reason for the record.
///
/// # Errors
/// No driver has started it, or the driver cannot be reached.
pub(super) fn run_process(groups: &[Group]) -> Result<Exit> {
    inheritance::allow_owner_access();
    signal::watch_signals()?;
    // Where it is refused, a driver that was killed is noticed at the next message.
    let _ = process::die_with_parent();
    let assignment = Assignment::read_inherited()?;
    let arguments = Arguments::from_process()?;
    let mut sender = Sender::open(&assignment.pipe)?;
    panic::record_panics();
    let ended =
        catch_unwind(AssertUnwindSafe(|| measure_group(groups, &assignment, &arguments, &mut sender)));
    let reason = match ended {
        Ok(Ok(())) => return Ok(Exit::Success),
        Ok(Err(error)) => {
            error.unmet_need(true).map_or_else(|| Message::Broken(error.to_string()), Message::Refused)
        }
        Err(_) => Message::Broken(panic::last_message()),
    };
    sender.send(&reason)?;
    Ok(Exit::Disproved)
}

fn measure_group(
    groups: &[Group],
    assignment: &Assignment,
    arguments: &Arguments,
    sender: &mut Sender,
) -> Result<()> {
    let uneasy = inheritance::prepare_measuring_process();
    let Assignment { group: name, clock, scale, unit, events, task, .. } = assignment;
    let group = groups.iter().find(|group| group.name == name);
    let group = group.ok_or_else(|| Error::Usage(format!("this binary has no group {name}")))?;
    let wanted = match task {
        Task::Write(cases) => return replay::write(group, (cases, *clock), unit, arguments, sender),
        Task::Measure(wanted) => wanted,
    };
    let events = &parse_events(events)?;
    // Before pinning, since the clock compares the counters of all CPUs.
    let clock = Rc::new(clock.map_or_else(Clock::start_up, Clock::with_scale));
    let allowed = cpu::allowed_cpus();
    let (claimed, mut notes) = claim_cpu_and_memory();
    notes.extend(uneasy);
    let pinned = claimed.as_ref().map(|claimed| claimed.cpu);
    sender.send(&Message::Ready(prepare_group_run(group, &clock, pinned, notes, assignment)))?;
    let scratch = scratch::make_directory()?;
    let place = Place {
        scratch: scratch.path().to_path_buf(),
        scale: *scale,
        cpus: Cpus::from_allowed(pinned, allowed),
    };
    let bench = Bench { place: &place, clock: &clock, pinned };
    let process = Process { group, bench, arguments, assignment, wanted, events, sender: &mut *sender };
    if is_time_unit(unit) {
        process.measure_cases(|| Ok(CycleTime::with_clock(Rc::clone(&clock))))?;
    } else {
        process.measure_cases(|| EventCount::open(unit))?;
    }
    send_verified_clock(&clock, sender)
}

/// Notes that hold for the whole run.
fn run_notes(assignment: &Assignment) -> Vec<String> {
    let (mut notes, unit) = (Vec::new(), assignment.unit.as_str());
    if assignment.scale == Scale::Smoke {
        notes.push(
            "smoke scale: few samples and small parameters, cold is not cold; no number to keep".into(),
        );
    }
    if unit == DISPLACED {
        notes.extend(Accounting::read(&KernelFiles::live()).setting_sentences());
    } else if open_counter(unit).is_ok_and(|counter| counter.user_space_only) {
        notes.push(format!("{unit} are counted in user space only: perf_event_paranoid keeps the kernel's"));
    }
    notes
}

/// The group without cases, with notes on the clock and the run.
fn prepare_group_run(
    group: &Group,
    clock: &Clock,
    cpu: Option<usize>,
    mut notes: Vec<String>,
    assignment: &Assignment,
) -> GroupRun {
    notes.extend(run_notes(assignment));
    if let Some(reason) = clock.unfit_reason() {
        notes.push(format!("measured by {} because {reason}", clock.source()));
    }
    let step_ns = clock.step_ns();
    if assignment.unit == NANOSECONDS && step_ns >= 2.0 && (group.cases)().iter().any(|case| case.one_by_one)
    {
        notes.push(format!(
            "the counter moves in steps of {step_ns:.2} ns: single operations are multiples of it"
        ));
    }
    notes.extend(coarse_clock_note(clock).filter(|_| is_time_unit(&assignment.unit)));
    if let Some(ppm) = clock.calibration().published_error_ppm().filter(|ppm| ppm.abs() > 500.0) {
        notes.push(format!("the clock's measured frequency differs from the published one by {ppm:.0} ppm"));
    }
    GroupRun {
        name: group.name.into(),
        version: group.version_text(),
        clock: describe_clock(clock),
        cpu,
        notes,
        ..GroupRun::default()
    }
}

/// A note on a kernel's clock that moves in steps of half a microsecond or more.
fn coarse_clock_note(clock: &Clock) -> Option<String> {
    const NOTED_NS: u64 = 500;
    let step_ns = clock.kernel_step_ns();
    let what = match clock.unfit_reason() {
        None => {
            format!("the counter's frequency is known to ±{:.0} ppm", clock.calibration().uncertainty_ppm)
        }
        Some(_) => {
            "batches are as long as hundreds of them, and single operations are multiples of one".into()
        }
    };
    (step_ns >= NOTED_NS).then(|| format!("the kernel's clock moves in steps of {step_ns} ns: {what}"))
}

/// The clock as the record keeps it.
fn describe_clock(clock: &Clock) -> ClockRun {
    ClockRun {
        source: clock.source().into(),
        hz: clock.hz(),
        uncertainty_ppm: clock.calibration().uncertainty_ppm,
        step: clock.calibration().step,
        hz_at_end: None,
        published: clock.calibration().published.clone(),
        unfit: clock.unfit_reason().map(ToString::to_string),
        disputed: None, // the driver has compared the clocks
    }
}

/// Verifies the clock and sends the last message.
fn send_verified_clock(clock: &Clock, sender: &mut Sender) -> Result<()> {
    let mut facts = describe_clock(clock);
    match clock.verify_frequency() {
        Ok(hz) => facts.hz_at_end = Some(hz),
        Err(reason) => sender.send(&Message::Note(format!("the clock cannot be trusted: {reason}")))?,
    }
    sender.send(&Message::End(facts))
}

/// The settings that all cases of this process share.
struct Process<'a> {
    group: &'a Group,
    bench: Bench<'a>,
    arguments: &'a Arguments,
    assignment: &'a Assignment,
    wanted: &'a [Wanted],
    events: &'a [Event],
    sender: &'a mut Sender,
}

/// Completes how often a displaced case is repeated by what the user asked for. Operations that the case fixes stay: its id says
/// them.
fn complete_repetition(mut case: Case, assignment: &Assignment) -> Case {
    if assignment.unit == DISPLACED {
        case.displaced.get_or_insert_default();
    }
    if let Some(repetition) = &mut case.displaced {
        repetition.iterations = repetition.iterations.or(assignment.operations);
        repetition.runs = assignment.replications.map(|runs| runs as usize).or(repetition.runs);
    }
    case
}

impl Process<'_> {
    /// Measures the cases of this round, each by a Criterion and a measurement of its own.
    fn measure_cases<M: Counted>(self, measurement: impl Fn() -> Result<M>) -> Result<()> {
        // The driver has set it to the directory of this unit.
        let home = self.criterion_output_home();
        let sampling = Sampling::for_scale(self.bench.place.scale);
        let mut accounting_told = self.assignment.unit == DISPLACED;
        for case in (self.group.cases)().into_iter().map(|case| complete_repetition(case, self.assignment)) {
            let id = self.group.id(&case);
            let Some(wanted) = self.wanted.iter().find(|wanted| wanted.id == id) else { continue };
            self.sender.send(&Message::Begin(id.clone()))?;
            if case.displaced.is_some() && !std::mem::replace(&mut accounting_told, true) {
                for note in Accounting::read(&KernelFiles::live()).setting_sentences() {
                    self.sender.send(&Message::Note(note))?;
                }
            }
            let began = Instant::now();
            let criterion = configured_criterion(&sampling, measurement()?, &home);
            let ended = self.measure_case(&case, wanted.proven, criterion, &sampling);
            if matches!(ended, Err(CaseEnd::Interrupted)) {
                return Ok(());
            }
            let seconds = began.elapsed().as_secs_f64();
            let title = case.title;
            self.sender.send(&Message::Done(Box::new(CaseExecution { id, title, seconds, end: ended })))?;
        }
        Ok(())
    }

    /// Where Criterion writes its files of one execution: they are thrown away, because one execution is not the run. Its
    /// own modes write, and read, where the user looks for it.
    fn criterion_output_home(&self) -> PathBuf {
        match self.arguments.mode {
            Mode::Foreign => criterion_home(),
            _ => self.bench.place.scratch.join("criterion"),
        }
    }

    /// Measures a case. A panic ends this case only.
    fn measure_case<M: Counted>(
        &self,
        case: &Case,
        proven: bool,
        mut criterion: Criterion<M>,
        sampling: &Sampling,
    ) -> ExecutionEnd {
        let attempt = || {
            self.return_to_cpu()?;
            self.try_case(case, proven, &mut criterion, sampling)
        };
        let before = background_activity::Before::read();
        let ended = catch_unwind(AssertUnwindSafe(attempt));
        let mut outcome = ended
            .unwrap_or_else(|payload| Err(panic::case_end_from_payload(payload)))
            .map_err(|end| self.excuse_end(case, end));
        if let (Ok(measured), Some(before)) = (&mut outcome, before) {
            measured.meanwhile = before.activity_until_now();
        }
        outcome
    }

    /// Pins this thread again if it lost its CPU in an earlier case.
    ///
    /// # Errors
    /// [`CaseEnd::Disturbed`]: the CPU is not back yet.
    fn return_to_cpu(&self) -> std::result::Result<(), CaseEnd> {
        match self.bench.pinned.filter(|&cpu| !cpu::is_pinned_to(cpu)) {
            Some(cpu) => Ok(cpu::pin_thread(cpu)?),
            None => Ok(()),
        }
    }

    /// Replaces a failure that is not the case's fault: skipped if the kernel refuses a call that it needs,
    /// disturbed if the process lost its CPU meanwhile.
    fn excuse_end(&self, case: &Case, end: CaseEnd) -> CaseEnd {
        if let CaseEnd::Failed(sentence) = &end {
            let Bench { place, clock, .. } = self.bench;
            if let Some(refused) = trial::refused_call_sentence(case, place, clock) {
                return CaseEnd::Skipped(format!("{refused}; without it: {sentence}"));
            }
        }
        match (end, self.bench.pinned) {
            (CaseEnd::Failed(sentence) | CaseEnd::Contradicted(sentence), Some(cpu))
                if !cpu::is_pinned_to(cpu) =>
            {
                CaseEnd::Disturbed(format!("{}; meanwhile: {sentence}", cpu::lost_cpu_message(cpu)))
            }
            (end, _) => end,
        }
    }

    /// Measures a case. A panic passes to the caller, [`Process::case`].
    fn try_case<M: Counted>(
        &self,
        case: &Case,
        proven: bool,
        criterion: &mut Criterion<M>,
        sampling: &Sampling,
    ) -> ExecutionEnd {
        if self.arguments.mode == Mode::Foreign {
            return self.leave_to_criterion(case, criterion);
        }
        if case.displaced.is_some() {
            return Ok(Box::new(measure_displaced(case, self.bench)?));
        }
        let event = if self.assignment.unit == NANOSECONDS {
            None
        } else {
            Some(open_counter(&self.assignment.unit)?)
        };
        let mut trial = Trial::prepare(case, self.bench, event)?;
        if proven {
            trial.prove_briefly()?
        } else {
            trial.prove_operation()?
        }
        let asked = (self.arguments.samples, self.arguments.measurement_seconds);
        let sized = |ns| Ok::<_, CaseEnd>(trial.size_batch(ns, SAMPLE_STRETCH)?.iterations);
        // A test keeps no number.
        let lap = if self.arguments.mode == Mode::Test { 1 } else { case.lap_at(self.bench.place.scale) };
        let (samples, iterations) = sampling.size_samples(asked, lap, sized)?;
        let warm_up = self.arguments.warm_up_seconds.map_or(sampling.warm_up, Duration::from_secs_f64);
        let batches = Batches { trial, iterations, samples, warm_up, events: self.events };
        let _silence = Silence::new()?;
        batches.run_by_criterion(criterion, (self.group.name, &case.name), self.arguments.mode == Mode::Test)
    }

    /// Criterion's own modes (a profile, a stored baseline): Criterion runs the operation as it likes, and no claim is
    /// judged.
    fn leave_to_criterion<M: Counted>(&self, case: &Case, criterion: &mut Criterion<M>) -> ExecutionEnd {
        let mut subject = (case.set_up)(self.bench.place)?;
        let mut group = criterion.benchmark_group(criterion_name(self.group.name));
        group.sampling_mode(SamplingMode::Flat);
        group.bench_function(criterion_name(&case.name), |b| {
            b.iter_custom(|n| match subject.run(n, self.bench.clock) {
                Ok(ticks) => M::value_from_count(ticks.0.max(1)),
                Err(error) => std::panic::resume_unwind(Box::new(CaseEnd::from(error))),
            });
        });
        Err(CaseEnd::Skipped("left to Criterion".into()))
    }
}

//! The measuring process: measures one group on one CPU and sends each outcome to the driver. It prints nothing itself.

mod criterion_drive;
mod group_note;
mod replay;

pub use criterion_drive::size_as_run;

use super::measurement::{Counted, CycleTime, EventCount};
use crate::case::{Case, Cpus, Group, Lent, OwnTasks, Place};
use crate::clock::Clock;
use crate::driver::{
    Arguments, Assignment, CaseExecution, ExecutionEnd, Message, Mode, Sender, Task, criterion_home,
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
use crate::record::quantity::{DISPLACED, NANOSECONDS, is_instruction_unit, is_time_unit};
use crate::trial::{
    self, Bench, CaseEnd, OtherCopies, SAMPLE_STRETCH, Trial, measure_displaced, measure_instructions,
    other_copies, scratch,
};
use criterion::{Criterion, SamplingMode};
use criterion_drive::{Batches, Sampling, configured_criterion};
use group_note::{claim_cpu_and_memory, prepare_group_run, send_verified_clock};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::rc::Rc;
use std::time::{Duration, Instant};

/// Does what the driver has assigned to this process. If it ends early, even by a panic in Criterion, the driver receives
/// the reason for the record.
///
/// # Errors
/// No driver has started it, or the driver cannot be reached.
pub(super) fn run_process(groups: &[Group]) -> Result<Exit> {
    let mut assigned = Assigned::receive()?;
    let ended = catch_unwind(AssertUnwindSafe(|| measure_group(groups, &mut assigned)));
    assigned.conclude(ended)
}

/// The assignment of this process, and the connection to the driver.
pub(super) struct Assigned {
    assignment: Assignment,
    arguments: Arguments,
    sender: Sender,
    began: Instant,
}

impl Assigned {
    /// Receives the assignment of this process. From then on a panic is recorded and not printed.
    ///
    /// # Errors
    /// No driver has started it, or the driver cannot be reached.
    pub(super) fn receive() -> Result<Self> {
        inheritance::allow_owner_access();
        signal::watch_signals()?;
        let began = Instant::now();
        // If the kernel refuses this, a killed driver is noticed at the next message.
        let _ = process::die_with_parent();
        let assignment = Assignment::read_inherited()?;
        let arguments = Arguments::from_process()?;
        let sender = Sender::open(assignment.pipe)?;
        group_note::record_panics();
        Ok(Self { assignment, arguments, sender, began })
    }

    /// Sends the driver the reason if the process ended early.
    ///
    /// # Errors
    /// The driver has ended.
    pub(super) fn conclude(&mut self, ended: std::thread::Result<Result<()>>) -> Result<Exit> {
        let reason = match ended {
            Ok(Ok(())) => return Ok(Exit::Success),
            Ok(Err(error)) => {
                error.unmet_need(true).map_or_else(|| Message::Broken(error.to_string()), Message::Refused)
            }
            Err(_) => Message::Broken(group_note::last_message()),
        };
        self.sender.send(&reason)?;
        Ok(Exit::Disproved)
    }

    /// Whether an earlier process has proved the case of this id; `None` if the case may not begin now.
    pub(super) fn may_begin(&self, id: &str) -> Option<bool> {
        let has_time = self.assignment.has_time_after(self.began.elapsed());
        self.assignment.find_wanted(id).filter(|_| has_time).map(|wanted| wanted.proven)
    }
}

fn measure_group(groups: &[Group], assigned: &mut Assigned) -> Result<()> {
    let name = &assigned.assignment.group;
    let group = groups.iter().find(|group| group.name == name);
    let group = group.ok_or_else(|| Error::Usage(format!("this binary has no group {name}")))?;
    let Some(mut measuring) = GroupProcess::open(group, assigned)? else { return Ok(()) };
    for case in (group.cases)() {
        let id = group.id(&case);
        if assigned.may_begin(&id).is_some() && !measuring.measure(id, None, |_| Ok(case), assigned)? {
            return Ok(());
        }
    }
    measuring.close(assigned)
}

impl GroupProcess {
    /// Prepares this process to measure cases of this group; `None` if it had another task, which is then complete.
    ///
    /// # Errors
    /// The process cannot measure, or the driver has ended.
    pub(super) fn open(group: &Group, assigned: &mut Assigned) -> Result<Option<Self>> {
        let preparation_notes = inheritance::prepare_measuring_process();
        let Assigned { assignment, arguments, sender, .. } = assigned;
        let assignment = &*assignment;
        let Assignment { clock, scale, unit, events, task, .. } = assignment;
        if let Task::Write(cases) = task {
            return replay::write(group, (cases, *clock), unit, arguments, sender).map(|()| None);
        }
        let events = parse_events(events)?;
        let copies = assignment.copy.as_ref();
        let copies = copies.map(|copy| OtherCopies::inherit(copy.table, copy.own, &copy.cpus)).transpose()?;
        // Made before pinning, since the clock compares the counters of all CPUs.
        let clock = Rc::new(clock.map_or_else(Clock::start_up, Clock::with_scale));
        let allowed = cpu::allowed_cpus();
        let (claimed, mut notes) = claim_cpu_and_memory();
        notes.extend(preparation_notes);
        let pinned = claimed.as_ref().map(|claimed| claimed.cpu);
        sender.send(&Message::Ready(prepare_group_run(group, &clock, pinned, notes, assignment)))?;
        let scratch = scratch::make_directory()?;
        let cpus = Cpus::from_allowed(pinned, allowed);
        let place = Place { scratch: scratch.path().to_path_buf(), scale: *scale, cpus };
        let accounting_noted = assignment.unit == DISPLACED;
        let group = *group;
        Ok(Some(Self { group, clock, events, claimed, place, copies, _scratch: scratch, accounting_noted }))
    }

    /// Sends the last message: every case has been measured.
    ///
    /// # Errors
    /// The driver has ended.
    pub(super) fn close(&self, assigned: &mut Assigned) -> Result<()> {
        send_verified_clock(&self.clock, &mut assigned.sender)
    }
}

/// A process that is ready to measure cases of one group.
pub(super) struct GroupProcess {
    group: Group,
    clock: Rc<Clock>,
    events: Vec<Event>,
    claimed: Option<cpu::Claimed>,
    place: Place,
    copies: Option<OtherCopies>,
    _scratch: scratch::Scratch,
    accounting_noted: bool,
}

/// The settings of the case that is measured.
struct Process<'a> {
    group: &'a Group,
    bench: Bench<'a>,
    arguments: &'a Arguments,
    assignment: &'a Assignment,
    events: &'a [Event],
}

/// Sets how often a displaced case is repeated, by the user's options. A number of operations that the case sets is kept,
/// because the id of the case states it.
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

impl GroupProcess {
    /// Measures the case of this id, which `describe` makes. Returns false if a signal or the loss of another copy ends the
    /// run. A lent operation may run on any CPU until it is described, and also while it is measured if its tasks run
    /// elsewhere.
    ///
    /// # Errors
    /// The driver has ended, or the unit cannot be measured.
    pub(super) fn measure(
        &mut self,
        id: String,
        lent: Option<Lent<'_>>,
        describe: impl FnOnce(&Clock) -> Result<Case>,
        assigned: &mut Assigned,
    ) -> Result<bool> {
        assigned.sender.send(&Message::Begin(id.clone()))?;
        if self.copies.as_ref().is_some_and(OtherCopies::is_broken) {
            assigned.sender.send(&Message::Broken(other_copies::LEFT.into()))?;
            return Ok(false);
        }
        let wanted = assigned.assignment.find_wanted(&id);
        let (began, proven) = (Instant::now(), wanted.is_some_and(|wanted| wanted.proven));
        let described = catch_unwind(AssertUnwindSafe(|| describe(&self.clock)));
        let (title, end) = match described {
            Ok(Ok(case)) => {
                let case = complete_repetition(case, &assigned.assignment);
                self.send_accounting_notes(&case, &mut assigned.sender)?;
                let end = self.measure_described(&case, lent, proven, assigned)?;
                (case.title, end)
            }
            Ok(Err(error)) => (String::new(), Err(error.into())),
            Err(payload) => (String::new(), Err(group_note::case_end_from_payload(payload))),
        };
        self.copies.as_ref().inspect(|copies| copies.leave_case());
        if matches!(end, Err(CaseEnd::Interrupted)) {
            return Ok(false);
        }
        let seconds = began.elapsed().as_secs_f64();
        assigned.sender.send(&Message::Done(Box::new(CaseExecution { id, title, seconds, end })))?;
        Ok(true)
    }

    fn send_accounting_notes(&mut self, case: &Case, sender: &mut Sender) -> Result<()> {
        if case.displaced.is_some() && !std::mem::replace(&mut self.accounting_noted, true) {
            for note in Accounting::read(&KernelFiles::live()).setting_sentences() {
                sender.send(&Message::Note(note))?;
            }
        }
        Ok(())
    }

    /// Measures a case by a Criterion and a measurement of its own.
    fn measure_described(
        &self,
        case: &Case,
        lent: Option<Lent<'_>>,
        proven: bool,
        assigned: &Assigned,
    ) -> Result<ExecutionEnd> {
        let Assigned { assignment, arguments, .. } = assigned;
        let is_free = lent.is_some() && case.own_tasks == OwnTasks::Elsewhere;
        let pinned = self.claimed.as_ref().map(|claimed| claimed.cpu).filter(|_| !is_free);
        let other_copies = self.copies.as_ref();
        let bench = Bench { place: &self.place, clock: &self.clock, pinned, lent, other_copies };
        let process = Process { group: &self.group, bench, arguments, assignment, events: &self.events };
        let unit = &assignment.unit;
        // An exact count of instructions takes no samples from Criterion.
        Ok(if is_time_unit(unit) || is_instruction_unit(unit) {
            process.measure_case(case, proven, CycleTime::with_clock(Rc::clone(&self.clock)))
        } else {
            process.measure_case(case, proven, EventCount::open(unit)?)
        })
    }

    /// Lets this thread run on every CPU that the process was given, so that threads which it starts may do so too.
    pub(super) fn unpin(&self) {
        // If the kernel refuses this, the thread stays on its CPU, to which [`Process::return_to_cpu`] would return it anyway.
        let _ = cpu::allow_cpus(cpu::initial_cpus());
    }
}

impl Process<'_> {
    /// The directory for Criterion's files of one execution, which are discarded, because one execution is not the run. In
    /// Criterion's own modes, the directory in which the user expects its files.
    fn criterion_output_home(&self) -> PathBuf {
        match self.arguments.mode {
            Mode::Foreign => criterion_home(),
            _ => self.bench.place.scratch.join("criterion"),
        }
    }

    /// Measures a case. A panic ends this case only.
    fn measure_case<M: Counted>(&self, case: &Case, proven: bool, measurement: M) -> ExecutionEnd {
        let sampling = Sampling::for_scale(self.bench.place.scale);
        let sampling = if self.bench.other_copies.is_some() { sampling.for_copies() } else { sampling };
        // In Criterion's own modes the driver has set the directory to that of this unit.
        let mut criterion = configured_criterion(&sampling, measurement, &self.criterion_output_home());
        let attempt = || {
            self.return_to_cpu()?;
            self.try_case(case, proven, &mut criterion, &sampling)
        };
        // Not read beside copies, which would count each other as other tasks.
        let before = self.bench.other_copies.is_none().then(group_note::Before::read).flatten();
        let ended = trial::under_one_clock_source(|| {
            catch_unwind(AssertUnwindSafe(attempt))
                .unwrap_or_else(|payload| Err(group_note::case_end_from_payload(payload)))
        });
        let mut outcome = ended.map_err(|end| self.excuse_end(case, end).excuse_traced());
        if let (Ok(measured), Some(before)) = (&mut outcome, before) {
            measured.meanwhile = before.activity_until_now();
        }
        outcome
    }

    /// Pins this thread again if it lost its CPU in an earlier case.
    ///
    /// # Errors
    /// [`CaseEnd::Disturbed`]: the thread cannot be pinned to the CPU yet.
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

    /// Measures a case. A panic passes to the caller.
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
        if is_instruction_unit(&self.assignment.unit) {
            let file = self.assignment.callgrind.as_deref();
            return Ok(Box::new(measure_instructions(case, self.bench, proven, file)?));
        }
        if case.displaced.is_some() && self.bench.other_copies.is_some() {
            let sentence =
                "it is measured by what it displaces on an idle CPU, and not beside copies: leave out -P";
            return Err(CaseEnd::Skipped(sentence.into()));
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
        // A test keeps no number, so its samples need not be whole laps.
        let lap = if self.arguments.mode == Mode::Test { 1 } else { case.lap_at(self.bench.place.scale) };
        let sizes = sampling.size_samples(asked, lap, sized)?;
        let (samples, iterations) =
            self.bench.other_copies.map_or(Ok(sizes), |copies| copies.agree(sizes))?;
        let warm_up = self.arguments.warm_up_seconds.map_or(sampling.warm_up, Duration::from_secs_f64);
        let batches = Batches { trial, iterations, samples, warm_up, events: self.events };
        let _silence = Silence::new()?;
        batches.run_by_criterion(criterion, (self.group.name, &case.name), self.arguments.mode == Mode::Test)
    }

    /// Criterion's own modes (a profile, a stored baseline): Criterion runs the operation as it likes, and no claim is
    /// judged.
    fn leave_to_criterion<M: Counted>(&self, case: &Case, criterion: &mut Criterion<M>) -> ExecutionEnd {
        let mut subject = self.bench.set_up(case)?;
        let mut group = criterion.benchmark_group(criterion_name(self.group.name));
        group.sampling_mode(SamplingMode::Flat);
        group.bench_function(criterion_name(&case.name), |b| {
            b.iter_custom(|n| match subject.run(n, self.bench.clock) {
                Ok(ticks) => ticks.0.max(1).into(),
                Err(error) => std::panic::resume_unwind(Box::new(CaseEnd::from(error))),
            });
        });
        Err(CaseEnd::Skipped("left to Criterion".into()))
    }
}

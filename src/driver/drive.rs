//! One run over the planned groups: from the checks before it to the saved record and the table.

use super::arguments::{Arguments, Mode};
use super::collected::Collected;
use super::criterion_files;
use super::earlier_runs::EarlierRuns;
use super::final_report::{FinalReport, Outcome, list};
use super::first_checks::{check_home, complaints, disk_is_full, prepare};
use super::first_screen::FirstScreen;
use super::options::Options;
use super::plan::{Planned, plan};
use super::process_task::{Round, Task};
use super::progress::{Progress, Telling};
use super::rounds::Rounds;
use super::supervision::Supervisor;
use super::terminal::report_error;
use crate::case::Group;
use crate::clock::{ClockScale, Dispute, check_clocks};
use crate::environment::{Fingerprint, Inherited};
use crate::error::Result;
use crate::exit::Exit;
use crate::platform::kernel_files::KernelFiles;
use crate::platform::{output, signal};
use crate::record::quantity::NANOSECONDS;
use crate::record::run_name::named_now;
use crate::record::store::Store;
use crate::record::{ClockRun, FORMAT, GroupRun, Record};
use crate::statistic::Random;
use crate::study::reference_frequency::left_alone;
use crate::trial::scratch;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Time between two savings of an unfinished run: what a kill may cost.
const BETWEEN_SAVES: Duration = Duration::from_secs(5);

/// The longest time for which another run may write Criterion's files of this home.
const PATIENCE: Duration = Duration::from_secs(60);

/// Runs the matching cases of these groups, saves the record and prints the table.
///
/// # Errors
/// The request cannot be carried out: no case matches, a prediction has no case, the unit is unknown, the baseline to
/// compare with is missing or has another unit, or the disk is too full for a comparison. Later failures are
/// reported and change the exit code.
pub fn run(groups: &[Group], arguments: &Arguments, options: &Options) -> Result<Exit> {
    #[cfg(feature = "cli")]
    if let Some(file) = options.predictions.as_deref().filter(|_| arguments.mode != Mode::List) {
        super::plan::check_predictions(groups, file)?;
    }
    output::check()?;
    let planned = plan(groups, arguments)?;
    if arguments.mode == Mode::List {
        return list(&planned);
    }
    let report = FinalReport::new(options)?;
    let home = prepare(options)?;
    let disputed = if options.is_time() { check_clocks()? } else { None };
    let complaints = complaints(&planned, arguments, options, &home)?;
    if arguments.mode == Mode::Measure && !arguments.unsaved {
        check_home(&planned, arguments, &home)?;
    }
    let cases = planned.iter().map(|p| p.ids.len()).sum();
    let rounds = Rounds::new(arguments, options);
    let screen = FirstScreen::for_run(&planned, arguments, options);
    let progress = Progress::over(rounds.certain(cases), telling(arguments, planned.len()));
    let mut drive = Drive::new(arguments, options, home, &progress).doubting(disputed);
    drive.measure(&planned, rounds);
    progress.finish();
    scratch::sweep_up(&options.scratch_parent());
    let saved = drive.save();
    let set_back = drive.earlier.set_back.take().filter(|_| matches!(saved, Ok(Some(_))));
    let EarlierRuns { records: earlier, remark, .. } = drive.earlier;
    let outcome =
        Outcome { record: drive.record, complaints, unsaved: drive.unsaved, saved, screen, earlier };
    let exit = report.whole(outcome, arguments, options);
    set_back.into_iter().chain(remark).for_each(report_error);
    Ok(exit)
}

/// Criterion's own report and tests have lines of their own; one group needs no line that says so.
fn telling(arguments: &Arguments, groups: usize) -> Telling {
    match () {
        () if arguments.loud || arguments.mode != Mode::Measure => Telling::Nothing,
        () if groups > 1 => Telling::Groups,
        () => Telling::Bar,
    }
}

/// A run in progress.
pub(super) struct Drive<'a> {
    arguments: Arguments,
    options: &'a Options,
    home: PathBuf,
    pub(super) record: Record,
    progress: &'a Progress,
    /// Sentences about what could not be saved.
    unsaved: Vec<String>,
    began: Instant,
    saved: Instant,
    /// The record has its file, under a name that no other run has.
    is_stored: bool,
    /// The scale of the first process' clock.
    clock: Option<ClockScale>,
    earlier: EarlierRuns,
    /// A clock that contradicts the one that measures.
    disputed: Option<Dispute>,
}

/// The line that ends a round in a log. The first round has a line for each group; later rounds have this line only.
fn round_over(round: usize, elapsed: Duration) -> String {
    let then = match round {
        0 => {
            ": further ones measure every case again by fresh processes, and try what was disturbed once more"
        }
        _ => "",
    };
    format!("round {} is over after {:.0} s{then}", round + 1, elapsed.as_secs_f64())
}

impl<'a> Drive<'a> {
    pub(super) fn new(
        arguments: &Arguments,
        options: &'a Options,
        home: PathBuf,
        progress: &'a Progress,
    ) -> Self {
        let (arguments, record, now) = (arguments.clone(), new_record(options), Instant::now());
        let (unsaved, clock) = (Vec::new(), None);
        let mut drive = Self {
            arguments,
            options,
            home,
            record,
            progress,
            unsaved,
            began: now,
            saved: now,
            is_stored: false,
            clock,
            earlier: EarlierRuns::default(),
            disputed: None,
        };
        if drive.saves() {
            drive.earlier = EarlierRuns::load(&drive.record, &Store::at(&drive.home));
        }
        drive
    }

    /// With a mark on every figure, because the clocks contradict each other.
    fn doubting(self, disputed: Option<Dispute>) -> Self {
        Self { disputed, ..self }
    }

    /// Measures the groups, round after round, until every case has what it needs, the time is over, or a signal arrives.
    /// Then Criterion writes its files.
    pub(super) fn measure(&mut self, planned: &[Planned], rounds: Rounds) {
        let mut groups: Vec<_> = planned.iter().map(Collected::new).collect();
        let mut random = Random::new(crate::trial::SEED);
        let mut order: Vec<usize> = (0..groups.len()).collect();
        for round in 0.. {
            let mut executed = false;
            let time = rounds.time(groups.iter().map(Collected::runnable).sum());
            for &at in &order {
                let time = self.began.elapsed() < time;
                executed |= self.execute(&mut groups[at], &rounds, round, time);
                if round == 0 {
                    self.progress.group(&groups[at].summary_line());
                }
                self.keep(&groups, round == 0);
                if signal::pending().is_some() {
                    break;
                }
            }
            if signal::pending().is_some() || !executed {
                break;
            }
            if groups.len() > 1 {
                self.progress.group(&round_over(round, self.began.elapsed()));
            }
            random.shuffle(&mut order);
        }
        self.record.groups = self.group_runs(&groups);
        self.earlier.widen(&mut self.record);
        self.progress.begin("Criterion's files are written");
        self.write_criterions_files();
    }

    /// One process for the cases of a group that this round wants; false if it wants none.
    fn execute(&mut self, group: &mut Collected, rounds: &Rounds, round: usize, time: bool) -> bool {
        let cases = group.wanted(rounds, round, time);
        if cases.is_empty() {
            return false;
        }
        let task = Task::Measure(Round { cases, clock: self.clock });
        let process = self.supervisor(&self.home).carry_out(group.planned.group.name, &task);
        self.clock = self.clock.or_else(|| scale(&process.run.clock));
        group.add(process);
        true
    }

    fn supervisor<'b>(&'b self, home: &'b Path) -> Supervisor<'b> {
        let Self { arguments, options, progress, began, clock, .. } = self;
        Supervisor { arguments, options, home, progress, began: *began, clock: *clock }
    }

    /// Saves what there is, so that a later failure costs little; the save at the end reports errors.
    fn keep(&mut self, groups: &[Collected], always: bool) {
        if self.saves() && (always || self.saved.elapsed() > BETWEEN_SAVES) {
            self.record.groups = self.group_runs(groups);
            let _ = self.save();
            self.saved = Instant::now();
        }
    }

    /// The results so far, at the highest frequency of the undisturbed core in this run or an earlier one.
    fn group_runs(&self, groups: &[Collected]) -> Vec<GroupRun> {
        let frequencies: Vec<f64> = groups.iter().flat_map(Collected::frequencies).collect();
        let own = left_alone(&frequencies).filter(|_| self.options.unit == NANOSECONDS);
        let core_hz = own.map(|own| self.earlier.core_hz.map_or(own, |earlier| own.max(earlier)));
        let tried = groups.iter().filter(|group| !group.is_empty());
        let run = |group: &Collected<'_>| self.marked(group.group_run(&self.record.fingerprint, core_hz));
        tried.map(run).collect()
    }

    /// The group with what its numbers hold for: what was inherited, and the dispute of the clocks, if there is one.
    fn marked(&self, mut run: GroupRun) -> GroupRun {
        run.notes.extend(Inherited::found().sentences());
        if let Some(dispute) = &self.disputed {
            run.notes.push(format!("{dispute}: every time is in doubt by as much, and marked"));
            run.clock.disputed = Some((dispute.other.clone(), dispute.by));
        }
        run
    }

    /// Has Criterion write its files, with every sample of every execution, and compare if it was asked to.
    fn write_criterions_files(&mut self) {
        // Criterion writes in place: two runs that share a home would write into each other's files.
        let _alone = self.saves().then(|| Store::at(&self.home).lock("runs", PATIENCE));
        for at in 0..self.record.groups.len() {
            if !self.saves() {
                return;
            }
            if let Some(sentence) = disk_is_full(&self.home) {
                self.unsaved.push(sentence);
                self.arguments = self.arguments.without_saving();
                return;
            }
            let run = &self.record.groups[at];
            let sentences = criterion_files::write(&self.supervisor(&self.home), run);
            self.unsaved.extend(sentences);
        }
    }

    fn saves(&self) -> bool {
        self.arguments.mode == Mode::Measure && !self.arguments.unsaved
    }

    /// Writes the record and, where a baseline is named, merges the record into it. `None` if nothing is to be saved.
    fn save(&mut self) -> Result<Option<PathBuf>> {
        if !self.saves() || self.record.groups.is_empty() {
            return Ok(None);
        }
        let store = Store::at(&self.home);
        let path = match self.is_stored {
            true => store.save_run(&self.record)?,
            false => store.save_first(&mut self.record)?,
        };
        self.is_stored = true;
        if let Some(name) = &self.arguments.save {
            store.merge_baseline(name, &self.record)?;
        }
        Ok(Some(path))
    }
}

/// The scale of a clock that a process has found; `None` of one that never had a clock.
fn scale(clock: &ClockRun) -> Option<ClockScale> {
    let counter = clock.unfit.is_none();
    let ClockRun { hz, step, uncertainty_ppm, .. } = *clock;
    (hz > 0.0).then_some(ClockScale { counter, hz, step, uncertainty_ppm })
}

fn new_record(options: &Options) -> Record {
    let (started, run) = named_now();
    let fingerprint = Fingerprint::take(&KernelFiles::live(), &options.scratch_parent());
    Record {
        format: FORMAT,
        tool: concat!("syscost ", env!("CARGO_PKG_VERSION")).into(),
        run,
        session: options.session.clone(),
        boot: KernelFiles::live().line("/proc/sys/kernel/random/boot_id"),
        started,
        scale: options.scale.name().into(),
        unit: options.unit.clone(),
        seed: crate::trial::SEED,
        fingerprint,
        groups: Vec::new(),
    }
}

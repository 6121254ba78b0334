//! One run over the planned groups: from the checks before it to the saved record and the table.

use super::arguments::{Arguments, Mode};
use super::collected::Collected;
use super::criterion_files;
use super::final_report::{FinalReport, FirstScreen, RunEnd, print_ids};
use super::first_checks::{baseline_complaints, check_home, full_disk_sentence, prepare_run};
use super::options::{Options, TimeLimit};
use super::plan::{Planned, plan_groups};
use super::process_task::{Task, Wanted};
use super::rounds::Rounds;
use super::session_runs::EarlierRuns;
use super::supervision::Supervisor;
use super::terminal::{Progress, Telling, layout, report_error};
use crate::case::Group;
use crate::clock::{ClockScale, Dispute, check_clocks};
use crate::environment::{Fingerprint, Inherited};
use crate::error::Result;
use crate::exit::Exit;
use crate::platform::kernel_files::KernelFiles;
use crate::platform::{output, signal};
use crate::record::quantity::{NANOSECONDS, fresh_run_name, is_instruction_unit};
use crate::record::store::Store;
use crate::record::{CaseRecord, ClockRun, FORMAT, GroupRun, Record};
use crate::statistic::Random;
use crate::study::interval::make_figure_exact;
use crate::study::reference_frequency::undisturbed_frequency;
use crate::trial::scratch;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Shortest time between two saves of an unfinished run. A kill loses the results since the last save.
const BETWEEN_SAVES: Duration = Duration::from_secs(5);

/// Longest wait for another run that writes Criterion's files in the same home.
const LOCK_WAIT: Duration = Duration::from_secs(60);

/// Runs the matching cases of these groups, saves the record and prints the table.
///
/// # Errors
/// The request cannot be carried out: no case matches, a prediction has no case, the unit is unknown, the baseline to
/// compare with is missing or has another unit, or the disk is too full for a comparison. Later failures are
/// reported and change the exit code.
pub fn run(groups: &[Group], arguments: &Arguments, options: &Options) -> Result<Exit> {
    if let Some(file) = options.predictions.as_deref().filter(|_| arguments.mode != Mode::List) {
        super::plan::check_predictions(groups, options.known, file)?;
    }
    output::check_stdout()?;
    let planned = plan_groups(groups, options.known, arguments)?;
    if arguments.mode == Mode::List {
        return print_ids(&planned);
    }
    let report = FinalReport::new(options)?;
    let home = prepare_run(options)?;
    let disputed = if options.measures_time() { check_clocks()? } else { None };
    let complaints = baseline_complaints(&planned, arguments, options, &home)?;
    if arguments.mode == Mode::Measure && !arguments.unsaved {
        check_home(&planned, arguments, &home)?;
    }
    let rounds = Rounds::new(arguments, options);
    let screen = FirstScreen::for_run(&planned, arguments, options);
    let brief = rounds.brief(count_cases(&planned)).filter(|_| screen.is_some());
    let (planned, rounds) = match brief {
        Some(brief) => (headlines_only(&planned), brief),
        None => (planned, rounds),
    };
    let expected = rounds.minimum_executions(count_cases(&planned));
    let progress = Progress::over(expected, choose_telling(arguments, planned.len()));
    let mut drive = Drive::new(arguments, options, home, &progress);
    drive.disputed = disputed;
    drive.screen = screen.as_ref();
    drive.measure(&planned, rounds);
    progress.finish();
    let not_begun = drive.time.not_begun_sentence(count_cases(&planned), drive.record.cases().count());
    let not_begun = not_begun.filter(|_| signal::pending().is_none());
    scratch::remove_orphans(&options.scratch_parent());
    drive.record.unfinished = signal::pending().is_some();
    let saved = drive.save_record();
    let set_back = drive.earlier.set_back.take().filter(|_| matches!(saved, Ok(Some(_))));
    let EarlierRuns { records: earlier, remark, .. } = drive.earlier;
    let end = RunEnd {
        record: drive.record,
        complaints,
        unsaved: drive.unsaved,
        saved,
        screen,
        earlier,
        not_begun,
    };
    let exit = report.print_all(end, arguments, options);
    set_back.into_iter().chain(remark).for_each(report_error);
    Ok(exit)
}

fn count_cases(planned: &[Planned]) -> usize {
    planned.iter().map(|planned| planned.ids.len()).sum()
}

/// The groups that have headline cases, reduced to these cases.
fn headlines_only<'a>(planned: &[Planned<'a>]) -> Vec<Planned<'a>> {
    planned.iter().map(Planned::headlines_only).filter(|planned| !planned.ids.is_empty()).collect()
}

/// How progress is shown. There is none if Criterion prints its own report or the cases are only tested; several groups
/// get a line each; otherwise there is a bar.
fn choose_telling(arguments: &Arguments, groups: usize) -> Telling {
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
    time: TimeLimit,
    saved: Instant,
    /// Whether the record has its file, under a name that no other run has.
    is_stored: bool,
    /// The scale of the first process' clock.
    clock: Option<ClockScale>,
    earlier: EarlierRuns,
    /// A clock that contradicts the one that measures: every group is then marked as doubtful.
    disputed: Option<Dispute>,
    /// The screen of a whole run, shown as soon as the headline cases are measured; `None` if tables are printed.
    screen: Option<&'a FirstScreen>,
}

/// The line that ends a round in a log. The first round has a line for each group; later rounds have this line only.
fn round_end_line(round: usize, elapsed: Duration) -> String {
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
        let mut drive = Self {
            arguments: arguments.clone(),
            options,
            home,
            record: new_record(options),
            progress,
            unsaved: Vec::new(),
            time: TimeLimit::starting_now(None),
            saved: Instant::now(),
            is_stored: false,
            clock: None,
            earlier: EarlierRuns::default(),
            disputed: None,
            screen: None,
        };
        if drive.is_saving() && !is_instruction_unit(&options.unit) {
            drive.earlier = EarlierRuns::load(&drive.record, &Store::at(&drive.home));
        }
        drive
    }

    /// Measures the groups in rounds until every case has enough executions, the time is over, or a signal arrives.
    /// Then Criterion writes its files.
    pub(super) fn measure(&mut self, planned: &[Planned], rounds: Rounds) {
        self.time.limit = rounds.limit();
        self.progress.limit_time(self.time.left());
        let mut groups: Vec<_> = planned.iter().map(Collected::new).collect();
        let mut random = Random::new(crate::trial::SEED);
        let mut order: Vec<usize> = (0..groups.len()).collect();
        if self.screen.is_some() {
            self.measure_headlines(&mut groups, rounds.headline_rounds());
        }
        // A brief run has only headline cases, so the rounds above were its first ones.
        let first = if rounds.is_brief() { rounds.headline_rounds() } else { 0 };
        for round in first.. {
            if signal::pending().is_some() {
                break;
            }
            let mut executed = false;
            let time = rounds.time_limit(groups.iter().map(Collected::count_runnable).sum());
            for &at in &order {
                let time = self.time.began.elapsed() < time;
                let cases = groups[at].wanted_cases(&rounds, round, time);
                executed |= self.execute_cases(&mut groups[at], cases);
                if round == first && !groups[at].is_empty() {
                    self.progress.print_group_line(&groups[at].summary_line());
                }
                self.save_progress(&groups, round == first);
                if signal::pending().is_some() {
                    break;
                }
            }
            if signal::pending().is_some() || !executed {
                break;
            }
            if round == first {
                let runnable = groups.iter().map(Collected::count_runnable).sum();
                self.progress.expect_executions(rounds.minimum_executions(runnable));
            }
            if groups.len() > 1 {
                self.progress.print_group_line(&round_end_line(round, self.time.began.elapsed()));
            }
            random.shuffle(&mut order);
        }
        self.record.groups = self.group_runs(&groups);
        self.earlier.draw_intervals(&mut self.record);
        self.progress.expect_executions(0);
        self.progress.limit_time(None);
        self.progress.begin("Criterion's files are written");
        self.write_criterion_files(planned);
    }

    /// Measures the headline cases before all others: first the answers of the first screen, then the rest.
    fn measure_headlines(&mut self, groups: &mut [Collected], rounds: usize) {
        for (answers, round) in [true, false].into_iter().flat_map(|a| (0..rounds).map(move |r| (a, r))) {
            for group in &mut *groups {
                let cases = group.wanted_headlines(round, answers);
                self.execute_cases(group, cases);
                if signal::pending().is_some() {
                    return;
                }
            }
            self.save_progress(groups, answers && round + 1 == rounds);
        }
        self.progress.print_group_line(&format!(
            "the headline cases are measured after {:.0} s; all others follow",
            self.time.began.elapsed().as_secs_f64()
        ));
        self.save_progress(groups, true);
        let record = Record { groups: self.group_runs(groups), ..self.record.clone() };
        let answers = self.screen.map(|screen| screen.answer_lines(&record)).unwrap_or_default();
        answers.iter().for_each(|line| self.progress.print_group_line(&format!("  {line}")));
    }

    /// Executes these cases of a group in one process. Returns false if there are no cases or no time is left.
    fn execute_cases(&mut self, group: &mut Collected, cases: Vec<Wanted>) -> bool {
        if cases.is_empty() || self.time.is_over() {
            return false;
        }
        let process = self.supervisor(&self.home).run_task(group.planned.group.name, &Task::Measure(cases));
        self.clock = self.clock.or_else(|| clock_scale(&process.run.clock));
        group.add(process);
        true
    }

    fn supervisor<'b>(&'b self, home: &'b Path) -> Supervisor<'b> {
        let Self { arguments, options, progress, time, clock, .. } = self;
        Supervisor { arguments, options, home, progress, time: *time, clock: *clock }
    }

    /// Saves the results so far, so that a later failure loses little. The save at the end of the run reports errors.
    fn save_progress(&mut self, groups: &[Collected], always: bool) {
        if self.is_saving() && (always || self.saved.elapsed() > BETWEEN_SAVES) {
            self.record.groups = self.group_runs(groups);
            self.record.unfinished = true;
            let _ = self.save_record();
            self.show_screen();
            self.saved = Instant::now();
        }
    }

    /// Shows the answers so far on a terminal that has room for them.
    fn show_screen(&self) {
        let Some(screen) = self.screen.filter(|_| self.progress.has_room_for_screen()) else { return };
        let mut record = self.record.clone();
        self.earlier.draw_intervals(&mut record);
        let state = Some("unfinished");
        self.progress.show_screen(&screen.render(&record, &self.earlier.records, state, layout()));
    }

    /// The results so far, converted to the highest frequency of the undisturbed core in this run or an earlier one.
    fn group_runs(&self, groups: &[Collected]) -> Vec<GroupRun> {
        let frequencies: Vec<f64> = groups.iter().flat_map(Collected::core_frequencies).collect();
        let own = undisturbed_frequency(&frequencies).filter(|_| self.options.unit == NANOSECONDS);
        let core_hz = own.map(|own| self.earlier.core_hz.map_or(own, |earlier| own.max(earlier)));
        let tried = groups.iter().filter(|group| !group.is_empty());
        let run =
            |group: &Collected<'_>| self.add_run_notes(group.group_run(&self.record.fingerprint, core_hz));
        tried.map(run).collect()
    }

    /// The group with notes on what limits its numbers: settings that the process inherited, and clocks that
    /// contradict each other.
    fn add_run_notes(&self, mut run: GroupRun) -> GroupRun {
        if is_instruction_unit(&self.options.unit) {
            // Instructions are counted without reading a clock, so the unit is recorded as the source.
            run.clock.source.clone_from(&self.options.unit);
            run.cases.iter_mut().filter_map(CaseRecord::measured_mut).for_each(make_figure_exact);
        }
        run.notes.extend(Inherited::read_once().deviation_sentences());
        if let Some(dispute) = &self.disputed {
            run.notes.push(format!("{dispute}: every time is in doubt by as much, and marked"));
            run.clock.disputed = Some((dispute.other.clone(), dispute.by));
        }
        run
    }

    /// Has Criterion write its files with the samples of all executions, and compare them with a baseline if asked to.
    fn write_criterion_files(&mut self, planned: &[Planned]) {
        // Criterion judges by samples, and an exact count has none.
        if is_instruction_unit(&self.options.unit) {
            return;
        }
        // Criterion writes in place: two runs that share a home would write into each other's files.
        let _alone = self.is_saving().then(|| Store::at(&self.home).lock_directory("runs", LOCK_WAIT));
        for at in 0..self.record.groups.len() {
            if !self.is_saving() {
                return;
            }
            if let Some(sentence) = full_disk_sentence(&self.home) {
                self.unsaved.push(sentence);
                self.arguments = self.arguments.without_saving();
                return;
            }
            let run = &self.record.groups[at];
            let group = planned.iter().map(|planned| planned.group).find(|group| group.name == run.name);
            let cases = group.map(|group| (group.cases)()).unwrap_or_default();
            let sentences = criterion_files::write(&self.supervisor(&self.home), run, &cases);
            self.unsaved.extend(sentences);
        }
    }

    fn is_saving(&self) -> bool {
        self.arguments.mode == Mode::Measure && !self.arguments.unsaved
    }

    /// Writes the record and, where a baseline is named, merges the record into it. `None` if nothing is to be saved.
    fn save_record(&mut self) -> Result<Option<PathBuf>> {
        if !self.is_saving() || self.record.groups.is_empty() {
            return Ok(None);
        }
        let store = Store::at(&self.home);
        let path = if self.is_stored {
            store.save_run(&self.record)?
        } else {
            store.save_new_run(&mut self.record)?
        };
        self.is_stored = true;
        if let Some(name) = &self.arguments.save {
            store.merge_baseline(name, &self.record)?;
        }
        Ok(Some(path))
    }
}

/// The clock scale that a process has found; `None` if the process never had a clock.
fn clock_scale(clock: &ClockRun) -> Option<ClockScale> {
    let counter = clock.unfit.is_none();
    let ClockRun { hz, step, uncertainty_ppm, .. } = *clock;
    (hz > 0.0).then_some(ClockScale { counter, hz, step, uncertainty_ppm })
}

fn new_record(options: &Options) -> Record {
    let (started, run) = fresh_run_name();
    let fingerprint = Fingerprint::take(&KernelFiles::live(), &options.scratch_parent());
    Record {
        format: FORMAT,
        tool: concat!("syscost ", env!("CARGO_PKG_VERSION")).into(),
        run,
        session: options.session.clone(),
        boot: KernelFiles::live().read_first_line("/proc/sys/kernel/random/boot_id"),
        started,
        scale: options.scale.name().into(),
        unit: options.unit.clone(),
        seed: crate::trial::SEED,
        fingerprint,
        unfinished: false,
        groups: Vec::new(),
    }
}

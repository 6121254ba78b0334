//! One run over the planned groups: from the checks before it to the saved record and the table.

use super::arguments::{Arguments, Mode};
use super::final_report::{FinalReport, Outcome, list};
use super::options::{Options, open_counter};
use super::output_directory::{criterion_home, home_for};
use super::plan::{Planned, plan};
use super::terminal::Progress;
use super::{criterion_files, fitting, frequency_drift, prefetch, supervision};
use crate::case::Group;
use crate::environment::Fingerprint;
use crate::error::{Error, Result};
use crate::exit::Exit;
use crate::platform::kernel_files::KernelFiles;
use crate::platform::{process, signal};
use crate::record::baseline::{self, Complaint, Kind};
use crate::record::quantity::{self, NANOSECONDS};
use crate::record::store::Store;
use crate::record::{FORMAT, Record};
use crate::trial::scratch;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// Runs the matching cases of these groups, saves the record and prints the table.
///
/// # Errors
/// The request cannot be carried out: no case matches, a prediction has no case, the unit is unknown, the baseline to
/// compare with is missing or has another unit, or the disk is too full for a comparison. What goes wrong later is
/// reported and reflected in the exit code.
pub fn run(groups: &[Group], arguments: &Arguments, options: &Options) -> Result<Exit> {
    #[cfg(feature = "cli")]
    if let Some(file) = options.predictions.as_deref().filter(|_| arguments.mode != Mode::List) {
        super::plan::check_predictions(groups, file)?;
    }
    let planned = plan(groups, arguments)?;
    if arguments.mode == Mode::List {
        return Ok(list(&planned));
    }
    let report = FinalReport::new(options, planned.len())?;
    let home = prepare(options)?;
    let complaints = complaints(&planned, arguments, options, &home)?;
    if let Some(sentence) = disk_is_full(&home).filter(|_| arguments.compare.is_some()) {
        return Err(Error::Usage(format!("{sentence}; a comparison writes too, so make room first")));
    }
    let cases = planned.iter().map(|p| p.ids.len()).sum();
    let progress = Progress::over(cases, arguments.loud || arguments.mode != Mode::Measure);
    let mut drive = Drive::new(arguments, options, home, &progress);
    drive.groups(&planned, |record| report.part(record, arguments, &progress));
    progress.finish();
    scratch::sweep_up(&options.scratch_parent());
    let saved = drive.save();
    let outcome = Outcome { record: drive.record, complaints, unsaved: drive.unsaved, saved };
    Ok(report.whole(outcome, arguments))
}

/// Checks the unit, installs the signal handlers, removes scratch directories of killed runs, and returns the
/// directory for values of this unit.
///
/// # Errors
/// The unit cannot be measured, or a signal handler cannot be installed.
pub(super) fn prepare(options: &Options) -> Result<PathBuf> {
    if !options.is_time() {
        open_counter(&options.unit)?;
    }
    signal::watch()?;
    end_with_cargo();
    scratch::sweep_up(&options.scratch_parent());
    let home = options.home.clone().unwrap_or_else(criterion_home);
    let home = std::path::absolute(&home).unwrap_or(home);
    Ok(home_for(&options.unit, &home))
}

/// A sentence if so little disk is free that Criterion might replace an earlier baseline by half of a new one.
fn disk_is_full(home: &Path) -> Option<String> {
    const LEAST: u64 = 4 << 20;
    let existing = home.ancestors().find(|directory| directory.exists())?;
    let disk = nix::sys::statvfs::statvfs(existing).ok()?;
    let free = disk.blocks_available() as u64 * disk.fragment_size() as u64;
    (free < LEAST).then(|| {
        format!(
            "{}: {} KiB are free, less than a run may need: nothing more is saved, so that what is there stays whole",
            home.display(),
            free >> 10
        )
    })
}

/// Asks the kernel to end this process if Cargo, its parent, is killed. Under a shell it goes on, as `nohup` expects.
fn end_with_cargo() {
    let parent = format!("/proc/{}/comm", nix::unistd::getppid());
    if std::fs::read_to_string(parent).is_ok_and(|name| name.trim() == "cargo") {
        // If it is refused, a run whose Cargo was killed goes on to its own end.
        let _ = process::die_with_parent();
    }
}

/// What is wrong with the baseline of a comparison, found before anything is measured. Criterion itself would
/// print an error in the middle and exit with 0, or compare page faults with nanoseconds.
fn complaints(
    planned: &[Planned],
    arguments: &Arguments,
    options: &Options,
    home: &Path,
) -> Result<Vec<Complaint>> {
    let Some(name) = &arguments.compare else { return Ok(Vec::new()) };
    let ids: Vec<_> =
        planned.iter().flat_map(|p| &p.ids).map(|id| (id.clone(), baseline::directory(id))).collect();
    let mut complaints = baseline::check(home, name, &ids, &options.unit);
    complaints.retain(|complaint| complaint.kind != Kind::Missing || !arguments.lenient);
    let missing = complaints.iter().filter(|c| c.kind == Kind::Missing).count();
    if missing == ids.len() && missing > 0 {
        return Err(Error::Usage(format!(
            "there is no baseline {name} for any of the {missing} cases in {}; \
             `cargo bench -- --save-baseline {name}` makes one",
            home.display()
        )));
    }
    if let Some(other) = complaints.iter().find(|c| c.kind == Kind::OtherUnit) {
        return Err(Error::Usage(other.sentence.clone()));
    }
    Ok(complaints)
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
}

impl<'a> Drive<'a> {
    pub(super) fn new(
        arguments: &Arguments,
        options: &'a Options,
        home: PathBuf,
        progress: &'a Progress,
    ) -> Self {
        let arguments = arguments.clone();
        Self { arguments, options, home, record: new_record(options), progress, unsaved: Vec::new() }
    }

    /// Measures the groups one after another until a signal arrives; `after` is called with the record so far.
    pub(super) fn groups(&mut self, planned: &[Planned], mut after: impl FnMut(&Record)) {
        for planned in planned {
            self.group(planned);
            after(&self.record);
            if signal::pending().is_some() {
                break;
            }
        }
    }

    /// Measures one group in a process of its own and adds it to the record.
    fn group(&mut self, planned: &Planned) {
        if let Some(sentence) = disk_is_full(&self.home).filter(|_| self.saves()) {
            self.unsaved.push(sentence);
            self.arguments = self.arguments.without_saving();
        }
        let mut run = supervision::measure(planned, &self.arguments, self.options, &self.home, self.progress);
        fitting::add_fits(&mut run, planned.group);
        fitting::add_curves(&mut run, &self.record.fingerprint);
        run.notes.extend(frequency_drift::note(&run));
        run.notes.extend(prefetch::note(&run));
        if self.saves() {
            // Criterion does not save zeros, which counts may be; a comparison writes `new` only.
            let all = self.options.unit == NANOSECONDS;
            let save = self.arguments.save.as_deref().unwrap_or("new");
            self.unsaved.extend(criterion_files::sweep_up(&planned.ids, &run, &self.home, save, all));
        }
        self.record.groups.push(run);
        // Saved after every group, so that a later failure costs nothing; the save at the end reports errors.
        let _ = self.save();
    }

    fn saves(&self) -> bool {
        self.arguments.mode == Mode::Measure && !self.arguments.unsaved
    }

    /// Writes the record and, where a baseline is named, merges the record into it. `None` if nothing is to be saved.
    fn save(&self) -> Result<Option<PathBuf>> {
        if !self.saves() || self.record.groups.is_empty() {
            return Ok(None);
        }
        let store = Store::at(&self.home);
        let path = store.save_run(&self.record)?;
        if let Some(name) = &self.arguments.save {
            store.merge_baseline(name, &self.record)?;
        }
        Ok(Some(path))
    }
}

fn new_record(options: &Options) -> Record {
    // A clock before 1970 only spoils the name.
    let started = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs());
    let fingerprint = Fingerprint::take(&KernelFiles::live(), &options.scratch_parent());
    Record {
        format: FORMAT,
        tool: concat!("syscost ", env!("CARGO_PKG_VERSION")).into(),
        run: format!("{}-{}", quantity::utc(started), std::process::id()),
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

//! The driver: plans, starts a process a group, listens, keeps the record, and has the last word.

mod child;
mod closing;
mod disguise;
mod frequency;
mod saved;
#[cfg(feature = "cli")]
mod session;

#[cfg(feature = "cli")]
pub use session::Session;

use super::arguments::{Arguments, Mode};
use super::home::{criterion_home, home_for};
use super::plan::{Planned, plan};
use super::progress::{Progress, say};
use crate::case::{Group, Scale};
use crate::environment::Fingerprint;
use crate::platform::kernel_files::KernelFiles;
use crate::platform::{process, signal};
use crate::record::baseline::{self, Complaint, Kind};
use crate::record::quantity::{DISPLACED, NANOSECONDS};
use crate::record::{FORMAT, GroupRun, Record};
use crate::trial::scratch;
use crate::{Error, Result};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

/// Name the peer and its token's file in the measuring process, as a person may.
pub(super) const PEER_VARIABLE: &str = "SYSCOST_PEER";
pub(super) const PEER_TOKEN_VARIABLE: &str = "SYSCOST_PEER_TOKEN_FILE";

/// What is not on Criterion's command line.
#[derive(Clone, Debug)]
pub struct Options {
    /// `SYSCOST_SCALE`: smoke, default or full.
    pub scale: Scale,
    /// `SYSCOST_MEASURE`: `ns`, or the name of a perf event to count instead.
    pub unit: String,
    /// `SYSCOST_PREDICTIONS`: a TOML file of predictions of the reader's own.
    pub predictions: Option<PathBuf>,
    /// `SYSCOST_AGAINST`: published machines to show beside, `csc501,cse221`.
    pub against: Option<String>,
    /// `SYSCOST_DIR`: where the files of the file cases are made; `None` for the temporary directory.
    pub directory: Option<PathBuf>,
    /// Where Criterion's files go; `None` for [`criterion_home`].
    pub home: Option<PathBuf>,
    /// `SYSCOST_PEER`: the other end of the cases that need one, `HOST:PORT`.
    pub peer: Option<String>,
    /// `SYSCOST_PEER_TOKEN_FILE`: the file with its token.
    pub peer_token_file: Option<PathBuf>,
    /// The session that the run belongs to, where several are made in one go.
    pub session: Option<String>,
}

impl Options {
    /// Reads the variables above.
    pub fn from_environment() -> Result<Self> {
        let given = |name| std::env::var_os(name).filter(|value| !value.is_empty());
        let variable = |name| match given(name).map(OsString::into_string) {
            Some(Err(value)) => Err(Error::Usage(format!("{name} is {value:?}: expected text in UTF-8"))),
            Some(Ok(value)) => Ok(Some(value)),
            None => Ok(None),
        };
        let scale = match variable("SYSCOST_SCALE")? {
            None => Scale::Default,
            Some(name) => Scale::named(&name).ok_or_else(|| {
                Error::Usage(format!("SYSCOST_SCALE is {name:?}: expected smoke, default or full"))
            })?,
        };
        Ok(Self {
            scale,
            unit: variable("SYSCOST_MEASURE")?.unwrap_or_else(|| "ns".into()),
            predictions: given("SYSCOST_PREDICTIONS").map(PathBuf::from),
            against: variable("SYSCOST_AGAINST")?,
            directory: given("SYSCOST_DIR").map(PathBuf::from),
            home: None,
            peer: variable(PEER_VARIABLE)?,
            peer_token_file: given(PEER_TOKEN_VARIABLE).map(PathBuf::from),
            session: None,
        })
    }

    /// Where scratch directories are made.
    pub(super) fn place(&self) -> PathBuf {
        self.directory.clone().unwrap_or_else(std::env::temp_dir)
    }
}

/// Measures the matching cases of these groups.
pub fn run(groups: &[Group], arguments: &Arguments, options: &Options) -> Result<ExitCode> {
    let planned = plan(groups, arguments)?;
    if arguments.mode == Mode::List {
        return Ok(closing::list(&planned));
    }
    let closing = closing::Closing::new(options, planned.len())?;
    let home = prepare(options)?;
    let complaints = complaints(&planned, arguments, options, &home)?;
    if let Some(sentence) = room(&home).filter(|_| arguments.compare.is_some()) {
        return Err(Error::Usage(format!("{sentence}; a comparison writes too, so make room first")));
    }
    let cases = planned.iter().map(|p| p.ids.len()).sum();
    let progress = Progress::over(cases, arguments.loud || arguments.mode != Mode::Measure);
    let mut drive = Drive::new(arguments, options, home, &progress);
    for planned in &planned {
        drive.group(planned);
        closing.part(&drive.record, arguments, &progress);
        if signal::pending().is_some() {
            break;
        }
    }
    progress.finish();
    // A measuring process that was killed has left its own.
    scratch::sweep_up(&options.place());
    let saved = drive.save();
    let outcome = closing::Outcome { record: drive.record, complaints, unsaved: drive.unsaved, saved };
    Ok(closing.whole(outcome, arguments))
}

/// Makes the process ready to drive others, and gives the home of this unit's values.
fn prepare(options: &Options) -> Result<PathBuf> {
    check_unit(&options.unit)?;
    signal::watch()?;
    end_with_cargo();
    scratch::sweep_up(&options.place());
    let home = options.home.clone().unwrap_or_else(criterion_home);
    Ok(home_for(&options.unit, &absolute(&home)))
}

/// Why nothing should be saved: on a disk as full as this, Criterion would replace an earlier baseline by half
/// of a new one.
fn room(home: &Path) -> Option<String> {
    const LEAST: u64 = 4 << 20;
    let there = home.ancestors().find(|directory| directory.exists())?;
    let disk = nix::sys::statvfs::statvfs(there).ok()?;
    let free = disk.blocks_available() as u64 * disk.fragment_size() as u64;
    (free < LEAST).then(|| {
        format!(
            "{}: {} KiB are free, less than a run may need: nothing more is saved, so that what is there stays whole",
            home.display(),
            free >> 10
        )
    })
}

fn check_unit(unit: &str) -> Result<()> {
    if unit == NANOSECONDS || unit == DISPLACED {
        Ok(())
    } else {
        super::measurement::open_counter(unit).map(drop)
    }
}

/// If Cargo is killed, nobody waits for us any more: end too. A person's shell may end without that.
fn end_with_cargo() {
    let parent = format!("/proc/{}/comm", nix::unistd::getppid());
    if std::fs::read_to_string(parent).is_ok_and(|name| name.trim() == "cargo") {
        // Without it a killed Cargo leaves a run that ends by itself.
        let _ = process::die_with_parent();
    }
}

fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf())
}

/// What is wrong with the baseline of a comparison, before anything is measured. Criterion would print an
/// error somewhere in the middle and exit with 0, or compare page faults with nanoseconds.
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
struct Drive<'a> {
    arguments: Arguments,
    options: &'a Options,
    home: PathBuf,
    record: Record,
    progress: &'a Progress,
    unsaved: Vec<String>,
}

impl<'a> Drive<'a> {
    fn new(arguments: &Arguments, options: &'a Options, home: PathBuf, progress: &'a Progress) -> Self {
        let arguments = arguments.clone();
        Self { arguments, options, home, record: new_record(options), progress, unsaved: Vec::new() }
    }

    /// Measures one group in a process of its own and adds it to the record.
    fn group(&mut self, planned: &Planned) {
        if let Some(sentence) = room(&self.home).filter(|_| self.saves()) {
            self.unsaved.push(sentence);
            self.arguments = self.arguments.without_saving();
        }
        let mut run = child::measure(planned, &self.arguments, self.options, &self.home, self.progress);
        add_fits(&mut run, planned.group);
        super::add_curves(&mut run, &self.record.fingerprint);
        run.notes.extend(frequency::note(&run));
        run.notes.extend(disguise::note(&run));
        if self.saves() {
            // Counts may be zero, which Criterion does not save. A comparison writes `new` and nothing else.
            let all = self.options.unit == NANOSECONDS;
            let save = self.arguments.save.as_deref().unwrap_or("new");
            self.unsaved.extend(saved::sweep_up(&planned.ids, &run, &self.home, save, all));
        }
        self.record.groups.push(run);
        // What is finished stays, whatever happens to the next group; the end reports a failure to save.
        let _ = self.save();
    }

    fn saves(&self) -> bool {
        self.arguments.mode == Mode::Measure && !self.arguments.unsaved
    }

    /// Writes the record and, under a baseline's name, merges it there.
    fn save(&self) -> Result<Option<PathBuf>> {
        if !self.saves() || self.record.groups.is_empty() {
            return Ok(None);
        }
        let store = crate::record::store::Store::at(&self.home);
        let path = store.save_run(&self.record)?;
        if let Some(name) = &self.arguments.save {
            store.merge_baseline(name, &self.record)?;
        }
        Ok(Some(path))
    }
}

fn add_fits(run: &mut GroupRun, group: &Group) {
    run.fits =
        group.fits.iter().filter_map(|f| crate::study::fit::fit(f.step, f.prefix, &run.cases)).collect();
}

fn new_record(options: &Options) -> Record {
    // A clock before 1970 only spoils the name.
    let started = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs());
    let fingerprint = Fingerprint::take(&KernelFiles::live(), &options.place());
    Record {
        format: FORMAT,
        tool: concat!("syscost ", env!("CARGO_PKG_VERSION")).into(),
        run: format!("{}-{}", crate::record::quantity::utc(started), std::process::id()),
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

/// Sentences of failures that must not stop the run.
fn report(error: &Error) {
    say(&format!("syscost: {error}"));
}

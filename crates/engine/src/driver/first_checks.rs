//! The checks and settings before a run measures anything.

use super::arguments::Arguments;
use super::options::{Options, criterion_home, home_for_copies, home_for_unit, open_counter};
use super::plan::Planned;
use super::supervision::RUNNER_VARIABLE;
use super::terminal::report_error;
use super::{copies, criterion_files};
use crate::environment::Inherited;
use crate::error::{Error, Result, errno_of};
use crate::platform::bracket_steps::{count_steps, execute_mark};
use crate::platform::cpu::cpu_class::choose_own_cpus;
use crate::platform::process::inheritance;
use crate::platform::{callgrind, limit, signal, time, volume};
use crate::record::baseline::{self, Complaint, Kind};
use crate::record::quantity::{CALLGRIND, INSTRUCTIONS};
use crate::record::store::Store;
use crate::trial::scratch;
use nix::errno::Errno;
use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::Signal;
use std::path::{Path, PathBuf};

/// Checks the clocks and the unit, installs the signal handlers, removes scratch directories of killed runs, and returns the
/// directory for values of this unit.
///
/// # Errors
/// The unit cannot be measured, a signal handler cannot be installed, or no scratch directory can be made.
pub(super) fn prepare_run(options: &Options) -> Result<PathBuf> {
    time::check_clock_calls()?;
    // One process accepts an empty list of CPUs, since a sandbox may refuse to tell them; each of several copies needs a CPU.
    match options.copies {
        1 => choose_own_cpus().map(drop)?,
        _ => copies::choose_copy_cpus(options).map(drop)?,
    }
    if options.unit == INSTRUCTIONS {
        check_single_steps()?;
    } else if options.unit == CALLGRIND {
        callgrind::find()?;
    } else if !options.measures_time() {
        open_counter(&options.unit)?;
    }
    prepare_inherited_state()?;
    end_with_cargo();
    report_ignored_runner();
    scratch::remove_orphans(&options.scratch_parent());
    // Every measuring process makes a scratch directory.
    ignore_descriptor_shortage(scratch::check_writable(&options.scratch_parent())).map_err(|error| {
        Error::Usage(format!(
            "{error}; cases have their files there: --dir or SYSCOST_DIR names another directory"
        ))
    })?;
    if let Some(sentence) = scratch::moved_sentence().filter(|_| options.directory.is_none()) {
        report_error(sentence);
    }
    let home = options.home.clone().unwrap_or_else(criterion_home);
    let home = std::path::absolute(&home).map_err(|cause| {
        Error::Usage(format!(
            "{}: the current directory cannot be read ({cause}), so a relative path leads nowhere: go to another directory, or \
             give --home an absolute path",
            home.display()
        ))
    })?;
    Ok(home_for_copies(options.copies, &home_for_unit(&options.unit, &home)))
}

/// Checks that this process may trace a copy of itself.
fn check_single_steps() -> Result<()> {
    count_steps(|| [(); 2].into_iter().for_each(|()| execute_mark()), 1_000).map(drop).map_err(|error| {
        Error::Usage(format!(
            "instructions are counted by single steps, which are refused here ({error}): allow ptrace in the sandbox or the \
             container (`--cap-add SYS_PTRACE`), or count by Valgrind: --instructions=callgrind"
        ))
    })
}

/// Checks by writing, before anything is measured, that the run can be kept in this home.
///
/// # Errors
/// The disk is full, or a directory or file cannot be made, read or written.
pub(super) fn check_home(planned: &[Planned], arguments: &Arguments, home: &Path) -> Result<()> {
    const REMEDY: &str = "so the run could not be kept, and nothing was measured; --home or CRITERION_HOME names another \
                          directory, and `cargo bench -- --discard-baseline` keeps nothing";
    if let Some(sentence) = full_disk_sentence(home) {
        let room = "make room first, or name a directory on another disk by --home or CRITERION_HOME";
        return Err(Error::Usage(format!("{sentence}; {room}")));
    }
    let store = Store::at(home);
    let ids = planned.iter().flat_map(|planned| &planned.ids);
    let checked = store
        .check_directory_usable("runs")
        .and_then(|()| arguments.save.as_ref().map_or(Ok(()), |name| store.check_baseline(name)))
        .and_then(|()| criterion_files::check_writable(home, ids, arguments.save.as_deref()));
    ignore_descriptor_shortage(checked).map_err(|error| Error::Usage(format!("{error}; {REMEDY}")))
}

/// Ignores the error of a check that failed for lack of file descriptors; the run reports that lack later.
fn ignore_descriptor_shortage(checked: Result<()>) -> Result<()> {
    // An error that another crate has wrapped has its number in its text only.
    match &checked {
        Err(Error::File { cause, .. }) if matches!(errno_of(cause), Some(Errno::EMFILE | Errno::ENFILE)) => {
            Ok(())
        }
        _ => checked,
    }
}

/// Prepares the state that this process has inherited: signals, children, the rights to its own files, a warning
/// before its CPU time is used up.
fn prepare_inherited_state() -> Result<()> {
    if Inherited::read_once().cpu_time.is_some() {
        limit::lower_soft_cpu_limit();
        signal::watch_cpu_limit()?;
    }
    inheritance::allow_owner_access();
    inheritance::leave_deadline_class();
    signal::watch_signals()
}

/// A sentence if so little disk is free that Criterion might replace an earlier baseline by half of a new one.
pub(super) fn full_disk_sentence(home: &Path) -> Option<String> {
    const LEAST: u64 = 4 << 20;
    let existing = home.ancestors().find(|directory| directory.exists())?;
    let free = volume::free_bytes(existing)?;
    (free < LEAST).then(|| {
        format!(
            "{}: {} KiB are free, less than a run may need: nothing more is saved, so that what is there stays whole",
            home.display(),
            free >> 10
        )
    })
}

/// Asks the kernel for SIGTERM when Cargo, its parent, ends: `timeout cargo bench` ends Cargo first, and the table of what was
/// measured is still to be printed. Under a shell the run goes on, as `nohup` expects.
fn end_with_cargo() {
    let parent = format!("/proc/{}/comm", nix::unistd::getppid());
    if std::fs::read_to_string(parent).is_ok_and(|name| name.trim() == "cargo") {
        // If the kernel refuses, a run whose Cargo was killed continues to its own end.
        let _ = set_pdeathsig(Signal::SIGTERM);
    }
}

/// Reports that cargo-criterion receives no results, if its variable is set.
fn report_ignored_runner() {
    if std::env::var_os(RUNNER_VARIABLE).is_some() {
        report_error(format_args!(
            "{RUNNER_VARIABLE} is ignored: cargo-criterion receives no results and writes no report; they are in the table \
             here, which `cargo bench` prints too"
        ));
    }
}

/// The faults of the baseline of a comparison, found before anything is measured. Criterion itself would
/// print an error in the middle and exit with 0, or compare page faults with nanoseconds.
pub(super) fn baseline_complaints(
    planned: &[Planned],
    arguments: &Arguments,
    options: &Options,
    home: &Path,
) -> Result<Vec<Complaint>> {
    let Some(name) = &arguments.compare else { return Ok(Vec::new()) };
    let ids: Vec<_> = planned
        .iter()
        .flat_map(|p| &p.ids)
        .map(|id| (id.clone(), baseline::criterion_directory(id)))
        .collect();
    let mut complaints = baseline::check_cases(home, name, &ids, &options.unit);
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

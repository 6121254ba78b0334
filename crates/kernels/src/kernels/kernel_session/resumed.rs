//! A session is taken up: by its unit after each boot, or by hand.

use super::{Which, render_progress};
use crate::reboot::boot_kernel::BootKernel;
use crate::reboot::boot_kernel::Running;
use crate::reboot::boot_loader;
use crate::reboot::boot_plan::BootPlan;
use crate::reboot::resume_unit::ResumeUnit;
use crate::reboot::session_walk::{Machine, Standing, advance_session};
use nix::fcntl::{Flock, FlockArg};
use std::fs::File;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};
use syscost::suite::GROUPS;
use syscost_command_line::page;
use syscost_command_line::record;
use syscost_command_line::sides::own_executable;
use syscost_engine::driver::layout;
use syscost_engine::exit::Exit;
use syscost_engine::record::quantity;
use syscost_platform::error::{Error, Result};
use syscost_platform::kernel_files::KernelFiles;
use syscost_platform::{plain_file, signal};

/// How often a waiting session looks for a signal.
const LOOK: Duration = Duration::from_millis(200);

/// This machine.
struct ThisMachine<'a> {
    path: &'a Path,
    record: record::Args,
}

impl Machine for ThisMachine<'_> {
    fn running_kernel(&self) -> Result<Running> {
        Running::now(&KernelFiles::live())
    }

    fn wait_until_settled(&mut self, plan: &BootPlan) {
        let end = Instant::now() + Duration::from_secs(plan.settle.into());
        while Instant::now() < end && signal::pending().is_none() {
            std::thread::sleep(LOOK);
        }
    }

    fn measure_process(&mut self, _: &BootPlan) -> Result<Option<String>> {
        if signal::pending().is_some() { Ok(None) } else { self.record.record_next_process(GROUPS) }
    }

    fn save_plan(&mut self, plan: &BootPlan) -> Result<()> {
        plan.save(self.path)
    }

    fn restart_into(&mut self, plan: &BootPlan, kernel: &BootKernel) -> Result<()> {
        match plan.loader.restart_into(kernel, &plan.planned_in) {
            // The restart itself ended the program that requested it.
            Err(_) if signal::pending().is_some() => Ok(()),
            asked => asked,
        }
    }

    fn unix_seconds(&self) -> u64 {
        quantity::unix_now()
    }
}

/// Takes a session up.
pub(super) fn resume(which: &Which) -> Result<ExitCode> {
    let (plan, path) = which.load_plan()?;
    continue_session(plan, &path, &which.home.directory())
}

/// Goes on with this plan until the machine restarts or nothing is left to do.
pub(super) fn continue_session(mut plan: BootPlan, path: &Path, home: &Path) -> Result<ExitCode> {
    let _alone = lock_exclusively(path)?;
    signal::watch_signals()?;
    let unit = ResumeUnit::for_session(&plan.name)?;
    if !unit.is_installed() {
        unit.install(&resume_command(&plan.name, home)?)?;
    }
    let record = record::Args::for_session(&plan.name, home, &plan.record, GROUPS)?;
    let standing = advance_session(&mut plan, &mut ThisMachine { path, record })?;
    match standing {
        Standing::Restarting(kernel) => {
            page::write_to_stderr(&format!("restarting into {}", plan.kernels[kernel].name))
        }
        Standing::Interrupted => page::write_to_stderr("interrupted: the unit goes on at the next boot"),
        Standing::Done => return end_session(&plan, &unit),
    }
    Ok(Exit::Success.or_signal(signal::pending()).into())
}

/// Two processes of one session would disturb each other.
fn lock_exclusively(path: &Path) -> Result<Flock<File>> {
    let directory = path.parent().unwrap_or(path);
    let file = plain_file::open_directory(directory).map_err(|e| Error::file(directory, "opening", e))?;
    Flock::lock(file, FlockArg::LockExclusiveNonblock).map_err(|(_, errno)| {
        Error::Usage(format!("{}: a session is being measured already ({errno})", directory.display()))
    })
}

/// The command line that resumes the session after a boot.
fn resume_command(name: &str, home: &Path) -> Result<Vec<String>> {
    let text = |path: &Path| {
        let text = path.to_str().map(str::to_owned);
        text.ok_or_else(|| {
            Error::Usage(format!("{}: a unit's words are UTF-8, and this path is not", path.display()))
        })
    };
    let own = ["kernels", "session", "resume", name, "--home"].map(str::to_owned);
    Ok([vec![text(&own_executable()?)?], own.to_vec(), vec![text(home)?]].concat())
}

/// Removes the unit, and gives the machine its own kernel back.
fn end_session(plan: &BootPlan, unit: &ResumeUnit) -> Result<ExitCode> {
    unit.remove()?;
    page::write(&render_progress(plan, false, layout()))?;
    let (own, now) = (&plan.planned_in, Running::now(&KernelFiles::live())?);
    if (&own.release, &own.command_line) != (&now.release, &now.command_line) {
        page::write_to_stderr(&format!("restarting into {}, as before the session", own.release));
        boot_loader::restart_machine()?;
    }
    Ok(Exit::failed_if(plan.kernels.iter().any(|kernel| kernel.given_up.is_some())).into())
}

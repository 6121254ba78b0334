//! Global settings of the machine as sides of a comparison, and their restoration.
//!
//! A shell command enters the state of each side. Before the first command runs, a journal on disk records how to undo them:
//! the content of the files below `/proc/sys` and `/sys` that the commands name, or a command of the user. If this
//! process dies, a guard process in its own process group restores everything, as soon as a running command has ended. If
//! the guard dies, too, the next start finds the journal and warns the user.

mod guard;
mod journal;

pub use guard::run_guard as guard;
pub use journal::Journal;

use crate::error::{Error, Result};
use crate::platform::{signal, socket_handle};
use guard::{Guard, Shell};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

/// The two states of the machine, and their restoration. Dropping this value restores the machine, if that is still to do.
pub struct Setting {
    commands: [String; 2],
    journal: Journal,
    file: PathBuf,
    guard: Option<Guard>,
    has_changed: bool,
    /// The lock. It is declared after the guard, which holds it, too, because fields are dropped in order.
    _alone: Exclusion,
}

impl Setting {
    /// Writes the journal and starts the guard, but changes no setting yet.
    ///
    /// # Errors
    /// The commands cannot be undone, or another comparison changes settings. Also if a killed comparison has left settings
    /// that would be taken for the original state.
    pub fn begin(commands: [&str; 2], restore: Option<&str>, home: &Path) -> Result<Self> {
        let alone = Exclusion::acquire_lock()?;
        if let Some((_, left)) = outstanding_journals(home).first() {
            return Err(Error::Usage(format!(
                "a comparison that was killed has left its settings, which would be taken for the state before: \
                 run `syscost restore` first, which does: {}",
                left.restore_commands()
            )));
        }
        let journal = Journal::new(commands, restore)?;
        let held = alone.duplicate_socket()?;
        let file = journal.write(home)?;
        let guard = match Guard::start(&file, held) {
            Ok(guard) => guard,
            Err(error) => {
                journal::remove_journal(&file)?;
                return Err(error);
            }
        };
        let commands = commands.map(str::to_owned);
        Ok(Self { commands, journal, file, guard: Some(guard), has_changed: false, _alone: alone })
    }

    /// The shell commands that restore the settings, for display.
    pub fn restore_commands(&self) -> String {
        self.journal.restore_commands()
    }

    /// Puts the machine into the state of a side (0 for A, 1 for B).
    ///
    /// # Errors
    /// The guard has ended, or the side's command fails.
    pub fn enter_side(&mut self, side: usize) -> Result<()> {
        let Some(guard) = &mut self.guard else { return Ok(()) };
        if !self.has_changed {
            guard.announce_change()?;
            self.has_changed = true;
        }
        let command = &self.commands[side];
        let entered = Shell { command, directory: None, guard: Some(&guard.input), apart: false }.run();
        // A signal from the terminal ends the command, too. That is no failure but an interruption, which the caller checks.
        if signal::pending().is_some() { Ok(()) } else { entered }
    }

    /// Restores all settings.
    ///
    /// # Errors
    /// A file cannot be restored, or the user's command fails.
    pub fn restore_settings(&mut self) -> Result<()> {
        let Some(guard) = self.guard.take() else { return Ok(()) };
        let restored = if self.has_changed { self.journal.restore(Some(&guard.input)) } else { Ok(()) };
        match restored.and_then(|()| journal::remove_journal(&self.file)) {
            Ok(()) => {
                guard.dismiss();
                Ok(())
            }
            // The guard tries to restore once more.
            Err(error) => {
                guard.abandon();
                Err(error)
            }
        }
    }
}

impl Drop for Setting {
    fn drop(&mut self) {
        // Something is left to restore only after an earlier error, which is the one to report.
        let _ = self.restore_settings();
    }
}

/// A machine-wide lock, held while settings are changed or restored.
pub struct Exclusion(Option<UnixListener>);

impl Exclusion {
    /// Takes the lock.
    ///
    /// # Errors
    /// Another process has the lock. Without it, each process would take the other's state for the original one.
    pub fn acquire_lock() -> Result<Self> {
        let taken = socket_handle::take_name("syscost-changes-settings");
        if socket_handle::is_name_taken(&taken) {
            return Err(Error::Usage(
                "another comparison of settings runs on this machine, or its guard still puts back what it \
                 changed: wait for its end"
                    .into(),
            ));
        }
        Ok(Self(taken.ok()))
    }

    /// A duplicate of the lock's socket for the guard, which may outlive this process.
    fn duplicate_socket(&self) -> Result<Option<std::os::fd::OwnedFd>> {
        let refused = |cause| Error::Kernel { call: "dup of a socket".into(), cause };
        self.0.as_ref().map(|name| name.try_clone().map(Into::into).map_err(refused)).transpose()
    }
}

/// The journals below this directory whose owners are dead, each with its file. Their settings are still to be restored.
pub fn outstanding_journals(home: &Path) -> Vec<(PathBuf, Journal)> {
    journal::own_journals(home).into_iter().filter(|(_, journal)| journal.is_outstanding()).collect()
}

/// Restores what a journal records, and removes its file.
///
/// # Errors
/// A file cannot be restored, the user's command fails, or the journal cannot be removed.
pub fn restore_journal(file: &Path, journal: &Journal) -> Result<()> {
    journal.restore(None)?;
    journal::remove_journal(file)
}

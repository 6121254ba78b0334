//! States of the whole machine as sides of a comparison, and the way back from them.
//!
//! A shell command makes each state. What undoes it is written down before the first of them runs: the files below
//! `/proc/sys` and `/sys` that the commands name, with what they hold, or a command of the user's own. A guard, a
//! process in a process group of its own, does it if this one dies, whatever of, as soon as a command that was
//! running has ended too. If the guard dies as well, the next start finds the journal and says what is to be done.

mod guard;
mod journal;
mod shell;
mod tunable;

pub use guard::stand as guard;
pub use journal::Journal;

use crate::platform::{name, signal};
use crate::{Error, Result};
use guard::Guard;
use shell::Shell;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

/// Two states, and the way back. The way back is taken when this value goes, if not before.
pub struct Setting {
    commands: [String; 2],
    journal: Journal,
    file: PathBuf,
    guard: Option<Guard>,
    has_changed: bool,
    /// Behind the guard, which holds it too: fields go in order.
    _alone: Exclusion,
}

impl Setting {
    /// Writes down the way back and posts the guard. Nothing is changed yet.
    ///
    /// # Errors
    /// Nothing tells how to undo the commands; another comparison changes settings; one that was killed has left
    /// its own, which would be taken for the state before.
    pub fn begin(commands: [&str; 2], restore: Option<&str>, home: &Path) -> Result<Self> {
        let alone = Exclusion::take()?;
        if let Some((_, left)) = outstanding(home).first() {
            return Err(Error::Usage(format!(
                "a comparison that was killed has left its settings, which would be taken for the state before: \
                 run `syscost restore` first, which does: {}",
                left.words()
            )));
        }
        let journal = Journal::of(commands, restore)?;
        let held = alone.duplicate()?;
        let file = journal.write(home)?;
        let guard = match Guard::post(&file, held) {
            Ok(guard) => guard,
            Err(error) => {
                journal::remove(&file)?;
                return Err(error);
            }
        };
        let commands = commands.map(str::to_owned);
        Ok(Self { commands, journal, file, guard: Some(guard), has_changed: false, _alone: alone })
    }

    /// What will be done at the end.
    pub fn promise(&self) -> String {
        self.journal.words()
    }

    /// Puts the machine into a side's state.
    pub fn enter(&mut self, side: usize) -> Result<()> {
        let Some(guard) = &mut self.guard else { return Ok(()) };
        if !self.has_changed {
            guard.alert()?;
            self.has_changed = true;
        }
        let words = &self.commands[side];
        let entered = Shell { words, directory: None, guard: Some(&guard.input), apart: false }.run();
        // A terminal's signal ends the command too. The comparison looks for it next, and ends as one that was
        // interrupted, not as one that failed.
        if signal::pending().is_some() { Ok(()) } else { entered }
    }

    /// Puts everything back, and tells if that did not work.
    pub fn end(mut self) -> Result<()> {
        self.put_back()
    }

    fn put_back(&mut self) -> Result<()> {
        let Some(guard) = self.guard.take() else { return Ok(()) };
        let restored = if self.has_changed { self.journal.restore(Some(&guard.input)) } else { Ok(()) };
        match restored.and_then(|()| journal::remove(&self.file)) {
            Ok(()) => {
                guard.relieve();
                Ok(())
            }
            // What we could not do the guard may try once more.
            Err(error) => {
                guard.abandon();
                Err(error)
            }
        }
    }
}

impl Drop for Setting {
    fn drop(&mut self) {
        // Only on the way out of an error, which is then the one to be told.
        let _ = self.put_back();
    }
}

/// Nobody else changes settings or puts them back while this value lives.
pub struct Exclusion(Option<UnixListener>);

impl Exclusion {
    /// Takes it, unless somebody has it: two comparisons would take each other's states for the one before.
    pub fn take() -> Result<Self> {
        let taken = name::take("syscost-changes-settings");
        if name::is_taken(&taken) {
            return Err(Error::Usage(
                "another comparison of settings runs on this machine, or its guard still puts back what it \
                 changed: wait for its end"
                    .into(),
            ));
        }
        Ok(Self(taken.ok()))
    }

    /// The same for a guard, which outlives us.
    fn duplicate(&self) -> Result<Option<std::os::fd::OwnedFd>> {
        let refused = |cause| Error::Kernel { call: "dup of a socket (raise `ulimit -n`)".into(), cause };
        self.0.as_ref().map(|name| name.try_clone().map(Into::into).map_err(refused)).transpose()
    }
}

/// The journals of this home whose owners are dead, each with its file: what is still to be put back.
pub fn outstanding(home: &Path) -> Vec<(PathBuf, Journal)> {
    journal::all(home).into_iter().filter(|(_, journal)| journal.is_outstanding()).collect()
}

/// Puts back what a journal says, and removes it.
pub fn restore(file: &Path, journal: &Journal) -> Result<()> {
    journal.restore(None)?;
    journal::remove(file)
}

//! States of the whole machine as sides of a comparison, and the way back from them.
//!
//! A shell command makes each state. What undoes it is written down before the first of them runs: the files below
//! `/proc/sys` and `/sys` that the commands name, with what they hold, or a command of the user's own. A guard, a
//! process in a session of its own, does it if this one dies, whatever of. If the guard dies too, the next start
//! finds the journal and says what is to be done.

mod journal;

pub use journal::Journal;

use crate::{Error, Result};
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// What a guard is told when it is not needed.
const DONE: &[u8] = b"done\n";

/// Two states, and the way back. The way back is taken when this value goes, if not before.
pub struct Setting {
    commands: [String; 2],
    journal: Journal,
    file: PathBuf,
    guard: Option<Child>,
}

impl Setting {
    /// Writes down the way back and posts the guard. Nothing is changed yet.
    ///
    /// # Errors
    /// Nothing tells how to undo the commands.
    pub fn begin(commands: [&str; 2], restore: Option<&str>, home: &Path) -> Result<Self> {
        let journal = Journal::of(commands, restore)?;
        let file = journal.write(home)?;
        let guard = match post(&file) {
            Ok(guard) => guard,
            Err(error) => {
                journal::remove(&file)?;
                return Err(error);
            }
        };
        Ok(Self { commands: commands.map(str::to_owned), journal, file, guard: Some(guard) })
    }

    /// What will be done at the end.
    pub fn promise(&self) -> String {
        self.journal.words()
    }

    /// Puts the machine into a side's state.
    pub fn enter(&self, side: usize) -> Result<()> {
        journal::shell(&self.commands[side])
    }

    /// Puts everything back, and tells if that did not work.
    pub fn end(mut self) -> Result<()> {
        self.put_back()
    }

    fn put_back(&mut self) -> Result<()> {
        let Some(mut guard) = self.guard.take() else { return Ok(()) };
        let restored = self.journal.restore();
        if restored.is_ok() {
            journal::remove(&self.file)?;
        }
        // What we could not do the guard may try once more, when its input ends without the word.
        if let Some(mut input) = guard.stdin.take().filter(|_| restored.is_ok()) {
            let _ = input.write_all(DONE);
        }
        let _ = guard.wait();
        restored
    }
}

impl Drop for Setting {
    fn drop(&mut self) {
        // Only on the way out of an error, which is then the one to be told.
        let _ = self.put_back();
    }
}

/// Starts the guard: this same binary, in a process group of its own, which no signal from a terminal reaches.
fn post(file: &Path) -> Result<Child> {
    let exe = std::env::current_exe().map_err(|e| Error::file("/proc/self/exe", "reading", e))?;
    let mut command = Command::new(&exe);
    command.arg("restore").arg("--guard").arg(file);
    command.stdin(Stdio::piped()).stdout(Stdio::null()).process_group(0);
    command.spawn().map_err(|e| Error::file(exe, "starting a guard of the settings", e))
}

/// The guard's whole life: it waits for its owner's word or end, and in the latter case puts everything back.
pub fn guard(file: &Path) -> Result<()> {
    let mut word = Vec::new();
    // An owner that was killed says nothing: its end of the pipe is closed by the kernel.
    let heard = std::io::Read::read_to_end(&mut std::io::stdin(), &mut word);
    if heard.is_ok() && word == DONE {
        return Ok(());
    }
    Journal::read(file)?.restore()?;
    journal::remove(file)
}

/// The journals of this home whose owners are dead, each with its file: what is still to be put back.
pub fn outstanding(home: &Path) -> Vec<(PathBuf, Journal)> {
    journal::all(home).into_iter().filter(|(_, journal)| journal.is_outstanding()).collect()
}

/// Puts back what a journal says, and removes it.
pub fn restore(file: &Path, journal: &Journal) -> Result<()> {
    journal.restore()?;
    journal::remove(file)
}

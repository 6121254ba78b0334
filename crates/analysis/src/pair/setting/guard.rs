//! The guard of a setting: a process that restores everything if its owner dies.

use super::journal::{self, Journal};
use crate::error::{Error, Result};
use crate::platform::process::own_program_command;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, Stdio};

/// Message to the guard before anything is changed.
const CHANGING: &[u8] = b"changing\n";
/// Message to the guard when everything is restored.
const DONE: &[u8] = b"done\n";

/// The owner's end.
pub(super) struct Guard {
    process: Child,
    pub(super) input: ChildStdin,
}

impl Guard {
    /// Starts the guard: this binary, in a process group of its own, which no signal from the terminal reaches. It holds
    /// `held` as its standard output, to which it writes nothing.
    ///
    /// # Errors
    /// The process cannot be started.
    pub(super) fn start(file: &Path, held: Option<OwnedFd>) -> Result<Self> {
        let mut command = own_program_command();
        command.arg("restore").arg("--guard").arg(file);
        command.stdin(Stdio::piped()).stdout(held.map_or_else(Stdio::null, Stdio::from)).process_group(0);
        let spawned = command.spawn();
        let mut process =
            spawned.map_err(|e| Error::file("/proc/self/exe", "starting a guard of the settings", e))?;
        match process.stdin.take() {
            Some(input) => Ok(Self { process, input }),
            None => Err(Error::Disproved("a guard was started without its pipe".into())),
        }
    }

    /// Tells the guard that from here on there is something to restore.
    ///
    /// # Errors
    /// The guard has gone.
    pub(super) fn announce_change(&mut self) -> Result<()> {
        let lost = |cause| Error::Kernel { call: "write to the guard of the settings".into(), cause };
        self.input.write_all(CHANGING).map_err(lost)
    }

    /// Tells the guard that everything is restored, and waits for its end.
    pub(super) fn dismiss(mut self) {
        // A guard that has gone needs no message.
        let _ = self.input.write_all(DONE);
        let _ = self.process.wait();
    }

    /// Lets the guard restore the rest, and waits for its end.
    pub(super) fn abandon(mut self) {
        drop(self.input);
        let _ = self.process.wait();
    }
}

/// The guard's process: waits for the owner's message or death, and in the latter case restores everything.
///
/// # Errors
/// The journal cannot be read, or something cannot be restored.
pub fn run_guard(file: &Path) -> Result<()> {
    // Read now, in case the file is lost later. It is missing if the owner has ended already.
    let journal = Journal::read(file);
    match wait_for_owner_end(std::io::stdin()) {
        OwnerEnd::Done => Ok(()),
        OwnerEnd::NothingChanged => journal::remove_journal(file),
        OwnerEnd::Abandoned => {
            journal?.restore(None)?;
            journal::remove_journal(file)
        }
    }
}

/// How the owner ended.
#[derive(Debug, PartialEq)]
enum OwnerEnd {
    Done,
    NothingChanged,
    Abandoned,
}

/// Waits for the owner's last message. When the owner is killed the kernel closes the pipe, as soon as a command that it
/// was running has ended too.
fn wait_for_owner_end(mut owner: impl Read) -> OwnerEnd {
    let mut received = Vec::new();
    let mut buffer = [0; 64];
    loop {
        match owner.read(&mut buffer) {
            Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
            Ok(0) if received.is_empty() => return OwnerEnd::NothingChanged,
            Ok(0) | Err(_) => return OwnerEnd::Abandoned,
            Ok(length) => received.extend_from_slice(&buffer[..length]),
        }
        // Checked before the end of the pipe, which a daemon started by a command may hold open.
        if received.ends_with(DONE) {
            return OwnerEnd::Done;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_owner_that_dies_in_the_middle_needs_its_guard() {
        assert_eq!(wait_for_owner_end(&b"changing\ndone\n"[..]), OwnerEnd::Done);
        assert_eq!(wait_for_owner_end(&b"done\n"[..]), OwnerEnd::Done);
        assert_eq!(wait_for_owner_end(&b""[..]), OwnerEnd::NothingChanged);
        assert_eq!(wait_for_owner_end(&b"changing\n"[..]), OwnerEnd::Abandoned);
        assert_eq!(wait_for_owner_end(&b"changing\ndon"[..]), OwnerEnd::Abandoned);
    }
}

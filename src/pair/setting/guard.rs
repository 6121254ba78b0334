//! The guard of a setting: a process that outlives its owner, and puts everything back in its place.

use super::journal::{self, Journal};
use crate::{Error, Result};
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};

/// What a guard is told before anything is changed.
const CHANGING: &[u8] = b"changing\n";
/// What a guard is told when it is not needed any more.
const DONE: &[u8] = b"done\n";

/// The owner's end.
pub(super) struct Guard {
    process: Child,
    pub(super) input: ChildStdin,
}

impl Guard {
    /// Starts it: this same binary, in a process group of its own, which no signal from a terminal reaches. It
    /// holds `held` as its standard output, where it writes nothing.
    pub(super) fn post(file: &Path, held: Option<OwnedFd>) -> Result<Self> {
        let exe = std::env::current_exe().map_err(|e| Error::file("/proc/self/exe", "reading", e))?;
        let mut command = Command::new(&exe);
        command.arg("restore").arg("--guard").arg(file);
        command.stdin(Stdio::piped()).stdout(held.map_or_else(Stdio::null, Stdio::from)).process_group(0);
        let spawned = command.spawn();
        let mut process = spawned.map_err(|e| Error::file(exe, "starting a guard of the settings", e))?;
        match process.stdin.take() {
            Some(input) => Ok(Self { process, input }),
            None => Err(Error::Died("a guard was started without its pipe".into())),
        }
    }

    /// Tells it that from here on something is to be put back.
    pub(super) fn alert(&mut self) -> Result<()> {
        let lost = |cause| Error::Kernel { call: "write to the guard of the settings".into(), cause };
        self.input.write_all(CHANGING).map_err(lost)
    }

    /// Tells it that all is done, and waits for its end.
    pub(super) fn relieve(mut self) {
        // One that has gone cannot be told, and needs not be.
        let _ = self.input.write_all(DONE);
        let _ = self.process.wait();
    }

    /// Leaves the rest to it, and waits for its end.
    pub(super) fn abandon(mut self) {
        drop(self.input);
        let _ = self.process.wait();
    }
}

/// The guard's whole life: it waits for its owner's word or end, and in the latter case puts everything back.
pub fn stand(file: &Path) -> Result<()> {
    // Read at the start: whatever becomes of the file, an owner that dies has a way back. One that has ended
    // already has removed it.
    let journal = Journal::read(file);
    match listen(std::io::stdin()) {
        Heard::Done => Ok(()),
        Heard::NothingChanged => journal::remove(file),
        Heard::Abandoned => {
            journal?.restore(None)?;
            journal::remove(file)
        }
    }
}

/// What became of the owner.
#[derive(Debug, PartialEq)]
enum Heard {
    Done,
    NothingChanged,
    Abandoned,
}

/// An owner that was killed says nothing: its end of the pipe is closed by the kernel, and that of a command
/// which it was running, when the command ends.
fn listen(mut owner: impl Read) -> Heard {
    let mut words = Vec::new();
    let mut buffer = [0; 64];
    loop {
        match owner.read(&mut buffer) {
            Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
            Ok(0) if words.is_empty() => return Heard::NothingChanged,
            Ok(0) | Err(_) => return Heard::Abandoned,
            Ok(length) => words.extend_from_slice(&buffer[..length]),
        }
        // Not only at the end of the pipe: a daemon that a command has started may keep that from coming.
        if words.ends_with(DONE) {
            return Heard::Done;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_owner_that_dies_in_the_middle_needs_its_guard() {
        assert_eq!(listen(&b"changing\ndone\n"[..]), Heard::Done);
        assert_eq!(listen(&b"done\n"[..]), Heard::Done);
        assert_eq!(listen(&b""[..]), Heard::NothingChanged);
        assert_eq!(listen(&b"changing\n"[..]), Heard::Abandoned);
        assert_eq!(listen(&b"changing\ndon"[..]), Heard::Abandoned);
    }
}

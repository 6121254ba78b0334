//! The guard of a setting: a process that restores everything if its owner dies.

use super::journal::{self, Journal};
use crate::error::{Error, Result};
use crate::platform::process::own_program_command;
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};

/// Message to the guard before anything is changed.
const CHANGING: &[u8] = b"changing\n";
/// Message to the guard when everything is restored.
const DONE: &[u8] = b"done\n";

/// The guard as its owner sees it: the process and the pipe to it.
pub(super) struct Guard {
    process: Child,
    pub(super) input: ChildStdin,
}

impl Guard {
    /// Starts the guard: this binary in its own process group, which no signal from the terminal reaches. The guard keeps the
    /// descriptor `held` open as its standard output, and writes nothing to it.
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

    /// Informs the guard that from now on there are settings to restore.
    ///
    /// # Errors
    /// The guard has ended.
    pub(super) fn announce_change(&mut self) -> Result<()> {
        let lost = |cause| Error::Kernel { call: "write to the guard of the settings".into(), cause };
        self.input.write_all(CHANGING).map_err(lost)
    }

    /// Informs the guard that everything is restored, and waits for its end.
    pub(super) fn dismiss(mut self) {
        // A guard that has ended needs no message.
        let _ = self.input.write_all(DONE);
        let _ = self.process.wait();
    }

    /// Lets the guard restore the rest, and waits for its end.
    pub(super) fn abandon(mut self) {
        drop(self.input);
        let _ = self.process.wait();
    }
}

/// The main function of the guard process. It waits for the owner's last message or death, and restores everything if the
/// owner died.
///
/// # Errors
/// The journal cannot be read, or something cannot be restored.
pub fn run_guard(file: &Path) -> Result<()> {
    // The journal is read now, in case the file is lost later. It is missing if the owner has ended already.
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

/// Waits for the owner's last message or the end of the pipe. When the owner is killed, the kernel closes the pipe as soon as
/// a command that the owner was running has ended, too.
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
        // Checked before the end of the pipe, because a daemon that a command started may hold the pipe open.
        if received.ends_with(DONE) {
            return OwnerEnd::Done;
        }
    }
}

// Runs the user's shell commands.

/// Bytes quoted from the end of a failed command's standard error.
const QUOTED: u64 = 400;

/// A shell command and its environment.
pub(super) struct Shell<'a> {
    pub(super) command: &'a str,
    /// Working directory; `None` for that of this process.
    pub(super) directory: Option<&'a Path>,
    /// The pipe to the guard, which becomes the shell's standard input. So the guard sees the end of the pipe only when the
    /// shell has ended, too. Background commands of the shell read /dev/null (POSIX) and do not hold the pipe.
    pub(super) guard: Option<&'a ChildStdin>,
    /// Whether the command runs in its own process group, which no signal from the terminal reaches.
    pub(super) apart: bool,
}

impl Shell<'_> {
    /// Runs the command and waits for the shell, but not for its background processes.
    ///
    /// # Errors
    /// The shell cannot be started, or the command fails; the sentence quotes its standard error.
    pub(super) fn run(&self) -> Result<()> {
        // The standard error goes to a file, because background processes would hold a pipe open. Without it nothing is quoted.
        let error = tempfile::tempfile().ok();
        let mut command = Command::new("sh");
        command.args(["-c", self.command]).stdin(self.standard_input()?).stdout(Stdio::null());
        let copy = error.as_ref().and_then(|file| file.try_clone().ok());
        command.stderr(copy.map_or_else(Stdio::null, Stdio::from));
        if let Some(directory) = self.directory {
            command.current_dir(directory);
        }
        if self.apart {
            command.process_group(0);
        }
        let place = self.directory.unwrap_or(Path::new("."));
        let status =
            command.status().map_err(|e| Error::file(place, "starting `sh` in this directory", e))?;
        if status.success() {
            return Ok(());
        }
        let said = error.as_ref().map(read_file_end).unwrap_or_default();
        let said = if said.trim().is_empty() { "it said nothing" } else { said.trim() };
        Err(Error::Usage(format!("`{}` failed ({status}): {said}", self.command)))
    }

    fn standard_input(&self) -> Result<Stdio> {
        use std::os::fd::AsFd;
        let Some(guard) = self.guard else { return Ok(Stdio::null()) };
        let duplicate = guard.as_fd().try_clone_to_owned();
        let refused = |cause| Error::Kernel { call: "dup of the guard's pipe".into(), cause };
        duplicate.map(Stdio::from).map_err(refused)
    }
}

/// The text at the end of the file. Reading does not move the offset at which background processes write.
fn read_file_end(file: &File) -> String {
    let length = file.metadata().map_or(0, |data| data.len());
    let mut bytes = vec![0; length.min(QUOTED) as usize];
    let read = file.read_at(&mut bytes, length.saturating_sub(QUOTED)).unwrap_or(0);
    String::from_utf8_lossy(&bytes[..read]).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_owner_that_dies_with_changed_settings_needs_its_guard() {
        assert_eq!(wait_for_owner_end(&b"changing\ndone\n"[..]), OwnerEnd::Done);
        assert_eq!(wait_for_owner_end(&b"done\n"[..]), OwnerEnd::Done);
        assert_eq!(wait_for_owner_end(&b""[..]), OwnerEnd::NothingChanged);
        assert_eq!(wait_for_owner_end(&b"changing\n"[..]), OwnerEnd::Abandoned);
        assert_eq!(wait_for_owner_end(&b"changing\ndon"[..]), OwnerEnd::Abandoned);
    }

    fn shell(command: &str) -> Shell<'_> {
        Shell { command, directory: None, guard: None, apart: false }
    }

    #[test]
    fn background_processes_of_a_command_are_not_awaited() {
        let directory = tempfile::tempdir().unwrap();
        let command = "sleep 1000 & echo $! > pid";
        Shell { directory: Some(directory.path()), ..shell(command) }.run().unwrap();
        let pid = std::fs::read_to_string(directory.path().join("pid")).unwrap();
        shell(&format!("kill {}", pid.trim())).run().expect("it still ran");
    }

    #[test]
    fn a_failure_quotes_the_standard_error() {
        let error = shell("echo before; echo why >&2; exit 3").run().unwrap_err().to_string();
        assert!(error.contains("failed (exit status: 3): why"), "{error}");
    }

    #[test]
    fn a_missing_working_directory_is_named() {
        let gone = Shell { directory: Some(Path::new("/nonexistent")), ..shell("true") };
        assert!(gone.run().unwrap_err().to_string().contains("/nonexistent"));
    }
}

//! Runs the user's shell commands.

use crate::error::{Error, Result};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{ChildStdin, Command, Stdio};

/// Bytes quoted from the end of a failed command's standard error.
const QUOTED: u64 = 400;

/// A shell command and its environment.
pub(super) struct Shell<'a> {
    pub(super) command: &'a str,
    /// Working directory; `None` for that of this process.
    pub(super) directory: Option<&'a Path>,
    /// The guard's input, which becomes the shell's standard input, so that the guard sees the end of the pipe only when
    /// the shell has ended too. Background commands of the shell read /dev/null (POSIX) and do not hold it.
    pub(super) guard: Option<&'a ChildStdin>,
    /// Whether to run in a process group of its own, which no signal from the terminal reaches.
    pub(super) apart: bool,
}

impl Shell<'_> {
    /// Runs the command and waits for the shell, but not for its background processes.
    ///
    /// # Errors
    /// The shell cannot be started, or the command fails; the sentence quotes its standard error.
    pub(super) fn run(&self) -> Result<()> {
        // A file, because a pipe stays open while background processes hold it. Without it nothing is quoted.
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

/// The end of the file, read without moving the offset at which background processes write.
fn read_file_end(file: &File) -> String {
    let length = file.metadata().map_or(0, |data| data.len());
    let mut bytes = vec![0; length.min(QUOTED) as usize];
    let read = file.read_at(&mut bytes, length.saturating_sub(QUOTED)).unwrap_or(0);
    String::from_utf8_lossy(&bytes[..read]).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(command: &str) -> Shell<'_> {
        Shell { command, directory: None, guard: None, apart: false }
    }

    #[test]
    fn what_a_command_leaves_in_the_background_is_not_waited_for() {
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
    fn a_directory_that_has_gone_is_named() {
        let gone = Shell { directory: Some(Path::new("/nonexistent")), ..shell("true") };
        assert!(gone.run().unwrap_err().to_string().contains("/nonexistent"));
    }
}

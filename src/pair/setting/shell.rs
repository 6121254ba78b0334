//! Commands of the user's, run by a shell.

use crate::{Error, Result};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{ChildStdin, Command, Stdio};

/// So many bytes of what a failing command said last on its standard error are quoted.
const LAST_WORDS: u64 = 400;

/// A command, and in what it is run.
pub(super) struct Shell<'a> {
    pub(super) words: &'a str,
    /// Ours, if there is none.
    pub(super) directory: Option<&'a Path>,
    /// The guard's input, which the shell keeps open as its own standard input, so that the guard hears the end
    /// of it only when the shell has ended too. What a shell starts in the background reads from /dev/null by
    /// POSIX, and keeps nothing open.
    pub(super) guard: Option<&'a ChildStdin>,
    /// Whether in a process group of its own, which no signal from a terminal reaches.
    pub(super) apart: bool,
}

impl Shell<'_> {
    /// Runs it, and waits for the shell alone: what it leaves in the background may live on.
    pub(super) fn run(&self) -> Result<()> {
        // A file, because a pipe has no end before all who write to it have gone. Words are not worth a failure.
        let said = tempfile::tempfile().ok();
        let mut command = Command::new("sh");
        command.args(["-c", self.words]).stdin(self.input()?).stdout(Stdio::null());
        let copy = said.as_ref().and_then(|file| file.try_clone().ok());
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
        let said = said.as_ref().map(last_words).unwrap_or_default();
        Err(Error::Usage(format!("`{}` failed ({status}): {}", self.words, said.trim())))
    }

    fn input(&self) -> Result<Stdio> {
        use std::os::fd::AsFd;
        let Some(guard) = self.guard else { return Ok(Stdio::null()) };
        let duplicate = guard.as_fd().try_clone_to_owned();
        let refused =
            |cause| Error::Kernel { call: "dup of the guard's pipe (raise `ulimit -n`)".into(), cause };
        duplicate.map(Stdio::from).map_err(refused)
    }
}

/// Read without moving the position that a process in the background may write at.
fn last_words(said: &File) -> String {
    let length = said.metadata().map_or(0, |data| data.len());
    let mut bytes = vec![0; length.min(LAST_WORDS) as usize];
    let read = said.read_at(&mut bytes, length.saturating_sub(LAST_WORDS)).unwrap_or(0);
    String::from_utf8_lossy(&bytes[..read]).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(words: &str) -> Shell<'_> {
        Shell { words, directory: None, guard: None, apart: false }
    }

    #[test]
    fn what_a_command_leaves_in_the_background_is_not_waited_for() {
        let directory = tempfile::tempdir().unwrap();
        let words = "sleep 1000 & echo $! > pid";
        Shell { directory: Some(directory.path()), ..shell(words) }.run().unwrap();
        let pid = std::fs::read_to_string(directory.path().join("pid")).unwrap();
        shell(&format!("kill {}", pid.trim())).run().expect("it still ran");
    }

    #[test]
    fn a_failure_is_told_with_its_last_words() {
        let error = shell("echo before; echo why >&2; exit 3").run().unwrap_err().to_string();
        assert!(error.contains("failed (exit status: 3): why"), "{error}");
    }

    #[test]
    fn a_directory_that_has_gone_is_named() {
        let gone = Shell { directory: Some(Path::new("/nonexistent")), ..shell("true") };
        assert!(gone.run().unwrap_err().to_string().contains("/nonexistent"));
    }
}

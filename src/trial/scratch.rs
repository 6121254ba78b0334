//! Scratch directories of measuring processes. If a process is killed, the next run removes its directory.

use crate::error::{Error, Result};
use crate::platform::control_group::memory_cgroup;
use crate::platform::process;
use nix::fcntl::{Flock, FlockArg};
use std::fs::File;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

const PREFIX: &str = "syscost-scratch-";

/// A directory of this process, removed on drop.
pub struct Scratch {
    directory: TempDir,
    _lock: Option<Flock<File>>,
}

impl Scratch {
    /// Its path.
    pub fn path(&self) -> &Path {
        self.directory.path()
    }
}

/// The parent of scratch directories: `SYSCOST_DIR`, else the temporary directory.
pub fn place() -> PathBuf {
    let given = std::env::var_os("SYSCOST_DIR").filter(|directory| !directory.is_empty());
    given.map_or_else(std::env::temp_dir, PathBuf::from)
}

/// Makes a directory below [`place`].
///
/// # Errors
/// It cannot be made.
pub fn make() -> Result<Scratch> {
    make_in(&place())
}

/// Makes a directory below this one. Its name carries the process id, so that a later run can tell whether the owner is
/// alive; it is locked too, for containers that share the directory but not the process ids.
///
/// # Errors
/// It cannot be made.
pub fn make_in(place: &Path) -> Result<Scratch> {
    let prefix = format!("{PREFIX}{}-", std::process::id());
    let directory = tempfile::Builder::new().prefix(&prefix).tempdir_in(place);
    let directory = directory.map_err(|e| Error::file(place, "making a scratch directory", e))?;
    let _lock = lock(directory.path());
    Ok(Scratch { directory, _lock })
}

fn lock(directory: &Path) -> Option<Flock<File>> {
    Flock::lock(File::open(directory).ok()?, FlockArg::LockExclusiveNonblock).ok()
}

/// Removes the scratch directories below this one, and the control groups, of processes that have ended.
pub fn sweep_up(temporary: &Path) {
    memory_cgroup::remove_left();
    let entries = std::fs::read_dir(temporary).into_iter().flatten().flatten();
    for entry in entries {
        if is_orphan(&entry.file_name().to_string_lossy()) && lock(&entry.path()).is_some() {
            // A directory of another user cannot be removed; that user's next run does it.
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}

fn is_orphan(name: &str) -> bool {
    let owner = name.strip_prefix(PREFIX).and_then(|rest| rest.split('-').next()?.parse::<u32>().ok());
    owner.is_some_and(|pid| process::began(pid).is_none())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_a_dead_process_left_is_removed() {
        let temporary = tempfile::tempdir().expect("a directory");
        let dead = temporary.path().join(format!("{PREFIX}4194305-abc")); // above the largest pid there can be
        let alive = temporary.path().join(format!("{PREFIX}{}-abc", std::process::id()));
        let elsewhere = temporary.path().join(format!("{PREFIX}4194306-abc"));
        let foreign = temporary.path().join("somebody-elses");
        for directory in [&dead, &alive, &elsewhere, &foreign] {
            std::fs::create_dir(directory).expect("made");
        }
        let _lock = lock(&elsewhere).expect("locked, as if from a container");
        sweep_up(temporary.path());
        assert!(!dead.exists() && alive.exists() && elsewhere.exists() && foreign.exists());
    }
}

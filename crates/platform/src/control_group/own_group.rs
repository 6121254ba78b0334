//! Control groups that this program makes. A process that is killed leaves its group empty, and the next run removes it.

use super::own_groups_and_ancestors;
use crate::error::{Error, Result};
use crate::kernel_files::KernelFiles;
use crate::plain_file::{self, random_word};
use crate::process;
use nix::fcntl::{Flock, FlockArg};
use std::fs::{self, File};
use std::path::{Path, PathBuf};

/// Names of groups begin so; the number of the process that made them follows, and random characters.
const PREFIX: &str = "syscost-";
/// The controllers in whose hierarchies of version 1 groups are made.
const CONTROLLERS: [&str; 2] = ["memory", "pids"];

/// A group below another one. It stays until it is removed.
#[derive(Debug)]
pub struct OwnGroup {
    directory: PathBuf,
    /// A container that shares the hierarchy does not see our process, and leaves what is locked.
    _lock: Option<Flock<File>>,
}

impl OwnGroup {
    /// Makes a group below the one in this directory.
    ///
    /// # Errors
    /// [`Error::File`] where the kernel refuses.
    pub fn create_in(parent: &Path) -> Result<Self> {
        let directory = parent.join(format!("{PREFIX}{}-{}", std::process::id(), random_word(8)));
        fs::create_dir(&directory).map_err(|e| Error::file(&directory, "making a group", e))?;
        let _lock = lock_group(&directory);
        Ok(Self { directory, _lock })
    }

    /// Its directory.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Removes it. If it is not empty, it stays, and a run after its process has ended removes it.
    pub fn remove(&self) {
        let _ = fs::remove_dir(&self.directory);
    }
}

/// Removes the groups of processes that have ended. Groups that are not empty stay.
pub fn remove_stale_groups() {
    let files = KernelFiles::live();
    for group in CONTROLLERS.iter().flat_map(|controller| own_groups_and_ancestors(&files, controller)) {
        for entry in fs::read_dir(files.path(&group.directory())).into_iter().flatten().flatten() {
            let maker = entry.file_name().to_str().and_then(maker_pid);
            let is_left = maker.is_some_and(|pid| process::process_start_ticks(pid).is_none());
            if let Some(_lock) = is_left.then(|| lock_group(&entry.path())).flatten() {
                let _ = fs::remove_dir(entry.path());
            }
        }
    }
}

/// Locks a group; `None` where another process has.
fn lock_group(group: &Path) -> Option<Flock<File>> {
    Flock::lock(plain_file::open_directory(group).ok()?, FlockArg::LockExclusiveNonblock).ok()
}

/// The process that made a group of this name.
fn maker_pid(name: &str) -> Option<u32> {
    name.strip_prefix(PREFIX)?.split_once('-')?.0.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control_group::own_groups;

    #[test]
    fn the_name_of_a_group_tells_its_maker() {
        assert_eq!(maker_pid("syscost-17-0k3x9q"), Some(17));
        assert_eq!((maker_pid("syscost-test-17-0"), maker_pid("docker-17-0")), (None, None));
    }

    #[test]
    fn only_groups_of_processes_that_have_ended_are_removed() {
        for controller in CONTROLLERS {
            for parent in own_groups(&KernelFiles::live(), controller) {
                let parent = PathBuf::from(parent.directory());
                let Ok(living) = OwnGroup::create_in(&parent) else {
                    println!("skipped: no control group can be made in {}", parent.display());
                    continue;
                };
                // No process has a number above the largest that the kernel gives, 2^22.
                let stale = parent.join(format!("{PREFIX}4194305-{}", random_word(8)));
                fs::create_dir(&stale).expect("made");
                remove_stale_groups();
                assert_eq!((living.directory().exists(), stale.exists()), (true, false));
                living.remove();
                assert!(!living.directory().exists());
            }
        }
    }
}

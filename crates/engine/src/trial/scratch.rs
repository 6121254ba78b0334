//! Scratch directories of measuring processes. If a process is killed, the next run of the same user removes its
//! directory. The place is shared with other users, so a matching name alone is no reason to remove a directory.

use crate::error::{Error, Result};
use crate::platform::control_group::own_group;
use crate::platform::volume::{self, Medium};
use crate::platform::{plain_file, process};
use nix::fcntl::{Flock, FlockArg};
use std::fs::{File, Metadata};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

const PREFIX: &str = "syscost-scratch-";

/// Attempts to make a directory that no other run removes as an orphan. The limit is needed because some file
/// systems change the inode number at every look, so that the check fails each time.
const TRIES: u32 = 3;

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

/// The parent of scratch directories: `SYSCOST_DIR`, else the [default_parent] one.
pub fn scratch_parent() -> PathBuf {
    let given = std::env::var_os("SYSCOST_DIR").filter(|directory| !directory.is_empty());
    given.map_or_else(default_parent, PathBuf::from)
}

/// The temporary directory. If it cannot be written and TMPDIR names none, another writable directory. If it is in memory, as
/// on several distributions, a writable directory on a disk, if there is one: cases time reads and writes of files there.
pub fn default_parent() -> PathBuf {
    let temporary = std::env::temp_dir();
    let is_named = std::env::var_os("TMPDIR").is_some_and(|directory| !directory.is_empty());
    if is_named { avoid_memory_filesystem(temporary) } else { usual_parent(temporary) }
}

fn usual_parent(temporary: PathBuf) -> PathBuf {
    let is_usable = volume::is_writable_directory(&temporary);
    let other = if is_usable { None } else { volume::find_writable_directory() };
    avoid_memory_filesystem(other.unwrap_or(temporary))
}

fn avoid_memory_filesystem(temporary: PathBuf) -> PathBuf {
    match volume::filesystem_and_medium(&temporary).1 {
        Medium::Memory => volume::find_disk_directory(0).unwrap_or(temporary),
        _ => temporary,
    }
}

/// A sentence if the [default_parent] place is not the temporary directory.
pub fn moved_sentence() -> Option<String> {
    let (temporary, usual) = (std::env::temp_dir(), default_parent());
    let what = if volume::is_writable_directory(&temporary) { "is memory" } else { "cannot be written" };
    (usual != temporary).then(|| {
        format!(
            "the temporary directory {} {what}, so the files of cases are made in {} (SYSCOST_DIR names another)",
            temporary.display(),
            usual.display()
        )
    })
}

/// Makes a directory below [`scratch_parent`].
///
/// # Errors
/// It cannot be made.
pub fn make_directory() -> Result<Scratch> {
    make_directory_in(&scratch_parent())
}

/// Makes a directory below this one. Its name carries the process id, so that a later run can tell whether the owner is
/// alive; it is locked too, for containers that share the directory but not the process ids.
///
/// # Errors
/// It cannot be made.
pub fn make_directory_in(place: &Path) -> Result<Scratch> {
    let prefix = format!("{PREFIX}{}-", std::process::id());
    let mut tries = 0;
    loop {
        let directory = tempfile::Builder::new().prefix(&prefix).tempdir_in(place);
        let directory = directory.map_err(|e| Error::file(place, "making a scratch directory", e))?;
        let _lock = lock_directory(directory.path());
        tries += 1;
        // A run in another container may have taken it for an orphan before it was locked.
        if is_still_ours(_lock.as_deref(), directory.path()) || tries == TRIES {
            return Ok(Scratch { directory, _lock });
        }
    }
}

/// The path beside a scratch directory to which it may be renamed under this key, so that directories of other processes have the
/// same path at other times. No process has the number 0, so the directory is an orphan once no process holds its lock.
pub fn common_path(scratch: &Path, key: &str) -> PathBuf {
    scratch.with_file_name(format!("{PREFIX}0-{key}"))
}

/// Checks that a directory can be made below this one, by making and removing one.
///
/// # Errors
/// It cannot be made.
pub fn check_writable(place: &Path) -> Result<()> {
    let made = make_directory_in(place)?;
    // Removing an empty directory takes no descriptor, and none may be left. If this fails, the drop removes the directory.
    let _ = std::fs::remove_dir(made.path());
    Ok(())
}

fn is_still_ours(locked: Option<&File>, directory: &Path) -> bool {
    locked.map_or(directory.is_dir(), |file| plain_file::is_still_at(file, directory))
}

/// Locks a directory of this user. `None` if it is another user's, not a directory, or locked already.
fn lock_directory(directory: &Path) -> Option<Flock<File>> {
    Flock::lock(plain_file::open_own(directory, Metadata::is_dir)?, FlockArg::LockExclusiveNonblock).ok()
}

/// Removes the scratch directories below this one, and the control groups, of this user's processes that have ended.
pub fn remove_orphans(temporary: &Path) {
    own_group::remove_stale_groups();
    let entries = std::fs::read_dir(temporary).into_iter().flatten().flatten();
    for entry in entries.filter(|entry| is_orphan(&entry.file_name().to_string_lossy())) {
        let directory = entry.path();
        if let Some(locked) =
            lock_directory(&directory).filter(|locked| plain_file::is_still_at(locked, &directory))
        {
            remove_contents(&locked);
            // This removes only an empty directory: another one that was put there meanwhile keeps its contents.
            let _ = std::fs::remove_dir(&directory);
        }
    }
}

/// Removes the contents of the locked directory, even if its path names another directory by now.
fn remove_contents(locked: &File) {
    let inside = PathBuf::from(format!("/proc/self/fd/{}", locked.as_raw_fd()));
    for entry in std::fs::read_dir(inside).into_iter().flatten().flatten() {
        let is_directory = entry.file_type().is_ok_and(|kind| kind.is_dir());
        // A directory stays if a file in it cannot be removed.
        let _ = if is_directory {
            std::fs::remove_dir_all(entry.path())
        } else {
            std::fs::remove_file(entry.path())
        };
    }
}

fn is_orphan(name: &str) -> bool {
    let owner = name.strip_prefix(PREFIX).and_then(|rest| rest.split('-').next()?.parse::<u32>().ok());
    owner.is_some_and(|pid| process::process_start_ticks(pid).is_none())
}

#[cfg(test)]
mod tests {
    use super::*;
    use syscost_platform::testing::print_skipped;

    #[test]
    fn a_disk_directory_is_preferred_to_a_temporary_directory_in_memory() {
        let shared = PathBuf::from("/dev/shm");
        if volume::filesystem_and_medium(&shared).1 != Medium::Memory {
            print_skipped("/dev/shm is no file system in memory here");
            return;
        }
        assert_eq!(avoid_memory_filesystem(shared.clone()), volume::find_disk_directory(0).unwrap_or(shared));
        assert_eq!(avoid_memory_filesystem("/proc".into()), Path::new("/proc"), "what is no memory stays");
    }

    #[test]
    fn without_a_temporary_directory_another_one_is_taken() {
        let absent = PathBuf::from("/there/is/no/such/directory");
        let found = usual_parent(absent.clone());
        assert!(found != absent && volume::is_writable_directory(&found), "{}", found.display());
    }

    #[test]
    fn only_unlocked_directories_of_ended_processes_are_removed() {
        let temporary = tempfile::tempdir().expect("a directory");
        let dead = temporary.path().join(format!("{PREFIX}4194305-abc")); // above the largest pid there can be
        let alive = temporary.path().join(format!("{PREFIX}{}-abc", std::process::id()));
        let elsewhere = temporary.path().join(format!("{PREFIX}4194306-abc"));
        let foreign = temporary.path().join("foreign");
        for directory in [&dead, &alive, &elsewhere, &foreign] {
            std::fs::create_dir(directory).expect("made");
        }
        let _lock = lock_directory(&elsewhere).expect("locked, as if from a container");
        remove_orphans(temporary.path());
        assert!(!dead.exists() && alive.exists() && elsewhere.exists() && foreign.exists());
    }

    #[test]
    fn pipes_links_and_files_with_a_matching_name_are_left_alone() {
        let temporary = tempfile::tempdir().expect("a directory");
        let named = |end: &str| temporary.path().join(format!("{PREFIX}4194305-{end}"));
        let treasure = temporary.path().join("treasure");
        std::fs::create_dir_all(treasure.join("deep")).expect("made");
        nix::unistd::mkfifo(&named("pipe"), nix::sys::stat::Mode::S_IRWXU).expect("made");
        std::os::unix::fs::symlink(&treasure, named("link")).expect("linked");
        std::fs::write(named("file"), "").expect("written");
        std::fs::create_dir_all(named("ours").join("deep/er")).expect("made");
        std::os::unix::fs::symlink(&treasure, named("ours").join("link")).expect("linked");
        remove_orphans(temporary.path());
        assert!(treasure.join("deep").exists() && !named("ours").exists());
        assert!(["pipe", "link", "file"].iter().all(|end| named(end).symlink_metadata().is_ok()));
    }
}

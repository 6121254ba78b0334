//! Temporary files in the directory of the file that they become. They are removed with their writer, or, if it was
//! killed, by the next writer in the same directory.

use crate::platform::plain_file;
use nix::fcntl::{Flock, FlockArg};
use std::fs::{File, Metadata, Permissions};
use std::io::Result;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use tempfile::NamedTempFile;

const PREFIX: &str = ".syscost-";

/// Files that are made until one is not taken for an orphan: some file systems number a file anew at every look.
const TRIES: u32 = 3;

/// A file of this process alone.
pub struct Temporary {
    pub file: NamedTempFile,
    _lock: Option<Flock<File>>,
}

/// A fresh file in this directory. Its name carries our pid, so that a later writer can tell whether its owner
/// is alive; it is locked too, because a container that shares the directory does not see our pid.
pub fn create_temporary(directory: &Path) -> Result<Temporary> {
    remove_orphans(directory);
    let mut tries = 0;
    loop {
        // Temporary files are private by default; for a record the umask decides, as for any file.
        let file = tempfile::Builder::new()
            .prefix(&format!("{PREFIX}{}-", std::process::id()))
            .permissions(Permissions::from_mode(0o666))
            .tempfile_in(directory)?;
        let _lock = file.as_file().try_clone().ok().and_then(try_lock);
        tries += 1;
        // A writer in another container may have taken it for an orphan before it was locked.
        if plain_file::is_still_at(file.as_file(), file.path()) || tries == TRIES {
            return Ok(Temporary { file, _lock });
        }
    }
}

fn try_lock(file: File) -> Option<Flock<File>> {
    Flock::lock(file, FlockArg::LockExclusiveNonblock).ok()
}

/// Removes this user's files of processes that have ended.
fn remove_orphans(directory: &Path) {
    for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
        if !is_orphan(&entry.file_name().to_string_lossy()) {
            continue;
        }
        let path = entry.path();
        let locked = plain_file::open_own(&path, Metadata::is_file).and_then(try_lock);
        if locked.is_some_and(|locked| plain_file::is_still_at(&locked, &path)) {
            // The next writer tries again if this fails.
            let _ = std::fs::remove_file(&path);
        }
    }
}

fn is_orphan(name: &str) -> bool {
    let owner = name.strip_prefix(PREFIX).and_then(|rest| rest.split('-').next()?.parse::<u32>().ok());
    owner.is_some_and(|pid| !Path::new(&format!("/proc/{pid}")).exists())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_a_dead_writer_left_is_removed() {
        let home = tempfile::tempdir().unwrap();
        let dead = home.path().join(format!("{PREFIX}4194305-abc")); // above the largest pid there can be
        let elsewhere = home.path().join(format!("{PREFIX}4194306-abc"));
        let foreign = home.path().join(".foreign");
        for file in [&dead, &elsewhere, &foreign] {
            std::fs::write(file, "half").unwrap();
        }
        let pipe = home.path().join(format!("{PREFIX}4194305-pipe"));
        nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
        let _lock = try_lock(File::open(&elsewhere).unwrap()).expect("locked, as if from a container");
        let ours = create_temporary(home.path()).unwrap();
        let _another = create_temporary(home.path()).unwrap();
        assert!(!dead.exists() && ours.file.path().exists() && elsewhere.exists() && foreign.exists());
        assert!(pipe.exists(), "a pipe is never opened");
    }
}

//! Writes files whole or not at all, and reads them up to a size limit.

use crate::error::{Error, Result};
use crate::platform::plain_file;
use nix::fcntl::{Flock, FlockArg};
use std::fs::{File, Metadata, Permissions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

/// The largest file that is read, in bytes. A full run has about one megabyte. A file beyond the limit is not ours, and
/// reading it into memory would disturb the machine under measurement.
pub const LIMIT: u64 = 64 << 20;

/// Replaces the content of `path`. At any time and after any crash a reader finds the old content or the new one. The
/// bytes are first synced under another name; then the file is renamed, and the directory is synced.
///
/// # Errors
/// The directory cannot be created, the file cannot be written, or the path names a device, a pipe or a directory.
pub fn replace_file(path: &Path, bytes: &[u8]) -> Result<()> {
    plain_file::check_write_target(path)?;
    let temporary = write(path, bytes)?;
    let put = temporary.file.persist(path);
    put.map_err(|e| Error::file(path, "putting the new file in place", e.error))?;
    sync_directory(path)
}

/// Creates the file `path` with these bytes, whole or not at all, and never replaces an existing file.
///
/// # Errors
/// There is a file of this name, or it cannot be written.
pub fn create_file(path: &Path, bytes: &[u8]) -> Result<()> {
    if create_unless_taken(path, bytes)? { Ok(()) } else { Err(name_taken_error(path)) }
}

/// As [`create_file`], but returns false if there is a file of this name.
///
/// # Errors
/// It cannot be written.
pub fn create_unless_taken(path: &Path, bytes: &[u8]) -> Result<bool> {
    let temporary = write(path, bytes)?;
    match temporary.file.persist_noclobber(path) {
        Ok(_) => sync_directory(path).map(|()| true),
        Err(e) if e.error.kind() == ErrorKind::AlreadyExists => Ok(false),
        Err(e) => claim_name_and_persist(e.file, path),
    }
}

/// Claims the name with an empty file and renames the new file over it. Some file systems of containers and USB sticks have
/// neither hard links nor a rename that fails if the target exists.
fn claim_name_and_persist(file: NamedTempFile, path: &Path) -> Result<bool> {
    match plain_file::create_new(path) {
        Ok(_) => (),
        Err(e) if e.kind() == ErrorKind::AlreadyExists => return Ok(false),
        Err(e) => return Err(Error::file(path, "creating", e)),
    }
    file.persist(path).map_err(|e| {
        // The empty file is this process' own, and would be taken for a damaged record.
        let _ = std::fs::remove_file(path);
        Error::file(path, "putting the new file in place", e.error)
    })?;
    sync_directory(path).map(|()| true)
}

/// A file that one process writes repeatedly: the first write creates it, and each later write replaces it.
#[derive(Debug, Default)]
pub struct OwnFile(Option<PathBuf>);

impl OwnFile {
    /// Writes the file, whole or not at all.
    ///
    /// # Errors
    /// The file cannot be written, or exists already at the first write.
    pub fn write(&mut self, path: &Path, bytes: &[u8]) -> Result<()> {
        if self.0.as_deref() == Some(path) {
            return replace_file(path, bytes);
        }
        create_file(path, bytes).map(|()| self.0 = Some(path.into()))
    }
}

/// Checks before a long measurement that [`create_file`] will be able to write.
///
/// # Errors
/// The name is taken, the directory cannot be written to, or the disk is full.
pub fn check_creatable(path: &Path) -> Result<()> {
    // A dangling link takes the name as well.
    if path.symlink_metadata().is_ok() {
        return Err(name_taken_error(path));
    }
    write(path, &TRIAL_BYTES).map(drop)
}

/// Content of trial files: about as long as a record of a few processes.
static TRIAL_BYTES: [u8; 64 << 10] = [0; 64 << 10];

/// Checks before a long measurement that a file can be made in this directory, by making and removing one.
///
/// # Errors
/// The directory cannot be made or written to, or the disk is full.
pub fn check_writable(directory: &Path) -> Result<()> {
    // The file is not synced: that may take longer than all other checks before a run.
    write_temporary(&directory.join("a file"), &TRIAL_BYTES).map(drop)
}

fn name_taken_error(path: &Path) -> Error {
    Error::Usage(format!(
        "{}: there is a file of this name, and a record never replaces another: choose another name, or remove \
         that one first",
        path.display()
    ))
}

/// Writes these bytes to a temporary file beside `path`, and syncs it to the disk.
fn write(path: &Path, bytes: &[u8]) -> Result<Temporary> {
    let temporary = write_temporary(path, bytes)?;
    let synced = temporary.file.as_file().sync_all();
    synced.map(|()| temporary).map_err(|cause| Error::file(path, "bringing it to the disk", cause))
}

/// Writes these bytes to a temporary file beside `path`, without waiting for the disk.
fn write_temporary(path: &Path, bytes: &[u8]) -> Result<Temporary> {
    let directory = parent_directory(path);
    std::fs::create_dir_all(directory).map_err(|e| Error::file(directory, "creating the directory", e))?;
    let failed = |doing| move |cause| Error::file(path, doing, cause);
    let mut temporary = create_temporary(directory).map_err(failed("creating a temporary file beside it"))?;
    temporary.file.write_all(bytes).map_err(failed("writing"))?;
    Ok(temporary)
}

fn sync_directory(path: &Path) -> Result<()> {
    let directory = parent_directory(path);
    let synced = plain_file::open_directory(directory).and_then(|d| d.sync_all());
    synced.map_err(|e| Error::file(directory, "bringing the directory to the disk", e))
}

/// The directory of this file; `.` for a bare file name, whose parent is empty.
fn parent_directory(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Reads the whole file.
///
/// # Errors
/// The file cannot be read, is no plain file, or is larger than [`LIMIT`].
pub fn read(path: &Path) -> Result<Vec<u8>> {
    plain_file::read(path, LIMIT)
}

// Temporary files in the directory of the file that they become. They are removed when their writer ends or, if it was
// killed, by the next writer in the same directory.

const PREFIX: &str = ".syscost-";

/// The most files that are made until one still has its name. Some file systems give a file a new number at every look.
const TRIES: u32 = 3;

/// A temporary file of this process, with its lock.
struct Temporary {
    file: NamedTempFile,
    _lock: Option<Flock<File>>,
}

/// Makes a fresh file in this directory. Its name has our pid, so that a later writer can tell whether the owner is
/// alive. It is locked, too, because a container that shares the directory does not see our pid.
fn create_temporary(directory: &Path) -> io::Result<Temporary> {
    remove_orphans(directory);
    let mut tries = 0;
    loop {
        // Temporary files are private by default. A record gets the rights that the umask leaves, as any file does.
        let file = tempfile::Builder::new()
            .prefix(&format!("{PREFIX}{}-", std::process::id()))
            .permissions(Permissions::from_mode(0o666))
            .tempfile_in(directory)?;
        let _lock = file.as_file().try_clone().ok().and_then(try_lock);
        tries += 1;
        // A writer in another container may have removed the file as an orphan before it was locked.
        if plain_file::is_still_at(file.as_file(), file.path()) || tries == TRIES {
            return Ok(Temporary { file, _lock });
        }
    }
}

fn try_lock(file: File) -> Option<Flock<File>> {
    Flock::lock(file, FlockArg::LockExclusiveNonblock).ok()
}

/// Removes this user's temporary files of processes that have ended.
fn remove_orphans(directory: &Path) {
    for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
        if !is_orphan(&entry.file_name().to_string_lossy()) {
            continue;
        }
        let path = entry.path();
        let locked = plain_file::open_own(&path, Metadata::is_file).and_then(try_lock);
        if locked.is_some_and(|locked| plain_file::is_still_at(&locked, &path)) {
            // If this fails, the next writer tries again.
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
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_file_is_replaced_and_nothing_is_left_beside_it() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("deep/er/file.json");
        replace_file(&path, b"old").unwrap();
        replace_file(&path, b"new").unwrap();
        assert_eq!(read(&path).unwrap(), b"new");
        assert_eq!(std::fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
    }

    #[test]
    fn a_new_file_is_made_once_and_never_in_place_of_another() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("deep/er/file.syscost");
        check_creatable(&path).unwrap();
        create_file(&path, b"first").unwrap();
        for refused in [check_creatable(&path), create_file(&path, b"second")] {
            let message = refused.unwrap_err().to_string();
            assert!(message.contains("file.syscost: there is a file of this name"), "{message}");
        }
        assert_eq!(read(&path).unwrap(), b"first");
        let link = home.path().join("link");
        std::os::unix::fs::symlink("nowhere", &link).unwrap();
        assert!(check_creatable(&link).is_err() && create_file(&link, b"x").is_err());
        assert_eq!(std::fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
    }

    #[test]
    fn later_writes_of_an_own_file_replace_it_and_no_other_file() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("file.json");
        let mut own = OwnFile::default();
        own.write(&path, b"short").unwrap();
        own.write(&path, b"longer").unwrap();
        assert!(OwnFile::default().write(&path, b"another").is_err());
        assert_eq!(read(&path).unwrap(), b"longer");
    }

    #[test]
    fn a_name_is_taken_once_where_there_are_no_links() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("file.json");
        let put = |bytes| claim_name_and_persist(write(&path, bytes).unwrap().file, &path).unwrap();
        assert_eq!((put(b"first"), put(b"second")), (true, false));
        assert_eq!(read(&path).unwrap(), b"first");
    }

    #[test]
    fn a_written_file_has_the_rights_that_the_umask_leaves() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("file.json");
        replace_file(&path, b"").unwrap();
        let plain = home.path().join("plain");
        std::fs::write(&plain, b"").unwrap();
        let mode = |path: &Path| path.metadata().unwrap().permissions().mode();
        assert_eq!(mode(&path), mode(&plain));
    }

    #[test]
    fn a_file_above_the_limit_is_refused() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("large.json");
        std::fs::File::create(&path).unwrap().set_len(LIMIT + 1).unwrap();
        let message = read(&path).unwrap_err().to_string();
        assert!(message.contains("large.json") && message.contains("64 MiB"), "{message}");
    }

    #[test]
    fn a_directory_in_the_way_is_named() {
        let home = tempfile::tempdir().unwrap();
        let message = replace_file(home.path(), b"x").unwrap_err().to_string();
        assert!(message.contains(home.path().to_str().unwrap()), "{message}");
    }

    #[test]
    fn only_unlocked_files_of_dead_writers_are_removed() {
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

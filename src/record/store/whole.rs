//! Files that are there whole or not at all, and reading that cannot be made to eat the memory.

use crate::{Error, Result};
use std::fs::{File, Permissions};
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// The largest file that is read, in bytes. A full run is about one megabyte; what is above this bound
/// was not written by us, and reading it into memory would disturb the very machine under measurement.
pub const LIMIT: u64 = 64 << 20;

/// Replaces `path` by these bytes. Whoever opens it, at any time and after any crash, finds the old
/// content or the new: the bytes reach the disk under another name first, and the directory after.
pub fn replace(path: &Path, bytes: &[u8]) -> Result<()> {
    // The parent of a bare file name is empty, which names no directory.
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let directory = parent.unwrap_or(Path::new("."));
    std::fs::create_dir_all(directory).map_err(|e| Error::file(directory, "creating the directory", e))?;
    let failed = |doing| move |cause| Error::file(path, doing, cause);
    // A temporary file is private by default, and a record is not: the umask decides, as for any file.
    let mut file = tempfile::Builder::new()
        .permissions(Permissions::from_mode(0o666))
        .tempfile_in(directory)
        .map_err(failed("creating a temporary file beside it"))?;
    file.write_all(bytes).map_err(failed("writing"))?;
    file.as_file().sync_all().map_err(failed("bringing it to the disk"))?;
    file.persist(path).map_err(|e| Error::file(path, "putting the new file in place", e.error))?;
    let parent = File::open(directory).and_then(|d| d.sync_all());
    parent.map_err(|e| Error::file(directory, "bringing the directory to the disk", e))
}

/// The whole file, unless it is above [`LIMIT`].
pub fn read(path: &Path) -> Result<Vec<u8>> {
    let file = File::open(path).map_err(|e| Error::file(path, "opening", e))?;
    let mut bytes = Vec::new();
    // One byte more than allowed tells a file that grows, or a device that never ends, from one that fits.
    file.take(LIMIT + 1).read_to_end(&mut bytes).map_err(|e| Error::file(path, "reading", e))?;
    if bytes.len() as u64 > LIMIT {
        return Err(Error::Content {
            path: path.into(),
            field: "size".into(),
            expected: format!("at most {} MiB", LIMIT >> 20),
            found: "more".into(),
            remedy: "this is no file of ours: name another one, or delete it".into(),
        });
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_replaced_and_nothing_is_left_beside_it() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("deep/er/file.json");
        replace(&path, b"old").unwrap();
        replace(&path, b"new").unwrap();
        assert_eq!(read(&path).unwrap(), b"new");
        assert_eq!(std::fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
    }

    #[test]
    fn others_may_read_what_was_written() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("file.json");
        replace(&path, b"").unwrap();
        let plain = home.path().join("plain");
        std::fs::write(&plain, b"").unwrap();
        let mode = |path: &Path| path.metadata().unwrap().permissions().mode();
        assert_eq!(mode(&path), mode(&plain));
    }

    #[test]
    fn an_endless_file_is_refused() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("large.json");
        File::create(&path).unwrap().set_len(LIMIT + 1).unwrap();
        let message = read(&path).unwrap_err().to_string();
        assert!(message.contains("large.json") && message.contains("64 MiB"), "{message}");
    }

    #[test]
    fn a_directory_in_the_way_is_named() {
        let home = tempfile::tempdir().unwrap();
        let message = replace(home.path(), b"x").unwrap_err().to_string();
        assert!(message.contains(home.path().to_str().unwrap()), "{message}");
    }
}

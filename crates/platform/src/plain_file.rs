//! Opening files that a user names, or that lie where other users can put some. Only plain files are opened, because a
//! named pipe makes its opener wait for ever, and a device may have no end. Reads have a limit: a file may exceed the memory.

use crate::error::{Error, Result};
use std::fs::{File, FileType, Metadata, OpenOptions};
use std::hash::{BuildHasher, RandomState};
use std::io::{self, Read};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::time::Instant;

/// Opening does not wait, the file does not become the controlling terminal, and exec closes it.
const FLAGS: i32 = libc::O_NONBLOCK | libc::O_NOCTTY | libc::O_CLOEXEC;

/// Opens a plain file for reading.
///
/// # Errors
/// It cannot be opened, or is no plain file.
pub fn open(path: &Path) -> Result<File> {
    let opening = |cause| Error::file(path, "opening", cause);
    // Checked before opening, too: opening a device or a pipe has an effect at its other end.
    check_is_plain(path, std::fs::metadata(path).map_err(opening)?.file_type())?;
    let file = OpenOptions::new().read(true).custom_flags(FLAGS).open(path).map_err(opening)?;
    check_is_plain(path, file.metadata().map_err(opening)?.file_type())?;
    Ok(file)
}

/// Opens a plain file, or makes a new one, to write at its end.
///
/// # Errors
/// It cannot be opened, or is no plain file.
pub fn open_to_append(path: &Path) -> Result<File> {
    // If the metadata cannot be read, the opening that follows reports the error.
    std::fs::metadata(path).map_or(Ok(()), |about| check_is_plain(path, about.file_type()))?;
    let opened = OpenOptions::new().append(true).create(true).custom_flags(FLAGS).open(path);
    let file = opened.map_err(|e| Error::file(path, "opening", e))?;
    check_is_plain(path, file.metadata().map_err(|e| Error::file(path, "opening", e))?.file_type())?;
    Ok(file)
}

/// Checks that [`open_to_append`] will open this file. A file that the check makes is removed.
///
/// # Errors
/// As those of [`open_to_append`].
pub fn check_can_append(path: &Path) -> Result<()> {
    let is_new = path.symlink_metadata().is_err();
    let is_empty = open_to_append(path)?.metadata().is_ok_and(|about| about.len() == 0);
    if is_new && is_empty {
        std::fs::remove_file(path).map_err(|e| Error::file(path, "removing", e))?;
    }
    Ok(())
}

/// Makes a new file to write, exclusively.
///
/// # Errors
/// A file of this name exists, or it cannot be made.
pub fn create_new(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).custom_flags(FLAGS).open(path)
}

/// Reads a plain file of at most `most` bytes. A larger file is refused.
///
/// # Errors
/// It cannot be read, is no plain file, or is larger.
pub fn read(path: &Path, most: u64) -> Result<Vec<u8>> {
    read_open(open(path)?, path, most)
}

/// As [`read`], for a file that is open; `path` is for the message.
///
/// # Errors
/// It cannot be read, or is larger.
pub fn read_open(file: File, path: &Path, most: u64) -> Result<Vec<u8>> {
    let reading = |cause| Error::file(path, "reading", cause);
    if file.metadata().map_err(reading)?.len() > most {
        return Err(too_large_error(path, most));
    }
    let mut bytes = Vec::new();
    // One byte more, to notice a file that grows.
    file.take(most + 1).read_to_end(&mut bytes).map_err(reading)?;
    if bytes.len() as u64 > most { Err(too_large_error(path, most)) } else { Ok(bytes) }
}

/// Random bits for a name that no other process chooses: process numbers repeat in containers, and so do seconds.
pub fn random_bits() -> u64 {
    // The keys come from the kernel's random numbers, once per thread. A forked child inherits them, but has another number.
    RandomState::new().hash_one((std::process::id(), Instant::now()))
}

/// At most 12 random characters for a name, of 5 bits each: digits and small letters except `i`, `l`, `o` and `u`.
pub fn random_word(characters: u32) -> String {
    const SYMBOLS: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
    let bits = random_bits();
    let symbol = |at| char::from(SYMBOLS[(bits >> (5 * at)) as usize % SYMBOLS.len()]);
    (0..characters.min(12)).map(symbol).collect()
}

/// Refuses a path that names something other than a plain file, because writing would replace it. A symbolic link
/// is refused too: `/dev/stdout` may lead to a plain file.
///
/// # Errors
/// There is a directory, a link, a pipe, a socket or a device.
pub fn check_write_target(path: &Path) -> Result<()> {
    // If the metadata cannot be read, the writing that follows reports the error.
    path.symlink_metadata().map_or(Ok(()), |about| check_is_plain(path, about.file_type()))
}

/// Opens a directory, and nothing else of that name.
///
/// # Errors
/// It cannot be opened, or is no directory.
pub fn open_directory(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).custom_flags(FLAGS | libc::O_DIRECTORY).open(path)
}

/// Opens a file or directory that this user owns. `None` for a symbolic link, another owner, or an unwanted kind.
pub fn open_own(path: &Path, is_wanted: impl Fn(&Metadata) -> bool) -> Option<File> {
    let named = path.symlink_metadata().ok().filter(|about| is_owned_by_user(about) && is_wanted(about))?;
    let file = OpenOptions::new().read(true).custom_flags(FLAGS | libc::O_NOFOLLOW).open(path).ok()?;
    let about = file.metadata().ok().filter(|about| is_owned_by_user(about) && is_wanted(about))?;
    ((about.dev(), about.ino()) == (named.dev(), named.ino())).then_some(file)
}

/// Whether the path still names this open file.
pub fn is_still_at(file: &File, path: &Path) -> bool {
    let both = file.metadata().ok().zip(path.symlink_metadata().ok());
    both.is_some_and(|(open, named)| (open.dev(), open.ino()) == (named.dev(), named.ino()))
}

fn is_owned_by_user(about: &Metadata) -> bool {
    about.uid() == nix::unistd::geteuid().as_raw()
}

fn check_is_plain(path: &Path, kind: FileType) -> Result<()> {
    let found = match kind {
        kind if kind.is_file() => return Ok(()),
        kind if kind.is_dir() => "a directory",
        kind if kind.is_symlink() => "a symbolic link",
        kind if kind.is_fifo() => "a FIFO",
        kind if kind.is_socket() => "a socket",
        kind if kind.is_char_device() => "a character device",
        _ => "a block device",
    };
    let remedy = "name another one, or copy its content to a plain file first";
    Err(Error::invalid_content(path, "its kind", "a plain file", found, remedy))
}

fn too_large_error(path: &Path, most: u64) -> Error {
    let most = if most < 1 << 20 { format!("{most} bytes") } else { format!("{} MiB", most >> 20) };
    let remedy = "this is no file of ours: name another one, or delete it";
    Error::invalid_content(path, "size", format!("at most {most}"), "more", remedy)
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::sys::stat::Mode;

    #[test]
    fn only_a_plain_file_is_opened() {
        let home = tempfile::tempdir().expect("a directory");
        let pipe = home.path().join("pipe");
        nix::unistd::mkfifo(&pipe, Mode::S_IRWXU).expect("made");
        for (path, found) in
            [(&*pipe, "a FIFO"), (home.path(), "a directory"), (Path::new("/dev/zero"), "a character device")]
        {
            for refused in
                [read(path, 10).map(drop), open_to_append(path).map(drop), check_write_target(path)]
            {
                let sentence = refused.expect_err("no plain file").to_string();
                assert!(sentence.contains(&format!("expected a plain file, found {found}")), "{sentence}");
            }
        }
    }

    #[test]
    fn random_words_differ() {
        let words: std::collections::HashSet<_> = (0..1_000).map(|_| random_word(8)).collect();
        assert!(words.len() == 1_000 && words.iter().all(|word| word.len() == 8));
    }

    #[test]
    fn a_file_is_read_up_to_its_limit() {
        let home = tempfile::tempdir().expect("a directory");
        let path = home.path().join("file");
        std::fs::write(&path, "four").expect("written");
        assert_eq!(read(&path, 4).expect("small"), b"four");
        assert!(read(&path, 3).expect_err("large").to_string().contains("at most 3 bytes"));
        assert!(
            read(&home.path().join("none"), 3).expect_err("missing").to_string().contains("none: opening")
        );
    }

    #[test]
    fn a_symbolic_link_is_not_opened_as_our_file() {
        let home = tempfile::tempdir().expect("a directory");
        let (path, link) = (home.path().join("file"), home.path().join("link"));
        std::fs::write(&path, "").expect("written");
        std::os::unix::fs::symlink(&path, &link).expect("linked");
        let file = open_own(&path, Metadata::is_file).expect("ours");
        assert!(is_still_at(&file, &path) && !is_still_at(&file, &link));
        assert!(open_own(&link, Metadata::is_file).is_none() && open_own(&path, Metadata::is_dir).is_none());
    }
}

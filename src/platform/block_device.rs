//! What a directory's files lie on: a disk, memory, or a file of another file system, whose cache keeps what ours
//! gives up.

use nix::sys::statfs::{FsType, TMPFS_MAGIC, statfs};
use nix::sys::statvfs::statvfs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Of linux/magic.h, which nix does not have.
const RAMFS_MAGIC: FsType = FsType(0x8584_58f6);
/// One disk may lie on another, a loop device on a loop device: further down nobody looks.
const DEPTH: usize = 8;

/// Why no file of this directory is read from a disk. `None` where one is, or where it cannot be told.
pub fn no_disk(directory: &Path) -> Option<String> {
    below(Path::new("/"), directory, DEPTH)
}

fn below(root: &Path, directory: &Path, depth: usize) -> Option<String> {
    let kind = statfs(directory).ok()?.filesystem_type();
    if kind == TMPFS_MAGIC || kind == RAMFS_MAGIC {
        let name = if kind == TMPFS_MAGIC { "tmpfs" } else { "ramfs" };
        return Some(format!("{} is on {name}, whose files are memory", directory.display()));
    }
    let device = std::fs::metadata(directory).ok()?.dev();
    let number = format!("{}:{}", libc::major(device), libc::minor(device));
    if libc::major(device) > 0 {
        return of_block_device(root, &number, depth);
    }
    // A file system without a device of its own says in its options, or by its source, what it lies on.
    let mounts = std::fs::read_to_string(root.join("proc/self/mountinfo")).ok()?;
    match foundation(&mounts, &number)? {
        Foundation::Directory(upper) => below(root, &upper, depth.checked_sub(1)?),
        Foundation::Device(path) => {
            let device = std::fs::metadata(path).ok()?.rdev();
            of_block_device(root, &format!("{}:{}", libc::major(device), libc::minor(device)), depth)
        }
    }
}

/// What a file system without a device lies on.
#[derive(Debug, PartialEq)]
enum Foundation {
    Directory(PathBuf),
    Device(PathBuf),
}

/// The foundation of the mount of this device number, by the text of `/proc/self/mountinfo` (proc(5)).
fn foundation(mounts: &str, number: &str) -> Option<Foundation> {
    let line = mounts.lines().find(|line| line.split(' ').nth(2) == Some(number))?;
    let mut fields = line.split_once(" - ")?.1.split(' ');
    let (kind, source, options) = (fields.next()?, fields.next()?, fields.next()?);
    match kind {
        "overlay" => {
            let upper = options.split(',').find_map(|option| option.strip_prefix("upperdir="))?;
            Some(Foundation::Directory(upper.into()))
        }
        _ => source.starts_with("/dev/").then(|| Foundation::Device(source.into())),
    }
}

fn of_block_device(root: &Path, number: &str, depth: usize) -> Option<String> {
    let depth = depth.checked_sub(1)?;
    let entry = root.join("sys/dev/block").join(number).canonicalize().ok()?;
    // A partition's directory lies in that of its disk.
    let disk = if entry.join("partition").exists() { entry.parent()?.to_path_buf() } else { entry };
    let name = disk.file_name()?.to_string_lossy().into_owned();
    if ["ram", "zram", "nullb"].iter().any(|kind| is_numbered(&name, kind)) {
        return Some(format!("it is on /dev/{name}, which is memory and no disk"));
    }
    let read = |file: &str| std::fs::read_to_string(disk.join(file)).map(|text| text.trim().to_owned());
    if let Ok(file) = read("loop/backing_file") {
        return of_loop(root, &name, &file, read("loop/dio").is_ok_and(|dio| dio == "1"), depth);
    }
    let parts = std::fs::read_dir(disk.join("slaves")).into_iter().flatten().flatten();
    let numbers = parts.filter_map(|part| std::fs::read_to_string(part.path().join("dev")).ok());
    numbers.filter_map(|number| of_block_device(root, number.trim(), depth)).next()
}

fn is_numbered(name: &str, kind: &str) -> bool {
    name.strip_prefix(kind).is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|b| b.is_ascii_digit()))
}

/// A loop device reads through the cache of the file system below, unless it was told to go around it.
fn of_loop(root: &Path, name: &str, file: &str, direct: bool, depth: usize) -> Option<String> {
    if !direct {
        return Some(format!(
            "it is on the loop device /dev/{name}, and what leaves our cache stays in that of the file below, {file}"
        ));
    }
    below(root, Path::new(file).parent()?, depth)
}

/// What to do instead: a directory of this machine that lies on a disk, has so much room and may be written.
pub fn elsewhere(bytes: u64) -> String {
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let here = std::env::current_dir().ok();
    let candidates = [Some("/var/tmp".into()), home, here, Some("/tmp".into())];
    let fits = |directory: &PathBuf| {
        let writable = tempfile::tempfile_in(directory).is_ok();
        writable
            && no_disk(directory).is_none()
            && is_of_a_device(directory)
            && free(directory) >= Some(bytes)
    };
    match candidates.into_iter().flatten().find(fits) {
        Some(directory) => format!("let TMPDIR be a directory on a disk: TMPDIR={}", directory.display()),
        None => "let TMPDIR be a directory on a disk; neither /var/tmp, nor the home, nor the current directory, nor \
                 /tmp is one with room that may be written"
            .into(),
    }
}

/// Only of a file system with a device is it known that there is a disk.
fn is_of_a_device(directory: &Path) -> bool {
    std::fs::metadata(directory).is_ok_and(|metadata| libc::major(metadata.dev()) > 0)
}

/// Bytes that may still be written there, by who is not root.
pub fn free(directory: &Path) -> Option<u64> {
    let found = statvfs(directory).ok()?;
    Some(found.blocks_available() as u64 * found.fragment_size() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    /// A device: its number, where its directory is, and the files in it with their text.
    type Device<'a> = (&'a str, &'a str, &'a [(&'a str, &'a str)]);

    /// A tree of /sys/dev/block with these devices.
    fn machine(devices: &[Device<'_>]) -> tempfile::TempDir {
        let root = tempfile::tempdir().expect("a directory");
        let numbers = root.path().join("sys/dev/block");
        std::fs::create_dir_all(&numbers).expect("made");
        for (number, place, files) in devices {
            let directory = root.path().join("sys/devices").join(place);
            for (name, text) in *files {
                let file = directory.join(name);
                std::fs::create_dir_all(file.parent().expect("a parent")).expect("made");
                std::fs::write(file, text).expect("written");
            }
            symlink(directory, numbers.join(number)).expect("linked");
        }
        root
    }

    fn said(root: &tempfile::TempDir, number: &str) -> Option<String> {
        of_block_device(root.path(), number, DEPTH)
    }

    #[test]
    fn a_disk_and_its_partition_are_disks() {
        let root =
            machine(&[("8:0", "sda", &[("dev", "8:0\n")]), ("8:1", "sda/sda1", &[("partition", "1\n")])]);
        assert_eq!((said(&root, "8:0"), said(&root, "8:1"), said(&root, "9:9")), (None, None, None));
    }

    #[test]
    fn memory_that_plays_a_disk_is_found_below_what_is_mapped_onto_it() {
        let root = machine(&[
            ("253:0", "dm-0", &[("slaves/zram0/dev", "252:0\n")]),
            ("252:0", "zram0", &[("dev", "252:0\n")]),
            ("1:0", "ramdisk", &[("dev", "1:0\n")]),
        ]);
        assert!(said(&root, "253:0").is_some_and(|words| words.contains("/dev/zram0, which is memory")));
        assert_eq!(said(&root, "1:0"), None, "a name that only begins so");
    }

    #[test]
    fn a_loop_device_is_a_disk_only_if_it_goes_around_the_cache_below() {
        let file = ("loop/backing_file", "/sys/image");
        let root = machine(&[
            ("7:0", "loop0", &[file, ("loop/dio", "0\n")]),
            ("7:1", "loop1", &[file, ("loop/dio", "1\n")]),
            ("7:2", "loop2", &[("loop/backing_file", "/dev/shm/image"), ("loop/dio", "1\n")]),
        ]);
        assert!(
            said(&root, "7:0")
                .is_some_and(|words| words.contains("/dev/loop0") && words.contains("/sys/image"))
        );
        assert_eq!(said(&root, "7:1"), None);
        if statfs("/dev/shm").is_ok_and(|found| found.filesystem_type() == TMPFS_MAGIC) {
            assert!(said(&root, "7:2").is_some_and(|words| words.contains("whose files are memory")));
        }
    }

    #[test]
    fn devices_that_lie_on_one_another_end_somewhere() {
        let root = machine(&[("253:0", "dm-0", &[("slaves/dm-0/dev", "253:0\n")])]);
        assert_eq!(said(&root, "253:0"), None);
    }

    #[test]
    fn an_overlay_lies_on_the_directory_that_takes_its_writes() {
        let mounts = "36 28 0:50 / /merged rw - overlay none rw,lowerdir=/l,upperdir=/u p,workdir=/w\n\
                      37 28 0:51 / /b rw shared:1 - btrfs /dev/vdb rw\n38 28 0:52 / /n rw - nfs host:/x rw\n";
        assert_eq!(foundation(mounts, "0:51"), Some(Foundation::Device("/dev/vdb".into())));
        assert_eq!(foundation(mounts, "0:52"), None);
        let mounts = mounts.replace("/u p", "/upper");
        assert_eq!(foundation(&mounts, "0:50"), Some(Foundation::Directory("/upper".into())));
    }
}

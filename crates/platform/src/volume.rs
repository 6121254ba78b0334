//! The medium of a directory's files: a disk, memory, another machine, or a file of another file system, whose cache
//! keeps pages that ours drops. Also the attribute by which a directory spreads its subdirectories (chattr(1)).
//!
//! # Invariants
//!
//! * **FLAGS**: the kernel reads or writes one `unsigned int` (ioctl_iflags(2)). As the number of the call says `long`, it is
//!   given two words, which are held for the whole call.

#![allow(unsafe_code)]

use super::kernel_files::KernelFiles;
use super::mount;
use nix::sys::statfs::{FsType, TMPFS_MAGIC, statfs};
use nix::sys::statvfs::statvfs;
use nix::unistd::{AccessFlags, access};
use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The place where the bytes of a file system are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Medium {
    /// On a disk of this machine.
    Disk,
    /// In memory: there is no device to read past the page cache.
    Memory,
    /// On another machine.
    Remote,
    /// On another file system, or not known.
    Unknown,
}

/// A number of linux/magic.h that nix does not have.
const RAMFS_MAGIC: FsType = FsType(0x8584_58f6);
/// Depth at which the search ends: a device may lie on another, as a loop device on a loop device.
const DEPTH: usize = 8;

const DISK: [&str; 8] = ["ext2", "ext3", "ext4", "xfs", "btrfs", "f2fs", "zfs", "bcachefs"];
const MEMORY: [&str; 5] = ["tmpfs", "ramfs", "rootfs", "devtmpfs", "hugetlbfs"];
/// File systems of other machines. One in user space has its name behind a dot.
#[rustfmt::skip]
const REMOTE: [&str; 17] = [
    "nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "ceph", "afs", "coda", "lustre", "fuse.sshfs", "fuse.glusterfs",
    "fuse.rclone", "fuse.s3fs", "fuse.nfs", "fuse.ceph", "fuse.davfs2",
];

/// The file system that holds a path: its type as the kernel names it, and where its bytes are.
pub fn filesystem_and_medium(path: &Path) -> (String, Medium) {
    let mounts = KernelFiles::live().read_text("proc/self/mountinfo").unwrap_or_default();
    let name = mount::filesystem_type(&mounts, &mount::resolve_path(path)).unwrap_or("unknown").to_owned();
    let medium = medium_of_filesystem(&name);
    (name, medium)
}

/// The type of the file system that holds a path, and those mount options on which the cost of a remote read
/// depends. The server's name is left out.
pub fn describe_filesystem(path: &Path) -> String {
    let mounts = KernelFiles::live().read_text("proc/self/mountinfo").unwrap_or_default();
    describe_filesystem_in(&mounts, &mount::resolve_path(path))
}

fn describe_filesystem_in(mountinfo: &str, path: &Path) -> String {
    const SHOWN: [&str; 6] = ["vers", "proto", "trans", "rsize", "wsize", "msize"];
    let Some(mount) = mount::find_mount(mountinfo, path) else { return "an unknown file system".into() };
    let is_shown = |option: &String| option.split_once('=').is_some_and(|(name, _)| SHOWN.contains(&name));
    let shown: Vec<_> = mount.options().filter(is_shown).collect();
    if shown.is_empty() { mount.kind.into() } else { format!("{} ({})", mount.kind, shown.join(", ")) }
}

fn medium_of_filesystem(filesystem: &str) -> Medium {
    let media = [(Medium::Disk, &DISK[..]), (Medium::Memory, &MEMORY), (Medium::Remote, &REMOTE)];
    let found = media.into_iter().find(|(_, names)| names.contains(&filesystem));
    found.map_or(Medium::Unknown, |(medium, _)| medium)
}

/// Why files of this directory are not read from a disk. `None` if they are, or if it is not known.
pub fn no_disk_reason(directory: &Path) -> Option<String> {
    no_disk_reason_at_depth(&KernelFiles::live(), directory, DEPTH)
}

fn no_disk_reason_at_depth(files: &KernelFiles, directory: &Path, depth: usize) -> Option<String> {
    let kind = statfs(directory).ok()?.filesystem_type();
    if kind == TMPFS_MAGIC || kind == RAMFS_MAGIC {
        let name = if kind == TMPFS_MAGIC { "tmpfs" } else { "ramfs" };
        return Some(format!("{} is on {name}, whose files are memory", directory.display()));
    }
    let device = std::fs::metadata(directory).ok()?.dev();
    if libc::major(device) > 0 {
        return device_no_disk_reason(files, &format_device_number(device), depth);
    }
    // The options or the source of a file system without a device of its own name its foundation.
    match find_foundation(&files.read_text("proc/self/mountinfo")?, &format_device_number(device))? {
        Foundation::Directory(upper) => no_disk_reason_at_depth(files, &upper, depth.checked_sub(1)?),
        Foundation::Device(path) => {
            device_no_disk_reason(files, &format_device_number(std::fs::metadata(path).ok()?.rdev()), depth)
        }
    }
}

fn format_device_number(device: u64) -> String {
    format!("{}:{}", libc::major(device), libc::minor(device))
}

/// The directory or device on which a file system without a device lies.
#[derive(Debug, PartialEq)]
enum Foundation {
    Directory(PathBuf),
    Device(PathBuf),
}

/// The foundation of the mount that has this device number, by the text of `/proc/self/mountinfo`.
fn find_foundation(mountinfo: &str, number: &str) -> Option<Foundation> {
    let mount = mount::parse_mounts(mountinfo).find(|mount| mount.device == number)?;
    if mount.kind == "overlay" {
        let upper = mount.options().find_map(|option| option.strip_prefix("upperdir=").map(PathBuf::from));
        return upper.map(Foundation::Directory);
    }
    mount.source.starts_with("/dev/").then(|| Foundation::Device(mount.source.into()))
}

/// The `major:minor` number of the block device below a mounted file system, by its device, options or source;
/// `None` if none is found.
pub fn block_device_number(mountinfo: &str, mount: &mount::Mount<'_>) -> Option<String> {
    block_device_number_at_depth(mountinfo, mount, DEPTH)
}

fn block_device_number_at_depth(mountinfo: &str, mount: &mount::Mount<'_>, depth: usize) -> Option<String> {
    if !mount.device.starts_with("0:") {
        return Some(mount.device.to_owned());
    }
    match find_foundation(mountinfo, mount.device)? {
        Foundation::Directory(upper) => block_device_number_at_depth(
            mountinfo,
            &mount::find_mount(mountinfo, &upper)?,
            depth.checked_sub(1)?,
        ),
        Foundation::Device(path) => Some(format_device_number(std::fs::metadata(path).ok()?.rdev())),
    }
}

fn device_no_disk_reason(files: &KernelFiles, number: &str, depth: usize) -> Option<String> {
    let depth = depth.checked_sub(1)?;
    let entry = files.path("sys/dev/block").join(number).canonicalize().ok()?;
    // A partition's directory lies in that of its disk.
    let disk = if entry.join("partition").exists() { entry.parent()?.to_path_buf() } else { entry };
    let name = disk.file_name()?.to_string_lossy().into_owned();
    if ["ram", "zram", "nullb"].iter().any(|kind| is_numbered_device(&name, kind)) {
        return Some(format!("it is on /dev/{name}, which is memory and no disk"));
    }
    let read = |file: &str| std::fs::read_to_string(disk.join(file)).map(|text| text.trim().to_owned());
    if let Ok(file) = read("loop/backing_file") {
        return loop_no_disk_reason(files, &name, &file, read("loop/dio").is_ok_and(|dio| dio == "1"), depth);
    }
    let parts = std::fs::read_dir(disk.join("slaves")).into_iter().flatten().flatten();
    let mut numbers = parts.filter_map(|part| std::fs::read_to_string(part.path().join("dev")).ok());
    numbers.find_map(|number| device_no_disk_reason(files, number.trim(), depth))
}

fn is_numbered_device(name: &str, kind: &str) -> bool {
    name.strip_prefix(kind).is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|b| b.is_ascii_digit()))
}

/// Why a loop device is no disk: it reads through the cache of the file system below, unless it was set up to bypass it.
fn loop_no_disk_reason(
    files: &KernelFiles,
    name: &str,
    file: &str,
    direct: bool,
    depth: usize,
) -> Option<String> {
    if !direct {
        return Some(format!(
            "it is on the loop device /dev/{name}, and what leaves our cache stays in that of the file below, {file}"
        ));
    }
    no_disk_reason_at_depth(files, Path::new(file).parent()?, depth)
}

/// What to do if the directory of the files is on the wrong medium: a sentence that names a writable directory on a
/// disk of this machine, if there is one.
pub fn disk_advice() -> String {
    match find_disk_directory(0) {
        Some(place) => format!("`--dir {0}` (or SYSCOST_DIR={0}) puts the files on a disk", place.display()),
        None => "say where a disk is: `--dir DIRECTORY`, or SYSCOST_DIR".into(),
    }
}

/// What to do if the temporary directory is on the wrong medium or full: a sentence that names one on a disk with this
/// much room, bytes.
pub fn tmpdir_advice(bytes: u64) -> String {
    match find_disk_directory(bytes) {
        Some(directory) => format!("let TMPDIR be a directory on a disk: TMPDIR={}", directory.display()),
        None => "let TMPDIR be a directory on a disk; neither /var/tmp, nor the home, nor the current directory, nor \
                 /tmp is one with room that may be written"
            .into(),
    }
}

/// The first of /var/tmp, the home, the current directory and /tmp that is on a disk, may be written, and has this much
/// room, bytes.
pub fn find_disk_directory(bytes: u64) -> Option<PathBuf> {
    let fits = |directory: &PathBuf| {
        is_writable_directory(directory)
            && is_known_disk(directory)
            && no_disk_reason(directory).is_none()
            && free_bytes(directory) >= Some(bytes)
    };
    candidate_directories().find(fits)
}

/// The first of the same directories and /dev/shm that may be written, on any medium.
pub fn find_writable_directory() -> Option<PathBuf> {
    candidate_directories()
        .chain([PathBuf::from("/dev/shm")])
        .find(|directory| is_writable_directory(directory))
}

/// Whether this is a directory in which files can be made.
pub fn is_writable_directory(path: &Path) -> bool {
    path.is_dir() && access(path, AccessFlags::W_OK).is_ok()
}

fn candidate_directories() -> impl Iterator<Item = PathBuf> {
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let here = std::env::current_dir().ok();
    [Some("/var/tmp".into()), home, here, Some("/tmp".into())].into_iter().flatten()
}

/// Whether a directory's file system is known to be on a disk, by its device or by its type.
fn is_known_disk(directory: &Path) -> bool {
    let has_device = std::fs::metadata(directory).is_ok_and(|metadata| libc::major(metadata.dev()) > 0);
    has_device || filesystem_and_medium(directory).1 == Medium::Disk
}

/// Bytes that an ordinary user may still write to the file system of this directory.
pub fn free_bytes(directory: &Path) -> Option<u64> {
    let found = statvfs(directory).ok()?;
    Some(found.blocks_available() as u64 * found.fragment_size() as u64)
}

/// `T` of chattr(1): `FS_TOPDIR_FL` of linux/fs.h.
const TOP: u32 = 0x0002_0000;

/// Asks the file system to place the subdirectories of this one far from each other: ext4 gives each a block group by its
/// name. Returns whether the file system supports that.
pub fn spread_directories(directory: &Path) -> bool {
    let Ok(directory) = File::open(directory) else { return false };
    let Some(flags) = inode_flags(&directory) else { return false };
    let words = [flags | TOP, 0];
    // SAFETY: FLAGS.
    unsafe { libc::ioctl(directory.as_raw_fd(), libc::FS_IOC_SETFLAGS as _, words.as_ptr()) == 0 }
}

fn inode_flags(file: &File) -> Option<u32> {
    let mut words = [0_u32; 2];
    // SAFETY: FLAGS.
    let answer = unsafe { libc::ioctl(file.as_raw_fd(), libc::FS_IOC_GETFLAGS as _, words.as_mut_ptr()) };
    (answer == 0).then_some(words[0])
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn a_remote_file_system_is_described_without_the_servers_name() {
        let text = "40 25 0:50 / /mnt/a rw - nfs4 198.18.47.2:/ rw,vers=4.2,rsize=1048576,proto=tcp,addr=198.18.47.2\n\
                    41 25 0:51 / /mnt/b rw - fuse.sshfs root@198.18.47.2:/x rw,user_id=0\n";
        let shown = |path| describe_filesystem_in(text, Path::new(path));
        assert_eq!(shown("/mnt/a/file"), "nfs4 (vers=4.2, rsize=1048576, proto=tcp)");
        assert_eq!(shown("/mnt/b"), "fuse.sshfs");
        assert_eq!(shown("/elsewhere"), "an unknown file system");
    }

    #[test]
    fn neither_a_remote_file_system_nor_memory_is_a_disk() {
        let media =
            ["ext4", "tmpfs", "nfs4", "fuse.sshfs", "overlay", "fuse.unheard"].map(medium_of_filesystem);
        use Medium::{Disk, Memory, Remote, Unknown};
        assert_eq!(media, [Disk, Memory, Remote, Remote, Unknown, Unknown]);
    }

    #[test]
    fn the_kernels_own_files_are_on_no_disk() {
        assert_eq!(filesystem_and_medium(Path::new("/proc/self")), ("proc".into(), Medium::Unknown));
    }

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

    fn reason_of(root: &tempfile::TempDir, number: &str) -> Option<String> {
        device_no_disk_reason(&KernelFiles::under(root.path()), number, DEPTH)
    }

    #[test]
    fn a_disk_and_its_partition_are_disks() {
        let root =
            machine(&[("8:0", "sda", &[("dev", "8:0\n")]), ("8:1", "sda/sda1", &[("partition", "1\n")])]);
        assert_eq!(
            (reason_of(&root, "8:0"), reason_of(&root, "8:1"), reason_of(&root, "9:9")),
            (None, None, None)
        );
    }

    #[test]
    fn a_memory_device_is_found_below_a_mapped_device() {
        let root = machine(&[
            ("253:0", "dm-0", &[("slaves/zram0/dev", "252:0\n")]),
            ("252:0", "zram0", &[("dev", "252:0\n")]),
            ("1:0", "ramdisk", &[("dev", "1:0\n")]),
        ]);
        assert!(reason_of(&root, "253:0").is_some_and(|words| words.contains("/dev/zram0, which is memory")));
        assert_eq!(reason_of(&root, "1:0"), None, "a name that only begins so");
    }

    #[test]
    fn a_loop_device_is_a_disk_only_if_it_bypasses_the_cache_below() {
        let file = ("loop/backing_file", "/sys/image");
        let root = machine(&[
            ("7:0", "loop0", &[file, ("loop/dio", "0\n")]),
            ("7:1", "loop1", &[file, ("loop/dio", "1\n")]),
            ("7:2", "loop2", &[("loop/backing_file", "/dev/shm/image"), ("loop/dio", "1\n")]),
        ]);
        assert!(
            reason_of(&root, "7:0")
                .is_some_and(|words| words.contains("/dev/loop0") && words.contains("/sys/image"))
        );
        assert_eq!(reason_of(&root, "7:1"), None);
        if statfs("/dev/shm").is_ok_and(|found| found.filesystem_type() == TMPFS_MAGIC) {
            assert!(reason_of(&root, "7:2").is_some_and(|words| words.contains("whose files are memory")));
        }
    }

    #[test]
    fn a_cycle_of_devices_ends_the_search() {
        let root = machine(&[("253:0", "dm-0", &[("slaves/dm-0/dev", "253:0\n")])]);
        assert_eq!(reason_of(&root, "253:0"), None);
    }

    #[test]
    fn an_overlay_lies_on_the_directory_that_takes_its_writes() {
        let mounts = "36 28 0:50 / /merged rw - overlay none rw,lowerdir=/l,upperdir=/u\\040p,workdir=/w\n\
                      37 28 0:51 / /b rw shared:1 - btrfs /dev/vdb rw\n38 28 0:52 / /n rw - nfs host:/x rw\n";
        assert_eq!(find_foundation(mounts, "0:51"), Some(Foundation::Device("/dev/vdb".into())));
        assert_eq!(find_foundation(mounts, "0:52"), None);
        assert_eq!(find_foundation(mounts, "0:50"), Some(Foundation::Directory("/u p".into())));
        let below = |root: &str| {
            let text = format!("{mounts}{root}");
            let merged = mount::find_mount(&text, Path::new("/merged/file"))?;
            block_device_number(&text, &merged)
        };
        assert_eq!(below("27 1 254:0 / / rw - ext4 /dev/vda rw\n").as_deref(), Some("254:0"));
        assert_eq!((below("27 1 0:9 / / rw - tmpfs tmpfs rw\n"), below("")), (None, None));
    }

    #[test]
    fn the_attribute_is_set_where_the_file_system_supports_it() {
        let directory = tempfile::tempdir().expect("a directory");
        let is_set = spread_directories(directory.path());
        let shown = inode_flags(&File::open(directory.path()).expect("opened"));
        assert_eq!(shown.is_some_and(|flags| flags & TOP != 0), is_set, "{shown:?}");
        assert!(!spread_directories(Path::new("/proc/self")), "nothing is made there");
        assert!(!spread_directories(&directory.path().join("none")));
    }
}

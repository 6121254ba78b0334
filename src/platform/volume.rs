//! What a directory's files lie on: a disk, memory, or another machine.

use super::mount;
use std::path::{Path, PathBuf};

/// Where the bytes of a file system are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Medium {
    /// On a disk of this machine.
    Disk,
    /// In memory: nothing can be read past a cache that is all there is.
    Memory,
    /// On another machine.
    Remote,
    /// Elsewhere: on another file system, or nobody knows.
    Unknown,
}

const DISK: [&str; 8] = ["ext2", "ext3", "ext4", "xfs", "btrfs", "f2fs", "zfs", "bcachefs"];
const MEMORY: [&str; 5] = ["tmpfs", "ramfs", "rootfs", "devtmpfs", "hugetlbfs"];
/// Those in user space are named behind a dot.
const REMOTE: [&str; 17] = [
    "nfs",
    "nfs4",
    "cifs",
    "smb3",
    "smbfs",
    "9p",
    "ceph",
    "afs",
    "coda",
    "lustre",
    "fuse.sshfs",
    "fuse.glusterfs",
    "fuse.rclone",
    "fuse.s3fs",
    "fuse.nfs",
    "fuse.ceph",
    "fuse.davfs2",
];

/// The file system that holds a path: its type as the kernel names it, and where its bytes are.
pub fn of(path: &Path) -> (String, Medium) {
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let name = mount::filesystem_of(&mounts, &mount::resolve(path)).unwrap_or("unknown").to_owned();
    let medium = medium(&name);
    (name, medium)
}

fn medium(filesystem: &str) -> Medium {
    let is_in = |names: &[&str]| names.contains(&filesystem);
    match () {
        () if is_in(&DISK) => Medium::Disk,
        () if is_in(&MEMORY) => Medium::Memory,
        () if is_in(&REMOTE) => Medium::Remote,
        () => Medium::Unknown,
    }
}

/// What to do where a directory is on the wrong medium: a directory of this machine that is on a disk and may be
/// written, if there is one.
pub fn advice() -> String {
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let places = [Some("/var/tmp".into()), Some("/tmp".into()), home, std::env::current_dir().ok()];
    let fits = |place: &PathBuf| of(place).1 == Medium::Disk && may_be_written(place);
    match places.into_iter().flatten().find(fits) {
        Some(place) => format!("`--dir {0}` (or SYSCOST_DIR={0}) puts the files on a disk", place.display()),
        None => "say where a disk is: `--dir DIRECTORY`, or SYSCOST_DIR".into(),
    }
}

fn may_be_written(place: &Path) -> bool {
    nix::unistd::access(place, nix::unistd::AccessFlags::W_OK).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mounted_machine_is_no_disk_and_memory_is_none_either() {
        let media = ["ext4", "tmpfs", "nfs4", "fuse.sshfs", "overlay", "fuse.unheard"].map(medium);
        use Medium::{Disk, Memory, Remote, Unknown};
        assert_eq!(media, [Disk, Memory, Remote, Remote, Unknown, Unknown]);
    }

    #[test]
    fn the_kernels_own_files_are_on_no_disk() {
        assert_eq!(of(Path::new("/proc/self")), ("proc".into(), Medium::Unknown));
    }
}

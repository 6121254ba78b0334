//! Attributes of a directory that chattr(1) sets.
//!
//! # Invariants
//!
//! * **FLAGS**: the kernel reads or writes one `unsigned int` (ioctl_iflags(2); the number of the call says `long`), and both
//!   are held for the whole call.
#![allow(unsafe_code)]

use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::Path;

/// `T` of chattr(1): `FS_TOPDIR_FL` of linux/fs.h.
const TOP: u32 = 0x0002_0000;

/// Asks for directories that are made in this one to lie far from each other: ext4 gives each a block group by its name.
/// Returns whether the file system knows that.
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

    #[test]
    fn a_directory_has_the_attribute_where_the_file_system_knows_it() {
        let directory = tempfile::tempdir().expect("a directory");
        let is_set = spread_directories(directory.path());
        let told = inode_flags(&File::open(directory.path()).expect("opened"));
        assert_eq!(told.is_some_and(|flags| flags & TOP != 0), is_set, "{told:?}");
        assert!(!spread_directories(Path::new("/proc/self")), "nothing is made there");
        assert!(!spread_directories(&directory.path().join("none")));
    }
}

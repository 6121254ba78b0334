//! Landlock (landlock(7)): a process gives up access to files, for good.
//!
//! # Invariants
//!
//! * **OWN-STRUCTURE**: the kernel reads one local structure, whose size it is given.
//! * **OWN-DESCRIPTOR**: a descriptor that the kernel has just returned has no other owner.
#![allow(unsafe_code)]

use crate::error::{Error, Result};
use nix::errno::Errno;
use std::fs::File;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::path::Path;

/// `LANDLOCK_ACCESS_FS_READ_FILE` and `LANDLOCK_RULE_PATH_BENEATH` of linux/landlock.h.
const READ_FILE: u64 = 1 << 2;
const PATH_BENEATH: usize = 1;

/// `struct landlock_path_beneath_attr`.
#[repr(C, packed)]
struct PathBeneath {
    allowed: u64,
    parent: i32,
}

/// Lets this thread and its children read files below this directory only, whatever was allowed before.
///
/// # Errors
/// [`Error::Missing`] where the kernel has no Landlock or it is not switched on; the directory cannot be opened.
pub fn restrict_reading_to(directory: &Path) -> Result<()> {
    let absent = |e: Errno| {
        Error::Missing(format!(
            "Landlock is not to be had ({e}): CONFIG_SECURITY_LANDLOCK, and `lsm=` of the kernel's command line"
        ))
    };
    let parent = File::open(directory).map_err(|e| Error::file(directory, "opening", e))?;
    let handled = READ_FILE;
    // SAFETY: OWN-STRUCTURE.
    let set =
        unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, &raw const handled, size_of::<u64>(), 0) };
    // SAFETY: OWN-DESCRIPTOR.
    let set = unsafe { OwnedFd::from_raw_fd(Errno::result(set).map_err(absent)? as i32) };
    let rule = PathBeneath { allowed: READ_FILE, parent: parent.as_raw_fd() };
    // SAFETY: OWN-STRUCTURE.
    let added = unsafe {
        libc::syscall(libc::SYS_landlock_add_rule, set.as_raw_fd(), PATH_BENEATH, &raw const rule, 0)
    };
    Errno::result(added).map_err(|e| Error::from_case_errno("landlock_add_rule", e))?;
    nix::sys::prctl::set_no_new_privs().map_err(|e| Error::from_errno("prctl PR_SET_NO_NEW_PRIVS", e))?;
    // SAFETY: the call uses no memory.
    let restricted = unsafe { libc::syscall(libc::SYS_landlock_restrict_self, set.as_raw_fd(), 0) };
    Errno::result(restricted).map(drop).map_err(|e| Error::from_case_errno("landlock_restrict_self", e))
}

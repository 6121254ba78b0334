//! System calls without the C library: one instruction enters the kernel, and its return value is the result.
//!
//! # Invariants
//!
//! * **QUIET**: the call writes no memory of ours, and reads only what its arguments point to.
//! * **OWN-BUFFER**: the call writes only into the reference that it is given, which is as large as the
//!   kernel's structure.
//! * **OWN-DESCRIPTOR**: a descriptor that is closed here was opened here and has no other owner.
#![allow(unsafe_code)]

use super::arch::{syscall0, syscall1, syscall2, syscall4};
use std::ffi::CStr;

/// A number without a call, so that only entry, look-up and exit remain.
const NO_SUCH_CALL: i64 = 9_999;

/// Enters and leaves the kernel without a call. Returns `-ENOSYS`.
#[inline(always)]
pub fn bare() -> i64 {
    // SAFETY: QUIET.
    unsafe { syscall0(NO_SUCH_CALL) }
}

/// getpid(2).
#[inline(always)]
pub fn getpid() -> i64 {
    // SAFETY: QUIET.
    unsafe { syscall0(libc::SYS_getpid) }
}

/// getppid(2).
#[inline(always)]
pub fn getppid() -> i64 {
    // SAFETY: QUIET.
    unsafe { syscall0(libc::SYS_getppid) }
}

/// gettid(2).
#[inline(always)]
pub fn gettid() -> i64 {
    // SAFETY: QUIET.
    unsafe { syscall0(libc::SYS_gettid) }
}

/// sched_yield(2).
#[inline(always)]
pub fn sched_yield() -> i64 {
    // SAFETY: QUIET.
    unsafe { syscall0(libc::SYS_sched_yield) }
}

/// The kernel's description of a file, `struct stat`.
pub struct Status(Box<libc::stat>);

impl Default for Status {
    fn default() -> Self {
        // SAFETY: OWN-BUFFER: `stat` is plain numbers, for which zero is a value.
        Self(Box::new(unsafe { std::mem::zeroed() }))
    }
}

/// The calls that [`stat`] and [`open_close`] make: AArch64 has only those relative to a directory.
#[cfg(target_arch = "x86_64")]
mod path {
    /// Name and number of the call of [`super::stat`].
    pub const STAT: (&str, i64) = ("stat", libc::SYS_stat);
    /// Name and number of the call that opens in [`super::open_close`].
    pub const OPEN: (&str, i64) = ("open", libc::SYS_open);
}
#[cfg(not(target_arch = "x86_64"))]
mod path {
    /// Name and number of the call of [`super::stat`].
    pub const STAT: (&str, i64) = ("newfstatat", libc::SYS_newfstatat);
    /// Name and number of the call that opens in [`super::open_close`].
    pub const OPEN: (&str, i64) = ("openat", libc::SYS_openat);
}
pub use path::{OPEN, STAT};

/// fstat(2).
#[inline(always)]
pub fn fstat(descriptor: i32, status: &mut Status) -> i64 {
    // SAFETY: OWN-BUFFER.
    unsafe { syscall2(libc::SYS_fstat, descriptor as usize, &raw mut *status.0 as usize) }
}

/// stat(2) of a path.
#[inline(always)]
pub fn stat(path: &CStr, status: &mut Status) -> i64 {
    let (path, status) = (path.as_ptr() as usize, &raw mut *status.0 as usize);
    // SAFETY: OWN-BUFFER; the path ends in a zero byte.
    #[cfg(target_arch = "x86_64")]
    return unsafe { syscall2(STAT.1, path, status) };
    #[cfg(not(target_arch = "x86_64"))]
    // SAFETY: OWN-BUFFER: as above.
    return unsafe { syscall4(STAT.1, libc::AT_FDCWD as usize, path, status, 0) };
}

/// open(2) of a path for reading, and close(2). Returns a negative error number if either is refused.
#[inline(always)]
pub fn open_close(path: &CStr) -> i64 {
    const FLAGS: usize = (libc::O_RDONLY | libc::O_CLOEXEC) as usize;
    let path = path.as_ptr() as usize;
    #[cfg(target_arch = "x86_64")]
    // SAFETY: QUIET; the path ends in a zero byte.
    let descriptor = unsafe { syscall2(OPEN.1, path, FLAGS) };
    #[cfg(not(target_arch = "x86_64"))]
    // SAFETY: QUIET; the path ends in a zero byte.
    let descriptor = unsafe { syscall4(OPEN.1, libc::AT_FDCWD as usize, path, FLAGS, 0) };
    if descriptor < 0 {
        return descriptor;
    }
    // SAFETY: OWN-DESCRIPTOR.
    unsafe { syscall1(libc::SYS_close, descriptor as usize) }
}

/// read(2) of one byte.
#[inline(always)]
pub fn read_byte(descriptor: i32, byte: &mut u8) -> i64 {
    // SAFETY: OWN-BUFFER: one byte.
    unsafe { syscall4(libc::SYS_read, descriptor as usize, &raw mut *byte as usize, 1, 0) }
}

/// write(2) of one byte.
#[inline(always)]
pub fn write_byte(descriptor: i32, byte: &u8) -> i64 {
    // SAFETY: QUIET: the kernel reads one byte.
    unsafe { syscall4(libc::SYS_write, descriptor as usize, &raw const *byte as usize, 1, 0) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsRawFd;

    #[test]
    fn the_kernel_returns_what_the_library_returns() {
        assert_eq!(getpid(), i64::from(std::process::id()));
        assert_eq!(getppid(), i64::from(nix::unistd::getppid().as_raw()));
        assert_eq!(gettid(), i64::from(nix::unistd::gettid().as_raw()));
        assert_eq!(bare(), -i64::from(libc::ENOSYS));
    }

    #[test]
    fn calls_on_files_succeed_and_errors_are_negative() {
        let zero = std::fs::File::open("/dev/zero").expect("/dev/zero");
        let mut byte = 7;
        assert_eq!(read_byte(zero.as_raw_fd(), &mut byte), 1);
        assert_eq!(byte, 0);
        assert_eq!(fstat(zero.as_raw_fd(), &mut Status::default()), 0);
        assert_eq!(stat(c"/dev/null", &mut Status::default()), 0);
        assert_eq!(open_close(c"/dev/null"), 0);
        assert_eq!(open_close(c"/there/is/no/such/file"), -i64::from(libc::ENOENT));
    }
}

//! System calls without the C library: one instruction enters the kernel, and its return value is the result.
//!
//! # Invariants
//!
//! * **QUIET**: the call writes no memory of ours, and reads only what its arguments point to.
//! * **OWN-BUFFER**: the call writes only into the reference that it is given, which is as large as the
//!   kernel's structure.
//! * **OWN-DESCRIPTOR**: a descriptor that is closed here was opened here and has no other owner.
#![allow(unsafe_code)]

use super::arch::{self, Answers, syscall0, syscall4};
use std::ffi::CStr;
use std::marker::PhantomData;

/// A number that no call has, so that only entry, look-up and exit remain.
const NO_SUCH_CALL: i64 = 9_999;

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

/// Calls that AArch64 has only in a newer form: relative to a directory, or with a signal mask.
#[cfg(target_arch = "x86_64")]
mod named {
    /// Name and number of the call of [`super::RawCall::stat`].
    pub const STAT: (&str, i64) = ("stat", libc::SYS_stat);
    /// Name and number of the call of [`super::open`].
    pub const OPEN: (&str, i64) = ("open", libc::SYS_open);
    /// Name and number of the call that polls a list of descriptors.
    pub const POLL: (&str, i64) = ("poll", libc::SYS_poll);
    /// Name and number of the call that polls a set of descriptors.
    pub const SELECT: (&str, i64) = ("select", libc::SYS_select);
    /// Name and number of the call that waits for an epoll.
    pub const EPOLL_WAIT: (&str, i64) = ("epoll_wait", libc::SYS_epoll_wait);
}
#[cfg(not(target_arch = "x86_64"))]
mod named {
    /// Name and number of the call of [`super::RawCall::stat`].
    pub const STAT: (&str, i64) = ("newfstatat", libc::SYS_newfstatat);
    /// Name and number of the call of [`super::open`].
    pub const OPEN: (&str, i64) = ("openat", libc::SYS_openat);
    /// Name and number of the call that polls a list of descriptors.
    pub const POLL: (&str, i64) = ("ppoll", libc::SYS_ppoll);
    /// Name and number of the call that polls a set of descriptors.
    pub const SELECT: (&str, i64) = ("pselect6", libc::SYS_pselect6);
    /// Name and number of the call that waits for an epoll.
    pub const EPOLL_WAIT: (&str, i64) = ("epoll_pwait", libc::SYS_epoll_pwait);
}
pub use named::{EPOLL_WAIT, OPEN, POLL, SELECT, STAT};

/// A call with its arguments, to be repeated as it is. It borrows what the kernel reads and writes.
pub struct RawCall<'a> {
    number: i64,
    arguments: [usize; 6],
    of: PhantomData<&'a mut ()>,
}

impl<'a> RawCall<'a> {
    /// A call of this number. The kernel ignores arguments that it does not take.
    ///
    /// # Safety
    /// QUIET or OWN-BUFFER hold for as long as `'a`, however often the call is made; it ends no process, and closes or
    /// unmaps nothing that has another owner.
    pub unsafe fn new(number: i64, arguments: [usize; 6]) -> Self {
        Self { number, arguments, of: PhantomData }
    }

    /// Makes the call `n` times, in a loop whose place in memory does not decide its cost.
    #[inline(always)]
    pub fn repeat(&mut self, n: u64) -> Answers {
        // SAFETY: QUIET or OWN-BUFFER, which the code that made the value has promised.
        unsafe { arch::repeat_syscall(self.number, self.arguments, n) }
    }

    /// A call of a number that does not exist: entry, look-up and exit, with the return value `-ENOSYS`.
    pub fn nonexistent_call() -> Self {
        Self::without_arguments(NO_SUCH_CALL)
    }

    /// getpid(2).
    pub fn getpid() -> Self {
        Self::without_arguments(libc::SYS_getpid)
    }

    /// getppid(2).
    pub fn getppid() -> Self {
        Self::without_arguments(libc::SYS_getppid)
    }

    /// gettid(2).
    pub fn gettid() -> Self {
        Self::without_arguments(libc::SYS_gettid)
    }

    /// sched_yield(2).
    pub fn sched_yield() -> Self {
        Self::without_arguments(libc::SYS_sched_yield)
    }

    fn without_arguments(number: i64) -> Self {
        // SAFETY: QUIET: the calls above take no argument.
        unsafe { Self::new(number, [0; 6]) }
    }

    /// fstat(2).
    pub fn fstat(descriptor: i32, status: &'a mut Status) -> Self {
        let status = &raw mut *status.0 as usize;
        // SAFETY: OWN-BUFFER.
        unsafe { Self::new(libc::SYS_fstat, [descriptor as usize, status, 0, 0, 0, 0]) }
    }

    /// stat(2) of a path.
    pub fn stat(path: &'a CStr, status: &'a mut Status) -> Self {
        let [path, status] = [path.as_ptr() as usize, &raw mut *status.0 as usize];
        #[cfg(target_arch = "x86_64")]
        let arguments = [path, status, 0, 0, 0, 0];
        #[cfg(not(target_arch = "x86_64"))]
        let arguments = [libc::AT_FDCWD as usize, path, status, 0, 0, 0];
        // SAFETY: OWN-BUFFER; the path ends in a zero byte.
        unsafe { Self::new(STAT.1, arguments) }
    }

    /// read(2) of one byte.
    pub fn read_byte(descriptor: i32, byte: &'a mut u8) -> Self {
        // SAFETY: OWN-BUFFER: one byte.
        unsafe { Self::new(libc::SYS_read, [descriptor as usize, &raw mut *byte as usize, 1, 0, 0, 0]) }
    }

    /// write(2) of one byte.
    pub fn write_byte(descriptor: i32, byte: &'a u8) -> Self {
        // SAFETY: QUIET: the kernel reads one byte.
        unsafe { Self::new(libc::SYS_write, [descriptor as usize, &raw const *byte as usize, 1, 0, 0, 0]) }
    }

    /// clock_gettime(2).
    pub fn clock_gettime(clock: libc::clockid_t, time: &'a mut libc::timespec) -> Self {
        // SAFETY: OWN-BUFFER.
        unsafe { Self::new(libc::SYS_clock_gettime, [clock as usize, &raw mut *time as usize, 0, 0, 0, 0]) }
    }

    /// time(2), which AArch64 never had.
    #[cfg(target_arch = "x86_64")]
    pub fn time() -> Self {
        // SAFETY: QUIET: a null pointer asks for the answer only.
        unsafe { Self::new(libc::SYS_time, [0; 6]) }
    }
}

/// write(2) of one byte to a descriptor and read(2) of one from another, `n` times. Returns the lowest return value of each.
#[inline(always)]
pub fn repeat_write_read(write: i32, read: i32, byte: &mut u8, n: u64) -> [i64; 2] {
    let calls = [(libc::SYS_write, write as usize), (libc::SYS_read, read as usize)];
    // SAFETY: OWN-BUFFER: one byte.
    unsafe { arch::repeat_two_syscalls(calls, [&raw mut *byte as usize, 1], n) }
}

/// The arguments of [`OPEN`] that open a path for reading.
#[inline(always)]
fn open_arguments(path: &CStr) -> [usize; 4] {
    const FLAGS: usize = (libc::O_RDONLY | libc::O_CLOEXEC) as usize;
    let path = path.as_ptr() as usize;
    #[cfg(target_arch = "x86_64")]
    return [path, FLAGS, 0, 0];
    #[cfg(not(target_arch = "x86_64"))]
    [libc::AT_FDCWD as usize, path, FLAGS, 0]
}

/// open(2) of a path for reading. Returns the descriptor, which the caller closes, or a negative error number.
#[inline(always)]
pub fn open(path: &CStr) -> i64 {
    let [a, b, c, d] = open_arguments(path);
    // SAFETY: QUIET: the path ends in a zero byte.
    unsafe { syscall4(OPEN.1, a, b, c, d) }
}

/// open(2) of a path for reading and close(2), `n` times. Returns the lowest return value of `open`
/// if that is an error, else that of `close`.
#[inline(always)]
pub fn repeat_open_close(path: &CStr, n: u64) -> i64 {
    let arguments = open_arguments(path);
    // SAFETY: OWN-DESCRIPTOR; the path ends in a zero byte. After a failed open nothing is closed: a negative number is no
    // descriptor.
    let [opened, closed] = unsafe { arch::repeat_syscall_on_answer(OPEN.1, arguments, libc::SYS_close, n) };
    if opened < 0 { opened } else { closed }
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
    use crate::ptrace;
    use std::os::fd::AsRawFd;

    #[test]
    fn the_kernel_returns_what_the_library_returns() {
        assert_eq!(getpid(), i64::from(std::process::id()));
        assert_eq!(once(RawCall::getppid()), i64::from(nix::unistd::getppid().as_raw()));
        assert_eq!(gettid(), i64::from(nix::unistd::gettid().as_raw()));
        assert_eq!(once(RawCall::nonexistent_call()), -i64::from(libc::ENOSYS));
    }

    #[test]
    fn calls_on_files_succeed_and_errors_are_negative() {
        let zero = std::fs::File::open("/dev/zero").expect("/dev/zero");
        let mut byte = 7;
        assert_eq!(read_byte(zero.as_raw_fd(), &mut byte), 1);
        assert_eq!(byte, 0);
        assert_eq!(once(RawCall::fstat(zero.as_raw_fd(), &mut Status::default())), 0);
        assert_eq!(once(RawCall::stat(c"/dev/null", &mut Status::default())), 0);
        assert_eq!(once(RawCall::read_byte(zero.as_raw_fd(), &mut byte)), 1);
        assert_eq!(once(RawCall::write_byte(-1, &byte)), -i64::from(libc::EBADF));
        assert_eq!(repeat_open_close(c"/dev/null", 5), 0);
        assert_eq!(repeat_open_close(c"/there/is/no/such/file", 5), -i64::from(libc::ENOENT));
        let (read, write) = nix::unistd::pipe().expect("a pipe");
        assert_eq!(repeat_write_read(write.as_raw_fd(), read.as_raw_fd(), &mut byte, 5), [1, 1]);
        assert_eq!(repeat_write_read(write.as_raw_fd(), -1, &mut byte, 1), [1, -i64::from(libc::EBADF)]);
    }

    fn once(mut call: RawCall) -> i64 {
        let Answers { lowest, highest } = call.repeat(3);
        assert_eq!(lowest, highest);
        lowest
    }

    #[test]
    fn the_lowest_and_the_highest_answer_are_kept() {
        let (read, write) = nix::unistd::pipe2(nix::fcntl::OFlag::O_NONBLOCK).expect("a pipe");
        nix::unistd::write(&write, b"xy").expect("written");
        let answers = RawCall::read_byte(read.as_raw_fd(), &mut 0).repeat(3);
        assert_eq!(answers, Answers { lowest: -i64::from(libc::EAGAIN), highest: 1 });
        assert_eq!(RawCall::getpid().repeat(0), Answers { lowest: i64::MAX, highest: i64::MIN });
    }

    #[test]
    fn a_repeated_call_enters_the_kernel_each_time() {
        for n in [1, 7] {
            let seen = ptrace::step_through(|| _ = RawCall::getppid().repeat(n), 100_000);
            let entries = seen.expect("traced").expect("short").entries;
            assert_eq!(entries.iter().filter(|call| call.number == libc::SYS_getppid).count(), n as usize);
        }
    }

    #[test]
    fn every_loop_begins_a_cache_line_and_ends_within_it() {
        const LINE: usize = 64;
        let (read, write) = nix::unistd::pipe().expect("a pipe");
        let loops: [fn(i32, i32, u64); 4] = [
            |_, _, n| _ = RawCall::getppid().repeat(n),
            |_, _, n| _ = arch::repeat_no_syscall(0, [0; 6], n),
            |write, read, n| _ = repeat_write_read(write, read, &mut 0, n),
            |_, _, n| _ = repeat_open_close(c"/dev/null", n),
        ];
        for turns in loops {
            let mut visits = std::collections::BTreeMap::<usize, u64>::new();
            let body = || turns(write.as_raw_fd(), read.as_raw_fd(), 50);
            let counted =
                ptrace::step_each(body, 100_000, |step| *visits.entry(step.address).or_default() += 1);
            assert!(counted.expect("traced"), "short");
            let turned: Vec<usize> = visits.into_iter().filter(|(_, n)| *n == 50).map(|(at, _)| at).collect();
            let (first, branch) = (turned[0], turned[turned.len() - 1]);
            // A branch that ends its line is as slow as one in the next line. The branch has two bytes (x86-64) or four.
            assert!(first % LINE == 0 && branch - first < LINE - 4, "{turned:x?}");
        }
    }
}

//! Filters of system calls (seccomp(2)). A filter is inherited by every child, and cannot be removed.
//!
//! # Invariants
//!
//! * **FILTER**: the program and its length are those of one slice that lives across the call; the kernel
//!   copies it and refuses a program that does not end.
//! * **OWN-DESCRIPTOR**: a descriptor that the kernel has just returned has no other owner.
//! * **OWN-BUFFER**: the kernel reads or writes one local structure of the type that the request names.
//!
//! [`install_filter`] slows down every system call in a known way: the kernel runs a filter of chosen length, which allows
//! everything, at each entry. Since Linux 5.11 the kernel does not run a filter for a call that it allows with any
//! arguments. This filter loads the first argument, so the kernel must run it.

#![allow(unsafe_code)]

use crate::error::{Error, Result};
use libc::{c_ulong, sock_filter, sock_fprog};
use nix::errno::Errno;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};

/// Offsets in the data that a filter loads from, `struct seccomp_data`: the number of the call, and its first argument.
pub const NUMBER: u32 = 0;
/// See [`NUMBER`].
pub const FIRST_ARGUMENT: u32 = 16;

/// An instruction that loads a word of the call's data.
pub fn load(offset: u32) -> sock_filter {
    jump(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, offset, 0, 0)
}

/// An instruction that adds one.
pub fn add_one() -> sock_filter {
    jump(libc::BPF_ALU | libc::BPF_ADD | libc::BPF_K, 1, 0, 0)
}

/// An instruction that skips `otherwise` instructions unless the loaded word has this value.
pub fn skip_unless(value: u32, otherwise: u8) -> sock_filter {
    jump(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, value, 0, otherwise)
}

/// An instruction that ends the filter with this action (`SECCOMP_RET_…`).
pub fn end(action: u32) -> sock_filter {
    jump(libc::BPF_RET | libc::BPF_K, action, 0, 0)
}

fn jump(code: u32, k: u32, jt: u8, jf: u8) -> sock_filter {
    sock_filter { code: code as u16, jt, jf, k }
}

/// A number that no system call has. A [`marked_filter`] refuses it by the error [`MARK`].
pub const NO_SUCH_CALL: u32 = 9_999;
/// The error number of [`NO_SUCH_CALL`] under a [`marked_filter`]. The kernel has no error of this number.
pub const MARK: i64 = 4_000;

/// A filter of `length` instructions, which loads the word at the offset `looks_at` of each call. It allows all calls but
/// [`NO_SUCH_CALL`], which its last instructions refuse by the error [`MARK`].
pub fn marked_filter(length: usize, looks_at: u32) -> Vec<sock_filter> {
    let end = [
        load(NUMBER),
        skip_unless(NO_SUCH_CALL, 1),
        end(libc::SECCOMP_RET_ERRNO | MARK as u32),
        end(libc::SECCOMP_RET_ALLOW),
    ];
    let filler = if looks_at == NUMBER { skip_unless(NO_SUCH_CALL + 1, 0) } else { add_one() };
    let mut filter = vec![load(looks_at)];
    filter.resize(length - end.len(), filler);
    filter.extend(end);
    filter
}

/// Installs a filter for this thread and its children.
///
/// # Errors
/// The kernel refuses seccomp, or the program.
pub fn install(filter: &[sock_filter]) -> Result<()> {
    // Without the flag older kernels switch off speculative stores for a filtered process, which would slow down more than
    // its calls.
    install_with(filter, libc::SECCOMP_FILTER_FLAG_SPEC_ALLOW).map(drop)
}

/// As [`install`], and returns the descriptor by which another process answers the calls (`SECCOMP_RET_USER_NOTIF`).
///
/// # Errors
/// [`Error::Missing`] where the kernel refuses.
pub fn install_with_listener(filter: &[sock_filter]) -> Result<OwnedFd> {
    let descriptor = install_with(filter, libc::SECCOMP_FILTER_FLAG_NEW_LISTENER).map_err(|error| {
        Error::Missing(format!(
            "no process can be asked about the calls of another one ({error}): Linux 5.0 can"
        ))
    })?;
    // SAFETY: OWN-DESCRIPTOR.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor as i32) })
}

fn install_with(filter: &[sock_filter], flags: c_ulong) -> Result<i64> {
    let program = sock_fprog { len: filter.len() as u16, filter: filter.as_ptr().cast_mut() };
    // Without a privilege the kernel takes a filter only from a process that can never gain one.
    nix::sys::prctl::set_no_new_privs().map_err(|e| Error::from_errno("prctl PR_SET_NO_NEW_PRIVS", e))?;
    let set_filter = |flags: c_ulong| {
        // SAFETY: FILTER.
        Errno::result(unsafe {
            libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, flags, &raw const program)
        })
    };
    match set_filter(flags) {
        // Linux before 4.17 and gVisor do not know this flag.
        Err(Errno::EINVAL) if flags == libc::SECCOMP_FILTER_FLAG_SPEC_ALLOW => set_filter(0),
        answer => answer,
    }
    .map_err(|e| Error::from_case_errno("seccomp SECCOMP_SET_MODE_FILTER", e))
}

/// Waits for a call that a filter sends to this listener, and makes the call return this value.
///
/// # Errors
/// The kernel refuses the wait, or the call was interrupted.
#[inline(always)]
pub fn answer_next_call(listener: impl AsFd, value: i64) -> nix::Result<()> {
    let descriptor = listener.as_fd().as_raw_fd();
    // SAFETY: OWN-BUFFER: plain numbers, which the kernel wants to be zero.
    let mut asked: libc::seccomp_notif = unsafe { std::mem::zeroed() };
    // SAFETY: OWN-BUFFER.
    Errno::result(unsafe { libc::ioctl(descriptor, libc::SECCOMP_IOCTL_NOTIF_RECV, &raw mut asked) })?;
    let mut answer = libc::seccomp_notif_resp { id: asked.id, val: value, error: 0, flags: 0 };
    // SAFETY: OWN-BUFFER.
    Errno::result(unsafe { libc::ioctl(descriptor, libc::SECCOMP_IOCTL_NOTIF_SEND, &raw mut answer) })
        .map(drop)
}

/// The longest filter that the kernel takes, in instructions (`BPF_MAXINSNS`).
pub const LONGEST: usize = 4096;
/// Instructions around the additions: the load and the return.
const FRAME: usize = 2;

/// Installs a filter that executes `instructions` additions at every system call of this process and of its children.
/// It cannot be removed.
///
/// # Errors
/// [`Error::Usage`] if it is too long; the kernel refuses seccomp.
pub fn install_filter(instructions: usize) -> Result<()> {
    if instructions > LONGEST - FRAME {
        return Err(Error::Usage(format!(
            "a filter of {instructions} additions is too long: the kernel takes {}",
            LONGEST - FRAME
        )));
    }
    install(&filter_program(instructions))
}

fn filter_program(instructions: usize) -> Vec<sock_filter> {
    let mut code = vec![load(FIRST_ARGUMENT)];
    code.resize(1 + instructions, add_one());
    code.push(end(libc::SECCOMP_RET_ALLOW));
    code
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_loads_adds_and_allows() {
        let code = filter_program(3);
        assert_eq!(code.len(), 3 + FRAME);
        assert_eq!((code[0].k, code[4].k), (16, libc::SECCOMP_RET_ALLOW));
    }

    #[test]
    fn a_filter_that_is_too_long_is_refused_before_a_change() {
        assert!(install_filter(LONGEST).expect_err("too long").to_string().contains("4094"));
    }
}

//! Interruption: a signal sets a flag, which is checked between samples, and is passed on to the one
//! child that may be running.
//!
//! # Invariants
//!
//! * **HANDLER**: the handler stores to an atomic and calls `kill`, both of which POSIX allows there.
#![allow(unsafe_code)]

use crate::error::{Error, Result};
use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};
use std::sync::atomic::{AtomicI32, Ordering};

static PENDING: AtomicI32 = AtomicI32::new(0);
static CHILD: AtomicI32 = AtomicI32::new(0);

extern "C" fn remember(signal: libc::c_int) {
    // The second signal kills the child, because the first was not enough.
    let again = PENDING.swap(signal, Ordering::SeqCst) != 0;
    let errno = nix::errno::Errno::last_raw();
    pass_on(CHILD.load(Ordering::SeqCst), if again { libc::SIGKILL } else { signal });
    // The interrupted code must find errno unchanged.
    nix::errno::Errno::set_raw(errno);
}

fn pass_on(child: i32, signal: libc::c_int) {
    if child > 0 {
        // SAFETY: HANDLER. If the child has ended there is nothing to do.
        unsafe { libc::kill(child, signal) };
    }
}

/// From now on SIGINT, SIGTERM and SIGHUP do not end the process but are reported by [`pending`]. A write that exceeds
/// `ulimit -f` does not end it either but returns an error.
///
/// # Errors
/// The kernel refuses `sigaction`.
pub fn watch() -> Result<()> {
    let action = SigAction::new(SigHandler::Handler(remember), SaFlags::SA_RESTART, SigSet::empty());
    for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP] {
        // SAFETY: HANDLER.
        unsafe { sigaction(signal, &action) }.map_err(|e| Error::refused("sigaction", e))?;
    }
    survive_the_file_limit()
}

/// From now on a write that exceeds `ulimit -f` answers EFBIG and does not end the process.
///
/// # Errors
/// The kernel refuses `sigaction`.
pub fn survive_the_file_limit() -> Result<()> {
    let ignored = SigAction::new(SigHandler::SigIgn, SaFlags::empty(), SigSet::empty());
    // SAFETY: HANDLER: no handler of ours runs.
    unsafe { sigaction(Signal::SIGXFSZ, &ignored) }.map_err(|e| Error::refused("sigaction", e))?;
    Ok(())
}

/// The signal that arrived, if one did.
pub fn pending() -> Option<Signal> {
    Signal::try_from(PENDING.load(Ordering::SeqCst)).ok()
}

/// Sets the child to which signals are passed on; `None` when it has ended. A signal that has arrived while the child
/// was being started is passed on at once.
pub fn pass_on_to(child: Option<u32>) {
    pass_later_ones_on_to(child);
    if let Some(signal) = pending() {
        pass_on(CHILD.load(Ordering::SeqCst), signal as libc::c_int);
    }
}

/// As [`pass_on_to`], for a child that finishes what a signal interrupted: only a signal from now on reaches it.
pub fn pass_later_ones_on_to(child: Option<u32>) {
    let child = child.and_then(|pid| i32::try_from(pid).ok()).unwrap_or(0);
    CHILD.store(child, Ordering::SeqCst);
}

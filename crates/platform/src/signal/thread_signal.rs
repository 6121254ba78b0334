//! Timers that signal one thread. nix offers `SIGEV_THREAD_ID` with the GNU C library only; musl has it as well.
//!
//! # Invariants
//!
//! * **PLAIN**: the structure holds numbers and a pointer that is never followed, for which zero is a valid value.
#![allow(unsafe_code)]

use nix::sys::signal::{SigEvent, Signal};

/// What a timer does when it expires: it sends this signal to this thread of the process.
pub fn thread_signal_event(signal: Signal, thread: libc::pid_t) -> SigEvent {
    // SAFETY: PLAIN.
    let mut event: libc::sigevent = unsafe { std::mem::zeroed() };
    event.sigev_notify = libc::SIGEV_THREAD_ID;
    event.sigev_signo = signal as libc::c_int;
    event.sigev_notify_thread_id = thread;
    SigEvent::from(&event)
}

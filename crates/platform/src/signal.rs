//! Interruption: the handler of a signal sets a flag, which is checked between samples, and passes the signal on to the one
//! child that may be running. Also treats the signals that a process has inherited as ignored or blocked:
//!
//! | inherited | a process that watches for signals | a measuring process |
//! |---|---|---|
//! | SIGINT or SIGHUP ignored (a shell's `&`, `nohup`) | stays ignored | stays ignored |
//! | SIGTERM ignored | ends the run in good order | ends the run in good order |
//! | SIGINT, SIGTERM or SIGHUP blocked | unblocked | unblocked |
//! | SIGCHLD ignored | default action, since its children are waited for | default action |
//! | any other signal blocked or ignored | unchanged | unblocked, with its default action unless in `KEPT` |
//!
//! # Invariants
//!
//! * **HANDLER**: the handler stores to an atomic and calls `kill` and `write`, which POSIX allows there.
//! * **OWN-BUFFER**: the call reads and writes only local structures of the size that it expects.
//! * **PLAIN**: the structure holds numbers and a pointer that is never followed, for which zero is a valid value.

#![allow(unsafe_code)]

use crate::error::{Error, Result};
use nix::sys::signal::SigmaskHow::{SIG_SETMASK, SIG_UNBLOCK};
use nix::sys::signal::{SaFlags, SigAction, SigEvent, SigHandler, SigSet, Signal, sigaction, sigprocmask};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr::null;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicI32, AtomicU32, Ordering};

static PENDING: AtomicI32 = AtomicI32::new(0);
static CHILD: AtomicI32 = AtomicI32::new(0);
/// Number of signals that have arrived.
static ARRIVED: AtomicU32 = AtomicU32::new(0);
/// The eventfd that the handler writes to; -1 if there is none.
static EVENTFD: AtomicI32 = AtomicI32::new(-1);

/// Signals that end a run in good order.
const WATCHED: [Signal; 3] = [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP];
/// Signals that a measuring process leaves ignored: the user, or this crate, has ignored them for the whole job.
const KEPT: [libc::c_int; 8] = [
    libc::SIGINT,
    libc::SIGHUP,
    libc::SIGQUIT,
    libc::SIGTSTP,
    libc::SIGTTIN,
    libc::SIGTTOU,
    libc::SIGPIPE,
    libc::SIGXFSZ,
];

extern "C" fn handle_signal(signal: libc::c_int) {
    // The second signal kills the child, because the first was not enough.
    let again = PENDING.swap(signal, Ordering::SeqCst) != 0;
    ARRIVED.fetch_add(1, Ordering::SeqCst);
    let errno = nix::errno::Errno::last_raw();
    send_to_child(CHILD.load(Ordering::SeqCst), if again { libc::SIGKILL } else { signal });
    make_eventfd_readable(EVENTFD.load(Ordering::SeqCst));
    // The interrupted code must find errno unchanged.
    nix::errno::Errno::set_raw(errno);
}

fn send_to_child(child: i32, signal: libc::c_int) {
    if child > 0 {
        // SAFETY: HANDLER. If the child has ended there is nothing to do.
        unsafe { libc::kill(child, signal) };
    }
}

fn make_eventfd_readable(eventfd: i32) {
    if eventfd >= 0 {
        let one = 1u64;
        // SAFETY: HANDLER, OWN-BUFFER: the descriptor is never closed. If its counter is full, it is readable already.
        unsafe { libc::write(eventfd, (&raw const one).cast(), size_of::<u64>()) };
    }
}

/// From now on SIGINT, SIGTERM and SIGHUP do not end the process but are reported by [`pending`], even if they were blocked.
/// SIGINT and SIGHUP stay ignored if they are: a shell ignores SIGINT in the background, and `nohup` ignores SIGHUP. Calls
/// [`set_initial_dispositions`], too.
///
/// # Errors
/// The kernel refuses `sigaction`.
pub fn watch_signals() -> Result<()> {
    set_initial_dispositions()?;
    for signal in
        WATCHED.into_iter().filter(|&signal| signal == Signal::SIGTERM || !is_ignored(signal as i32))
    {
        set_action(signal, SigHandler::Handler(handle_signal), SaFlags::SA_RESTART)?;
    }
    let set = SigSet::from_iter(WATCHED.into_iter().chain([Signal::SIGCHLD]));
    sigprocmask(SIG_UNBLOCK, Some(&set), None).map_err(|e| Error::from_errno("sigprocmask", e))
}

/// Watches SIGXCPU like the signals of [`watch_signals`], so that results are kept when the limit of CPU time is near.
///
/// # Errors
/// The kernel refuses `sigaction`.
pub fn watch_cpu_limit() -> Result<()> {
    set_action(Signal::SIGXCPU, SigHandler::Handler(handle_signal), SaFlags::SA_RESTART)
}

fn set_action(signal: Signal, handler: SigHandler, flags: SaFlags) -> Result<()> {
    let action = SigAction::new(handler, flags, SigSet::empty());
    // SAFETY: HANDLER.
    unsafe { sigaction(signal, &action) }.map_err(|e| Error::from_errno("sigaction", e))?;
    Ok(())
}

fn is_ignored(signal: libc::c_int) -> bool {
    let mut now = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: OWN-BUFFER: the C library refuses its own signals, and then the structure is zero, as for no handler.
    unsafe {
        libc::sigaction(signal, null(), now.as_mut_ptr());
        now.assume_init().sa_sigaction == libc::SIG_IGN
    }
}

/// Whether SIGCHLD and SIGXFSZ were ignored when this process began.
static IGNORED: OnceLock<[bool; 2]> = OnceLock::new();

/// From now on a write that exceeds `ulimit -f` fails with EFBIG and does not end the process, and children that end can be
/// waited for: with SIGCHLD ignored the kernel would discard their status.
///
/// # Errors
/// The kernel refuses `sigaction`.
pub fn set_initial_dispositions() -> Result<()> {
    IGNORED.get_or_init(|| [libc::SIGCHLD, libc::SIGXFSZ].map(is_ignored));
    for (signal, handler) in [(Signal::SIGCHLD, SigHandler::SigDfl), (Signal::SIGXFSZ, SigHandler::SigIgn)] {
        set_action(signal, handler, SaFlags::empty())?;
    }
    Ok(())
}

/// Undoes [`set_initial_dispositions`]. It allocates nothing, so that a forked child can use it.
pub(super) fn restore_inherited_dispositions() {
    let ignored = IGNORED.get().copied().unwrap_or_default();
    for (signal, ignored) in [libc::SIGCHLD, libc::SIGXFSZ].into_iter().zip(ignored) {
        // SAFETY: HANDLER: no handler of ours runs.
        unsafe { libc::signal(signal, if ignored { libc::SIG_IGN } else { libc::SIG_DFL }) };
    }
}

/// Resets the signals that a measuring process has inherited: all are unblocked, and ignored ones get their default action,
/// except those that stay ignored in the whole job.
pub fn reset_dispositions() {
    let signals = (1..=libc::SIGRTMAX()).filter(|signal| !KEPT.contains(signal) && is_ignored(*signal));
    for signal in signals {
        // SAFETY: HANDLER: no handler of ours runs.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
    // An empty set is valid, and this call can fail for no other reason.
    let _ = sigprocmask(SIG_SETMASK, Some(&SigSet::empty()), None);
}

/// An eventfd(2) that is readable from the arrival of a signal until [`silence_bell`]. A poll(2) on other descriptors can include
/// it. `None` if the kernel refuses it.
pub fn bell_descriptor() -> Option<BorrowedFd<'static>> {
    static OWNED: OnceLock<Option<OwnedFd>> = OnceLock::new();
    let owned = OWNED.get_or_init(|| {
        // SAFETY: OWN-BUFFER: numbers. The kernel has just made the descriptor, which has no other owner.
        let eventfd = unsafe {
            let descriptor = libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK);
            (descriptor >= 0).then(|| OwnedFd::from_raw_fd(descriptor))
        };
        EVENTFD.store(eventfd.as_ref().map_or(-1, AsRawFd::as_raw_fd), Ordering::SeqCst);
        eventfd
    });
    owned.as_ref().map(AsFd::as_fd)
}

/// Resets the eventfd of [`bell_descriptor`], so that it is not readable until the next signal.
pub fn silence_bell() {
    let mut times = 0u64;
    let eventfd = EVENTFD.load(Ordering::SeqCst);
    // SAFETY: OWN-BUFFER: eight bytes.
    unsafe { libc::read(eventfd, (&raw mut times).cast(), size_of::<u64>()) };
}

/// How many signals have arrived.
pub fn arrived_count() -> u32 {
    ARRIVED.load(Ordering::SeqCst)
}

/// The signal that arrived, if one did.
pub fn pending() -> Option<Signal> {
    Signal::try_from(PENDING.load(Ordering::SeqCst)).ok()
}

/// Sets the child to which signals are passed on; `None` when it has ended. A signal that has arrived while the child
/// was being started is passed on at once.
pub fn forward_to_child(child: Option<u32>) {
    forward_later_to_child(child);
    if let Some(signal) = pending() {
        send_to_child(CHILD.load(Ordering::SeqCst), signal as libc::c_int);
    }
}

/// As [`forward_to_child`], for a child that finishes interrupted work: only signals that arrive from now on reach it.
pub fn forward_later_to_child(child: Option<u32>) {
    let child = child.and_then(|pid| i32::try_from(pid).ok()).unwrap_or(0);
    CHILD.store(child, Ordering::SeqCst);
}

/// The event of a timer that sends this signal to this thread of the process when it expires. nix offers
/// `SIGEV_THREAD_ID` with the GNU C library only; musl has it as well.
pub fn thread_signal_event(signal: Signal, thread: libc::pid_t) -> SigEvent {
    // SAFETY: PLAIN.
    let mut event: libc::sigevent = unsafe { std::mem::zeroed() };
    event.sigev_notify = libc::SIGEV_THREAD_ID;
    event.sigev_signo = signal as libc::c_int;
    event.sigev_notify_thread_id = thread;
    SigEvent::from(&event)
}

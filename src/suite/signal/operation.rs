//! Signals that a process sends to itself: caught, ignored, read from a descriptor, raised by a fault or by a timer.
//!
//! # Invariants
//!
//! * **HANDLER**: a handler here adds to an atomic or changes the protection of one page by a bare system call,
//!   which POSIX allows, and leaves `errno` alone. Dropping the [`Action`] restores the action before it.
//! * **OWN-PAGE**: the page whose protection changes belongs to one [`Page`], which alone accesses it. The handler finds
//!   its address in an atomic.
//! * **OWN-BUFFER**: the kernel reads and writes only the value that it is given, which is as large as its structure.
#![allow(unsafe_code)]

use crate::error::{Error, Result, ensure};
use crate::kit::kernel_call::check_granted;
use crate::platform::arch::syscall4;
use crate::platform::child::Child;
use crate::platform::limit;
use memmap2::MmapMut;
use nix::errno::Errno;
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::timerfd::{ClockId, TimerFd, TimerFlags};
use std::mem::{MaybeUninit, size_of};
use std::os::fd::{AsFd, AsRawFd};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

/// The signal that the cases send. No other code in this crate uses it.
pub const SIGNAL: i32 = libc::SIGUSR1;

/// Number of runs of the handlers of this file.
static CAUGHT: AtomicU64 = AtomicU64::new(0);
/// Address and length of the page whose faults are repaired; the length is 0 if there is none.
static PAGE: [AtomicUsize; 2] = [AtomicUsize::new(0), AtomicUsize::new(0)];

/// Number of runs of the handlers of this file.
#[inline(always)]
pub fn handler_runs() -> u64 {
    CAUGHT.load(Ordering::Relaxed)
}

extern "C" fn count_signal(_: libc::c_int) {
    CAUGHT.store(CAUGHT.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
}

extern "C" fn make_page_writable(signal: libc::c_int, about: *mut libc::siginfo_t, _: *mut libc::c_void) {
    let [begins, bytes] = [&PAGE[0], &PAGE[1]].map(|word| word.load(Ordering::Relaxed));
    // SAFETY: HANDLER: for a fault the kernel fills in the address.
    let at = unsafe { (*about).si_addr() } as usize;
    if !(begins..begins + bytes).contains(&at) {
        // The fault is at another address: with the default action it recurs and ends the process.
        // SAFETY: HANDLER.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
        return;
    }
    // SAFETY: OWN-PAGE.
    unsafe { syscall4(libc::SYS_mprotect, begins, bytes, (libc::PROT_READ | libc::PROT_WRITE) as usize, 0) };
    count_signal(signal);
}

/// An action for a signal. Dropping it restores the action before it.
pub struct Action {
    signal: i32,
    chosen: libc::sigaction,
    before: libc::sigaction,
}

impl Action {
    /// A handler that counts [`SIGNAL`].
    ///
    /// # Errors
    /// The refusal of `rt_sigaction`.
    pub fn counting_handler() -> Result<Self> {
        Self::new(SIGNAL, count_signal as *const () as usize, 0)
    }

    /// Ignores [`SIGNAL`].
    ///
    /// # Errors
    /// The refusal of `rt_sigaction`.
    pub fn ignoring_signal() -> Result<Self> {
        Self::new(SIGNAL, libc::SIG_IGN, 0)
    }

    fn new(signal: i32, handler: usize, flags: i32) -> Result<Self> {
        // SAFETY: OWN-BUFFER: `sigaction` is plain integers and an empty set, for which zero is valid.
        let mut chosen: libc::sigaction = unsafe { std::mem::zeroed() };
        chosen.sa_sigaction = handler;
        chosen.sa_flags = flags;
        let mut before = MaybeUninit::zeroed();
        // SAFETY: HANDLER, OWN-BUFFER.
        let answer = unsafe { libc::sigaction(signal, &raw const chosen, before.as_mut_ptr()) };
        ensure(answer == 0, || Error::from_case_errno("rt_sigaction", Errno::last()))?;
        // SAFETY: OWN-BUFFER: the kernel has written the previous action.
        Ok(Self { signal, chosen, before: unsafe { before.assume_init() } })
    }

    /// Installs the same action again. Returns 0, or a negative error number.
    #[inline(always)]
    pub fn install_again(&self) -> i64 {
        // SAFETY: HANDLER.
        let answer = unsafe { libc::sigaction(self.signal, &raw const self.chosen, null_mut()) };
        if answer == 0 { 0 } else { -i64::from(Errno::last_raw()) }
    }
}

impl Drop for Action {
    fn drop(&mut self) {
        // SAFETY: HANDLER: this was the action before.
        unsafe { libc::sigaction(self.signal, &raw const self.before, null_mut()) };
    }
}

/// Sends a signal to a process; number 0 only checks the permission to send one. Returns 0, or a negative error
/// number.
#[inline(always)]
pub fn send_signal(process: i32, signal: i32) -> i64 {
    // SAFETY: OWN-BUFFER: the call reads and writes no memory.
    unsafe { syscall4(libc::SYS_kill, process as usize, signal as usize, 0, 0) }
}

/// The kernel's signal set of [`SIGNAL`] alone.
static ONLY: u64 = 1 << (SIGNAL - 1);

/// Blocks or unblocks [`SIGNAL`] in this thread. Returns 0, or a negative error number.
#[inline(always)]
pub fn set_blocked(blocked: bool) -> i64 {
    let how = if blocked { libc::SIG_BLOCK } else { libc::SIG_UNBLOCK };
    // SAFETY: OWN-BUFFER: the kernel reads eight bytes.
    unsafe { syscall4(libc::SYS_rt_sigprocmask, how as usize, &raw const ONLY as usize, 0, size_of::<u64>()) }
}

/// A page that is written while it is read-only, with a handler that makes it writable.
pub struct Page {
    memory: MmapMut,
    /// The handler that repairs faults of the page, or `None` if they end the process.
    action: Option<Action>,
}

impl Page {
    /// A touched page without a handler: writing to it while it is protected ends the process.
    ///
    /// # Errors
    /// [`Error::Kernel`] if it cannot be mapped.
    pub fn without_handler() -> Result<Self> {
        let refused = |cause| Error::Kernel { call: "mmap of a page".into(), cause };
        let mut memory =
            MmapMut::map_anon(crate::platform::process::page_size() as usize).map_err(refused)?;
        memory[0] = 1;
        Ok(Self { memory, action: None })
    }

    /// A touched page whose faults are repaired. There may be only one at a time.
    ///
    /// # Errors
    /// [`Error::Kernel`] if it cannot be mapped, and the refusal of `rt_sigaction`.
    pub fn with_repair_handler() -> Result<Self> {
        let mut page = Self::without_handler()?;
        PAGE[0].store(page.memory.as_mut_ptr() as usize, Ordering::SeqCst);
        PAGE[1].store(page.memory.len(), Ordering::SeqCst);
        page.action =
            Some(Action::new(libc::SIGSEGV, make_page_writable as *const () as usize, libc::SA_SIGINFO)?);
        Ok(page)
    }

    /// Makes the page writable or read-only. Returns 0, or a negative error number.
    #[inline(always)]
    pub fn set_writable(&mut self, writable: bool) -> i64 {
        let protection = if writable { libc::PROT_READ | libc::PROT_WRITE } else { libc::PROT_READ };
        let (begins, bytes) = (self.memory.as_mut_ptr() as usize, self.memory.len());
        // SAFETY: OWN-PAGE.
        unsafe { syscall4(libc::SYS_mprotect, begins, bytes, protection as usize, 0) }
    }

    /// Writes to the page, protected or not.
    #[inline(always)]
    pub fn write(&mut self) {
        // SAFETY: OWN-PAGE: if it is protected, the handler makes it writable and the store is executed again; without
        // a handler the process ends.
        unsafe { self.memory.as_mut_ptr().write_volatile(1) };
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        self.set_writable(true);
        if self.action.is_some() {
            PAGE[1].store(0, Ordering::SeqCst);
        }
    }
}

/// Time limit for a child that sends itself a signal and reads it.
const CHILD_LIMIT: Duration = Duration::from_secs(5);

/// A descriptor from which [`SIGNAL`] is read. This thread blocks the signal until the descriptor is dropped.
pub struct Descriptor {
    file: SignalFd,
    about: Box<libc::signalfd_siginfo>,
}

impl Descriptor {
    /// Blocks the signal and opens the descriptor.
    ///
    /// # Errors
    /// The refusal of `signalfd4`.
    pub fn new() -> Result<Self> {
        let set = SigSet::from_iter(Signal::try_from(SIGNAL));
        let file = SignalFd::with_flags(&set, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK)
            .map_err(|e| Error::from_case_errno("signalfd4", e))?;
        check_granted("rt_sigprocmask", set_blocked(true))?;
        // SAFETY: OWN-BUFFER: plain integers, for which zero is valid.
        Ok(Self { file, about: Box::new(unsafe { std::mem::zeroed() }) })
    }

    /// Checks that a forked child reads its own signals from an inherited descriptor, as a witness must. In gVisor it would read
    /// the signals of its parent.
    ///
    /// # Errors
    /// A sentence: the child does not, or the reason why the descriptor cannot be opened.
    pub fn check_read_by_child() -> std::result::Result<(), String> {
        let mut inherited = Self::new().map_err(|error| error.to_string())?;
        let child = Child::start(move || {
            let sent = send_signal(nix::unistd::getpid().as_raw(), SIGNAL);
            assert!(sent == 0 && inherited.read() == i64::from(SIGNAL));
        });
        let ended = child.and_then(|child| child.wait_for_success(CHILD_LIMIT));
        ended.map_err(|_| {
            "a process does not read its signals from a signalfd that it inherits, so no witness can watch it".into()
        })
    }

    /// Reads one signal. Returns its number, or a negative error number.
    #[inline(always)]
    pub fn read(&mut self) -> i64 {
        let (at, bytes) = (&raw mut *self.about as usize, size_of::<libc::signalfd_siginfo>());
        // SAFETY: OWN-BUFFER.
        let answer = unsafe { syscall4(libc::SYS_read, self.file.as_raw_fd() as usize, at, bytes, 0) };
        if answer < 0 { answer } else { i64::from(self.about.ssi_signo) }
    }
}

impl Drop for Descriptor {
    fn drop(&mut self) {
        while self.read() > 0 {} // a pending signal would end the process when it is unblocked
        set_blocked(false);
    }
}

/// A time that has already passed when a timer is set to it.
static AT_ONCE: libc::itimerspec = libc::itimerspec {
    it_interval: libc::timespec { tv_sec: 0, tv_nsec: 0 },
    it_value: libc::timespec { tv_sec: 0, tv_nsec: 1 },
};

/// A POSIX timer that sends [`SIGNAL`] to the thread that made it.
pub struct Timer(i32);

impl Timer {
    /// A timer that is not set.
    ///
    /// # Errors
    /// The refusal of `timer_create`.
    pub fn new() -> Result<Self> {
        // SAFETY: OWN-BUFFER: `sigevent` is plain integers.
        let mut event: libc::sigevent = unsafe { std::mem::zeroed() };
        event.sigev_notify = libc::SIGEV_THREAD_ID;
        event.sigev_signo = SIGNAL;
        event.sigev_notify_thread_id = nix::unistd::gettid().as_raw();
        let mut id = 0i32;
        // SAFETY: OWN-BUFFER.
        let answer = unsafe {
            let (event, id) = (&raw mut event as usize, &raw mut id as usize);
            syscall4(libc::SYS_timer_create, libc::CLOCK_MONOTONIC as usize, event, id, 0)
        };
        ensure(answer >= 0, || limit::timer_error("timer_create", Error::decode_errno(answer)))?;
        Ok(Self(id))
    }

    /// Sets the timer so that it expires at once. Returns 0, or a negative error number.
    #[inline(always)]
    pub fn expire_at_once(&self) -> i64 {
        // SAFETY: OWN-BUFFER: the kernel reads one structure.
        unsafe { syscall4(libc::SYS_timer_settime, self.0 as usize, 0, &raw const AT_ONCE as usize, 0) }
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        // SAFETY: OWN-BUFFER: the call reads and writes no memory.
        unsafe { syscall4(libc::SYS_timer_delete, self.0 as usize, 0, 0, 0) };
    }
}

/// A timer that is read from a descriptor.
pub struct TimerDescriptor(TimerFd);

impl TimerDescriptor {
    /// A timer that is not set.
    ///
    /// # Errors
    /// The refusal of `timerfd_create`.
    pub fn new() -> Result<Self> {
        let timer = TimerFd::new(ClockId::CLOCK_MONOTONIC, TimerFlags::TFD_CLOEXEC);
        timer.map(Self).map_err(|e| Error::from_case_errno("timerfd_create", e))
    }

    /// Sets the timer so that it expires at once, and reads it. Returns the number of expiries, or a negative error number.
    #[inline(always)]
    pub fn expire_and_read(&self) -> i64 {
        let file = self.0.as_fd().as_raw_fd();
        // SAFETY: OWN-BUFFER: the kernel reads one structure.
        let set = unsafe { libc::timerfd_settime(file, 0, &raw const AT_ONCE, null_mut()) };
        if set != 0 {
            return -i64::from(Errno::last_raw());
        }
        let mut times = 0u64;
        let at = &raw mut times as usize;
        // SAFETY: OWN-BUFFER: eight bytes.
        let answer = unsafe { syscall4(libc::SYS_read, file as usize, at, size_of::<u64>(), 0) };
        if answer < 0 { answer } else { times as i64 }
    }
}

#[cfg(test)]
#[path = "operation_tests.rs"]
mod tests;

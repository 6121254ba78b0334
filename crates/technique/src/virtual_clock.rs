//! The virtual clock of a process, which advances only while the process executes, and a timer on it.
//!
//! In the slides, the time of one physical clock is stored in the control block of each process at every context switch.
//! Linux does that with a resolution of nanoseconds: `CLOCK_PROCESS_CPUTIME_ID` is the process's own clock, and the clock of
//! another process can be read by its process id. [`VirtualClock::from_pid`] holds the process by a descriptor, so that it
//! never reads the clock of a later process with the same id.
//!
//! [`VirtualTimer`] expires after an interval on such a clock and calls a routine: not in a signal handler but on a
//! thread of its own that waits for the signal, so that the routine may allocate, lock and write.
//!
//! The resolution of the timer is coarser than that of the clock. The kernel tests such timers when its tick interrupts the
//! process (`run_posix_cpu_timers`): with 250 ticks per second a timer expires up to 4 ms late.
//! [`VirtualTimer::measure_resolution`] measures this delay. The example `virtual_clock` runs both the clock and the timer.
//!
//! Source: slides 33 to 36 of the [module's](super) slides; timer_create(2), clock_getcpuclockid(3).

use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::timer::{Expiration, Timer, TimerSetTimeFlags};
use nix::time::ClockId;
use nix::unistd::Pid;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use syscost_counters::Process;
use syscost_platform::arch;
use syscost_platform::error::{Error, Result};
use syscost_platform::signal::thread_signal_event;
use syscost_platform::time::{clock_gettime_entry_ns, clock_gettime_ns};

/// The virtual clock of a process.
#[derive(Debug)]
pub enum VirtualClock {
    /// The clock of this process.
    Own,
    /// The clock of another process.
    Of(Process),
}

impl VirtualClock {
    /// The clock of the process that has this id now.
    ///
    /// # Errors
    /// The errors of [`Process::open`].
    pub fn from_pid(pid: i32) -> Result<Self> {
        Ok(Self::Of(Process::open(pid)?))
    }

    /// The time for which the process has executed, over all its threads.
    ///
    /// # Errors
    /// [`Error::Missing`] once the process has ended.
    #[inline]
    pub fn read(&self) -> Result<Duration> {
        match self {
            Self::Own => Ok(Duration::from_nanos(clock_gettime_entry_ns(libc::CLOCK_PROCESS_CPUTIME_ID))),
            Self::Of(process) => Ok(process.cpu_time()?.value),
        }
    }

    fn clock_id(&self) -> Result<ClockId> {
        match self {
            Self::Own => Ok(ClockId::CLOCK_PROCESS_CPUTIME_ID),
            Self::Of(process) => ClockId::pid_cpu_clock_id(Pid::from_raw(process.pid()))
                .map_err(|errno| Error::from_errno("clock_getcpuclockid", errno)),
        }
    }
}

/// Properties of the process's own clock on this machine.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Quality {
    /// The resolution that the kernel promises (clock_getres(2)).
    pub promised: Duration,
    /// The smallest difference observed between two readings.
    pub step: Duration,
    /// The cost of a reading: the fastest of several batches.
    pub cost: Duration,
}

/// Measures the process's own clock.
///
/// # Errors
/// [`Error::Kernel`] where the kernel has no such clock.
pub fn measure_quality() -> Result<Quality> {
    const READINGS: u32 = 1000;
    let refused = |errno| Error::from_errno("clock_getres CLOCK_PROCESS_CPUTIME_ID", errno);
    let promised = ClockId::CLOCK_PROCESS_CPUTIME_ID.res().map_err(refused)?;
    let read = || clock_gettime_entry_ns(libc::CLOCK_PROCESS_CPUTIME_ID);
    let batch = || {
        let begun = clock_gettime_ns(libc::CLOCK_MONOTONIC);
        for _ in 0..READINGS {
            std::hint::black_box(read());
        }
        clock_gettime_ns(libc::CLOCK_MONOTONIC) - begun
    };
    let cost = (0..10).map(|_| batch()).min().unwrap_or(0);
    let steps = (0..READINGS).map(|_| std::array::from_fn::<_, 2, _>(|_| read())).map(|[a, b]| b - a);
    let step = steps.filter(|step| *step > 0).min().unwrap_or_else(|| measure_leap(read));
    Ok(Quality {
        promised: promised.into(),
        step: Duration::from_nanos(step),
        cost: Duration::from_nanos(cost) / READINGS,
    })
}

/// The size of a leap of the clock, ns, if readings stand still between leaps; 0 if the clock never moves. While a timer of
/// this process is armed, the kernel returns the sum of the last tick (kernel/time/posix-cpu-timers.c,
/// `proc_sample_cputime_atomic`).
fn measure_leap(read: impl Fn() -> u64) -> u64 {
    const MOST: u32 = 10_000_000;
    let stood = read();
    (0..MOST).map(|_| read()).find(|now| *now > stood).map_or(0, |now| now - stood)
}

/// The signal of the timers, which is sent only to the thread of the timer.
const SIGNAL: Signal = Signal::SIGVTALRM;

/// A timer that runs down only while its process executes.
pub struct VirtualTimer {
    /// Deleted before its thread ends.
    timer: Option<Timer>,
    /// A pipe to the thread. One byte written to it ends the thread.
    stop: OwnedFd,
    thread: Option<JoinHandle<()>>,
}

/// An expiry of a timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Expiry {
    /// The number of intervals since the last expiry: more than one if the resolution of the timer is coarser than the
    /// interval.
    pub intervals: u64,
}

impl VirtualTimer {
    /// Calls `routine` each time the process has executed for another `interval`.
    ///
    /// # Errors
    /// [`Error::Kernel`] where the kernel refuses the timer or its thread; [`Error::Usage`] for an interval of zero.
    pub fn every(
        interval: Duration,
        clock: &VirtualClock,
        routine: impl FnMut(Expiry) + Send + 'static,
    ) -> Result<Self> {
        if interval.is_zero() {
            return Err(Error::Usage("a timer of no interval never expires: give it one".into()));
        }
        let (ready, started) = channel();
        let (listen, stop) =
            nix::unistd::pipe2(OFlag::O_CLOEXEC).map_err(|e| Error::from_errno("pipe of a timer", e))?;
        let refused = |cause| Error::Kernel { call: "pthread_create of a timer".into(), cause };
        let thread = std::thread::Builder::new().name("virtual timer".into());
        let thread = thread.spawn(move || run_timer_thread(&ready, &listen, routine)).map_err(refused)?;
        let mut this = Self { timer: None, stop, thread: Some(thread) };
        let died = |_| Error::Died("the thread of a timer ended".into());
        let thread_id =
            started.recv().map_err(died)?.map_err(|e| Error::from_errno("signalfd of a timer", e))?;
        let event = thread_signal_event(SIGNAL, thread_id);
        let refused = |errno| Error::from_errno("timer_create on a CPU clock", errno);
        let mut timer = Timer::new(clock.clock_id()?, event).map_err(refused)?;
        timer.set(Expiration::Interval(interval.into()), TimerSetTimeFlags::empty()).map_err(refused)?;
        this.timer = Some(timer);
        Ok(this)
    }

    /// The shortest time between two expiries of a timer on the own clock: the median of five gaps, while the process
    /// computes.
    ///
    /// # Errors
    /// The errors of [`VirtualTimer::every`]; [`Error::Missing`] where the timer does not expire within five seconds.
    pub fn measure_resolution() -> Result<Duration> {
        let (expired, expiries) = channel();
        let now = || clock_gettime_entry_ns(libc::CLOCK_PROCESS_CPUTIME_ID);
        let routine = move |_| {
            let _ = expired.send(now()); // fails once enough have been received
        };
        let timer = Self::every(Duration::from_micros(100), &VirtualClock::Own, routine)?;
        let (begun, mut seen) = (Instant::now(), Vec::new());
        while seen.len() < 6 {
            if begun.elapsed() > Duration::from_secs(5) {
                return Err(Error::Missing("a timer on the process's own clock does not expire here".into()));
            }
            let until = now() + 100_000;
            while now() < until {
                arch::register_loop(1 << 10);
            }
            seen.extend(expiries.try_iter());
        }
        drop(timer);
        let gaps: Vec<f64> = seen.windows(2).map(|pair| (pair[1] - pair[0]) as f64).collect();
        Ok(Duration::from_nanos(syscost_statistic::median(&gaps) as u64))
    }
}

impl Drop for VirtualTimer {
    fn drop(&mut self) {
        drop(self.timer.take());
        // Closing the pipe would not suffice: a forked child may have a copy of it.
        let _ = nix::unistd::write(&self.stop, b".");
        if let Some(thread) = self.thread.take() {
            let _ = thread.join(); // that thread has already printed a panic of the routine
        }
    }
}

/// The loop of a timer's thread.
fn run_timer_thread(ready: &Sender<nix::Result<i32>>, stop: &OwnedFd, mut routine: impl FnMut(Expiry)) {
    let mut set = SigSet::empty();
    set.add(SIGNAL);
    let flags = SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC;
    let signals = match set.thread_block().and_then(|()| SignalFd::with_flags(&set, flags)) {
        Ok(signals) => signals,
        Err(errno) => {
            let _ = ready.send(Err(errno)); // `every` waits for this message
            return;
        }
    };
    if ready.send(Ok(nix::unistd::gettid().as_raw())).is_err() {
        return;
    }
    loop {
        let mut both = [stop.as_fd(), signals.as_fd()].map(|fd| PollFd::new(fd, PollFlags::POLLIN));
        match poll(&mut both, PollTimeout::NONE) {
            Err(Errno::EINTR) => continue,
            Err(_) => return,
            Ok(_) if both[0].any() != Some(false) => return,
            Ok(_) => {}
        }
        while let Ok(Some(signal)) = signals.read_signal() {
            routine(Expiry { intervals: 1 + u64::from(signal.ssi_overrun) });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
    use syscost_platform::child::Child;

    fn use_cpu_time(time: Duration) {
        let until = VirtualClock::Own.read().expect("ours") + time;
        while VirtualClock::Own.read().expect("ours") < until {
            arch::register_loop(1 << 10);
        }
    }

    fn endless_child() -> Child {
        let burn = || loop {
            arch::register_loop(1 << 20);
        };
        Child::start(burn).expect("forked")
    }

    #[test]
    fn the_clock_runs_while_the_process_executes_and_stops_while_it_is_suspended() {
        let child = endless_child();
        let clock = VirtualClock::from_pid(child.pid().as_raw()).expect("a process");
        let read = || clock.read().expect("it is there");
        let before = read();
        while read() == before {
            std::thread::yield_now();
        }
        nix::sys::signal::kill(child.pid(), Signal::SIGSTOP).expect("ours");
        let mut stood = read();
        // The signal takes a moment to reach the process.
        for _ in 0..100 {
            std::thread::sleep(Duration::from_millis(20));
            let now = read();
            if now == stood {
                break;
            }
            stood = now;
        }
        std::thread::sleep(Duration::from_millis(20));
        assert_eq!(read(), stood);
        drop(child);
        assert!(matches!(clock.read(), Err(Error::Missing(_))), "gone, and no other process has it");
    }

    #[test]
    fn the_quality_of_the_clock_is_measured() {
        let quality = measure_quality().expect("a clock");
        assert!(quality.cost > Duration::ZERO && quality.step > Duration::ZERO, "{quality:?}");
        assert!(quality.promised <= quality.step, "{quality:?}");
    }

    #[test]
    fn the_step_of_the_clock_is_also_measured_while_a_timer_is_armed() {
        let armed =
            VirtualTimer::every(Duration::from_secs(60), &VirtualClock::Own, |_| ()).expect("a timer");
        let quality = measure_quality().expect("a clock");
        drop(armed);
        assert!(quality.step > Duration::ZERO, "{quality:?}");
    }

    #[test]
    fn a_timer_counts_the_executed_intervals() {
        let sum = Arc::new(AtomicU64::new(0));
        let theirs = Arc::clone(&sum);
        let interval = Duration::from_millis(1);
        let routine = move |expiry: Expiry| {
            let heap = Box::new(expiry.intervals); // an arbitrary routine may allocate
            theirs.fetch_add(*heap, SeqCst);
        };
        let before = VirtualClock::Own.read().expect("ours");
        let timer = VirtualTimer::every(interval, &VirtualClock::Own, routine).expect("a timer");
        use_cpu_time(Duration::from_millis(100));
        let resolution = VirtualTimer::measure_resolution().expect("it expires");
        drop(timer);
        let executed = VirtualClock::Own.read().expect("ours") - before;
        let counted = interval * sum.load(SeqCst) as u32;
        assert!(counted <= executed, "{counted:?} of {executed:?}");
        // One step may be under way, and the last expiry not yet received.
        assert!(counted + 3 * resolution + interval >= Duration::from_millis(100), "{counted:?}");
    }

    #[test]
    fn a_timer_on_another_process_expires_only_while_that_process_executes() {
        let child = endless_child();
        let clock = VirtualClock::from_pid(child.pid().as_raw()).expect("a process");
        let (expired, expiries) = channel();
        let routine = move |expiry| expired.send(expiry).unwrap_or_default();
        let timer = VirtualTimer::every(Duration::from_millis(5), &clock, routine).expect("a timer");
        expiries.recv_timeout(Duration::from_secs(20)).expect("it executes");
        nix::sys::signal::kill(child.pid(), Signal::SIGSTOP).expect("ours");
        std::thread::sleep(Duration::from_millis(100));
        while expiries.try_recv().is_ok() {}
        std::thread::sleep(Duration::from_millis(100));
        assert!(expiries.try_recv().is_err(), "it does not execute");
        drop(timer);
    }

    #[test]
    fn a_timer_of_no_interval_is_refused() {
        assert!(VirtualTimer::every(Duration::ZERO, &VirtualClock::Own, |_| ()).is_err());
    }
}

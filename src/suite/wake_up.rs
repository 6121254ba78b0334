//! # What is timed
//! The lateness of a wake-up: from the moment that the sleeper asked for until it reads the clock again. It sleeps by
//! `clock_nanosleep`, a timerfd, a futex with a time-out, or `epoll_wait` with a time-out, on an idle CPU and beside
//! a task that uses all of the CPU. In `…-fifo` the sleeper is in the real-time class `SCHED_FIFO`; in `…-shallow` the
//! kernel is asked to let idle CPUs enter no state that takes time to leave (`/dev/cpu_dma_latency`), for as long as the
//! case lives.
//!
//! `request-wake` and `request` are a request to a worker that sleeps and may run on every CPU, beside no, one or two busy tasks on
//! each CPU. The first is timed until the worker runs, the second until it has done 0.1 ms of work. `load-p99/75` is a round of
//! such requests at random times, at a rate that keeps the CPUs busy to 75 %, with one worker for each CPU (16 at most): the
//! cost is the 99th percentile of the times from the moment at which each request is due until its work is done. `every-cpu`
//! sleeps on all CPUs until the same moment, and times the CPU that wakes last.
//!
//! # What is not
//! The sleep itself: a quarter of a millisecond, and one for `epoll_wait`, whose time-outs are whole milliseconds, and for
//! `every-cpu`.
//!
//! # How we know
//! Every wake-up is timed by itself, with the clock that the kernel sleeps by. An early wake-up ends the case. The
//! kernel's count of voluntary switches must have grown by one for each. If a worker did not sleep, the request is repeated;
//! the work must take at least half of the time that it takes alone. Under a load each request must be taken once, not before it
//! is due, and do its work; a request that is sent late still counts from the moment at which it was due. The tasks of all CPUs
//! must have slept.
//!
//! # What fools it
//! The kernel allows itself 50 µs of slack for an ordinary task's time-outs (`PR_SET_TIMERSLACK`), to serve several
//! with one interrupt; not for a timerfd, and not for real-time tasks. An idle CPU is in a state that takes time to
//! leave (in a guest, the time that the host takes to run it again). Beside a hog the CPU is awake, so the sleeper often
//! wakes earlier. The timers of hypervisors are late too, and nothing in the guest says by how much. The maximum is
//! over some hundreds of wake-ups at default scale: a real-time bound needs the full scale, for hours
//! (`syscost record --session NAME --minutes 60 '^wake_up/every-cpu'`, which goes on where it ended).
//!
//! # Reading the number
//! Do not read the mean. The percentiles up to the maximum stand below the table, and the histogram is in the record. What
//! `cyclictest` prints as Avg and Max is the mean and the maximum of `clock-nanosleep/idle-fifo-shallow`, since it also keeps
//! CPUs out of deep idle states. With `--default-system` it does not; compare it then with `…/idle-fifo`.
//!
//! `ideal-p99` is the percentile for the same random arrivals if each request began as soon as a CPU is free. The excess over it is
//! the scheduler's.
//! `rate` is requests a second. The curve over the loads (full scale) says between which two the 99th percentile passes 1 ms.
//!
//! # Source
//! rt-tests' `cyclictest` (T. Gleixner); `schbench` (C. Mason); clock_nanosleep(2), timerfd_create(2), prctl(2); the kernel's
//! `Documentation/power/pm_qos_interface.rst`.

pub mod every_cpu;
pub mod load;
pub mod request;

use crate::kit::contract::*;
use crate::kit::kernel_call::check_granted;
use crate::kit::placement::Placement;
use crate::kit::scheduling_policy::{PRIORITY, REAL_TIME};
use crate::platform::partner::{Class, Partner, start_spinner};
use crate::platform::sleep::{
    EpollTimeout, FutexTimeout, Nanosleep, RealTime, ShallowIdle, Sleep, TimerDescriptor,
};
use crate::platform::time::clock_gettime_ns;
use std::time::Duration;

pub const GROUP: Group = Group::new("wake_up", include_str!("wake_up.rs"), cases)
    .headlines(&[Headline::new(110, "futex/idle", "a sleeper woken on an idle CPU").as_answer()])
    .curves(&[load::CURVE]);

/// The length of a sleep.
const SLEEP: Duration = Duration::from_micros(250);
/// The pause before a request, in which a worker falls asleep.
const PAUSE: Duration = SLEEP;
/// The length of a sleep if time-outs are whole milliseconds, or if a late wake-up must not delay the next one.
const COARSE_SLEEP: Duration = Duration::from_millis(1);

/// Whether another task uses the CPU, and the sleeper's scheduling class.
#[derive(Clone, Copy)]
pub struct Setting {
    name: &'static str,
    title: &'static str,
    has_hog: bool,
    is_real_time: bool,
    is_shallow: bool,
}

/// A sleeper of the ordinary class on an idle CPU.
pub const IDLE: Setting = setting("idle", "on an idle CPU", false, false);
const HOG: Setting = setting("beside-hog", "beside a CPU hog", true, false);
const IDLE_FIFO: Setting = setting("idle-fifo", "real-time, on an idle CPU", false, true);
const HOG_FIFO: Setting = setting("beside-hog-fifo", "real-time, beside a CPU hog", true, true);
const SHALLOW: Setting = Setting {
    is_shallow: true,
    ..setting("idle-fifo-shallow", "real-time, on an idle CPU that stays awake", false, true)
};

const fn setting(name: &'static str, title: &'static str, has_hog: bool, is_real_time: bool) -> Setting {
    Setting { name, title, has_hog, is_real_time, is_shallow: false }
}

type Make = fn() -> Result<Box<dyn Sleep>>;

fn cases() -> Vec<Case> {
    let nanosleep: Make = || Ok(Box::new(Nanosleep));
    let timerfd: Make = || Ok(Box::new(TimerDescriptor::new()?));
    let futex: Make = || Ok(Box::new(FutexTimeout::default()));
    let epoll: Make = || Ok(Box::new(EpollTimeout::new()?));
    let mut cases: Vec<_> = [IDLE, HOG, IDLE_FIFO, HOG_FIFO, SHALLOW]
        .map(|setting| setting_case("clock-nanosleep", nanosleep, setting))
        .into();
    for (name, make) in [("timerfd", timerfd), ("futex", futex), ("epoll", epoll)] {
        cases.extend([IDLE, HOG].map(|setting| setting_case(name, make, setting)));
    }
    cases.extend([IDLE, SHALLOW].map(every_cpu::every_cpu_case));
    cases.extend(request::request_cases());
    cases.extend(load::LOADS.map(load::load_case));
    cases
}

fn setting_case(name: &str, make: Make, setting: Setting) -> Case {
    let set_up = set_up(move |place| Sleeper::start(make, setting, place));
    let title = format!("lateness of {name}, {}", setting.title);
    let case = Case::new(format!("{name}/{}", setting.name), title, set_up);
    let case = case.need(PINNED).one_by_one().claim(Claim::Regime(claim_slept));
    let case = if setting.is_real_time { case.need(REAL_TIME) } else { case };
    let case = if setting.is_shallow { case.need(IDLE_STATES) } else { case };
    let slack = if setting.is_real_time || name == "timerfd" { 0.0 } else { 150_000.0 };
    let why = "an interrupt of the timer, a CPU that wakes, a switch; 50 µs of slack where it is granted";
    case.predict(30_000.0, slack + 6_000.0, why)
}

/// The need that this process may limit the idle states of CPUs.
const IDLE_STATES: Need = Need::new(|_| {
    ShallowIdle::hold().map(drop).map_err(|e| format!("the CPUs' idle states may not be limited here: {e}"))
});

struct Sleeper {
    sleep: Box<dyn Sleep>,
    hog: Option<Partner>,
    _class: Option<RealTime>,
    _shallow: Option<ShallowIdle>,
}

impl Sleeper {
    fn start(make: Make, setting: Setting, place: &Place) -> Result<Self> {
        let here = Placement::Same.partner_cpu(place)?;
        // The hog starts before this thread enters the class, so it stays an ordinary task.
        let hog = setting.has_hog.then(|| start_spinner(here, Class::Ordinary)).transpose()?;
        let _class = setting.is_real_time.then(|| RealTime::enter(PRIORITY)).transpose()?;
        let _shallow = setting.is_shallow.then(ShallowIdle::hold).transpose()?;
        Ok(Self { sleep: make()?, hog, _class, _shallow })
    }

    /// The lateness of one wake-up, ns.
    fn lateness_ns(&mut self) -> Result<u64> {
        let now = || clock_gettime_ns(libc::CLOCK_MONOTONIC);
        let duration = if self.sleep.is_coarse() { COARSE_SLEEP } else { SLEEP };
        let deadline = now() + duration.as_nanos() as u64;
        let answer = self.sleep.sleep_until(Duration::from_nanos(deadline));
        let woken = now();
        check_granted("a sleep", answer)?;
        woken.checked_sub(deadline).ok_or_else(|| {
            Error::Disproved(format!(
                "it woke {} ns early: that was no sleep until a moment",
                deadline - woken
            ))
        })
    }
}

impl Subject for Sleeper {
    fn run(&mut self, iterations: u64, clock: &Clock) -> Result<Ticks> {
        let ticks = |ns: u64| Ticks((ns as f64 * clock.hz() / 1e9) as u64);
        // Computed and not timed by a bracket, because the time begins at a deadline, when no code runs.
        (0..iterations).map(|_| Ok(clock.record_bracket(ticks(self.lateness_ns()?)))).sum()
    }

    fn report(&self) -> Report {
        Report { partners: self.hog.iter().map(Partner::task).collect(), ..Report::default() }
    }
}

/// The claim that the sleeper slept. If it is delayed between reading the clock and the call, the deadline has passed: it is
/// late without a sleep. That is rare and caused by the host or by another program, so such a case is measured
/// again.
fn claim_slept(delta: &Delta, iterations: u64) -> Judged {
    let switches = delta.counted.voluntary_switches;
    ensure(switches + (iterations / 10).max(1) >= iterations, || {
        format!("it slept {switches} times in {iterations} iterations: the time had passed already")
    })?;
    Ok(format!("it slept {switches} times in {iterations} iterations"))
}

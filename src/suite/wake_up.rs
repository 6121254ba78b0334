//! # What is timed
//! How late a sleeper wakes: from the moment for which it asked until it reads the clock again, by
//! `clock_nanosleep`, a timerfd, a futex with a time-out, and `epoll_wait` with a time-out, on an idle CPU and beside a task
//! that uses all of it. In `…-fifo` the sleeper is in the real-time class `SCHED_FIFO`.
//!
//! # What is not
//! The sleep itself: a quarter of a millisecond, and one for `epoll_wait`, whose time-outs are whole milliseconds.
//!
//! # How we know
//! Every wake-up is timed by itself by the clock that the kernel sleeps by. One that comes early ends the case. The
//! kernel's count of voluntary switches must have grown by one for each.
//!
//! # What fools it
//! The kernel grants itself 50 µs of slack for an ordinary task's time-outs (`PR_SET_TIMERSLACK`), to serve several by
//! one interrupt; not so for a timerfd, and not for real-time tasks. An idle CPU sleeps in a state that takes time
//! to leave, in a guest as long as the host takes to run it again: next to a hog it is awake, and the sleeper is
//! often earlier. Timers of hypervisors are late too, and nothing in the guest says by how much. The maximum is of
//! some hundreds of wake-ups at default scale: a bound on real time wants the full scale, for hours.
//!
//! # Reading the number
//! Not the mean: the percentiles up to the maximum stand below the table, and the histogram is in the record. What
//! `cyclictest` prints as Avg and Max is the mean and the maximum of `clock-nanosleep/…-fifo`.
//!
//! # Source
//! rt-tests' `cyclictest` (T. Gleixner); clock_nanosleep(2), timerfd_create(2), prctl(2).

use crate::case::need::PINNED;
use crate::case::{Case, Claim, Group, Need, Place, Report, SetUp, Subject};
use crate::clock::{Clock, Delta, Ticks};
use crate::kit::sleep::{EpollTimeout, FutexTimeout, Nanosleep, RealTime, Sleep, TimerDescriptor};
use crate::platform::partner::{Class, Partner, Task, spinner};
use crate::platform::time::clock_gettime_ns;
use crate::{Error, Result};
use std::time::Duration;

pub const GROUP: Group = Group::new("wake_up", include_str!("wake_up.rs"), cases);

/// How long it sleeps …
const SLEEP: Duration = Duration::from_micros(250);
/// … and where only whole milliseconds can be asked for.
const COARSE_SLEEP: Duration = Duration::from_millis(1);
/// As high as cyclictest's in its usual use: below the kernel's own threads at 99, above all others.
const PRIORITY: i32 = 80;

/// Who else wants the CPU, and in which class the sleeper is.
#[derive(Clone, Copy)]
struct Setting {
    name: &'static str,
    words: &'static str,
    has_hog: bool,
    is_real_time: bool,
}

const IDLE: Setting = Setting { name: "idle", words: "on an idle CPU", has_hog: false, is_real_time: false };
const HOG: Setting =
    Setting { name: "beside-hog", words: "beside a CPU hog", has_hog: true, is_real_time: false };
const IDLE_FIFO: Setting =
    Setting { name: "idle-fifo", words: "real-time, on an idle CPU", has_hog: false, is_real_time: true };
const HOG_FIFO: Setting = Setting {
    name: "beside-hog-fifo",
    words: "real-time, beside a CPU hog",
    has_hog: true,
    is_real_time: true,
};

type Make = fn() -> Result<Box<dyn Sleep>>;

fn cases() -> Vec<Case> {
    let nanosleep: Make = || Ok(Box::new(Nanosleep));
    let timerfd: Make = || Ok(Box::new(TimerDescriptor::new()?));
    let futex: Make = || Ok(Box::new(FutexTimeout::default()));
    let epoll: Make = || Ok(Box::new(EpollTimeout::new()?));
    let mut cases: Vec<_> =
        [IDLE, HOG, IDLE_FIFO, HOG_FIFO].map(|setting| case("clock-nanosleep", nanosleep, setting)).into();
    for (name, make) in [("timerfd", timerfd), ("futex", futex), ("epoll", epoll)] {
        cases.extend([IDLE, HOG].map(|setting| case(name, make, setting)));
    }
    cases
}

fn case(name: &str, make: Make, setting: Setting) -> Case {
    let set_up: SetUp = Box::new(move |place: &Place| sleeper(make, setting, place));
    let title = format!("lateness of {name}, {}", setting.words);
    let case = Case::new(format!("{name}/{}", setting.name), title, set_up);
    let case = case.need(PINNED).one_by_one().claim(Claim::Counted(slept));
    let case = if setting.is_real_time { case.need(REAL_TIME) } else { case };
    let slack = if setting.is_real_time || name == "timerfd" { 0.0 } else { 150_000.0 };
    let why = "an interrupt of the timer, a CPU that wakes, a switch; 50 µs of slack where it is granted";
    case.predict(30_000.0, slack + 6_000.0, why)
}

/// The real-time class may be entered.
const REAL_TIME: Need = Need::new(|_| {
    RealTime::enter(PRIORITY).map(drop).map_err(|e| format!("the real-time class is not allowed here: {e}"))
});

struct Sleeper {
    way: Box<dyn Sleep>,
    hog: Option<Partner>,
    _class: Option<RealTime>,
}

fn sleeper(make: Make, setting: Setting, place: &Place) -> Result<Box<dyn Subject>> {
    let here = crate::kit::placement::Placement::Same.cpu(place)?;
    // Before the class is entered: the hog stays an ordinary task.
    let hog = setting.has_hog.then(|| spinner(here, Class::Ordinary)).transpose()?;
    let _class = setting.is_real_time.then(|| RealTime::enter(PRIORITY)).transpose()?;
    Ok(Box::new(Sleeper { way: make()?, hog, _class }))
}

impl Sleeper {
    /// One wake-up: by how much it was late, ns.
    fn lateness_ns(&mut self) -> Result<u64> {
        let now = || clock_gettime_ns(libc::CLOCK_MONOTONIC);
        let sleep = if self.way.is_coarse() { COARSE_SLEEP } else { SLEEP };
        let deadline = now() + sleep.as_nanos() as u64;
        let answer = self.way.until(Duration::from_nanos(deadline));
        let woken = now();
        if answer < 0 {
            return Err(Error::refused("a sleep", Error::errno(answer)));
        }
        woken.checked_sub(deadline).ok_or_else(|| {
            Error::Usage(format!("it woke {} ns early: that was no sleep until a moment", deadline - woken))
        })
    }
}

impl Subject for Sleeper {
    fn run(&mut self, iterations: u64, clock: &Clock) -> Result<Ticks> {
        let ticks = |ns: u64| Ticks((ns as f64 * clock.hz() / 1e9) as u64);
        let mut sum = Ticks(0);
        for _ in 0..iterations {
            let late = self.lateness_ns()?;
            sum += clock.note(ticks(late));
        }
        Ok(sum)
    }

    fn report(&self) -> Report {
        Report { partners: self.hog.iter().map(Partner::task).collect(), ..Report::default() }
    }
}

/// Who was held up between reading the clock and the call finds that the moment has passed: that is late too, and
/// no sleep. It is rare.
fn slept(delta: &Delta, iterations: u64) -> std::result::Result<String, String> {
    let switches = delta.counted.voluntary_switches;
    if switches + (iterations / 10).max(1) < iterations {
        return Err(format!(
            "it slept {switches} times in {iterations} iterations: the time had passed already"
        ));
    }
    Ok(format!("it slept {switches} times in {iterations} iterations"))
}

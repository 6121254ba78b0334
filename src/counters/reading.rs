//! A value that says when it was read, in which steps it moves, and by which route it came.

use super::Fault;
use std::fmt::{Display, Formatter};
use std::time::{Duration, Instant};

/// One value of a counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reading<T> {
    /// The value.
    pub value: T,
    /// When it was read.
    pub at: Instant,
    /// The steps in which the counter moves; what is smaller cannot be seen in it.
    pub resolution: T,
    /// The route by which it came.
    pub method: Method,
}

impl<T> Reading<T> {
    /// A value read at this moment.
    #[inline]
    pub(super) fn now(value: T, resolution: T, method: Method) -> Self {
        Self { value, at: Instant::now(), resolution, method }
    }

    /// One part of what was read at once: `spent.part(|spent| spent.user)`. It moves in the steps of that part.
    #[inline]
    pub fn part<U>(&self, of: impl Fn(&T) -> U) -> Reading<U> {
        Reading { value: of(&self.value), at: self.at, resolution: of(&self.resolution), method: self.method }
    }
}

/// The routes into the kernel, each the cheapest that is known for its counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// clock_gettime(2) of a process's CPU clock: nanoseconds, for any process, without privilege.
    CpuClock,
    /// `/proc/PID/stat`.
    ProcessStat,
    /// `/proc/PID/statm`.
    ProcessStatm,
    /// The links of the directory `/proc/PID/task`, less two: as fast with 400 threads as with one.
    TaskLinks,
    /// sysinfo(2).
    Sysinfo,
    /// `/proc/uptime`, of which the second number is idle time over all CPUs.
    Uptime,
    /// `/proc/stat`.
    Stat,
    /// `/proc/meminfo`.
    Meminfo,
    /// sysinfo(2), and `/proc/zoneinfo` for what the lists of each CPU hold.
    Zoneinfo,
    /// `/proc/net/dev`.
    NetDev,
    /// Of several processes, the clocks of those that live and `/proc/PID/stat` for those that have ended.
    Tree,
    /// `/sys/class/net/IF/statistics`.
    InterfaceStatistics,
    /// `/sys/class/block/NAME/stat`.
    BlockStat,
    /// A control group's own files.
    ControlGroup,
    /// `/proc/pressure`.
    Pressure,
}

impl Display for Method {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::CpuClock => "clock_gettime of the process's clock",
            Self::ProcessStat => "/proc/PID/stat",
            Self::ProcessStatm => "/proc/PID/statm",
            Self::TaskLinks => "links of /proc/PID/task",
            Self::Sysinfo => "sysinfo",
            Self::Uptime => "/proc/uptime",
            Self::Stat => "/proc/stat",
            Self::Meminfo => "/proc/meminfo",
            Self::Zoneinfo => "sysinfo and /proc/zoneinfo",
            Self::NetDev => "/proc/net/dev",
            Self::Tree => "clocks and /proc/PID/stat of a tree",
            Self::InterfaceStatistics => "/sys/class/net/IF/statistics",
            Self::BlockStat => "/sys/class/block/NAME/stat",
            Self::ControlGroup => "the control group",
            Self::Pressure => "/proc/pressure",
        })
    }
}

/// A share of a stretch of time, in hundredths, with the bounds that the counter's resolution leaves.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Percent {
    /// The share.
    pub value: f64,
    /// It was no less.
    pub low: f64,
    /// It was no more.
    pub high: f64,
    /// The stretch of time.
    pub window: Duration,
}

impl Percent {
    /// How much of the time between two readings of a busy time was busy.
    ///
    /// # Errors
    /// [`Fault::TooShort`] where the readings are no farther apart than the counter's steps: an answer of 0.0
    /// could not be told from one that is true.
    pub fn busy(before: &Reading<Duration>, after: &Reading<Duration>) -> Result<Self, Fault> {
        Self::of(before, after, |busy, _| busy)
    }

    /// The same of a counter that counts the idle time of so many CPUs.
    pub(super) fn not_idle(
        before: &Reading<Duration>,
        after: &Reading<Duration>,
        cpus: usize,
    ) -> Result<Self, Fault> {
        let cpus = cpus.max(1) as f64;
        Self::of(before, after, |idle, window| window - idle / cpus)
    }

    fn of(
        before: &Reading<Duration>,
        after: &Reading<Duration>,
        busy: impl Fn(f64, f64) -> f64,
    ) -> Result<Self, Fault> {
        let window = after.at.saturating_duration_since(before.at);
        let resolution = before.resolution.max(after.resolution);
        if window <= resolution {
            return Err(Fault::TooShort { window, resolution });
        }
        // Idle time goes back on some kernels by a step; a counter that goes back counts nothing.
        let grown = after.value.saturating_sub(before.value).as_secs_f64();
        let (seconds, step) = (window.as_secs_f64(), resolution.as_secs_f64());
        let share = |grown: f64| (100.0 * busy(grown, seconds) / seconds).max(0.0);
        let ends = [share(grown - step), share(grown + step)];
        Ok(Self { value: share(grown), low: ends[0].min(ends[1]), high: ends[0].max(ends[1]), window })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(start: Instant, ms: u64, value_ms: u64, resolution_ms: u64) -> Reading<Duration> {
        Reading {
            value: Duration::from_millis(value_ms),
            at: start + Duration::from_millis(ms),
            resolution: Duration::from_millis(resolution_ms),
            method: Method::Stat,
        }
    }

    #[test]
    fn half_of_the_window_is_fifty_with_bounds_of_a_step() {
        let start = Instant::now();
        let percent = Percent::busy(&at(start, 0, 70, 10), &at(start, 100, 120, 10)).expect("a share");
        let near = |a: f64, b: f64| (a - b).abs() < 1e-9;
        assert!(
            near(percent.value, 50.0) && near(percent.low, 40.0) && near(percent.high, 60.0),
            "{percent:?}"
        );
    }

    #[test]
    fn idle_time_of_all_cpus_is_divided_among_them() {
        let start = Instant::now();
        let percent =
            Percent::not_idle(&at(start, 0, 0, 10), &at(start, 1000, 1500, 10), 2).expect("a share");
        assert!((percent.value - 25.0).abs() < 1e-9, "{percent:?}");
    }

    #[test]
    fn a_window_within_a_step_has_no_answer() {
        let start = Instant::now();
        let answer = Percent::busy(&at(start, 0, 70, 10), &at(start, 10, 70, 10));
        assert!(matches!(answer, Err(Fault::TooShort { .. })));
    }

    #[test]
    fn a_counter_that_goes_back_is_not_below_zero() {
        let start = Instant::now();
        let percent = Percent::busy(&at(start, 0, 70, 1), &at(start, 100, 60, 1)).expect("a share");
        assert_eq!((percent.value, percent.low), (0.0, 0.0));
    }
}

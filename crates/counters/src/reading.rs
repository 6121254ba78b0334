//! Values with their time, resolution and route of reading, and shares of the time between two of them.
//!
//! Also the rate between two readings of a count.

use nix::errno::Errno;
use std::fmt::{Display, Formatter};
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

/// One value of a counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reading<T> {
    /// The value.
    pub value: T,
    /// The time at which it was read.
    pub at: Instant,
    /// The smallest step of the counter.
    pub resolution: T,
    /// The route by which it was read.
    pub method: Method,
}

impl<T> Reading<T> {
    /// A reading whose time is now.
    #[inline]
    pub(super) fn now(value: T, resolution: T, method: Method) -> Self {
        Self { value, at: Instant::now(), resolution, method }
    }

    /// The reading of one part of a compound value, with its resolution: `reading.map_field(|spent| spent.user)`.
    #[inline]
    pub fn map_field<U>(&self, field: impl Fn(&T) -> U) -> Reading<U> {
        Reading {
            value: field(&self.value),
            at: self.at,
            resolution: field(&self.resolution),
            method: self.method,
        }
    }
}

/// The system call or file by which a counter was read: the cheapest known one for this counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// clock_gettime(2) of a process's CPU clock: nanoseconds, for any process, without privileges.
    CpuClock,
    /// `/proc/PID/stat`.
    ProcessStat,
    /// `/proc/PID/statm`.
    ProcessStatm,
    /// The number of links of the directory `/proc/PID/task`, minus two: as fast for 400 threads as for one.
    TaskLinks,
    /// sysinfo(2).
    Sysinfo,
    /// `/proc/uptime`, whose second number is the idle time of all CPUs.
    Uptime,
    /// `/proc/stat`.
    Stat,
    /// `/proc/meminfo`.
    Meminfo,
    /// sysinfo(2), and `/proc/zoneinfo` for the lists of each CPU.
    Zoneinfo,
    /// `/proc/net/dev`.
    NetDev,
    /// The CPU clocks of existing processes, and `/proc/PID/stat` for ended ones.
    Tree,
    /// `/sys/class/net/IF/statistics`.
    InterfaceStatistics,
    /// `/sys/class/block/NAME/stat`.
    BlockStat,
    /// The files of a control group.
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

/// A share of a time, percent, with the bounds that follow from the counter's resolution.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Percent {
    /// The share.
    pub value: f64,
    /// The lower bound.
    pub low: f64,
    /// The upper bound.
    pub high: f64,
    /// The time of which this is the share.
    pub window: Duration,
}

impl Percent {
    /// The growth of a busy time between two readings, as a share of the time between them.
    ///
    /// # Errors
    /// [`Fault::TooShort`] where the time between the readings is not longer than the resolution of the counter: a result of
    /// 0.0 would mean nothing.
    pub fn busy(before: &Reading<Duration>, after: &Reading<Duration>) -> Result<Self, Fault> {
        Self::between(before, after, |busy, _| busy)
    }

    /// The busy share from a counter of the idle time of `cpus` CPUs.
    ///
    /// # Errors
    /// The errors of [`busy`](Self::busy).
    pub(super) fn busy_from_idle(
        before: &Reading<Duration>,
        after: &Reading<Duration>,
        cpus: usize,
    ) -> Result<Self, Fault> {
        let cpus = cpus.max(1) as f64;
        Self::between(before, after, |idle, window| window - idle / cpus)
    }

    fn between(
        before: &Reading<Duration>,
        after: &Reading<Duration>,
        busy: impl Fn(f64, f64) -> f64,
    ) -> Result<Self, Fault> {
        let window = after.at.saturating_duration_since(before.at);
        let resolution = before.resolution.max(after.resolution);
        if window <= resolution {
            return Err(Fault::TooShort { window, resolution });
        }
        // On some kernels idle time may decrease by a step, which counts as no growth.
        let grown = after.value.saturating_sub(before.value).as_secs_f64();
        let (seconds, step) = (window.as_secs_f64(), resolution.as_secs_f64());
        let share = |grown: f64| (100.0 * busy(grown, seconds) / seconds).max(0.0);
        let ends = [share(grown - step), share(grown + step)];
        Ok(Self { value: share(grown), low: ends[0].min(ends[1]), high: ends[0].max(ends[1]), window })
    }
}

/// The growth of a count over a time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rate {
    /// The growth of the count.
    pub grown: u64,
    /// The time between the two readings.
    pub window: Duration,
}

/// The largest value of a 32-bit count.
const NARROW: u64 = u32::MAX as u64;

impl Rate {
    /// The rate between two readings of `what`. A 32-bit count has overflowed if its first value is in the last eighth of its
    /// range and its second value is in the first eighth.
    ///
    /// # Errors
    /// [`Fault::TooShort`] where no time has passed; [`Fault::Parse`] where the count decreased otherwise, because a
    /// device was replaced or its driver loaded again.
    pub fn between(what: &str, before: &Reading<u64>, after: &Reading<u64>) -> Result<Self, Fault> {
        let window = after.at.saturating_duration_since(before.at);
        if window.is_zero() {
            return Err(Fault::TooShort { window, resolution: Duration::from_nanos(1) });
        }
        let grown = match after.value.checked_sub(before.value) {
            Some(grown) => grown,
            None if has_overflowed(before.value, after.value) => NARROW - before.value + after.value + 1,
            None => {
                let found = format!("{} and then {}", before.value, after.value);
                return Err(Fault::parse_error(what, "a count that grows", found.as_bytes()));
            }
        };
        Ok(Self { grown, window })
    }

    /// Growth per second.
    pub fn per_second(&self) -> f64 {
        self.grown as f64 / self.window.as_secs_f64()
    }
}

fn has_overflowed(before: u64, after: u64) -> bool {
    (NARROW - NARROW / 8..=NARROW).contains(&before) && after <= NARROW / 8
}

// Reasons for a missing value of a counter.

/// The reason for a missing file of the whole machine.
const HIDDEN: &str = "it is hidden here: /proc is not mounted, or with subset=pid; mount it whole (`mount -t proc proc /proc`)";

/// Whether a missing file at this path is hidden: it is in `/proc`, belongs to no process, and `/proc` is not whole. A whole
/// `/proc` contains `/proc/stat`.
fn is_hidden(path: &str, proc_is_whole: bool) -> bool {
    let of_machine =
        |rest: &str| !rest.starts_with(|first: char| first.is_ascii_digit()) && !rest.starts_with("self/");
    !proc_is_whole && path.strip_prefix("/proc/").is_some_and(of_machine)
}

/// The reason for a missing value of a counter. A caller can react to each variant in another way.
#[derive(Debug, thiserror::Error)]
pub enum Fault {
    /// The object no longer exists: the process has ended, the interface was removed. A handle stays in this state,
    /// also when the number or name is used again.
    #[error("{0} is gone")]
    Gone(String),
    /// The object exists and may not be read.
    #[error("{what} may not be read: {cause}")]
    Denied {
        /// What should have been read.
        what: String,
        /// The error of the kernel, or what hides the object.
        cause: String,
    },
    /// This kernel does not offer the counter.
    #[error("{0} is not offered by this kernel")]
    Unsupported(String),
    /// The file was read and has an unexpected content.
    #[error("{what}: expected {expected}, found {found:?}")]
    Parse {
        /// What was read.
        what: String,
        /// The expected content.
        expected: &'static str,
        /// The beginning of the content.
        found: String,
    },
    /// Two readings are too close to each other for a rate.
    #[error(
        "a window of {window:?} is no longer than the resolution of {resolution:?}: wait longer between the two"
    )]
    TooShort {
        /// The time from the first reading to the second.
        window: Duration,
        /// The resolution of the counter.
        resolution: Duration,
    },
}

impl Fault {
    /// The fault that corresponds to an error of the kernel during a reading of `what`.
    pub(super) fn from_error(what: impl Into<String>, error: &io::Error) -> Self {
        let what = what.into();
        let errno = error.raw_os_error().map(Errno::from_raw);
        match errno {
            Some(Errno::ENOENT) if is_hidden(&what, Path::new("/proc/stat").exists()) => {
                Self::Denied { what, cause: HIDDEN.into() }
            }
            Some(Errno::ENOENT | Errno::ESRCH | Errno::ENODEV | Errno::ENXIO) => Self::Gone(what),
            Some(Errno::ENOSYS | Errno::EOPNOTSUPP | Errno::EINVAL | Errno::ENOTTY) => {
                Self::Unsupported(what)
            }
            _ => Self::Denied { what, cause: error.to_string() },
        }
    }

    /// The fault for a content that could not be parsed, which is cut to 60 bytes.
    pub(super) fn parse_error(what: impl Into<String>, expected: &'static str, found: &[u8]) -> Self {
        let found = String::from_utf8_lossy(&found[..found.len().min(60)]).into_owned();
        Self::Parse { what: what.into(), expected, found }
    }
}

impl From<Fault> for syscost_platform::error::Error {
    fn from(fault: Fault) -> Self {
        Self::Missing(fault.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Method;
    use std::time::Instant;

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
            Percent::busy_from_idle(&at(start, 0, 0, 10), &at(start, 1000, 1500, 10), 2).expect("a share");
        assert!((percent.value - 25.0).abs() < 1e-9, "{percent:?}");
    }

    #[test]
    fn a_window_within_one_step_is_too_short() {
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

    fn rate(before: u64, after: u64, ms: u64) -> Result<Rate, Fault> {
        let start = Instant::now();
        let reading = |value, ms| Reading {
            value,
            at: start + Duration::from_millis(ms),
            resolution: 1,
            method: Method::BlockStat,
        };
        Rate::between("it", &reading(before, 0), &reading(after, ms))
    }

    #[test]
    fn a_growth_of_100_in_half_a_second_is_200_per_second() {
        assert_eq!(rate(100, 200, 500).expect("a rate").per_second(), 200.0);
    }

    #[test]
    fn an_overflow_of_a_32_bit_count_is_recognised() {
        assert_eq!(rate(NARROW - 9, 10, 1000).expect("a rate").grown, 20);
    }

    #[test]
    fn a_count_that_decreased_has_no_rate() {
        assert!(matches!(rate(500, 20, 1000), Err(Fault::Parse { .. })));
        assert!(matches!(rate(NARROW + 5, 20, 1000), Err(Fault::Parse { .. })));
    }

    #[test]
    fn two_readings_at_one_moment_have_no_rate() {
        assert!(matches!(rate(1, 2, 0), Err(Fault::TooShort { .. })));
    }

    #[test]
    fn a_file_that_proc_hides_is_not_gone() {
        assert!(is_hidden("/proc/stat", false) && is_hidden("/proc/net/dev", false));
        assert!(!is_hidden("/proc/pressure/cpu", true), "this kernel has none");
        assert!(!is_hidden("/proc/12/stat", false) && !is_hidden("/sys/class/net/eth9", false));
    }

    #[test]
    fn errors_of_the_kernel_are_distinguished() {
        let fault_of = |errno: Errno| Fault::from_error("it", &errno.into());
        assert!(matches!(fault_of(Errno::ESRCH), Fault::Gone(_)));
        assert!(matches!(fault_of(Errno::ENODEV), Fault::Gone(_)));
        assert!(matches!(fault_of(Errno::EACCES), Fault::Denied { .. }));
        assert!(matches!(fault_of(Errno::ENOSYS), Fault::Unsupported(_)));
    }
}

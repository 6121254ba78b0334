//! Protects the other programs of the machine while its file cache is filled.
//!
//! * The run is refused if too little memory is available beyond a reserve ([`Bounds`]). The pages of the file are written back, so
//!   that the kernel can give them to a task that needs memory.
//! * The run uses the disk only while no other task does ([`IdleAtTheDisk`](crate::kit::scheduling_policy::IdleAtTheDisk)).
//! * The [`Guard`] checks twice a second whether other tasks have taken half of the reserve, whether pages were swapped out, and
//!   whether a process was killed. In each of these cases the run ends.
//!
//! A file that is read once evicts the pages that other programs have not used for the longest time. Pages that they use
//! repeatedly are on another list of the kernel, from which a single reader evicts none.

use crate::error::{Error, Result, ensure};
use crate::platform::kernel_files::{KernelFiles, meminfo_bytes};
use crate::platform::limit;
use std::time::{Duration, Instant};

const MIB: u64 = 1 << 20;
/// The reserve is this part of all memory …
const RESERVE_PART: u64 = 10;
/// … and at least this, bytes: the memory that `syscost doctor` wants for other measurements.
const LEAST_RESERVE: u64 = 1024 * MIB;
/// Time between two checks of the machine.
const LOOK: Duration = Duration::from_millis(500);

/// How much of the memory the file may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Bytes that are available, by the kernel's estimate and by the limits of this process' control groups.
    pub available: u64,
    /// Bytes that are left to others.
    pub reserve: u64,
}

impl Bounds {
    /// Reads the bounds of this machine. The reserve is a tenth of its memory, at least 1 GiB.
    ///
    /// # Errors
    /// [`Error::Missing`] where the kernel does not report its memory, or too little is left.
    pub fn read(files: &KernelFiles) -> Result<Self> {
        let meminfo = files.read_text("proc/meminfo").unwrap_or_default();
        let number = |key: &str| {
            let silent = || Error::Missing(format!("/proc/meminfo does not tell {key}: mount /proc"));
            meminfo_bytes(&meminfo, key).ok_or_else(silent)
        };
        let reserve = (number("MemTotal")? / RESERVE_PART).max(LEAST_RESERVE);
        let available = number("MemAvailable")?.min(limit::cgroup_memory_left(files).unwrap_or(u64::MAX));
        let bounds = Self { available, reserve };
        if bounds.longest_file() >= LEAST_FILE {
            return Ok(bounds);
        }
        Err(Error::Missing(format!(
            "{} MiB of memory are available and {} MiB of them are left to others: nothing to fill; free some",
            available / MIB,
            reserve / MIB
        )))
    }

    /// The longest file that leaves the reserve free, bytes.
    pub fn longest_file(&self) -> u64 {
        self.available.saturating_sub(self.reserve)
    }
}

/// The shortest file whose result means anything, bytes.
pub const LEAST_FILE: u64 = 64 * MIB;

/// What the run cost other processes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Cost {
    /// Processes that the kernel killed for want of memory.
    pub killed: u64,
    /// Pages that were swapped out.
    pub swapped: u64,
}

/// Watches memory pressure during a run and ends it before others suffer.
pub struct Guard<'a> {
    files: KernelFiles,
    reserve: u64,
    /// The kernel's counts when the run began.
    first: Cost,
    /// The time of the last check.
    last: Instant,
    ends: Instant,
    interrupted: &'a dyn Fn() -> bool,
}

impl<'a> Guard<'a> {
    /// Starts to watch the machine; the run may last for `time`.
    pub fn begin(reserve: u64, time: Duration, interrupted: &'a dyn Fn() -> bool) -> Self {
        let (files, now) = (KernelFiles::live(), Instant::now());
        let first = read_cost(&files);
        Self { files, reserve, first, last: now, ends: now + time, interrupted }
    }

    /// Whether the time is over.
    pub fn is_time_over(&self) -> bool {
        Instant::now() >= self.ends
    }

    /// Whether the run may go on.
    ///
    /// # Errors
    /// [`Error::Disturbed`] with the reason why the run must end.
    pub fn check_machine(&mut self) -> Result<()> {
        ensure(!(self.interrupted)(), || Error::Disturbed("interrupted".into()))?;
        if self.last.elapsed() < LOOK {
            return Ok(());
        }
        self.last = Instant::now();
        let meminfo = self.files.read_text("proc/meminfo").unwrap_or_default();
        reason_to_end(meminfo_bytes(&meminfo, "MemAvailable"), self.reserve, self.cost_so_far())
            .map_or(Ok(()), |why| Err(Error::Disturbed(why)))
    }

    /// What the run has cost other processes so far.
    pub fn cost_so_far(&self) -> Cost {
        let now = read_cost(&self.files);
        Cost {
            killed: now.killed.saturating_sub(self.first.killed),
            swapped: now.swapped.saturating_sub(self.first.swapped),
        }
    }
}

/// A sentence with the reason why the run must end, or `None` if it may go on.
fn reason_to_end(available: Option<u64>, reserve: u64, cost: Cost) -> Option<String> {
    let left = available.unwrap_or(u64::MAX);
    let why = match cost {
        Cost { killed: 1.., .. } => "the kernel has killed a process for want of memory".to_owned(),
        Cost { swapped: 1.., .. } => format!("the kernel has swapped {} pages out", cost.swapped),
        _ if left < reserve / 2 => {
            format!("{} MiB of memory are still available: others took half of the reserve", left / MIB)
        }
        _ => return None,
    };
    Some(format!(
        "{why}; the file was given up, so that others can go on: try again when the machine is at rest"
    ))
}

fn read_cost(files: &KernelFiles) -> Cost {
    let text = files.read_text("proc/vmstat").unwrap_or_default();
    let count = |key: &str| {
        let mut lines = text.lines().filter_map(|line| line.split_once(' '));
        lines.find(|(name, _)| *name == key).and_then(|(_, count)| count.parse().ok()).unwrap_or(0)
    };
    Cost { killed: count("oom_kill"), swapped: count("pswpout") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::platform::kernel_files::fixture::Machine;

    #[test]
    fn the_file_leaves_the_reserve_and_the_limit_of_a_group_alone() {
        let meminfo = ("proc/meminfo", "MemTotal: 20971520 kB\nMemAvailable: 10485760 kB\n");
        let bounds = Bounds::read(&Machine::with_files(&[meminfo]).files).expect("room");
        assert_eq!(bounds, Bounds { available: 10 << 30, reserve: 2 << 30 });
        assert_eq!(bounds.longest_file(), 8 << 30);
    }

    #[test]
    fn a_group_that_is_smaller_than_the_reserve_leaves_nothing_to_fill() {
        let group = Machine::with_files(&[
            ("proc/meminfo", "MemTotal: 20971520 kB\nMemAvailable: 10485760 kB\n"),
            ("proc/self/mountinfo", "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"),
            ("proc/self/cgroup", "0::/\n"),
            ("sys/fs/cgroup/memory.max", "2147483648\n"),
            ("sys/fs/cgroup/memory.current", "1073741824\n"),
        ]);
        let sentence = Bounds::read(&group.files).expect_err("too little").to_string();
        assert!(sentence.contains("1024 MiB of memory are available and 2048 MiB"), "{sentence}");
    }

    #[test]
    fn a_run_ends_when_other_programs_lose_memory() {
        let why = |available, cost| reason_to_end(Some(available), 1 << 30, cost);
        assert_eq!(why(1 << 30, Cost::default()), None);
        let cases = [
            (why(1 << 28, Cost::default()), "256 MiB of memory are still available"),
            (why(1 << 30, Cost { killed: 1, ..Cost::default() }), "killed a process"),
            (why(1 << 30, Cost { swapped: 9, ..Cost::default() }), "swapped 9 pages out"),
        ];
        for (why, words) in cases {
            assert!(why.as_deref().is_some_and(|why| why.contains(words)), "{why:?} {words}");
        }
    }

    #[test]
    fn an_interruption_ends_it_at_once() {
        let mut guard = Guard::begin(0, Duration::from_secs(60), &|| true);
        assert!(guard.check_machine().is_err());
        assert_eq!(guard.cost_so_far().killed, 0);
    }
}

//! What keeps the machine usable while its file cache is filled.
//!
//! * The file never becomes longer than what is available, less a reserve ([`Bounds`]).
//! * The disk is used when no other task wants it ([`IdleAtTheDisk`](crate::kit::io_priority::IdleAtTheDisk)).
//! * Several times a second the [`Guard`] looks whether others have taken the reserve, whether anything was swapped or
//!   killed, and whether tasks waited for memory ([`Pressure`]); then the search ends.
//!
//! A file that is read once costs others the pages that they have not used for longest. What they use again and again is
//! on another list of the kernel's, from which a single reader takes nothing.

use crate::counters::pressure::{Pressure, Resource};
use crate::error::{Error, Result};
use crate::platform::kernel_files::{KernelFiles, meminfo_bytes};
use crate::platform::limit;
use std::time::{Duration, Instant};

const MIB: u64 = 1 << 20;
/// The reserve is this part of all memory …
const RESERVE_PART: u64 = 10;
/// … and at least as much as a doctor wants for other measurements, bytes.
const LEAST_RESERVE: u64 = 1024 * MIB;
/// Time between two looks at the pressure: its share of a shorter one means little.
const LOOK: Duration = Duration::from_millis(500);
/// Share of a [`LOOK`] for which all tasks may wait for memory. A single reader on a machine at rest causes some percent
/// while the kernel makes room for it.
const MOST_STALLED: f64 = 0.25;

/// How much of the memory the file may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Bytes that are available, by the kernel's estimate and by the limits of this process' control groups.
    pub available: u64,
    /// Bytes that are left to others.
    pub reserve: u64,
}

impl Bounds {
    /// Reads the bounds of this machine. Without `reserve`, the reserve is a tenth of the memory.
    ///
    /// # Errors
    /// [`Error::Missing`] where the kernel does not tell, or too little is left.
    pub fn read(files: &KernelFiles, reserve: Option<u64>) -> Result<Self> {
        let meminfo = files.read_text("proc/meminfo").unwrap_or_default();
        let number = |key: &str| {
            let silent = || Error::Missing(format!("/proc/meminfo does not tell {key}: mount /proc"));
            meminfo_bytes(&meminfo, key).ok_or_else(silent)
        };
        let reserve = reserve.unwrap_or((number("MemTotal")? / RESERVE_PART).max(LEAST_RESERVE));
        let available = number("MemAvailable")?.min(limit::cgroup_memory_left(files).unwrap_or(u64::MAX));
        let bounds = Self { available, reserve };
        if bounds.longest_file() >= LEAST_FILE {
            return Ok(bounds);
        }
        Err(Error::Missing(format!(
            "{} MiB of memory are available and {} MiB of them are left to others: nothing to fill; free some, or leave \
             less (`--reserve`)",
            available / MIB,
            reserve / MIB
        )))
    }

    /// The longest file, bytes.
    pub fn longest_file(&self) -> u64 {
        self.available.saturating_sub(self.reserve)
    }
}

/// The shortest file whose result means anything, bytes.
pub const LEAST_FILE: u64 = 64 * MIB;

/// What the search cost other processes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Toll {
    /// Processes that the kernel killed for want of memory.
    pub killed: u64,
    /// Pages that were swapped out.
    pub swapped: u64,
    /// Time for which all tasks waited for memory; `None` where the kernel does not measure it.
    pub stalled: Option<Duration>,
}

/// Watches memory pressure during a search and ends the search before others suffer.
pub struct Guard<'a> {
    files: KernelFiles,
    reserve: u64,
    pressure: Option<Pressure>,
    /// Counts when the search began.
    first: Toll,
    /// When the pressure was looked at, and what it was.
    last: (Instant, Option<Duration>),
    ends: Instant,
    ignores_stalls: bool,
    interrupted: &'a dyn Fn() -> bool,
}

impl<'a> Guard<'a> {
    /// Begins to watch the machine, for this time at most.
    pub fn begin(reserve: u64, time: Duration, interrupted: &'a dyn Fn() -> bool) -> Self {
        let (files, pressure) = (KernelFiles::live(), Pressure::open(Resource::Memory).ok());
        let first = read_toll(&files, pressure.as_ref());
        let now = Instant::now();
        let (last, ends, ignores_stalls) = ((now, first.stalled), now + time, false);
        Self { files, reserve, pressure, first, last, ends, ignores_stalls, interrupted }
    }

    /// Lets tasks wait for memory: for a reader that itself waits for what the cache has given up.
    pub fn without_stalls(self) -> Self {
        Self { ignores_stalls: true, ..self }
    }

    /// Whether the time is over.
    pub fn is_time_over(&self) -> bool {
        Instant::now() >= self.ends
    }

    /// Whether the search may go on.
    ///
    /// # Errors
    /// [`Error::Disturbed`]: why not.
    pub fn check_machine(&mut self) -> Result<()> {
        if (self.interrupted)() {
            return Err(Error::Disturbed("interrupted".into()));
        }
        if self.last.0.elapsed() < LOOK {
            return Ok(());
        }
        let stalled = self.pressure.as_ref().and_then(total_stall_time);
        let grown = stalled.zip(self.last.1).map(|(now, before)| now.saturating_sub(before));
        let share = grown.map_or(0.0, |grown| grown.as_secs_f64() / self.last.0.elapsed().as_secs_f64());
        self.last = (Instant::now(), stalled);
        let meminfo = self.files.read_text("proc/meminfo").unwrap_or_default();
        let share = if self.ignores_stalls { 0.0 } else { share };
        reason_to_end(meminfo_bytes(&meminfo, "MemAvailable"), self.reserve, share, self.toll_so_far())
            .map_or(Ok(()), |why| Err(Error::Disturbed(why)))
    }

    /// What the search has cost other processes so far.
    pub fn toll_so_far(&self) -> Toll {
        let now = read_toll(&self.files, self.pressure.as_ref());
        Toll {
            killed: now.killed.saturating_sub(self.first.killed),
            swapped: now.swapped.saturating_sub(self.first.swapped),
            stalled: now.stalled.zip(self.first.stalled).map(|(now, first)| now.saturating_sub(first)),
        }
    }
}

/// Why the search must end, if it must.
fn reason_to_end(available: Option<u64>, reserve: u64, stalled: f64, toll: Toll) -> Option<String> {
    let left = available.unwrap_or(u64::MAX);
    let why = match toll {
        Toll { killed: 1.., .. } => "the kernel has killed a process for want of memory".to_owned(),
        Toll { swapped: 1.., .. } => format!("the kernel has swapped {} pages out", toll.swapped),
        _ if left < reserve / 2 => {
            format!("{} MiB of memory are still available: others took half of the reserve", left / MIB)
        }
        _ if stalled > MOST_STALLED => {
            format!("all tasks waited for memory for {:.0} % of half a second", 100.0 * stalled)
        }
        _ => return None,
    };
    Some(format!(
        "{why}; the file was given up, so that others can go on: try again when the machine is at rest"
    ))
}

fn read_toll(files: &KernelFiles, pressure: Option<&Pressure>) -> Toll {
    let text = files.read_text("proc/vmstat").unwrap_or_default();
    let count = |key: &str| {
        let mut lines = text.lines().filter_map(|line| line.split_once(' '));
        lines.find(|(name, _)| *name == key).and_then(|(_, count)| count.parse().ok()).unwrap_or(0)
    };
    let stalled = pressure.and_then(total_stall_time);
    Toll { killed: count("oom_kill"), swapped: count("pswpout"), stalled }
}

fn total_stall_time(pressure: &Pressure) -> Option<Duration> {
    pressure.read().ok()?.value.full.map(|full| full.total)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::platform::kernel_files::fixture::Machine;

    #[test]
    fn the_file_leaves_the_reserve_and_the_limit_of_a_group_alone() {
        let meminfo = ("proc/meminfo", "MemTotal: 20971520 kB\nMemAvailable: 10485760 kB\n");
        let bounds = Bounds::read(&Machine::with_files(&[meminfo]).files, None).expect("room");
        assert_eq!(bounds, Bounds { available: 10 << 30, reserve: 2 << 30 });
        assert_eq!(bounds.longest_file(), 8 << 30);
        let group = Machine::with_files(&[
            meminfo,
            ("proc/self/mountinfo", "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"),
            ("proc/self/cgroup", "0::/\n"),
            ("sys/fs/cgroup/memory.max", "2147483648\n"),
            ("sys/fs/cgroup/memory.current", "1073741824\n"),
        ]);
        assert_eq!(Bounds::read(&group.files, Some(512 * MIB)).expect("room").longest_file(), 512 * MIB);
        let sentence = Bounds::read(&group.files, None).expect_err("too little").to_string();
        assert!(sentence.contains("1024 MiB of memory are available and 2048 MiB"), "{sentence}");
    }

    #[test]
    fn it_ends_for_the_sake_of_others() {
        let why = |available, stalled, toll| reason_to_end(Some(available), 1 << 30, stalled, toll);
        assert_eq!(why(1 << 30, 0.1, Toll::default()), None);
        let cases = [
            (why(1 << 28, 0.0, Toll::default()), "256 MiB of memory are still available"),
            (why(1 << 30, 0.5, Toll::default()), "50 % of half a second"),
            (why(1 << 30, 0.0, Toll { killed: 1, ..Toll::default() }), "killed a process"),
            (why(1 << 30, 0.0, Toll { swapped: 9, ..Toll::default() }), "swapped 9 pages out"),
        ];
        for (why, words) in cases {
            assert!(why.as_deref().is_some_and(|why| why.contains(words)), "{why:?} {words}");
        }
    }

    #[test]
    fn an_interruption_ends_it_at_once() {
        let mut guard = Guard::begin(0, Duration::from_secs(60), &|| true);
        assert!(guard.check_machine().is_err());
        assert_eq!(guard.toll_so_far().killed, 0);
    }
}

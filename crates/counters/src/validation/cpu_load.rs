//! A process that uses a known share of one CPU (the paper's Figure 4).

use nix::unistd::Pid;
use std::fs::{self, File};
use std::io::Read;
use std::time::Duration;
use syscost_platform::child::Child;
use syscost_platform::control_group::root_group_file;
use syscost_platform::error::{Error, Result};
use syscost_platform::kernel_files::KernelFiles;
use syscost_platform::proc::{self, Schedstat};
use syscost_platform::process::set_niceness;
use syscost_platform::{arch, cpu, time};
use syscost_statistic::Random;

/// Shortest and longest turn of work and sleep. The lengths are random, so that the load is never synchronous with the
/// kernel's tick, which would then always or never find it busy. Each turn ends with a sleep and a timer interrupt: for some
/// 15 µs the CPU is neither idle nor charged to a task. At 300 turns per second that would be 0.5 % of the CPU, which is the
/// whole tolerance.
const SHORTEST_NS: u64 = 6_000_000;
const LONGEST_NS: u64 = 12_000_000;

/// The length of a read of zeroes that keeps a load in the kernel for a millisecond. The load spends less than a thousandth
/// of the time outside of the read. An emulator checks for interrupts when it returns to user space, and needs that length.
const LONG_READ: usize = 16 << 20;

/// The mode in which a load spends its time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Mode {
    User,
    Kernel,
}

/// The process that makes the load. It ends when this value is dropped.
pub(super) struct Load {
    child: Child,
    /// Whether the load never sleeps.
    wants_all: bool,
}

impl Load {
    /// Starts a process that uses `share` of a CPU, from 0 to 1. In each turn it works until its own CPU time has reached
    /// that share of the elapsed time, and sleeps for the rest. It thereby makes up for time that other tasks take.
    ///
    /// # Errors
    /// An error where the kernel refuses the process.
    pub(super) fn with_share(share: f64, cpu: usize, seed: u64) -> Result<Self> {
        Self::start(cpu, share >= 1.0, || run_turns([(share, &mut || ())], Random::new(seed)))
    }

    /// Starts a process that wants all of a CPU and is always in this mode; it reads no clock.
    ///
    /// # Errors
    /// An error where the kernel refuses the process.
    pub(super) fn in_one_mode(mode: Mode, cpu: usize) -> Result<Self> {
        let zeroes = open_dev_zero()?;
        let mut buffer = vec![0; LONG_READ];
        Self::start(cpu, true, || {
            loop {
                match mode {
                    Mode::User => work_in_user_space(),
                    Mode::Kernel => _ = (&zeroes).read(&mut buffer),
                }
            }
        })
    }

    /// Starts a process that uses these shares of a CPU in user space and in the kernel. In each turn it works first in user
    /// space, then in the kernel.
    ///
    /// # Errors
    /// An error where the kernel refuses the process.
    pub(super) fn with_mode_shares(user: f64, kernel: f64, cpu: usize, seed: u64) -> Result<Self> {
        // Opened before the fork, since the child should not allocate.
        let zeroes = open_dev_zero()?;
        let mut buffer = vec![0; 1 << 16];
        Self::start(cpu, false, || {
            let in_kernel = || _ = (&zeroes).read(&mut buffer);
            run_turns(
                [(user, &mut work_in_user_space), (user + kernel, &mut { in_kernel })],
                Random::new(seed),
            );
        })
    }

    fn start(cpu: usize, wants_all: bool, work: impl FnOnce()) -> Result<Self> {
        let child = Child::start(|| {
            raise_priority();
            if cpu::pin_thread(cpu).is_ok() {
                work();
            }
        })?;
        Ok(Self { child, wants_all })
    }

    pub(super) fn pid(&self) -> Pid {
        self.child.pid()
    }
}

fn open_dev_zero() -> Result<File> {
    File::open("/dev/zero").map_err(|e| Error::file("/dev/zero", "opening", e))
}

/// Raises the priority as far as is allowed, since a full load is full only if it has the CPU. The kernel weighs whole
/// sessions against each other (`sched_autogroup_enabled`), and tasks only within one session.
fn raise_priority() {
    let _ = nix::unistd::setsid();
    let _ = fs::write("/proc/self/autogroup", "-20");
    let _ = set_niceness(-20);
}

/// Works in user space for about 50 µs, without a system call.
fn work_in_user_space() {
    arch::register_loop(std::hint::black_box(100_000));
}

/// In each turn, does each piece of work until the CPU time has reached its share of the elapsed time, and then sleeps.
/// A load that wants all of the time never sleeps.
fn run_turns<const N: usize>(mut work: [(f64, &mut dyn FnMut()); N], mut random: Random) {
    let all = work.last().map_or(0.0, |last| last.0);
    if all == 0.0 {
        loop {
            std::thread::sleep(Duration::from_secs(1));
        }
    }
    let (began, used) = (time::monotonic_raw_ns(), time::thread_cpu_ns());
    let mut turn_ends = began;
    let mut done = 0.0;
    loop {
        let left = turn_ends.saturating_sub(time::monotonic_raw_ns());
        if all < 1.0 {
            std::thread::sleep(Duration::from_nanos(left));
        }
        let range = (LONGEST_NS - SHORTEST_NS) as usize;
        turn_ends = time::monotonic_raw_ns() + SHORTEST_NS + random.number_below(range) as u64;
        let used = || (time::thread_cpu_ns() - used) as f64;
        // The CPU time that this turn still has to use, divided below in the proportion of the shares.
        let owed = (all * (turn_ends - began) as f64 - done).max(0.0);
        for (up_to, piece) in &mut work {
            while used() < done + owed * *up_to / all {
                piece();
            }
        }
        done = used();
    }
}

/// Time that all tasks together have run on one CPU, ns. It is the CPU accounting of the root control group, which does not
/// depend on the tick. Control groups of version 2 have no times of single CPUs; `/proc/schedstat` is read for these, and
/// without control groups.
///
/// # Errors
/// [`Error::Missing`] where neither source exists.
fn task_time_ns(cpu: usize) -> Result<u64> {
    let by_scheduler = || parse_scheduled_ns(&fs::read_to_string("/proc/schedstat").ok()?, cpu);
    let file = root_group_file(&KernelFiles::live(), Some("cpuacct"), "cpuacct.usage_percpu");
    let each = file.and_then(|file| fs::read_to_string(file).ok()).unwrap_or_default();
    each.split_ascii_whitespace().nth(cpu).and_then(|ns| ns.parse().ok()).or_else(by_scheduler).ok_or_else(|| {
        Error::Missing(
            "what other processes take of the CPU is not known here: that takes the root group of the cpuacct \
             hierarchy (control groups of version 1), or /proc/schedstat (CONFIG_SCHEDSTATS)"
                .into(),
        )
    })
}

/// The time that tasks have run on a CPU, ns, from `/proc/schedstat`: the seventh number of the CPU's line
/// (Documentation/scheduler/sched-stats.rst).
fn parse_scheduled_ns(text: &str, cpu: usize) -> Option<u64> {
    let name = format!("cpu{cpu}");
    let mut words = text
        .lines()
        .map(str::split_ascii_whitespace)
        .find_map(|mut words| (words.next() == Some(name.as_str())).then_some(words))?;
    words.nth(6)?.parse().ok()
}

/// CPU time that processes other than these loads have used, ns. Its sources are not the counters under test, so that an
/// error of such a counter is not mistaken for other processes' time.
///
/// # Errors
/// An error where a load has ended, or where the kernel keeps no such statistics.
pub(super) fn other_processes_ns(cpu: usize, loads: &[Load]) -> Result<u64> {
    // A load that never sleeps waits exactly while other tasks run, so its waiting time is used. The CPU's sum would be late:
    // the scheduler updates it only when a task leaves the CPU.
    if let [load @ Load { wants_all: true, .. }] = loads {
        return Ok(load_schedstat(load)?.waited_ns);
    }
    let ours = loads.iter().map(|load| Ok(load_schedstat(load)?.ran_ns)).sum::<Result<u64>>()?;
    Ok(task_time_ns(cpu)?.saturating_sub(ours))
}

/// The scheduler's own statistics of a load, which are not the clock under test.
fn load_schedstat(load: &Load) -> Result<Schedstat> {
    let path = format!("/proc/{}/schedstat", load.pid());
    let text = fs::read_to_string(&path).map_err(|e| Error::file(&path, "reading", e))?;
    proc::parse_schedstat(&text)
        .ok_or_else(|| Error::Missing(format!("{path} does not begin with three numbers")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;
    use syscost_platform::process::process_cpu_ns;

    #[test]
    fn without_control_groups_of_version_1_the_scheduler_s_time_is_parsed() {
        let text = "version 15\ntimestamp 4294904444\ncpu0 0 0 0 0 0 0 123456789 4711 99\n\
            domain0 3 0 0 0 0\ncpu1 1 2 3 4 5 6 7000000000 8 9\n";
        assert_eq!(parse_scheduled_ns(text, 0), Some(123_456_789));
        assert_eq!(parse_scheduled_ns(text, 1), Some(7_000_000_000));
        assert_eq!(parse_scheduled_ns(text, 2), None);
        assert_eq!(parse_scheduled_ns("cpu0 1 2", 0), None);
    }

    #[test]
    fn a_load_uses_its_share_and_no_more() {
        let cpu = cpu::allowed_cpus().into_iter().max().expect("a CPU");
        let load = Load::with_share(0.3, cpu, 1).expect("started");
        let used = || process_cpu_ns(load.pid().as_raw() as u32) as f64;
        let (begun, before) = (Instant::now(), used());
        std::thread::sleep(Duration::from_millis(200));
        let share = (used() - before) / begun.elapsed().as_nanos() as f64;
        // Other processes may take the CPU from the load, which then catches up.
        assert!(share < 0.6, "{share}");
        assert!(used() > 0.0);
    }
}

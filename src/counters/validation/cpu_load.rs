//! A process that uses a known share of one CPU (the paper's Figure 4).

use crate::error::{Error, Result};
use crate::platform::child::Child;
use crate::platform::control_group::file_at_root;
use crate::platform::kernel_files::KernelFiles;
use crate::platform::process::be_nice;
use crate::platform::{cpu, time};
use crate::statistic::Random;
use nix::unistd::Pid;
use std::fs;
use std::time::Duration;

/// Shortest and longest turn of work and sleep. Lengths are random, so that the load is never in step with the kernel's
/// tick, which would then find it busy always or never. Each turn ends with a sleep and a timer interrupt: some 15 µs
/// in which the CPU is neither idle nor charged to a task. At 300 turns a second that would be 0.5 % of the CPU, which
/// is the whole tolerance.
const SHORTEST_NS: u64 = 6_000_000;
const LONGEST_NS: u64 = 12_000_000;

/// The process. Dropping this value ends it.
pub(super) struct Load {
    child: Child,
}

impl Load {
    /// Starts a process that uses `share` of a CPU, from 0 to 1. In each turn it works until its own CPU time has
    /// reached that share of the elapsed time, and sleeps for the rest: time that other tasks take is made up for.
    ///
    /// # Errors
    /// The kernel refuses the process.
    pub(super) fn of(share: f64, cpu: usize, seed: u64) -> Result<Self> {
        let child = Child::start(|| {
            raise_priority();
            if cpu::pin(cpu).is_ok() {
                work(share, Random::new(seed));
            }
        })?;
        Ok(Self { child })
    }

    pub(super) fn pid(&self) -> Pid {
        self.child.pid()
    }
}

/// Raises the priority as far as is allowed: a full load is full only if it has the CPU. The kernel weighs whole
/// sessions against each other (`sched_autogroup_enabled`), and tasks only within one.
fn raise_priority() {
    let _ = nix::unistd::setsid();
    let _ = fs::write("/proc/self/autogroup", "-20");
    let _ = be_nice(-20);
}

fn work(share: f64, mut random: Random) {
    if share == 0.0 {
        loop {
            std::thread::sleep(Duration::from_secs(1));
        }
    }
    let (began, used) = (time::monotonic_raw_ns(), time::thread_cpu_ns());
    let mut turn_ends = began;
    loop {
        let left = turn_ends.saturating_sub(time::monotonic_raw_ns());
        if share < 1.0 && left > 0 {
            std::thread::sleep(Duration::from_nanos(left));
        }
        let range = (LONGEST_NS - SHORTEST_NS) as usize;
        turn_ends = time::monotonic_raw_ns() + SHORTEST_NS + random.below(range) as u64;
        // The CPU time that it should have had when this turn ends.
        let owed = share * (turn_ends - began) as f64;
        while ((time::thread_cpu_ns() - used) as f64) < owed {}
    }
}

/// Time that all tasks together have run on one CPU, in nanoseconds: the CPU accounting of the root control group,
/// which does not depend on the tick.
///
/// # Errors
/// [`Error::Missing`] without the cpuacct hierarchy of version 1.
pub(super) fn run_ns(cpu: usize) -> Result<u64> {
    let file = file_at_root(&KernelFiles::live(), Some("cpuacct"), "cpuacct.usage_percpu");
    let each = file.and_then(|file| fs::read_to_string(file).ok()).unwrap_or_default();
    each.split_ascii_whitespace().nth(cpu).and_then(|ns| ns.parse().ok()).ok_or_else(|| {
        Error::Missing(
            "what other processes take of the CPU is not known here: that takes the root group of the cpuacct \
             hierarchy (control groups of version 1)"
                .into(),
        )
    })
}

/// Time that a load has run, in nanoseconds, by the scheduler's own statistics and not by the clock under test.
///
/// # Errors
/// The process has ended, or the kernel keeps no such statistics.
pub(super) fn own_ns(load: &Load) -> Result<u64> {
    let path = format!("/proc/{}/schedstat", load.pid());
    let text = fs::read_to_string(&path).map_err(|e| Error::file(&path, "reading", e))?;
    let ns = crate::platform::proc::schedstat(&text).map(|read| read.ran_ns);
    ns.ok_or_else(|| Error::Missing(format!("{path} does not begin with a number")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::platform::process::cpu_ns_of;
    use std::time::Instant;

    #[test]
    fn a_load_uses_its_share_and_no_more() {
        let cpu = cpu::allowed().into_iter().max().expect("a CPU");
        let load = Load::of(0.3, cpu, 1).expect("started");
        let used = || cpu_ns_of(load.pid().as_raw() as u32) as f64;
        let (begun, before) = (Instant::now(), used());
        std::thread::sleep(Duration::from_millis(200));
        let share = (used() - before) / begun.elapsed().as_nanos() as f64;
        // Others may take the CPU from it, and then it catches up.
        assert!(share < 0.6, "{share}");
        assert!(used() > 0.0);
    }
}

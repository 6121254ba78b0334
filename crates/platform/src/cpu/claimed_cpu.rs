//! Claiming the CPU to measure on, so that two runs do not disturb each other.
//!
//! | another run | is seen by |
//! |---|---|
//! | in the same network namespace | a name, an abstract socket address |
//! | in another one, with the same `/dev` (`unshare -n`, bubblewrap, rootless containers, which bind the host's nodes) | a lock on one byte of `/dev/null` |
//! | in a container that has a `/dev` of its own | its use of the CPU, in `/proc/stat` ([`cpus_in_use`]) |
//!
//! The kernel releases the name and the lock when the last process that holds them ends, and neither leaves a file. The use of
//! a CPU is sampled only if other tasks run at this moment, for 20 ms, or for 40 ms if the first choice is in use.

use super::super::kernel_files::KernelFiles;
use super::super::proc::busy_and_idle_ticks;
use super::cpu_class::choose_own_cpus;
use crate::signal;
use crate::socket_handle::{is_name_taken, take_name};
use nix::errno::Errno;
use nix::fcntl::{FcntlArg, fcntl};
use std::fs::File;
use std::os::unix::net::UnixListener;
use std::time::{Duration, Instant};

/// A CPU that no other process of this crate measures on while this value lives.
pub struct Claimed {
    /// The CPU.
    pub cpu: usize,
    _marks: Marks,
}

/// Claims the CPU to measure on: the first of [`choose_own_cpus`] (the fastest class, or the user's choice) that no other run
/// has claimed and no task keeps busy. If tasks keep every unclaimed CPU busy, it claims the first of those. If all are
/// claimed, it waits until one is released, a signal arrives, or 200 s have passed. The wait is limited because a stopped
/// process may hold the claim, and the driver takes a longer silence for a case that hangs.
pub fn claim_cpu() -> Option<Claimed> {
    const LONGEST: Duration = Duration::from_secs(200);
    let begun = Instant::now();
    // If the user's choice has become impossible meanwhile, no CPU is left.
    let cpus = choose_own_cpus().map_or(Vec::new(), |(cpus, _)| cpus);
    loop {
        let in_use = if cpus.len() > 1 { cpus_in_use(&cpus) } else { Vec::new() };
        let order = cpus.iter().filter(|cpu| !in_use.contains(cpu)).chain(&in_use);
        let claimed = order.copied().find_map(|cpu| Some(Claimed { cpu, _marks: Marks::acquire(cpu)? }));
        if claimed.is_some() || cpus.is_empty() || signal::pending().is_some() || begun.elapsed() > LONGEST {
            return claimed;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// What other runs see of a claimed CPU. Either mark is `None` where this system does not allow it.
struct Marks {
    _name: Option<UnixListener>,
    _lock: Option<File>,
}

impl Marks {
    /// Sets both marks; `None` if another run holds one of them.
    fn acquire(cpu: usize) -> Option<Self> {
        let name = take_name(&format!("syscost-measures-on-cpu-{cpu}"));
        if is_name_taken(&name) {
            return None;
        }
        Some(Self { _name: name.ok(), _lock: lock_cpu_byte(cpu).ok()? })
    }
}

/// The error if another process holds the lock.
struct IsHeld;

/// Locks the byte of `/dev/null` that stands for this CPU; `None` where that is not allowed. The lock belongs to the open file
/// (fcntl(2), `F_OFD_SETLK`), so forked children keep it.
fn lock_cpu_byte(cpu: usize) -> Result<Option<File>, IsHeld> {
    /// Offset of the byte for CPU 0, far from bytes that other programs may lock. Its letters spell "syscost".
    const FIRST: i64 = 0x73_7973_636f_7374;
    let Ok(file) = File::options().read(true).write(true).open("/dev/null") else { return Ok(None) };
    let lock = libc::flock {
        l_type: libc::F_WRLCK as libc::c_short,
        l_whence: libc::SEEK_SET as libc::c_short,
        l_start: FIRST + cpu as i64,
        l_len: 1,
        l_pid: 0,
    };
    match fcntl(&file, FcntlArg::F_OFD_SETLK(&lock)) {
        Ok(_) => Ok(Some(file)),
        Err(Errno::EAGAIN | Errno::EACCES) => Err(IsHeld),
        Err(_) => Ok(None),
    }
}

/// Time between two readings: two of the kernel's clock ticks. A CPU that is busy throughout has no idle tick in it.
const SAMPLE_TIME: Duration = Duration::from_millis(20);

/// Returns the CPUs that were busy throughout two samples of 20 ms. If no other task runs, it returns at once. If
/// the first CPU is free in the first sample, the result is empty: a daemon's few milliseconds are no reason to
/// avoid it.
pub fn cpus_in_use(cpus: &[usize]) -> Vec<usize> {
    let files = KernelFiles::live();
    if files.read_text("/proc/loadavg").and_then(|text| running_tasks(&text)).is_some_and(|tasks| tasks <= 1)
    {
        return Vec::new();
    }
    let first = sample_cpus_in_use(&files, cpus);
    if cpus.first().is_none_or(|cpu| !first.contains(cpu)) {
        return Vec::new();
    }
    let second = sample_cpus_in_use(&files, cpus);
    first.into_iter().filter(|cpu| second.contains(cpu)).collect()
}

/// Tasks of the whole machine that run or are ready at this moment, by `/proc/loadavg` (proc_loadavg(5)).
fn running_tasks(text: &str) -> Option<usize> {
    text.split_ascii_whitespace().nth(3)?.split('/').next()?.parse().ok()
}

fn sample_cpus_in_use(files: &KernelFiles, cpus: &[usize]) -> Vec<usize> {
    let Some(before) = files.read_text("/proc/stat") else { return Vec::new() };
    std::thread::sleep(SAMPLE_TIME);
    let after = files.read_text("/proc/stat").unwrap_or_default();
    cpus.iter().copied().filter(|&cpu| is_in_use(&before, &after, cpu)).collect()
}

/// Whether a CPU was busy and never idle between two readings of `/proc/stat`. False if the CPU is not listed, as
/// in some sandboxes.
fn is_in_use(before: &str, after: &str, cpu: usize) -> bool {
    let ticks = |text| busy_and_idle_ticks(text, cpu);
    let (Some((busy_before, idle_before)), Some((busy, idle))) = (ticks(before), ticks(after)) else {
        return false;
    };
    busy > busy_before && idle == idle_before
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::{allowed_cpus, run_on_cpu};
    use crate::testing::print_skipped;

    #[test]
    fn two_runs_get_different_cpus() {
        let first = claim_cpu().expect("a CPU");
        if allowed_cpus().len() > 1 {
            // A run outside this test may hold a CPU as well, so only the difference is asked for.
            assert!(Marks::acquire(first.cpu).is_none());
        }
        let cpu = first.cpu;
        drop(first);
        assert!(Marks::acquire(cpu).is_some() || claim_cpu().is_some(), "given back");
    }

    #[test]
    fn a_lock_is_seen_where_names_are_not() {
        /// A CPU that no machine has.
        const CPU: usize = 1 << 20;
        let Ok(Some(first)) = lock_cpu_byte(CPU) else {
            print_skipped("/dev/null cannot be locked here");
            return;
        };
        assert!(lock_cpu_byte(CPU).is_err() && lock_cpu_byte(CPU + 1).is_ok());
        drop(first);
        assert!(lock_cpu_byte(CPU).is_ok());
    }

    #[test]
    fn a_cpu_without_an_idle_tick_is_in_use() {
        let stat = |busy: u64, idle: u64| format!("cpu  9 9 9 9\ncpu3 {busy} 0 0 {idle} 0 0 0 0 0 0\n");
        assert!(is_in_use(&stat(10, 50), &stat(12, 50), 3));
        assert!(!is_in_use(&stat(10, 50), &stat(11, 51), 3), "now and then");
        assert!(!is_in_use(&stat(10, 50), &stat(10, 52), 3), "idle");
        assert!(!is_in_use(&stat(0, 0), &stat(0, 0), 3), "a kernel that tells nothing");
        assert!(!is_in_use(&stat(10, 50), &stat(12, 50), 4), "no such CPU");
    }

    #[test]
    fn the_running_tasks_are_the_fourth_number() {
        assert_eq!(running_tasks("6.43 4.52 2.20 7/140 4997\n"), Some(7));
        assert_eq!(running_tasks(""), None);
    }

    #[test]
    fn finding_the_cpus_in_use_takes_less_than_ten_samples() {
        let begun = std::time::Instant::now();
        let cpus = allowed_cpus();
        run_on_cpu(cpus[0], || cpus_in_use(&cpus)).expect("pinned");
        // It should take at most 40 of the 50 ms that a start may take. On an overloaded machine sleeps end late: allow ten.
        assert!(begun.elapsed() < 10 * SAMPLE_TIME, "{:?}", begun.elapsed());
    }
}

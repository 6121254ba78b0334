//! Claiming the CPU to measure on, so that two runs do not disturb each other.
//!
//! | another run | is seen by |
//! |---|---|
//! | in the same network namespace | a name, an abstract socket address |
//! | in another one, with the same `/dev` (`unshare -n`, bubblewrap, rootless containers, which bind the host's nodes) | a lock on one byte of `/dev/null` |
//! | in a container that has a `/dev` of its own | its use of the CPU, in `/proc/stat` ([`busy`]) |
//!
//! Both marks are released by the kernel when the last process that holds them ends, and leave no file. The use of a CPU is
//! looked at only if other tasks run at this moment, and then takes 20 ms, or 40 ms where the first choice is in use.

use super::busy;
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

/// Claims the CPU to measure on: of the fastest class, or of what the user has chosen, the first one that no other run has claimed
/// and no task keeps busy ([`choose_own_cpus`] orders them). If tasks keep every unclaimed CPU busy, it takes the first of
/// those. If all are claimed, it waits until one is released, a signal arrives, or 200 s have passed: a stopped
/// process may hold the claim, and the driver takes a longer silence for a case that hangs.
pub fn claim_cpu() -> Option<Claimed> {
    const LONGEST: Duration = Duration::from_secs(200);
    let begun = Instant::now();
    // A choice that became impossible meanwhile leaves none.
    let cpus = choose_own_cpus().map_or(Vec::new(), |(cpus, _)| cpus);
    loop {
        let in_use = if cpus.len() > 1 { busy::cpus_in_use(&cpus) } else { Vec::new() };
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

/// The lock of another process.
struct IsHeld;

/// Locks the byte of `/dev/null` that stands for this CPU; `None` where that is not allowed. The lock belongs to the open file
/// (fcntl(2), `F_OFD_SETLK`), so forked children keep it.
fn lock_cpu_byte(cpu: usize) -> Result<Option<File>, IsHeld> {
    /// The first byte: far from those that others may lock. The letters spell "syscost".
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::allowed_cpus;

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
        /// No machine has it.
        const CPU: usize = 1 << 20;
        let Ok(Some(first)) = lock_cpu_byte(CPU) else {
            println!("skipped: /dev/null cannot be locked here");
            return;
        };
        assert!(lock_cpu_byte(CPU).is_err() && lock_cpu_byte(CPU + 1).is_ok());
        drop(first);
        assert!(lock_cpu_byte(CPU).is_ok());
    }
}

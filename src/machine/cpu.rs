//! Which CPUs there are, and staying on one.

use crate::{Error, Result};
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;

/// The CPUs that this thread may run on.
pub fn allowed() -> Vec<usize> {
    let ids = core_affinity::get_core_ids().unwrap_or_default();
    ids.into_iter().map(|id| id.id).collect()
}

/// The CPU that this thread runs on at this moment.
pub fn current() -> usize {
    nix::sched::sched_getcpu().unwrap_or(0)
}

/// The CPU to measure on: the last one allowed, because interrupts and daemons gather on the first.
pub fn quietest() -> Option<usize> {
    allowed().into_iter().max()
}

/// Keeps this thread on one CPU.
pub fn pin(cpu: usize) -> Result<()> {
    let mut set = CpuSet::new();
    set.set(cpu).map_err(|e| Error::refused(format!("sched_setaffinity to CPU {cpu}"), e))?;
    sched_setaffinity(Pid::from_raw(0), &set).map_err(|e| {
        Error::refused(format!("sched_setaffinity to CPU {cpu} (allowed here: {:?})", allowed()), e)
    })
}

/// Runs `f` with this thread on one CPU, and puts the affinity back afterwards, also when `f` fails.
pub fn while_on<T>(cpu: usize, f: impl FnOnce() -> T) -> Result<T> {
    let before = sched_getaffinity(Pid::from_raw(0)).map_err(|e| Error::refused("sched_getaffinity", e))?;
    pin(cpu)?;
    let value = f();
    sched_setaffinity(Pid::from_raw(0), &before).map_err(|e| Error::refused("sched_setaffinity back", e))?;
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn affinity_is_put_back() {
        let before = allowed();
        let cpu = quietest().expect("a CPU");
        assert_eq!(while_on(cpu, current).expect("pinned"), cpu);
        assert_eq!(allowed(), before);
    }

    #[test]
    fn a_cpu_that_does_not_exist_is_named() {
        let error = pin(1023).expect_err("no such CPU").to_string();
        assert!(error.contains("CPU 1023"), "{error}");
    }
}

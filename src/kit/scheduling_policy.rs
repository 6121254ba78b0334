//! The scheduling policy of a thread, and its priority at the disk, for as long as a value lives.
//!
//! # Invariants
//!
//! * **NO-MEMORY**: the calls are given numbers and touch no memory of ours.
#![allow(unsafe_code)]

use crate::kit::contract::*;
use crate::platform::process::inheritance::{scheduling_class, set_scheduling_class};
use crate::platform::sleep::RealTime;
use nix::errno::Errno;

/// The usual priority of cyclictest: below the kernel's own threads at 99, above all others.
pub const PRIORITY: i32 = 80;

/// The real-time class may be entered.
pub const REAL_TIME: Need = Need::new(|_| {
    RealTime::enter(PRIORITY).map(drop).map_err(|e| format!("the real-time class is not allowed here: {e}"))
});

/// The calling thread has the policy `SCHED_BATCH` while this value lives, and so have the tasks that it creates: such a
/// task does not preempt when it becomes ready (sched(7)). So a creator returns before the new task runs, unless a
/// scheduler tick comes between.
pub struct Batch {
    /// Whether the policy was `SCHED_OTHER`. Any other is deliberate and is left unchanged.
    changed: bool,
}

impl Batch {
    /// Sets the policy.
    ///
    /// # Errors
    /// The refusal of `sched_setscheduler`.
    pub fn begin() -> Result<Self> {
        let changed = scheduling_class() == Ok(libc::SCHED_OTHER);
        if changed {
            set_policy(libc::SCHED_BATCH)?;
        }
        Ok(Self { changed })
    }
}

impl Drop for Batch {
    fn drop(&mut self) {
        if self.changed {
            // Changing between these two policies needs no privilege.
            let _ = set_policy(libc::SCHED_OTHER);
        }
    }
}

fn set_policy(policy: i32) -> Result<()> {
    set_scheduling_class(policy, 0).map_err(|errno| Error::from_case_errno("sched_setscheduler", errno))
}

/// `IOPRIO_WHO_PROCESS` of `linux/ioprio.h`: one thread, here with the number 0 the calling one.
const THREAD: libc::c_int = 1;
/// `IOPRIO_CLASS_IDLE`, shifted to the bits of the class: its tasks get the disk when no other task wants it.
const IDLE: libc::c_int = 3 << 13;

/// The calling thread has the priority *idle* at the disk while this value lives. Only some disk schedulers
/// obey it (bfq, mq-deadline); with the others it has no effect.
pub struct IdleAtTheDisk {
    before: libc::c_int,
}

impl IdleAtTheDisk {
    /// Sets the priority.
    ///
    /// # Errors
    /// The refusal of `ioprio_set`.
    pub fn begin() -> Result<Self> {
        let before = read_io_priority();
        set_io_priority(IDLE)?;
        Ok(Self { before })
    }
}

impl Drop for IdleAtTheDisk {
    fn drop(&mut self) {
        // Restoring the priority may need a privilege; without it the thread stays idle for the rest of its life.
        let _ = set_io_priority(self.before);
    }
}

fn read_io_priority() -> libc::c_int {
    // SAFETY: NO-MEMORY.
    let priority = unsafe { libc::syscall(libc::SYS_ioprio_get, THREAD, 0) };
    // 0 is "none", with which every thread begins: the priority then follows the nice value.
    libc::c_int::try_from(priority).unwrap_or(0).max(0)
}

fn set_io_priority(priority: libc::c_int) -> Result<()> {
    // SAFETY: NO-MEMORY.
    let answer = unsafe { libc::syscall(libc::SYS_ioprio_set, THREAD, 0, priority) };
    if answer == 0 { Ok(()) } else { Err(Error::from_case_errno("ioprio_set", Errno::last())) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::platform::testing::print_skipped;

    fn current_policy() -> i32 {
        scheduling_class().expect("answered")
    }

    #[test]
    fn the_policy_is_restored_on_drop() {
        let before = current_policy();
        let batch = Batch::begin().expect("allowed");
        assert!(before != libc::SCHED_OTHER || current_policy() == libc::SCHED_BATCH);
        drop(batch);
        assert_eq!(current_policy(), before);
    }

    #[test]
    fn the_disk_priority_is_idle_and_then_restored() {
        let before = read_io_priority();
        let Ok(idle) = IdleAtTheDisk::begin() else {
            print_skipped("this kernel or sandbox refuses ioprio_set");
            return;
        };
        assert_eq!(read_io_priority(), IDLE);
        drop(idle);
        // Since Linux 5.19 the kernel reports "none" as the class that follows from the nice value.
        assert_eq!(read_io_priority(), before);
    }
}

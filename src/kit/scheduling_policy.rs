//! A scheduling policy for as long as a value lives.

use crate::case::Need;
use crate::error::{Error, Result};
use crate::platform::process::inheritance::{scheduling_class, set_scheduling_class};
use crate::platform::sleep::RealTime;

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

#[cfg(test)]
mod tests {
    use super::*;

    fn now() -> i32 {
        scheduling_class().expect("answered")
    }

    #[test]
    fn it_is_as_before_afterwards() {
        let before = now();
        let batch = Batch::begin().expect("allowed");
        assert!(before != libc::SCHED_OTHER || now() == libc::SCHED_BATCH);
        drop(batch);
        assert_eq!(now(), before);
    }
}

//! A scheduling policy for a while.
//!
//! # Invariants
//!
//! * **OWN-BUFFER**: the kernel reads and writes one structure that lives in the calling function.
#![allow(unsafe_code)]

use crate::{Error, Result};
use nix::errno::Errno;

/// The calling thread is of the policy `SCHED_BATCH` while this value lives, and so are the tasks that it creates:
/// who is of that policy does not come first when it is made ready (sched(7)). So a creator returns before the
/// new task runs, unless a tick comes in between.
pub struct Batch {
    /// Whether it was of the ordinary policy. Another one was chosen by somebody, and is left alone.
    changed: bool,
}

impl Batch {
    /// From here on.
    pub fn begin() -> Result<Self> {
        // SAFETY: OWN-BUFFER: a question about a number.
        let changed = unsafe { libc::sched_getscheduler(0) } == libc::SCHED_OTHER;
        if changed {
            choose(libc::SCHED_BATCH)?;
        }
        Ok(Self { changed })
    }
}

impl Drop for Batch {
    fn drop(&mut self) {
        if self.changed {
            // Between the two ordinary policies everybody may choose.
            let _ = choose(libc::SCHED_OTHER);
        }
    }
}

fn choose(policy: i32) -> Result<()> {
    // SAFETY: OWN-BUFFER: the structure is plain numbers, and an ordinary policy has priority 0.
    let answer = unsafe {
        let parameters: libc::sched_param = std::mem::zeroed();
        libc::sched_setscheduler(0, policy, &raw const parameters)
    };
    if answer == 0 { Ok(()) } else { Err(Error::refused_to_case("sched_setscheduler", Errno::last())) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now() -> i32 {
        // SAFETY: OWN-BUFFER: a question about a number.
        unsafe { libc::sched_getscheduler(0) }
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

//! The priority of a thread at the disk, for as long as a value lives.
//!
//! # Invariants
//!
//! * **NO-MEMORY**: the calls are given numbers and touch no memory of ours.
#![allow(unsafe_code)]

use crate::error::{Error, Result};
use nix::errno::Errno;

/// `IOPRIO_WHO_PROCESS` of `linux/ioprio.h`: one thread, here with the number 0 the calling one.
const THREAD: libc::c_int = 1;
/// `IOPRIO_CLASS_IDLE`, in the place where the class is: its tasks get the disk when no other task wants it.
const IDLE: libc::c_int = 3 << 13;

/// The calling thread has the priority *idle* at the disk while this value lives. Only some schedulers of a disk obey
/// (bfq, mq-deadline); for the others it changes nothing.
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
        // Raising it to what it was may need a privilege; the thread is then idle for the rest of its life.
        let _ = set_io_priority(self.before);
    }
}

fn read_io_priority() -> libc::c_int {
    // SAFETY: NO-MEMORY.
    let priority = unsafe { libc::syscall(libc::SYS_ioprio_get, THREAD, 0) };
    // 0 is "none", which follows the nice value: what every thread begins with.
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

    #[test]
    fn a_thread_is_idle_at_the_disk_and_then_as_before() {
        let before = read_io_priority();
        let Ok(idle) = IdleAtTheDisk::begin() else {
            println!("skipped: this kernel or sandbox refuses ioprio_set");
            return;
        };
        assert_eq!(read_io_priority(), IDLE);
        drop(idle);
        // A kernel from 5.19 tells "none" as the class that follows from the nice value.
        assert_eq!(read_io_priority(), before);
    }
}

//! The scheduling class of the calling thread (sched(7)), by the system calls themselves: musl's functions of these names refuse.
//!
//! # Invariants
//!
//! * **OWN-TASK**: the call concerns the calling thread alone, and reads one integer of ours: the kernel's `struct sched_param`.
#![allow(unsafe_code)]

use nix::errno::Errno;

/// Enters a class at a priority, which is 0 for classes that are not of real time. Allocates nothing.
pub fn set(class: i32, priority: i32) -> nix::Result<()> {
    // SAFETY: OWN-TASK.
    let answer = unsafe { libc::syscall(libc::SYS_sched_setscheduler, 0, class, &raw const priority) };
    Errno::result(answer).map(drop)
}

/// The class, with `SCHED_RESET_ON_FORK` where that was asked for.
pub fn get() -> nix::Result<i32> {
    // SAFETY: OWN-TASK: no memory is passed.
    let answer = unsafe { libc::syscall(libc::SYS_sched_getscheduler, 0) };
    Errno::result(answer).map(|class| class as i32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_that_is_entered_is_the_class_of_this_thread_alone() {
        let lived = std::thread::spawn(|| set(libc::SCHED_BATCH, 0).map(|()| get()));
        assert_eq!(lived.join().unwrap(), Ok(Ok(libc::SCHED_BATCH)));
        assert_ne!(get(), Ok(libc::SCHED_BATCH));
        assert_eq!(set(libc::SCHED_BATCH, 7), Err(Errno::EINVAL));
    }
}

//! futex(2): sleeping until another task changes a 32-bit word in memory.
//!
//! # Invariants
//!
//! * **OWN-WORD**: the kernel reads one word behind a reference that is held for the whole call, and does not write it.
#![allow(unsafe_code)]

use super::arch::syscall6;
use std::sync::atomic::AtomicU32;
use std::time::Duration;

/// Which tasks may sleep on a word or wake its sleepers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// Threads of this process: the kernel needs not look up the mapping.
    Private,
    /// Every process that has the page mapped, and the kernel itself when a thread ends.
    Shared,
}

impl Reach {
    fn operation_flag(self) -> i32 {
        if self == Self::Private { libc::FUTEX_PRIVATE_FLAG } else { 0 }
    }
}

/// Sleeps while the word has this value. 0 after a wake-up, or a negative error number: `-EAGAIN` if the word has
/// another value, `-EINTR` after a signal.
#[inline(always)]
pub fn wait(word: &AtomicU32, value: u32, reach: Reach) -> i64 {
    let operation = (libc::FUTEX_WAIT | reach.operation_flag()) as usize;
    // SAFETY: OWN-WORD.
    unsafe { syscall6(libc::SYS_futex, [word.as_ptr() as usize, operation, value as usize, 0, 0, 0]) }
}

/// Like [`wait`] among threads of this process, at most until an absolute time of the monotonic clock; then
/// `-ETIMEDOUT`.
#[inline(always)]
pub fn wait_until(word: &AtomicU32, value: u32, deadline: Duration) -> i64 {
    let operation = (libc::FUTEX_WAIT_BITSET | libc::FUTEX_PRIVATE_FLAG) as usize;
    let time = libc::timespec {
        tv_sec: deadline.as_secs() as libc::time_t,
        tv_nsec: libc::c_long::from(deadline.subsec_nanos()),
    };
    let any = libc::FUTEX_BITSET_MATCH_ANY as u32 as usize;
    let arguments = [word.as_ptr() as usize, operation, value as usize, &raw const time as usize, 0, any];
    // SAFETY: OWN-WORD; the time outlives the call.
    unsafe { syscall6(libc::SYS_futex, arguments) }
}

/// Wakes at most one sleeper. Returns how many it woke.
#[inline(always)]
pub fn wake(word: &AtomicU32, reach: Reach) -> i64 {
    wake_at_most(word, reach, 1)
}

/// Wakes all that sleep now. Returns how many it woke.
pub fn wake_all(word: &AtomicU32, reach: Reach) -> i64 {
    wake_at_most(word, reach, i32::MAX)
}

#[inline(always)]
fn wake_at_most(word: &AtomicU32, reach: Reach, most: i32) -> i64 {
    let operation = (libc::FUTEX_WAKE | reach.operation_flag()) as usize;
    // SAFETY: OWN-WORD.
    unsafe { syscall6(libc::SYS_futex, [word.as_ptr() as usize, operation, most as usize, 0, 0, 0]) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::Ordering;

    #[test]
    fn a_word_that_has_changed_is_not_slept_on() {
        let word = AtomicU32::new(1);
        for reach in [Reach::Private, Reach::Shared] {
            assert_eq!(wait(&word, 0, reach), -i64::from(libc::EAGAIN));
            assert_eq!(wake(&word, reach), 0);
        }
        assert_eq!(wait_until(&word, 1, Duration::from_nanos(1)), -i64::from(libc::ETIMEDOUT));
    }

    #[test]
    fn a_sleeper_is_woken() {
        let word = AtomicU32::new(0);
        let sleep = || while word.load(Ordering::Acquire) == 0 && wait(&word, 0, Reach::Private) == 0 {};
        std::thread::scope(|scope| {
            scope.spawn(sleep);
            word.store(1, Ordering::Release);
            wake(&word, Reach::Private);
        });
    }
}

//! futex(2): sleeping on a word until somebody says that it has changed.
//!
//! # Invariants
//!
//! * **OWN-WORD**: the kernel reads one word behind a reference that is held for the whole call, and writes none.
#![allow(unsafe_code)]

use super::arch::syscall6;
use std::sync::atomic::AtomicU32;
use std::time::Duration;

/// Who may sleep on a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// Threads of this process: the kernel needs no look at the mapping.
    Private,
    /// Whoever has the page mapped.
    Shared,
}

impl Reach {
    fn flag(self) -> i32 {
        if self == Self::Private { libc::FUTEX_PRIVATE_FLAG } else { 0 }
    }
}

/// Sleeps while the word has this value, unless it has another already.
#[inline(always)]
pub fn wait(word: &AtomicU32, value: u32, reach: Reach) -> i64 {
    let operation = (libc::FUTEX_WAIT | reach.flag()) as usize;
    // SAFETY: OWN-WORD.
    unsafe { syscall6(libc::SYS_futex, [word.as_ptr() as usize, operation, value as usize, 0, 0, 0]) }
}

/// The same until an absolute time of the monotonic clock at the latest; then it answers `-ETIMEDOUT`.
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

/// Wakes at most one sleeper; answers how many there were.
#[inline(always)]
pub fn wake(word: &AtomicU32, reach: Reach) -> i64 {
    let operation = (libc::FUTEX_WAKE | reach.flag()) as usize;
    // SAFETY: OWN-WORD.
    unsafe { syscall6(libc::SYS_futex, [word.as_ptr() as usize, operation, 1, 0, 0, 0]) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_that_has_changed_is_not_slept_on() {
        let word = AtomicU32::new(1);
        for reach in [Reach::Private, Reach::Shared] {
            assert_eq!(wait(&word, 0, reach), -i64::from(libc::EAGAIN));
            assert_eq!(wake(&word, reach), 0);
        }
        assert_eq!(wait_until(&word, 1, Duration::from_nanos(1)), -i64::from(libc::ETIMEDOUT));
    }
}

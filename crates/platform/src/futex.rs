//! futex(2): sleeping until another task changes a 32-bit word in memory.
//!
//! # Invariants
//!
//! * **OWN-WORD**: the kernel reads one word behind a reference that is held for the whole call, and does not write it.
//! * **PI-WORD**: the kernel reads and writes one atomic word behind a reference that is held for the whole call.
#![allow(unsafe_code)]

use super::arch::syscall6;
use super::time::to_timespec;
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

/// Sleeps while the word has this value. Returns 0 after a wake-up, or a negative error number: `-EAGAIN` if the word
/// has another value, `-EINTR` after a signal.
#[inline(always)]
pub fn wait(word: &AtomicU32, value: u32, reach: Reach) -> i64 {
    let operation = (libc::FUTEX_WAIT | reach.operation_flag()) as usize;
    // SAFETY: OWN-WORD.
    unsafe { syscall6(libc::SYS_futex, [word.as_ptr() as usize, operation, value as usize, 0, 0, 0]) }
}

/// Like [`wait`] among threads of this process, at most until an absolute time of the monotonic clock. Then it returns
/// `-ETIMEDOUT`.
#[inline(always)]
pub fn wait_until(word: &AtomicU32, value: u32, deadline: Duration) -> i64 {
    let operation = (libc::FUTEX_WAIT_BITSET | libc::FUTEX_PRIVATE_FLAG) as usize;
    let time = to_timespec(deadline);
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

/// Moves the sleepers of `from` to `to` without waking one, if `from` has this value. Returns how many it moved, or `-EAGAIN` if
/// `from` has another value. It works among threads of this process only.
#[inline(always)]
pub fn requeue_all(from: &AtomicU32, to: &AtomicU32, value: u32) -> i64 {
    let operation = (libc::FUTEX_CMP_REQUEUE | libc::FUTEX_PRIVATE_FLAG) as usize;
    let [from, to] = [from, to].map(|word| word.as_ptr() as usize);
    // SAFETY: OWN-WORD, for both words.
    unsafe { syscall6(libc::SYS_futex, [from, operation, 0, i32::MAX as usize, to, value as usize]) }
}

/// How many threads of this process sleep on the word, or `-EAGAIN` if it has another value than this. The kernel counts the
/// sleepers that it moves to another word; here that word is the same one.
pub fn count_sleepers(word: &AtomicU32, value: u32) -> i64 {
    requeue_all(word, word, value)
}

/// Takes a lock with priority inheritance, between threads: the word is 0 while the lock is free, and holds the number of its
/// owner otherwise. Returns 0, or a negative error number.
#[inline(always)]
pub fn lock_pi(word: &AtomicU32) -> i64 {
    let operation = (libc::FUTEX_LOCK_PI | libc::FUTEX_PRIVATE_FLAG) as usize;
    // SAFETY: PI-WORD; a null address of the time-out means no time-out.
    unsafe { syscall6(libc::SYS_futex, [word.as_ptr() as usize, operation, 0, 0, 0, 0]) }
}

/// Releases a lock of [`lock_pi`] that this thread holds. Returns 0, or a negative error number.
#[inline(always)]
pub fn unlock_pi(word: &AtomicU32) -> i64 {
    let operation = (libc::FUTEX_UNLOCK_PI | libc::FUTEX_PRIVATE_FLAG) as usize;
    // SAFETY: PI-WORD.
    unsafe { syscall6(libc::SYS_futex, [word.as_ptr() as usize, operation, 0, 0, 0, 0]) }
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

    #[test]
    fn sleepers_are_counted_moved_and_woken_where_they_are() {
        let words = [AtomicU32::new(0), AtomicU32::new(0)];
        std::thread::scope(|scope| {
            (0..3).for_each(|_| _ = scope.spawn(|| wait(&words[0], 0, Reach::Private)));
            while count_sleepers(&words[0], 0) != 3 {
                std::thread::yield_now();
            }
            assert_eq!(requeue_all(&words[0], &words[1], 1), -i64::from(libc::EAGAIN));
            assert_eq!(requeue_all(&words[0], &words[1], 0), 3);
            assert_eq!((wake_all(&words[0], Reach::Private), wake_all(&words[1], Reach::Private)), (0, 3));
        });
    }

    #[test]
    fn a_lock_with_inheritance_holds_the_number_of_its_thread() {
        let word = AtomicU32::new(0);
        assert_eq!(lock_pi(&word), 0);
        assert_eq!(word.load(Ordering::SeqCst), nix::unistd::gettid().as_raw() as u32);
        assert_eq!((lock_pi(&word), unlock_pi(&word)), (-i64::from(libc::EDEADLK), 0));
        assert_eq!(word.load(Ordering::SeqCst), 0);
    }
}

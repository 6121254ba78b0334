//! Sleeping on a word until somebody changes it, and waking who sleeps: futex(2).
//!
//! # Invariants
//!
//! * **OWN-WORD**: the kernel compares one word that is borrowed for the call, and writes nothing.
#![allow(unsafe_code)]

use std::ptr::null;
use std::sync::atomic::AtomicU32;

/// Sleeps while the word holds this value, among the threads of one process. Zero after a wake-up, or a negative
/// error number: `EAGAIN` where it holds another value, `EINTR` after a signal.
#[inline(always)]
pub fn wait(word: &AtomicU32, expected: u32) -> i64 {
    sleep(word, libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG, expected)
}

/// The same where the kernel is who wakes: it does not know that the word belongs to one process.
#[inline(always)]
pub fn wait_for_kernel(word: &AtomicU32, expected: u32) -> i64 {
    sleep(word, libc::FUTEX_WAIT, expected)
}

fn sleep(word: &AtomicU32, operation: i32, expected: u32) -> i64 {
    // SAFETY: OWN-WORD. No time-out.
    let answer = unsafe {
        libc::syscall(libc::SYS_futex, word.as_ptr(), operation, expected, null::<libc::timespec>(), 0, 0)
    };
    if answer < 0 { -i64::from(nix::errno::Errno::last_raw()) } else { answer }
}

/// Wakes one thread of this process that sleeps on the word; answers how many there were.
#[inline(always)]
pub fn wake(word: &AtomicU32) -> i64 {
    // SAFETY: OWN-WORD.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG, 1) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::Ordering;

    #[test]
    fn a_word_that_has_changed_lets_nobody_sleep() {
        assert_eq!(wait(&AtomicU32::new(1), 2), -i64::from(libc::EAGAIN));
        assert_eq!(wake(&AtomicU32::new(1)), 0);
    }

    #[test]
    fn who_sleeps_is_woken() {
        let word = AtomicU32::new(0);
        std::thread::scope(|scope| {
            scope.spawn(|| while word.load(Ordering::Acquire) == 0 && wait(&word, 0) == 0 {});
            word.store(1, Ordering::Release);
            wake(&word);
        });
    }
}

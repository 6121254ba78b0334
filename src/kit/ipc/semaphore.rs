//! System V semaphores. A set has no owner but its number: one whose process was killed stays behind, so the
//! number carries the process, and who makes a set removes those of the dead.
//!
//! # Invariants
//!
//! * **OWN-SET**: the set was made by this process, or by one of this crate's that is no more.
//! * **OWN-BUFFER**: the call reads one structure of ours.
#![allow(unsafe_code)]

use super::{Both, Line};
use crate::platform::arch::syscall4;
use crate::{Error, Result};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// The highest byte of our keys: above the process, which has 22 bits, and two of a running number.
const MARK: u32 = 0x5c;
const PID_BITS: u32 = 22;

/// One semaphore of a set.
pub struct Semaphore {
    set: Arc<Set>,
    index: u16,
}

/// A set of two, removed when nobody uses it any more.
struct Set(i32);

static MADE: AtomicU32 = AtomicU32::new(0);

impl Semaphore {
    /// A set with one for each direction.
    pub fn both(_: &Path) -> Both<Self> {
        sweep_up();
        let set = Arc::new(Set::new()?);
        Ok([0, 1].map(|index| Self { set: Arc::clone(&set), index }))
    }

    #[inline(always)]
    fn by(&self, amount: i16) -> i64 {
        let operation = libc::sembuf { sem_num: self.index, sem_op: amount, sem_flg: 0 };
        // SAFETY: OWN-SET, OWN-BUFFER.
        unsafe { syscall4(libc::SYS_semop, self.set.0 as usize, &raw const operation as usize, 1, 0) }
    }
}

impl Line for Semaphore {
    #[inline(always)]
    fn send(&self) -> i64 {
        self.by(1)
    }

    #[inline(always)]
    fn receive(&self) -> i64 {
        self.by(-1)
    }
}

impl Set {
    fn new() -> Result<Self> {
        let mut answer = -1;
        // Four running numbers: as many sets can one process have at once, and a case has two.
        for _ in 0..4 {
            let number = MADE.fetch_add(1, Ordering::Relaxed) & 3;
            let key = MARK << 24 | number << PID_BITS | std::process::id() & ((1 << PID_BITS) - 1);
            let flags = libc::IPC_CREAT | libc::IPC_EXCL | 0o600;
            // SAFETY: `semget` has no precondition.
            answer = unsafe { libc::semget(key as libc::key_t, 2, flags) };
            if answer >= 0 || nix::errno::Errno::last() != nix::errno::Errno::EEXIST {
                break;
            }
        }
        if answer < 0 {
            return Err(Error::last_os("semget (/proc/sys/kernel/sem)"));
        }
        Ok(Self(answer))
    }
}

impl Drop for Set {
    fn drop(&mut self) {
        remove(self.0);
    }
}

fn remove(set: i32) {
    // SAFETY: OWN-SET. One that has gone already answers an error, which is nobody's concern.
    unsafe { libc::semctl(set, 0, libc::IPC_RMID) };
}

/// Removes the sets of processes that are no more.
fn sweep_up() {
    let sets = std::fs::read_to_string("/proc/sysvipc/sem").unwrap_or_default();
    let alive = |pid: u32| Path::new(&format!("/proc/{pid}")).exists();
    orphans(&sets, alive).into_iter().for_each(remove);
}

/// The sets in this listing that carry our mark and a process that is not alive.
fn orphans(listing: &str, alive: impl Fn(u32) -> bool) -> Vec<i32> {
    let sets = listing.lines().skip(1).filter_map(|line| {
        let mut fields = line.split_ascii_whitespace();
        let (key, set) = (fields.next()?.parse::<i32>().ok()? as u32, fields.next()?.parse().ok()?);
        let orphan = key >> 24 == MARK && !alive(key & ((1 << PID_BITS) - 1));
        orphan.then_some(set)
    });
    sets.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_sets_of_ours_without_a_process_are_removed() {
        let key = |mark: u32, pid: u32| (mark << 24 | 1 << PID_BITS | pid) as i32;
        let listing = format!(
            "       key      semid perms      nsems\n{} 3 600 2\n{} 4 600 2\n{} 5 600 2\n",
            key(MARK, 17),
            key(MARK, 18),
            key(0x11, 18)
        );
        assert_eq!(orphans(&listing, |pid| pid == 17), [4]);
    }

    #[test]
    fn a_set_is_gone_with_its_last_semaphore() {
        let both = Semaphore::both(Path::new("/")).expect("made");
        let set = both[0].set.0;
        assert_eq!((both[0].send(), both[0].receive()), (0, 0));
        drop(both);
        assert!(Semaphore { set: Arc::new(Set(set)), index: 0 }.send() < 0);
    }
}

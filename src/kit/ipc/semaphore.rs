//! System V semaphores. A set outlives a process that is killed. Its key therefore holds the process id, and making a
//! set first removes the sets of processes that have ended.
//!
//! # Invariants
//!
//! * **OWN-SET**: the set was made by this process, or by another process of this crate that has ended.
//! * **OWN-BUFFER**: the call reads one local structure.
#![allow(unsafe_code)]

use super::{Channel, ChannelPair};
use crate::error::{Error, Result};
use crate::platform::arch::syscall4;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// The highest byte of a key. Below it are two bits of a serial number and the process id, of 22 bits.
const MARK: u32 = 0x5c;
const PID_BITS: u32 = 22;

/// One semaphore of a set.
pub struct Semaphore {
    set: Arc<Set>,
    index: u16,
}

/// A set of two semaphores, removed with its last user.
struct Set(i32);

static MADE: AtomicU32 = AtomicU32::new(0);

impl Semaphore {
    /// A set with one semaphore for each direction.
    ///
    /// # Errors
    /// The kernel refuses it: /proc/sys/kernel/sem.
    pub fn pair(_: &Path) -> ChannelPair<Self> {
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

impl Channel for Semaphore {
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
        // Four serial numbers: a process can have four sets at once, and a case has two.
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
    // SAFETY: OWN-SET. The error for a set that is already gone does not matter.
    unsafe { libc::semctl(set, 0, libc::IPC_RMID) };
}

/// Removes the sets of processes that have ended.
fn sweep_up() {
    let sets = std::fs::read_to_string("/proc/sysvipc/sem").unwrap_or_default();
    let alive = |pid: u32| Path::new(&format!("/proc/{pid}")).exists();
    orphans(&sets, alive).into_iter().for_each(remove);
}

/// The sets in this listing (/proc/sysvipc/sem) with our mark and the id of a process that is not alive.
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
    fn only_own_sets_without_a_process_are_removed() {
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
        let pair = Semaphore::pair(Path::new("/")).expect("made");
        let set = pair[0].set.0;
        assert_eq!((pair[0].send(), pair[0].receive()), (0, 0));
        drop(pair);
        assert!(Semaphore { set: Arc::new(Set(set)), index: 0 }.send() < 0);
    }
}

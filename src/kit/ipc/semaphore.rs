//! Semaphores: those of System V, and POSIX ones of the C library between threads, which enter the kernel only where a thread
//! waits.
//!
//! A System V set outlives a process that is killed. The kernel records which process changed a set last.
//! Before a set is made, the sets of this crate whose process has ended are removed. Containers may share the sets but not
//! the process ids: the key is therefore random, and a set whose process is not visible here is left.
//!
//! # Invariants
//!
//! * **OWN-SET**: the set was made by this process, or by another process of this crate that has ended.
//! * **OWN-BUFFER**: the call reads one local structure.
//! * **PLACED**: the semaphore was initialised at an address that does not change until it is destroyed.
#![allow(unsafe_code)]

use super::{Channel, ChannelPair};
use crate::error::{Error, Result, ensure};
#[cfg(not(any(target_arch = "powerpc64", target_arch = "s390x")))]
use crate::platform::arch::syscall4;
#[cfg(any(target_arch = "powerpc64", target_arch = "s390x"))]
use crate::platform::arch::syscall6;
use crate::platform::plain_file::random_bits;
use nix::errno::Errno;
use std::cell::UnsafeCell;
use std::path::Path;
use std::sync::Arc;

/// The highest byte of a key, which marks the sets of this crate. The bits below it are random.
const MARK: u32 = 0x5c;
const RANDOM_BITS: u32 = 24;
/// Keys that are tried. Few are needed: even a thousand sets use only a thousand of 16 million keys.
const TRIES: u32 = 8;

/// One semaphore of a set.
pub struct Semaphore {
    set: Arc<Set>,
    index: u16,
}

/// The id of a set of two semaphores, which is removed with its last user.
struct Set(i32);

impl Semaphore {
    /// A set with one semaphore for each direction.
    ///
    /// # Errors
    /// The kernel refuses it: /proc/sys/kernel/sem.
    pub fn pair(_: &Path) -> ChannelPair<Self> {
        remove_orphan_sets();
        let set = Arc::new(Set::new()?);
        Ok([0, 1].map(|index| Self { set: Arc::clone(&set), index }))
    }

    /// semop(2): adds `amount` to the semaphore, and waits while the result would be negative.
    #[inline(always)]
    fn change_by(&self, amount: i16) -> i64 {
        let operation = libc::sembuf { sem_num: self.index, sem_op: amount, sem_flg: 0 };
        let [set, operation] = [self.set.0 as usize, &raw const operation as usize];
        #[cfg(not(any(target_arch = "powerpc64", target_arch = "s390x")))]
        // SAFETY: OWN-SET, OWN-BUFFER.
        return unsafe { syscall4(libc::SYS_semop, set, operation, 1, 0) };
        // On these two architectures semop is a call of ipc(2), with this number (linux/ipc.h).
        #[cfg(any(target_arch = "powerpc64", target_arch = "s390x"))]
        {
            const SEMOP: usize = 1;
            // SAFETY: OWN-SET, OWN-BUFFER.
            unsafe { syscall6(libc::SYS_ipc, [SEMOP, set, 1, 0, operation, 0]) }
        }
    }
}

impl Channel for Semaphore {
    #[inline(always)]
    fn send(&self) -> i64 {
        self.change_by(1)
    }

    #[inline(always)]
    fn receive(&self) -> i64 {
        self.change_by(-1)
    }
}

impl Set {
    /// Makes a set of two semaphores with a random key.
    fn new() -> Result<Self> {
        let mut answer = -1;
        for _ in 0..TRIES {
            let key = MARK << RANDOM_BITS | random_bits() as u32 & ((1 << RANDOM_BITS) - 1);
            let flags = libc::IPC_CREAT | libc::IPC_EXCL | 0o600;
            // SAFETY: `semget` has no precondition.
            answer = unsafe { libc::semget(key as libc::key_t, 2, flags) };
            if answer >= 0 || nix::errno::Errno::last() != nix::errno::Errno::EEXIST {
                break;
            }
        }
        ensure(answer >= 0, || Error::from_last_errno("semget (/proc/sys/kernel/sem)"))?;
        // Until a set is changed once, the kernel records no process for it.
        // SAFETY: OWN-SET. The value is passed in a register, as `union semun` is.
        unsafe { libc::semctl(answer, 0, libc::SETVAL, 0) };
        Ok(Self(answer))
    }
}

impl Drop for Set {
    fn drop(&mut self) {
        remove_set(self.0);
    }
}

fn remove_set(set: i32) {
    // SAFETY: OWN-SET. The error for a set that is already gone does not matter.
    unsafe { libc::semctl(set, 0, libc::IPC_RMID) };
}

/// Removes the sets of processes that have ended.
fn remove_orphan_sets() {
    let listing = std::fs::read_to_string("/proc/sysvipc/sem").unwrap_or_default();
    let is_alive = |pid: u32| Path::new(&format!("/proc/{pid}")).exists();
    let orphans = marked_sets(&listing)
        .into_iter()
        .filter(|set| last_changing_process(*set).is_some_and(|pid| !is_alive(pid)));
    orphans.for_each(remove_set);
}

/// The id of the process that changed this set last; `None` if no process has, or if it is not visible here.
fn last_changing_process(set: i32) -> Option<u32> {
    // SAFETY: `semctl` with `GETPID` changes nothing.
    let pid = unsafe { libc::semctl(set, 0, libc::GETPID) };
    u32::try_from(pid).ok().filter(|&pid| pid > 0)
}

/// The ids of the sets in this listing (/proc/sysvipc/sem) whose key has [`MARK`].
fn marked_sets(listing: &str) -> Vec<i32> {
    let sets = listing.lines().skip(1).filter_map(|line| {
        let mut fields = line.split_ascii_whitespace();
        let (key, set) = (fields.next()?.parse::<i32>().ok()? as u32, fields.next()?.parse().ok()?);
        (key >> RANDOM_BITS == MARK).then_some(set)
    });
    sets.collect()
}

/// A POSIX semaphore: sem_post(3) and sem_wait(3).
pub struct PosixSemaphore(Box<UnsafeCell<libc::sem_t>>);

// SAFETY: PLACED: a semaphore may be used by several threads.
unsafe impl Send for PosixSemaphore {}
// SAFETY: PLACED: likewise.
unsafe impl Sync for PosixSemaphore {}

impl PosixSemaphore {
    /// A semaphore of this value.
    ///
    /// # Errors
    /// The refusal of `sem_init`.
    pub fn new(value: u32) -> Result<Self> {
        // SAFETY: PLACED: plain bytes, for which zero is valid; `sem_init` follows.
        let semaphore = Self(Box::new(UnsafeCell::new(unsafe { std::mem::zeroed() })));
        // SAFETY: PLACED.
        let refused = unsafe { libc::sem_init(semaphore.0.get(), 0, value) };
        ensure(refused == 0, || Error::from_last_errno("sem_init")).map(|()| semaphore)
    }

    /// A semaphore of value 0 for each direction.
    ///
    /// # Errors
    /// The errors of [`PosixSemaphore::new`].
    pub fn pair(_: &Path) -> ChannelPair<Self> {
        Ok([Self::new(0)?, Self::new(0)?])
    }
}

impl Channel for PosixSemaphore {
    #[inline(always)]
    fn send(&self) -> i64 {
        // SAFETY: PLACED.
        kernel_answer(unsafe { libc::sem_post(self.0.get()) })
    }

    #[inline(always)]
    fn receive(&self) -> i64 {
        // SAFETY: PLACED.
        kernel_answer(unsafe { libc::sem_wait(self.0.get()) })
    }
}

/// Converts the library's result to the form of the kernel's: 0 or a negative error number.
#[inline(always)]
fn kernel_answer(answer: i32) -> i64 {
    if answer == 0 { 0 } else { -i64::from(Errno::last_raw()) }
}

impl Drop for PosixSemaphore {
    fn drop(&mut self) {
        // SAFETY: PLACED.
        unsafe { libc::sem_destroy(self.0.get()) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::platform::child::Child;
    use crate::platform::shared::Words;
    use std::sync::atomic::Ordering;
    use std::time::Duration;

    #[test]
    fn only_sets_with_the_mark_are_found() {
        let listing = format!(
            "       key      semid perms      nsems\n{} 3 600 2\n{} 4 600 2\n",
            (MARK << RANDOM_BITS | 17) as i32,
            (0x11u32 << RANDOM_BITS | 18) as i32
        );
        assert_eq!(marked_sets(&listing), [3]);
    }

    #[test]
    fn a_set_is_removed_only_after_its_process_has_ended() {
        let own = Set::new().expect("made");
        assert_eq!(last_changing_process(own.0), Some(std::process::id()));
        let left = Words::new().expect("a page");
        let child = Child::start(|| {
            let made = Set::new().map_or(0, |set| 1 + std::mem::ManuallyDrop::new(set).0);
            left[0].value.store(made as u32, Ordering::Relaxed);
        });
        child.expect("forked").wait_for_success(Duration::from_secs(10)).expect("ended");
        let left = left[0].value.load(Ordering::Relaxed) as i32 - 1;
        assert!(left >= 0 && last_changing_process(left).is_some());
        remove_orphan_sets();
        assert_eq!(
            (last_changing_process(left), last_changing_process(own.0)),
            (None, Some(std::process::id()))
        );
    }

    #[test]
    fn dropping_the_last_semaphore_removes_the_set() {
        let pair = Semaphore::pair(Path::new("/")).expect("made");
        let set = pair[0].set.0;
        assert_eq!((pair[0].send(), pair[0].receive()), (0, 0));
        drop(pair);
        assert!(Semaphore { set: Arc::new(Set(set)), index: 0 }.send() < 0);
    }
}

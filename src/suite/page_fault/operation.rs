//! Faults that a thread of ours resolves (`userfaultfd`): whoever touches a missing page of a region sleeps until it
//! has been put there.
//!
//! # Invariants
//!
//! * **OWN-RANGE**: the addresses that are registered and filled are those of a region that this value holds, and the
//!   structures that are handed over are ours, of the layout of linux/userfaultfd.h.
//! * **MESSAGE**: the kernel writes whole messages of 32 bytes, of which every bit pattern is a value.
#![allow(unsafe_code)]

use crate::platform::region::{PAGE, Region};
use crate::platform::resident::Pages;
use crate::{Error, Result};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::SeqCst};

/// How a missing page is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Filling {
    /// A page of ours is copied (`UFFDIO_COPY`).
    Copy,
    /// The kernel's page of zeroes is mapped (`UFFDIO_ZEROPAGE`).
    Zero,
}

/// A region of which somebody must fill every page that is touched.
pub struct Userfault {
    region: Region,
    source: Region,
    descriptor: OwnedFd,
    /// Read end and write end: written to, it lets the filling thread see that it is to end.
    nudge: (OwnedFd, OwnedFd),
    filled: AtomicU64,
    refused: AtomicI64,
}

// Of linux/userfaultfd.h.
const API: u64 = 0xAA;
const USER_MODE_ONLY: libc::c_int = 1;
const MODE_MISSING: u64 = 1;
const EVENT_PAGEFAULT: u8 = 0x12;
/// Where in a message the address stands.
const ADDRESS: usize = 16;

/// The number of a request that reads and writes so many bytes, or that reads them only.
const fn request(number: u64, bytes: usize, writes: bool) -> u64 {
    (if writes { 3 << 30 } else { 2 << 30 }) | ((bytes as u64) << 16) | (API << 8) | number
}

impl Userfault {
    /// A region of so many bytes, none of its pages there.
    ///
    /// # Errors
    /// [`Error::Forbidden`] where the call is, [`Error::Missing`] where there is no room.
    pub fn new(bytes: usize) -> Result<Self> {
        let flags = USER_MODE_ONLY | libc::O_CLOEXEC | libc::O_NONBLOCK;
        // SAFETY: the call takes flags and answers a descriptor that is nobody else's.
        let descriptor = unsafe {
            match libc::syscall(libc::SYS_userfaultfd, flags) {
                -1 => return Err(Error::refused_to_case("userfaultfd", Errno::last())),
                number => OwnedFd::from_raw_fd(number as i32),
            }
        };
        let (region, source) =
            (Region::anonymous(bytes, Pages::Base)?, Region::anonymous(PAGE, Pages::Base)?);
        source.write(0..1, 1);
        let nudge = nix::unistd::pipe().map_err(|errno| Error::refused("pipe", errno))?;
        let (filled, refused) = (AtomicU64::new(0), AtomicI64::new(0));
        let made = Self { region, source, descriptor, nudge, filled, refused };
        made.ask(0x3F, &mut [API, 0, 0], true, "UFFDIO_API")?;
        made.ask(0x00, &mut [made.start(), bytes as u64, MODE_MISSING, 0], true, "UFFDIO_REGISTER")?;
        Ok(made)
    }

    /// The region.
    pub fn region(&self) -> &Region {
        &self.region
    }

    /// Pages that were filled so far.
    pub fn filled(&self) -> u64 {
        self.filled.load(SeqCst)
    }

    /// The error number with which a filling was refused, if one was: since then nobody fills any more.
    pub fn refused(&self) -> Option<Errno> {
        Some(self.refused.load(SeqCst)).filter(|errno| *errno != 0).map(|errno| Errno::from_raw(errno as i32))
    }

    fn start(&self) -> u64 {
        self.region.address() as u64
    }

    /// Waits for a touch and fills its page. Answers 0, or a negative error number after which nobody waits: the
    /// kernel then fills the pages as if nothing had been registered.
    pub fn fill_next(&self, filling: Filling) -> i64 {
        match self.next_address().and_then(|address| address.map_or(Ok(()), |at| self.fill(at, filling))) {
            Ok(()) => 0,
            Err(errno) => self.give_up(errno),
        }
    }

    fn give_up(&self, errno: Errno) -> i64 {
        self.refused.store(errno as i64, SeqCst);
        let _ = self.request(0x01, &mut [self.start(), (self.region.pages() * PAGE) as u64], false);
        -(errno as i64)
    }

    /// The address that somebody waits for. `None` if it was told to look up.
    fn next_address(&self) -> std::result::Result<Option<u64>, Errno> {
        let mut waits =
            [&self.descriptor, &self.nudge.0].map(|fd| PollFd::new(fd.as_fd(), PollFlags::POLLIN));
        match poll(&mut waits, PollTimeout::NONE) {
            Err(Errno::EINTR) => return Ok(None),
            Err(errno) => return Err(errno),
            Ok(_) => {}
        }
        let mut message = [0u8; 32];
        // SAFETY: MESSAGE.
        let read =
            unsafe { libc::read(self.descriptor.as_raw_fd(), message.as_mut_ptr().cast(), message.len()) };
        match (read, message[0]) {
            (32, EVENT_PAGEFAULT) => {
                let address: [u8; 8] = std::array::from_fn(|i| message[ADDRESS + i]);
                Ok(Some(u64::from_ne_bytes(address)))
            }
            (-1, _) if Errno::last() != Errno::EAGAIN => Err(Errno::last()),
            _ => Ok(None),
        }
    }

    fn fill(&self, address: u64, filling: Filling) -> std::result::Result<(), Errno> {
        // Counted before: who waits goes on as soon as the page is there.
        self.filled.fetch_add(1, SeqCst);
        let (page, bytes) = (address / PAGE as u64 * PAGE as u64, PAGE as u64);
        let answer = match filling {
            Filling::Copy => self.request(0x03, &mut [page, self.source.address() as u64, bytes, 0, 0], true),
            Filling::Zero => self.request(0x04, &mut [page, bytes, 0, 0], true),
        };
        answer.inspect_err(|_| _ = self.filled.fetch_sub(1, SeqCst))
    }

    fn ask(&self, number: u64, words: &mut [u64], writes: bool, name: &str) -> Result<()> {
        self.request(number, words, writes).map_err(|errno| Error::refused_to_case(name, errno))
    }

    fn request(&self, number: u64, words: &mut [u64], writes: bool) -> std::result::Result<(), Errno> {
        let request = request(number, size_of_val(words), writes);
        // SAFETY: OWN-RANGE.
        let answer = unsafe { libc::ioctl(self.descriptor.as_raw_fd(), request as _, words.as_mut_ptr()) };
        if answer == 0 { Ok(()) } else { Err(Errno::last()) }
    }

    /// Lets a thread that waits for a touch look up.
    pub fn nudge(&self) {
        let _ = nix::unistd::write(&self.nudge.1, &[0]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn a_touched_page_is_filled_by_who_was_asked_to() {
        for (filling, byte) in [(Filling::Copy, 1), (Filling::Zero, 0)] {
            let shared = match Userfault::new(8 * PAGE) {
                Err(Error::Forbidden { .. }) => return, // a sandbox
                made => Arc::new(made.expect("made")),
            };
            let theirs = Arc::clone(&shared);
            let filler = std::thread::spawn(move || (0..3).map(|_| theirs.fill_next(filling)).min());
            for page in [0, 7, 3] {
                assert_eq!(shared.region().byte(page), byte);
            }
            assert_eq!((filler.join().expect("joined"), shared.filled()), (Some(0), 3));
        }
    }

    #[test]
    fn who_is_nudged_looks_up() {
        let Ok(fault) = Userfault::new(PAGE) else { return };
        fault.nudge();
        assert_eq!((fault.fill_next(Filling::Copy), fault.filled()), (0, 0));
    }

    #[test]
    fn when_nobody_fills_any_more_nobody_waits() {
        let Ok(fault) = Userfault::new(2 * PAGE) else { return };
        let fault = Arc::new(fault);
        let theirs = Arc::clone(&fault);
        let toucher = std::thread::spawn(move || theirs.region().byte(1));
        while fault.next_address() != Ok(Some(fault.start() + PAGE as u64)) {}
        assert_eq!(fault.give_up(Errno::EIO), -(Errno::EIO as i64));
        assert_eq!((toucher.join().expect("joined"), fault.refused()), (0, Some(Errno::EIO)));
    }
}

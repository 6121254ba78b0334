//! Faults that a thread of this process resolves (`userfaultfd`): a thread that touches a missing page of a region
//! sleeps until another thread has filled the page.
//!
//! # Invariants
//!
//! * **OWN-RANGE**: the registered and filled addresses are those of a region that this value owns, and the
//!   structures that the kernel reads and writes are local, in the layout of linux/userfaultfd.h.
//! * **MESSAGE**: the kernel writes whole messages of 32 bytes, and every bit pattern is a value.
#![allow(unsafe_code)]

use super::touch::{Expected, Touches};
use super::with_fault_claims;
use crate::kit::contract::*;
use crate::kit::placement::Placement;
use crate::platform::partner::{Class, Kind, Partner};
use crate::platform::region::{PAGE, Region};
use crate::platform::resident::Pages;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use std::hint::black_box;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::atomic::{AtomicI64, AtomicU64};

/// How a missing page is filled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Filling {
    /// Copies a page (`UFFDIO_COPY`).
    Copy,
    /// Maps the kernel's page of zeroes (`UFFDIO_ZEROPAGE`).
    Zero,
}

/// A region whose missing pages another thread must fill when they are touched.
pub struct Userfault {
    region: Region,
    source: Region,
    descriptor: OwnedFd,
    /// A pipe, read end and write end. A byte in it wakes the filling thread and makes it end.
    nudge: (OwnedFd, OwnedFd),
    filled: AtomicU64,
    refused: AtomicI64,
}

// Constants of linux/userfaultfd.h.
const API: u64 = 0xAA;
const USER_MODE_ONLY: libc::c_int = 1;
const MODE_MISSING: u64 = 1;
const EVENT_PAGEFAULT: u8 = 0x12;
/// The offset of the address in a message, bytes.
const ADDRESS: usize = 16;

/// The number of an ioctl whose structure has this many bytes; `writes` if the kernel also writes to it.
const fn ioctl_number(number: u64, bytes: usize, writes: bool) -> u64 {
    (if writes { 3 << 30 } else { 2 << 30 }) | ((bytes as u64) << 16) | (API << 8) | number
}

impl Userfault {
    /// A region of which all pages are missing.
    ///
    /// # Errors
    /// [`Error::Forbidden`] if the call is forbidden, [`Error::Missing`] if there is no memory.
    pub fn new(bytes: usize) -> Result<Self> {
        let flags = USER_MODE_ONLY | libc::O_CLOEXEC | libc::O_NONBLOCK;
        // SAFETY: the call takes flags and returns a new descriptor.
        let descriptor = unsafe {
            match libc::syscall(libc::SYS_userfaultfd, flags) {
                -1 => return Err(Error::from_case_errno("userfaultfd", Errno::last())),
                number => OwnedFd::from_raw_fd(number as i32),
            }
        };
        let (region, source) =
            (Region::map_anonymous(bytes, Pages::Base)?, Region::map_anonymous(PAGE, Pages::Base)?);
        source.write(0..1, 1);
        let nudge = nix::unistd::pipe().map_err(|errno| Error::from_errno("pipe", errno))?;
        let (filled, refused) = (AtomicU64::new(0), AtomicI64::new(0));
        let made = Self { region, source, descriptor, nudge, filled, refused };
        made.ioctl_or_error(0x3F, &mut [API, 0, 0], true, "UFFDIO_API")?;
        let range = &mut [made.start_address(), bytes as u64, MODE_MISSING, 0];
        made.ioctl_or_error(0x00, range, true, "UFFDIO_REGISTER")?;
        Ok(made)
    }

    pub fn region(&self) -> &Region {
        &self.region
    }

    /// The number of pages filled until now.
    pub fn filled_pages(&self) -> u64 {
        self.filled.load(SeqCst)
    }

    /// The error number of a request that the kernel refused, if any. Since the refusal the kernel fills missing pages itself.
    pub fn refused_errno(&self) -> Option<Errno> {
        Some(self.refused.load(SeqCst)).filter(|errno| *errno != 0).map(|errno| Errno::from_raw(errno as i32))
    }

    fn start_address(&self) -> u64 {
        self.region.start_address() as u64
    }

    /// Waits for a touch and fills its page. Returns 0, or a negative error number. After an error the region is unregistered,
    /// and the kernel fills its pages as in any other memory.
    pub fn fill_next_page(&self, filling: Filling) -> i64 {
        match self
            .wait_for_touch()
            .and_then(|address| address.map_or(Ok(()), |at| self.fill_page(at, filling)))
        {
            Ok(()) => 0,
            Err(errno) => self.unregister_region(errno),
        }
    }

    fn unregister_region(&self, errno: Errno) -> i64 {
        self.refused.store(errno as i64, SeqCst);
        let bytes = (self.region.page_count() * PAGE) as u64;
        let _ = self.send_ioctl(0x01, &mut [self.start_address(), bytes], false);
        -(errno as i64)
    }

    /// Waits for a touch and returns its address; `None` after [`Userfault::nudge`].
    fn wait_for_touch(&self) -> std::result::Result<Option<u64>, Errno> {
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

    fn fill_page(&self, address: u64, filling: Filling) -> std::result::Result<(), Errno> {
        // Counted first: the touching thread continues as soon as the page is there.
        self.filled.fetch_add(1, SeqCst);
        let (page, bytes) = (address / PAGE as u64 * PAGE as u64, PAGE as u64);
        let answer = match filling {
            Filling::Copy => {
                self.send_ioctl(0x03, &mut [page, self.source.start_address() as u64, bytes, 0, 0], true)
            }
            Filling::Zero => self.send_ioctl(0x04, &mut [page, bytes, 0, 0], true),
        };
        answer.inspect_err(|_| _ = self.filled.fetch_sub(1, SeqCst))
    }

    fn ioctl_or_error(&self, number: u64, words: &mut [u64], writes: bool, name: &str) -> Result<()> {
        self.send_ioctl(number, words, writes).map_err(|errno| Error::from_case_errno(name, errno))
    }

    fn send_ioctl(&self, number: u64, words: &mut [u64], writes: bool) -> std::result::Result<(), Errno> {
        let request = ioctl_number(number, size_of_val(words), writes);
        // SAFETY: OWN-RANGE.
        let answer = unsafe { libc::ioctl(self.descriptor.as_raw_fd(), request as _, words.as_mut_ptr()) };
        if answer == 0 { Ok(()) } else { Err(Errno::last()) }
    }

    /// Wakes the filling thread from its wait for a touch.
    pub fn wake_filler(&self) {
        let _ = nix::unistd::write(&self.nudge.1, &[0]);
    }
}

/// The number of pages that are prepared at once.
const PAGES: usize = 256;

pub(super) fn cases() -> Vec<Case> {
    let why = "an exception, two sleeps and wake-ups, three calls of the handler, a page made";
    let rows = [("copy", "UFFDIO_COPY", Filling::Copy), ("zero-page", "UFFDIO_ZEROPAGE", Filling::Zero)];
    let case = |(name, call, filling): (&str, &str, Filling)| {
        let title = format!("a page that a thread fills by {call} when it is touched");
        let set_up = set_up(move |place| start_delegated(place, filling));
        let case = Case::new(format!("userfaultfd/{name}"), title, set_up).need(FOUR_KIB).need(PINNED);
        with_fault_claims(case, Expected::OneEachOfAnyKind)
            .claim(Claim::Checked("the handler filled one page a touch"))
            .claim(Claim::Linear)
            .derived_figure("byte", Rule::OfCost(1.0 / PAGE as f64))
            .predict(6_000.0, 9_000.0, why)
    };
    rows.map(case).into()
}

/// The subject: the touches, the thread that resolves their faults, and the region.
struct Delegated<S> {
    touches: S,
    partner: Partner,
    shared: Arc<Userfault>,
}

fn start_delegated(place: &Place, filling: Filling) -> Result<impl Subject + use<>> {
    let shared = Arc::new(Userfault::new(PAGES * PAGE)?);
    let [theirs, nudged, unmapped, touched] = std::array::from_fn(|_| Arc::clone(&shared));
    let at = (Placement::Same.partner_cpu(place)?, Class::Ordinary);
    let step = move || theirs.fill_next_page(filling);
    let partner = Partner::start(Kind::Thread, at, step, move || nudged.wake_filler())?;
    let prepare = move |pages: usize| unmapped.region().discard(0..pages);
    let touch = move |pages: usize| _ = black_box(touched.region().read(0..pages, 1));
    let touches = Touches::new(PAGES, Expected::OneEachOfAnyKind, prepare, touch);
    Ok(Delegated { touches, partner, shared })
}

impl<S: Subject> Subject for Delegated<S> {
    fn run(&mut self, iterations: u64, clock: &Clock) -> Result<Ticks> {
        let before = self.shared.filled_pages();
        let ticks = self.touches.run(iterations, clock);
        if let Some(errno) = self.shared.refused_errno() {
            return Err(Error::from_case_errno("filling a page that was touched", errno));
        }
        check_filled(self.shared.filled_pages() - before, iterations)?;
        ticks
    }

    fn report(&self) -> Report {
        Report { partners: vec![self.partner.task()], ..self.touches.report() }
    }
}

fn check_filled(pages: u64, touches: u64) -> Result<()> {
    if pages == touches {
        return Ok(());
    }
    Err(Error::Disproved(format!("the handler filled {pages} pages where {touches} were touched")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::platform::testing::value_or_skip;
    use std::sync::Arc;

    #[test]
    fn a_touched_page_is_filled_as_requested() {
        for (filling, byte) in [(Filling::Copy, 1), (Filling::Zero, 0)] {
            let Some(shared) = value_or_skip(Userfault::new(8 * PAGE)).map(Arc::new) else { return };
            let theirs = Arc::clone(&shared);
            let filler = std::thread::spawn(move || (0..3).map(|_| theirs.fill_next_page(filling)).min());
            for page in [0, 7, 3] {
                assert_eq!(shared.region().read_first_byte(page), byte);
            }
            assert_eq!((filler.join().expect("joined"), shared.filled_pages()), (Some(0), 3));
        }
    }

    #[test]
    fn a_nudge_ends_the_wait() {
        let Some(fault) = value_or_skip(Userfault::new(PAGE)) else { return };
        fault.wake_filler();
        assert_eq!((fault.fill_next_page(Filling::Copy), fault.filled_pages()), (0, 0));
    }

    #[test]
    fn after_a_refusal_no_touch_waits() {
        let Some(fault) = value_or_skip(Userfault::new(2 * PAGE)).map(Arc::new) else { return };
        let theirs = Arc::clone(&fault);
        let toucher = std::thread::spawn(move || theirs.region().read_first_byte(1));
        while fault.wait_for_touch() != Ok(Some(fault.start_address() + PAGE as u64)) {}
        assert_eq!(fault.unregister_region(Errno::EIO), -(Errno::EIO as i64));
        assert_eq!((toucher.join().expect("joined"), fault.refused_errno()), (0, Some(Errno::EIO)));
    }

    #[test]
    fn a_page_that_was_not_filled_is_noticed() {
        assert!(
            check_filled(64, 64).is_ok() && check_filled(63, 64).is_err() && check_filled(65, 64).is_err()
        );
    }
}

//! Page faults of this thread, as the kernel counts them.
//!
//! The kernel counts a fault as major if it had to be retried. A read from a device causes a retry; so does waiting
//! for a lock of the address space, and a fault that `userfaultfd` passes to another thread. A major fault is
//! therefore no proof that a device was read.

use super::evidence::WithEvidence;
use crate::kit::contract::*;
use crate::platform::region::{PAGE, Region};
use crate::platform::resident::Pages;
use crate::platform::{proc, process};
use std::sync::OnceLock;

/// Numbers of faults.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Faults {
    /// Resolved without a retry.
    pub minor: u64,
    /// Retried after a wait.
    pub major: u64,
}

impl Faults {
    /// All faults of this thread until now. The call takes some 0.3 µs.
    ///
    /// # Errors
    /// `getrusage` is refused.
    pub fn count_so_far() -> Result<Self> {
        let usage = process::thread_usage()?;
        Ok(Self { minor: usage.minor_page_faults() as u64, major: usage.major_page_faults() as u64 })
    }

    /// The difference to an earlier count.
    pub fn since(self, earlier: Self) -> Self {
        Self { minor: self.minor - earlier.minor, major: self.major - earlier.major }
    }

    /// Faults of both kinds.
    pub fn total(self) -> u64 {
        self.minor + self.major
    }
}

/// The reason why claims about page faults cannot be checked on a kernel that counts none.
pub const UNCOUNTED: &str =
    "this kernel counts no page faults: 64 first touches of fresh pages left its count as it was";

/// Whether the kernel counts page faults at all: gVisor does not. First touches of fresh pages are known to be faults.
pub fn counts_faults() -> bool {
    static COUNTS: OnceLock<bool> = OnceLock::new();
    *COUNTS.get_or_init(|| touch_fresh_pages().is_ok_and(|faults| faults.total() > 0))
}

/// The need that the kernel counts page faults, for a case that checks each of its batches by their number.
pub const FAULTS_COUNTED: Need = Need::new(|_| if counts_faults() { Ok(()) } else { Err(UNCOUNTED.into()) });

/// Adds claims that are judged by the kernel's count of faults. Where the kernel counts none, the claims
/// cannot be checked, and the case is unwitnessed.
pub fn with_counted_faults<const N: usize>(case: Case, claims: [Claim; N]) -> Case {
    if counts_faults() { claims.into_iter().fold(case, Case::claim) } else { without_witness(case) }
}

/// The case with [`UNCOUNTED`] in its report, as the reason why it is unwitnessed.
fn without_witness(mut case: Case) -> Case {
    let set_up = case.set_up;
    case.set_up = Box::new(move |place: &Place| {
        Ok(Box::new(WithEvidence::new(set_up(place)?, []).with_unchecked(UNCOUNTED)))
    });
    case
}

/// The faults that the kernel counts for the first touches of 64 fresh pages.
fn touch_fresh_pages() -> Result<Faults> {
    let region = Region::map_anonymous(64 * PAGE, Pages::Base)?;
    let before = Faults::count_so_far()?;
    region.write(0..64, 1);
    Ok(Faults::count_so_far()?.since(before))
}

impl std::ops::AddAssign for Faults {
    fn add_assign(&mut self, other: Self) {
        self.minor += other.minor;
        self.major += other.major;
    }
}

/// Bytes that the kernel has read from devices for this thread (`read_bytes` of proc_pid_io(5)). `None` if the kernel
/// does not count them.
pub fn bytes_read_from_devices() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/thread-self/io").ok()?;
    Some(proc::parse_device_bytes(&text)?.read)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kit::runnable::test_place;
    use std::path::Path;

    #[test]
    fn linux_counts_faults() {
        assert!(counts_faults());
    }

    #[test]
    fn without_counted_faults_a_case_is_unwitnessed() {
        let case = || Case::new("a", "a", set_up(|_| Ok(|_: u64, clock: &Clock| Ok(clock.time(|| ())))));
        let held: fn(&Delta, u64) -> std::result::Result<String, String> = |_, _| Ok(String::new());
        assert_eq!(with_counted_faults(case(), [Claim::Counted(held)]).claims.len(), 1);
        let blind = without_witness(case());
        assert!(blind.claims.is_empty());
        let subject = (blind.set_up)(&test_place(Path::new("/"), Scale::Smoke)).expect("a subject");
        assert_eq!(subject.report().unchecked, [UNCOUNTED]);
    }

    #[test]
    fn a_first_touch_is_a_fault_and_a_second_is_none() {
        let region = Region::map_anonymous(64 * PAGE, Pages::Base).expect("memory");
        let touched = || {
            let before = Faults::count_so_far().expect("counted");
            region.write(0..64, 1);
            Faults::count_so_far().expect("counted").since(before).total()
        };
        let (first, second) = (touched(), touched());
        // Larger pages cause fewer faults.
        assert!((4..=66).contains(&first) && second < first, "{first} and then {second}");
    }
}

//! Page faults as the kernel counts them for this thread: those that were served from memory, and those that waited.
//!
//! The kernel calls a fault major if it had to be begun a second time, which a read from a device makes it do. So
//! does a wait for a lock of the address space, and a fault that `userfaultfd` hands to somebody else: what no device
//! has served is counted as major as well.

use crate::Result;
use crate::platform::{proc, process};

/// A number of faults.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Faults {
    /// Served at once.
    pub minor: u64,
    /// Begun a second time, after a wait.
    pub major: u64,
}

impl Faults {
    /// Those of this thread so far. Some 0.3 µs.
    pub fn so_far() -> Result<Self> {
        let usage = process::usage()?;
        Ok(Self { minor: usage.minor_page_faults() as u64, major: usage.major_page_faults() as u64 })
    }

    /// Those since an earlier count.
    pub fn since(self, earlier: Self) -> Self {
        Self { minor: self.minor - earlier.minor, major: self.major - earlier.major }
    }

    /// Of both kinds.
    pub fn all(self) -> u64 {
        self.minor + self.major
    }
}

impl std::ops::AddAssign for Faults {
    fn add_assign(&mut self, other: Self) {
        self.minor += other.minor;
        self.major += other.major;
    }
}

/// Bytes that this thread has had read from devices (`read_bytes` of proc_pid_io(5)); nothing where the kernel does
/// not tell.
pub fn read_from_devices() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/thread-self/io").ok()?;
    Some(proc::device_bytes(&text)?.read)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::platform::region::{PAGE, Region};
    use crate::platform::resident::Pages;

    #[test]
    fn a_first_touch_is_a_fault_and_a_second_is_none() {
        let region = Region::anonymous(64 * PAGE, Pages::Base).expect("memory");
        let touched = || {
            let before = Faults::so_far().expect("counted");
            region.write(0..64, 1);
            Faults::so_far().expect("counted").since(before).all()
        };
        let (first, second) = (touched(), touched());
        // Where pages are larger than 4 KiB there are fewer.
        assert!((4..=66).contains(&first) && second < first, "{first} and then {second}");
    }
}

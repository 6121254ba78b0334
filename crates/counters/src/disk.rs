//! Counters of disks and partitions (Documentation/block/stat.rst).

use super::kernel_file;
use super::text;
use super::{Fault, Method, Reading};
use std::fs::File;
use std::time::Duration;

/// Bytes of a sector in the kernel's counters, for every device (Documentation/block/stat.rst).
const SECTOR: u64 = 512;
/// The longest tick of the timer (`HZ` of 100). Busy times are counted in ticks.
const LONGEST_TICK: Duration = Duration::from_millis(10);
/// Space for seventeen 64-bit numbers, bytes.
const ROOM: usize = 17 * 21 + 1;

/// Counters of one disk or partition. It holds one descriptor.
#[derive(Debug)]
pub struct Disk {
    name: String,
    file: File,
}

/// The counters of a disk, all from one read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Completed reads.
    pub reads: u64,
    /// Bytes read.
    pub bytes_read: u64,
    /// Completed writes.
    pub writes: u64,
    /// Bytes written.
    pub bytes_written: u64,
    /// Requests in flight at the moment of the reading.
    pub in_flight: u64,
    /// Time for which at least one request was in flight, as the ticks of the timer saw it: a request shorter than a tick
    /// counts as a whole tick or not at all.
    pub busy: Duration,
}

impl Disk {
    /// The disk or partition that has this name now: `vda`, `nvme0n1p2`.
    ///
    /// # Errors
    /// [`Fault::Gone`] where there is no such disk.
    pub fn open(name: &str) -> Result<Self, Fault> {
        Ok(Self { name: name.into(), file: open_stat_file(name)? })
    }

    /// The name by which it was opened.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// All counters of the disk.
    ///
    /// # Errors
    /// [`Fault::Gone`] once the disk was removed; [`Fault::Parse`] for an unknown format.
    #[inline]
    pub fn traffic(&self) -> Result<Reading<Traffic>, Fault> {
        read(&self.file, &self.name)
    }

    /// The number of completed reads.
    ///
    /// # Errors
    /// The errors of [`traffic`](Self::traffic).
    #[inline]
    pub fn reads(&self) -> Result<Reading<u64>, Fault> {
        self.read_counter(READS)
    }

    /// The number of completed writes.
    ///
    /// # Errors
    /// The errors of [`traffic`](Self::traffic).
    #[inline]
    pub fn writes(&self) -> Result<Reading<u64>, Fault> {
        self.read_counter(WRITES)
    }

    /// Completed reads and writes, without a time stamp, for a block of several counters.
    #[inline]
    pub(super) fn operation_count(&self) -> Result<u64, Fault> {
        let both = |text: &[u8]| {
            let (reads, rest) = text::parse_number(text)?;
            Some(reads + text::nth_number(rest, WRITES - READS - 1)?)
        };
        read_and_parse(&self.file, &self.name, both)
    }

    /// Reads one number of the line. To parse only this number halves the cost.
    #[inline]
    fn read_counter(&self, word: usize) -> Result<Reading<u64>, Fault> {
        let value = read_and_parse(&self.file, &self.name, |text| text::nth_number(text, word))?;
        Ok(Reading::now(value, 1, Method::BlockStat))
    }
}

/// Positions of the numbers in the line.
const READS: usize = 0;
const WRITES: usize = 4;

/// All counters, read without a handle.
pub(super) fn read_traffic(name: &str) -> Result<Reading<Traffic>, Fault> {
    read(&open_stat_file(name)?, name)
}

fn open_stat_file(name: &str) -> Result<File, Fault> {
    let checked = kernel_file::checked_name("disk", name)?;
    kernel_file::open(format_args!("/sys/class/block/{checked}/stat")).map_err(|fault| match fault {
        Fault::Gone(_) => Fault::Gone(format!("disk {name}")),
        other => other,
    })
}

fn read(file: &File, name: &str) -> Result<Reading<Traffic>, Fault> {
    let traffic = read_and_parse(file, name, parse)?;
    let step = Traffic {
        reads: 1,
        bytes_read: SECTOR,
        writes: 1,
        bytes_written: SECTOR,
        in_flight: 1,
        busy: LONGEST_TICK,
    };
    Ok(Reading::now(traffic, step, Method::BlockStat))
}

#[inline]
fn read_and_parse<T>(file: &File, name: &str, parse: impl Fn(&[u8]) -> Option<T>) -> Result<T, Fault> {
    let mut buffer = [0; ROOM];
    let text = kernel_file::read(file, &mut buffer, || format!("disk {name}"))?;
    parse(text).ok_or_else(|| Fault::parse_error(format!("disk {name}"), "eleven numbers", text))
}

fn parse(text: &[u8]) -> Option<Traffic> {
    let mut numbers = [0; 10];
    let mut rest = text;
    for number in &mut numbers {
        (*number, rest) = text::parse_number(rest)?;
    }
    let [reads, _, read, _, writes, _, written, _, in_flight, busy_ms] = numbers;
    // Saturation changes nothing: years of writing stay far below 2^64 bytes.
    let bytes = |sectors: u64| sectors.saturating_mul(SECTOR);
    Some(Traffic {
        reads,
        bytes_read: bytes(read),
        writes,
        bytes_written: bytes(written),
        in_flight,
        busy: Duration::from_millis(busy_ms),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_read_from_the_documented_positions() {
        let text = b"    1 2 3 4 5 6 7 8 9 10 11 0 0 0 0 0 0\n";
        let expected = Traffic {
            reads: 1,
            bytes_read: 3 * 512,
            writes: 5,
            bytes_written: 7 * 512,
            in_flight: 9,
            busy: Duration::from_millis(10),
        };
        assert_eq!(parse(text), Some(expected));
        assert_eq!((text::nth_number(text, READS), text::nth_number(text, WRITES)), (Some(1), Some(5)));
        assert_eq!(parse(b"1 2 3"), None);
    }

    #[test]
    fn a_single_counter_equals_its_field_of_all_counters() {
        let Ok(disks) = crate::enumeration::disks() else {
            return syscost_platform::testing::print_skipped("the kernel lists no disks");
        };
        for disk in disks {
            // Other processes use the disk meanwhile.
            let disk = Disk::open(&disk).expect("it is on the list");
            let before = disk.traffic().expect("read").value;
            let (reads, writes) = (disk.reads().expect("read").value, disk.writes().expect("read").value);
            let (operations, after) =
                (disk.operation_count().expect("read"), disk.traffic().expect("read").value);
            assert!((before.reads..=after.reads).contains(&reads), "{before:?} {reads} {after:?}");
            assert!((before.writes..=after.writes).contains(&writes), "{before:?} {writes} {after:?}");
            assert!(before.busy <= after.busy, "{before:?} {after:?}");
            let sum = |traffic: Traffic| traffic.reads + traffic.writes;
            assert!((sum(before)..=sum(after)).contains(&operations), "{before:?} {operations} {after:?}");
        }
    }

    #[test]
    fn a_missing_disk_is_gone() {
        assert!(matches!(Disk::open("no-such-0"), Err(Fault::Gone(_))));
        assert!(matches!(read_traffic("../net/lo"), Err(Fault::Gone(_))));
    }
}

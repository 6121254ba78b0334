//! Disks and their partitions.

use super::file::{self, SHORT};
use super::name;
use super::text;
use super::{Fault, Method, Reading};
use std::fs::File;

/// Bytes of a sector in the kernel's counters, whatever the device's own are (Documentation/block/stat.rst).
const SECTOR: u64 = 512;

/// Counters of one disk or partition, by its file, which is kept open.
#[derive(Debug)]
pub struct Disk {
    name: String,
    file: File,
}

/// What one look tells (Documentation/block/stat.rst).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Reads that were completed.
    pub reads: u64,
    /// Bytes read.
    pub bytes_read: u64,
    /// Writes that were completed.
    pub writes: u64,
    /// Bytes written.
    pub bytes_written: u64,
    /// Requests under way at this moment.
    pub in_flight: u64,
}

impl Disk {
    /// The disk or partition that has this name now: `vda`, `nvme0n1p2`.
    ///
    /// # Errors
    /// [`Fault::Gone`] where there is none.
    pub fn open(name: &str) -> Result<Self, Fault> {
        Ok(Self { name: name.into(), file: open(name)? })
    }

    /// Its name when it was opened.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// All of its counters.
    ///
    /// # Errors
    /// [`Fault::Gone`], [`Fault::Parse`].
    #[inline]
    pub fn traffic(&self) -> Result<Reading<Traffic>, Fault> {
        read(&self.file, &self.name)
    }

    /// All of them without their time: for whoever reads several things at a moment.
    #[inline]
    pub(super) fn look(&self) -> Result<Traffic, Fault> {
        look(&self.file, &self.name)
    }

    /// Reads that were completed.
    ///
    /// # Errors
    /// As of [`traffic`](Self::traffic).
    #[inline]
    pub fn reads(&self) -> Result<Reading<u64>, Fault> {
        Ok(self.traffic()?.part(|traffic| traffic.reads))
    }

    /// Writes that were completed.
    ///
    /// # Errors
    /// As of [`traffic`](Self::traffic).
    #[inline]
    pub fn writes(&self) -> Result<Reading<u64>, Fault> {
        Ok(self.traffic()?.part(|traffic| traffic.writes))
    }
}

/// All counters, by opening the file for this reading.
pub(super) fn once(name: &str) -> Result<Reading<Traffic>, Fault> {
    read(&open(name)?, name)
}

fn open(name: &str) -> Result<File, Fault> {
    let checked = name::checked("disk", name)?;
    file::open(format_args!("/sys/class/block/{checked}/stat")).map_err(|fault| match fault {
        Fault::Gone(_) => Fault::Gone(format!("disk {name}")),
        other => other,
    })
}

fn read(file: &File, name: &str) -> Result<Reading<Traffic>, Fault> {
    let traffic = look(file, name)?;
    let step = Traffic { reads: 1, bytes_read: SECTOR, writes: 1, bytes_written: SECTOR, in_flight: 1 };
    Ok(Reading::now(traffic, step, Method::BlockStat))
}

#[inline]
fn look(file: &File, name: &str) -> Result<Traffic, Fault> {
    let mut buffer = [0; SHORT];
    let text = file::read(file, &mut buffer, || format!("disk {name}"))?;
    parse(text).ok_or_else(|| Fault::parse(format!("disk {name}"), "eleven numbers", text))
}

fn parse(text: &[u8]) -> Option<Traffic> {
    let mut numbers = [0; 9];
    let mut rest = text;
    for number in &mut numbers {
        (*number, rest) = text::number(rest)?;
    }
    let [reads, _, read, _, writes, _, written, _, in_flight] = numbers;
    // Sectors of a device that is written for years on end stay far below what is too many bytes.
    let bytes = |sectors: u64| sectors.saturating_mul(SECTOR);
    Some(Traffic { reads, bytes_read: bytes(read), writes, bytes_written: bytes(written), in_flight })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_stand_where_the_kernel_says() {
        let text = b"    1 2 3 4 5 6 7 8 9 10 11 0 0 0 0 0 0\n";
        let expected =
            Traffic { reads: 1, bytes_read: 3 * 512, writes: 5, bytes_written: 7 * 512, in_flight: 9 };
        assert_eq!(parse(text), Some(expected));
        assert_eq!(parse(b"1 2 3"), None);
    }

    #[test]
    fn a_disk_that_there_is_not_is_gone() {
        assert!(matches!(Disk::open("no-such-0"), Err(Fault::Gone(_))));
        assert!(matches!(once("../net/lo"), Err(Fault::Gone(_))));
    }
}

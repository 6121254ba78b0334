//! Physical memory: what is free, what is truly free, what may be had.

use super::file;
use super::text::{line, number};
use super::{Fault, Method, Reading};
use crate::machine::process::page_size;
use std::fs::File;

const MEMINFO: &str = "/proc/meminfo";
const ZONEINFO: &str = "/proc/zoneinfo";

/// The memory of this machine, by two files that are kept open.
#[derive(Debug)]
pub struct Memory {
    meminfo: File,
    zoneinfo: File,
}

impl Memory {
    /// Opens the files.
    ///
    /// # Errors
    /// [`Fault::Denied`], [`Fault::Gone`] where `/proc` is hidden or not mounted.
    pub fn open() -> Result<Self, Fault> {
        let [meminfo, zoneinfo] = [MEMINFO, ZONEINFO].map(|path| file::open(format_args!("{path}")));
        Ok(Self { meminfo: meminfo?, zoneinfo: zoneinfo? })
    }

    /// As of [`truly_free`].
    ///
    /// # Errors
    /// As of [`truly_free`].
    pub fn truly_free(&self) -> Result<Reading<u64>, Fault> {
        of_zones(&self.zoneinfo)
    }

    /// As of [`available`].
    ///
    /// # Errors
    /// As of [`available`].
    pub fn available(&self) -> Result<Reading<u64>, Fault> {
        of_meminfo(&self.meminfo)
    }
}

/// Free memory, bytes: what no list of the kernel's counts as used. It does **not** fall when a program touches a
/// megabyte, because those pages come from lists that each CPU keeps: [`truly_free`] counts them as well.
///
/// # Errors
/// [`Fault::Denied`] in a sandbox that forbids sysinfo(2).
#[inline]
pub fn free() -> Result<Reading<u64>, Fault> {
    let info = nix::sys::sysinfo::sysinfo().map_err(|e| Fault::of("free memory", &e.into()))?;
    Ok(Reading::now(info.ram_unused(), page_size(), Method::Sysinfo))
}

/// Physical memory that the kernel manages, bytes: what it was given, less what it took for itself at boot.
///
/// # Errors
/// [`Fault::Denied`] in a sandbox that forbids sysinfo(2).
pub fn total() -> Result<Reading<u64>, Fault> {
    let info = nix::sys::sysinfo::sysinfo().map_err(|e| Fault::of("physical memory", &e.into()))?;
    Ok(Reading::now(info.ram_total(), page_size(), Method::Sysinfo))
}

/// Free memory with what lies in the lists of each CPU, bytes: it falls by what is touched.
///
/// # Errors
/// [`Fault::Parse`] where `/proc/zoneinfo` does not name them.
pub fn truly_free() -> Result<Reading<u64>, Fault> {
    of_zones(&file::open(format_args!("{ZONEINFO}"))?)
}

/// Memory that programs could have without swapping, as the kernel estimates it, bytes.
///
/// # Errors
/// [`Fault::Parse`] before Linux 3.14.
pub fn available() -> Result<Reading<u64>, Fault> {
    of_meminfo(&file::open(format_args!("{MEMINFO}"))?)
}

fn of_meminfo(file: &File) -> Result<Reading<u64>, Fault> {
    let mut buffer = [0; 4096];
    let text = file::read(file, &mut buffer, || MEMINFO.into())?;
    let kib = line(text, b"MemAvailable:").and_then(number);
    let (kib, _) = kib.ok_or_else(|| Fault::parse(MEMINFO, "`MemAvailable:`", text))?;
    Ok(Reading::now(kib << 10, page_size(), Method::Meminfo))
}

fn of_zones(file: &File) -> Result<Reading<u64>, Fault> {
    let mut free = Free::default();
    // A machine of hundreds of CPUs fills hundreds of KiB.
    file::each_line(file, ZONEINFO, |line| free.add(line))?;
    let pages = free.pages().ok_or_else(|| {
        Fault::parse(ZONEINFO, "`pages free` of each zone and `count:` of each CPU", b"another text")
    })?;
    Ok(Reading::now(pages * page_size(), page_size(), Method::Zoneinfo))
}

/// Free pages of all zones, and of the lists of all CPUs in them.
#[derive(Default)]
struct Free {
    zones: Option<u64>,
    lists: Option<u64>,
}

impl Free {
    fn add(&mut self, line: &[u8]) {
        let line = line.trim_ascii_start();
        let (sum, rest) = match line {
            [b'p', ..] => (&mut self.zones, line.strip_prefix(b"pages free")),
            [b'c', ..] => (&mut self.lists, line.strip_prefix(b"count:")),
            _ => return,
        };
        if let Some((count, _)) = rest.and_then(number) {
            *sum.get_or_insert(0) += count;
        }
    }

    fn pages(&self) -> Option<u64> {
        Some(self.zones? + self.lists?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lists_of_all_cpus_are_added_to_the_zones() {
        let text = "Node 0, zone DMA\n  pages free     3\n        low 9\n  pagesets\n    cpu: 0\n              \
            count:    5\n vm stats threshold: 4\n    cpu: 1\n              count: 7\nNode 0, zone x\n  pages free 2\n";
        let mut free = Free::default();
        text.lines().for_each(|line| free.add(line.as_bytes()));
        assert_eq!(free.pages(), Some(17));
        assert_eq!(Free { zones: Some(3), lists: None }.pages(), None, "a kernel that does not name them");
    }

    #[test]
    fn what_is_free_is_within_what_there_is() {
        let total = nix::sys::sysinfo::sysinfo().expect("sysinfo").ram_total();
        let memory = Memory::open().expect("/proc");
        for reading in [free(), truly_free(), available(), memory.truly_free(), memory.available()] {
            let reading = reading.expect("read");
            assert!(reading.value > 0 && reading.value <= total, "{reading:?} of {total}");
        }
    }
}

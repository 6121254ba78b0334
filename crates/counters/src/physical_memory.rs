//! Physical memory: free memory, without and with the lists of each CPU, and available memory.

use super::kernel_file;
use super::text::{parse_number, rest_of_line};
use super::{Fault, Method, Reading};
use std::fs::File;
use syscost_platform::process::page_size;

const MEMINFO: &str = "/proc/meminfo";
const ZONEINFO: &str = "/proc/zoneinfo";

/// The memory of this machine. It holds two descriptors.
#[derive(Debug)]
pub struct Memory {
    meminfo: File,
    zoneinfo: File,
}

impl Memory {
    /// Opens the files.
    ///
    /// # Errors
    /// [`Fault::Denied`] or [`Fault::Gone`] where `/proc` is hidden or not mounted.
    pub fn open() -> Result<Self, Fault> {
        let [meminfo, zoneinfo] = [MEMINFO, ZONEINFO].map(|path| kernel_file::open(format_args!("{path}")));
        Ok(Self { meminfo: meminfo?, zoneinfo: zoneinfo? })
    }

    /// Like [`truly_free`], but reads the open file.
    ///
    /// # Errors
    /// The errors of [`truly_free`].
    pub fn truly_free(&self) -> Result<Reading<u64>, Fault> {
        read_truly_free(&self.zoneinfo)
    }

    /// Like [`available`], but reads the open file.
    ///
    /// # Errors
    /// The errors of [`available`].
    pub fn available(&self) -> Result<Reading<u64>, Fault> {
        read_available(&self.meminfo)
    }
}

/// Free memory, bytes. It does **not** fall when a program touches a megabyte: those pages come from lists that each CPU
/// keeps and that this figure leaves out. [`truly_free`] includes them.
///
/// # Errors
/// [`Fault::Denied`] in a sandbox that forbids sysinfo(2).
#[inline]
pub fn free() -> Result<Reading<u64>, Fault> {
    Ok(Reading::now(free_bytes()?, page_size(), Method::Sysinfo))
}

/// Free memory without a time stamp.
#[inline]
pub(super) fn free_bytes() -> Result<u64, Fault> {
    let info = nix::sys::sysinfo::sysinfo().map_err(|e| Fault::from_error("free memory", &e.into()))?;
    Ok(info.ram_unused())
}

/// Physical memory that the kernel manages, bytes, without the memory that it reserved for itself at boot.
///
/// # Errors
/// [`Fault::Denied`] in a sandbox that forbids sysinfo(2).
pub fn total() -> Result<Reading<u64>, Fault> {
    let info = nix::sys::sysinfo::sysinfo().map_err(|e| Fault::from_error("physical memory", &e.into()))?;
    Ok(Reading::now(info.ram_total(), page_size(), Method::Sysinfo))
}

/// Free memory including the lists of each CPU, bytes. It falls by the memory that a program touches.
///
/// It is [`free`] plus these lists, and not the sum of the zones' `pages free`: a kernel that initialises its page
/// descriptors late has, after a boot, gigabytes of free memory that belong to no zone yet.
///
/// # Errors
/// [`Fault::Parse`] where `/proc/zoneinfo` does not list them.
pub fn truly_free() -> Result<Reading<u64>, Fault> {
    read_truly_free(&kernel_file::open(format_args!("{ZONEINFO}"))?)
}

/// The kernel's estimate of the memory that programs could get without swapping, bytes.
///
/// # Errors
/// [`Fault::Parse`] before Linux 3.14.
pub fn available() -> Result<Reading<u64>, Fault> {
    read_available(&kernel_file::open(format_args!("{MEMINFO}"))?)
}

fn read_available(file: &File) -> Result<Reading<u64>, Fault> {
    let mut buffer = [0; 4096];
    let text = kernel_file::read(file, &mut buffer, || MEMINFO.into())?;
    let kib = rest_of_line(text, b"MemAvailable:").and_then(parse_number);
    let (kib, _) = kib.ok_or_else(|| Fault::parse_error(MEMINFO, "`MemAvailable:`", text))?;
    Ok(Reading::now(kib << 10, page_size(), Method::Meminfo))
}

fn read_truly_free(file: &File) -> Result<Reading<u64>, Fault> {
    let mut lists = None;
    // With hundreds of CPUs the file has hundreds of KiB, so it is read line by line.
    kernel_file::for_each_line(file, ZONEINFO, |line| {
        if let Some(pages) = parse_cpu_list_pages(line) {
            *lists.get_or_insert(0) += pages;
        }
    })?;
    let pages: u64 = lists
        .ok_or_else(|| Fault::parse_error(ZONEINFO, "`count:` of each CPU in each zone", b"another text"))?;
    Ok(Reading::now(free_bytes()? + pages * page_size(), page_size(), Method::Zoneinfo))
}

/// Free pages in the list of one CPU for one zone; `None` for other lines of `/proc/zoneinfo`.
fn parse_cpu_list_pages(line: &[u8]) -> Option<u64> {
    Some(parse_number(line.trim_ascii_start().strip_prefix(b"count:")?)?.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exactly_the_lists_of_all_cpus_are_found() {
        let text = "Node 0, zone DMA\n  pages free     3\n        low 9\n  pagesets\n    cpu: 0\n              \
            count:    5\n vm stats threshold: 4\n    cpu: 1\n              count: 7\nNode 0, zone x\n  pages free 2\n";
        let lists: Vec<_> = text.lines().filter_map(|line| parse_cpu_list_pages(line.as_bytes())).collect();
        assert_eq!(lists, [5, 7]);
    }

    #[test]
    fn free_memory_is_within_total_memory() {
        let total = nix::sys::sysinfo::sysinfo().expect("sysinfo").ram_total();
        let memory = Memory::open().expect("/proc");
        for reading in [free(), truly_free(), available(), memory.truly_free(), memory.available()] {
            let reading = reading.expect("read");
            assert!(reading.value > 0 && reading.value <= total, "{reading:?} of {total}");
        }
    }
}

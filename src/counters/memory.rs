//! Physical memory: what is free, what is truly free, what may be had.

use super::file;
use super::text::{line, number};
use super::{Fault, Method, Reading};
use crate::machine::process::page_size;

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
    let mut text = Vec::with_capacity(64 << 10);
    file::read_whole("/proc/zoneinfo", &mut text)?;
    let listed =
        listed_pages(&text).ok_or_else(|| Fault::parse("/proc/zoneinfo", "`count:` of each CPU", &text))?;
    let free = free()?.value + listed * page_size();
    Ok(Reading::now(free, page_size(), Method::Zoneinfo))
}

/// Memory that programs could have without swapping, as the kernel estimates it, bytes.
///
/// # Errors
/// [`Fault::Parse`] before Linux 3.14.
pub fn available() -> Result<Reading<u64>, Fault> {
    let mut buffer = [0; 4096];
    let file = file::open(format_args!("/proc/meminfo"))?;
    let text = file::read(&file, &mut buffer, || "/proc/meminfo".into())?;
    let kib = line(text, b"MemAvailable:").and_then(number);
    let (kib, _) = kib.ok_or_else(|| Fault::parse("/proc/meminfo", "`MemAvailable:`", text))?;
    Ok(Reading::now(kib << 10, page_size(), Method::Meminfo))
}

/// Pages in the lists of all CPUs and zones.
fn listed_pages(text: &[u8]) -> Option<u64> {
    let counts = text.split(|byte| *byte == b'\n').filter_map(|line| {
        let start = line.iter().position(|byte| *byte != b' ')?;
        line[start..].strip_prefix(b"count:").and_then(number).map(|(count, _)| count)
    });
    let mut any = None;
    counts.for_each(|count| *any.get_or_insert(0) += count);
    any
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lists_of_all_cpus_are_added() {
        let text = b"Node 0, zone DMA\n  pagesets\n    cpu: 0\n              count:    5\n\
            vm stats threshold: 4\n    cpu: 1\n              count: 7\n";
        assert_eq!(listed_pages(text), Some(12));
        assert_eq!(listed_pages(b"Node 0\n"), None);
    }

    #[test]
    fn what_is_free_is_within_what_there_is() {
        let total = nix::sys::sysinfo::sysinfo().expect("sysinfo").ram_total();
        for reading in [free(), truly_free(), available()] {
            let reading = reading.expect("read");
            assert!(reading.value > 0 && reading.value <= total, "{reading:?} of {total}");
        }
    }
}

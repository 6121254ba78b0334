//! Memory that is there: mapped, touched, and in pages of a known size.

use super::room;
use crate::{Error, Result};
use memmap2::{Advice, Mmap, MmapMut};

/// This file, for the version of a body.
pub const SOURCE: &str = include_str!("touched.rs");

/// The smallest page that any of our kernels has.
const SMALLEST_PAGE: usize = 4 << 10;
/// A huge page. Of kernels with larger base pages it is no huge page, and none will be found.
const HUGE_PAGE: usize = 2 << 20;
/// Beyond what is asked for, some must be left for everybody else.
const MARGIN: usize = 256 << 20;

/// What its pages are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pages {
    /// The kernel's base pages, 4 KiB nearly everywhere.
    Base,
    /// Transparent huge pages of 2 MiB.
    Huge,
}

/// Anonymous memory of which each page was written.
pub struct Touched {
    memory: MmapMut,
    begins: usize,
    bytes: usize,
}

impl Touched {
    /// `bytes` of it. The kernel is told not to give huge pages, or to give them, and asked afterwards.
    ///
    /// # Errors
    /// [`Error::Missing`] where there is too little memory, or it does not come in such pages.
    pub fn new(bytes: usize, pages: Pages) -> Result<Self> {
        room::for_memory((bytes + MARGIN) as u64).map_err(Error::Missing)?;
        let refused = |cause| Error::Kernel { call: format!("mmap of {bytes} bytes"), cause };
        let mut memory = MmapMut::map_anon(bytes + HUGE_PAGE).map_err(refused)?;
        let begins = memory.as_ptr().align_offset(HUGE_PAGE);
        // Where the kernel knows no huge pages it refuses either advice, and the check below tells.
        let _ = memory.advise(if pages == Pages::Huge { Advice::HugePage } else { Advice::NoHugePage });
        memory[begins..begins + bytes].iter_mut().step_by(SMALLEST_PAGE).for_each(|byte| *byte = 1);
        let touched = Self { memory, begins, bytes };
        touched.is_in(pages)?;
        Ok(touched)
    }

    fn is_in(&self, pages: Pages) -> Result<()> {
        let path = "/proc/self/smaps";
        let text = std::fs::read_to_string(path).map_err(|e| Error::file(path, "reading", e))?;
        let from = self.memory.as_ptr() as usize;
        let huge = huge_kib(&text, from..from + self.memory.len()) << 10;
        match pages {
            Pages::Huge if huge < self.bytes => Err(Error::Missing(format!(
                "of {} MiB only {} came in huge pages: let /sys/kernel/mm/transparent_hugepage/enabled be madvise or \
                 always, or free some memory",
                self.bytes >> 20,
                huge >> 20
            ))),
            Pages::Base if huge > 0 => Err(Error::Missing(format!(
                "{} of {} MiB came in huge pages, which were declined",
                huge >> 20,
                self.bytes >> 20
            ))),
            _ => Ok(()),
        }
    }

    /// Its bytes.
    pub fn bytes(&mut self) -> &mut [u8] {
        &mut self.memory[self.begins..self.begins + self.bytes]
    }
}

/// KiB in huge pages of all mappings that touch this range, by the text of `smaps` (proc_pid_smaps(5)).
fn huge_kib(text: &str, range: std::ops::Range<usize>) -> usize {
    let mut inside = false;
    let mut sum = 0;
    for line in text.lines() {
        if let Some((from, to)) = bounds(line) {
            inside = from < range.end && range.start < to;
        } else if let Some(kib) = line.strip_prefix("AnonHugePages:").filter(|_| inside) {
            sum += kib.trim().trim_end_matches(" kB").parse::<usize>().unwrap_or(0);
        }
    }
    sum
}

/// The bounds of the mapping that a line is the head of.
fn bounds(line: &str) -> Option<(usize, usize)> {
    let (from, to) = line.split(' ').next()?.split_once('-')?;
    Some((usize::from_str_radix(from, 16).ok()?, usize::from_str_radix(to, 16).ok()?))
}

/// Neighbouring mappings of one touched page each. Every second one may not be written any more, so that the
/// kernel cannot merge it with its neighbours.
pub struct Mappings {
    _writable: Vec<MmapMut>,
    _read_only: Vec<Mmap>,
}

impl Mappings {
    /// So many of them.
    pub fn new(count: usize) -> Result<Self> {
        let refused = |cause| Error::Kernel { call: format!("mmap of {count} mappings"), cause };
        let (mut writable, mut read_only) = (Vec::new(), Vec::new());
        let before = mapped();
        for at in 0..count {
            let mut page = MmapMut::map_anon(SMALLEST_PAGE).map_err(refused)?;
            page[0] = 1;
            if at % 2 == 0 {
                writable.push(page);
            } else {
                read_only.push(page.make_read_only().map_err(refused)?);
            }
        }
        let more = mapped().saturating_sub(before);
        // At the ends of the row some may have been merged with what was there.
        if more + 2 < count {
            return Err(Error::Missing(format!("{count} mappings were made and {more} are there")));
        }
        Ok(Self { _writable: writable, _read_only: read_only })
    }
}

/// How many mappings this process has.
fn mapped() -> usize {
    std::fs::read_to_string("/proc/self/maps").map_or(0, |text| text.lines().count())
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMAPS: &str = "1000-3000 rw-p 00000000 00:00 0\nRss: 8 kB\nAnonHugePages:      2048 kB\n\
        3000-4000 rw-p 00000000 00:00 0 [heap]\nAnonHugePages:      4096 kB\nVmFlags: rd wr\n";

    #[test]
    fn huge_pages_are_counted_where_they_are() {
        assert_eq!(huge_kib(SMAPS, 0x1000..0x2000), 2048);
        assert_eq!(huge_kib(SMAPS, 0x2fff..0x3001), 6144);
        assert_eq!(huge_kib(SMAPS, 0x4000..0x5000), 0);
    }

    #[test]
    fn touched_memory_is_resident_in_base_pages() {
        let mut touched = Touched::new(4 << 20, Pages::Base).expect("memory");
        assert_eq!(touched.bytes().iter().map(|&byte| usize::from(byte)).sum::<usize>(), 1024);
    }

    #[test]
    fn too_much_memory_is_missing_and_not_taken() {
        let Err(Error::Missing(sentence)) = Touched::new(1 << 46, Pages::Base) else { panic!("taken") };
        assert!(sentence.contains("MiB of memory are needed"), "{sentence}");
    }

    #[test]
    fn mappings_stay_apart() {
        assert!(Mappings::new(100).is_ok());
    }
}

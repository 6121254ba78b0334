//! Resident memory: mapped, touched, and in pages of a known size.

use super::limit;
use crate::error::{Error, Result};
use memmap2::{Advice, Mmap, MmapMut, MmapOptions};
use std::path::Path;

/// The smallest page of the supported architectures, bytes.
const SMALLEST_PAGE: usize = 4 << 10;
/// A huge page, bytes. A kernel with larger base pages has huge pages of another size, and none will be found.
const HUGE_PAGE: usize = 2 << 20;
/// Memory that must be left for other processes, bytes: as much as is asked for, but at most this.
const MARGIN: usize = 256 << 20;

/// Kind of pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pages {
    /// The kernel's base pages, 4 KiB nearly everywhere.
    Base,
    /// Transparent huge pages of 2 MiB.
    Huge,
    /// Huge pages of 2 MiB from the pool that was reserved for them (`vm.nr_hugepages`).
    Reserved,
}

/// The remedy if the kernel gave fewer transparent huge pages than were asked for, as a part of a sentence.
pub const HUGE_PAGE_REMEDY: &str =
    "let /sys/kernel/mm/transparent_hugepage/enabled be madvise or always, and free some memory";

/// The file whose setting decides which memory gets huge pages.
const SETTING: &str = "/sys/kernel/mm/transparent_hugepage/enabled";

/// Checks by the text of the setting that there are huge pages. A kernel without huge pages has no text.
fn check_huge_page_setting(setting: &str) -> std::result::Result<(), String> {
    if setting.contains("[always]") || setting.contains("[madvise]") {
        return Ok(());
    }
    let is = if setting.is_empty() { "missing" } else { setting.trim() };
    Err(format!(
        "huge pages are needed, and the kernel gives none: {SETTING} is {is}; let it be madvise or always"
    ))
}

/// The largest page that the kernel may use for anonymous memory that did not ask for one, bytes, by the setting of all
/// sizes and the settings of single sizes in KiB. An unknown setting counts as
/// permission.
fn largest_default_page(all: &str, sizes: &[(usize, String)]) -> usize {
    let always = all.contains("[always]");
    let allowed = |text: &str| match text {
        _ if text.contains("[inherit]") => always,
        _ if text.contains("[never]") || text.contains("[madvise]") => false,
        _ => true,
    };
    let known = sizes.iter().filter(|(_, text)| allowed(text)).map(|(kib, _)| kib << 10).max();
    match known {
        Some(bytes) => bytes,
        // A kernel without settings of single sizes has huge pages only.
        None if sizes.is_empty() && always => HUGE_PAGE,
        None => SMALLEST_PAGE,
    }
}

/// The largest page that the kernel may use now for anonymous memory that did not ask for one, bytes.
pub fn read_largest_default_page() -> usize {
    let directory = Path::new(SETTING).parent().unwrap_or(Path::new("/"));
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let size = |entry: std::fs::DirEntry| {
        let kib = entry.file_name().to_str()?.strip_prefix("hugepages-")?.strip_suffix("kB")?.parse().ok()?;
        Some((kib, std::fs::read_to_string(entry.path().join("enabled")).ok()?))
    };
    let sizes: Vec<_> = entries.filter_map(size).collect();
    largest_default_page(&std::fs::read_to_string(SETTING).unwrap_or_default(), &sizes)
}

/// Anonymous memory with every page written.
pub struct ResidentMemory {
    memory: MmapMut,
    begins: usize,
    bytes: usize,
}

impl ResidentMemory {
    /// Maps `bytes`, advises the kernel which pages to use, and checks afterwards that it did.
    ///
    /// # Errors
    /// [`Error::Missing`] where there is too little memory, or the kernel used other pages.
    pub fn new(bytes: usize, pages: Pages) -> Result<Self> {
        limit::check_memory((bytes + bytes.min(MARGIN)) as u64).map_err(Error::Missing)?;
        if pages == Pages::Huge {
            check_huge_page_setting(&std::fs::read_to_string(SETTING).unwrap_or_default())
                .map_err(Error::Missing)?;
        }
        // The last huge page must be complete.
        let whole = if pages == Pages::Base { bytes } else { bytes.next_multiple_of(HUGE_PAGE) };
        let memory = map_aligned(whole, pages)?;
        let begins = memory.as_ptr().align_offset(HUGE_PAGE);
        advise_page_kind(&memory, begins, whole, pages);
        let mut touched = Self { memory, begins, bytes };
        if pages == Pages::Reserved {
            // Touching a page that the control group may not have raises SIGBUS.
            touched.check_page_kind(pages, whole)?;
        }
        touched.memory[begins..begins + whole].iter_mut().step_by(SMALLEST_PAGE).for_each(|byte| *byte = 1);
        touched.check_page_kind(pages, whole)?;
        Ok(touched)
    }

    fn check_page_kind(&self, pages: Pages, bytes: usize) -> Result<()> {
        let path = "/proc/self/smaps";
        let text = std::fs::read_to_string(path).map_err(|e| Error::file(path, "reading", e))?;
        let from = self.memory.as_ptr() as usize + self.begins;
        let kind = if pages == Pages::Reserved { "Private_Hugetlb:" } else { "AnonHugePages:" };
        let huge = kib_of_kind(&text, kind, from..from + bytes) << 10;
        let (all, came) = (bytes >> 20, huge >> 20);
        match pages {
            Pages::Huge if huge < bytes => {
                Err(Error::Missing(format!("of {all} MiB only {came} came in huge pages: free some memory")))
            }
            Pages::Reserved if huge < bytes => Err(Error::Missing(format!(
                "of {all} MiB only {came} came in reserved huge pages of 2 MiB: this kernel has none, or the control group may \
                 have no more (hugetlb.2MB.max): raise it"
            ))),
            Pages::Base if huge > 0 => {
                Err(Error::Missing(format!("{came} of {all} MiB came in huge pages, which were declined")))
            }
            _ => Ok(()),
        }
    }

    /// The bytes of the memory.
    pub fn bytes(&mut self) -> &mut [u8] {
        &mut self.memory[self.begins..self.begins + self.bytes]
    }
}

/// Maps anonymous memory in which `bytes` begin at a boundary of huge pages. Reserved pages are made at once, as many as the
/// kernel gives.
fn map_aligned(bytes: usize, pages: Pages) -> Result<MmapMut> {
    if pages == Pages::Reserved {
        return MmapOptions::new().len(bytes).huge(Some(21)).populate().map_anon().map_err(|cause| {
            let pages = bytes / HUGE_PAGE;
            Error::Missing(format!(
                "{pages} huge pages of 2 MiB are needed and not reserved ({cause}): write at least {pages} to \
                 /proc/sys/vm/nr_hugepages"
            ))
        });
    }
    let refused = |cause| Error::Kernel { call: format!("mmap of {bytes} bytes"), cause };
    MmapMut::map_anon(bytes + HUGE_PAGE).map_err(refused)
}

/// Advises the kernel which pages to use, for the part that is used and not for the rest behind it.
/// Memory with another advice is a separate mapping in `smaps`. Without an advice the kernel might join a neighbour to
/// this mapping, and the neighbour's huge pages would be counted here.
fn advise_page_kind(memory: &MmapMut, begins: usize, bytes: usize, pages: Pages) {
    let advice = match pages {
        Pages::Base => Advice::NoHugePage,
        Pages::Huge => Advice::HugePage,
        Pages::Reserved => return,
    };
    // A kernel without huge pages refuses the advice; the check that follows finds out.
    let _ = memory.advise_range(advice, begins, bytes);
}

/// KiB in pages of this kind in all mappings that touch this range, by the text of `smaps` (proc_pid_smaps(5)).
pub(crate) fn kib_of_kind(text: &str, kind: &str, range: std::ops::Range<usize>) -> usize {
    let mut inside = false;
    let mut sum = 0;
    for line in text.lines() {
        if let Some((from, to)) = parse_mapping_bounds(line) {
            inside = from < range.end && range.start < to;
        } else if let Some(kib) = line.strip_prefix(kind).filter(|_| inside) {
            sum += kib.trim().trim_end_matches(" kB").parse::<usize>().unwrap_or(0);
        }
    }
    sum
}

/// The bounds of the mapping whose entry in `smaps` begins with this line.
fn parse_mapping_bounds(line: &str) -> Option<(usize, usize)> {
    let (from, to) = line.split(' ').next()?.split_once('-')?;
    Some((usize::from_str_radix(from, 16).ok()?, usize::from_str_radix(to, 16).ok()?))
}

/// Neighbouring mappings of one touched page each. Every second one is read-only, so that the
/// kernel cannot merge it with its neighbours.
pub struct Mappings {
    _writable: Vec<MmapMut>,
    _read_only: Vec<Mmap>,
}

impl Mappings {
    /// Makes this many mappings.
    ///
    /// # Errors
    /// The kernel refuses a mapping, or merged them ([`Error::Missing`]).
    pub fn new(count: usize) -> Result<Self> {
        let refused = |cause| Error::Kernel { call: format!("mmap of {count} mappings"), cause };
        let (mut writable, mut read_only) = (Vec::new(), Vec::new());
        let before = count_mappings()?;
        for at in 0..count {
            let mut page = MmapMut::map_anon(SMALLEST_PAGE).map_err(refused)?;
            page[0] = 1;
            if at % 2 == 0 {
                writable.push(page);
            } else {
                read_only.push(page.make_read_only().map_err(refused)?);
            }
        }
        let more = count_mappings()?.saturating_sub(before);
        // The first and the last may have been merged with their other neighbours.
        if more + 2 < count {
            return Err(Error::Missing(format!("{count} mappings were made and {more} are there")));
        }
        Ok(Self { _writable: writable, _read_only: read_only })
    }
}

/// How many mappings this process has.
fn count_mappings() -> Result<usize> {
    const PATH: &str = "/proc/self/maps";
    let text = std::fs::read_to_string(PATH).map_err(|cause| Error::file(PATH, "reading", cause))?;
    Ok(text.lines().count())
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMAPS: &str = "1000-3000 rw-p 00000000 00:00 0\nRss: 8 kB\nAnonHugePages:      2048 kB\n\
        3000-4000 rw-p 00000000 00:00 0 [heap]\nAnonHugePages:      4096 kB\nPrivate_Hugetlb:  6144 kB\nVmFlags: rd wr\n";

    #[test]
    fn the_largest_default_page_follows_the_settings() {
        let sizes = |small: &str, huge: &str| [(64, small.to_owned()), (2048, huge.to_owned())];
        let largest_with = |all, small, huge| largest_default_page(all, &sizes(small, huge));
        let (never, inherit) = ("always inherit madvise [never]", "always [inherit] madvise never");
        assert_eq!(largest_with("always [madvise] never", never, inherit), SMALLEST_PAGE);
        assert_eq!(largest_with("[always] madvise never", never, inherit), HUGE_PAGE);
        assert_eq!(
            largest_with("always [madvise] never", "[always] inherit madvise never", inherit),
            64 << 10
        );
        assert_eq!(largest_default_page("[always] madvise never", &[]), HUGE_PAGE);
        assert_eq!(largest_default_page("", &[]), SMALLEST_PAGE, "a kernel without huge pages");
    }

    #[test]
    fn huge_pages_are_counted_where_they_are() {
        let transparent = |range| kib_of_kind(SMAPS, "AnonHugePages:", range);
        assert_eq!(transparent(0x1000..0x2000), 2048);
        assert_eq!(transparent(0x2fff..0x3001), 6144);
        assert_eq!(transparent(0x4000..0x5000), 0);
        assert_eq!(kib_of_kind(SMAPS, "Private_Hugetlb:", 0x1000..0x4000), 6144);
    }

    #[test]
    fn huge_pages_come_or_are_missing_with_a_reason() {
        for pages in [Pages::Huge, Pages::Reserved] {
            match ResidentMemory::new(16 << 10, pages) {
                Ok(mut touched) => assert_eq!(touched.bytes().len(), 16 << 10),
                Err(error) => assert!(error.is_machine_limitation(), "{error}"),
            }
        }
    }

    #[test]
    fn memory_in_other_pages_is_missing() {
        let touched = ResidentMemory::new(4 << 20, Pages::Base).expect("memory");
        for pages in [Pages::Huge, Pages::Reserved] {
            let Err(Error::Missing(sentence)) = touched.check_page_kind(pages, 4 << 20) else {
                panic!("{pages:?}")
            };
            assert!(sentence.contains("of 4 MiB only 0 came in"), "{sentence}");
        }
    }

    #[test]
    fn a_setting_without_huge_pages_is_reported() {
        assert!(
            check_huge_page_setting("always [madvise] never").is_ok()
                && check_huge_page_setting("[always] madvise never").is_ok()
        );
        for (setting, is) in
            [("always madvise [never]\n", "is always madvise [never]; let"), ("", "is missing; let")]
        {
            assert!(check_huge_page_setting(setting).expect_err("never").contains(is), "{setting}");
        }
    }

    #[test]
    fn huge_pages_of_a_neighbour_are_not_counted() {
        let huge = || ResidentMemory::new(4 << 20, Pages::Huge);
        let base = || ResidentMemory::new(4 << 20, Pages::Base);
        let (Ok(_before), Ok(between), Ok(_behind)) = (huge(), base(), huge()) else {
            return crate::testing::print_skipped("there are no huge pages");
        };
        assert!(between.check_page_kind(Pages::Base, 4 << 20).is_ok());
        assert!(between.check_page_kind(Pages::Huge, 4 << 20).is_err());
    }

    #[test]
    fn touched_memory_is_resident_in_base_pages() {
        let mut touched = ResidentMemory::new(4 << 20, Pages::Base).expect("memory");
        assert_eq!(touched.bytes().iter().map(|&byte| usize::from(byte)).sum::<usize>(), 1024);
    }

    #[test]
    fn too_much_memory_is_missing_and_not_taken() {
        let Err(Error::Missing(sentence)) = ResidentMemory::new(1 << 46, Pages::Base) else {
            panic!("taken")
        };
        assert!(sentence.contains("MiB of memory are needed"), "{sentence}");
    }

    #[test]
    fn mappings_stay_apart() {
        assert!(Mappings::new(100).is_ok());
    }
}

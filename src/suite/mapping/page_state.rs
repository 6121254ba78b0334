//! Operations that change the state of pages, one row each: writing back, moving, giving back, making huge.

use super::{MIB, touched_region};
use crate::kit::contract::*;
use crate::kit::fault_count::{FAULTS_COUNTED, Faults};
use crate::kit::operation_table::{Omit, Proof, Row, checked_each, entered, operation_rows, repeated};
use crate::platform::numa;
use crate::platform::pattern_file::{PatternFile, Way};
use crate::platform::region::{HUGE_PAGE, PAGE, Region};
use crate::platform::resident::{HUGE_PAGE_REMEDY, Pages};

/// The cases that a default run measures; a full run measures all.
pub(super) const BY_DEFAULT: [&str; 2] = ["msync/4KiB", "mremap-move/1MiB"];

const WRITTEN_BACK: Proof = Proof::Each(
    "every page had become clean: the next write to each was a fault, by which the kernel notes it",
);
const MOVED: Proof = Proof::Each("the pages lie at the other addresses, all of them resident");
const WHY_MSYNC: &str = "a write that the disk must have kept";
const WHY_MOVE: &str = "two entries, each page's entry moved, a flush";

pub(in crate::suite) const ROWS: &[Row] = operation_rows! {
    "msync/4KiB", "msync of a page of a shared file mapping, written before", WRITTEN_BACK, 300_000.0, 40_000.0, WHY_MSYNC, write_back::<PAGE>;
    "msync/1MiB", "msync of 1 MiB of a shared file mapping, every page written before", WRITTEN_BACK, 2_500_000.0, 400_000.0, WHY_MSYNC, write_back::<MIB>;
    "mremap-grow/1MiB", "a touched mapping of 1 MiB made 2 MiB long, and 1 MiB again (mremap)", entered![SYS_mremap, SYS_mremap], 400.0, 3_000.0, "two entries, a gap found, a note made longer and shorter", |_, _| {
        let mut region = touched_region(MIB)?;
        repeated("mremap", move || region.resize(2 * MIB).and_then(|()| region.resize(MIB)))
    };
    "mremap-move/4KiB", "a touched page moved to other addresses (mremap)", MOVED, 1_000.0, 5_000.0, WHY_MOVE, move_pages::<PAGE>;
    "mremap-move/1MiB", "1 MiB moved to other addresses, all of it touched (mremap)", MOVED, 6_000.0, 14_000.0, WHY_MOVE, move_pages::<MIB>;
    "madvise-free/1MiB", "madvise of 1 MiB as free, all of it touched", Proof::Each("at least half of the pages may be freed by the kernel when it likes (LazyFree of smaps)"), 10_000.0, 50_000.0, "each page's entry made clean, each page put on another list", |_, omit| {
        let region = touched_region(MIB)?;
        region.give_advice(libc::MADV_FREE, "MADV_FREE")?;
        checked_each(region, omit, |region| { region.discard(0..MIB / PAGE)?; touch(region) },
            |region| region.give_advice(libc::MADV_FREE, "MADV_FREE"),
            |region| check_kib(region, "LazyFree:", |kib| kib >= MIB / 2048))
    };
    "madvise-populate/1MiB", "madvise of 1 MiB as to be written: every page made at once", Proof::Each("every page was resident before it was touched"), 100_000.0, 100_000.0, "each page of 4 KiB zeroed, without an exception", |_, omit| {
        let region = touched_region(MIB)?;
        region.give_advice(libc::MADV_POPULATE_WRITE, "MADV_POPULATE_WRITE")?;
        checked_each(region, omit, |region| region.discard(0..MIB / PAGE),
            |region| region.give_advice(libc::MADV_POPULATE_WRITE, "MADV_POPULATE_WRITE"),
            |region| check_resident(region, |pages| pages == MIB / PAGE))
    };
    "madvise-pageout/1MiB", "madvise of 1 MiB of a cached file as not needed in memory", Proof::Each("at least half of the pages had left the page cache"), 20_000.0, 150_000.0, "each page unmapped, taken off its list and out of the file, freed", page_out;
    "madvise-collapse/2MiB", "512 touched pages made one huge page (MADV_COLLAPSE)", Proof::Each("smaps shows a huge page where there were pages of 4 KiB"), 400_000.0, 150_000.0, "2 MiB copied, 512 pages freed, a flush", |_, omit| {
        let mut region = Region::map_anonymous(HUGE_PAGE, Pages::Huge)?;
        scatter(&mut region)?;
        region.give_advice(libc::MADV_COLLAPSE, "MADV_COLLAPSE")?;
        checked_each(region, omit, scatter, |region| region.give_advice(libc::MADV_COLLAPSE, "MADV_COLLAPSE"),
            |region| check_kib(region, HUGE, |kib| kib >= HUGE_PAGE >> 10))
    };
    "migrate/1MiB", "1 MiB moved to another node, and to the next one (move_pages)",
        Proof::Each("the kernel names the other node for every page"), 100_000.0, 300_000.0,
        "each page unmapped, copied and mapped; the other CPUs' translations flushed", migrate;
    "huge-split/2MiB", "a page within a huge page made read-only: its mapping is split", Proof::Each("smaps showed a huge page before, and none afterwards"), 3_000.0, 12_000.0, "512 entries written for one, a flush", |_, omit| {
        let region = Region::map_anonymous(HUGE_PAGE, Pages::Huge)?;
        checked_each(region, omit, make_huge, |region| region.protect(0..1, false),
            |region| check_kib(region, HUGE, |kib| kib < HUGE_PAGE >> 10))
    };
};

/// The name in smaps(5) of the memory that lies in anonymous huge pages.
const HUGE: &str = "AnonHugePages:";

fn touch(region: &mut Region) -> Result<()> {
    region.write(0..region.page_count(), 1);
    Ok(())
}

/// Checks that `is_right` accepts the KiB that smaps(5) reports of this kind of memory.
fn check_kib(region: &Region, kind: &str, is_right: impl Fn(usize) -> bool) -> Result<()> {
    match region.kib_of_kind(kind)? {
        kib if is_right(kib) => Ok(()),
        kib => Err(Error::Contradicted(format!("{kind} {kib} kB: the pages are as they were"))),
    }
}

/// Checks that `is_right` accepts the number of resident pages.
fn check_resident(region: &Region, is_right: impl Fn(usize) -> bool) -> Result<()> {
    let pages = region.page_count();
    match region.count_resident(0..pages, &mut vec![0; pages])? {
        resident if is_right(resident) => Ok(()),
        resident => Err(Error::Contradicted(format!("{resident} of {pages} pages are resident"))),
    }
}

fn write_back<const BYTES: usize>(place: &Place, omit: Omit) -> Result<Box<dyn Subject>> {
    FAULTS_COUNTED.check_place(place).map_err(Error::Missing)?;
    let file = PatternFile::create_filled(&place.scratch, BYTES as u64, Way::Cached)?;
    let region = Region::map_shared(file.file(), BYTES)?;
    let pages = region.page_count();
    // The first write to each page is a fault in any case, so it happens here, untimed.
    region.write(0..pages, 1);
    region.write_back()?;
    let dirty = move |region: &mut Region| {
        let before = Faults::count_so_far()?;
        region.write(0..pages, 1);
        match Faults::count_so_far()?.since(before).total() {
            faults if faults >= pages as u64 => Ok(()),
            faults => Err(Error::Disproved(format!(
                "{pages} pages were written after msync with {faults} faults: they were dirty"
            ))),
        }
    };
    checked_each(region, omit, dirty, |region| region.write_back(), |_| Ok(()))
}

fn move_pages<const BYTES: usize>(_: &Place, omit: Omit) -> Result<Box<dyn Subject>> {
    let state = (touched_region(BYTES)?, Region::reserve(BYTES)?, 0);
    checked_each(
        state,
        omit,
        |(_, reserved, wanted)| {
            *wanted = reserved.start_address();
            Ok(())
        },
        |(region, reserved, _)| region.move_onto(reserved).map_err(|e| Error::from_case_errno("mremap", e)),
        |(region, reserved, wanted)| {
            if region.start_address() != *wanted {
                return Err(Error::Disproved("the pages lie where they lay".into()));
            }
            reserved.reserve_again()?;
            check_resident(region, |pages| pages == BYTES / PAGE)
        },
    )
}

fn page_out(place: &Place, omit: Omit) -> Result<Box<dyn Subject>> {
    const NAME: &str = "MADV_PAGEOUT";
    let file = PatternFile::create_filled(&place.scratch, MIB as u64, Way::Cached)?;
    file.evict()?;
    let region = Region::map_file(file.file(), MIB)?;
    let read = |region: &mut Region| {
        std::hint::black_box(region.read(0..MIB / PAGE, 1));
        Ok(())
    };
    let half_left = |region: &mut Region| check_resident(region, |pages| pages <= MIB / PAGE / 2);
    let mut region = region;
    read(&mut region)?;
    region.give_advice(libc::MADV_PAGEOUT, NAME)?;
    half_left(&mut region).map_err(|error| {
        Error::Missing(format!(
            "this kernel keeps pages of a file in memory although {NAME} asks to evict them ({error})"
        ))
    })?;
    // The file must stay open as long as its pages are evicted.
    checked_each(
        region,
        omit,
        read,
        move |region| {
            let _open = &file;
            region.give_advice(libc::MADV_PAGEOUT, NAME)
        },
        half_left,
    )
}

fn migrate(_: &Place, omit: Omit) -> Result<Box<dyn Subject>> {
    let mut nodes = numa::several_memory_nodes()?.into_iter().cycle();
    let region = touched_region(MIB)?;
    let mut next = move || nodes.next().unwrap_or_default();
    numa::move_region(&region, next())?;
    checked_each(
        (region, 0),
        omit,
        move |(_, target)| {
            *target = next();
            Ok(())
        },
        |(region, target)| numa::move_region(region, *target),
        |(region, target)| numa::verify_region(region, *target),
    )
}

/// Makes fresh pages of 4 KiB, and allows huge ones afterwards.
fn scatter(region: &mut Region) -> Result<()> {
    region.discard(0..region.page_count())?;
    region.give_advice(libc::MADV_NOHUGEPAGE, "MADV_NOHUGEPAGE")?;
    touch(region)?;
    region.give_advice(libc::MADV_HUGEPAGE, "MADV_HUGEPAGE")
}

/// Makes the region one fresh huge page.
fn make_huge(region: &mut Region) -> Result<()> {
    region.protect(0..1, true)?;
    region.discard(0..region.page_count())?;
    touch(region)?;
    check_kib(region, HUGE, |kib| kib >= HUGE_PAGE >> 10)
        .map_err(|_| Error::Missing(format!("no huge page came for 2 MiB of memory: {HUGE_PAGE_REMEDY}")))
}

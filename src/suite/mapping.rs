//! # What is timed
//! Mapping memory, and what becomes of its pages. `first-touch`: mapping fresh anonymous memory, touching each of its
//! pages once, and unmapping it: the price of memory that a program requests and uses. `map`: mapping and unmapping
//! without a touch. `populate`: the same with `MAP_POPULATE`, so that the kernel makes all pages at once and no fault
//! occurs. `mprotect`: removing the permission to write touched memory and granting it again, two calls. `dontneed`: giving
//! touched pages back and keeping the mapping, one call. `brk`: moving the end of the data segment up and down again,
//! two calls, untouched.
//! `msync`: writing the modified pages of a shared file mapping back to the disk. `mremap-move` and `mremap-grow`: moving touched
//! pages to other addresses, and making a mapping longer and shorter. `madvise-…`: marking pages as free, making them before they
//! are touched, taking those of a file out of memory, and making one huge page of 512. `huge-split`: making one page of a
//! huge page read-only. `migrate`: moving pages to another NUMA node. `shootdown-protect/N` and `shootdown-unmap/N`: the two
//! calls of `mprotect`, and mapping and unmapping a page (`MAP_POPULATE`), while N threads of this process run on other CPUs,
//! whose translations the kernel must flush.
//!
//! # What is not
//! The touches that make the pages of `mprotect` and `dontneed`, which are base pages. Reading the counters.
//!
//! # How we know
//! The kernel counts minor faults over each sample: with pages of 4 KiB one per touch, with huge pages one per
//! 2 MiB, with folios a number between these. Where memory is touched or populated there must be at least one per page of the
//! largest size in use; `first-touch/1MiB` takes base pages, so that every page must fault. Where memory is not touched, there must
//! be fewer than one per iteration; no fault may have read a device. A witness counts the system calls of some iterations: the
//! named calls, once each. After `dontneed` every page must fault again, which is counted between the calls. The result of every
//! call is checked. Single operations on pages are checked one by one: after `msync` the next write to each page is a fault,
//! since the page is clean; moved pages are resident at the new addresses; smaps(5) shows huge and lazily freed pages, and
//! mincore(2) shows pages that were made or taken away. `interrupts` of a shootdown is the growth of the line `TLB` in
//! /proc/interrupts for each iteration; the other threads must stay on their CPUs.
//!
//! # What fools it
//! Transparent huge pages (`/sys/kernel/mm/transparent_hugepage/enabled`): they change the number of faults by up to
//! a factor of 512 and the time by several times. The fingerprint records the mode; within it the kernel decides. A
//! control group near its limit reclaims memory at every fault. The kernel may keep freed pages for this CPU and hand
//! them out again at once, but not in large numbers: the price of a page grows with their number. The C library keeps
//! memory that it has mapped: a program's `malloc` and `free` pay this price only above the library's thresholds. A processor
//! that flushes others by an instruction (AArch64, AMD's INVLPGB) has no `interrupts`. In a guest the interrupt waits until the
//! other virtual CPU runs.
//!
//! # Reading the number
//! The time divided by the bytes is the price of the first use of memory; zeroing a byte cannot cost less than writing it.
//! `first-touch` less `populate` is the cost of the exceptions, and `populate` less `map` that of the pages.
//!
//! # Source
//! lmbench's `lat_pagefault` and `lat_mmap` (McVoy and Staelin 1996); libMicro's `msync`; the kernel's selftests of mm; mmap(2),
//! mprotect(2), madvise(2), mremap(2), msync(2), brk(2); the
//! kernel's `Documentation/admin-guide/mm/transhuge.rst`.

mod operation;
pub(super) mod page_state;
mod shootdown;

use crate::kit::blocks::DISK;
use crate::kit::contract::*;
use crate::kit::fault_count::{FAULTS_COUNTED, Faults, with_counted_faults};
use crate::kit::kernel_call::{check_granted, time_calls};
use crate::kit::operation_table::table_cases;
use crate::platform::limit;
use crate::platform::process;
use crate::platform::process::inheritance::{self, NoHugePages};
use crate::platform::region::{self, PAGE, Region};
use crate::platform::resident::{Pages, read_largest_default_page};
use memmap2::MmapMut;
use nix::errno::Errno;
use std::hint::black_box;
use std::sync::LazyLock;

pub const GROUP: Group = Group::new("mapping", include_str!("mapping.rs"), cases)
    .version(2)
    .curves(&[
        Curve::new("mapping/map/", "mmap and munmap", Axis::Bytes("size of the mapping")),
        Curve::new("mapping/mprotect/", "mprotect", Axis::Bytes("size of the mapping")),
        Curve::new("mapping/dontneed/", "madvise", Axis::Bytes("size of the mapping")),
        Curve::new("mapping/populate/", "populate", Axis::Bytes("size of the mapping")),
        Curve::new("mapping/first-touch/", "first touch", Axis::Bytes("size of the mapping")),
    ])
    .headlines(&[Headline::new(116, "map/4KiB", "a page mapped and unmapped")]);

/// Memory that is left for other programs, bytes.
const MARGIN: u64 = 64 << 20;
/// From this size on, bytes, an iteration takes milliseconds and is timed by itself. Batches of several lengths, which show
/// that time is proportional to their length, would take seconds.
const SINGLE: usize = 16 << 20;

const MIB: usize = 1 << 20;

#[rustfmt::skip]
fn cases() -> Vec<Case> {
    vec![
        first_touch_case::<MIB>("first-touch/1MiB", "mapping, first touch and unmapping of 1 MiB"),
        first_touch_case::<{ 64 * MIB }>("first-touch/64MiB", "mapping, first touch and unmapping of 64 MiB"),
        untouched_map_case("4KiB", PAGE), untouched_map_case("1GiB", 1024 * MIB),
        populate_case::<PAGE>("4KiB"), populate_case::<MIB>("1MiB"), populate_case::<{ 16 * MIB }>("16MiB"),
        mprotect_case("4KiB", PAGE), mprotect_case("1MiB", MIB),
        dontneed_case("4KiB", PAGE), dontneed_case("1MiB", MIB), dontneed_case("16MiB", 16 * MIB),
        brk_case("4KiB", PAGE),
    ]
    .into_iter()
    .chain(table_cases(page_state::ROWS, &page_state::BY_DEFAULT).into_iter().map(add_disk_need))
    .chain(table_cases(shootdown::ROWS, &[]).into_iter().map(add_partner_needs))
    .map(|case| case.need(FOUR_KIB))
    .collect()
}

/// Adds the need for a disk to the cases that write pages of a file back or evict them: a file in memory has no device.
fn add_disk_need(case: Case) -> Case {
    if ["msync", "madvise-pageout"].iter().any(|name| case.name.starts_with(name)) {
        // Threads of the kernel write the pages.
        case.need(DISK).own_tasks(OwnTasks::Elsewhere)
    } else {
        case
    }
}

fn add_partner_needs(case: Case) -> Case {
    if case.name.ends_with("/0") { case } else { case.need(PINNED).need(TWO_CPUS) }
}

/// A long iteration is timed by itself; short ones must take time in proportion to their number.
fn linear_or_single(case: Case, bytes: usize) -> Case {
    if bytes < SINGLE { case.claim(Claim::Linear) } else { case.one_by_one() }
}

/// Times `n` operations in one bracket, or long operations (of many `bytes`) in one bracket each.
#[inline(always)]
fn time_operations(n: u64, bytes: usize, clock: &Clock, mut once: impl FnMut()) -> Ticks {
    if bytes < SINGLE {
        return clock.time(|| (0..n).for_each(|_| once()));
    }
    (0..n).map(|_| clock.time(&mut once)).sum()
}

/// As [`time_operations`], for operations that may fail. Returns the ticks, or the last error.
#[inline(always)]
fn time_fallible(n: u64, bytes: usize, clock: &Clock, once: impl Fn() -> Result<()>) -> Result<Ticks> {
    let mut refused = None;
    let ticks = time_operations(n, bytes, clock, || refused = once().err().or(refused.take()));
    refused.map_or(Ok(ticks), Err)
}

/// Skips the case if this much memory cannot be mapped and touched here: by a limit of addresses or of a control group.
fn check_room(bytes: usize) -> Result<()> {
    limit::check_memory(bytes as u64 + MARGIN).map_err(Error::Missing)?;
    Region::map_anonymous(bytes, Pages::Base).map(drop)
}

/// Memory of which every page exists.
fn touched_region(bytes: usize) -> Result<Region> {
    check_room(bytes)?;
    let region = Region::map_anonymous(bytes, Pages::Base)?;
    region.write(0..region.page_count(), 1);
    Ok(region)
}

fn first_touch_case<const BYTES: usize>(name: &'static str, title: &'static str) -> Case {
    let set_up = set_up(|_| {
        check_room(BYTES)?;
        // A huge page takes one fault, however much of it is touched. Memory shorter than a huge page rarely gets one.
        let base_pages = (BYTES < SINGLE).then(NoHugePages::start).flatten();
        Ok(move |n: u64, clock: &Clock| {
            let _held = &base_pages;
            time_fallible(n, BYTES, clock, || map_and_touch(BYTES))
        })
    });
    let pages = (BYTES / PAGE) as f64;
    let case = Case::new(name, title, set_up);
    let case = if BYTES < SINGLE { case } else { case.one_by_one() };
    let case = with_touch_claims::<BYTES>(case).derived_figure("page", Rule::OfCost(1.0 / pages));
    case.predict(pages * 500.0, pages * 700.0, "each page of 4 KiB zeroed, and a fault for it")
}

fn map_and_touch(bytes: usize) -> Result<()> {
    let refused = |cause| Error::Kernel { call: format!("mmap of {bytes} bytes"), cause };
    let mut memory = MmapMut::map_anon(bytes).map_err(refused)?;
    for page in memory.chunks_mut(PAGE) {
        page[0] = 1;
    }
    black_box(&memory[..1]);
    Ok(())
}

/// A case that maps and unmaps `bytes`, which takes as long as touching `touched` bytes.
fn map_and_unmap_case([variant, size, how]: [&str; 3], [bytes, touched]: [usize; 2], filled: bool) -> Case {
    let set_up = set_up(move |_| {
        if filled {
            check_room(bytes)?
        } else {
            Region::map_anonymous(bytes, Pages::Base).map(drop)?
        }
        Ok(move |n: u64, clock: &Clock| {
            let mut lowest = 0;
            let once = || lowest = lowest.min(black_box(region::map_and_unmap(bytes, filled)));
            let ticks = time_operations(n, touched, clock, once);
            check_granted("mmap and munmap, in the timed loop", lowest).map(|()| ticks)
        })
    });
    Case::new(format!("{variant}/{size}"), format!("mmap and munmap of {size}, {how}"), set_up)
}

/// The claim that an iteration maps and unmaps once.
fn enters_mmap_munmap() -> Claim {
    Claim::Enters(vec![("mmap", libc::SYS_mmap), ("munmap", libc::SYS_munmap)])
}

fn untouched_map_case(size: &str, bytes: usize) -> Case {
    // The kernel only makes an entry for the mapping, whatever its size.
    let case = map_and_unmap_case(["map", size, "untouched"], [bytes, PAGE], false);
    let case = with_counted_faults(case, [UNTOUCHED]).claim(Claim::Linear).claim(enters_mmap_munmap());
    case.predict(300.0, 2_200.0, "two entries, a gap found, a note allocated, linked and freed")
}

fn populate_case<const BYTES: usize>(size: &str) -> Case {
    let pages = (BYTES / PAGE) as f64;
    let case = map_and_unmap_case(["populate", size, "populated"], [BYTES; 2], true);
    let why = "each page of 4 KiB zeroed, without an exception";
    with_touch_claims::<BYTES>(linear_or_single(case, BYTES))
        .derived_figure("page", Rule::OfCost(1.0 / pages))
        .predict(300.0 + pages * 400.0, 2_200.0 + pages * 400.0, why)
}

fn mprotect_case(size: &str, bytes: usize) -> Case {
    let set_up = set_up(move |_| {
        let region = touched_region(bytes)?;
        let pages = region.page_count();
        Ok(move |n: u64, clock: &Clock| {
            let protect = |writable| region.protect(0..pages, writable);
            time_fallible(n, bytes, clock, || protect(false).and(protect(true)))
        })
    });
    let (name, title) =
        (format!("mprotect/{size}"), format!("mprotect of {size}: read only, and writable again"));
    let pages = (bytes / PAGE) as f64;
    let why = "two entries, each page's entry rewritten, a flush";
    with_counted_faults(linear_or_single(Case::new(name, title, set_up), bytes), [UNTOUCHED])
        .claim(Claim::Enters(vec![("mprotect", libc::SYS_mprotect), ("mprotect", libc::SYS_mprotect)]))
        .derived_figure("page", Rule::OfCost(1.0 / pages))
        .predict(700.0 + pages * 5.0, 2_000.0 + pages * 15.0, why)
}

fn dontneed_case(size: &str, bytes: usize) -> Case {
    let set_up = set_up(move |_| {
        let mut region = touched_region(bytes)?;
        let pages = region.page_count();
        Ok(move |n: u64, clock: &Clock| {
            let before = Faults::count_so_far()?;
            let ticks = clock.time_each(
                n,
                &mut region,
                |_| Ok(()),
                |region| region.discard(0..pages),
                |region, answer| {
                    answer?;
                    region.write(0..pages, 1);
                    Ok(Counts::Yes)
                },
            )?;
            check_pages_refaulted(Faults::count_so_far()?.since(before), n * pages as u64).map(|()| ticks)
        })
    });
    let (name, title) =
        (format!("dontneed/{size}"), format!("madvise of {size} as not needed, all of it touched"));
    let pages = (bytes / PAGE) as f64;
    let why = "each page's entry cleared, the page freed, a flush";
    Case::new(name, title, set_up)
        .need(FAULTS_COUNTED)
        .one_by_one()
        .claim(Claim::Checked("every page that was given back was a fault when it was touched again"))
        .derived_figure("page", Rule::OfCost(1.0 / pages))
        .predict(500.0 + pages * 100.0, 1_000.0 + pages * 200.0, why)
}

/// Checks that each page that was given back has faulted when it was touched again.
fn check_pages_refaulted(faults: Faults, pages: u64) -> Result<()> {
    if faults.minor >= pages {
        return Ok(());
    }
    Err(Error::Disproved(format!(
        "{pages} pages were given back, and touching them took {} faults only",
        faults.minor
    )))
}

fn brk_case(size: &str, bytes: usize) -> Case {
    let set_up = set_up(move |_| {
        if operation::grow_and_shrink(operation::program_break(), bytes) < 0 {
            return Err(Error::Missing(limit::refused_mapping_message(bytes as u64, Errno::ENOMEM.into())));
        }
        Ok(move |n: u64, clock: &Clock| {
            // Read anew, since the allocator may have moved the break between two batches.
            let end = operation::program_break();
            time_calls("brk, in the timed loop", n, clock, || operation::grow_and_shrink(end, bytes))
        })
    });
    let (name, title) = (format!("brk/{size}"), format!("brk up by {size} and down again, untouched"));
    let case = with_counted_faults(Case::new(name, title, set_up).claim(Claim::Linear), [UNTOUCHED]);
    case.predict(300.0, 1_700.0, "two entries, a note made longer and shorter again")
}

/// The largest page that the kernel uses by default, bytes, by the setting at the time when the first batch is judged.
static LARGEST: LazyLock<usize> = LazyLock::new(read_largest_default_page);

/// The claim that all of the memory was fresh and touched: at least one fault for each page of the largest size in use.
fn claim_all_touched<const BYTES: usize>(delta: &Delta, iterations: u64) -> Judged {
    let base = process::page_size() as usize;
    let page = if inheritance::is_thp_disabled() { base } else { base.max(*LARGEST) };
    check_fault_count(page, BYTES, delta, iterations)
}

fn check_fault_count(page: usize, bytes: usize, delta: &Delta, iterations: u64) -> Judged {
    let minor = delta.counted.minor_faults;
    let least = iterations * bytes.div_ceil(page) as u64;
    if minor < least {
        return Err(format!(
            "not all of the memory was fresh and touched: {minor} minor faults in {iterations} iterations, and pages of \
             {} KiB need {least}",
            page >> 10
        ));
    }
    Ok(format!("{:.0} minor faults an iteration", minor as f64 / iterations as f64))
}

fn claim_not_swapped(delta: &Delta, _: u64) -> Judged {
    match delta.counted.major_faults {
        0 => Ok("no fault went to a device".into()),
        major => Err(format!("{major} faults went to a device: anonymous memory was swapped")),
    }
}

/// The claims of a case that maps memory of which every page is touched.
fn with_touch_claims<const BYTES: usize>(case: Case) -> Case {
    let claims = [Claim::Counted(claim_all_touched::<BYTES>), Claim::AtMost(claim_not_swapped)];
    with_counted_faults(case.claim(enters_mmap_munmap()), claims)
}

const UNTOUCHED: Claim = Claim::AtMost(claim_untouched);

/// The claim that no page was touched: at most 16 faults, and one more for every ten iterations.
fn claim_untouched(delta: &Delta, iterations: u64) -> Judged {
    /// Faults that the measuring program itself may cause.
    const OWN: u64 = 16;
    let faults = delta.counted.minor_faults + delta.counted.major_faults;
    if faults > OWN + iterations / 10 {
        return Err(format!("{faults} faults in {iterations} iterations, in which nothing is touched"));
    }
    Ok(format!("{faults} faults in {iterations} iterations"))
}

#[cfg(test)]
mod tests;

//! # What is timed
//! `first-touch`: mapping fresh anonymous memory, touching each of its pages once, and giving it back: what a program
//! pays for memory that it asks for and uses. `map`: mapping and giving back without a touch. `populate`: the same
//! with `MAP_POPULATE`, so that the kernel makes every page at once and nobody faults. `mprotect`: taking the permission
//! to write touched memory and giving it again, two calls. `dontneed`: giving touched pages back and keeping the
//! mapping, one call. `brk`: moving the end of the data segment up and down again, two calls, untouched.
//!
//! # What is not
//! In `mprotect` and `dontneed` the touches that make the pages, in base pages. Reading the counters stands outside.
//!
//! # How we know
//! The kernel's count of minor faults over each sample: with pages of 4 KiB one a touch, with huge pages one for
//! each 2 MiB, with folios between. Where memory is touched or populated at least the latter must have been counted,
//! and where it is not, none an iteration; no fault went to a device. A witness counts the entries of some iterations:
//! the calls that are named, once each. After `dontneed` the pages must fault again, each of them: that is counted
//! between the calls. Every call's answer is looked at.
//!
//! # What fools it
//! Transparent huge pages (`/sys/kernel/mm/transparent_hugepage/enabled`): they change the number of faults by
//! up to 512 and the time by several times. The mode is in the fingerprint; here it is the kernel that decides.
//! A control group near its limit reclaims at every fault. Pages that are given back may be kept for this CPU and come
//! back at once, and large memory not: the price of a page grows with their number. The C library keeps what it has
//! mapped; a program's own `malloc` and `free` cost this only beyond its thresholds.
//!
//! # Reading the number
//! Divided by the bytes it is the price of memory's first use; a zeroed byte cannot cost less than writing it. What
//! `first-touch` costs above `populate` is the exceptions; what `populate` costs above `map` is the pages.
//!
//! # Source
//! lmbench's `lat_pagefault` and `lat_mmap` (McVoy and Staelin 1996); mmap(2), mprotect(2), madvise(2), brk(2); the
//! kernel's `Documentation/admin-guide/mm/transhuge.rst`.

mod operation;

use crate::case::need::FOUR_KIB;
use crate::case::{Case, Claim, Group, Place, Rule, SetUp, Subject};
use crate::clock::{Clock, Delta, Ticks};
use crate::kit::fault_count::Faults;
use crate::platform::limit;
use crate::platform::region::{self, HUGE_PAGE, PAGE, Region};
use crate::platform::resident::Pages;
use crate::record::{Axis, Curve};
use crate::{Error, Result};
use memmap2::MmapMut;
use nix::errno::Errno;
use std::hint::black_box;

pub const GROUP: Group = Group::new("mapping", include_str!("mapping.rs"), cases).curves(&[
    Curve::new("mapping/map/", "mmap and munmap", Axis::Bytes("memory")),
    Curve::new("mapping/mprotect/", "mprotect", Axis::Bytes("memory")),
    Curve::new("mapping/dontneed/", "madvise", Axis::Bytes("memory")),
    Curve::new("mapping/populate/", "populate", Axis::Bytes("memory")),
    Curve::new("mapping/first-touch/", "first touch", Axis::Bytes("memory")),
]);

/// What is left for everybody else, bytes.
const MARGIN: u64 = 64 << 20;
/// From this size on an iteration takes milliseconds. Each is timed by itself, since the batches of several sizes
/// that show time to be proportional would take seconds.
const SINGLE: usize = 16 << 20;

const MIB: usize = 1 << 20;

#[rustfmt::skip]
fn cases() -> Vec<Case> {
    vec![
        first_touch::<MIB>("first-touch/1MiB", "mapping, first touch and unmapping of 1 MiB"),
        first_touch::<{ 64 * MIB }>("first-touch/64MiB", "mapping, first touch and unmapping of 64 MiB"),
        map("4KiB", PAGE), map("1GiB", 1024 * MIB),
        populate::<PAGE>("4KiB"), populate::<MIB>("1MiB"), populate::<{ 16 * MIB }>("16MiB"),
        mprotect("4KiB", PAGE), mprotect("1MiB", MIB),
        dontneed("4KiB", PAGE), dontneed("1MiB", MIB), dontneed("16MiB", 16 * MIB),
        brk("4KiB", PAGE),
    ]
    .into_iter()
    .map(|case| case.need(FOUR_KIB))
    .collect()
}

/// Where an iteration is long it is timed by itself.
fn sized(case: Case, bytes: usize) -> Case {
    if bytes < SINGLE { case.claim(Claim::Linear) } else { case.one_by_one() }
}

fn first_touch<const BYTES: usize>(name: &'static str, title: &'static str) -> Case {
    let set_up: SetUp = Box::new(|_: &Place| {
        roomy(BYTES)?;
        Ok(Box::new(|n: u64, clock: &Clock| {
            let mut refused = None;
            let ticks = repeat(n, BYTES, clock, || {
                refused = map_and_touch(BYTES).err().or(refused.take());
            });
            refused.map_or(Ok(ticks), Err)
        }) as Box<dyn Subject>)
    });
    let pages = (BYTES / PAGE) as f64;
    let case = Case::new(name, title, set_up);
    if BYTES < SINGLE { case } else { case.one_by_one() }
        .claim(Claim::Enters(vec![("mmap", libc::SYS_mmap), ("munmap", libc::SYS_munmap)]))
        .claim(Claim::Counted(faulted::<BYTES>))
        .derive("page", Rule::OfCost(1.0 / pages))
        .predict(pages * 500.0, pages * 700.0, "each page of 4 KiB zeroed, and a fault for it")
}

/// So many times: in one bracket, or in a bracket each where they are long.
#[inline(always)]
fn repeat(n: u64, bytes: usize, clock: &Clock, mut once: impl FnMut()) -> Ticks {
    if bytes < SINGLE {
        return clock.time(|| (0..n).for_each(|_| once()));
    }
    let mut sum = Ticks(0);
    for _ in 0..n {
        sum += clock.time(&mut once);
    }
    sum
}

/// Whether so much can be mapped and touched here: a limit of addresses or of a control group skips the case.
fn roomy(bytes: usize) -> Result<()> {
    limit::for_memory(bytes as u64 + MARGIN).map_err(Error::Missing)?;
    Region::anonymous(bytes, Pages::Base).map(drop)
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

/// A case of one operation that answers 0 or a negative error number.
fn answered(
    name: String,
    title: String,
    bytes: usize,
    open: impl Fn() -> Result<()> + 'static,
    once: impl Fn() -> i64 + Copy + 'static,
) -> Case {
    let set_up: SetUp = Box::new(move |_: &Place| {
        open()?;
        Ok(Box::new(move |n: u64, clock: &Clock| {
            let mut lowest = 0;
            let ticks = repeat(n, bytes, clock, || lowest = lowest.min(black_box(once())));
            well(lowest, bytes)?;
            Ok(ticks)
        }) as Box<dyn Subject>)
    });
    Case::new(name, title, set_up)
}

fn well(lowest: i64, bytes: usize) -> Result<()> {
    let errno = Errno::from_raw(i32::try_from(-lowest).unwrap_or(libc::EIO));
    if lowest >= 0 {
        Ok(())
    } else {
        Err(Error::refused(format!("mapping {bytes} bytes, in the timed loop"), errno))
    }
}

fn map(size: &str, bytes: usize) -> Case {
    let (name, title) = (format!("map/{size}"), format!("mmap and munmap of {size}, untouched"));
    // Nothing is made but a note, however large it is.
    answered(
        name,
        title,
        PAGE,
        move || Region::anonymous(bytes, Pages::Base).map(drop),
        move || region::map_and_unmap(bytes, false),
    )
    .claim(Claim::Linear)
    .claim(Claim::Enters(vec![("mmap", libc::SYS_mmap), ("munmap", libc::SYS_munmap)]))
    .claim(Claim::Counted(untouched))
    .predict(300.0, 2_200.0, "two entries, a gap found, a note allocated, linked and freed")
}

fn populate<const BYTES: usize>(size: &str) -> Case {
    let (name, title) = (format!("populate/{size}"), format!("mmap and munmap of {size}, populated"));
    let pages = (BYTES / PAGE) as f64;
    let case = answered(name, title, BYTES, || roomy(BYTES), || region::map_and_unmap(BYTES, true));
    sized(case, BYTES)
        .claim(Claim::Enters(vec![("mmap", libc::SYS_mmap), ("munmap", libc::SYS_munmap)]))
        .claim(Claim::Counted(faulted::<BYTES>))
        .derive("page", Rule::OfCost(1.0 / pages))
        .predict(
            300.0 + pages * 400.0,
            2_200.0 + pages * 400.0,
            "each page of 4 KiB zeroed, without an exception",
        )
}

fn mprotect(size: &str, bytes: usize) -> Case {
    let set_up: SetUp = Box::new(move |_: &Place| {
        roomy(bytes)?;
        let region = Region::anonymous(bytes, Pages::Base)?;
        let pages = region.pages();
        region.write(0..pages, 1);
        Ok(Box::new(move |n: u64, clock: &Clock| {
            let mut refused = None;
            let ticks = repeat(n, bytes, clock, || {
                let answers = [false, true].map(|writable| region.protect(0..pages, writable).err());
                refused = answers.into_iter().flatten().next().or(refused.take());
            });
            refused.map_or(Ok(ticks), Err)
        }) as Box<dyn Subject>)
    });
    let (name, title) =
        (format!("mprotect/{size}"), format!("mprotect of {size}: read only, and writable again"));
    let pages = (bytes / PAGE) as f64;
    sized(Case::new(name, title, set_up), bytes)
        .claim(Claim::Enters(vec![("mprotect", libc::SYS_mprotect), ("mprotect", libc::SYS_mprotect)]))
        .claim(Claim::Counted(untouched))
        .derive("page", Rule::OfCost(1.0 / pages))
        .predict(
            700.0 + pages * 5.0,
            2_000.0 + pages * 15.0,
            "two entries, each page's entry rewritten, a flush",
        )
}

fn dontneed(size: &str, bytes: usize) -> Case {
    let set_up: SetUp = Box::new(move |_: &Place| {
        roomy(bytes)?;
        let region = Region::anonymous(bytes, Pages::Base)?;
        let pages = region.pages();
        region.write(0..pages, 1);
        Ok(Box::new(move |n: u64, clock: &Clock| {
            let mut sum = Ticks(0);
            let before = Faults::so_far()?;
            for _ in 0..n {
                let mut answer = Ok(());
                sum += clock.time(|| answer = region.discard(0..pages));
                answer?;
                region.write(0..pages, 1);
            }
            returned(Faults::so_far()?.since(before), n * pages as u64)?;
            Ok(sum)
        }) as Box<dyn Subject>)
    });
    let (name, title) =
        (format!("dontneed/{size}"), format!("madvise of {size} as not needed, all of it touched"));
    let pages = (bytes / PAGE) as f64;
    Case::new(name, title, set_up)
        .one_by_one()
        .claim(Claim::Checked("every page that was given back was a fault when it was touched again"))
        .derive("page", Rule::OfCost(1.0 / pages))
        .predict(
            500.0 + pages * 100.0,
            1_000.0 + pages * 200.0,
            "each page's entry cleared, the page freed, a flush",
        )
}

/// Pages that were given back cannot be touched without faults.
fn returned(faults: Faults, pages: u64) -> Result<()> {
    if faults.minor >= pages {
        return Ok(());
    }
    Err(Error::Usage(format!(
        "{pages} pages were given back, and touching them took {} faults only",
        faults.minor
    )))
}

fn brk(size: &str, bytes: usize) -> Case {
    let set_up: SetUp = Box::new(move |_: &Place| {
        if operation::grow_and_shrink(operation::end(), bytes) < 0 {
            return Err(Error::Missing(limit::no_mapping(bytes as u64, Errno::ENOMEM.into())));
        }
        Ok(Box::new(move |n: u64, clock: &Clock| {
            // Asked each time: between two batches the allocator may have moved it.
            let end = operation::end();
            let mut lowest = 0;
            let ticks = clock.time(|| {
                for _ in 0..n {
                    lowest = lowest.min(black_box(operation::grow_and_shrink(end, bytes)));
                }
            });
            well(lowest, bytes)?;
            Ok(ticks)
        }) as Box<dyn Subject>)
    });
    let (name, title) = (format!("brk/{size}"), format!("brk up by {size} and down again, untouched"));
    Case::new(name, title, set_up).claim(Claim::Linear).claim(Claim::Counted(untouched)).predict(
        300.0,
        1_700.0,
        "two entries, a note made longer and shorter again",
    )
}

/// Fresh memory cannot be touched without faults.
fn faulted<const BYTES: usize>(delta: &Delta, iterations: u64) -> std::result::Result<String, String> {
    let (minor, major) = (delta.counted.minor_faults, delta.counted.major_faults);
    // The largest page that the kernel may give unasked.
    let least = iterations * BYTES.div_ceil(HUGE_PAGE) as u64;
    if minor < least {
        return Err(format!(
            "the memory was not fresh: {minor} minor faults in {iterations} iterations, and huge pages alone need {least}"
        ));
    }
    if major > 0 {
        return Err(format!("{major} faults went to a device: anonymous memory was swapped"));
    }
    Ok(format!("{:.0} minor faults an iteration, none to a device", minor as f64 / iterations as f64))
}

/// Where nothing is touched there is hardly a fault, and not one an iteration. Fewer than these are our own.
fn untouched(delta: &Delta, iterations: u64) -> std::result::Result<String, String> {
    const OWN: u64 = 16;
    let faults = delta.counted.minor_faults + delta.counted.major_faults;
    if faults > OWN + iterations / 10 {
        return Err(format!("{faults} faults in {iterations} iterations, in which nothing is touched"));
    }
    Ok(format!("{faults} faults in {iterations} iterations"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Reading;

    fn sample(minor_faults: u64, major_faults: u64) -> Delta {
        let counted = Reading { minor_faults, major_faults, ..Reading::default() };
        Delta { counted, ..Delta::default() }
    }

    #[test]
    fn memory_that_is_not_fresh_or_swapped_is_not_believed() {
        assert!(faulted::<{ 4 << 20 }>(&sample(20, 0), 10).is_ok());
        assert!(faulted::<{ 4 << 20 }>(&sample(19, 0), 10).is_err());
        assert!(faulted::<{ 4 << 20 }>(&sample(20, 1), 10).is_err());
    }

    #[test]
    fn a_fault_each_where_nothing_is_touched_is_not_believed() {
        assert!(untouched(&sample(3, 0), 1000).is_ok());
        assert!(untouched(&sample(1000, 0), 1000).is_err());
        assert!(untouched(&sample(0, 1000), 1000).is_err());
    }

    #[test]
    fn pages_that_were_kept_are_noticed() {
        assert!(returned(Faults { minor: 256, major: 0 }, 256).is_ok());
        assert!(returned(Faults { minor: 1, major: 0 }, 256).is_err());
    }

    #[test]
    fn a_call_that_is_refused_is_no_number() {
        assert!(well(0, PAGE).is_ok() && well(-i64::from(libc::ENOMEM), PAGE).is_err());
    }
}

//! Faults of anonymous memory: first touches, and writes to pages that are write-protected or shared.

use super::touch::{Expected, Touches};
use super::with_fault_claims;
use crate::kit::contract::*;
use crate::platform::child::Child;
use crate::platform::limit;
use crate::platform::region::{HUGE_PAGE, PAGE, Region};
use crate::platform::resident::{HUGE_PAGE_REMEDY, Pages};
use crate::platform::syscall;
use std::cell::Cell;
use std::fs::File;
use std::io::{Read, Write};
use std::ops::Range;
use std::rc::Rc;

/// Pages of 4 KiB that are prepared at once: few enough that their page tables and translations stay cached.
const PAGES: usize = 1024;
/// Huge pages that are prepared at once.
const HUGE_PAGES: usize = 8;
/// The number of base pages in a huge page.
const EACH: usize = HUGE_PAGE / PAGE;

#[rustfmt::skip]
pub(super) fn cases() -> Vec<Case> {
    let write = |region: &Region, pages| region.write(0..pages, 1);
    let discard = |region: &Region, pages| region.discard(0..pages);
    vec![
        base_page_case("anonymous/4KiB", "the first write to an anonymous page of 4 KiB", Expected::OneEach, discard, write)
            .derived_figure("byte", Rule::OfCost(1.0 / PAGE as f64))
            .predict(1_300.0, 1_500.0, "an exception, a page allocated, zeroed and entered into the table"),
        huge_first_touch_case(),
        base_page_case("anonymous/read", "a read of an anonymous page before any write", Expected::OneEach, discard, |region, pages| {
            std::hint::black_box(region.read(0..pages, 1));
        })
            .predict(600.0, 700.0, "an exception, the page of zeroes entered into the table"),
        base_page_case("write-protect/zero-page", "a write to a page that was only read before", Expected::OneEach, |region, pages| {
            region.discard(0..pages)?;
            std::hint::black_box(region.read(0..pages, 1));
            Ok(())
        }, write)
            .predict(1_500.0, 1_800.0, "a page allocated and zeroed in the place of the page of zeroes"),
        base_page_case("write-protect/mprotect", "a write after mprotect took the permission and gave it back", Expected::AllOrNone, |region, pages| {
            region.write(0..pages, 1);
            region.protect(0..pages, false)?;
            region.protect(0..pages, true)
        }, write)
            .derived_figure("fault", Rule::PerEvent)
            .predict(30.0, 10.0, "mprotect lets what is ours alone be written at once: the translation is fetched again"),
        forked_case("copy-on-write/child-keeps", "a write to a page that a forked child keeps", true)
            .predict(1_000.0, 3_000.0, "a page allocated, 4 KiB copied, a translation replaced and dropped"),
        forked_case("copy-on-write/child-gone", "a write to a page that a child, now gone, had shared", false)
            .predict(600.0, 1_200.0, "the page is found to have no other user, a translation replaced"),
    ]
}

/// A case that touches base pages. `prepare` makes each page fault again at its next touch.
fn base_page_case(
    name: &str,
    title: &str,
    expected: Expected,
    prepare: impl Fn(&Region, usize) -> Result<()> + Copy + 'static,
    touch: impl Fn(&Region, usize) + Copy + 'static,
) -> Case {
    let set_up = set_up(move |_| {
        let region = Rc::new(Region::map_anonymous(PAGES * PAGE, Pages::Base)?);
        region.write(0..PAGES, 1); // this makes the page tables
        let touched = Rc::clone(&region);
        let prepare = move |pages| prepare(&region, pages);
        Ok(Touches::new(PAGES, expected, prepare, move |pages| touch(&touched, pages)))
    });
    with_fault_claims(Case::new(name, title, set_up).need(FOUR_KIB).lap_length(PAGES as u64), expected)
        .claim(Claim::Linear)
}

fn huge_first_touch_case() -> Case {
    let set_up = set_up(|_| {
        // If a control group is full after the last huge page, the kernel kills the process at the next page table.
        limit::check_memory(((HUGE_PAGES + 1) * HUGE_PAGE) as u64).map_err(Error::Missing)?;
        let region = Rc::new(Region::map_anonymous(HUGE_PAGES * HUGE_PAGE, Pages::Huge)?);
        let touched = Rc::clone(&region);
        let mut seen = vec![0; HUGE_PAGES * EACH];
        // The number of faults does not tell a huge page from a base page. A page is huge if all of it is resident after a
        // touch of its first byte.
        let mut came = move |region: &Region, pages: Range<usize>| -> Result<_> {
            let huge = pages.len() / EACH;
            Ok(check_huge_pages(huge, region.count_resident(pages, &mut seen)? / EACH))
        };
        region.write(0..HUGE_PAGES * EACH, EACH);
        came(&region, 0..HUGE_PAGES * EACH)?.map_err(Error::Missing)?;
        let turn = Rc::new(Cell::new((0, 0)));
        let next = Rc::clone(&turn);
        let prepare = move |pages: usize| {
            let (begin, before) = next.get();
            for part in ranges_in_turn(begin, before) {
                came(&region, part)?.map_err(Error::Disturbed)?;
            }
            let begin = (begin + before) % HUGE_PAGES;
            next.set((begin, pages));
            ranges_in_turn(begin, pages).into_iter().try_for_each(|part| region.discard(part))
        };
        let touch = move |_: usize| {
            let (begin, pages) = turn.get();
            ranges_in_turn(begin, pages).into_iter().for_each(|part| touched.write(part, EACH));
        };
        Ok(Touches::new(HUGE_PAGES, Expected::OneEach, prepare, touch))
    });
    let case = Case::new("anonymous/2MiB", "the first write to an anonymous huge page of 2 MiB", set_up);
    with_fault_claims(case.need(FOUR_KIB).lap_length(HUGE_PAGES as u64), Expected::OneEach)
        .claim(Claim::Checked("all of each huge page came with its first byte, by mincore"))
        .claim(Claim::Linear)
        .derived_figure("byte", Rule::OfCost(1.0 / HUGE_PAGE as f64))
        .predict(300_000.0, 40_000.0, "2 MiB zeroed at memory's own speed; the fault itself hardly counts")
}

/// The base pages of `pages` huge pages from huge page `begin` on. The second range is the part that wraps to the start.
///
/// The huge pages are used in turn, so that in a small batch as many others lie between two touches of one as in a large batch.
/// The kernel hands out the page that was freed last, and a page that is still in a cache is zeroed in half the time.
fn ranges_in_turn(begin: usize, pages: usize) -> [Range<usize>; 2] {
    let end = (begin + pages).min(HUGE_PAGES);
    [begin * EACH..end * EACH, 0..(begin + pages - end) * EACH]
}

/// Checks that each touched huge page became resident as a whole: `came` is their number. The error is a sentence.
fn check_huge_pages(touched: usize, came: usize) -> std::result::Result<(), String> {
    ensure(came == touched, || format!("{came} of {touched} huge pages came as such: {HUGE_PAGE_REMEDY}"))
}

/// A case that writes to pages after a fork, while the child still shares them or after it has ended.
fn forked_case(name: &str, title: &str, child_keeps: bool) -> Case {
    let set_up = set_up(move |_| {
        let region = Rc::new(Region::map_anonymous(PAGES * PAGE, Pages::Base)?);
        region.write(0..PAGES, 1);
        let touched = Rc::clone(&region);
        let (read, write) = nix::unistd::pipe().map_err(|errno| Error::from_errno("pipe", errno))?;
        let pipe = (File::from(read), File::from(write));
        let mut child = None;
        let prepare = move |pages: usize| {
            region.write(0..pages, 1);
            drop(child.take()); // killed and reaped
            child = Some(start_sleeping_child(&pipe)?);
            if !child_keeps {
                drop(child.take());
            }
            // The fork has write-protected our own stack as well.
            touch_stack();
            Ok(())
        };
        let touch = move |pages: usize| touched.write(0..pages, 1);
        Ok(Touches::new(PAGES, Expected::OneEach, prepare, touch))
    });
    let case =
        Case::new(name, title, set_up).need(FOUR_KIB).own_tasks(OwnTasks::SameCpu).lap_length(PAGES as u64);
    with_fault_claims(case, Expected::OneEach)
}

/// Starts a child that sleeps until it is killed. When this returns, the child sleeps or is about to sleep.
fn start_sleeping_child(pipe: &(File, File)) -> Result<Child> {
    let child = Child::start(|| {
        let _ = (&pipe.1).write(&[0]);
        nix::unistd::pause();
    })?;
    let read = (&pipe.0).read_exact(&mut [0]);
    read.map_err(|cause| Error::Kernel { call: "read of a child's byte".into(), cause })?;
    syscall::sched_yield();
    Ok(child)
}

/// Writes to the part of the stack that the timed part will use.
#[inline(never)]
fn touch_stack() {
    std::hint::black_box([1u8; 8 << 10]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn huge_pages_are_used_in_turn() {
        let huge = |begin, pages| ranges_in_turn(begin, pages).map(|part| part.start / EACH..part.end / EACH);
        assert_eq!(huge(0, HUGE_PAGES), [0..HUGE_PAGES, 0..0]);
        assert_eq!(huge(3, 2), [3..5, 0..0]);
        assert_eq!(huge(HUGE_PAGES - 1, 3), [HUGE_PAGES - 1..HUGE_PAGES, 0..2]);
    }
}

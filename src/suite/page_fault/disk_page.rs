//! Faults that read the disk, and the second and third touch of the same pages.

use super::touch::Tally;
use crate::kit::contract::*;
use crate::kit::fault_count::{self, FAULTS_COUNTED, Faults};
use crate::platform::evictable::Evictable;
use crate::platform::region::{Order, PAGE};
use crate::platform::volume::tmpdir_advice;
use crate::statistic::Random;
use std::hint::black_box;
use std::ops::Range;
use std::path::PathBuf;

/// Pages that are touched in order while the kernel reads ahead: 1 MiB.
const EXTENT: usize = 256;

/// Which touch of a page is timed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Touch {
    /// The first after its eviction from the page cache.
    First,
    /// The touch after the first, with the mapping removed in between: the page is in the cache.
    Second,
    /// The touch after the second: the page is mapped.
    Third,
}

#[rustfmt::skip]
pub(super) fn cases() -> Vec<Case> {
    let disk = "an exception, a page allocated, the disk's answer, an interrupt, a wake-up";
    let ahead = "an exception and the disk's answer, then as much as is read ahead";
    vec![
        single_touch_case("major-random/first-touch", "a page touched at random, read from disk", Touch::First, true)
            .predict(150_000.0, 15_000.0, disk),
        single_touch_case("major-random/second-touch", "the same page, mapped anew", Touch::Second, true)
            .predict(700.0, 900.0, "an exception, a page found in the cache and entered"),
        single_touch_case("major-random/third-touch", "the same page once more", Touch::Third, true)
            .predict(60.0, 30.0, "a load, and the bracket of the clock around it"),
        single_touch_case("major-sequential/first-touch", "the next page touched, read from disk", Touch::First, false)
            .predict(150_000.0, 15_000.0, disk),
        read_ahead_case("major-random/read-ahead", "a page touched at random, read with what is around it", 1)
            .predict(2_000_000.0, 500_000.0, ahead),
        read_ahead_case("major-sequential/read-ahead", "1 MiB touched page by page, read ahead from disk", EXTENT)
            .predict(2_000_000.0, 600_000.0, ahead),
    ]
}

/// The length of the file, bytes: long enough that a run does not touch a page twice.
fn file_bytes(place: &Place) -> usize {
    match place.scale {
        Scale::Smoke => 8 << 20,
        Scale::Default => 32 << 20,
        Scale::Full => 512 << 20,
    }
}

/// A case of touches of single pages. The kernel is advised that the order is random, so it reads no other page.
fn single_touch_case(name: &str, title: &str, touch: Touch, random: bool) -> Case {
    let set_up = set_up(move |place| Ok(Single { walk: Walk::new(place, Order::Random, 1, random)?, touch }));
    let case = Case::new(name, title, set_up)
        .need(FOUR_KIB)
        .one_by_one()
        .claim(Claim::Checked(MARKED))
        .derived_figure("byte", Rule::OfCost(1.0 / PAGE as f64));
    match touch {
        Touch::First => with_disk_claims(case)
            .claim(Claim::Checked("every touch that was counted was one major fault and no other")),
        Touch::Second => case.claim(Claim::Checked("every touch that was counted was one minor fault")),
        Touch::Third => case.claim(Claim::Checked("no touch that was counted was a fault")),
    }
}

/// A case of touches in order, of a file with no page in the cache.
fn read_ahead_case(name: &str, title: &str, pages: usize) -> Case {
    let set_up =
        set_up(move |place| Ok(ReadAhead { walk: Walk::new(place, Order::Untold, pages, true)?, pages }));
    let case = Case::new(name, title, set_up).need(FOUR_KIB).one_by_one().claim(Claim::Checked(MARKED));
    let bytes = pages * PAGE;
    let case = with_disk_claims(case).derived_figure("byte", Rule::OfCost(1.0 / bytes as f64));
    if pages == 1 {
        return case;
    }
    case.derived_figure("fault", Rule::PerEvent)
        .derived_figure("touch", Rule::OfCost(1.0 / pages as f64))
        .derived_figure("read", Rule::Bandwidth(bytes as u64))
}

const MARKED: &str = "every byte that was touched is the one that was written to the file";

/// Adds the claims of cases that read from the disk.
fn with_disk_claims(case: Case) -> Case {
    case.claim(Claim::Checked(
        "before it was touched no page was in the page cache, by mincore and cachestat",
    ))
    .claim(Claim::Checked(
        "what was touched was charged to this thread as read from a device, where the kernel counts it",
    ))
    .claim(Claim::Counted(check_major_faults))
    .need(FAULTS_COUNTED)
}

/// The claim that there was at least one major fault per iteration, by the counters of the whole sample.
pub(super) fn check_major_faults(delta: &Delta, iterations: u64) -> Judged {
    let (minor, major) = (delta.counted.minor_faults, delta.counted.major_faults);
    if major < iterations {
        return Err(format!(
            "{major} major faults in {iterations} iterations: some of what was touched was in the page cache"
        ));
    }
    Ok(format!("{major} major and {minor} minor faults in {iterations} iterations"))
}

/// A file, the order in which its pages are touched, and the outcome.
struct Walk {
    file: Evictable,
    /// The pages at which iterations begin.
    order: Vec<usize>,
    at: usize,
    directory: PathBuf,
    /// The page at which the current iteration begins.
    page: usize,
    /// The faults of this thread before the current iteration.
    before: Faults,
    tally: Tally,
}

impl Walk {
    /// A walk over a new file in the scratch directory. An iteration covers `step` pages.
    fn new(place: &Place, advice: Order, step: usize, random: bool) -> Result<Self> {
        let mut file = Evictable::new(&place.scratch, file_bytes(place))?;
        file.region().advise_order(advice)?;
        file.evict()?; // reports whether it can be evicted
        let mut order: Vec<_> = (0..file.region().page_count() / step).map(|i| i * step).collect();
        if random {
            Random::new(order.len() as u64).shuffle(&mut order);
        }
        let directory = place.scratch.clone();
        let (at, page, before, tally) = Default::default();
        Ok(Self { file, order, at, directory, page, before, tally })
    }

    /// Moves to the next page of the order. After the last page the file is evicted again, and the order begins anew.
    fn advance_page(&mut self) -> Result<()> {
        if self.at == self.order.len() {
            self.file.evict()?;
            self.at = 0;
        }
        self.page = self.order[self.at];
        self.at += 1;
        Ok(())
    }

    /// The faults of the current iteration.
    fn iteration_faults(&self) -> Result<Faults> {
        Ok(Faults::count_so_far()?.since(self.before))
    }

    /// Counts a touch as discarded, because it was another kind of fault. Too many of these are an error.
    fn leave_out_touch(&mut self, faults: Faults) -> Result<Counts> {
        self.tally.leave_out(faults).map_err(|told| {
            Error::Missing(format!(
                "{told}: the files of {} come from elsewhere than a disk; {}",
                self.directory.display(),
                tmpdir_advice(self.file.region().page_count() as u64 * PAGE as u64)
            ))
        })
    }

    fn report(&self) -> Report {
        let mut report = self.tally.report();
        report.evidence.extend(self.file.shrink_reason().map(str::to_owned));
        report
    }
}

/// Checks that the bytes that this thread has read from devices have grown by those of these pages since `before`.
fn check_device_reads(walk: &Walk, before: Option<u64>, pages: u64) -> Result<()> {
    let (Some(before), Some(after)) = (before, fault_count::bytes_read_from_devices()) else { return Ok(()) };
    let (read, least) = (after - before, pages * PAGE as u64);
    if read >= least {
        return Ok(());
    }
    Err(Error::Missing(format!(
        "the kernel counts {read} bytes read from devices where at least {least} were touched for the first time: the \
         files of {} do not come from a disk; {}",
        walk.directory.display(),
        tmpdir_advice(walk.file.region().page_count() as u64 * PAGE as u64)
    )))
}

/// Checks that the first byte of a page is the one that was written.
fn check_mark(page: usize, byte: u8) -> Result<()> {
    let mark = Evictable::first_byte_of(page);
    if byte == mark {
        return Ok(());
    }
    Err(Error::Disproved(format!("page {page} of the file begins with {byte} where {mark} was written")))
}

/// Touches of single pages.
struct Single {
    walk: Walk,
    touch: Touch,
}

impl Single {
    /// Performs the touches that come before the timed one.
    fn prepare_touch(&mut self) -> Result<()> {
        self.walk.advance_page()?;
        let (region, page) = (self.walk.file.region(), self.walk.page);
        if self.touch != Touch::First {
            black_box(region.read_first_byte(page));
            region.discard(page..page + 1)?;
        }
        if self.touch == Touch::Third {
            black_box(region.read_first_byte(page));
        }
        self.walk.before = Faults::count_so_far()?;
        Ok(())
    }

    fn expected_faults(&self) -> Faults {
        let (minor, major) = match self.touch {
            Touch::First => (0, 1),
            Touch::Second => (1, 0),
            Touch::Third => (0, 0),
        };
        Faults { minor, major }
    }

    fn check_touch(&mut self, byte: u8) -> Result<Counts> {
        let faults = self.walk.iteration_faults()?;
        check_mark(self.walk.page, byte)?;
        if faults == self.expected_faults() {
            Ok(self.walk.tally.count(1, faults))
        } else {
            self.walk.leave_out_touch(faults)
        }
    }
}

impl Subject for Single {
    fn run(&mut self, iterations: u64, clock: &Clock) -> Result<Ticks> {
        let charged_before = fault_count::bytes_read_from_devices();
        self.walk.tally.last = 0;
        let touch = |single: &mut Self| single.walk.file.region().read_first_byte(single.walk.page);
        let ticks = clock.time_each(iterations, self, Self::prepare_touch, touch, Self::check_touch)?;
        check_device_reads(&self.walk, charged_before, iterations).map(|()| ticks)
    }

    fn report(&self) -> Report {
        self.walk.report()
    }
}

/// Touches of pages in order, with the kernel's own read-ahead.
struct ReadAhead {
    walk: Walk,
    pages: usize,
}

impl ReadAhead {
    fn page_range(&self) -> Range<usize> {
        self.walk.page..self.walk.page + self.pages
    }

    fn check_extent(&mut self, found: u64, charged_before: Option<u64>) -> Result<Counts> {
        let (faults, pages) = (self.walk.iteration_faults()?, self.pages);
        let written: u64 = self.page_range().map(|page| u64::from(Evictable::first_byte_of(page))).sum();
        if found != written {
            return Err(Error::Disproved(format!("{pages} bytes sum up to {found}, {written} were written")));
        }
        if faults.major == 0 {
            return self.walk.leave_out_touch(faults);
        }
        check_device_reads(&self.walk, charged_before, pages as u64)?;
        Ok(self.walk.tally.count(pages as u64, faults))
    }
}

impl Subject for ReadAhead {
    fn run(&mut self, iterations: u64, clock: &Clock) -> Result<Ticks> {
        self.walk.tally.last = 0;
        clock.time_each(
            iterations,
            &mut (self, None),
            |(this, charged)| {
                this.walk.advance_page()?;
                this.walk.file.evict()?;
                (*charged, this.walk.before) =
                    (fault_count::bytes_read_from_devices(), Faults::count_so_far()?);
                Ok(())
            },
            |(this, _)| this.walk.file.region().read(this.page_range(), 1),
            |(this, charged), found| this.check_extent(found, *charged),
        )
    }

    fn report(&self) -> Report {
        self.walk.report()
    }
}

#[cfg(test)]
mod tests;

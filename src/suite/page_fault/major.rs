//! Faults that wait for the disk, and the second and the third touch of the same pages.

use super::touch::told;
use crate::case::need::FOUR_KIB;
use crate::case::{Case, Claim, Place, Report, Rule, Scale, SetUp, Subject};
use crate::clock::{Clock, Delta, Ticks};
use crate::kit::evictable::Evictable;
use crate::kit::fault_count::{self, Faults};
use crate::platform::region::{Order, PAGE};
use crate::platform::volume::elsewhere;
use crate::statistic::Random;
use crate::{Error, Result};
use std::hint::black_box;
use std::path::PathBuf;

/// Pages that are touched one after the other where the kernel reads ahead: 1 MiB.
const EXTENT: usize = 256;

/// Which touch of a page is timed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Touch {
    /// The first after it was put out of the page cache.
    First,
    /// The next after its mapping was taken away: the page is in the cache.
    Second,
    /// One more: the page is mapped.
    Third,
}

pub(super) fn cases() -> Vec<Case> {
    let disk = "an exception, a page allocated, the disk's answer, an interrupt, a wake-up";
    let ahead = "an exception and the disk's answer, then as much as is read ahead";
    vec![
        single("major-random/first-touch", "a page touched at random, read from disk", Touch::First, true)
            .predict(150_000.0, 15_000.0, disk),
        single("major-random/second-touch", "the same page, mapped anew", Touch::Second, true).predict(
            700.0,
            900.0,
            "an exception, a page found in the cache and entered",
        ),
        single("major-random/third-touch", "the same page once more", Touch::Third, true).predict(
            60.0,
            30.0,
            "a load, and the bracket of the clock around it",
        ),
        single("major-sequential/first-touch", "the next page touched, read from disk", Touch::First, false)
            .predict(150_000.0, 15_000.0, disk),
        read_ahead("major-random/read-ahead", "a page touched at random, read with what is around it", 1)
            .predict(2_000_000.0, 500_000.0, ahead),
        read_ahead("major-sequential/read-ahead", "1 MiB touched page by page, read ahead from disk", EXTENT)
            .predict(2_000_000.0, 600_000.0, ahead),
    ]
}

/// The size of the file that is touched: large enough that a run does not come round.
fn size(place: &Place) -> usize {
    match place.scale {
        Scale::Smoke => 8 << 20,
        Scale::Default => 32 << 20,
        Scale::Full => 512 << 20,
    }
}

/// One page a touch: the kernel is told that the order is random, so that it reads no other.
fn single(name: &str, title: &str, touch: Touch, random: bool) -> Case {
    let set_up: SetUp = Box::new(move |place: &Place| {
        let walk = Walk::new(place, Order::Random, 1, random)?;
        Ok(Box::new(Single { walk, touch }) as Box<dyn Subject>)
    });
    let case = Case::new(name, title, set_up)
        .need(FOUR_KIB)
        .one_by_one()
        .claim(Claim::Checked(MARKED))
        .derive("byte", Rule::OfCost(1.0 / PAGE as f64));
    match touch {
        Touch::First => from_disk(case)
            .claim(Claim::Checked("every touch that was counted was one major fault and no other")),
        Touch::Second => case.claim(Claim::Checked("every touch that was counted was one minor fault")),
        Touch::Third => case.claim(Claim::Checked("no touch that was counted was a fault")),
    }
}

/// So many pages one after the other, of a file of which nothing is in the cache.
fn read_ahead(name: &str, title: &str, pages: usize) -> Case {
    let set_up: SetUp = Box::new(move |place: &Place| {
        let walk = Walk::new(place, Order::Untold, pages, true)?;
        Ok(Box::new(ReadAhead { walk, pages }) as Box<dyn Subject>)
    });
    let case = Case::new(name, title, set_up).need(FOUR_KIB).one_by_one().claim(Claim::Checked(MARKED));
    let bytes = pages * PAGE;
    let case = from_disk(case).derive("byte", Rule::OfCost(1.0 / bytes as f64));
    if pages == 1 {
        return case;
    }
    case.derive("fault", Rule::PerEvent)
        .derive("touch", Rule::OfCost(1.0 / pages as f64))
        .derive("read", Rule::Bandwidth(bytes as u64))
}

const MARKED: &str = "every byte that was touched is the one that was written to the file";

/// What is claimed of whatever is read from a disk.
fn from_disk(case: Case) -> Case {
    case.claim(Claim::Checked(
        "before it was touched no page was in the page cache, by mincore and cachestat",
    ))
    .claim(Claim::Checked(
        "what was touched was charged to this thread as read from a device, where it is told",
    ))
    .claim(Claim::Counted(waited))
}

/// One major fault an iteration at least, by the counters of the whole sample.
fn waited(delta: &Delta, iterations: u64) -> std::result::Result<String, String> {
    let (minor, major) = (delta.counted.minor_faults, delta.counted.major_faults);
    if major < iterations {
        return Err(format!(
            "{major} major faults in {iterations} iterations: what was touched did not come from a device"
        ));
    }
    Ok(format!("{major} major and {minor} minor faults in {iterations} iterations"))
}

/// A file, the order in which its pages are touched, and what came of it.
struct Walk {
    file: Evictable,
    /// Pages to begin at.
    order: Vec<usize>,
    at: usize,
    directory: PathBuf,
    /// Touches that were counted, and their faults.
    touches: u64,
    faults: Faults,
    /// Faults of the last run.
    last: u64,
    /// Touches that were not what they had to be, and were done again.
    left_out: u64,
}

impl Walk {
    /// Over a file in the place's scratch directory, in steps of so many pages.
    fn new(place: &Place, told: Order, step: usize, random: bool) -> Result<Self> {
        let mut file = Evictable::new(&place.scratch, size(place))?;
        file.region().expect(told)?;
        file.evict()?; // here it is known whether it can be
        let mut order: Vec<_> = (0..file.region().pages() / step).map(|i| i * step).collect();
        if random {
            Random::new(order.len() as u64).shuffle(&mut order);
        }
        let directory = place.scratch.clone();
        let faults = Faults::default();
        Ok(Self { file, order, at: 0, directory, touches: 0, faults, last: 0, left_out: 0 })
    }

    /// Where to touch next. Who comes round begins with a file that is put out of the cache again.
    fn next(&mut self) -> Result<usize> {
        if self.at == self.order.len() {
            self.file.evict()?;
            self.at = 0;
        }
        self.at += 1;
        Ok(self.order[self.at - 1])
    }

    fn count(&mut self, touches: u64, faults: Faults) {
        self.touches += touches;
        self.faults += faults;
        self.last += faults.all();
    }

    /// A touch that was something else than it had to be is not counted. There may not be many.
    fn leave_out(&mut self, faults: Faults) -> Result<()> {
        self.left_out += 1;
        if self.left_out <= 16 + self.touches {
            return Ok(());
        }
        Err(Error::Missing(format!(
            "{} of {} touches were not the fault that they had to be (the last: {} minor, {} major): the files of {} \
             come from elsewhere than a disk; {}",
            self.left_out,
            self.left_out + self.touches,
            faults.minor,
            faults.major,
            self.directory.display(),
            elsewhere(self.file.region().pages() as u64 * PAGE as u64)
        )))
    }

    fn evidence(&self) -> Vec<String> {
        let mut said = vec![told(self.touches, self.faults)];
        if self.left_out > 0 {
            said.push(format!("{} touches were something else, and left out", self.left_out));
        }
        said.extend(self.file.shrunk().map(str::to_owned));
        said
    }
}

/// Bytes of a device that this thread was charged with must have grown by these.
fn charged(walk: &Walk, before: Option<u64>, pages: u64) -> Result<()> {
    let (Some(before), Some(after)) = (before, fault_count::read_from_devices()) else { return Ok(()) };
    let (read, least) = (after - before, pages * PAGE as u64);
    if read >= least {
        return Ok(());
    }
    Err(Error::Missing(format!(
        "the kernel counts {read} bytes read from devices where at least {least} were touched for the first time: the \
         files of {} do not come from a disk; {}",
        walk.directory.display(),
        elsewhere(walk.file.region().pages() as u64 * PAGE as u64)
    )))
}

/// The byte of a page must be the one that was written there.
fn marked(page: usize, byte: u8) -> Result<()> {
    let mark = Evictable::mark(page);
    if byte == mark {
        return Ok(());
    }
    Err(Error::Usage(format!("page {page} of the file begins with {byte} where {mark} was written")))
}

/// Touches of single pages.
struct Single {
    walk: Walk,
    touch: Touch,
}

impl Single {
    /// Touches the page as often as it must be before the touch that is timed.
    fn prepare(&self, page: usize) -> Result<()> {
        let region = self.walk.file.region();
        if self.touch != Touch::First {
            black_box(region.byte(page));
            region.discard(page..page + 1)?;
        }
        if self.touch == Touch::Third {
            black_box(region.byte(page));
        }
        Ok(())
    }

    fn is(&self, faults: Faults) -> bool {
        let (minor, major) = match self.touch {
            Touch::First => (0, 1),
            Touch::Second => (1, 0),
            Touch::Third => (0, 0),
        };
        faults == Faults { minor, major }
    }
}

impl Subject for Single {
    fn run(&mut self, iterations: u64, clock: &Clock) -> Result<Ticks> {
        let (mut sum, mut done) = (Ticks(0), 0);
        let charged_before = fault_count::read_from_devices();
        self.walk.last = 0;
        while done < iterations {
            let page = self.walk.next()?;
            self.prepare(page)?;
            let before = Faults::so_far()?;
            let start = clock.start();
            let byte = black_box(self.walk.file.region().byte(page));
            let ticks = clock.stop() - start;
            let faults = Faults::so_far()?.since(before);
            marked(page, byte)?;
            if !self.is(faults) {
                self.walk.leave_out(faults)?;
                continue;
            }
            self.walk.count(1, faults);
            sum += clock.note(ticks);
            done += 1;
        }
        charged(&self.walk, charged_before, iterations)?;
        Ok(sum)
    }

    fn report(&self) -> Report {
        Report { events: Some(self.walk.last), evidence: self.walk.evidence(), ..Report::default() }
    }
}

/// Touches of pages in a row, where the kernel reads ahead of them as it likes.
struct ReadAhead {
    walk: Walk,
    pages: usize,
}

impl Subject for ReadAhead {
    fn run(&mut self, iterations: u64, clock: &Clock) -> Result<Ticks> {
        let (mut sum, mut done, pages) = (Ticks(0), 0, self.pages);
        self.walk.last = 0;
        while done < iterations {
            let first = self.walk.next()?;
            self.walk.file.evict()?;
            let (charged_before, before) = (fault_count::read_from_devices(), Faults::so_far()?);
            let region = self.walk.file.region();
            let start = clock.start();
            let found = black_box(region.read(first..first + pages, 1));
            let ticks = clock.stop() - start;
            let faults = Faults::so_far()?.since(before);
            let written: u64 = (first..first + pages).map(|page| u64::from(Evictable::mark(page))).sum();
            if found != written {
                return Err(Error::Usage(format!("{pages} bytes sum up to {found}, {written} were written")));
            }
            if faults.major == 0 {
                self.walk.leave_out(faults)?;
                continue;
            }
            self.walk.count(pages as u64, faults);
            charged(&self.walk, charged_before, pages as u64)?;
            sum += clock.note(ticks);
            done += 1;
        }
        Ok(sum)
    }

    fn report(&self) -> Report {
        Report { events: Some(self.walk.last), evidence: self.walk.evidence(), ..Report::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Reading;

    #[test]
    fn a_sample_without_a_major_fault_each_is_not_believed() {
        let sample = |major_faults| {
            let counted = Reading { major_faults, minor_faults: 7, ..Reading::default() };
            waited(&Delta { counted, ..Delta::default() }, 10)
        };
        assert!(sample(10).is_ok() && sample(9).is_err());
    }

    #[test]
    fn a_byte_of_another_page_is_noticed() {
        assert!(marked(7, Evictable::mark(7)).is_ok() && marked(7, Evictable::mark(8)).is_err());
    }

    fn walked(touch: Touch) -> Option<Single> {
        let scratch = tempfile::tempdir().expect("a directory");
        let place =
            Place { scratch: scratch.path().into(), scale: Scale::Smoke, cpus: crate::case::Cpus::default() };
        match Walk::new(&place, Order::Random, 1, true) {
            Err(Error::Missing(_)) => None, // here is no disk
            walk => Some(Single { walk: walk.expect("a walk"), touch }),
        }
    }

    #[test]
    fn each_touch_is_the_fault_that_its_name_says() {
        let clock = Clock::fallback(crate::platform::arch::Unfit::Declined);
        for (touch, faults) in [(Touch::First, 20), (Touch::Second, 20), (Touch::Third, 0)] {
            let Some(mut single) = walked(touch) else { return };
            single.run(20, &clock).expect("touched");
            assert_eq!(single.report().events, Some(faults), "{touch:?}");
        }
    }

    #[test]
    fn a_page_that_is_cached_is_no_first_touch() {
        let clock = Clock::fallback(crate::platform::arch::Unfit::Declined);
        let Some(mut single) = walked(Touch::First) else { return };
        let pages = single.walk.file.region().pages();
        single.walk.file.region().read(0..pages, 1);
        single.walk.file.region().discard(0..pages).expect("unmapped");
        let Err(Error::Missing(sentence)) = single.run(pages as u64 / 2, &clock) else { panic!("believed") };
        assert!(
            sentence.contains("not the fault that they had to be") && sentence.contains("TMPDIR"),
            "{sentence}"
        );
    }
}

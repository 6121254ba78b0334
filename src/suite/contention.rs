//! # What is timed
//! Reading one block of a file while other processes read, too: the same 4 KiB past the page cache (`O_DIRECT`), while
//! N other processes read files of their own of 64 KiB, 4 KiB at a time, past the cache too and without a pause:
//! `others/N`, N from 0 to 9.
//!
//! # What is not
//! Making the files, and starting the processes. They run on the other CPUs in turn, so they compete for the disk and
//! not for the measuring CPU.
//!
//! # How we know
//! After every batch `/proc/self/io` must have grown by exactly the bytes that were asked for; the others are
//! processes with accounts of their own. Each of them counts its blocks, and must have read some in every twentieth
//! of a second. Each block begins with its own number. No process may leave its CPU, or end.
//!
//! # What fools it
//! A disk that serves several requests at once (all but rotating ones) hardly slows down until its queue is full, and
//! with few CPUs the others cannot submit enough: nine of them on one CPU keep it busy, and each submits less. A
//! virtual disk that is limited to a number of operations per second divides them. The disk's cache holds all these
//! files.
//!
//! # Reading the number
//! The answer is the median and the percentiles against the number of others. `fairness` below the table is Jain's
//! index of the blocks that the others have read (1: all read the same; 1/N: one read all), and `others` how many
//! blocks they read per second together.
//!
//! # Source
//! CSE 221 project report (a block of 4 KiB a thousand times, beside 0 to 9 processes with files of 64 KiB). R. Jain,
//! D. Chiu, W. Hawe, *A Quantitative Measure of Fairness* (1984).

use crate::kit::blocks::{Blocks, DISK, FROM_DEVICE, OWN_NUMBER, Pattern, claim_blocks_read};
use crate::kit::contract::*;
use crate::platform::partner::{Class, Kind, Partner};
use crate::platform::pattern_file::{self, PatternFile, Way};
use crate::platform::proc::Source;
use crate::platform::shared::Words;
use memmap2::MmapMut;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

pub const GROUP: Group = Group::new("contention", include_str!("contention.rs"), cases)
    .curves(&[Curve::new("contention/others/", "a block", Axis::Count("other readers"))])
    .headlines(&[Headline::new(62, "others/1", "4 KiB from disk, beside a reader")]);

const BLOCK: usize = 4 << 10;
const FILE: u64 = 64 << 10;
/// The interval over which the blocks of the others are counted and compared.
const WINDOW: Duration = Duration::from_millis(50);

fn cases() -> Vec<Case> {
    (0..10).map(case_with_others).collect()
}

fn case_with_others(others: usize) -> Case {
    let title = match others {
        0 => "4 KiB past the page cache, alone".to_owned(),
        1 => "4 KiB past the page cache, beside another reader".to_owned(),
        _ => format!("4 KiB past the page cache, beside {others} other readers"),
    };
    let set_up = set_up(move |place| Contention::new(place, others));
    let case = Case::new(format!("others/{others}"), title, set_up).need(DISK).need(PINNED);
    let case = if others == 0 { case } else { case.need(TWO_CPUS).claim(Claim::Checked(ALL_READ)) };
    case.one_by_one()
        .own_tasks(OwnTasks::Elsewhere)
        .derived_figure("rate", Rule::Rate)
        .claim(Claim::Checked(FROM_DEVICE))
        .claim(claim_blocks_read(BLOCK))
        .claim(Claim::Checked(OWN_NUMBER))
        .predict(180_000.0, 12_000.0 + 6_000.0 * others as f64, "as alone, and a queue before the disk")
}

const ALL_READ: &str = "each of the others read on, on its CPU, in every twentieth of a second";

struct Contention {
    own: Blocks,
    buffer: MmapMut,
    others: Vec<Partner>,
    /// The blocks that each of the others has read.
    counts: Arc<Words>,
    /// The counts at the beginning of the window.
    before: Vec<u32>,
    since: Instant,
    /// Jain's index of each window.
    fairness: Vec<f64>,
    /// Blocks per second of all others in each window.
    rates: Vec<f64>,
}

impl Contention {
    fn new(place: &Place, count: usize) -> Result<Self> {
        let file = PatternFile::create_filled(&place.scratch, FILE, Way::Direct)?;
        let own = Blocks::new(file, Pattern::Sequential, BLOCK, Source::Device)?;
        let counts = Arc::new(Words::new()?);
        let others =
            (0..count).map(|index| start_other_reader(place, index, &counts)).collect::<Result<_>>()?;
        let buffer = pattern_file::map_buffer(BLOCK)?;
        let (before, since) = (vec![0; count], Instant::now());
        Ok(Self { own, buffer, others, counts, before, since, fairness: Vec::new(), rates: Vec::new() })
    }

    /// Verifies that the other readers have not ended, and, at the end of a window, that each has read in it.
    fn check_others(&mut self) -> Result<()> {
        if let Some(fate) = self.others.iter_mut().find_map(Partner::fate) {
            return Err(fate.into_error("another reader: "));
        }
        let elapsed = self.since.elapsed();
        if self.others.is_empty() || elapsed < WINDOW {
            return Ok(());
        }
        let now: Vec<_> =
            self.counts[..self.others.len()].iter().map(|word| word.value.load(Relaxed)).collect();
        let read: Vec<_> =
            now.iter().zip(&self.before).map(|(now, before)| f64::from(now.wrapping_sub(*before))).collect();
        self.fairness.push(fairness_index(&read).map_err(Error::Disturbed)?);
        self.rates.push(read.iter().sum::<f64>() / elapsed.as_secs_f64());
        (self.before, self.since) = (now, Instant::now());
        Ok(())
    }
}

/// Jain's index of these shares: the square of their sum over their number times the sum of their squares.
fn fairness_index(shares: &[f64]) -> std::result::Result<f64, String> {
    if let Some(idle) = shares.iter().position(|share| *share == 0.0) {
        return Err(format!("reader {idle} of the others has read nothing for a twentieth of a second"));
    }
    let (sum, squares) = shares.iter().fold((0.0, 0.0), |(s, q), share| (s + share, q + share * share));
    Ok(sum * sum / (shares.len() as f64 * squares))
}

/// Starts a process that reads a file of its own until it is ended.
fn start_other_reader(place: &Place, index: usize, counts: &Arc<Words>) -> Result<Partner> {
    let cpu = place.cpus.others[index % place.cpus.others.len().max(1)];
    let file = PatternFile::create_filled(&place.scratch, FILE, Way::Direct)?;
    let mut buffer = pattern_file::map_buffer(BLOCK)?;
    let (counts, mut offset) = (Arc::clone(counts), 0);
    let step = move || match file.file().read_at(&mut buffer, offset) {
        Ok(BLOCK) if pattern_file::is_pattern_at(&buffer, offset) => {
            offset = (offset + BLOCK as u64) % FILE;
            counts[index].value.fetch_add(1, Relaxed);
            0
        }
        Ok(_) => -i64::from(libc::EIO),
        Err(error) => -i64::from(error.raw_os_error().unwrap_or(libc::EIO)),
    };
    Partner::start(Kind::Process, (cpu, Class::Ordinary), step, || ())
}

impl Subject for Contention {
    fn run(&mut self, iterations: u64, clock: &Clock) -> Result<Ticks> {
        self.own.proof.begin_batch()?;
        let ticks = clock.time_each(
            iterations,
            self,
            |_| Ok(()),
            |contention| contention.own.file.file().read_at(&mut contention.buffer, 0),
            |contention, got| {
                contention.own.file.check_block(got, &contention.buffer, 0)?;
                Ok(Counts::Yes)
            },
        )?;
        self.own.prove_batch(iterations, 0)?;
        self.check_others().map(|()| ticks)
    }

    fn report(&self) -> Report {
        let mut report =
            Report { partners: self.others.iter().map(Partner::task).collect(), ..Report::default() };
        if self.rates.is_empty() {
            return report;
        }
        let fairness = (self.others.len() > 1).then(|| Found::new("fairness", "", self.fairness.clone()));
        report.found = fairness.into_iter().chain([Found::new("others", "/s", self.rates.clone())]).collect();
        report
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_shares_are_fair_and_a_single_one_is_not() {
        assert_eq!(fairness_index(&[5.0, 5.0, 5.0]), Ok(1.0));
        assert!((fairness_index(&[1.0, 3.0]).expect("both") - 0.8).abs() < 1e-12);
        assert!(fairness_index(&[1e9, 1e-9]).expect("both") < 0.51);
    }

    #[test]
    fn a_reader_that_does_not_read_is_an_error() {
        assert!(fairness_index(&[7.0, 0.0]).expect_err("idle").contains("reader 1"));
    }
}

//! Copies of a case that run at the same time: processes of one program, each on a CPU of its own (`-P N`, as lmbench has it).
//!
//! The copies share a [`Table`] with a row for each, and take their samples in rounds:
//!
//! 1. All copies wait until the last one arrives. The first copy times a batch alone, while the others sleep.
//! 2. All copies wait for each other again, read their counters, and begin a batch of the same length at the same moment.
//! 3. A copy that has ended its batch reads its counters, then runs further small batches until all copies have ended theirs.
//!
//! Each copy writes into its row when its batch began and ended, and when its further batches did. A round counts if each other
//! copy ran during most of every copy's batch (module `round`). All copies judge the same numbers, so either all or none of
//! them keep a round.

mod round;

use super::CaseEnd;
use crate::case::{Cpus, Need, Place};
use crate::error::{Error, Result};
use crate::platform::process::inheritance::duplicate_inherited;
use crate::platform::shared::Table;
use crate::platform::{signal, time};
use std::os::fd::RawFd;
use std::sync::atomic::Ordering::{Acquire, Release};
use std::time::{Duration, Instant};

/// The longest wait for another copy: less than the silence after which the driver takes a process for hung.
const LONGEST_WAIT: Duration = Duration::from_secs(100);
/// Sleep between two looks at the other copies.
const POLL_INTERVAL: Duration = Duration::from_micros(100);
/// How long a copy spins while it waits for copies that are about to arrive; then it sleeps.
const SPIN_TIME: Duration = Duration::from_millis(2);

/// Beginning of the reason of a copy that ends a case because another copy has ended it. The case's reason is that of the other
/// copy.
pub const LEFT: &str = "another copy has ended the case";

pub(super) use round::Accompanied;

/// The name of the figure for the cost of an iteration in the first copy while the others sleep.
pub const ALONE: &str = "alone";

/// The columns of a row.
#[derive(Clone, Copy)]
enum Column {
    /// Progress of the copy: the number of its case in the upper 32 bits, the number of its step in the lower. It only grows.
    Phase,
    Began,
    Ended,
    WentOn,
    Stayed,
    /// Time of the round for which the copy was ready and another task had its CPU, ns.
    Waited,
    /// Iterations of a sample, which the first copy has chosen for all copies.
    Iterations,
    Samples,
}

/// The phase of a copy whose process has ended.
const GONE: u64 = u64::MAX;

/// Tells the other copies that the process of this one has ended.
pub fn mark_gone(table: &Table, copy: usize) {
    table[copy][Column::Phase as usize].store(GONE, Release);
}

/// The copies of a run, as one of them sees them.
pub struct OtherCopies {
    table: Table,
    own: usize,
    /// The CPUs of the copies.
    pub cpus: Vec<usize>,
}

/// The times of one copy in a round, ns.
#[derive(Clone, Copy, Debug)]
struct Times {
    batch: [u64; 2],
    after: [u64; 2],
    waited: u64,
}

impl OtherCopies {
    /// The copies on these CPUs, as seen by the copy number `own`.
    pub fn new(table: Table, own: usize, cpus: Vec<usize>) -> Self {
        Self { table, own, cpus }
    }

    /// As [`OtherCopies::new`], with the table's file inherited as this descriptor, which is closed.
    ///
    /// # Errors
    /// Nothing was inherited under this number, or the table cannot be mapped.
    pub fn inherit(number: RawFd, own: usize, cpus: &[usize]) -> Result<Self> {
        let file =
            duplicate_inherited(number).map_err(|e| Error::file("the table of the copies", "opening", e))?;
        // Closed, so that a case has as many open descriptors as without copies.
        nix::unistd::close(number).map_err(|e| Error::from_errno("close of the copies' table", e))?;
        Ok(Self::new(Table::map(&file, cpus.len())?, own, cpus.to_vec()))
    }

    pub(super) fn is_first(&self) -> bool {
        self.own == 0
    }

    /// The sentence for skipping the case, if this process does not meet the need only because each copy has one CPU.
    pub(super) fn skip_sentence(&self, need: &Need, place: &Place) -> Option<String> {
        let others = self.cpus.iter().copied().filter(|&cpu| cpu != self.cpus[self.own]).collect();
        let with_all = Place { cpus: Cpus { others, ..place.cpus.clone() }, ..place.clone() };
        need.check_place(&with_all).ok()?;
        Some(format!(
            "it runs tasks on several CPUs by itself, and each of the {} copies has one: leave out -P",
            self.count()
        ))
    }

    /// The number of copies.
    pub fn count(&self) -> usize {
        self.table.len()
    }

    fn read(&self, copy: usize, column: Column) -> u64 {
        self.table[copy][column as usize].load(Acquire)
    }

    fn write(&self, column: Column, value: u64) {
        self.table[self.own][column as usize].store(value, Release);
    }

    fn advance(&self) -> u64 {
        let phase = self.read(self.own, Column::Phase) + 1;
        self.write(Column::Phase, phase);
        phase
    }

    /// Ends the case for this copy: other copies no longer wait for it.
    pub fn leave_case(&self) {
        let case = self.read(self.own, Column::Phase) >> 32;
        self.write(Column::Phase, (case + 1) << 32);
    }

    /// Whether the process of another copy has ended.
    pub fn is_broken(&self) -> bool {
        (0..self.count()).any(|copy| self.read(copy, Column::Phase) == GONE)
    }

    fn have_all_reached(&self, phase: u64) -> bool {
        (0..self.count()).all(|copy| self.read(copy, Column::Phase) >= phase)
    }

    /// Waits until all other copies have reached the same step as this one, or have left the case.
    fn meet(&self, are_near: bool) -> std::result::Result<(), CaseEnd> {
        let (phase, began) = (self.advance(), Instant::now());
        while !self.have_all_reached(phase) {
            check_patience(began)?;
            if are_near && began.elapsed() < SPIN_TIME {
                std::hint::spin_loop();
            } else {
                std::thread::sleep(POLL_INTERVAL);
            }
        }
        Ok(())
    }

    /// Waits, asleep, until all copies have reached the same step. None of them can have ended the case with a result by then.
    ///
    /// # Errors
    /// One of them has ended the case without a result, or does not arrive in time.
    pub fn meet_all(&self) -> std::result::Result<(), CaseEnd> {
        self.meet(false)?;
        let case = self.read(self.own, Column::Phase) >> 32;
        match (0..self.count()).find(|&copy| self.read(copy, Column::Phase) >> 32 > case) {
            Some(copy) => Err(CaseEnd::Disturbed(format!("{LEFT}: that on CPU {}", self.cpus[copy]))),
            None => Ok(()),
        }
    }

    /// The number of samples and their iterations for all copies: those of the first one.
    ///
    /// # Errors
    /// As of [`OtherCopies::meet_all`].
    pub fn agree(&self, (samples, iterations): (usize, u64)) -> std::result::Result<(usize, u64), CaseEnd> {
        if self.is_first() {
            self.write(Column::Samples, samples as u64);
            self.write(Column::Iterations, iterations);
        }
        self.meet_all()?;
        Ok((self.read(0, Column::Samples) as usize, self.read(0, Column::Iterations)))
    }

    /// Begins a batch together with the other copies.
    ///
    /// # Errors
    /// One of them does not arrive in time.
    pub fn begin_batch(&self) -> std::result::Result<(), CaseEnd> {
        self.meet(true)?;
        self.mark_begin();
        Ok(())
    }

    /// Writes the time at which the batch of this copy begins into its row.
    pub fn mark_begin(&self) {
        self.write(Column::Began, time::monotonic_raw_ns());
    }

    /// Ends the batch of this copy.
    pub fn end_batch(&self) {
        self.write(Column::Ended, time::monotonic_raw_ns());
        self.advance();
    }

    /// Repeats `batch` until all copies have ended theirs. `waited_ns` is how long this copy waited for its CPU.
    ///
    /// # Errors
    /// `batch` fails, or another copy does not end.
    pub fn keep_company(
        &self,
        waited_ns: u64,
        mut batch: impl FnMut() -> std::result::Result<(), CaseEnd>,
    ) -> std::result::Result<(), CaseEnd> {
        let (phase, began) = (self.read(self.own, Column::Phase), Instant::now());
        self.write(Column::WentOn, time::monotonic_raw_ns());
        while !self.have_all_reached(phase) {
            check_patience(began)?;
            batch()?;
        }
        self.write(Column::Stayed, time::monotonic_raw_ns());
        self.write(Column::Waited, waited_ns);
        self.meet(true)
    }

    fn times(&self) -> Vec<Times> {
        let times = |copy| Times {
            batch: [self.read(copy, Column::Began), self.read(copy, Column::Ended)],
            after: [self.read(copy, Column::WentOn), self.read(copy, Column::Stayed)],
            waited: self.read(copy, Column::Waited),
        };
        (0..self.count()).map(times).collect()
    }
}

fn check_patience(began: Instant) -> std::result::Result<(), CaseEnd> {
    if signal::pending().is_some() {
        return Err(CaseEnd::Interrupted);
    }
    if began.elapsed() > LONGEST_WAIT {
        let seconds = LONGEST_WAIT.as_secs();
        return Err(CaseEnd::Disturbed(format!("{LEFT}, or hangs: it did not come within {seconds} s")));
    }
    Ok(())
}

/// Length of the overlap of two intervals, ns.
fn common_ns(one: [u64; 2], other: [u64; 2]) -> u64 {
    one[1].min(other[1]).saturating_sub(one[0].max(other[0]))
}

/// The smallest share of a copy's batch during which another copy ran, over all pairs of copies.
fn least_company(copies: &[Times]) -> f64 {
    let share = |own: &Times, other: &Times| {
        let common = common_ns(own.batch, other.batch) + common_ns(own.batch, other.after);
        common as f64 / own.batch[1].saturating_sub(own.batch[0]).max(1) as f64
    };
    let shares = copies.iter().enumerate().flat_map(|(at, own)| {
        let others = copies.iter().enumerate().filter(move |(other, _)| *other != at);
        others.map(move |(_, other)| share(own, other))
    });
    shares.fold(1.0, f64::min)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(batch: [u64; 2], after: [u64; 2]) -> Times {
        Times { batch, after, waited: 0 }
    }

    #[test]
    fn company_is_the_overlap_with_the_other_copys_batch_and_further_batches() {
        let whole = [times([0, 100], [110, 130]), times([0, 120], [125, 130])];
        // The longer batch has no company during the 10 ns in which the other copy read its counters.
        assert!((least_company(&whole) - 110.0 / 120.0).abs() < 1e-9);
        let one_after_the_other = [times([0, 100], [100, 100]), times([100, 200], [200, 200])];
        assert_eq!(least_company(&one_after_the_other), 0.0);
        let three = [times([0, 100], [0, 0]), times([0, 100], [0, 0]), times([50, 150], [0, 0])];
        assert_eq!(least_company(&three), 0.5);
        assert_eq!(
            least_company(&[times([300, 400], [400, 400]), times([0, 100], [100, 100])]),
            0.0,
            "an old row"
        );
    }

    pub(super) fn pair() -> [OtherCopies; 2] {
        let file = tempfile::tempfile().expect("a file");
        file.set_len(Table::file_length(2)).expect("longer");
        [0, 1].map(|own| OtherCopies::new(Table::map(&file, 2).expect("mapped"), own, vec![0, 1]))
    }

    #[test]
    fn the_first_copy_chooses_for_all_and_one_that_leaves_is_not_waited_for() {
        let [first, second] = pair();
        std::thread::scope(|scope| {
            let agreed = scope.spawn(|| second.agree((7, 70)).expect("agreed"));
            assert_eq!(first.agree((10, 500)).expect("agreed"), (10, 500));
            assert_eq!(agreed.join().expect("no panic"), (10, 500));
        });
        second.leave_case();
        assert!(matches!(first.meet_all(), Err(CaseEnd::Disturbed(sentence)) if sentence.starts_with(LEFT)));
        first.leave_case();
        assert!(!first.is_broken());
        mark_gone(&first.table, 1);
        assert!(first.is_broken() && first.agree((1, 1)).is_err());
    }
}

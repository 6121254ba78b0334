//! The cost of a series of [`Block`]s for the process that read it: CPU time, regular periods, memory and descriptors.

use super::{Block, Process};
use hdrhistogram::Histogram;
use std::time::{Duration, Instant};
use syscost_platform::error::{Error, Result};

/// The longest time that the histograms hold, ns: one hour. The memory of a histogram does not grow with the number of
/// blocks.
const LONGEST_NS: u64 = 3_600_000_000_000;
/// Significant digits of a recorded time.
const DIGITS: u8 = 3;

/// The cost since [`ProbeCost::begin`]. Each pair holds the values at the beginning and at the end.
pub struct ProbeCost {
    own: Process,
    begun: Instant,
    cpu: [Duration; 2],
    last: Option<Instant>,
    /// The time at which the first block was read.
    pub first: Instant,
    /// The time from the beginning to [`ProbeCost::end`].
    pub elapsed: Duration,
    /// Times from one block to the next, ns.
    pub periods: Histogram<u64>,
    /// Times from the beginning of a block to its end, ns.
    pub blocks: Histogram<u64>,
    /// The number of skipped deadlines.
    pub missed: u64,
    /// Resident set after the second block and at the end, bytes.
    pub resident: [u64; 2],
    /// The number of open descriptors.
    pub descriptors: [usize; 2],
}

impl ProbeCost {
    /// Begins the account of this process.
    ///
    /// # Errors
    /// An error where the process cannot read its own counters.
    pub fn begin() -> Result<Self> {
        let (own, begun) = (Process::open(std::process::id() as i32)?, Instant::now());
        let cpu = own.cpu_time()?.value;
        Ok(Self {
            begun,
            cpu: [cpu; 2],
            last: None,
            first: begun,
            elapsed: Duration::ZERO,
            periods: empty_histogram()?,
            blocks: empty_histogram()?,
            missed: 0,
            resident: [own.resident()?.value; 2],
            descriptors: [count_open_descriptors(); 2],
            own,
        })
    }

    /// Adds a block that has just been read.
    pub fn add_block(&mut self, block: &Block) {
        self.blocks.saturating_record(block.at.elapsed().as_nanos() as u64);
        match self.last {
            Some(last) => self.periods.saturating_record((block.at - last).as_nanos() as u64),
            None => self.first = block.at,
        }
        self.last = Some(block.at);
        // The second block is the reference, since otherwise pages of the code that `end` needs would count as growth.
        if self.blocks.len() == 2 {
            self.end(0);
            self.resident[0] = self.own.resident().map_or(0, |reading| reading.value);
        }
    }

    /// Ends the account. `missed` is the number of skipped deadlines.
    pub fn end(&mut self, missed: u64) {
        self.missed = missed;
        self.elapsed = self.begun.elapsed();
        self.cpu[1] = self.own.cpu_time().map_or(self.cpu[0], |reading| reading.value);
        self.resident[1] = self.own.resident().map_or(0, |reading| reading.value);
        self.descriptors[1] = count_open_descriptors();
    }

    /// CPU time that the process has used since the beginning.
    pub fn cpu_time(&self) -> Duration {
        self.cpu[1] - self.cpu[0]
    }

    /// The CPU time as a share of one CPU, percent.
    pub fn cpu_percent(&self) -> f64 {
        100.0 * self.cpu_time().as_secs_f64() / self.elapsed.as_secs_f64().max(1e-9)
    }
}

/// An empty histogram whose pages have all been written, so that its memory does not count as growth of the probe.
fn empty_histogram() -> Result<Histogram<u64>> {
    let made = Histogram::new_with_bounds(1, LONGEST_NS, DIGITS);
    let mut histogram = made.map_err(|e| Error::Missing(format!("a histogram of periods: {e}")))?;
    histogram.saturating_record(LONGEST_NS);
    histogram.reset();
    Ok(histogram)
}

/// The number of open descriptors, without that of the directory that lists them.
fn count_open_descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").map_or(0, |entries| entries.count().saturating_sub(1))
}

//! What the probe itself cost: CPU time, the regularity of its beat, memory and descriptors.

use super::page;
use crate::counters::Process;
use crate::counters::probe::Block;
use crate::record::quantity::{duration, size};
use crate::{Error, Result};
use hdrhistogram::Histogram;
use serde_json::json;
use std::fmt::Write;
use std::time::{Duration, Instant};

/// Periods are kept in a histogram, of which the memory does not grow with them: up to an hour, ns.
const LONGEST_NS: u64 = 3_600_000_000_000;
/// Significant digits of a period.
const DIGITS: u8 = 3;

pub(super) struct Cost {
    own: Process,
    begun: Instant,
    cpu: [Duration; 2],
    elapsed: Duration,
    /// The first block: what others are told since.
    pub(super) first: Instant,
    last: Option<Instant>,
    periods: Histogram<u64>,
    /// From the beginning of a block to its end, ns.
    blocks: Histogram<u64>,
    missed: u64,
    resident: [u64; 2],
    descriptors: [usize; 2],
}

impl Cost {
    pub(super) fn begin() -> Result<Self> {
        let histogram = || {
            Histogram::new_with_bounds(1, LONGEST_NS, DIGITS)
                .map_err(|e| Error::Usage(format!("a histogram of periods: {e}")))
        };
        let (own, begun) = (Process::open(std::process::id() as i32)?, Instant::now());
        let cpu = own.cpu_time()?.value;
        let mut cost = Self {
            begun,
            cpu: [cpu; 2],
            elapsed: Duration::ZERO,
            first: begun,
            last: None,
            periods: histogram()?,
            blocks: histogram()?,
            missed: 0,
            resident: [own.resident()?.value; 2],
            descriptors: [descriptors(); 2],
            own,
        };
        // The pages of the histograms are not the probe's to grow by later.
        for histogram in [&mut cost.periods, &mut cost.blocks] {
            histogram.saturating_record(LONGEST_NS);
            histogram.reset();
        }
        Ok(cost)
    }

    /// A block that has just been read.
    pub(super) fn count(&mut self, block: &Block) {
        self.blocks.saturating_record(block.at.elapsed().as_nanos() as u64);
        match self.last {
            Some(last) => self.periods.saturating_record((block.at - last).as_nanos() as u64),
            None => self.first = block.at,
        }
        self.last = Some(block.at);
        // The end is rehearsed once: the pages of the code that it needs are else taken for growth.
        if self.blocks.len() == 2 {
            self.end(0);
            self.resident[0] = self.own.resident().map_or(0, |reading| reading.value);
        }
    }

    pub(super) fn end(&mut self, missed: u64) {
        self.missed = missed;
        self.elapsed = self.begun.elapsed();
        self.cpu[1] = self.own.cpu_time().map_or(self.cpu[0], |reading| reading.value);
        self.resident[1] = self.own.resident().map_or(0, |reading| reading.value);
        self.descriptors[1] = descriptors();
    }

    pub(super) fn blocks(&self) -> u64 {
        self.blocks.len()
    }

    /// Of one CPU, in hundredths.
    fn share(&self) -> f64 {
        100.0 * (self.cpu[1] - self.cpu[0]).as_secs_f64() / self.elapsed.as_secs_f64().max(1e-9)
    }

    pub(super) fn json(&self, rate: u32) -> serde_json::Value {
        json!({"cost": {
            "rate": rate,
            "blocks": self.blocks(),
            "missed": self.missed,
            "seconds": self.elapsed.as_secs_f64(),
            "cpu_ns": (self.cpu[1] - self.cpu[0]).as_nanos() as u64,
            "cpu_percent": self.share(),
            "block_ns": {"min": self.blocks.min(), "median": self.blocks.value_at_quantile(0.5)},
            "period_ns": {
                "median": self.periods.value_at_quantile(0.5),
                "deviation": self.periods.stdev(),
                "max": self.periods.max(),
            },
            "resident_bytes": {"first": self.resident[0], "last": self.resident[1]},
            "descriptors": {"first": self.descriptors[0], "last": self.descriptors[1]},
        }})
    }

    pub(super) fn text(&self, rate: u32) -> String {
        let ns = |value: u64| duration(value as f64);
        let constant = |same: bool| if same { "constant" } else { "NOT constant" };
        let mut rows = vec![
            [
                "blocks".into(),
                format!("{} at {rate} a second, {} deadlines missed", self.blocks(), self.missed),
            ],
            [
                "cpu".into(),
                format!(
                    "{:.3} % of one CPU by the process's clock: {} in {:.2} s",
                    self.share(),
                    duration((self.cpu[1] - self.cpu[0]).as_nanos() as f64),
                    self.elapsed.as_secs_f64()
                ),
            ],
        ];
        if self.blocks() > 1 {
            let (median, deviation) =
                (ns(self.periods.value_at_quantile(0.5)), duration(self.periods.stdev()));
            let longest = ns(self.periods.max());
            rows.push([
                "period".into(),
                format!("median {median}, deviation {deviation}, longest {longest}"),
            ]);
        }
        if self.blocks() > 0 {
            let (median, least) = (ns(self.blocks.value_at_quantile(0.5)), ns(self.blocks.min()));
            rows.push(["block".into(), format!("median {median}, least {least}")]);
        }
        let [first, last] = self.resident;
        rows.push([
            "memory".into(),
            format!(
                "{} resident, {:+} KiB since the second block",
                size(last),
                (last as i64 - first as i64) >> 10
            ),
        ]);
        let [opened, open] = self.descriptors;
        rows.push(["descriptors".into(), format!("{open}, {}", constant(opened == open))]);
        page::aligned(&rows, usize::MAX).into_iter().fold(String::new(), |mut text, line| {
            let _ = writeln!(text, "{line}");
            text
        })
    }
}

/// How many descriptors are open; that of the directory which tells is one of them.
fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").map_or(0, |entries| entries.count().saturating_sub(1))
}

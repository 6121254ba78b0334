//! The page for Prometheus: its text format, or OpenMetrics 1.0 on request.
//!
//! Names follow Prometheus' conventions: base units, and the suffix `_total` for counters. A value that could not be
//! read is left out and named by `syscost_reading_missing`.
//!
//! Source: prometheus.io, "Metric and label naming".

mod family;

use family::{FAMILIES, Family};
use std::time::{Duration, Instant};
use syscost_counters::snapshot::Snapshot;
use syscost_counters::{Fault, Process};
use syscost_engine::render::metric_page::{MetricFormat, MetricPage};

/// The data of a page.
#[derive(Debug)]
pub struct Scene {
    /// The counters of the machine.
    pub snapshot: Snapshot,
    /// Time to read them.
    pub took: Duration,
    /// CPU time of the monitor.
    pub own_cpu: Duration,
    /// Resident set of the monitor, bytes.
    pub own_resident: u64,
    /// Open descriptors of the monitor.
    pub own_descriptors: u64,
}

impl Scene {
    /// Reads the machine and the monitor itself.
    ///
    /// # Errors
    /// As of [`Snapshot::take`].
    pub fn capture(own: &Process) -> Result<Self, Fault> {
        let begun = Instant::now();
        let snapshot = Snapshot::take()?;
        Ok(Self {
            took: begun.elapsed(),
            own_cpu: own.cpu_time()?.value,
            own_resident: own.resident()?.value,
            own_descriptors: std::fs::read_dir("/proc/self/fd")
                .map_or(0, |entries| entries.count() as u64 - 1),
            snapshot,
        })
    }
}

/// Writes the page.
pub fn render_page(scene: &Scene, format: MetricFormat) -> String {
    let mut page = MetricPage::new(format);
    for Family { head, samples } in FAMILIES {
        let samples = samples(scene);
        if !samples.is_empty() {
            page.add_family(head, samples);
        }
    }
    page.finish()
}

#[cfg(test)]
mod tests;

//! The page that Prometheus reads: its own text format, or OpenMetrics 1.0 for who asks for that.
//!
//! Names follow Prometheus' conventions: base units, `_total` behind what only grows. What could not be read is not on
//! the page; `syscost_reading_missing` names it.
//!
//! Source: prometheus.io, "Exposition formats" and "Metric and label naming"; OpenMetrics 1.0.

mod family;

use crate::counters::snapshot::Snapshot;
use crate::counters::{Fault, Process};
pub use family::{FAMILIES, Family, Kind};
use std::fmt::Write;
use std::time::{Duration, Instant};

/// How the page is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// The text format 0.0.4.
    Prometheus,
    /// OpenMetrics 1.0.
    OpenMetrics,
}

impl Format {
    /// As the header `Accept` asks.
    pub fn accepted(accept: &str) -> Self {
        // With what weight does not matter: whoever names it can read it.
        if accept.contains("application/openmetrics-text") { Self::OpenMetrics } else { Self::Prometheus }
    }

    /// The header `Content-Type`.
    pub fn content_type(self) -> &'static str {
        match self {
            Self::Prometheus => "text/plain; version=0.0.4; charset=utf-8",
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }
}

/// What a page tells.
#[derive(Debug)]
pub struct Scene {
    /// The machine.
    pub snapshot: Snapshot,
    /// What it took to look.
    pub took: Duration,
    /// CPU time of this process.
    pub own_cpu: Duration,
    /// Its resident set, bytes.
    pub own_resident: u64,
    /// Its descriptors.
    pub own_descriptors: u64,
}

impl Scene {
    /// Looks.
    ///
    /// # Errors
    /// As of [`Snapshot::take`].
    pub fn look(own: &Process) -> Result<Self, Fault> {
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

/// The whole page.
pub fn page(scene: &Scene, format: Format) -> String {
    let mut page = String::with_capacity(16 << 10);
    for family in FAMILIES {
        let samples = (family.samples)(scene);
        if !samples.is_empty() {
            one(&mut page, family, &samples, format);
        }
    }
    if format == Format::OpenMetrics {
        page += "# EOF\n";
    }
    page
}

fn one(page: &mut String, family: &Family, samples: &[family::Sample], format: Format) {
    let sample_name = family.sample_name();
    let name = if format == Format::OpenMetrics { family.name } else { &sample_name };
    let kind = match family.kind {
        Kind::Counter => "counter",
        Kind::Gauge => "gauge",
    };
    // A string takes all that is written to it.
    let _ = writeln!(page, "# HELP {name} {}\n# TYPE {name} {kind}", family.help);
    if let (Format::OpenMetrics, Some(unit)) = (format, family.unit()) {
        let _ = writeln!(page, "# UNIT {name} {unit}");
    }
    for sample in samples {
        let _ = writeln!(page, "{sample_name}{} {}", labels(&sample.labels), sample.value);
    }
}

fn labels(labels: &[(&str, String)]) -> String {
    if labels.is_empty() {
        return String::new();
    }
    let escaped = |text: &str| text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    let pairs: Vec<_> = labels.iter().map(|(name, text)| format!("{name}=\"{}\"", escaped(text))).collect();
    format!("{{{}}}", pairs.join(","))
}

#[cfg(test)]
mod tests;

//! The page for Prometheus: its text format, or OpenMetrics 1.0 on request.
//!
//! Names follow Prometheus' conventions: base units, and the suffix `_total` for counters. A value that could not be
//! read is left out and named by `syscost_reading_missing`.
//!
//! Source: prometheus.io, "Exposition formats" and "Metric and label naming"; OpenMetrics 1.0.

mod family;

pub use family::{FAMILIES, Family, Kind};
use std::fmt::Write;
use std::time::{Duration, Instant};
use syscost_counters::snapshot::Snapshot;
use syscost_counters::{Fault, Process};

/// The format of the page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// The text format 0.0.4.
    Prometheus,
    /// OpenMetrics 1.0.
    OpenMetrics,
}

impl Format {
    /// The format for a header `Accept`.
    pub fn from_accept_header(accept: &str) -> Self {
        // The weight of the entry is ignored: a client that names OpenMetrics can read it.
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
pub fn render_page(scene: &Scene, format: Format) -> String {
    let mut page = String::with_capacity(16 << 10);
    for family in FAMILIES {
        let samples = (family.samples)(scene);
        if !samples.is_empty() {
            write_family(&mut page, family, &samples, format);
        }
    }
    if format == Format::OpenMetrics {
        page += "# EOF\n";
    }
    page
}

fn write_family(page: &mut String, family: &Family, samples: &[family::Sample], format: Format) {
    let sample_name = family.sample_name();
    let name = if format == Format::OpenMetrics { family.name } else { &sample_name };
    let kind = match family.kind {
        Kind::Counter => "counter",
        Kind::Gauge => "gauge",
    };
    // Writing to a string cannot fail.
    let _ = writeln!(page, "# HELP {name} {}\n# TYPE {name} {kind}", family.help);
    if let (Format::OpenMetrics, Some(unit)) = (format, family.unit()) {
        let _ = writeln!(page, "# UNIT {name} {unit}");
    }
    for sample in samples {
        let _ = writeln!(page, "{sample_name}{} {}", format_labels(&sample.labels), sample.value);
    }
}

fn format_labels(labels: &[(&str, String)]) -> String {
    if labels.is_empty() {
        return String::new();
    }
    let escaped = |text: &str| text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    let pairs: Vec<_> = labels.iter().map(|(name, text)| format!("{name}=\"{}\"", escaped(text))).collect();
    format!("{{{}}}", pairs.join(","))
}

#[cfg(test)]
mod tests;

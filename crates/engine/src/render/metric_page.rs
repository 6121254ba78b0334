//! A page of metric families: OpenMetrics 1.0, or the text format 0.0.4 of Prometheus.
//!
//! Source: OpenMetrics 1.0, "Text format"; prometheus.io, "Exposition formats".

use std::fmt::Write;

/// Units with which the name of a family may end.
const UNITS: [&str; 3] = ["seconds", "bytes", "events"];

/// The format of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricFormat {
    /// The text format 0.0.4.
    Prometheus,
    /// OpenMetrics 1.0.
    OpenMetrics,
}

impl MetricFormat {
    /// The format that suits this value of the HTTP header `Accept`.
    pub fn from_accept_header(accept: &str) -> Self {
        // The weight of the entry is ignored: a client that names OpenMetrics can read it.
        if accept.contains("application/openmetrics-text") { Self::OpenMetrics } else { Self::Prometheus }
    }

    /// The value of the HTTP header `Content-Type`.
    pub fn content_type(self) -> &'static str {
        match self {
            Self::Prometheus => "text/plain; version=0.0.4; charset=utf-8",
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }
}

/// The kind of a family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricKind {
    /// Values only grow.
    Counter,
    /// Values may fall.
    Gauge,
}

/// The head of a family.
#[derive(Clone, Copy, Debug)]
pub struct MetricFamily<'a> {
    /// Its name, without the suffix `_total` of a counter.
    pub name: &'a str,
    /// Counter or gauge.
    pub kind: MetricKind,
    /// Its description: one sentence without quotation marks and backslashes, which would have to be escaped.
    pub help: &'a str,
}

impl MetricFamily<'_> {
    /// The name of its samples, as used in a query.
    pub fn sample_name(&self) -> String {
        match self.kind {
            MetricKind::Counter => format!("{}_total", self.name),
            MetricKind::Gauge => self.name.to_owned(),
        }
    }

    /// The unit with which the name ends, if it is a known one.
    fn unit(&self) -> Option<&'static str> {
        UNITS.into_iter().find(|unit| self.name.ends_with(&format!("_{unit}")))
    }
}

/// One line of a page: a value and its labels.
#[derive(Clone, Debug)]
pub struct Sample {
    labels: Vec<(&'static str, String)>,
    value: String,
}

impl Sample {
    /// A value with these labels.
    pub fn new(labels: Vec<(&'static str, String)>, value: impl ToString) -> Self {
        Self { labels, value: value.to_string() }
    }
}

/// A page under construction.
#[derive(Debug)]
pub struct MetricPage {
    format: MetricFormat,
    text: String,
}

impl MetricPage {
    /// An empty page.
    pub fn new(format: MetricFormat) -> Self {
        Self { format, text: String::new() }
    }

    /// Writes a family: its head, and a line for each sample.
    pub fn add_family(&mut self, family: &MetricFamily<'_>, samples: impl IntoIterator<Item = Sample>) {
        let sample_name = family.sample_name();
        let (name, help) = (family.name, family.help);
        let kind = match family.kind {
            MetricKind::Counter => "counter",
            MetricKind::Gauge => "gauge",
        };
        self.text += &match self.format {
            MetricFormat::Prometheus => format!("# HELP {sample_name} {help}\n# TYPE {sample_name} {kind}\n"),
            // The order that OpenMetrics recommends.
            MetricFormat::OpenMetrics => {
                let unit = family.unit().map(|unit| format!("# UNIT {name} {unit}\n")).unwrap_or_default();
                format!("# TYPE {name} {kind}\n{unit}# HELP {name} {help}\n")
            }
        };
        for Sample { labels, value } in samples {
            // Writing to a string cannot fail.
            let _ = writeln!(self.text, "{sample_name}{} {value}", format_labels(&labels));
        }
    }

    /// The text of the page.
    pub fn finish(self) -> String {
        match self.format {
            MetricFormat::Prometheus => self.text,
            MetricFormat::OpenMetrics => self.text + "# EOF\n",
        }
    }
}

/// Formats labels in braces. In values, backslashes, quotation marks and line ends are escaped.
fn format_labels(labels: &[(&str, String)]) -> String {
    if labels.is_empty() {
        return String::new();
    }
    let escaped = |text: &str| text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    let pairs: Vec<_> = labels.iter().map(|(name, text)| format!("{name}=\"{}\"", escaped(text))).collect();
    format!("{{{}}}", pairs.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SENT: MetricFamily<'_> =
        MetricFamily { name: "sent_bytes", kind: MetricKind::Counter, help: "Bytes sent." };

    fn page(format: MetricFormat) -> String {
        let mut page = MetricPage::new(format);
        page.add_family(&SENT, [Sample::new(vec![("device", "eth0".into())], 7)]);
        page.add_family(
            &MetricFamily { name: "cpus", kind: MetricKind::Gauge, help: "CPUs." },
            [Sample::new(Vec::new(), 1.5)],
        );
        page.finish()
    }

    #[test]
    fn openmetrics_names_a_counter_without_total_and_has_units_and_an_end() {
        assert_eq!(
            page(MetricFormat::OpenMetrics),
            "# TYPE sent_bytes counter\n# UNIT sent_bytes bytes\n# HELP sent_bytes Bytes sent.\n\
             sent_bytes_total{device=\"eth0\"} 7\n# TYPE cpus gauge\n# HELP cpus CPUs.\ncpus 1.5\n# EOF\n"
        );
    }

    #[test]
    fn prometheus_names_a_counter_as_its_samples() {
        assert_eq!(
            page(MetricFormat::Prometheus),
            "# HELP sent_bytes_total Bytes sent.\n# TYPE sent_bytes_total counter\n\
             sent_bytes_total{device=\"eth0\"} 7\n# HELP cpus CPUs.\n# TYPE cpus gauge\ncpus 1.5\n"
        );
    }

    #[test]
    fn a_label_may_hold_anything() {
        assert_eq!(format_labels(&[("device", "a\"b\\c\nd".into())]), r#"{device="a\"b\\c\nd"}"#);
    }
}

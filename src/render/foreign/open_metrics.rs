//! OpenMetrics, which Prometheus and its relatives take: the figures of the record and the numbers of its cases.

use crate::record::quantity::{DISPLACED, NANOSECONDS};
use crate::record::{Interval, Record};
use std::fmt::Write;

/// Nanoseconds of a second, which is the unit that these tools want.
const SECOND: f64 = 1e9;

/// Name, help, and what of an interval it is.
type Gauge = (&'static str, &'static str, fn(Interval) -> f64);

/// Gauges: the figure and its ends by case, and the number of cases by outcome.
pub fn open_metrics_text(record: &Record) -> String {
    let is_time = [NANOSECONDS, DISPLACED].contains(&&*record.unit);
    let (unit, scale) = if is_time { ("seconds", SECOND) } else { ("events", 1.0) };
    let event_label =
        if is_time { String::new() } else { format!(",event=\"{}\"", escape_label(&record.unit)) };
    let figures: [Gauge; 3] = [
        ("operation", "What one operation costs.", |figure| figure.estimate),
        ("operation_low", "Lower end of where the next run's figure lies.", |figure| figure.low),
        ("operation_high", "Upper end of where the next run's figure lies.", |figure| figure.high),
    ];
    let mut text = String::new();
    for (name, help, end) in figures {
        let name = format!("syscost_{name}_{unit}");
        let _ = writeln!(text, "# TYPE {name} gauge\n# UNIT {name} {unit}\n# HELP {name} {help}");
        for (group, case) in record.cases() {
            let Some(measured) = case.measured() else { continue };
            let (group, id) = (escape_label(&group.name), escape_label(&case.id));
            let _ = writeln!(
                text,
                "{name}{{group=\"{group}\",id=\"{id}\"{event_label}}} {}",
                end(measured.figure()) / scale
            );
        }
    }
    let tally = record.tally();
    let outcomes = [
        ("measured", tally.measured),
        ("skipped", tally.skipped),
        ("disturbed", tally.disturbed),
        ("failed", tally.failed),
    ];
    text += "# TYPE syscost_cases gauge\n# HELP syscost_cases Cases of the run by how they ended.\n";
    for (outcome, count) in outcomes {
        let _ = writeln!(text, "syscost_cases{{outcome=\"{outcome}\"}} {count}");
    }
    text + "# EOF\n"
}

/// The value of a label: a backslash, a quotation mark and the end of a line are escaped.
pub fn escape_label(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

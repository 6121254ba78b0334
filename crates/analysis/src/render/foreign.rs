//! A record in the formats of other tools: values for tools that watch trends, outcomes for tools that list tests.
//!
//! Only measured cases have values. The figure is the one that the table shows first; the next run's figure will lie between
//! its ends.

use crate::error::{Error, Result};
use crate::render::sheet::indented_json;
use serde_json::{Map, Value, json};
use std::fmt::Write;
use syscost_engine::record::quantity::{
    DISPLACED, NANOSECONDS, format_amount, format_interval, format_rfc3339,
};
use syscost_engine::record::{CaseRecord, GroupRun, Interval, Measured, Outcome, Record};
use syscost_engine::render::metric_page::{MetricFamily, MetricFormat, MetricKind, MetricPage, Sample};

// JUnit's XML, which every CI shows as a list of tests: a group is a suite, a case a test. A disproved claim is a failure. A
// skipped or disturbed case is skipped, with its reason.

/// The record as a list of tests.
pub fn junit_xml(record: &Record) -> String {
    let suites: String = record.groups.iter().map(|group| suite_xml(group, &record.unit)).collect();
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"{}\">\n{suites}</testsuites>\n",
        escape_xml(&record.run)
    )
}

fn suite_xml(group: &GroupRun, unit: &str) -> String {
    let count = |is: fn(&Outcome) -> bool| group.cases.iter().filter(|case| is(&case.outcome)).count();
    let failed = count(|outcome| matches!(outcome, Outcome::Failed(_)));
    let skipped = count(|outcome| matches!(outcome, Outcome::Skipped(_) | Outcome::Disturbed(_)));
    let name = escape_xml(&group.name);
    let mut text = format!(
        "  <testsuite name=\"{name}\" tests=\"{}\" failures=\"{failed}\" errors=\"0\" skipped=\"{skipped}\">\n",
        group.cases.len()
    );
    for case in &group.cases {
        let seconds = case.measured().and_then(|m| m.meanwhile.as_ref()).map_or(0.0, |m| m.seconds);
        let id = escape_xml(&case.id);
        let _ = writeln!(text, "    <testcase classname=\"{name}\" name=\"{id}\" time=\"{seconds:.3}\">");
        let _ = writeln!(text, "      {}\n    </testcase>", outcome_xml(case, unit));
    }
    text + "  </testsuite>\n"
}

fn outcome_xml(case: &CaseRecord, unit: &str) -> String {
    match &case.outcome {
        Outcome::Measured(measured) => {
            let figure = measured.figure();
            let told = format!("{} {}", format_amount(figure.estimate, unit), format_interval(&figure, unit));
            format!("<system-out>{}</system-out>", escape_xml(&told))
        }
        Outcome::Skipped(sentence) => format!("<skipped message=\"{}\"/>", escape_xml(sentence)),
        Outcome::Disturbed(sentence) => format!("<skipped message=\"disturbed: {}\"/>", escape_xml(sentence)),
        Outcome::Failed(sentence) => format!("<failure message=\"{}\"/>", escape_xml(sentence)),
    }
}

/// Text for XML: markup characters are escaped, and characters that XML forbids are replaced.
pub fn escape_xml(text: &str) -> String {
    let one = |c: char| match c {
        '&' => "&amp;".into(),
        '<' => "&lt;".into(),
        '>' => "&gt;".into(),
        '"' => "&quot;".into(),
        '\n' | '\t' => " ".into(),
        c if c.is_control() || ['\u{fffe}', '\u{ffff}'].contains(&c) => "\u{fffd}".into(),
        c => c.to_string(),
    };
    text.chars().map(one).collect::<String>()
}

// Lines for LAVA, which runs tests on boards. Linaro's test definitions pass them to `lava-test-case`, one for each case.

/// One line for each case: `NAME pass FIGURE UNIT`, `NAME fail` or `NAME skip`. A disturbed case has no result and is skipped.
/// In a name, every character of the id except ASCII letters, digits, `_` and `-` becomes a dot, because LAVA uses names in
/// addresses and paths.
pub fn lava_lines(record: &Record) -> String {
    record.cases().map(|(_, case)| case_line(case, &record.unit)).collect()
}

fn case_line(case: &CaseRecord, unit: &str) -> String {
    let plain = |text: &str| text.replace(|c: char| !(c.is_ascii_alphanumeric() || "_-".contains(c)), ".");
    let name = plain(&case.id);
    match &case.outcome {
        Outcome::Measured(measured) => {
            format!("{name} pass {} {}\n", measured.figure().estimate, plain(unit))
        }
        Outcome::Failed(_) => format!("{name} fail\n"),
        Outcome::Skipped(_) | Outcome::Disturbed(_) => format!("{name} skip\n"),
    }
}

// OpenMetrics, which Prometheus and related tools read: the figures of the record and the numbers of its cases.

/// Nanoseconds in a second, the unit of time in OpenMetrics.
const SECOND: f64 = 1e9;

/// The name and help text of a gauge, and the function that takes its value from an interval.
type Gauge = (&'static str, &'static str, fn(Interval) -> f64);

/// The record as gauges: the run and its machine, the figure and its ends for each case, and the number of cases by outcome. A
/// record does not name its `host`, so the label is left out if it is unknown.
pub fn open_metrics_text(record: &Record, host: Option<&str>) -> String {
    let is_time = [NANOSECONDS, DISPLACED].contains(&&*record.unit);
    let (unit, scale) = if is_time { ("seconds", SECOND) } else { ("events", 1.0) };
    let figures: [Gauge; 3] = [
        ("operation", "What one operation costs.", |figure| figure.estimate),
        ("operation_low", "Lower end of where the next run's figure lies.", |figure| figure.low),
        ("operation_high", "Upper end of where the next run's figure lies.", |figure| figure.high),
    ];
    let mut page = MetricPage::new(MetricFormat::OpenMetrics);
    let run = MetricFamily {
        name: "syscost_run_info",
        kind: MetricKind::Gauge,
        help: "The run of all figures on this page.",
    };
    page.add_family(&run, [Sample::new(run_labels(record, host), 1)]);
    for (name, help, end) in figures {
        let name = format!("syscost_{name}_{unit}");
        let samples = record.cases().filter_map(|(group, case)| {
            let mut labels = vec![("group", group.name.clone()), ("id", case.id.clone())];
            labels.extend((!is_time).then(|| ("event", record.unit.clone())));
            Some(Sample::new(labels, end(case.measured()?.figure()) / scale))
        });
        page.add_family(&MetricFamily { name: &name, kind: MetricKind::Gauge, help }, samples);
    }
    let tally = record.tally();
    let outcomes = [
        ("measured", tally.measured),
        ("skipped", tally.skipped),
        ("disturbed", tally.disturbed),
        ("failed", tally.failed),
    ];
    let cases = MetricFamily {
        name: "syscost_cases",
        kind: MetricKind::Gauge,
        help: "Cases of the run by how they ended.",
    };
    let samples = outcomes.map(|(outcome, count)| Sample::new(vec![("outcome", outcome.into())], count));
    page.add_family(&cases, samples);
    page.finish()
}

/// The labels that distinguish this run from others. A query can join them to the figures.
fn run_labels(record: &Record, host: Option<&str>) -> Vec<(&'static str, String)> {
    let version = record.tool.trim_start_matches("syscost ");
    let kernel = record.fingerprint.kernel_release.as_deref();
    let labels =
        [("host", host), ("kernel", kernel), ("run", Some(&*record.run)), ("version", Some(version))];
    labels.into_iter().filter_map(|(name, value)| Some((name, value?.to_owned()))).collect()
}

// JSON for services that draw trends: Bencher and github-action-benchmark. In both a smaller value is better.

/// Bencher Metric Format: for each case and measure a value with its ends. The measure `latency` is in nanoseconds by
/// Bencher's own definition; a count is a measure with the name of its event.
///
/// # Errors
/// Never in practice: the text is made in memory.
pub fn bencher_json(record: &Record) -> Result<String> {
    let measure = if record.unit == NANOSECONDS { "latency" } else { &*record.unit };
    let cases = case_figures(record).map(|(id, Interval { estimate, low, high })| {
        let metric = json!({ "value": estimate, "lower_value": low, "upper_value": high });
        (id.to_owned(), json!({ measure: metric }))
    });
    indented_json(&record.run, &cases.collect::<Map<_, _>>())
}

/// The list that github-action-benchmark takes as `customSmallerIsBetter`.
///
/// # Errors
/// Those of [`bencher_json`].
pub fn action_benchmark_json(record: &Record) -> Result<String> {
    let cases = case_figures(record).map(|(id, Interval { estimate, low, high })| {
        json!({
            "name": id, "unit": record.unit, "value": estimate, "range": format!("± {}", (high - low) / 2.0),
            "extra": format!("next run in [{low}, {high}], 19 times in 20"),
        })
    });
    indented_json(&record.run, &cases.collect::<Vec<_>>())
}

fn case_figures(record: &Record) -> impl Iterator<Item = (&str, Interval)> {
    record.cases().filter_map(|(_, case)| Some((case.id.as_str(), case.measured()?.figure())))
}

// KCIDB, the Linux Foundation's database of kernel tests: a report by its schema 5, one test a case.

/// The tests of this run against a build, which KCIDB identifies by `ORIGIN:ID`. Figures are in seconds. A disproved claim is
/// an error of the test, not of the kernel. A disturbed case counts as one that missed its run.
///
/// # Errors
/// `build` has no origin before a colon, or the origin has characters other than lower-case letters, digits and `_`.
pub fn kcidb_report(record: &Record, build: &str) -> Result<String> {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    let origin = build.split_once(':').map(|(origin, _)| origin);
    let Some(origin) = origin.filter(|origin| !origin.is_empty() && origin.chars().all(plain)) else {
        return Err(Error::Usage(format!(
            "{build:?} is no build of KCIDB: expected ORIGIN:ID, the origin of lower-case letters, digits and `_`"
        )));
    };
    let tests = record.cases().map(|(_, case)| test_json(record, case, origin, build));
    let report = json!({ "version": { "major": 5, "minor": 3 }, "tests": tests.collect::<Vec<_>>() });
    indented_json(&record.run, &report)
}

fn test_json(record: &Record, case: &CaseRecord, origin: &str, build: &str) -> Value {
    let path = format!("syscost.{}", dotted_path(&case.id));
    let status = match case.outcome {
        Outcome::Measured(_) => "DONE",
        Outcome::Failed(_) => "ERROR",
        Outcome::Disturbed(_) => "MISS",
        Outcome::Skipped(_) => "SKIP",
    };
    let comment = case.outcome.reason().unwrap_or(&case.title);
    let mut test = json!({
        "id": format!("{origin}:syscost:{}:{path}", remove_nul(&record.run)), "origin": origin, "build_id": remove_nul(build), "path": path,
        "status": status, "comment": remove_nul(comment), "start_time": format_rfc3339(record.started),
        "environment": { "comment": remove_nul(record.fingerprint.cpu_model.as_deref().unwrap_or("unknown")) },
    });
    if let Some(measured) = case.measured() {
        let (number, misc) = figure_json(measured, &record.unit);
        test["number"] = number;
        test["misc"] = misc;
    }
    test
}

/// The figure, and the values for which KCIDB has no field: the ends of the next run's interval and the median of all samples.
fn figure_json(measured: &Measured, unit: &str) -> (Value, Value) {
    let (unit, share) = if unit == NANOSECONDS { ("s", 1e-9) } else { (unit, 1.0) };
    let figure = measured.figure();
    let number = json!({ "value": share * figure.estimate, "unit": remove_nul(unit), "prefix": "metric" });
    let next = [share * figure.low, share * figure.high];
    let misc = json!({ "next_run": next, "typical": share * measured.median.estimate, "settled": measured.is_settled() });
    (number, json!({ "syscost": misc }))
}

/// An id with dots between its parts. In a part, every character except ASCII letters, digits, `_` and `-` becomes `_`.
fn dotted_path(id: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || "_-".contains(c) { c } else { '_' };
    let part = |part: &str| if part.is_empty() { "_".into() } else { part.chars().map(plain).collect() };
    id.split('/').map(part).collect::<Vec<String>>().join(".")
}

/// The text without the character NUL, which the schema refuses.
fn remove_nul(text: &str) -> String {
    text.replace('\0', "")
}

#[cfg(test)]
mod tests;

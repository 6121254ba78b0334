//! The Observation Table of published reports: their rows in their order, what they expected and measured, and ours beside.

use super::sheet::Sheet;
use syscost_engine::record::quantity::{
    NANOSECONDS, format_amount, format_count, format_duration, format_size,
};
use syscost_engine::record::{CaseRecord, Interval, Measured, Outcome, Record};
use syscost_engine::render::cell;
use syscost_engine::render::table::Layout;
use syscost_engine::study::published::{Published, PublishedValue};

/// Heads of the columns.
const HEAD: [&str; 10] = [
    "what they timed",
    "hardware",
    "software",
    "they expected",
    "they measured",
    "their sd",
    "here",
    "our sd",
    "we expected",
    "our case",
];
/// Heads of those that a narrow terminal leaves out, the first one first.
const LEFT_OUT: [&str; 6] = ["hardware", "software", "we expected", "our sd", "our case", "their sd"];

/// One table for each published report, with notes on the rows that no case of ours matches.
pub fn published_tables(machines: &[Published], record: &Record, layout: Layout) -> String {
    let sheets = machines.iter().map(|published| published_sheet(published, record));
    sheets.map(|sheet| sheet.fit_by_leaving_out(layout, &LEFT_OUT)).collect::<Vec<_>>().join("\n")
}

fn published_sheet(published: &Published, record: &Record) -> Sheet {
    let rows = published.rows.iter().map(|value| published_row(value, record));
    let differing = published.rows.iter().filter(|value| value.differs);
    let differing = differing.map(|value| format!("* not the operation of {}: {}", value.id, value.what));
    let without = published.without.iter().map(|without| format!("no row: {}: {}", without.row, without.why));
    Sheet {
        title: format!("{}: {}", published.name, published.source),
        head: HEAD.map(str::to_owned).to_vec(),
        rows: rows.collect(),
        notes: differing.chain(without).collect(),
    }
}

fn published_row(value: &PublishedValue, record: &Record) -> Vec<String> {
    let text = |text: &Option<String>| text.as_ref().map(|text| cell::cut_to_width(text, 18));
    let expected = value.predicted_ns.map(format_duration).or_else(|| text(&value.expected));
    let unit = value.unit.as_deref().unwrap_or(NANOSECONDS);
    let amount = |amount: Option<f64>| amount.map(|amount| figure_text(amount, unit)).unwrap_or_default();
    let Ours { here, deviation, predicted } = our_cells(value, record);
    let mark = if value.differs { " *" } else { "" };
    vec![
        first_clause(&value.what) + mark,
        text(&value.hardware).unwrap_or_default(),
        text(&value.software).unwrap_or_default(),
        expected.unwrap_or_default(),
        amount(value.ns.or(value.value)),
        amount(value.sd),
        here,
        deviation,
        predicted,
        our_case(value),
    ]
}

/// The first clause, so that the row stays a line.
fn first_clause(what: &str) -> String {
    const LONGEST: usize = 47;
    let first = what.split([';', ':']).next().unwrap_or(what);
    cell::cut_to_width(first, LONGEST)
}

/// The case, and its figure if that is not the cost.
fn our_case(value: &PublishedValue) -> String {
    let times = value.times.map(|times| format!(" × {times}")).unwrap_or_default();
    match &value.figure {
        Some(figure) => format!("{} ({figure}{times})", value.id),
        None => value.id.clone() + &times,
    }
}

/// Our cells of a row.
#[derive(Default)]
struct Ours {
    here: String,
    deviation: String,
    predicted: String,
}

impl Ours {
    /// A figure, or the reason why there is none.
    fn only(here: impl Into<String>) -> Self {
        Self { here: here.into(), ..Self::default() }
    }
}

fn our_cells(value: &PublishedValue, record: &Record) -> Ours {
    let or = |found: Option<String>, reason: &str| Ours::only(found.unwrap_or_else(|| reason.into()));
    match value.id.split_once('/') {
        Some(("fall", prefix)) => return or(fall_range(prefix, record), "no fall in this run"),
        Some(("fit", step)) => return or(line_slope(step, record), "no line in this run"),
        _ => (),
    }
    match record.cases().find(|(_, case)| case.id == value.id) {
        None => Ours::only("not in this run"),
        Some((_, case)) => case_cells(value, case, &record.unit),
    }
}

fn case_cells(value: &PublishedValue, case: &CaseRecord, unit: &str) -> Ours {
    let measured = match &case.outcome {
        Outcome::Measured(measured) => measured,
        Outcome::Skipped(_) => return Ours::only("skipped here"),
        Outcome::Disturbed(_) => return Ours::only("disturbed"),
        Outcome::Failed(_) => return Ours::only("FAILED"),
    };
    let times = value.times.unwrap_or(1.0);
    match value.figure.as_deref() {
        None => cost_cells(measured, times, unit),
        // The loop is the same in every sample: to subtract it leaves the deviation.
        Some("net") => Ours {
            here: measured.net.map_or("no control".into(), |net| net_text(net, unit)),
            deviation: format_amount(measured.standard_deviation, unit),
            ..Ours::default()
        },
        Some(name) => derived_cells(measured, name, times, value.sd_times),
    }
}

fn cost_cells(measured: &Measured, times: f64, unit: &str) -> Ours {
    let predicted = measured.predicted.as_ref().filter(|_| unit == NANOSECONDS);
    Ours {
        here: format_amount(measured.figure().estimate * times, unit),
        deviation: format_amount(measured.standard_deviation * times, unit),
        predicted: predicted.map(|p| format_duration(p.hardware + p.software)).unwrap_or_default(),
    }
}

/// The cost less its control; of a difference that may be nothing, the most that it can be.
fn net_text(net: Interval, unit: &str) -> String {
    if net.low > 0.0 {
        format_amount(net.estimate, unit)
    } else {
        format!("below {}", format_amount(net.high.max(0.0), unit))
    }
}

fn derived_cells(measured: &Measured, name: &str, times: f64, sd_times: Option<f64>) -> Ours {
    let Some(figure) = measured.derived.iter().find(|figure| figure.name == name) else {
        return Ours::only("not derived");
    };
    let value = figure.value.estimate * times;
    let is_time = figure.unit == NANOSECONDS;
    // A rate has the relative deviation of its time if that is small. Beyond a half the figure would mean nothing.
    let relative = measured.standard_deviation / measured.median.estimate;
    let deviation = if is_time {
        sd_times.map(|part| part * measured.standard_deviation)
    } else {
        Some(value * relative).filter(|_| relative < 0.5)
    };
    Ours {
        here: figure_text(value, &figure.unit),
        deviation: deviation.map(|deviation| figure_text(deviation, &figure.unit)).unwrap_or_default(),
        ..Ours::default()
    }
}

fn figure_text(value: f64, unit: &str) -> String {
    if unit == NANOSECONDS { format_duration(value) } else { format!("{} {unit}", format_count(value)) }
}

/// The slope of the line of this step.
fn line_slope(step: &str, record: &Record) -> Option<String> {
    let mut fits = record.groups.iter().flat_map(|group| &group.fits);
    Some(net_text(fits.find(|fit| fit.step == step)?.slope, &record.unit))
}

/// The size at which the curve of this prefix falls.
fn fall_range(prefix: &str, record: &Record) -> Option<String> {
    let curves = record.groups.iter().flat_map(|group| &group.curves);
    let (held, beyond) = curves.into_iter().find(|curve| curve.prefix == prefix)?.fall.as_ref()?.step;
    Some(format!("{} to {}", format_size(held), format_size(beyond)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use syscost_engine::record::{Derived, FitRecord, fixture_run};
    use syscost_engine::study::published::find;

    #[test]
    fn every_row_of_both_reports_has_a_line_with_something_of_ours() {
        let record = fixture_run::fixture_record();
        for published in find("csc501,cse221").unwrap() {
            let sheet = published_sheet(&published, &record);
            assert_eq!(sheet.rows.len(), published.rows.len());
            assert!(sheet.rows.iter().all(|row| row.len() == HEAD.len() && !row[6].is_empty()));
            let differing = published.rows.iter().filter(|value| value.differs);
            for PublishedValue { id, what, .. } in differing {
                let note = sheet.notes.iter().find(|note| note.contains(id.as_str()));
                assert!(note.is_some_and(|note| note.contains(what.as_str())), "{id}: how does it differ?");
            }
            let without = sheet.notes.iter().filter(|note| note.starts_with("no row: ")).count();
            assert_eq!(without, published.without.len());
        }
    }

    #[test]
    fn a_narrow_terminal_keeps_what_they_measured_beside_ours() {
        let (record, machines) = (fixture_run::fixture_record(), find("csc501,cse221").unwrap());
        for width in [80, 120, 200] {
            let text =
                published_tables(&machines, &record, Layout { width: Some(width), ..Layout::default() });
            assert!(text.lines().all(|line| cell::display_width(line) <= width.into()), "{width}: {text}");
            assert!(text.contains("they measured") && text.contains("here"), "{width}: {text}");
        }
    }

    #[test]
    fn the_figure_that_is_the_same_operation_stands_beside_theirs() {
        let measured = Measured {
            standard_deviation: 200.0,
            median: Interval::exactly(2000.0),
            net: Some(Interval::exactly(1.5)),
            derived: vec![
                Derived { name: "switch".into(), unit: "ns".into(), value: Interval::exactly(900.0) },
                Derived { name: "bandwidth".into(), unit: "GB/s".into(), value: Interval::exactly(12.0) },
            ],
            ..Measured::default()
        };
        let case = CaseRecord {
            id: "one".into(),
            title: String::new(),
            outcome: Outcome::Measured(Box::new(measured)),
        };
        let here = |figure: &str, times| {
            let mut value = find("csc501").unwrap()[0].rows[0].clone();
            (value.figure, value.times, value.sd_times) = (Some(figure.into()), times, Some(0.5));
            let ours = case_cells(&value, &case, NANOSECONDS);
            [ours.here, ours.deviation]
        };
        assert_eq!(here("net", None), ["1.500 ns", "200.0 ns"]);
        assert_eq!(here("switch", None), ["900.0 ns", "100.0 ns"]);
        // The time deviates by a tenth, and so does the rate.
        assert_eq!(here("bandwidth", Some(0.5)), ["6.000 GB/s", "0.6000 GB/s"]);
        assert_eq!(here("fairness", None), ["not derived", ""]);
    }

    #[test]
    fn a_difference_that_may_be_nothing_is_told_as_its_upper_end() {
        let net = Interval { estimate: 0.01, low: -0.2, high: 0.25 };
        assert_eq!(net_text(net, NANOSECONDS), "below 0.2500 ns");
    }

    #[test]
    fn a_line_is_found_by_its_step() {
        let mut record = fixture_run::fixture_record();
        let [slope, intercept] = [2.5, 1.0].map(Interval::exactly);
        let fit = FitRecord { step: "a step".into(), slope, intercept, cases: 2, worst: None };
        record.groups[0].fits = vec![fit];
        assert_eq!(line_slope("a step", &record).as_deref(), Some("2.500 ns"));
    }

    #[test]
    fn a_row_is_a_line() {
        assert_eq!(first_clause("one; two"), "one");
        assert_eq!(first_clause(&"a".repeat(60)).chars().count(), 47);
    }
}

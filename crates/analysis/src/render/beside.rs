//! The Observation Table of published reports: their rows in their order, with their expected and measured values beside ours.

use super::sheet::Sheet;
use syscost_engine::record::quantity::{
    NANOSECONDS, format_amount, format_count, format_duration, format_exact_duration, format_size,
};
use syscost_engine::record::{CaseRecord, Interval, Measured, Outcome, Predicted, Record};
use syscost_engine::render::cell;
use syscost_engine::render::table::Layout;
use syscost_engine::study::published::{Published, PublishedValue};
use syscost_engine::study::reference_frequency::{core_frequency, undisturbed_frequency};

/// The heads of the columns.
const HEAD: [&str; 14] = [
    "what they timed",
    "hardware",
    "software",
    "they expected",
    "they measured",
    "their cycles",
    "their sd",
    "here",
    "cycles here",
    "our sd",
    "our hardware",
    "our software",
    "we expected",
    "our case",
];
/// The number of the report's columns, which come first.
#[cfg(test)]
const THEIRS: usize = 7;
/// The heads of the columns that a narrow terminal leaves out, in this order.
const LEFT_OUT: [&str; 10] = [
    "our hardware",
    "our software",
    "hardware",
    "software",
    "our sd",
    "our case",
    "their sd",
    "we expected",
    "cycles here",
    "their cycles",
];

/// One table for each published report, with notes on the rows that no case of ours matches.
pub fn published_tables(machines: &[Published], record: &Record, layout: Layout) -> String {
    let sheets = machines.iter().map(|published| published_sheet(published, record));
    sheets.map(|sheet| sheet.fit_by_leaving_out(layout, &LEFT_OUT)).collect::<Vec<_>>().join("\n")
}

fn published_sheet(published: &Published, record: &Record) -> Sheet {
    let frequencies: Vec<f64> =
        record.cases().filter_map(|(_, case)| core_frequency(case.measured()?)).collect();
    let beside = Beside { published, record, core_hz: undisturbed_frequency(&frequencies) };
    let mut notes: Vec<String> = published.rows.iter().filter_map(remark).collect();
    notes.extend(published.without.iter().map(|without| {
        let numbers: Vec<_> = without.numbers.iter().map(f64::to_string).collect();
        let numbers = if numbers.is_empty() { String::new() } else { format!(" ({})", numbers.join(", ")) };
        format!("no row: {}: {}{numbers}", without.row, without.why)
    }));
    notes.push("~: cycles that follow from a time and the frequency of the core; those without it are printed in the report".into());
    Sheet {
        title: format!("{}: {}", published.name, published.source),
        head: HEAD.map(str::to_owned).to_vec(),
        rows: published.rows.iter().map(|value| beside.row(value)).collect(),
        notes,
    }
}

/// The note of a row beyond its first clause: its difference from our case, or a remark.
fn remark(value: &PublishedValue) -> Option<String> {
    let first = first_clause(&value.what);
    let rest = value.what.strip_prefix(&first).map(|rest| rest.trim_start_matches([';', ':', ' ']));
    match (value.differs, rest) {
        (true, _) => Some(format!("* not the operation of {}: {}", value.id, value.what)),
        (false, Some("")) => None,
        (false, rest) => Some(format!("{}: {}", value.id, rest.unwrap_or(&value.what))),
    }
}

/// A report and the record beside it.
struct Beside<'a> {
    published: &'a Published,
    record: &'a Record,
    /// The frequency of our core, Hz.
    core_hz: Option<f64>,
}

impl Beside<'_> {
    fn row(&self, value: &PublishedValue) -> Vec<String> {
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        let unit = value.unit.as_deref().unwrap_or(NANOSECONDS);
        let amount = |amount: f64| published_text(amount, unit);
        let measured = value.ns.or(value.value).map(amount).unwrap_or_default();
        let expected = value.predicted_ns.map(amount).or_else(|| value.expected.clone());
        let ours = our_cells(value, self.record);
        let mark = if value.differs { " *" } else { "" };
        vec![
            first_clause(&value.what) + mark,
            text(&value.hardware),
            text(&value.software),
            expected.unwrap_or_default(),
            if value.below { format!("below {measured}") } else { measured },
            self.their_cycles(value),
            value.sd.map(amount).unwrap_or_default(),
            ours.here,
            ours.ns.zip(self.core_hz).map(|(ns, hz)| cycles_text(ns, hz)).unwrap_or_default(),
            ours.deviation,
            ours.expected.hardware,
            ours.expected.software,
            ours.expected.sum,
            our_case(value),
        ]
    }

    /// The cycles that the report prints, or else the cycles computed from its time.
    fn their_cycles(&self, value: &PublishedValue) -> String {
        let computed = || Some(cycles_text(value.ns?, 1e9 * self.published.ghz?));
        value.cycles.map(|cycles| cycles.to_string()).or_else(computed).unwrap_or_default()
    }
}

fn cycles_text(ns: f64, hz: f64) -> String {
    format!("~{}", format_count(1e-9 * hz * ns))
}

/// The text of a report's number with all of its digits.
fn published_text(value: f64, unit: &str) -> String {
    if unit == NANOSECONDS { format_exact_duration(value) } else { format!("{value} {unit}") }
}

/// The first clause of a description, so that the row fits on a line.
fn first_clause(what: &str) -> String {
    const LONGEST: usize = 47;
    let first = what.split([';', ':']).next().unwrap_or(what);
    cell::cut_to_width(first, LONGEST)
}

/// The id of our case, with the name of its figure if that is not the cost.
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
    /// The value of `here` in nanoseconds, if it is a time.
    ns: Option<f64>,
    deviation: String,
    expected: Expected,
}

/// The expected value of a figure: the hardware's part, the software's part, and their sum.
#[derive(Default, Debug, PartialEq)]
struct Expected {
    hardware: String,
    software: String,
    sum: String,
}

impl Expected {
    fn times(hardware: f64, software: f64) -> Self {
        Self {
            hardware: format_duration(hardware),
            software: format_duration(software),
            sum: format_duration(hardware + software),
        }
    }
}

impl Ours {
    /// Cells with only a figure, or only the reason why there is none.
    fn only(here: impl Into<String>) -> Self {
        Self { here: here.into(), ..Self::default() }
    }
}

fn our_cells(value: &PublishedValue, record: &Record) -> Ours {
    match value.id.split_once('/') {
        Some(("fall", prefix)) => return fall_cells(prefix, record),
        Some(("fit", step)) => return fit_cells(step, record),
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
    let control = measured.control.map_or(0.0, |control| control.estimate);
    match value.figure.as_deref() {
        None => cost_cells(measured, (times, control), unit),
        // The loop is the same in every sample, so subtracting it does not change the deviation.
        Some("net") => Ours {
            here: measured.net.map_or("no control".into(), |net| net_text(net, unit)),
            ns: measured.net.filter(|net| net.low > 0.0 && unit == NANOSECONDS).map(|net| net.estimate),
            deviation: format_amount(measured.standard_deviation, unit),
            expected: prediction(measured, unit).map_or_else(Expected::default, |p| {
                let loop_ns = if p.whole { control } else { 0.0 };
                Expected::times((p.hardware - loop_ns).max(0.0), p.software)
            }),
        },
        Some(name) => derived_cells(measured, name, times, value.sd_times),
    }
}

/// The prediction, if the measured figure is a time, as predictions are.
fn prediction<'a>(measured: &'a Measured, unit: &str) -> Option<&'a Predicted> {
    measured.predicted.as_ref().filter(|_| unit == NANOSECONDS)
}

fn cost_cells(measured: &Measured, (times, control): (f64, f64), unit: &str) -> Ours {
    let cost = measured.figure().estimate * times;
    Ours {
        here: format_amount(cost, unit),
        ns: (unit == NANOSECONDS).then_some(cost),
        deviation: format_amount(measured.standard_deviation * times, unit),
        expected: prediction(measured, unit).map_or_else(Expected::default, |p| {
            let loop_ns = if p.whole { 0.0 } else { control };
            Expected::times(times * p.hardware, times * (p.software + loop_ns))
        }),
    }
}

/// The text of the cost less its control. If the difference may be 0, it is the upper end: `below …`.
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
    // A rate has the relative deviation of its time if that is small. From 0.5 on the figure would be meaningless.
    let relative = measured.standard_deviation / measured.median.estimate;
    let deviation = if is_time {
        sd_times.map(|part| part * measured.standard_deviation)
    } else {
        Some(value * relative).filter(|_| relative < 0.5)
    };
    Ours {
        here: figure_text(value, &figure.unit),
        ns: is_time.then_some(value),
        deviation: deviation.map(|deviation| figure_text(deviation, &figure.unit)).unwrap_or_default(),
        expected: expected_of_derived(measured, value, &figure.unit),
    }
}

/// The expected value of a figure that is derived from the cost. A time is proportional to the cost, a rate inversely
/// proportional. The software part of a rate is the rate with the hardware alone less the rate with both parts.
fn expected_of_derived(measured: &Measured, value: f64, unit: &str) -> Expected {
    let Some(Predicted { hardware, software, whole, .. }) = &measured.predicted else {
        return Expected::default();
    };
    let net = measured.net.filter(|_| !whole).map(|net| net.estimate);
    let cost = net.unwrap_or(measured.figure().estimate);
    if unit == NANOSECONDS {
        return Expected::times(value * hardware / cost, value * software / cost);
    }
    let rate = |ns: f64| value * cost / ns;
    let (bound, sum) = (rate(*hardware), rate(hardware + software));
    Expected {
        hardware: figure_text(bound, unit),
        software: figure_text(bound - sum, unit),
        sum: figure_text(sum, unit),
    }
}

fn figure_text(value: f64, unit: &str) -> String {
    if unit == NANOSECONDS { format_duration(value) } else { format!("{} {unit}", format_count(value)) }
}

/// Our cells for the slope of the fitted line with this step.
fn fit_cells(step: &str, record: &Record) -> Ours {
    let mut fits = record.groups.iter().flat_map(|group| &group.fits);
    let Some(fit) = fits.find(|fit| fit.step == step) else { return Ours::only("no line in this run") };
    Ours {
        here: net_text(fit.slope, &record.unit),
        ns: (fit.slope.low > 0.0 && record.unit == NANOSECONDS).then_some(fit.slope.estimate),
        expected: fit
            .expected
            .map_or_else(Expected::default, |[hardware, software]| Expected::times(hardware, software)),
        ..Ours::default()
    }
}

/// Our cells for the size at which the curve of this prefix falls. The expected size is that of the memory, from the name.
fn fall_cells(prefix: &str, record: &Record) -> Ours {
    let mut curves = record.groups.iter().flat_map(|group| &group.curves);
    let fall = curves.find(|curve| curve.prefix == prefix).and_then(|curve| curve.fall.as_ref());
    let Some((held, beyond)) = fall.map(|fall| fall.step) else { return Ours::only("no fall in this run") };
    let size = prefix.trim_end_matches('/').rsplit_once("-in-").map_or("", |(_, size)| size);
    let sum = if size.is_empty() { String::new() } else { format!("below {size}") };
    Ours {
        here: format!("{} to {}", format_size(held), format_size(beyond)),
        expected: Expected { sum, ..Expected::default() },
        ..Ours::default()
    }
}

#[cfg(test)]
mod tests;

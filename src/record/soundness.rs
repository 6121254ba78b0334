//! What must be true of every run, whoever wrote its file: a run that contradicts itself is damaged, and is not shown.

use super::{CaseRecord, Execution, GroupRun, Interval, Measured, Record};
use crate::error::{Error, Result};
use crate::platform::inert::{self, is_hostile};
use std::collections::BTreeSet;
use std::fmt::Display;
use std::path::Path;

/// The longest name. Criterion cuts an id at 64 bytes, and a file name ends at 255.
pub(super) const LONGEST_NAME: usize = 200;
/// The longest sentence, in bytes: some quote what a program said.
const LONGEST_SENTENCE: usize = 64 << 10;
/// The most cases of a run, twenty times those that there are.
const MOST_CASES: usize = 20_000;

/// The first thing that is wrong.
pub(super) struct Fault {
    field: String,
    expected: String,
    found: String,
}

impl Fault {
    pub(super) fn of(field: impl Into<String>, expected: impl Display, found: impl Display) -> Self {
        Self { field: field.into(), expected: expected.to_string(), found: found.to_string() }
    }

    /// As the error of this file, with what to do about it.
    pub(super) fn refused(self, path: &Path, remedy: &str) -> Error {
        Error::content(path, self.field, self.expected, self.found, remedy)
    }
}

/// Refuses a run with a name, a number or an interval that cannot be, or with a case twice.
///
/// # Errors
/// Names the first field that is wrong.
pub(super) fn check(path: &Path, record: &Record) -> Result<()> {
    let remedy = "it was damaged or edited: restore it from a copy, or delete it";
    of_head(record).or_else(|| of_groups(record)).map_or(Ok(()), |fault| Err(fault.refused(path, remedy)))
}

/// Whether this can be a name: of a run, a unit, a case. It stands in tables and becomes a file name.
pub(super) fn is_name(text: &str) -> bool {
    !text.is_empty()
        && text.len() <= LONGEST_NAME
        && !text.contains(is_hostile)
        && !text.contains(inert::TAKEN)
}

fn of_head(record: &Record) -> Option<Fault> {
    let texts =
        [("tool", &record.tool), ("run", &record.run), ("scale", &record.scale), ("unit", &record.unit)];
    let given = [("session", &record.session), ("boot", &record.boot)];
    let given = given.into_iter().filter_map(|(field, text)| Some((field, text.as_ref()?)));
    texts.into_iter().chain(given).find_map(|(field, text)| name(field.into(), text))
}

fn of_groups(record: &Record) -> Option<Fault> {
    if record.cases().count() > MOST_CASES {
        return Some(Fault::of("groups", format!("at most {MOST_CASES} cases"), "more"));
    }
    let mut ids = BTreeSet::new();
    let places = record.groups.iter().enumerate();
    places.into_iter().find_map(|(at, group)| {
        let place = format!("groups[{at}]");
        of_group(&place, group).or_else(|| {
            let mut cases = group.cases.iter().enumerate();
            cases.find_map(|(at, case)| {
                let place = format!("{place}.cases[{at}]");
                of_case(&place, case).or_else(|| {
                    let again = !ids.insert(case.id.as_str());
                    again.then(|| Fault::of(place + ".id", "each case once", format!("{} twice", case.id)))
                })
            })
        })
    })
}

fn of_group(place: &str, group: &GroupRun) -> Option<Fault> {
    let fits = group.fits.iter().flat_map(|fit| [("slope", fit.slope), ("intercept", fit.intercept)]);
    name(format!("{place}.name"), &group.name)
        .or_else(|| group.notes.iter().find_map(|note| sentence(format!("{place}.notes"), note)))
        .or_else(|| positive(format!("{place}.clock.hz"), group.clock.hz))
        .or_else(|| group.fits.iter().find_map(|fit| sentence(format!("{place}.fits.step"), &fit.step)))
        .or_else(|| fits.into_iter().find_map(|(field, i)| ordered(format!("{place}.fits.{field}"), i)))
}

fn of_case(place: &str, case: &CaseRecord) -> Option<Fault> {
    name(format!("{place}.id"), &case.id)
        .or_else(|| sentence(format!("{place}.title"), &case.title))
        .or_else(|| sentence(format!("{place}.outcome"), case.outcome.sentence()?))
        .or_else(|| of_measured(&format!("{place}.outcome.measured"), case.measured()?))
}

fn of_measured(place: &str, measured: &Measured) -> Option<Fault> {
    let field = |part: &str| format!("{place}.{part}");
    let intervals = [
        ("median", Some(measured.median)),
        ("quiet", measured.quiet.map(|quiet| quiet.figure)),
        ("slope", Some(measured.slope)),
        ("intercept", Some(measured.intercept)),
        ("control", measured.control),
        ("net", measured.net),
    ];
    let of_intervals = || intervals.iter().find_map(|(part, given)| interval(field(part), (*given)?));
    let of_costs =
        || intervals[..2].iter().find_map(|(part, given)| positive(field(part), given.as_ref()?.estimate));
    let derived = || measured.derived.iter().find_map(|d| of_derived(&field("derived"), &d.name, d.value));
    let events = || {
        let rates = measured.events.iter().filter_map(|event| Some((&event.name, event.rate?)));
        rates.into_iter().find_map(|(name, rate)| of_derived(&field("events"), name, rate))
    };
    let sentences = measured.evidence.iter().chain(&measured.unasked).chain(&measured.left_out);
    let remarks = measured.events.iter().filter_map(|event| event.remark.as_ref());
    let sentences = sentences.chain(remarks);
    of_samples(place, measured)
        .or_else(of_intervals)
        .or_else(of_costs)
        .or_else(derived)
        .or_else(events)
        .or_else(|| measured.executions.iter().find_map(|execution| of_execution(place, execution)))
        .or_else(|| sentences.into_iter().find_map(|text| sentence(field("evidence"), text)))
}

fn of_samples(place: &str, measured: &Measured) -> Option<Fault> {
    let (values, iterations) = (measured.counted.len(), measured.iterations.len());
    let zero = measured.iterations.contains(&0);
    let uneven = (values != iterations)
        .then(|| Fault::of(format!("{place}.iterations"), format!("{values}, as many as values"), iterations));
    let frequencies = measured.core_mhz.len();
    let unpaced = || {
        (frequencies != 0 && frequencies != values).then(|| {
            Fault::of(format!("{place}.core_mhz"), format!("{values}, as many as values, or none"), frequencies)
        })
    };
    uneven
        .or_else(|| zero.then(|| Fault::of(format!("{place}.iterations"), "at least 1 in each sample", 0)))
        .or_else(unpaced)
}

fn of_execution(place: &str, execution: &Execution) -> Option<Fault> {
    positive(format!("{place}.executions.low"), execution.low)
        .or_else(|| positive(format!("{place}.executions.median"), execution.median))
}

fn of_derived(field: &str, title: &str, value: Interval) -> Option<Fault> {
    name(format!("{field}.name"), title).or_else(|| ordered(format!("{field}.value"), value))
}

fn interval(field: String, interval: Interval) -> Option<Fault> {
    let Interval { estimate, low, high } = interval;
    let sane =
        [estimate, low, high].iter().all(|number| number.is_finite()) && low <= estimate && estimate <= high;
    let found = || format!("{estimate} between {low} and {high}");
    (!sane).then(|| Fault::of(field, "a finite estimate within its interval", found()))
}

/// Of a figure that follows from others only this is certain.
fn ordered(field: String, interval: Interval) -> Option<Fault> {
    let Interval { estimate, low, high } = interval;
    let sane = [estimate, low, high].iter().all(|number| number.is_finite()) && low <= high;
    (!sane).then(|| Fault::of(field, "a finite interval", format!("{low} to {high}")))
}

fn positive(field: String, number: f64) -> Option<Fault> {
    let sane = number.is_finite() && number >= 0.0;
    (!sane).then(|| Fault::of(field, "a finite number, 0 or more", number))
}

fn name(field: String, text: &str) -> Option<Fault> {
    let expected = || format!("a name of 1 to {LONGEST_NAME} bytes without control characters");
    (!is_name(text)).then(|| Fault::of(field, expected(), format!("`{}`", inert::line(text, 40))))
}

fn sentence(field: String, text: &str) -> Option<Fault> {
    let expected = || format!("at most {LONGEST_SENTENCE} bytes");
    (text.len() > LONGEST_SENTENCE).then(|| Fault::of(field, expected(), text.len()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{Outcome, fixture_run};

    /// The message for a run with one fault.
    fn said(change: impl FnOnce(&mut Record)) -> String {
        let mut record = fixture_run::record();
        check(Path::new("x.json"), &record).expect("the fixture is sound");
        change(&mut record);
        check(Path::new("x.json"), &record).expect_err("one thing is wrong").to_string()
    }

    fn measured(record: &mut Record) -> &mut Measured {
        match &mut record.groups[0].cases[0].outcome {
            Outcome::Measured(measured) => measured,
            _ => panic!("the first case of the fixture is measured"),
        }
    }

    #[test]
    fn an_estimate_lies_within_its_interval() {
        let text = said(|record| measured(record).median.low = 99.0);
        assert!(text.starts_with("x.json: groups[0].cases[0].outcome.measured.median: expected"), "{text}");
        assert!(
            said(|record| measured(record).net = Some(Interval { estimate: 1.0, low: 2.0, high: 0.0 }))
                .contains("net")
        );
        assert!(said(|record| measured(record).slope.high = f64::INFINITY).contains("slope"));
        let negative = Interval { estimate: -1.0, low: -2.0, high: 0.0 };
        assert!(said(|record| measured(record).median = negative).contains("0 or more"));
    }

    #[test]
    fn a_case_is_there_once_and_has_a_name() {
        assert!(said(|record| record.groups[1] = record.groups[0].clone()).contains("clock_read/"));
        for id in ["", "a\u{1b}[2J", "a\u{202e}b", "two\nlines", &"x".repeat(10 << 20)] {
            let text = said(|record| record.groups[0].cases[0].id = id.into());
            assert!(text.contains("cases[0].id: expected a name") && text.len() < 500, "{text}");
        }
    }

    #[test]
    fn samples_are_counted() {
        assert!(
            said(|record| measured(record).counted.truncate(49)).contains("49, as many as values, found 50")
        );
        assert!(said(|record| measured(record).iterations[3] = 0).contains("at least 1"));
        assert!(
            said(|record| measured(record).evidence[0] = "x".repeat(1 << 20)).contains("at most 65536 bytes")
        );
    }
}

//! Checks every run that is read from a file. A run that contradicts itself is damaged and is refused.

use super::{CaseRecord, GroupRun, Interval, Measured, Record};
use crate::error::{Error, Result};
use crate::platform::inert::{self, is_hostile};
use std::collections::BTreeSet;
use std::fmt::Display;
use std::path::Path;

/// The longest name, in bytes. Criterion cuts an id at 64 bytes, and file names have at most 255.
const LONGEST_NAME: usize = 200;
/// The description of a valid name in messages.
pub const NAME: &str = "a name of 1 to 200 bytes without control characters";
/// The longest sentence, in bytes. It is large because some sentences quote the output of a program.
pub const LONGEST_SENTENCE: usize = 64 << 10;
/// The most cases of a run: twenty times as many as the suite has.
pub const MOST_CASES: usize = 20_000;

/// The result of a check: `Ok`, or the first fault.
pub type Sound = std::result::Result<(), Fault>;

/// A fault of a record: the field, what was expected, and what was found.
pub struct Fault {
    field: String,
    expected: String,
    found: String,
}

impl Fault {
    /// Converts the fault to an error on this file, with this remedy.
    pub fn into_error(self, path: &Path, remedy: &str) -> Error {
        Error::invalid_content(path, self.field, self.expected, self.found, remedy)
    }
}

/// Returns a fault of this field unless `sane` is true.
pub fn check_that(sane: bool, field: impl Display, expected: impl Display, found: impl Display) -> Sound {
    if sane {
        Ok(())
    } else {
        Err(Fault { field: field.to_string(), expected: expected.to_string(), found: found.to_string() })
    }
}

/// Refuses a run with an invalid name, number or interval, or with the same case twice.
///
/// # Errors
/// The first field that is wrong; the error names it.
pub fn check_record(path: &Path, record: &Record) -> Result<()> {
    let remedy = "it was damaged or edited: restore it from a copy, or delete it";
    check_record_fields(record).map_err(|fault| fault.into_error(path, remedy))
}

/// Whether this text can name a run, a unit or a case. A name is shown in tables and becomes a file name.
pub fn is_valid_name(text: &str) -> bool {
    name_fault(text).is_none()
}

/// The fault of a name, as a part of a sentence; `None` if the name is valid.
pub fn name_fault(id: &str) -> Option<String> {
    match id {
        "" => Some("it is empty".into()),
        _ if id.len() > LONGEST_NAME => Some(format!("it has {} bytes, of at most {LONGEST_NAME}", id.len())),
        _ => {
            let taken = id.chars().find(|&c| is_hostile(c) || c == inert::TAKEN)?;
            Some(format!("it holds the character U+{:04X}, which no table can show", u32::from(taken)))
        }
    }
}

fn check_record_fields(record: &Record) -> Sound {
    let texts =
        [("tool", &record.tool), ("run", &record.run), ("scale", &record.scale), ("unit", &record.unit)];
    let given = [("session", &record.session), ("boot", &record.boot)];
    let given = given.into_iter().filter_map(|(field, text)| Some((field, text.as_ref()?)));
    texts.into_iter().chain(given).try_for_each(|(field, text)| check_name(field, text))?;
    let is_possible = record.cases().count() <= MOST_CASES;
    check_that(is_possible, "groups", format_args!("at most {MOST_CASES} cases"), "more")?;
    let mut ids = BTreeSet::new();
    for (at, group) in record.groups.iter().enumerate() {
        let place = format!("groups[{at}]");
        check_group(&place, group)?;
        for (at, case) in group.cases.iter().enumerate() {
            let place = format!("{place}.cases[{at}]");
            check_case(&place, case)?;
            let is_new = ids.insert(case.id.as_str());
            check_that(is_new, place + ".id", "each case once", format_args!("{} twice", case.id))?;
        }
    }
    Ok(())
}

fn check_group(place: &str, group: &GroupRun) -> Sound {
    check_name(format_args!("{place}.name"), &group.name)?;
    group.notes.iter().try_for_each(|note| check_sentence(format_args!("{place}.notes"), note))?;
    check_nonnegative(format_args!("{place}.clock.hz"), group.clock.hz)?;
    for fit in &group.fits {
        check_sentence(format_args!("{place}.fits.step"), &fit.step)?;
        check_ordered(format_args!("{place}.fits.slope"), fit.slope)?;
        check_ordered(format_args!("{place}.fits.intercept"), fit.intercept)?;
    }
    Ok(())
}

fn check_case(place: &str, case: &CaseRecord) -> Sound {
    check_name(format_args!("{place}.id"), &case.id)?;
    check_sentence(format_args!("{place}.title"), &case.title)?;
    case.outcome.reason().map_or(Ok(()), |text| check_sentence(format_args!("{place}.outcome"), text))?;
    case.measured().map_or(Ok(()), |measured| check_measured(&format!("{place}.outcome.measured"), measured))
}

fn check_measured(place: &str, measured: &Measured) -> Sound {
    check_samples(place, measured)?;
    let costs = [("median", Some(measured.median)), ("quiet", measured.quiet.map(|quiet| quiet.figure))];
    let others = [
        ("slope", Some(measured.slope)),
        ("intercept", Some(measured.intercept)),
        ("control", measured.control),
        ("net", measured.net),
    ];
    let given = |(part, given): (&'static str, Option<Interval>)| Some((part, given?));
    for (part, given) in costs.into_iter().chain(others).filter_map(given) {
        check_interval(format_args!("{place}.{part}"), given)?;
    }
    for (part, given) in costs.into_iter().filter_map(given) {
        check_nonnegative(format_args!("{place}.{part}"), given.estimate)?;
    }
    for figure in &measured.derived {
        check_derived(format_args!("{place}.derived"), &figure.name, figure.value)?;
    }
    for event in &measured.events {
        event.rate.map_or(Ok(()), |rate| check_derived(format_args!("{place}.events"), &event.name, rate))?;
    }
    for execution in &measured.executions {
        check_nonnegative(format_args!("{place}.executions.low"), execution.low)?;
        check_nonnegative(format_args!("{place}.executions.median"), execution.median)?;
    }
    let sentences = measured.evidence.iter().chain(&measured.unasked).chain(&measured.left_out);
    let remarks = measured.events.iter().filter_map(|event| event.remark.as_ref());
    sentences.chain(remarks).try_for_each(|text| check_sentence(format_args!("{place}.evidence"), text))
}

fn check_samples(place: &str, measured: &Measured) -> Sound {
    let Measured { counted, iterations, core_mhz, .. } = measured;
    let [values, iterations, frequencies] = [counted.len(), iterations.len(), core_mhz.len()];
    let field = format!("{place}.iterations");
    check_that(values == iterations, &field, format_args!("{values}, as many as values"), iterations)?;
    check_that(!measured.iterations.contains(&0), &field, "at least 1 in each sample", 0)?;
    let (field, is_paced) = (format!("{place}.core_mhz"), [0, values].contains(&frequencies));
    check_that(is_paced, field, format_args!("{values}, as many as values, or none"), frequencies)
}

fn check_derived(field: impl Display, title: &str, value: Interval) -> Sound {
    check_name(format_args!("{field}.name"), title)?;
    check_ordered(format_args!("{field}.value"), value)
}

fn check_interval(field: impl Display, interval: Interval) -> Sound {
    let Interval { estimate, low, high } = interval;
    let sane = [estimate, low, high].iter().all(|n| n.is_finite()) && low <= estimate && estimate <= high;
    let expected = "a finite estimate within its interval";
    check_that(sane, field, expected, format_args!("{estimate} between {low} and {high}"))
}

/// Checks a derived figure: its interval must be finite and ordered; the estimate may lie outside it.
fn check_ordered(field: impl Display, interval: Interval) -> Sound {
    let Interval { estimate, low, high } = interval;
    let sane = [estimate, low, high].iter().all(|number| number.is_finite()) && low <= high;
    check_that(sane, field, "a finite interval", format_args!("{low} to {high}"))
}

fn check_nonnegative(field: impl Display, number: f64) -> Sound {
    check_that(number.is_finite() && number >= 0.0, field, "a finite number, 0 or more", number)
}

fn check_name(field: impl Display, text: &str) -> Sound {
    check_that(is_valid_name(text), field, NAME, format_args!("`{}`", inert::neutralize_line(text, 40)))
}

fn check_sentence(field: impl Display, text: &str) -> Sound {
    let is_short = text.len() <= LONGEST_SENTENCE;
    check_that(is_short, field, format_args!("at most {LONGEST_SENTENCE} bytes"), text.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{Outcome, fixture_run};

    /// The message for a run with one fault.
    fn message(change: impl FnOnce(&mut Record)) -> String {
        let mut record = fixture_run::fixture_record();
        check_record(Path::new("x.json"), &record).expect("the fixture is sound");
        change(&mut record);
        check_record(Path::new("x.json"), &record).expect_err("one thing is wrong").to_string()
    }

    fn measured(record: &mut Record) -> &mut Measured {
        match &mut record.groups[0].cases[0].outcome {
            Outcome::Measured(measured) => measured,
            _ => panic!("the first case of the fixture is measured"),
        }
    }

    #[test]
    fn an_estimate_outside_its_interval_is_refused() {
        let text = message(|record| measured(record).median.low = 99.0);
        assert!(text.starts_with("x.json: groups[0].cases[0].outcome.measured.median: expected"), "{text}");
        assert!(
            message(|record| measured(record).net = Some(Interval { estimate: 1.0, low: 2.0, high: 0.0 }))
                .contains("net")
        );
        assert!(message(|record| measured(record).slope.high = f64::INFINITY).contains("slope"));
        let negative = Interval { estimate: -1.0, low: -2.0, high: 0.0 };
        assert!(message(|record| measured(record).median = negative).contains("0 or more"));
    }

    #[test]
    fn a_repeated_case_and_an_invalid_name_are_refused() {
        assert!(NAME.contains(&format!("1 to {LONGEST_NAME} bytes")));
        assert!(message(|record| record.groups[1] = record.groups[0].clone()).contains("clock_read/"));
        for id in ["", "a\u{1b}[2J", "a\u{202e}b", "two\nlines", &"x".repeat(10 << 20)] {
            let text = message(|record| record.groups[0].cases[0].id = id.into());
            assert!(text.contains("cases[0].id: expected a name") && text.len() < 500, "{text}");
        }
    }

    #[test]
    fn vectors_of_different_lengths_and_long_sentences_are_refused() {
        assert!(
            message(|record| measured(record).counted.truncate(49))
                .contains("49, as many as values, found 50")
        );
        assert!(message(|record| measured(record).iterations[3] = 0).contains("at least 1"));
        assert!(
            message(|record| measured(record).evidence[0] = "x".repeat(1 << 20))
                .contains("at most 65536 bytes")
        );
    }
}

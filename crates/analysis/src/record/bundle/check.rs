//! Checks a head that was read: every index is in range, every number is finite, every name can be printed. Code
//! that uses a head need not check again.

use super::{Head, Run, Series};
use crate::error::Result;
use std::collections::BTreeSet;
use std::fmt::Display;
use std::path::Path;
use syscost_engine::record::Interval;
use syscost_engine::record::soundness::{NAME, Sound, check_that, is_valid_name};

/// The most runs of a head, because some code compares every run with every other.
const MOST_RUNS: usize = 10_000;
/// The first second of the year 10000. A time from then on is an error in the file.
const YEAR_10000: u64 = 253_402_300_800;

/// Refuses a head with an invalid index, number or name.
///
/// # Errors
/// A field is invalid; the error names the first one.
pub fn check_head(path: &Path, head: &Head) -> Result<()> {
    check_head_fields(head)
        .map_err(|fault| fault.into_error(path, "it was damaged or edited: take another copy of it"))
}

fn check_head_fields(head: &Head) -> Sound {
    let texts = [("tool", &head.tool), ("name", &head.name), ("unit", &head.unit), ("scale", &head.scale)];
    texts.into_iter().try_for_each(|(field, text)| check_name(field, text))?;
    check_moment("created", head.created)?;
    let runs = head.runs.len();
    check_that(runs > 0, "runs", "at least one", "none")?;
    check_that(!head.fingerprints.is_empty(), "fingerprints", "at least one", "none")?;
    check_that(runs <= MOST_RUNS, "runs", format_args!("at most {MOST_RUNS}"), runs)?;
    head.runs.iter().enumerate().try_for_each(|(at, run)| check_run(at, run, head))?;
    head.series.iter().enumerate().try_for_each(|(at, series)| check_series(at, series, head))?;
    check_unique(head)
}

fn check_run(at: usize, run: &Run, head: &Head) -> Sound {
    check_name(format_args!("runs[{at}].name"), &run.name)?;
    check_name(format_args!("runs[{at}].session"), &run.session)?;
    if !run.boot.is_empty() {
        check_name(format_args!("runs[{at}].boot"), &run.boot)?;
    }
    check_moment(format_args!("runs[{at}].started"), run.started)?;
    index(format_args!("runs[{at}].fingerprint"), run.fingerprint, head.fingerprints.len())
}

fn check_series(at: usize, series: &Series, head: &Head) -> Sound {
    check_name(format_args!("series[{at}].id"), &series.id)?;
    // A record from another program may have no version. A process that died early has no clock.
    let given = [("version", Some(&series.version)), ("clock", Some(&series.clock))];
    let given = given.map(|(part, text)| (part, text.filter(|text| !text.is_empty())));
    for (part, text) in given.into_iter().chain([("peer", series.peer.as_ref())]) {
        text.map_or(Ok(()), |text| check_name(format_args!("series[{at}].{part}"), text))?;
    }
    check_values(format_args!("series[{at}].values"), series, head)
}

/// Checks that each process has at most one value of a case, and that values are in the order of the runs.
fn check_values(field: impl Display, series: &Series, head: &Head) -> Sound {
    let mut least = 0;
    for value in &series.values {
        index(format_args!("{field}.run"), value.run, head.runs.len())?;
        let is_next = value.run >= least;
        check_that(is_next, format_args!("{field}.run"), format_args!("{least} or more"), value.run)?;
        least = value.run + 1;
        if let Some(hz) = value.core_hz {
            let is_frequency = hz.is_normal() && hz.is_sign_positive();
            check_that(is_frequency, format_args!("{field}.core_hz"), "a frequency", hz)?;
        }
        let Interval { estimate, low, high } = value.median;
        for number in [estimate, low, high] {
            check_that(number.is_finite(), format_args!("{field}.median"), "a finite number", number)?;
        }
        check_that(
            low <= estimate && estimate <= high,
            format_args!("{field}.median"),
            "an estimate within its interval",
            format_args!("{estimate} between {low} and {high}"),
        )?;
    }
    Ok(())
}

/// Refuses a run that occurs twice in one boot, and a series that occurs twice.
fn check_unique(head: &Head) -> Sound {
    let (mut runs, mut series) = (BTreeSet::new(), BTreeSet::new());
    for run in &head.runs {
        let is_new = runs.insert((&run.boot, &run.name));
        check_that(is_new, "runs", "each once", format_args!("{} twice", run.name))?;
    }
    for one in &head.series {
        let is_new = series.insert((&one.id, &one.version, &one.clock, &one.peer));
        check_that(is_new, "series", "each once", format_args!("{} twice", one.id))?;
    }
    Ok(())
}

fn check_name(field: impl Display, text: &str) -> Sound {
    let shown: String = text.chars().take(40).collect();
    check_that(is_valid_name(text), field, NAME, format_args!("{shown:?}"))
}

fn check_moment(field: impl Display, seconds: u64) -> Sound {
    check_that(seconds < YEAR_10000, field, "a moment before the year 10000", seconds)
}

fn index(field: impl Display, index: usize, length: usize) -> Sound {
    check_that(index < length, field, format_args!("an index below {length}"), index)
}

#[cfg(test)]
mod tests {
    use super::*;
    use syscost_engine::record::fixture_run;

    /// The message for a head with one fault.
    fn said(change: impl FnOnce(&mut Head)) -> String {
        let mut head = Head::from_records("main", 1, &[fixture_run::fixture_record()]);
        check_head(Path::new("x.syscost"), &head).expect("the fixture is sound");
        change(&mut head);
        check_head(Path::new("x.syscost"), &head).expect_err("one thing is wrong").to_string()
    }

    #[test]
    fn an_index_must_be_in_range() {
        let text = said(|head| head.runs[0].fingerprint = 1);
        assert!(
            text.starts_with("x.syscost: runs[0].fingerprint: expected an index below 1, found 1"),
            "{text}"
        );
        assert!(said(|head| head.series[2].values[0].run = 7).contains("series[2].values.run"));
        assert!(said(|head| head.fingerprints.clear()).contains("fingerprints: expected at least one"));
        assert!(said(|head| head.runs.clear()).contains("runs: expected at least one"));
    }

    #[test]
    fn a_number_must_be_finite_and_within_its_interval() {
        for number in [f64::NAN, f64::NEG_INFINITY, 1e300] {
            assert!(said(|head| head.series[0].values[0].median.low = number).contains("values.median"));
        }
        let text = said(|head| head.series[0].values[0].median.estimate = f64::INFINITY);
        assert!(text.contains("expected a finite number, found inf"), "{text}");
        let text = said(|head| head.series[0].values[0].median.high = -1.0);
        assert!(text.contains("an estimate within its interval"), "{text}");
        for hz in [0.0, -3e9, f64::NAN] {
            assert!(
                said(|head| head.series[0].values[0].core_hz = Some(hz)).contains("core_hz: expected a freq")
            );
        }
    }

    #[test]
    fn a_name_must_be_printable_and_a_time_before_the_year_10000() {
        for name in ["", "a\u{1b}[2J", &"x".repeat(201)] {
            assert!(said(|head| head.series[0].id = name.into()).contains("series[0].id"));
            assert!(said(|head| head.runs[0].name = name.into()).contains("runs[0].name"));
            assert!(said(|head| head.series[0].peer = Some(name.into())).contains("series[0].peer"));
        }
        assert!(said(|head| head.created = u64::MAX).contains("created: expected a moment"));
    }

    #[test]
    fn a_process_must_have_one_value_of_a_case() {
        let text = said(|head| {
            let value = head.series[0].values[0];
            head.series[0].values.push(value);
        });
        assert!(text.contains("series[0].values.run: expected 1 or more, found 0"), "{text}");
        assert!(said(|head| head.runs.push(head.runs[0].clone())).contains("twice"));
        assert!(said(|head| head.series.push(head.series[0].clone())).contains("twice"));
    }
}

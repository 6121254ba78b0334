//! Checks a head that was read: every index is in range, every number is finite, every name can be printed. Code
//! that uses a head need not check again.

use super::{Head, Run, Series};
use crate::error::Result;
use crate::record::soundness::{Fault, LONGEST_NAME as LONGEST, is_name};
use std::collections::BTreeSet;
use std::path::Path;

/// The most runs. Some code compares every run with every other.
const MOST_RUNS: usize = 10_000;
/// The first second of the year 10000: later times are damage.
const YEAR_10000: u64 = 253_402_300_800;

/// Refuses a head with an index, number or name that cannot be.
///
/// # Errors
/// Names the first field that is wrong.
pub(super) fn check(path: &Path, head: &Head) -> Result<()> {
    let runs = || head.runs.iter().enumerate().find_map(|(at, run)| of_run(at, run, head));
    let series = || head.series.iter().enumerate().find_map(|(at, series)| of_series(at, series, head));
    let fault = of_texts(head).or_else(|| of_counts(head)).or_else(runs).or_else(series);
    let remedy = "it was damaged or edited: take another copy of it";
    fault.or_else(|| repeated(head)).map_or(Ok(()), |fault| Err(fault.refused(path, remedy)))
}

fn of_texts(head: &Head) -> Option<Fault> {
    let texts = [("tool", &head.tool), ("name", &head.name), ("unit", &head.unit), ("scale", &head.scale)];
    let text = texts.into_iter().find_map(|(field, text)| name(field.into(), text));
    text.or_else(|| moment("created".into(), head.created))
}

fn of_counts(head: &Head) -> Option<Fault> {
    let none = |field: &str| Fault::of(field, "at least one", "none");
    match (head.runs.len(), head.fingerprints.len()) {
        (0, _) => Some(none("runs")),
        (_, 0) => Some(none("fingerprints")),
        (runs, _) if runs > MOST_RUNS => Some(Fault::of("runs", format!("at most {MOST_RUNS}"), runs)),
        _ => None,
    }
}

fn of_run(at: usize, run: &Run, head: &Head) -> Option<Fault> {
    let field = |part: &str| format!("runs[{at}].{part}");
    let boot = Some(&run.boot).filter(|boot| !boot.is_empty());
    name(field("name"), &run.name)
        .or_else(|| name(field("session"), &run.session))
        .or_else(|| name(field("boot"), boot?))
        .or_else(|| moment(field("started"), run.started))
        .or_else(|| index(field("fingerprint"), run.fingerprint, head.fingerprints.len()))
}

fn of_series(at: usize, series: &Series, head: &Head) -> Option<Fault> {
    let field = |part: &str| format!("series[{at}].{part}");
    // A record from elsewhere may have no version, and a process that died early no clock.
    let given = |part, text: &String| if text.is_empty() { None } else { name(field(part), text) };
    name(field("id"), &series.id)
        .or_else(|| given("version", &series.version))
        .or_else(|| given("clock", &series.clock))
        .or_else(|| name(field("peer"), series.peer.as_ref()?))
        .or_else(|| of_values(&field("values"), series, head))
}

/// Each process has one value of a case, and values are in the order of the runs.
fn of_values(field: &str, series: &Series, head: &Head) -> Option<Fault> {
    let mut least = 0;
    for value in &series.values {
        if let Some(fault) = index(format!("{field}.run"), value.run, head.runs.len()) {
            return Some(fault);
        }
        if value.run < least {
            return Some(Fault::of(format!("{field}.run"), format!("{least} or more"), value.run));
        }
        least = value.run + 1;
        if let Some(hz) = value.core_hz.filter(|hz| !hz.is_normal() || hz.is_sign_negative()) {
            return Some(Fault::of(format!("{field}.core_hz"), "a frequency", hz));
        }
        let median = value.median;
        if let Some(number) = [median.estimate, median.low, median.high].iter().find(|n| !n.is_finite()) {
            return Some(Fault::of(format!("{field}.median"), "a finite number", number));
        }
        if !(median.low <= median.estimate && median.estimate <= median.high) {
            let found = format!("{} between {} and {}", median.estimate, median.low, median.high);
            return Some(Fault::of(format!("{field}.median"), "an estimate within its interval", found));
        }
    }
    None
}

/// Two processes of one name in one boot, or two series of one operation.
fn repeated(head: &Head) -> Option<Fault> {
    let mut runs = BTreeSet::new();
    let mut series = BTreeSet::new();
    let run = head.runs.iter().find(|run| !runs.insert((&run.boot, &run.name)));
    let again = head.series.iter().find(|s| !series.insert((&s.id, &s.version, &s.clock, &s.peer)));
    run.map(|run| Fault::of("runs", "each once", format!("{} twice", run.name)))
        .or_else(|| again.map(|s| Fault::of("series", "each once", format!("{} twice", s.id))))
}

fn name(field: String, text: &str) -> Option<Fault> {
    (!is_name(text)).then(|| {
        let shown: String = text.chars().take(40).collect();
        let expected = format!("a name of 1 to {LONGEST} bytes without control characters");
        Fault::of(field, expected, format!("{shown:?}"))
    })
}

fn moment(field: String, seconds: u64) -> Option<Fault> {
    (seconds >= YEAR_10000).then(|| Fault::of(field, "a moment before the year 10000", seconds))
}

fn index(field: String, index: usize, length: usize) -> Option<Fault> {
    (index >= length).then(|| Fault::of(field, format!("an index below {length}"), index))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::fixture_run;

    /// The message for a head with one fault.
    fn said(change: impl FnOnce(&mut Head)) -> String {
        let mut head = Head::of("main", 1, &[fixture_run::record()]);
        check(Path::new("x.syscost"), &head).expect("the fixture is sound");
        change(&mut head);
        check(Path::new("x.syscost"), &head).expect_err("one thing is wrong").to_string()
    }

    #[test]
    fn an_index_leads_somewhere() {
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
    fn a_number_is_finite_and_within_its_interval() {
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
    fn a_name_can_be_printed_and_a_moment_is_before_the_year_10000() {
        for name in ["", "a\u{1b}[2J", &"x".repeat(201)] {
            assert!(said(|head| head.series[0].id = name.into()).contains("series[0].id"));
            assert!(said(|head| head.runs[0].name = name.into()).contains("runs[0].name"));
            assert!(said(|head| head.series[0].peer = Some(name.into())).contains("series[0].peer"));
        }
        assert!(said(|head| head.created = u64::MAX).contains("created: expected a moment"));
    }

    #[test]
    fn a_process_has_one_value_of_a_case() {
        let text = said(|head| {
            let value = head.series[0].values[0];
            head.series[0].values.push(value);
        });
        assert!(text.contains("series[0].values.run: expected 1 or more, found 0"), "{text}");
        assert!(said(|head| head.runs.push(head.runs[0].clone())).contains("twice"));
        assert!(said(|head| head.series.push(head.series[0].clone())).contains("twice"));
    }
}

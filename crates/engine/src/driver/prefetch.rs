//! Detects load "latencies" that are bandwidth: a prefetcher that predicts the order of the loads fetches ahead, and a step
//! then costs the transfer of a cache line, not the wait for it.

use crate::record::quantity::{NANOSECONDS, format_amount, format_count};
use crate::record::{CaseRecord, GroupRun, Measured};

/// A case this many times faster than random order was prefetched.
const TIMES: f64 = 2.0;
/// Name of the figure for bytes per second in a case of dependent loads.
const BANDWIDTH: &str = "bandwidth";

/// A note that names each case that is much faster than the random order over the same size.
pub(super) fn prefetch_note(run: &GroupRun) -> Option<String> {
    let disguised: Vec<_> = run.cases.iter().filter_map(|case| prefetched_case_sentence(run, case)).collect();
    (!disguised.is_empty()).then(|| {
        format!(
            "these are bandwidths and not latencies, because the prefetcher predicts the order of the loads: {}",
            disguised.join("; ")
        )
    })
}

fn prefetched_case_sentence(run: &GroupRun, case: &CaseRecord) -> Option<String> {
    let measured = case.measured()?;
    let bandwidth = measured.derived.iter().find(|figure| figure.name == BANDWIDTH)?;
    let size = case.id.rsplit('/').next()?;
    let random = format!("{}/random/{size}", run.name);
    let honest = run.cases.iter().find(|other| other.id == random)?.measured()?;
    let ns = |measured: &Measured| format_amount(measured.figure().estimate, NANOSECONDS);
    (honest.figure().estimate > TIMES * measured.figure().estimate).then(|| {
        let gigabytes = format_count(bandwidth.value.estimate);
        format!("{} {} ({} GB/s), where {random} is {}", case.id, ns(measured), gigabytes, ns(honest))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{Derived, Interval, fixture_run};

    fn case(id: &str, ns: f64, derived: &[f64]) -> CaseRecord {
        let at = Interval::exactly;
        let figure = |&value: &f64| Derived { name: BANDWIDTH.into(), unit: "GB/s".into(), value: at(value) };
        let derived = derived.iter().map(figure).collect();
        let measured = Measured { median: at(ns), derived, ..Measured::default() };
        fixture_run::measured_case(id, measured)
    }

    fn said(cases: Vec<CaseRecord>) -> Option<String> {
        prefetch_note(&GroupRun { name: "chase".into(), cases, ..GroupRun::default() })
    }

    #[test]
    fn a_stride_that_is_prefetched_is_named_beside_the_random_order() {
        let random = case("chase/random/256MiB", 110.0, &[]);
        let stride = case("chase/stride-64/256MiB", 3.0, &[21.3]);
        let note = said(vec![random, stride]).expect("a note");
        assert!(note.contains("chase/stride-64/256MiB 3.000 ns (21.3"), "{note}");
        assert!(note.contains("where chase/random/256MiB is 110.0 ns"), "{note}");
    }

    #[test]
    fn what_is_as_slow_has_no_counterpart_or_moves_no_bytes_is_not_named() {
        let random = || case("chase/random/256MiB", 110.0, &[]);
        assert_eq!(said(vec![random(), case("chase/stride-4096/256MiB", 100.0, &[0.6])]), None);
        assert_eq!(said(vec![random(), case("chase/stride-64/16KiB", 1.0, &[60.0])]), None);
        assert_eq!(said(vec![random(), case("chase/random-huge/256MiB", 9.0, &[])]), None);
    }
}

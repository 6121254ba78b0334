//! Finds the series of two heads that can be compared, or the reason why no series can be.

use super::replicate::{Estimate, Replicate, Replicates};
use crate::record::bundle::{Head, Series};
use crate::statistic::Floor;
use std::collections::BTreeMap;
use syscost_engine::record::Interval;

/// The series of a head by case.
pub(super) struct Index<'a> {
    pub head: &'a Head,
    series: BTreeMap<&'a str, Vec<&'a Series>>,
}

impl<'a> Index<'a> {
    pub(super) fn new(head: &'a Head) -> Self {
        let mut series: BTreeMap<_, Vec<_>> = BTreeMap::new();
        head.series.iter().for_each(|one| series.entry(one.id.as_str()).or_default().push(one));
        Self { head, series }
    }

    fn series_of_case(&self, id: &str) -> &[&'a Series] {
        self.series.get(id).map_or(&[], Vec::as_slice)
    }

    /// The series of the case with the most values.
    pub(super) fn fullest_series(&self, id: &str) -> Option<&'a Series> {
        let measured = self.series_of_case(id).iter().copied().filter(|series| !series.values.is_empty());
        measured.reduce(|best, next| if next.values.len() > best.values.len() { next } else { best })
    }

    /// The reason why this head has no value of the case.
    fn missing_reason(&self, id: &str) -> String {
        let name = &self.head.name;
        match self.series_of_case(id).iter().find_map(|series| series.without.first()) {
            Some(sentence) => format!("no number in {name}: {sentence}"),
            None => format!("the case is not in {name}"),
        }
    }
}

/// The pair of series of a case with the same version, clock and peer that has the most values; an error with the reason if
/// there is none.
pub(super) fn pair_series<'a>(
    id: &str,
    a: &Index<'a>,
    b: &Index<'a>,
) -> Result<(&'a Series, &'a Series), String> {
    let (Some(best_a), Some(best_b)) = (a.fullest_series(id), b.fullest_series(id)) else {
        let silent = if a.fullest_series(id).is_none() { a } else { b };
        return Err(silent.missing_reason(id));
    };
    let measured = |index: &Index<'a>| {
        index.series_of_case(id).iter().copied().filter(|s| !s.values.is_empty()).collect::<Vec<_>>()
    };
    let (of_a, of_b) = (measured(a), measured(b));
    let pairs = of_a.iter().flat_map(|x| of_b.iter().map(move |y| (*x, *y)));
    let alike = pairs.filter(|(x, y)| x.version == y.version && x.clock == y.clock && x.peer == y.peer);
    let fullest = alike.reduce(|best, next| if common_size(next) > common_size(best) { next } else { best });
    let another = |what: &str, field: fn(&Series) -> &str| {
        let [in_a, in_b] = [best_a, best_b].map(field);
        Err(format!("another {what}: {in_a} in {}, {in_b} in {}", a.head.name, b.head.name))
    };
    match fullest {
        Some(found) if [found.0, found.1].into_iter().all(is_positive) => Ok(found),
        Some(_) => Err("a value is not above zero, and has no ratio to another".into()),
        None if best_a.version != best_b.version => another("version of the operation", |s| &s.version),
        None if best_a.clock == best_b.clock => another("peer", |s| s.peer.as_deref().unwrap_or("none")),
        None => another("clock", |s| &s.clock),
    }
}

fn common_size((a, b): (&Series, &Series)) -> usize {
    a.values.len().min(b.values.len())
}

fn is_positive(series: &Series) -> bool {
    series.values.iter().all(|v| v.median.estimate > 0.0 && v.median.estimate.is_finite())
}

// The estimates of a case on both sides, and its value on one.

/// A case on both sides.
pub(super) struct Contrast {
    /// For the first and the second side, one estimate for each replicate.
    pub estimates: [Vec<Option<Estimate>>; 2],
    /// For the first and the second side, the floor of all its processes.
    pub floors: [Option<Floor>; 2],
    /// The key of the same series in other records.
    pub key: Key,
}

/// The key of a series: id, version, clock, peer.
pub(super) type Key = (String, String, String, Option<String>);

pub(super) fn series_key(series: &Series) -> Key {
    (series.id.clone(), series.version.clone(), series.clock.clone(), series.peer.clone())
}

impl Contrast {
    /// The mean over the replicates of the second side less that of the first.
    pub(super) fn mean_difference(&self) -> f64 {
        let sums =
            self.estimates.each_ref().map(|side| side.iter().flatten().map(|one| one.mean).sum::<f64>());
        let [of_a, of_b] = self.replicate_counts();
        sums[1] / of_b as f64 - sums[0] / of_a as f64
    }

    pub(super) fn replicate_counts(&self) -> [usize; 2] {
        self.estimates.each_ref().map(|side| side.iter().flatten().count())
    }
}

/// The value of a case on one side: the floor over its processes, or the interval of a single process.
pub(super) fn case_value(head: &Head, series: &Series) -> Option<Interval> {
    if series.values.iter().any(|value| value.median.estimate <= 0.0) {
        return mean_with_range(series);
    }
    if let [only] = series.values.as_slice() {
        return Some(only.median);
    }
    let logs = Replicates::new(head, Replicate::Session).value_logarithms(series, false);
    let floor = Floor::from_values(&logs, Replicate::Session.required_agreement())?;
    Some(Interval::around(floor.estimate, floor.spread).map(f64::exp))
}

/// The mean of the executions' values, with their range.
pub(super) fn case_range(series: &Series) -> Option<Interval> {
    let ends = series.values.iter().flat_map(|value| [value.median.low, value.median.high]);
    let (low, high) = (ends.clone().reduce(f64::min)?, ends.reduce(f64::max)?);
    Some(Interval { low, high, ..mean_with_range(series)? })
}

/// The mean of the processes' values, with their range. It replaces the floor for counts, which may be 0 and then have no
/// logarithm.
fn mean_with_range(series: &Series) -> Option<Interval> {
    let values = series.values.iter().map(|value| value.median.estimate);
    let (low, high) = (values.clone().reduce(f64::min)?, values.clone().reduce(f64::max)?);
    Some(Interval { estimate: values.sum::<f64>() / series.values.len() as f64, low, high })
}

#[cfg(test)]
mod tests {
    use super::super::fixture_head::head;
    use super::*;

    fn reason(a: &Head, b: &Head) -> String {
        pair_series("syscall/getpid", &Index::new(a), &Index::new(b)).expect_err("no pair")
    }

    #[test]
    fn the_same_operation_by_the_same_clock_is_a_pair() {
        let (a, b) = (head("old", 2, 1), head("new", 3, 1));
        let (x, y) = pair_series("syscall/getpid", &Index::new(&a), &Index::new(&b)).expect("a pair");
        assert_eq!((x.values.len(), y.values.len()), (2, 3));
    }

    #[test]
    fn every_reason_is_given() {
        let a = head("old", 2, 1);
        let changed = |change: fn(&mut Series)| {
            let mut b = head("new", 2, 1);
            b.series.iter_mut().for_each(change);
            reason(&a, &b)
        };
        assert!(changed(|s| s.id = "other".into()).contains("the case is not in new"));
        assert!(
            changed(|s| s.version = "other".into())
                .contains("another version of the operation: 1 in old, other in new")
        );
        assert!(changed(|s| s.clock = "monotonic-raw".into()).contains("tsc in old, monotonic-raw in new"));
        assert!(changed(|s| s.peer = Some("b by veth".into())).contains("none in old, b by veth in new"));
        assert!(changed(|s| s.values[0].median.estimate = 0.0).contains("not above zero"));
        let skipped = changed(|s| {
            s.values.clear();
            s.without.push("The kernel has no io_uring.".into());
        });
        assert_eq!(skipped, "no number in new: The kernel has no io_uring.");
    }

    #[test]
    fn of_two_versions_the_common_one_is_compared() {
        let (a, mut b) = (head("old", 2, 1), head("new", 2, 1));
        let at = b.series.iter().position(|s| s.id == "syscall/getpid").expect("the case");
        let newer = Series { version: "newer".into(), ..b.series[at].clone() };
        b.series.insert(0, newer);
        let (_, found) = pair_series("syscall/getpid", &Index::new(&a), &Index::new(&b)).expect("a pair");
        assert_eq!(found.version, a.series[0].version);
    }

    #[test]
    fn a_value_is_a_floor() {
        let mut five = head("x", 5, 1);
        let values = [150.0, 104.0, 100.0, 130.0, 104.0];
        five.series[0].values.iter_mut().zip(values).for_each(|(value, new)| value.median.estimate = new);
        let value = case_value(&five, &five.series[0]).expect("a value");
        assert!((value.estimate - 10_400_f64.sqrt()).abs() < 1e-9, "{value:?}");
        assert!((value.high / value.estimate - 1.3).abs() < 1e-9, "four of five must agree: {value:?}");
    }

    #[test]
    fn one_process_has_its_own_interval() {
        let one = head("x", 1, 1);
        let found = case_value(&one, &one.series[0]).expect("a value");
        assert_eq!(found, Interval { estimate: 100.0, low: 99.0, high: 101.0 });
    }

    #[test]
    fn a_count_of_zero_is_a_value() {
        let mut counted = head("x", 2, 1);
        counted.series[0].values.iter_mut().for_each(|value| value.median = Interval::default());
        assert_eq!(case_value(&counted, &counted.series[0]), Some(Interval::default()));
    }
}

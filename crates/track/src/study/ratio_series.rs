//! The series of a history: for each case its ratio to the first reference, night after night. If a reference was replaced, a
//! bridge compares the old one with the new one, and later ratios are multiplied by the bridge's ratio. The errors of bridges add up.

use crate::record::history_point::{CaseRatio, HistoryPoint, layout_for_clock};
use std::collections::BTreeMap;
use syscost_analysis::record::paired::Paired;
use syscost_analysis::study::sequential::Row;
use syscost_engine::environment::Fingerprint;
use syscost_engine::record::guest_side::{ClockKind, GuestSide};
use syscost_kernels::counted_change::{SideCount, judge_counts};
use syscost_kernels::instruction_counts::InstructionCounts;
use syscost_statistic::change_point::Value;

/// The distance from a normal estimate to either end of its 95 % interval, in standard errors.
pub const NORMAL: f64 = 1.959_964;

/// One case over the points of a history.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RatioSeries {
    /// `group/variant/parameter`.
    pub id: String,
    /// Whether neither side can change its cost.
    pub canary: bool,
    /// The ratios, in the order of the points.
    pub links: Vec<Link>,
}

/// The ratio of a case at one point.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Link {
    /// Index of the point in the history.
    pub point: usize,
    /// ln of the cost at this point over that of the first reference, with the error of this comparison alone.
    pub value: Value,
    /// Standard error of the bridges between the first reference and the reference of this point.
    pub bridged: f64,
    /// The cost of an iteration, ns, or instructions if those are counted.
    pub cost_ns: f64,
    /// The number of valid pairs.
    pub pairs: usize,
}

/// The fewest valid pairs for a ratio. Without any pair the ratio would be 1 with an error of 0.
const FEWEST_PAIRS: usize = 4;

/// The point of a comparison by pairs, still without the name of its reference. It has the cases with a number on both sides and
/// one version.
pub fn point_from_pairs(paired: &Paired) -> HistoryPoint {
    let rows = paired.judge();
    let cases = rows.iter().zip(&paired.cases).filter(|(row, case)| {
        case.ended.is_none()
            && case.versions[0] == case.versions[1]
            && row.judgement.change.estimate.is_finite()
    });
    let host = paired.fingerprint.clone();
    let (label, fingerprint) = match &paired.guests {
        Some(guests) => (&guests.sides[1].name, guest_fingerprint(&guests.sides[1], &guests.machine, host)),
        None => (&paired.sides[1], host),
    };
    HistoryPoint {
        history: layout_for_clock(paired.clock_kind()),
        run: paired.run.clone(),
        started: paired.started,
        label: label.clone(),
        clock: paired.clock_kind(),
        fingerprint,
        cases: cases.filter_map(|(row, case)| case_ratio(row, &case.versions[0])).collect(),
        ..HistoryPoint::default()
    }
}

/// The fingerprint of a guest on this host, whose differences between points are reported with a change.
fn guest_fingerprint(side: &GuestSide, machine: &str, host: Fingerprint) -> Fingerprint {
    let known = side.identity.clone().unwrap_or_default();
    Fingerprint {
        kernel_release: Some(known.release),
        kernel_version: Some(known.build),
        kernel_command_line: Some(known.command_line),
        mitigations: known.mitigations.into_iter().collect(),
        hypervisor: Some(machine.into()),
        ..host
    }
}

/// The ratio of a judged case; `None` if it is not finite or has fewer than [`FEWEST_PAIRS`] pairs.
fn case_ratio(row: &Row, version: &str) -> Option<CaseRatio> {
    let [low, estimate, high] = {
        let change = row.judgement.change;
        [change.low, change.estimate, change.high].map(f64::ln_1p)
    };
    let error = (high - low) / (2.0 * NORMAL);
    let is_number = [estimate, error, row.cost_ns[1]].iter().all(|number| number.is_finite());
    let is_ratio = is_number && row.pairs >= FEWEST_PAIRS;
    is_ratio.then(|| CaseRatio {
        id: row.id.clone(),
        canary: row.canary,
        version: version.into(),
        log_ratio: estimate,
        error,
        pairs: row.pairs,
        cost_ns: row.cost_ns[1],
        functions: Vec::new(),
    })
}

/// The fewest pairs for a ratio by this clock. Counted instructions repeat exactly, so one boot is enough.
fn fewest_pairs(clock: ClockKind) -> usize {
    if clock == ClockKind::Icount { 1 } else { FEWEST_PAIRS }
}

/// The series of all cases, sorted by id, and a sentence for each point with cases that belong to no series.
pub fn build_ratio_series(points: &[HistoryPoint]) -> (Vec<RatioSeries>, Vec<String>) {
    let mut all: BTreeMap<&str, RatioSeries> = BTreeMap::new();
    let (bridges, mut said) = (Bridges::from_points(points), Vec::new());
    let clock = points.first().map_or(ClockKind::Host, |point| point.clock);
    for (at, point) in points.iter().enumerate().filter(|(_, point)| point.bridge_to.is_none()) {
        // Only files that were joined by hand have points of several clocks.
        if point.clock != clock {
            said.push(format!(
                "{}: it is by the clock {}, and left out beside {clock}",
                point.run, point.clock
            ));
            continue;
        }
        let mut lacking = 0;
        // Points of older versions of `syscost` may have cases without valid pairs.
        for case in point.cases.iter().filter(|case| case.pairs >= fewest_pairs(point.clock)) {
            let Some((offset, variance)) = bridges.reference_offset(&point.reference, case) else {
                lacking += 1;
                continue;
            };
            let series = all.entry(&case.id).or_default();
            (series.id, series.canary) = (case.id.clone(), case.canary);
            series.links.push(Link {
                point: at,
                value: Value { value: offset + case.log_ratio, error: case.error },
                bridged: variance.sqrt(),
                cost_ns: case.cost_ns,
                pairs: case.pairs,
            });
        }
        if lacking > 0 {
            said.push(format!(
                "{}: {lacking} of {} cases have no bridge from the first reference to {}",
                point.run,
                point.cases.len(),
                point.reference
            ));
        }
    }
    (all.into_values().collect(), said)
}

/// By reference, case and version: ln of the reference's cost over that of the first reference, and the variance of this value.
struct Bridges<'a> {
    first: Option<&'a str>,
    known: BTreeMap<(&'a str, &'a str, &'a str), (f64, f64)>,
}

impl<'a> Bridges<'a> {
    fn from_points(points: &'a [HistoryPoint]) -> Self {
        let first = points.first().map(|point| point.reference.as_str());
        let mut bridges = Self { first, known: BTreeMap::new() };
        for point in points {
            let Some(new) = point.bridge_to.as_deref() else { continue };
            for case in point.cases.iter().filter(|case| case.pairs >= fewest_pairs(point.clock)) {
                let Some((offset, variance)) = bridges.reference_offset(&point.reference, case) else {
                    continue;
                };
                let reached = (offset + case.log_ratio, variance + case.error.powi(2));
                // The first bridge to a reference stays, so that earlier reports do not change.
                bridges.known.entry((new, &case.id, &case.version)).or_insert(reached);
            }
        }
        bridges
    }

    /// ln of this reference's cost over that of the first reference, and its variance; `None` without a bridge.
    fn reference_offset(&self, reference: &str, case: &CaseRatio) -> Option<(f64, f64)> {
        if Some(reference) == self.first {
            return Some((0.0, 0.0));
        }
        self.known.get(&(reference, case.id.as_str(), case.version.as_str())).copied()
    }
}

// A point of a history from a comparison of two kernels by counted instructions.

/// The point of a comparison by counts, still without the name of its reference. It has the cases that were counted on both kernels.
/// `version` returns the version of a case's group. The method of counting is added to it, since each method has its own series.
pub fn point_from_counts(
    counts: &InstructionCounts,
    version: impl Fn(&str) -> Option<String>,
) -> HistoryPoint {
    let cases = judge_counts(counts).into_iter().zip(&counts.cases).filter_map(|(row, case)| {
        let [Some(a), Some(b)] = &row.sides else { return None };
        let log_ratio = (b.instructions / a.instructions).ln();
        log_ratio.is_finite().then_some(())?;
        Some(CaseRatio {
            version: version(&row.id)? + counts.method.version_suffix(),
            canary: row.canary,
            log_ratio,
            error: log_standard_error(a).hypot(log_standard_error(b)),
            pairs: a.boots.min(b.boots),
            cost_ns: b.instructions,
            functions: case
                .moved
                .iter()
                .map(|moved| (moved.name.clone(), moved.own[1] - moved.own[0]))
                .collect(),
            id: row.id,
        })
    });
    HistoryPoint {
        history: layout_for_clock(counts.clock),
        run: counts.run.clone(),
        started: counts.started,
        label: counts.sides[1].name.clone(),
        clock: counts.clock,
        fingerprint: guest_fingerprint(&counts.sides[1], &counts.machine, Fingerprint::default()),
        cases: cases.collect(),
        ..HistoryPoint::default()
    }
}

/// Standard error of the logarithm of a count: a third of the range of the boots, over the square root of their number. It is
/// zero if all boots agree.
fn log_standard_error(side: &SideCount) -> f64 {
    (side.range[1] / side.range[0]).ln() / 3.0 / (side.boots.max(1) as f64).sqrt()
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use syscost_engine::record::guest_side::ClockKind;
    use syscost_kernels::instruction_counts::{CaseCounts, Count, CountOutcome, CountingMethod};

    /// A point with one case for each ratio; with `to` it is a bridge to that reference.
    pub fn test_point(run: usize, reference: &str, to: Option<&str>, ratios: &[f64]) -> HistoryPoint {
        let case = |(at, ratio): (usize, &f64)| CaseRatio {
            id: format!("group/{at}"),
            canary: false,
            version: "1".into(),
            log_ratio: ratio.ln(),
            error: 0.002,
            pairs: 16,
            cost_ns: 100.0 * ratio,
            functions: Vec::new(),
        };
        HistoryPoint {
            history: 1,
            run: format!("run-{run}"),
            started: 1_790_000_000 + 86_400 * run as u64,
            label: format!("revision {run}"),
            reference: reference.into(),
            bridge_to: to.map(str::to_owned),
            clock: ClockKind::Host,
            fingerprint: Fingerprint::default(),
            cases: ratios.iter().enumerate().map(case).collect(),
        }
    }

    #[test]
    fn a_chain_of_five_bridges_agrees_with_the_direct_comparison() {
        // Each new reference is 3 % slower than the one before; today's build costs 1.10 of the first one.
        let mut points = vec![test_point(0, "r0", None, &[1.10])];
        for link in 0..5 {
            points.push(test_point(10 + link, &format!("r{link}"), Some(&format!("r{}", link + 1)), &[1.03]));
        }
        points.push(test_point(20, "r5", None, &[1.10 / 1.03f64.powi(5)]));
        let (series, said) = build_ratio_series(&points);
        let links = &series[0].links;
        assert_eq!((links.len(), said.len()), (2, 0));
        assert!((links[0].value.value - links[1].value.value).abs() < 1e-12);
        assert!((links[1].bridged - 0.002 * 5f64.sqrt()).abs() < 1e-12 && links[0].bridged == 0.0);
    }

    #[test]
    fn cases_without_a_bridge_are_reported_and_left_out() {
        let (series, said) = build_ratio_series(&[
            test_point(0, "r0", None, &[1.0]),
            test_point(1, "other", None, &[2.0, 3.0]),
        ]);
        assert_eq!(series[0].links.len(), 1);
        assert_eq!(said, ["run-1: 2 of 2 cases have no bridge from the first reference to other"]);
    }

    #[test]
    fn a_case_with_only_disturbed_pairs_is_left_out() {
        let mut disturbed = test_point(1, "r0", None, &[1.0, 1.02]);
        disturbed.cases[0] = CaseRatio { pairs: 0, error: 0.0, cost_ns: 0.0, ..disturbed.cases[0].clone() };
        let (series, _) = build_ratio_series(&[test_point(0, "r0", None, &[1.1, 1.02]), disturbed]);
        assert_eq!(series.iter().map(|one| one.links.len()).collect::<Vec<_>>(), [1, 2]);
    }

    #[test]
    fn a_case_of_another_version_has_no_bridge() {
        let mut later = test_point(1, "r1", None, &[1.0]);
        later.cases[0].version = "2".into();
        let points = [test_point(0, "r0", Some("r1"), &[1.5]), later];
        let (series, said) = build_ratio_series(&points);
        assert!(series.is_empty() && said.len() == 1);
    }

    #[test]
    fn equal_counts_in_all_boots_give_a_ratio_without_an_error() {
        let boots = |n: u64| {
            let count = CountOutcome::Counted(Count {
                iterations: 10,
                batches: [10 * n, 20 * n],
                repetitions: [0; 2],
            });
            vec![count.clone(), count]
        };
        let case = |id: &str, sides| CaseCounts { id: id.into(), sides, ..CaseCounts::default() };
        let counts = InstructionCounts {
            clock: ClockKind::Icount,
            method: CountingMethod::Executed,
            cases: vec![case("a/b", [boots(200), boots(210)]), case("a/c", [boots(200), Vec::new()])],
            ..InstructionCounts::default()
        };
        let point = point_from_counts(&counts, |_| Some("1".into()));
        assert_eq!((point.cases.len(), point.clock, point.history), (1, ClockKind::Icount, 2));
        let case = &point.cases[0];
        assert_eq!(case.version, "1+executed");
        assert!((case.log_ratio.exp() - 1.05).abs() < 1e-12 && case.error == 0.0 && case.cost_ns == 210.0);
    }
}

//! A point of a history from a comparison of two kernels by counted instructions.

use super::ratio_series::guest_fingerprint;
use crate::record::history_point::{CaseRatio, HistoryPoint, layout_for_clock};
use syscost_engine::environment::Fingerprint;
use syscost_kernels::counted_change::{SideCount, judge_counts};
use syscost_kernels::instruction_counts::InstructionCounts;

/// The point of a comparison by counts: the cases that both kernels have counted. `version` is that of a case's group; the
/// way of counting is added to it, since figures of two ways are two series.
pub fn point_from_counts(
    counts: &InstructionCounts,
    reference: &str,
    label: &str,
    bridge_to: Option<&str>,
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
        label: label.into(),
        reference: reference.into(),
        bridge_to: bridge_to.map(str::to_owned),
        clock: counts.clock,
        fingerprint: guest_fingerprint(&counts.sides[1], &counts.machine, Fingerprint::default()),
        cases: cases.collect(),
    }
}

/// Standard error of the logarithm of a count: zero if all boots agree; else a third of their range, over the root
/// of their number.
fn log_standard_error(side: &SideCount) -> f64 {
    (side.range[1] / side.range[0]).ln() / 3.0 / (side.boots.max(1) as f64).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;
    use syscost_engine::record::guest_side::ClockKind;
    use syscost_kernels::instruction_counts::{CaseCounts, Count, CountOutcome, CountingMethod};

    #[test]
    fn what_both_kernels_have_counted_is_a_ratio_without_an_error() {
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
        let point = point_from_counts(&counts, "6.1", "6.12", None, |_| Some("1".into()));
        assert_eq!((point.cases.len(), point.clock, point.history), (1, ClockKind::Icount, 2));
        let case = &point.cases[0];
        assert_eq!(case.version, "1+executed");
        assert!((case.log_ratio.exp() - 1.05).abs() < 1e-12 && case.error == 0.0 && case.cost_ns == 210.0);
    }
}

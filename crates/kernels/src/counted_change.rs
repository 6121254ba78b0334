//! Verdicts on counted instructions. Counts that repeat exactly in every boot are compared directly; for others, the ranges over
//! the boots of each kernel are compared.

use crate::executed::function_table::MovedFunction;
use crate::instruction_counts::{CaseCounts, CountOutcome, InstructionCounts};
use serde::Serialize;
use syscost_analysis::study::gate::{Finding, Progress};
use syscost_engine::record::Verdict;
use syscost_statistic::median;

/// The fewest boots of each kernel for a verdict on counts that differ between boots. By chance alone, all 7 boots of one
/// kernel lie above all 7 of the other once in 1716 times.
pub const BOOTS_OF_NOISY: usize = 7;
/// Counts that differ between boots get the verdict "same" if all counts of both kernels lie within this share.
const MARGIN: f64 = 0.01;

/// The counts of a case on one kernel.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SideCount {
    /// Instructions per iteration: the median over the boots.
    pub instructions: f64,
    /// The least and the most instructions per iteration over the boots.
    pub range: [f64; 2],
    /// Boots that counted it.
    pub boots: usize,
    /// Whether there are at least two boots and all of them have the same count.
    pub exact: bool,
    /// Repetitions of string instructions per iteration, which are not in `instructions`: the median over the boots.
    pub repetitions: f64,
}

/// One case, judged.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CountedRow {
    /// `group/variant/parameter`.
    pub id: String,
    /// Whether no kernel can change its cost.
    pub canary: bool,
    /// A and B; `None` where it was not counted.
    pub sides: [Option<SideCount>; 2],
    /// B over A, less 1.
    pub change: Option<f64>,
    /// The verdict.
    pub verdict: Verdict,
    /// Why there is no stronger verdict.
    pub reason: Option<String>,
    /// The functions whose instructions changed, the largest change first.
    pub moved: Vec<MovedFunction>,
}

/// Judges every case: returns one row for each.
pub fn judge_counts(counts: &InstructionCounts) -> Vec<CountedRow> {
    counts.cases.iter().map(|case| judge_case(case, counts.threshold)).collect()
}

fn judge_case(case: &CaseCounts, threshold: f64) -> CountedRow {
    let sides = case.sides.each_ref().map(|outcomes| side_count(outcomes));
    let (verdict, reason) = match &sides {
        _ if has_equal_counts(case) => (Verdict::Same, None),
        [Some(a), Some(b)] => counts_verdict(a, b, threshold),
        _ => (Verdict::Incomparable, Some(absence_reason(case))),
    };
    let change = match &sides {
        [Some(a), Some(b)] => Some(b.instructions / a.instructions - 1.0),
        _ => None,
    };
    let moved = if verdict.is_change() { case.moved.clone() } else { Vec::new() };
    CountedRow { id: case.id.clone(), canary: case.canary, sides, change, verdict, reason, moved }
}

/// Whether the boots of both kernels give the same list of counts. Both kernels are booted with the same seeds,
/// so a difference between boots that both show is no change.
pub fn has_equal_counts(case: &CaseCounts) -> bool {
    let counts = |at: usize| {
        let mut counts: Vec<_> = case.sides[at].iter().filter_map(CountOutcome::count).collect();
        counts.sort_by(|a, b| a.instructions().total_cmp(&b.instructions()));
        counts
    };
    let a = counts(0);
    a.len() > 1 && a == counts(1)
}

/// Whether the boots of a kernel disagree about a case, so that it needs more boots.
pub fn is_noisy(outcomes: &[CountOutcome]) -> bool {
    side_count(outcomes).is_some_and(|side| !side.exact)
}

/// The counts of a case over the boots of one kernel; `None` if no boot counted it.
fn side_count(outcomes: &[CountOutcome]) -> Option<SideCount> {
    let counts: Vec<_> = outcomes.iter().filter_map(CountOutcome::count).collect();
    let values: Vec<f64> = counts.iter().map(|count| count.instructions()).collect();
    let (low, high) = values.iter().fold((f64::MAX, 0.0_f64), |(low, high), v| (low.min(*v), high.max(*v)));
    (!counts.is_empty()).then(|| SideCount {
        instructions: median(&values),
        range: [low, high],
        boots: counts.len(),
        exact: values.len() > 1 && low == high,
        repetitions: median(&counts.iter().map(|count| count.repetitions()).collect::<Vec<_>>()),
    })
}

/// The sides that have no count of this case, and why.
fn absence_reason(case: &CaseCounts) -> String {
    let whys = case.sides.iter().zip(["A", "B"]).filter_map(|(outcomes, label)| {
        let counted = outcomes.iter().any(|outcome| outcome.count().is_some());
        let why = outcomes.iter().find_map(CountOutcome::why).unwrap_or("its guest gave no answer");
        (!counted).then(|| format!("{label}: {why}"))
    });
    whys.collect::<Vec<_>>().join("; ")
}

fn counts_verdict(a: &SideCount, b: &SideCount, threshold: f64) -> (Verdict, Option<String>) {
    let change = b.instructions / a.instructions - 1.0;
    match (a.exact && b.exact, change) {
        (true, change) if change > threshold => (Verdict::Slower, None),
        (true, change) if change < -threshold => (Verdict::Faster, None),
        (true, _) => (Verdict::Same, None),
        (false, _) => noisy_verdict(a, b, threshold),
    }
}

/// The verdict on counts that differ between boots, from their ranges: a change if the ranges are further apart than the threshold.
fn noisy_verdict(a: &SideCount, b: &SideCount, threshold: f64) -> (Verdict, Option<String>) {
    let boots = a.boots.min(b.boots);
    if boots < BOOTS_OF_NOISY {
        let sentence =
            format!("it differs between boots, and {boots} a side are too few: {BOOTS_OF_NOISY} are needed");
        return (Verdict::Inconclusive, Some(sentence));
    }
    let spread = |low: f64, high: f64| high / low - 1.0;
    if b.range[0] > a.range[1] * (1.0 + threshold) {
        (Verdict::Slower, None)
    } else if b.range[1] < a.range[0] * (1.0 - threshold) {
        (Verdict::Faster, None)
    } else if spread(a.range[0].min(b.range[0]), a.range[1].max(b.range[1])) <= MARGIN {
        (Verdict::Same, None)
    } else {
        let by = 100.0 * spread(a.range[0], a.range[1]).max(spread(b.range[0], b.range[1]));
        (
            Verdict::Inconclusive,
            Some(format!("boots of one kernel differ by {by:.1} %, and those of the two overlap")),
        )
    }
}

/// The findings of a comparison of kernels by counted instructions.
pub fn findings(rows: &[CountedRow]) -> Vec<Finding> {
    let finding = |row: &CountedRow| Finding {
        id: row.id.clone(),
        verdict: row.verdict,
        change: row.change,
        reason: row.reason.clone(),
        canary: row.canary,
        // A case that the old kernel could not count either is not a fault of the new one.
        progress: match &row.sides {
            [_, Some(_)] => Progress::Measured,
            [None, None] => Progress::Skipped,
            [Some(_), None] => Progress::Failed,
        },
        ..Finding::default()
    };
    rows.iter().map(finding).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::instruction_counts::Count;

    fn boots(instructions: &[u64]) -> Vec<CountOutcome> {
        let count = |n: &u64| {
            CountOutcome::Counted(Count { iterations: 10, batches: [10 * n, 20 * n], repetitions: [0; 2] })
        };
        instructions.iter().map(count).collect()
    }

    fn case(a: Vec<CountOutcome>, b: Vec<CountOutcome>) -> CountedRow {
        judge_case(&CaseCounts { id: "x".into(), sides: [a, b], ..CaseCounts::default() }, 0.001)
    }

    #[test]
    fn one_instruction_of_three_hundred_is_a_change_if_every_boot_agrees() {
        let row = case(boots(&[329, 329]), boots(&[328, 328]));
        assert_eq!((row.verdict, row.reason), (Verdict::Faster, None));
        assert_eq!(case(boots(&[329, 329]), boots(&[331, 331])).verdict, Verdict::Slower);
        assert_eq!(case(boots(&[329, 329]), boots(&[329, 329])).verdict, Verdict::Same);
        assert_eq!(case(boots(&[50_000, 50_000]), boots(&[50_001, 50_001])).verdict, Verdict::Same);
    }

    #[test]
    fn counts_that_differ_between_two_boots_are_inconclusive() {
        let row = case(boots(&[329, 330]), boots(&[400, 400]));
        assert_eq!(row.verdict, Verdict::Inconclusive);
        assert!(row.reason.is_some_and(|why| why.contains("too few")));
        assert!(is_noisy(&boots(&[329, 330])) && !is_noisy(&boots(&[329, 329])) && !is_noisy(&[]));
        assert!(is_noisy(&boots(&[329])), "of one boot nothing is known");
    }

    #[test]
    fn seven_boots_with_noisy_counts_are_judged_by_their_ranges() {
        let noisy = [1000, 1010, 1005, 1001, 1002, 1003, 1020];
        let moved = noisy.map(|n| n + 40);
        assert_eq!(case(boots(&noisy), boots(&moved)).verdict, Verdict::Slower);
        assert_eq!(case(boots(&moved), boots(&noisy)).verdict, Verdict::Faster);
        assert_eq!(case(boots(&noisy), boots(&noisy.map(|n| n + 10))).verdict, Verdict::Inconclusive);
        let narrow = [1000, 1001, 1002, 1003, 1004, 1005, 1006];
        assert_eq!(case(boots(&narrow), boots(&narrow)).verdict, Verdict::Same);
    }

    #[test]
    fn equal_lists_of_noisy_counts_are_the_same() {
        assert_eq!(case(boots(&[300, 400]), boots(&[400, 300])).verdict, Verdict::Same);
        assert_eq!(case(boots(&[300, 400]), boots(&[400, 301])).verdict, Verdict::Inconclusive);
        assert_eq!(
            case(boots(&[300]), boots(&[300])).verdict,
            Verdict::Inconclusive,
            "one boot knows nothing"
        );
    }

    #[test]
    fn a_case_without_a_count_is_incomparable_and_names_the_side_and_the_reason() {
        let row = case(boots(&[1, 1]), vec![CountOutcome::Skipped("no userfaultfd".into())]);
        assert_eq!((row.verdict, row.change), (Verdict::Incomparable, None));
        assert_eq!(row.reason.as_deref(), Some("B: no userfaultfd"));
        let reason = case(Vec::new(), Vec::new()).reason;
        assert!(reason.is_some_and(|why| why.contains("A: its guest") && why.contains("B: its guest")));
    }
}

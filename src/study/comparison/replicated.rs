//! The rule for two sides with enough replicates: each is judged by its own deviation.

use super::contrast::Contrast;
use super::rule::{ALPHA, POWER, Rule};
use super::{Basis, Change};
use crate::record::verdict::Verdict;
use crate::statistic::{
    Alternative, joint, joint_p, minimum_detectable_between, permutation_p, shift, standard_deviation,
    student_quantile_above,
};
use std::collections::BTreeMap;

/// Judges rows of one column.
pub(super) fn judge(rows: &[&Contrast], rule: Rule) -> Vec<Change> {
    let first = rows.first().map_or(0, |row| row.a.len());
    let values: Vec<Vec<f64>> = rows.iter().map(|row| row.row()).collect();
    let joint = joint_p(&values, first, rule.seed);
    // Almost every row has the same number of replicates, so the result is kept.
    let mut reaches = BTreeMap::new();
    let judged = |(row, joint): (&&Contrast, f64)| {
        let sizes = row.replicates();
        let reach = *reaches.entry(sizes).or_insert_with(|| Reach::of(sizes, rows.len()));
        judge_row(row, joint, reach, rule)
    };
    rows.iter().zip(joint).map(judged).collect()
}

fn judge_row(row: &Contrast, joint: f64, reach: Reach, rule: Rule) -> Change {
    let (a, b) = row.means();
    let estimate = shift(&a, &b, 0.95);
    let inner = shift(&a, &b, 1.0 - 2.0 * ALPHA);
    let p = (estimate.estimate.abs() > rule.theta()).then(|| beyond(&a, &b, estimate.estimate, rule));
    let changed = joint <= ALPHA && p.is_some_and(|p| p <= ALPHA);
    let within = -rule.half_width() < inner.low && inner.high < rule.half_width();
    let detectable = reach.percent(&a, &b, rule);
    let verdict = match estimate.estimate {
        up if changed && up > 0.0 => Verdict::Slower,
        _ if changed => Verdict::Faster,
        _ if within => Verdict::Same,
        _ => Verdict::Inconclusive,
    };
    let reason = (verdict == Verdict::Inconclusive)
        .then(|| format!("neither a change nor its absence is shown; {}", what_helps(detectable)));
    Change {
        verdict,
        reason,
        ratio: Some(estimate.estimate.exp()),
        interval: Some([estimate.low.exp(), estimate.high.exp()]),
        basis: Some(Basis::Replicates),
        p,
        p_among_all: Some(joint),
        replicates: row.replicates(),
        detectable_percent: Some(detectable),
    }
}

/// The chance of such a shift in its own direction, if the true one were the threshold.
fn beyond(a: &[f64], b: &[f64], estimate: f64, rule: Rule) -> f64 {
    let (nearer, alternative) = match estimate > 0.0 {
        true => (-rule.theta(), Alternative::Greater),
        false => (rule.theta(), Alternative::Less),
    };
    let moved: Vec<f64> = b.iter().map(|value| value + nearer).collect();
    permutation_p(a, &moved, alternative, rule.seed)
}

/// The smallest change that is found, in deviations of a replicate, for one pair of sizes of the two sides.
#[derive(Clone, Copy)]
struct Reach {
    /// Beyond the threshold, by the test of the row.
    of_row: f64,
    /// From nothing, by the joint test. Student's law at an equal share of α a row and direction stands in.
    of_all: f64,
}

impl Reach {
    fn of([a, b]: [usize; 2], rows: usize) -> Self {
        let degrees = a + b - 2 + joint::BORROWED as usize;
        let level = ALPHA / (2 * rows) as f64;
        let errors = student_quantile_above(level, degrees) + student_quantile_above(1.0 - POWER, degrees);
        Self {
            of_row: minimum_detectable_between(1.0, a, b),
            of_all: errors * (1.0 / a as f64 + 1.0 / b as f64).sqrt(),
        }
    }

    /// The smallest change that both tests would have found in 80 of 100 comparisons, percent.
    fn percent(self, a: &[f64], b: &[f64], rule: Rule) -> f64 {
        let squares = |side: &[f64]| standard_deviation(side).powi(2) * (side.len() - 1) as f64;
        let deviation = ((squares(a) + squares(b)) / (a.len() + b.len() - 2) as f64).sqrt();
        100.0 * (rule.theta() + deviation * self.of_row).max(deviation * self.of_all).exp_m1()
    }
}

fn what_helps(detectable: f64) -> String {
    format!("a change of {detectable:.1} % would have been found, and more replicates find smaller ones")
}

//! The rule where both sides have replicates enough to speak for themselves.

use super::column::{ALPHA, Rule};
use super::contrast::Contrast;
use super::{Basis, Change};
use crate::record::verdict::Verdict;
use crate::statistic::{
    Alternative, joint_p, minimum_detectable_between, permutation_p, shift, standard_deviation,
    student_quantile_above,
};

/// As many replicates a side speak for themselves. With four there are 70 deals, and no p is below 0.014.
pub(super) const ENOUGH: usize = 5;
/// How likely the smallest detectable change is found: what is usual, and what the other rules mean by it.
pub(super) const POWER: f64 = 0.8;

/// Judges these rows, which all come from one column.
pub(super) fn judge(rows: &[&Contrast], rule: Rule) -> Vec<Change> {
    let first = rows.first().map_or(0, |row| row.a.len());
    let values: Vec<Vec<f64>> = rows.iter().map(|row| row.row()).collect();
    let joint = joint_p(&values, first, rule.seed);
    rows.iter().zip(joint).map(|(row, joint)| judge_row(row, joint, rows.len(), rule)).collect()
}

fn judge_row(row: &Contrast, joint: f64, rows: usize, rule: Rule) -> Change {
    let (a, b) = row.means();
    let estimate = shift(&a, &b, 0.95);
    let inner = shift(&a, &b, 1.0 - 2.0 * ALPHA);
    let p = (estimate.estimate.abs() > rule.theta()).then(|| beyond(&a, &b, estimate.estimate, rule));
    let changed = joint <= ALPHA && p.is_some_and(|p| p <= ALPHA);
    let within = -rule.half_width() < inner.low && inner.high < rule.half_width();
    let detectable = detectable(&a, &b, rows, rule);
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

/// The smallest change that both tests would have found in 80 of 100 comparisons, percent. For the joint test
/// Student's law at an equal share of α a row and direction stands in.
fn detectable(a: &[f64], b: &[f64], rows: usize, rule: Rule) -> f64 {
    let degrees = a.len() + b.len() - 2;
    let squares = |side: &[f64]| standard_deviation(side).powi(2) * (side.len() - 1) as f64;
    let deviation = ((squares(a) + squares(b)) / degrees as f64).sqrt();
    let error = deviation * (1.0 / a.len() as f64 + 1.0 / b.len() as f64).sqrt();
    let of_row = rule.theta() + minimum_detectable_between(deviation, a.len(), b.len());
    let borrowed = degrees + 2;
    let of_all = error
        * (student_quantile_above(ALPHA / (2 * rows) as f64, borrowed)
            + student_quantile_above(1.0 - POWER, borrowed));
    100.0 * of_row.max(of_all).exp_m1()
}

fn what_helps(detectable: f64) -> String {
    format!("a change of {detectable:.1} % would have been found, and more replicates find smaller ones")
}

//! Machines whose effect is not that of the others.

use super::observed::Observed;
use super::{FEWEST_TO_STAND_OUT, THRESHOLD};
use std::collections::BTreeSet;
use syscost_statistic::{median, student_upper_quantile};

/// The chance of naming any machine in any case of a fleet in which no machine stands out.
const CHANCE: f64 = 0.01;
/// From the median absolute deviation of a normal law to its standard deviation.
const NORMAL: f64 = 1.4826;
/// What the median absolute deviation knows of the spread, in degrees of freedom of a standard deviation, for each value
/// (Rousseeuw and Croux 1993: its efficiency is 37 %).
const EFFICIENCY: f64 = 0.37;

/// The places of the machines that stand out. `degrees` is how well the variances within machines are known, `tests` the number
/// of machines and cases in the answer.
pub(super) fn find_outlying_machines(
    observed: &[Observed],
    variance: &impl Fn(&Observed) -> f64,
    degrees: usize,
    tests: usize,
) -> BTreeSet<usize> {
    if observed.len() < FEWEST_TO_STAND_OUT {
        return BTreeSet::new();
    }
    let centre = median(&observed.iter().map(|one| f64::from(one.log)).collect::<Vec<_>>());
    let lowest = median(&observed.iter().map(|one| f64::from(one.lowest)).collect::<Vec<_>>());
    let distances: Vec<f64> = observed.iter().map(|one| (f64::from(one.log) - centre).abs()).collect();
    let spread = NORMAL * median(&distances);
    let of_spread = (EFFICIENCY * (observed.len() - 1) as f64).floor().max(1.0) as usize;
    let chance = CHANCE / (2.0 * tests.max(1) as f64);
    let by_spread = student_upper_quantile(chance, of_spread) * spread;
    let by_jobs = student_upper_quantile(chance, degrees);
    let is_out = |at: &usize| {
        let one = &observed[*at];
        let within = variance(one).sqrt();
        let limit = by_spread.max(if within > 0.0 { by_jobs * within } else { 0.0 }).max(THRESHOLD.ln_1p());
        let (by_mean, by_lowest) = (f64::from(one.log) - centre, f64::from(one.lowest) - lowest);
        by_mean.abs() > limit && by_lowest * by_mean.signum() > by_mean.abs() / 2.0
    };
    (0..observed.len()).filter(is_out).collect()
}

//! The cost without disturbance, from several executions of a case.
//!
//! Noise only adds (Chen and Revels, arXiv 1608.04295): another task, a slow spell of the host, an unlucky draw of pages.
//! So the figure is taken from the lowest executions, and of each of these from the lower quartile of its samples, which a
//! few lucky batches cannot move. It is the mean of the two lowest, because the lowest alone may be a rare fast mode.

use crate::record::{Execution, Interval, Quiet};
use crate::statistic::median;

/// The lowest executions of a settled case agree within this share.
const AGREEMENT: f64 = 0.01;
/// Half of the narrowest interval, as a share of the figure: below it lies what a run differs by from the next in any case.
const NARROWEST: f64 = 0.005;
/// How much further than the lowest executions lie apart the next run's figure may lie: a power of their ratio.
const STRETCH: f64 = 2.0;
/// An execution that is alone by this share below others that agree has met a rare faster mode.
const ALONE: f64 = 0.03;

/// The quiet figure of these executions; `None` of fewer than two. Where noise does not `add`, because the figure is a
/// difference, it is their median.
pub fn quiet(executions: &[Execution], adds: bool) -> Option<Quiet> {
    let mut lows: Vec<f64> = executions.iter().map(|execution| execution.low).collect();
    lows.sort_by(f64::total_cmp);
    if lows.len() < 2 {
        return None;
    }
    Some(if adds { floor(&lows) } else { middle(&lows) })
}

/// From ascending lower quartiles.
fn floor(lows: &[f64]) -> Quiet {
    let faster = faster(lows);
    let lows = if faster.is_some() { &lows[1..] } else { lows };
    let third = lows[2.min(lows.len() - 1)];
    let estimate = (lows[0] + lows[1]) / 2.0;
    Quiet { figure: around(estimate, third / lows[0]), settled: agree(lows[0], third), faster, earlier: 0 }
}

fn middle(ascending: &[f64]) -> Quiet {
    let (first, last) = (ascending[0], ascending[ascending.len() - 1]);
    let estimate = median(ascending);
    Quiet { figure: around(estimate, last / first), settled: agree(first, last), ..Quiet::default() }
}

/// The lowest value, if it is alone below at least three that agree.
fn faster(lows: &[f64]) -> Option<f64> {
    let [first, second, _, fourth, ..] = lows else { return None };
    (second / first > 1.0 + ALONE && agree(*second, *fourth)).then_some(*first)
}

fn agree(low: f64, high: f64) -> bool {
    high - low <= AGREEMENT * low.abs()
}

/// The interval around a figure whose lowest executions differ by this factor. It reaches as far down as up, as a factor, and
/// so never below zero. A difference may be negative: then it is as wide as its executions lie apart.
fn around(estimate: f64, apart: f64) -> Interval {
    if !(apart > 0.0 && estimate > 0.0) {
        return Interval::around(estimate, STRETCH * estimate.abs());
    }
    let factor = apart.powf(STRETCH).max(1.0 + NARROWEST);
    Interval { estimate, low: estimate / factor, high: estimate * factor }
}

/// Widens the interval of a figure to those of earlier runs of the same case on the same machine.
pub fn widen(quiet: &mut Quiet, earlier: &[f64]) {
    for &figure in earlier {
        quiet.figure.low = quiet.figure.low.min(figure);
        quiet.figure.high = quiet.figure.high.max(figure);
    }
    quiet.earlier = earlier.len();
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(lows: &[f64]) -> Option<Quiet> {
        let executions: Vec<_> = lows.iter().map(|&low| Execution { low, ..Execution::default() }).collect();
        quiet(&executions, true)
    }

    #[test]
    fn a_slow_spell_moves_nothing() {
        let calm = of(&[100.2, 100.0, 100.4]).expect("three");
        let spell = of(&[130.0, 100.2, 100.0, 125.0, 100.4]).expect("five");
        assert_eq!((calm.figure, calm.settled), (spell.figure, spell.settled));
        assert!(calm.settled && (calm.figure.estimate - 100.1).abs() < 1e-9);
    }

    #[test]
    fn one_lucky_execution_is_a_mode_and_no_floor() {
        let lucky = of(&[339.0, 250.9, 340.0, 339.5]).expect("four");
        assert_eq!((lucky.faster, lucky.settled), (Some(250.9), true));
        assert!(lucky.figure.estimate > 338.0);
        let twice = of(&[339.0, 250.9, 340.0, 339.5, 251.0]).expect("five");
        assert_eq!((twice.faster, twice.settled), (None, false), "two are no accident");
    }

    #[test]
    fn what_never_repeats_is_not_settled_and_says_so_by_its_width() {
        let drawn = of(&[68.0, 131.0, 97.0, 80.0]).expect("four");
        assert!(!drawn.settled && drawn.figure.high - drawn.figure.low > 50.0 && drawn.figure.low > 0.0);
        assert!(of(&[5.0]).is_none(), "one execution knows nothing of others");
    }

    #[test]
    fn a_difference_may_be_too_low_as_well() {
        let executions = [1.0, 9.0, 10.0, 11.0, 30.0].map(|low| Execution { low, ..Execution::default() });
        assert_eq!(quiet(&executions, false).map(|quiet| quiet.figure.estimate), Some(10.0));
    }

    #[test]
    fn earlier_runs_widen_and_never_narrow() {
        let mut found = of(&[100.0, 100.0, 100.0]).expect("three");
        widen(&mut found, &[100.1, 140.0]);
        assert_eq!((found.figure.high, found.earlier), (140.0, 2));
        assert!((found.figure.low - 100.0 / 1.005).abs() < 1e-9);
    }
}

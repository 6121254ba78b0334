//! The rule for two sides with enough replicates: the floors are compared, and the spread of the lowest values gives the interval.

use super::contrast::Contrast;
use super::rule::Rule;
use super::{Basis, Change};
use crate::statistic::Floor;
use syscost_engine::record::Interval;
use syscost_engine::record::verdict::Verdict;

/// How far beyond the interval's half a change must lie to be found in 80 of 100 comparisons, as a share of that half.
/// In 7600 comparisons of a machine with itself the difference of the floors, over that half, was below -1/3 in a fifth.
const SCATTER: f64 = 1.0 / 3.0;

/// Judges a row: a change is one if its whole interval lies beyond the threshold.
pub(super) fn judge(row: &Contrast, [a, b]: [Floor; 2], rule: Rule) -> Change {
    let way = a.difference_to(b);
    let detectable = detectable_percent([a, b], rule);
    let verdict = verdict([a, b], rule);
    let reason = (verdict == Verdict::Inconclusive).then(|| inconclusive_reason([a, b], detectable, rule));
    Change {
        verdict,
        reason,
        ratio: Some(way.estimate.exp()),
        interval: Some([way.low.exp(), way.high.exp()]),
        basis: Some(Basis::Replicates),
        replicates: row.replicate_counts(),
        detectable_percent: Some(detectable),
        ..Change::default()
    }
}

fn verdict([a, b]: [Floor; 2], rule: Rule) -> Verdict {
    match a.difference_to(b) {
        Interval { low, .. } if low > rule.log_threshold() && a.is_mostly_below(b) => Verdict::Slower,
        Interval { high, .. } if high < -rule.log_threshold() && b.is_mostly_below(a) => Verdict::Faster,
        Interval { low, high, .. } if -rule.log_margin() < low && high < rule.log_margin() => Verdict::Same,
        _ => Verdict::Inconclusive,
    }
}

/// The smallest change that would have been found in 80 of 100 comparisons, percent.
fn detectable_percent([a, b]: [Floor; 2], rule: Rule) -> f64 {
    let beyond = rule.log_threshold() + (1.0 + SCATTER) * half_width(a.difference_to(b));
    let over_half = [a, b].map(|floor| floor.middle - floor.estimate);
    100.0 * over_half.into_iter().fold(beyond, f64::max).exp_m1()
}

fn half_width(way: Interval) -> f64 {
    (way.high - way.low) / 2.0
}

fn inconclusive_reason([a, b]: [Floor; 2], detectable: f64, rule: Rule) -> String {
    let way = a.difference_to(b);
    if way.low > rule.log_threshold() || way.high < -rule.log_threshold() {
        return "the floors differ, but half of the faster side's processes are no faster than the other side's floor, as \
                where an operation has several modes; more processes tell, or `syscost ab`"
            .to_owned();
    }
    format!(
        "neither a change nor its absence is shown: the lowest values of a side lie up to {:.1} % apart; a change of \
         {detectable:.1} % would have been found, and more processes or a quieter machine find smaller ones",
        100.0 * half_width(way).exp_m1()
    )
}

#[cfg(test)]
mod tests;

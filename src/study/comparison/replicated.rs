//! The rule for two sides with enough replicates: a floor against a floor, each as sure as its own lowest values agree.

use super::contrast::Contrast;
use super::rule::Rule;
use super::{Basis, Change};
use crate::record::Interval;
use crate::record::verdict::Verdict;
use crate::statistic::Floor;

/// How far beyond the interval's half a change must lie to be found in 80 of 100 comparisons, as a share of that half.
/// In 7600 comparisons of a machine with itself the difference of the floors, over that half, was below -1/3 in a fifth.
const SCATTER: f64 = 1.0 / 3.0;

/// Judges a row: a change is one if its whole interval lies beyond the threshold.
pub(super) fn judge(row: &Contrast, [a, b]: [Floor; 2], rule: Rule) -> Change {
    let way = a.to(b);
    let detectable = 100.0 * (rule.theta() + (1.0 + SCATTER) * half(way)).exp_m1();
    let verdict = verdict(way, rule);
    let reason = (verdict == Verdict::Inconclusive).then(|| reason(way, detectable));
    Change {
        verdict,
        reason,
        ratio: Some(way.estimate.exp()),
        interval: Some([way.low.exp(), way.high.exp()]),
        basis: Some(Basis::Replicates),
        replicates: row.replicates(),
        detectable_percent: Some(detectable),
        ..Change::default()
    }
}

fn verdict(way: Interval, rule: Rule) -> Verdict {
    match way {
        Interval { low, .. } if low > rule.theta() => Verdict::Slower,
        Interval { high, .. } if high < -rule.theta() => Verdict::Faster,
        Interval { low, high, .. } if -rule.half_width() < low && high < rule.half_width() => Verdict::Same,
        _ => Verdict::Inconclusive,
    }
}

fn half(way: Interval) -> f64 {
    (way.high - way.low) / 2.0
}

fn reason(way: Interval, detectable: f64) -> String {
    format!(
        "neither a change nor its absence is shown: the lowest values of a side lie up to {:.1} % apart; a change of \
         {detectable:.1} % would have been found, and more processes or a quieter machine find smaller ones",
        100.0 * half(way).exp_m1()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_whole_interval_decides() {
        let rule = Rule { threshold: 0.01, margin: 0.02 };
        let of = |low, high| verdict(Interval { estimate: (low + high) / 2.0, low, high }, rule);
        assert_eq!(of(0.011, 0.09), Verdict::Slower);
        assert_eq!(of(-0.09, -0.011), Verdict::Faster);
        assert_eq!(of(0.009, 0.09), Verdict::Inconclusive);
        assert_eq!(of(-0.019, 0.019), Verdict::Same);
        assert_eq!(of(-0.019, 0.021), Verdict::Inconclusive);
    }
}

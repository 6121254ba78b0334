//! The rules by which a case is judged: by the replicates of both sides, or by the replicates in other records if a side has too
//! few. Counts that repeat exactly are compared directly.

use super::pairing::{Contrast, Index, case_range, pair_series};
use super::past_spread::{Deviation, Deviations};
use super::replicate::{Estimate, Replicate};
use super::{Basis, Change};
use crate::statistic::{Floor, adjusted_p_values, student_upper_quantile, student_upper_tail};
use crate::study::exact_count::CountChange;
use syscost_engine::record::Interval;
use syscost_engine::record::quantity::INSTRUCTIONS;
use syscost_engine::record::verdict::Verdict;

/// The one-sided level of the test that uses the deviation in other records.
const ALPHA: f64 = 0.01;

/// The fewest replicates a side that are judged by their own spread. The rule was validated with five.
pub(super) const ENOUGH: usize = 5;
/// The probability with which the smallest detectable change is found.
pub(super) const POWER: f64 = 0.8;

/// The options of a comparison.
#[derive(Clone, Copy)]
pub(super) struct Rule {
    pub threshold: f64,
    pub margin: f64,
}

impl Rule {
    /// The threshold as a logarithm.
    fn log_threshold(self) -> f64 {
        self.threshold.ln_1p()
    }

    /// The margin of *same* as a logarithm.
    fn log_margin(self) -> f64 {
        self.margin.ln_1p()
    }
}

// The rule for two sides with enough replicates: the floors are compared, and the spread of the lowest values gives the interval.

/// The extra distance, as a share of the interval's half-width, that a change needs to be found in 80 of 100 comparisons. In a
/// fifth of 7600 comparisons of a machine with itself, the difference of the floors was below −1/3 of that half-width.
const SCATTER: f64 = 1.0 / 3.0;

/// Judges a row by its floors. A change is found if its whole interval lies beyond the threshold.
pub(super) fn judge(row: &Contrast, [a, b]: [Floor; 2], rule: Rule) -> Change {
    let difference = a.difference_to(b);
    let detectable = detectable_percent([a, b], rule);
    let verdict = verdict([a, b], rule);
    let reason = (verdict == Verdict::Inconclusive).then(|| inconclusive_reason([a, b], detectable, rule));
    Change {
        verdict,
        reason,
        ratio: Some(difference.estimate.exp()),
        interval: Some([difference.low.exp(), difference.high.exp()]),
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

fn half_width(interval: Interval) -> f64 {
    (interval.high - interval.low) / 2.0
}

fn inconclusive_reason([a, b]: [Floor; 2], detectable: f64, rule: Rule) -> String {
    let difference = a.difference_to(b);
    if difference.low > rule.log_threshold() || difference.high < -rule.log_threshold() {
        return "the floors differ, but half of the faster side's processes are no faster than the other side's floor, as \
                where an operation has several modes; more processes tell, or `syscost ab`"
            .to_owned();
    }
    format!(
        "neither a change nor its absence is shown: the lowest values of a side lie up to {:.1} % apart; a change of \
         {detectable:.1} % would have been found, and more processes or a quieter machine find smaller ones",
        100.0 * half_width(difference).exp_m1()
    )
}

// Counts that repeat exactly, such as instructions by single steps. They are compared directly, regardless of processes,
// sessions and boots.

/// The change of a case with exact counts, or the reason why it has none.
pub(super) fn compare_exactly(a: &Index<'_>, b: &Index<'_>, id: &str, rule: Rule) -> Result<Change, String> {
    let (x, y) = pair_series(id, a, b)?;
    let [Some(old), Some(new)] = [x, y].map(case_range) else { return Err("a side has no value".into()) };
    let change = CountChange { id: id.to_owned(), name: INSTRUCTIONS.into(), old, new };
    let verdict = change.verdict(rule.threshold);
    let reason = match verdict {
        Verdict::Inconclusive => Some(format!("the executions differ: {}", change.sentence())),
        Verdict::Same => None,
        _ => Some(change.sentence()),
    };
    Ok(Change {
        verdict,
        reason,
        ratio: Some(change.ratio()),
        interval: Some([new.low / old.high, new.high / old.low]),
        basis: Some(Basis::Replicates),
        replicates: [x.values.len(), y.values.len()],
        ..Change::default()
    })
}

// The rule for a side with too few replicates. The deviation between replicates is pooled from other records; without them
// there is no verdict.

/// Judges the rows of one column by the deviation in other records.
pub(super) fn judge_rows(
    rows: &[&Contrast],
    replicate: Replicate,
    deviations: &Deviations<'_>,
    rule: Rule,
) -> Vec<Change> {
    let known: Vec<Option<Deviation>> = rows.iter().map(|row| deviations.deviation(&row.key)).collect();
    let pooled: Vec<_> = rows
        .iter()
        .zip(&known)
        .map(|(row, deviation)| Pooled::from_contrast(row, *deviation, rule))
        .collect();
    let p: Vec<f64> = pooled.iter().flatten().map(Pooled::two_sided_p).collect();
    let family = p.len();
    let mut adjusted = adjusted_p_values(&p).into_iter();
    let judged = |((row, known), pooled): ((&&Contrast, _), Option<Pooled>)| match pooled {
        Some(pooled) => pooled.to_change(row, adjusted.next().unwrap_or(1.0), family, rule),
        None => unreplicated_change(row, replicate, known),
    };
    rows.iter().zip(known).zip(pooled).map(judged).collect()
}

/// A difference and its standard error, which comes from other records.
struct Pooled {
    difference: f64,
    error: f64,
    degrees: usize,
    /// The p-values, upwards and downwards: the probability of such a difference if the true one were at most the threshold.
    p: [f64; 2],
}

impl Pooled {
    fn from_contrast(row: &Contrast, deviation: Option<Deviation>, rule: Rule) -> Option<Self> {
        let deviation = deviation.filter(Deviation::has_enough_degrees)?;
        let variance = |side: &Vec<Option<Estimate>>| {
            let of_each =
                side.iter().flatten().map(|estimate| deviation.variance_for_processes(estimate.processes));
            of_each.clone().sum::<f64>() / (of_each.count() as f64).powi(2)
        };
        let difference = row.mean_difference();
        let error = row.estimates.iter().map(variance).sum::<f64>().sqrt();
        let above = |excess: f64| student_upper_tail(excess / error, deviation.degrees);
        let p = [above(difference - rule.log_threshold()), above(-difference - rule.log_threshold())];
        Some(Self { difference, error, degrees: deviation.degrees, p })
    }

    /// The two-sided p-value. Both directions are tested, so each has half of the error.
    fn two_sided_p(&self) -> f64 {
        (2.0 * self.p[0].min(self.p[1])).min(1.0)
    }

    fn to_change(&self, row: &Contrast, adjusted: f64, family: usize, rule: Rule) -> Change {
        let quantile = |chance| student_upper_quantile(chance, self.degrees) * self.error;
        let (d, wide, narrow) = (self.difference, quantile(0.025), quantile(ALPHA));
        let verdict = match adjusted <= ALPHA {
            true if d > 0.0 => Verdict::Slower,
            true => Verdict::Faster,
            false if d.abs() + narrow < rule.log_margin() => Verdict::Same,
            false => Verdict::Inconclusive,
        };
        let detectable =
            rule.log_threshold() + quantile(ALPHA / (2 * family.max(1)) as f64) + quantile(1.0 - POWER);
        let detectable = 100.0 * detectable.exp_m1();
        let reason = (verdict == Verdict::Inconclusive).then(|| {
            format!("unreplicated; by other records a change of {detectable:.1} % would have been found")
        });
        Change {
            verdict,
            reason,
            ratio: Some(d.exp()),
            interval: Some([(d - wide).exp(), (d + wide).exp()]),
            basis: Some(Basis::History),
            p: (d.abs() > rule.log_threshold()).then_some(self.p[usize::from(d < 0.0)]),
            p_among_all: Some(adjusted),
            replicates: row.replicate_counts(),
            detectable_percent: Some(detectable),
        }
    }
}

fn unreplicated_change(row: &Contrast, replicate: Replicate, deviation: Option<Deviation>) -> Change {
    let replicates = row.replicate_counts();
    Change {
        reason: Some(unreplicated_reason(replicates, replicate, deviation.map_or(0, |d| d.replicates))),
        ratio: Some(row.mean_difference().exp()),
        replicates,
        ..Change::default()
    }
}

/// The reason why there is no verdict, with the records that would allow one.
fn unreplicated_reason([a, b]: [usize; 2], replicate: Replicate, stored: usize) -> String {
    let several = replicate.name(2);
    let there_are = match (a, b) {
        (1, 1) => format!("one {} a side", replicate.name(1)),
        (a, b) if a == b => format!("{a} {several} a side"),
        (a, b) => format!("{a} and {b} {several}"),
    };
    let known = match stored {
        0 => format!("no other record tells how {several} deviate"),
        n => format!("other records have {n} {several}, too few to tell how they deviate"),
    };
    let settles = match replicate {
        Replicate::Boot => format!("{ENOUGH} boots a side settle it (`syscost baseline save` joins runs)"),
        Replicate::Session => format!(
            "{ENOUGH} sessions a side settle it (`syscost baseline save` joins runs), or `syscost ab` against \
             the old build"
        ),
    };
    format!("unreplicated: {there_are}, and {known}; {settles}")
}

#[cfg(test)]
mod tests {
    use super::super::fixture_head::{add_noise, head_with_cases, join_into_one_boot, scale_cases};
    use super::super::{Comparison, Options, compare};
    use super::*;
    use crate::record::bundle::Head;
    use crate::statistic::Random;

    /// Lengthens every third process or so of each case by 5 to 30 %.
    fn lengthen_some(head: &mut Head, seed: u64) {
        let mut random = Random::new(seed);
        for value in head.series.iter_mut().flat_map(|series| &mut series.values) {
            if random.number_below(10) < 3 {
                let factor = 1.05 + 0.25 * random.number_below(1000) as f64 / 1000.0;
                value.median = value.median.map(|end| end * factor);
            }
        }
    }

    fn against(first: &Head, other: &Head) -> Comparison {
        compare(&[first.clone(), other.clone()], &[], Options::default())
    }

    fn change_of<'a>(comparison: &'a Comparison, id: &str) -> &'a Change {
        let row = comparison.rows.iter().find(|row| row.id == id).expect("the case");
        row.changes().next().expect("a change")
    }

    fn floor(estimate: f64, spread: f64, middle: f64) -> Floor {
        Floor { estimate, spread, middle }
    }

    #[test]
    fn a_change_needs_its_whole_interval_beyond_the_threshold() {
        let rule = Rule { threshold: 0.01, margin: 0.02 };
        let verdict_at =
            |change, spread| verdict([floor(0.0, spread, 0.001), floor(change, 0.0, change)], rule);
        assert_eq!(verdict_at(0.05, 0.03), Verdict::Slower);
        assert_eq!(verdict_at(-0.05, 0.03), Verdict::Faster);
        assert_eq!(verdict_at(0.05, 0.045), Verdict::Inconclusive);
        assert_eq!(verdict_at(0.0, 0.019), Verdict::Same);
        assert_eq!(verdict_at(0.001, 0.019), Verdict::Inconclusive);
    }

    #[test]
    fn a_floor_that_half_of_the_processes_do_not_share_is_no_change() {
        let rule = Rule { threshold: 0.01, margin: 0.02 };
        let floors = [floor(0.0, 0.001, 0.3), floor(0.3, 0.001, 0.3)];
        assert_eq!(verdict(floors, rule), Verdict::Inconclusive);
        assert!(
            inconclusive_reason(floors, detectable_percent(floors, rule), rule).contains("several modes")
        );
        assert!(detectable_percent(floors, rule) > 30.0);
    }

    /// Unchanged rows, 60 in each of 34 comparisons, that were called changed.
    fn alarms(side: impl Fn(&str, &[String], u64) -> Head) -> usize {
        let ids: Vec<String> = (0..60).map(|at| format!("call/u64/{at}")).collect();
        let of_round = |round: u64| {
            let comparison = against(&side("old", &ids, 100 + round), &side("new", &ids, 200 + round));
            comparison.changes().filter(|change| change.verdict.is_change()).count()
        };
        (0..34).map(of_round).sum()
    }

    /// The boots deviate by 2 % in both directions and have two processes each. If the unit were the process, one row in eight
    /// would be called changed.
    #[test]
    fn unchanged_rows_are_hardly_ever_called_changed() {
        let alarms = alarms(|name, ids, seed| {
            let mut head = head_with_cases(name, 5, 2, ids);
            add_noise(&mut head, 0.02, 0.01, seed);
            head
        });
        assert!(alarms <= 20, "at most a hundredth of 2040: {alarms}");
    }

    /// Sessions of one boot, three processes each, every third process lengthened by up to 30 %.
    fn spells(name: &str, ids: &[String], seed: u64) -> Head {
        let mut head = head_with_cases(name, 5, 3, ids);
        add_noise(&mut head, 0.0, 0.003, seed);
        lengthen_some(&mut head, seed);
        join_into_one_boot(&mut head);
        head
    }

    #[test]
    fn spells_of_noise_cause_no_changes_and_hide_none() {
        assert!(alarms(spells) <= 20, "at most a hundredth of 2040");
        let slower = |name: &str, ids: &[String], seed| {
            let mut head = spells(name, ids, seed);
            scale_cases(&mut head, "", if name == "new" { 1.05 } else { 1.0 });
            head
        };
        let found = alarms(slower);
        assert!(found >= 1632, "four fifths of 2040 at least: {found}");
    }

    /// A change of the size that a row claims to detect is found in 80 of 100 comparisons.
    #[test]
    fn the_smallest_detectable_change_is_found() {
        let ids: Vec<String> = (0..30).map(|at| format!("call/u64/{at}")).collect();
        let mut found = [0; 2];
        for round in 0..60 {
            let (old, new) = (spells("old", &ids, 1000 + round), spells("new", &ids, 2000 + round));
            let before = against(&old, &new);
            for id in &ids {
                let mut slower = new.clone();
                let percent = change_of(&before, id).detectable_percent.expect("known");
                slower.series.retain(|series| series.id == *id);
                scale_cases(&mut slower, "", 1.0 + percent / 100.0);
                let verdict = change_of(&against(&old, &slower), id).verdict;
                found[usize::from(verdict == Verdict::Slower)] += 1;
            }
        }
        assert!((1350..=1750).contains(&found[1]), "1440 of 1800 are promised: {found:?}");
    }
}

//! The rule for a side with too few replicates: their deviation is pooled from other records; without those there is no
//! verdict.

use super::contrast::Contrast;
use super::past_spread::{Deviation, Deviations};
use super::replicate::{Estimate, Replicate};
use super::rule::{ALPHA, ENOUGH, POWER, Rule};
use super::{Basis, Change};
use crate::statistic::{adjusted_p_values, student_upper_quantile, student_upper_tail};
use syscost_engine::record::verdict::Verdict;

/// Judges rows of one column.
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
    /// The chances of such a difference, if the truth were at most the threshold: upwards, downwards.
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

    /// Both directions are tested, so each has half of the error.
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

/// Why there is no verdict, and what would allow one.
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

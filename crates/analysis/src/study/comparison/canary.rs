//! Canaries: work that no kernel can change. If it differs between two boots, the core had another frequency or other
//! load, and all other values differ by the same factor.

use super::pairing::{Index, pair_series};
use super::replicate::{Logs, Replicates};
use crate::statistic::mean;
use syscost_engine::record::quantity::NANOSECONDS;

/// Dependent additions and multiplications in registers.
const IDS: [&str; 2] = ["known_work/add", "known_work/multiply"];

/// Mean logarithm of the canaries in each replicate of both sides.
pub(super) struct Canary([Vec<f64>; 2]);

impl Canary {
    /// The canaries that every replicate of both sides has measured; `None` if there are none, or if the unit is not
    /// time.
    pub(super) fn from_sides(
        a: &Index<'_>,
        b: &Index<'_>,
        of_a: &Replicates,
        of_b: &Replicates,
    ) -> Option<Self> {
        if a.head.unit != NANOSECONDS {
            return None;
        }
        let pairs = IDS.iter().filter_map(|id| pair_series(id, a, b).ok());
        let complete =
            pairs.filter_map(|(x, y)| Some((replicate_means(of_a, x)?, replicate_means(of_b, y)?)));
        let (of_a, of_b): (Vec<_>, Vec<_>) = complete.unzip();
        (!of_a.is_empty()).then(|| Self([average_over_canaries(&of_a), average_over_canaries(&of_b)]))
    }

    /// Subtracts the canaries from a case. A canary itself stays: it shows what was subtracted.
    pub(super) fn subtract_from(&self, id: &str, sides: &mut [Logs; 2]) {
        if is_canary(id) {
            return;
        }
        for (logs, canary) in sides.iter_mut().zip(&self.0) {
            logs.iter_mut().for_each(|(replicate, log)| *log -= canary[*replicate]);
        }
    }

    /// The canaries of the second side over those of the first.
    pub(super) fn ratio_between_sides(&self) -> f64 {
        let [a, b] = self.0.each_ref().map(|logs| mean(logs));
        (b - a).exp()
    }
}

pub(super) fn is_canary(id: &str) -> bool {
    IDS.contains(&id)
}

fn replicate_means(replicates: &Replicates, series: &crate::record::bundle::Series) -> Option<Vec<f64>> {
    let estimates = replicates.estimates(&replicates.value_logarithms(series, false));
    estimates.into_iter().map(|estimate| Some(estimate?.mean)).collect()
}

/// The mean over the canaries, for each replicate.
fn average_over_canaries(of_each: &[Vec<f64>]) -> Vec<f64> {
    let replicates = of_each.first().map_or(0, Vec::len);
    let mean = |at: usize| of_each.iter().map(|logs| logs[at]).sum::<f64>() / of_each.len() as f64;
    (0..replicates).map(mean).collect()
}

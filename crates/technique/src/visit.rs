//! Visits to a state compared with the times of samples: which visits a sampled monitor misses, and which it counts twice.
//!
//! A visit that is shorter than the time between two samples may fall between them; a longer visit is found several times. So
//! the number of samples in the state is not the number of visits, and sampling cannot take a measure of type A. The share of
//! samples in the state still estimates the fraction of time.
//!
//! Source: Kraemer, slide 7.

use syscost_statistic::{Interval, proportion_interval};

/// A visit to a state: the times of entry and exit, in any unit.
pub type Visit = (u64, u64);

/// How samples cover visits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Coverage {
    /// The number of visits without a sample.
    pub missed: u64,
    /// The number of visits with exactly one sample.
    pub once: u64,
    /// The number of visits with several samples.
    pub repeatedly: u64,
    /// The number of samples in the state.
    pub hits: u64,
    /// The number of all samples.
    pub looks: u64,
}

impl Coverage {
    /// Compares visits with the times of samples, `looks`. Both must be in order of time, and visits must not overlap.
    pub fn from_visits(visits: &[Visit], looks: &[u64]) -> Self {
        let mut coverage = Self { looks: looks.len() as u64, ..Self::default() };
        for &(entered, left) in visits {
            let before = |moment: u64| looks.partition_point(|look| *look < moment);
            let found = (before(left) - before(entered)) as u64;
            coverage.hits += found;
            match found {
                0 => coverage.missed += 1,
                1 => coverage.once += 1,
                _ => coverage.repeatedly += 1,
            }
        }
        coverage
    }

    /// The fraction of time in the state, estimated from the samples, with its binomial interval of 95 %.
    pub fn sampled_fraction(&self) -> Interval {
        proportion_interval(self.hits, self.looks)
    }
}

/// The true fraction of `[0, end)` spent in the state.
pub fn true_fraction(visits: &[Visit], end: u64) -> f64 {
    visits.iter().map(|(entered, left)| left.min(&end).saturating_sub(*entered)).sum::<u64>() as f64
        / end as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use syscost_statistic::Random;

    /// Visits of 12 in every 25 units: 48 %.
    fn visits(count: u64) -> Vec<Visit> {
        (0..count).map(|at| (25 * at, 25 * at + 12)).collect()
    }

    fn every(period: u64, end: u64) -> Vec<u64> {
        (0..end).step_by(period as usize).collect()
    }

    #[test]
    fn slow_sampling_misses_visits_and_fast_sampling_repeats_them() {
        let (visits, end) = (visits(100), 2500);
        let found = |period| Coverage::from_visits(&visits, &every(period, end));
        assert_eq!(found(25), Coverage { once: 100, hits: 100, looks: 100, ..Coverage::default() });
        assert_eq!(found(50), Coverage { missed: 50, once: 50, hits: 50, looks: 50, ..Coverage::default() });
        assert_eq!((found(3).repeatedly, found(3).missed), (100, 0));
        assert_eq!(Coverage::from_visits(&visits, &[]).missed, 100);
    }

    #[test]
    fn a_visit_includes_its_entry_time_and_excludes_its_exit_time() {
        let one = [(10, 20)];
        assert_eq!(Coverage::from_visits(&one, &[10]).hits, 1);
        assert_eq!(Coverage::from_visits(&one, &[9, 20]).hits, 0);
    }

    /// A load has a period of three ticks and is on for 1.44 of them: 48 %. Two of three ticks find it on.
    #[test]
    fn synchronous_sampling_reads_66_percent_for_a_true_48() {
        let visits: Vec<_> = (0..1000).map(|at| (300 * at, 300 * at + 144)).collect();
        let end = 300_000;
        assert_eq!(true_fraction(&visits, end), 0.48);
        let in_step = Coverage::from_visits(&visits, &every(100, end)).sampled_fraction();
        assert!((in_step.estimate - 2.0 / 3.0).abs() < 1e-12 && in_step.low > 0.48, "{in_step:?}");
    }

    #[test]
    fn random_gaps_give_intervals_that_hold_the_true_fraction() {
        let visits: Vec<_> = (0..1000).map(|at| (300 * at, 300 * at + 144)).collect();
        let mut inside = 0;
        for seed in 0..40 {
            let mut random = Random::new(seed);
            let mut looks = vec![random.number_below(200) as u64];
            while looks[looks.len() - 1] < 300_000 {
                looks.push(looks[looks.len() - 1] + 1 + random.number_below(200) as u64);
            }
            looks.pop();
            let found = Coverage::from_visits(&visits, &looks).sampled_fraction();
            inside += u32::from(found.low <= 0.48 && 0.48 <= found.high);
        }
        // Of 40 intervals of 95 %, fewer than 33 hold the truth once in ten thousand times.
        assert!(inside >= 33, "{inside} of 40");
    }
}

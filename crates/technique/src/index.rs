//! The damped performance index: one number for the current performance of a system, from the response times of
//! commands.
//!
//! A *block* is n consecutive commands; R(k) is the mean response time of block k. Control that reacts to each command
//! is jittery, so the index changes once for each block, and only in part:
//!
//! > PI(k) = λ·PI(k−1) + (1−λ)·R(k), 0 ≤ λ < 1
//!
//! A higher λ gives more weight to the past: block k−j has the weight λʲ(1−λ). Both λ and n reduce jitter and add
//! delay:
//!
//! | response times | index |
//! |---|---|
//! | change by a step | lacks λᵏ of the step after k blocks: [`blocks_to_settle`] |
//! | scatter with the standard deviation σ | scatters with σ·√((1−λ) / (n(1+λ))): [`index_jitter`] |
//!
//! Source: slides 76 to 82 of the [module's](super) own.

use syscost_platform::error::{Error, Result};

/// The index of a sequence of commands.
#[derive(Clone, Debug, PartialEq)]
pub struct PerformanceIndex {
    block: u32,
    damping: f64,
    sum: f64,
    count: u32,
    value: Option<f64>,
}

impl PerformanceIndex {
    /// An index over blocks of `block` commands with the damping λ. It starts at the mean of the first block.
    ///
    /// # Errors
    /// [`Error::Usage`] for an empty block, or for a λ outside of 0 ≤ λ < 1.
    pub fn new(block: u32, damping: f64) -> Result<Self> {
        if block == 0 {
            return Err(Error::Usage("a block of no commands has no mean: give it at least one".into()));
        }
        if !(0.0..1.0).contains(&damping) {
            let sentence = format!("a damping of {damping}: expected a number from 0 to below 1");
            return Err(Error::Usage(sentence));
        }
        Ok(Self { block, damping, sum: 0.0, count: 0, value: None })
    }

    /// Starts at a known value.
    pub fn with_initial_value(self, value: f64) -> Self {
        Self { value: Some(value), ..self }
    }

    /// Takes the response time of one command; at the end of a block, the new index.
    pub fn add_response(&mut self, response: f64) -> Option<f64> {
        self.sum += response;
        self.count += 1;
        if self.count < self.block {
            return None;
        }
        let mean = self.sum / f64::from(self.block);
        (self.sum, self.count) = (0.0, 0);
        let before = self.value.unwrap_or(mean);
        let now = self.damping * before + (1.0 - self.damping) * mean;
        self.value = Some(now);
        Some(now)
    }

    /// The index after the last complete block; `None` before the first.
    pub fn value(&self) -> Option<f64> {
        self.value
    }
}

/// The number of blocks after which the index lacks at most `share` of a step: the least k with λᵏ ≤ share.
pub fn blocks_to_settle(damping: f64, share: f64) -> u32 {
    match damping {
        0.0 => 1,
        _ => (share.ln() / damping.ln() - 1e-9).ceil().max(0.0) as u32,
    }
}

/// The standard deviation of the index if response times are independent with the standard deviation `deviation`.
pub fn index_jitter(deviation: f64, block: u32, damping: f64) -> f64 {
    deviation * ((1.0 - damping) / (f64::from(block) * (1.0 + damping))).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::standard_normal;
    use syscost_statistic::{Random, standard_deviation};

    fn index(block: u32, damping: f64) -> PerformanceIndex {
        PerformanceIndex::new(block, damping).expect("within its bounds")
    }

    #[test]
    fn it_moves_once_a_block() {
        let mut index = index(3, 0.5);
        let moved: Vec<_> = [1.0, 2.0, 3.0, 10.0, 10.0, 10.0, 7.0].map(|r| index.add_response(r)).to_vec();
        assert_eq!(moved, [None, None, Some(2.0), None, None, Some(6.0), None]);
        assert_eq!(index.value(), Some(6.0));
    }

    #[test]
    fn the_past_fades_by_the_damping_each_block() {
        for damping in [0.0, 0.3, 0.5, 0.9] {
            let mut index = index(1, damping).with_initial_value(100.0);
            for k in 1..=40 {
                let value = index.add_response(20.0).expect("a block of one");
                assert!((value - (20.0 + 80.0 * damping.powi(k))).abs() < 1e-9, "λ {damping}, block {k}");
            }
        }
    }

    #[test]
    fn a_step_is_settled_when_the_closed_form_says() {
        for (damping, share) in [(0.0, 0.05), (0.25, 0.05), (0.5, 0.125), (0.9, 0.02), (0.5, 0.05)] {
            let mut index = index(1, damping).with_initial_value(1.0);
            let lacking: Vec<f64> = (0..200).filter_map(|_| index.add_response(0.0)).collect();
            let first = lacking.iter().position(|left| *left <= share + 1e-12).expect("it fades");
            assert_eq!(first as u32 + 1, blocks_to_settle(damping, share), "λ {damping}, {share}");
        }
    }

    #[test]
    fn its_jitter_is_the_closed_form() {
        for (block, damping) in [(1, 0.0), (1, 0.8), (8, 0.5), (32, 0.9)] {
            let (mut index, mut random) = (index(block, damping).with_initial_value(0.0), Random::new(7));
            let mut values = Vec::new();
            while values.len() < 40_000 {
                values.extend(index.add_response(3.0 * standard_normal(&mut random)));
            }
            let (found, expected) = (standard_deviation(&values), index_jitter(3.0, block, damping));
            assert!((found / expected - 1.0).abs() < 0.04, "n {block}, λ {damping}: {found} {expected}");
        }
    }

    #[test]
    fn what_is_no_index_is_refused() {
        assert!(PerformanceIndex::new(0, 0.5).is_err());
        for damping in [-0.1, 1.0, f64::NAN] {
            let refused = PerformanceIndex::new(1, damping).expect_err("no damping").to_string();
            assert!(refused.contains("from 0 to below 1"), "{refused}");
        }
    }
}

//! The damped performance index: one number for the current performance of a system. It is computed from one measured
//! quantity of each command: response time, throughput, or memory in use ([`Quantity`]).
//!
//! A *block* is n consecutive commands; R(k) is the mean of block k, or a percentile of it ([`BlockStatistic`]).
//! Control that reacts to each command is jittery, so the index changes once for each block, and only in part:
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
//! Source: slides 72 and 76 to 82 of the [module's](super) slides.

use std::time::Duration;
use syscost_platform::error::{Error, Result};
use syscost_statistic::{mean, percentile};

/// The statistic that represents the values of a block.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum BlockStatistic {
    /// The mean of the values; for throughput, the number of commands divided by their time.
    #[default]
    Mean,
    /// This percentile of the values, 0 to 100, interpolated linearly. A block of n commands says little about percentiles
    /// above 100·(1 − 1/n).
    Percentile(f64),
}

/// The quantity that is measured of each command.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Quantity {
    /// Time from the command to its answer, seconds.
    #[default]
    ResponseTime,
    /// Answers per second. It is the only quantity whose higher values are better.
    Throughput,
    /// Resident memory of the process that answers, bytes.
    MemoryUse,
}

impl Quantity {
    /// By how much an index is worse than its goal; negative where it is better.
    pub fn error(self, index: f64, goal: f64) -> f64 {
        if self == Self::Throughput { goal - index } else { index - goal }
    }
}

/// The measurement of one command.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Transaction {
    /// Time from the command to its answer.
    pub response: Duration,
    /// Time from the previous command's answer to this answer.
    pub since_last: Duration,
    /// Resident memory of the process that answered, bytes.
    pub resident: u64,
}

/// The index of a sequence of commands.
#[derive(Clone, Debug, PartialEq)]
pub struct PerformanceIndex {
    block: u32,
    damping: f64,
    quantity: Quantity,
    statistic: BlockStatistic,
    values: Vec<f64>,
    value: Option<f64>,
}

impl PerformanceIndex {
    /// An index of mean response times over blocks of `block` commands with the damping λ. It starts at the mean of the
    /// first block.
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
        let (quantity, statistic) = Default::default();
        Ok(Self { block, damping, quantity, statistic, values: Vec::new(), value: None })
    }

    /// The same index for another quantity.
    pub fn with_quantity(self, quantity: Quantity) -> Self {
        Self { quantity, ..self }
    }

    /// Condenses each block by another statistic.
    ///
    /// # Errors
    /// [`Error::Usage`] for a percentile outside of 0 to 100.
    pub fn with_statistic(self, statistic: BlockStatistic) -> Result<Self> {
        match statistic {
            BlockStatistic::Percentile(p) if !(0.0..=100.0).contains(&p) => {
                Err(Error::Usage(format!("percentile {p} of a block: expected a number from 0 to 100")))
            }
            statistic => Ok(Self { statistic, ..self }),
        }
    }

    /// The measured quantity of this index.
    pub fn quantity(&self) -> Quantity {
        self.quantity
    }

    /// The same index with a known initial value.
    pub fn with_initial_value(self, value: f64) -> Self {
        Self { value: Some(value), ..self }
    }

    /// Takes the measurement of one command. At the end of a block it returns the new index in the unit of its quantity;
    /// otherwise `None`.
    pub fn add_transaction(&mut self, transaction: &Transaction) -> Option<f64> {
        self.add_response(match self.quantity {
            Quantity::ResponseTime => transaction.response.as_secs_f64(),
            Quantity::Throughput => transaction.since_last.as_secs_f64(),
            Quantity::MemoryUse => transaction.resident as f64,
        })
    }

    /// Takes one value in the caller's unit: the response time of a command, the memory in use, or, for throughput, the time
    /// since the last answer. At the end of a block it returns the new index; otherwise `None`.
    pub fn add_response(&mut self, response: f64) -> Option<f64> {
        self.values.push(response);
        if self.values.len() < self.block as usize {
            return None;
        }
        let condensed = self.condense_block();
        self.values.clear();
        let before = self.value.unwrap_or(condensed);
        let now = self.damping * before + (1.0 - self.damping) * condensed;
        self.value = Some(now);
        Some(now)
    }

    /// R(k) of the current block. For throughput it is the inverse of a time, so a high percentile of the rate is a low one
    /// of the times.
    fn condense_block(&self) -> f64 {
        let is_rate = self.quantity == Quantity::Throughput;
        let condensed = match self.statistic {
            BlockStatistic::Mean => mean(&self.values),
            BlockStatistic::Percentile(p) => percentile(&self.values, if is_rate { 100.0 - p } else { p }),
        };
        if is_rate { condensed.recip() } else { condensed }
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
    fn the_index_changes_once_per_block() {
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
    fn the_jitter_is_that_of_the_closed_form() {
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
    fn a_percentile_and_a_mean_condense_a_block_differently() {
        let responses = [1.0, 1.0, 1.0, 1.0, 11.0];
        let condensed = |statistic| {
            let mut index = index(5, 0.0).with_statistic(statistic).expect("0 to 100");
            responses.map(|response| index.add_response(response))[4]
        };
        let percentile = |p| condensed(BlockStatistic::Percentile(p));
        assert_eq!(
            [condensed(BlockStatistic::Mean), percentile(50.0), percentile(100.0)],
            [3.0, 1.0, 11.0].map(Some)
        );
        assert!(index(5, 0.0).with_statistic(BlockStatistic::Percentile(101.0)).is_err());
        assert!(index(5, 0.0).with_statistic(BlockStatistic::Percentile(f64::NAN)).is_err());
    }

    #[test]
    fn each_quantity_is_read_from_a_transaction_in_its_unit() {
        let transaction = |ms, resident| Transaction {
            response: Duration::from_millis(ms),
            since_last: Duration::from_millis(2 * ms),
            resident,
        };
        // Two answers in 500 ms, after 200 and 300 ms, are four per second, and not the mean of the rates 5 and 3.3.
        let both = [transaction(100, 10), transaction(150, 30)];
        let value = |quantity, statistic| {
            let index = index(2, 0.0).with_quantity(quantity).with_statistic(statistic);
            let mut index = index.expect("a statistic");
            both.map(|transaction| index.add_transaction(&transaction))[1].expect("a block")
        };
        assert!((value(Quantity::ResponseTime, BlockStatistic::Mean) - 0.125).abs() < 1e-12);
        assert!((value(Quantity::Throughput, BlockStatistic::Mean) - 4.0).abs() < 1e-12);
        assert!((value(Quantity::Throughput, BlockStatistic::Percentile(0.0)) - 10.0 / 3.0).abs() < 1e-12);
        assert_eq!(value(Quantity::MemoryUse, BlockStatistic::Percentile(100.0)), 30.0);
        assert!(Quantity::Throughput.error(3.0, 4.0) > 0.0 && Quantity::MemoryUse.error(3.0, 4.0) < 0.0);
    }

    #[test]
    fn invalid_parameters_of_an_index_are_refused() {
        assert!(PerformanceIndex::new(0, 0.5).is_err());
        for damping in [-0.1, 1.0, f64::NAN] {
            let refused = PerformanceIndex::new(1, damping).expect_err("no damping").to_string();
            assert!(refused.contains("from 0 to below 1"), "{refused}");
        }
    }
}

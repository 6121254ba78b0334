//! Statistics as pure functions: numbers in, numbers out, no I/O. Each function names its source.

#![deny(unsafe_code)]
mod bootstrap;
pub mod change_point;
mod discovery;
mod floor;
pub mod fluid_cost;
pub mod level;
mod order_statistic;
mod power;
mod proportion;
mod random;
mod random_effects;
mod regression;
mod signed_rank;
pub mod student;

pub use bootstrap::{Change, change_between};
pub use discovery::{adjusted_p_values, benjamini_hochberg};
pub use floor::Floor;
pub use level::{Fall, Level, find_levels, locate_fall, median_spacing, step_midpoint};
pub use order_statistic::{mean, median, median_interval, percentile, standard_deviation};
pub use power::minimum_detectable_shift;
pub use proportion::{proportion_interval, proportion_of_series};
pub use random::Random;
pub use random_effects::{Effect, RandomEffects, random_effects};
pub use regression::{Growth, Law, Line, fit_growth, fit_line};
pub use signed_rank::{Alternative, equivalence_p, hodges_lehmann, signed_rank_p};
pub use student::{student_upper_quantile, student_upper_tail};

use serde::{Deserialize, Serialize};

/// An estimate with its confidence interval: 95 %, unless the function takes another confidence.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// The estimate.
    pub estimate: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

impl Interval {
    /// A value without uncertainty.
    pub const fn exactly(value: f64) -> Self {
        Self { estimate: value, low: value, high: value }
    }

    /// The interval from `estimate − half` to `estimate + half`.
    pub fn around(estimate: f64, half: f64) -> Self {
        Self { estimate, low: estimate - half, high: estimate + half }
    }

    /// The same estimate, with the smallest interval that contains both intervals.
    pub const fn widened_to(self, other: Self) -> Self {
        Self { low: self.low.min(other.low), high: self.high.max(other.high), ..self }
    }

    /// The distance from the estimate to the farther end, as a share of the estimate.
    pub fn relative_half_width(self) -> f64 {
        let half = (self.high - self.estimate).max(self.estimate - self.low);
        half / self.estimate.abs().max(f64::MIN_POSITIVE)
    }

    /// The interval with an increasing function applied to the estimate and to both ends.
    pub fn map(self, f: impl Fn(f64) -> f64) -> Self {
        Self { estimate: f(self.estimate), low: f(self.low), high: f(self.high) }
    }
}

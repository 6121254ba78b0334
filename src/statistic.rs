//! Statistics as pure functions: numbers in, numbers out, no I/O. Each names its source.

pub mod line;
pub mod order;
pub mod random;

pub use line::{Line, fit_line};
pub use order::{median, median_interval, percentile, standard_deviation};
pub use random::Random;

use serde::{Deserialize, Serialize};

/// An estimate with its 95 % interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// The estimate.
    pub estimate: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

//! Statistics as pure functions: numbers in, numbers out, no I/O. Each names its source.

mod beta;
pub mod bootstrap;
pub mod discovery;
pub mod displacement;
pub mod equivalence;
pub mod fall;
pub mod joint;
pub mod level;
pub mod line;
mod normal;
pub mod order;
pub mod permutation;
pub mod power;
pub mod proportion;
pub mod random;
pub mod series;
pub mod signed_rank;
pub mod student;

pub use bootstrap::{Change, change_between};
pub use discovery::{adjusted, benjamini_hochberg};
pub use equivalence::equivalence_p;
pub use fall::{Fall, fall};
pub use joint::joint_p;
pub use level::{Level, half_way, levels, spacing};
pub use line::{Line, fit_line};
pub use order::{median, median_interval, percentile, standard_deviation};
pub use permutation::{permutation_p, shift};
pub use power::{minimum_detectable, minimum_detectable_between};
pub use proportion::proportion;
pub use random::Random;
pub use series::proportion_of_series;
pub use signed_rank::{Alternative, hodges_lehmann, signed_rank_p};
pub use student::{student_above, student_quantile_above};

use serde::{Deserialize, Serialize};

/// An estimate with its interval: of 95 %, where no other confidence was asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// The estimate.
    pub estimate: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

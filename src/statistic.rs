//! Statistics as pure functions: numbers in, numbers out, no I/O. Each names its source.

pub mod line;
pub mod order;
pub mod random;

pub use line::{Line, fit_line};
pub use order::{median, median_interval, percentile, standard_deviation};
pub use random::Random;

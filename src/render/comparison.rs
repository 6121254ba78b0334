//! Comparisons as text for other readers.

mod csv;
mod markdown;

pub use csv::csv;
pub use markdown::markdown;

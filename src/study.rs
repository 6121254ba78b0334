//! What records mean: comparison, verdicts, levels, fits. It reads plain data and answers plain data.

pub mod comparison;
pub mod cost;
pub mod curve;
pub mod fit;
pub mod gate;
pub mod paired;
pub mod prediction;
#[cfg(feature = "cli")]
pub mod published;

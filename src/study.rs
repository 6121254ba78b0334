//! Analysis of records: comparison, verdicts, levels, fits. Its functions take plain data and return plain data.

pub mod alike;
pub mod basis;
#[cfg(feature = "cli")]
pub mod comparison;
#[cfg(feature = "cli")]
pub mod comparison_trial;
pub mod disturbance;
pub mod drawn_curve;
pub mod exact_count;
pub mod executions;
pub mod fit;
#[cfg(feature = "cli")]
pub mod gate;
#[cfg(feature = "cli")]
pub mod paper;
pub mod prediction;
#[cfg(feature = "cli")]
pub mod published;
pub mod quiet;
pub mod reference_frequency;
#[cfg(feature = "cli")]
pub mod seen_again;
pub mod sequential;
pub mod standout;
pub mod unmeasured;
pub mod usual;

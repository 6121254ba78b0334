//! What the records of one run mean: figures, intervals, levels, fits. Its functions take plain data and return plain data.

pub mod alike;
pub mod basis;
pub mod disturbance;
pub mod drawn_curve;
pub mod executions;
pub mod prediction;
pub mod published;
pub mod quiet;
pub mod reference_frequency;
pub mod spread_of_kind;
pub mod standout;

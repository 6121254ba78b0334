//! What the records of one run mean: figures, intervals, levels, fits. Its functions take plain data and return plain data.

pub mod alike;
pub mod basis;
pub mod disturbance;
pub mod drawn_curve;
pub mod executions;
pub mod interval;
pub mod prediction;
pub mod published;
pub mod reference_frequency;
pub mod standout;

//! Pages of HTML, pictures, and what other tools read.

pub mod history_plot;
pub mod job_metrics;
pub mod page;
pub mod plot;

//! Tables, pages of HTML, pictures, and what other tools read.

pub mod fleet_table;
pub mod history_plot;
pub mod html_page;
pub mod job_metrics;
pub mod plot;

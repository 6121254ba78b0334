//! Tables, pages of HTML, pictures, and what other tools read.

pub mod fleet_table;
pub mod history_plot;
pub mod html_page;
pub mod plot;

//! The output: tables, HTML pages, pictures, and formats for other tools.

pub mod fleet_table;
pub mod history_plot;
pub mod html_page;
pub mod plot;

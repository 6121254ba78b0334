//! How records and comparisons are shown: tables, plots, Markdown, CSV, JSON.

pub mod comparison;
pub mod format;
mod heat_map;
#[cfg(feature = "cli")]
pub mod paper;
#[cfg(feature = "cli")]
pub mod plot;
pub mod table;
mod terminal_plot;

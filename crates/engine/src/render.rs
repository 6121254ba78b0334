//! How a run is shown: tables, plots, the first screen.

pub mod cell;
pub mod figure_line;
pub mod metric_page;
pub mod summary;
pub mod table;
pub mod terminal_plot;
pub mod terminal_text;

pub use cell::{display_width, enumerate_names, pad_right, rule_with_name, shorten_middle, wrap_words};

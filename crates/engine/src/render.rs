//! How records and comparisons are shown: tables, plots, Markdown, CSV, JSON.

#[cfg(feature = "cli")]
pub mod answer;
#[cfg(feature = "cli")]
pub mod beside;
mod cell;
#[cfg(feature = "cli")]
pub mod compared;
mod figure_line;
#[cfg(feature = "cli")]
pub mod foreign;
#[cfg(feature = "cli")]
pub mod format;
#[cfg(feature = "cli")]
pub mod function_time_table;
#[cfg(feature = "cli")]
pub mod guest_text;
pub mod headline_figure;
#[cfg(feature = "cli")]
pub mod markdown_table;
#[cfg(feature = "cli")]
pub mod metric_page;
#[cfg(feature = "cli")]
pub mod paired_table;
#[cfg(feature = "cli")]
pub mod paper_table;
#[cfg(feature = "cli")]
pub mod remark_group;
pub mod summary;
pub mod table;
mod terminal_heat_map;
pub mod terminal_plot;
#[cfg(feature = "cli")]
pub mod terminal_text;
pub mod tone;

#[cfg(feature = "cli")]
pub use cell::{display_width, enumerate_names, pad_right, rule_with_name, shorten_middle, wrap_words};

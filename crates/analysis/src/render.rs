//! Prints records and comparisons for people, and writes them for other programs.

pub mod answer;
pub mod beside;
pub mod compared;
pub mod foreign;
pub mod format;
pub mod function_time_table;
pub mod guest_text;
pub mod paired_table;
pub mod paper_table;
pub mod sheet;

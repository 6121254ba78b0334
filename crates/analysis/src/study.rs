//! Comparisons, verdicts, gates, tables of papers. Its functions take plain data and return plain data.

pub mod comparison;
pub mod exact_count;
pub mod function_times;
pub mod gate;
pub mod paper;
pub mod pooled_record;
pub mod sequential;

//! Comparisons as text for other readers.

mod comparison_csv;
mod comparison_markdown;
mod mark;
mod note;

pub use comparison_csv::csv;
pub use comparison_markdown::markdown;
pub use mark::LEGEND;

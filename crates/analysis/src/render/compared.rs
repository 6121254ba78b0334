//! Comparisons as text: marks, sentences, CSV and Markdown.

mod comparison_csv;
mod comparison_markdown;
mod mark;
mod note;

pub use comparison_csv::csv;
pub use comparison_markdown::markdown;
pub use mark::LEGEND;

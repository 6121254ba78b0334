//! The tables and figures of the paper that the group `displacement` redoes, with a run's columns beside the published
//! ones.

mod figure;
mod form;
mod published;
mod table;

pub use figure::{Figure, figures};
pub use form::Sheet;
pub use published::Paper;
pub use table::{columns_of, sheets};

/// The group whose cases fill the tables.
pub const GROUP: &str = "displacement";

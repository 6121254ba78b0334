//! The tables of the paper that the group `displacement` redoes, with a run's columns beside the published ones.

mod form;
mod published;
mod table;

pub use form::Sheet;
pub use published::Paper;
pub use table::{columns_of, sheets};

/// The group whose cases fill the tables.
pub const GROUP: &str = "displacement";

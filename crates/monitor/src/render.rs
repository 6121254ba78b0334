//! A look as lines for a terminal and as JSON.

pub mod json;
pub mod live_view;

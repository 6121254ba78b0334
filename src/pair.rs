//! Two sides of one comparison, process against process.
//!
//! A *pair* is two fresh processes, one a side. Where both can live at once they take *turns* of a few
//! milliseconds on one CPU, so that whatever the machine does meanwhile is done to both ([`turns`]). Where the
//! sides exclude each other, a global setting for one, whole processes run in blocks of ABBA or BAAB
//! ([`block`]). Either way a pair ends in one number: the median of the log ratios of neighbours. What is left
//! from pair to pair is layout and the placement of pages, which fresh processes draw anew; so pairs are
//! what a verdict is made of ([`sequence`]), and never samples.
//!
//! A side proves what it times like any other process that measures: the claims are asked in the first pair
//! of a case in full, and counted in every turn.

pub mod block;
pub mod contest;
mod process;
pub mod protocol;
pub mod selftest;
pub mod sequence;
pub mod setting;
pub mod side;
pub mod turns;

pub use process::Launch;
pub use protocol::is_side;

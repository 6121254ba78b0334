//! Two sides of one comparison, process against process.
//!
//! A *pair* is two fresh processes, one a side. Where both can live at once they take *turns* of about a
//! millisecond on one CPU, so that whatever the machine does meanwhile is done to both ([`turns`]). Where the
//! sides exclude each other, a global setting for one, whole processes run in blocks of ABBA or BAAB
//! ([`block`]). Either way a pair ends in one number, a log ratio. What is left from pair to pair is layout and the
//! placement of pages, which fresh processes draw anew (all but the pages of their text); so pairs are what a
//! verdict is made of ([`sequence`]), and never samples.
//!
//! A side proves what it times like any other process that measures: in the first pair of a case the witness is
//! called and the line is drawn, and the case's own counters are asked in every turn. A claim that fails on a side
//! ends the case, and nothing of it is kept.

pub mod block;
pub mod contest;
mod process;
pub mod protocol;
#[cfg(feature = "cli")]
pub mod revision;
pub mod selftest;
pub mod sequence;
pub mod setting;
pub mod side;
pub mod turns;

pub use process::Launch;
pub use protocol::is_side;

//! Comparison of two builds, wrappers or settings (sides A and B) by pairs of processes.
//!
//! A *pair* is one fresh process of each side. Where both can run at once they take *turns* of about a millisecond on
//! one CPU, so a disturbance of the machine affects both ([`turns`]). Where the sides exclude each other, such as two
//! values of a global setting, whole processes run in blocks of ABBA or BAAB ([`block`]). Either way a pair yields one
//! number, a log ratio. Pairs differ in memory layout and page placement, which fresh processes draw anew (except for the
//! pages of their text). So a verdict is made of pairs and never of samples ([`sequence`]).
//!
//! A side proves what it times like any measuring process: in the first pair of a case the witness is called and
//! proportionality is checked, and the case's counters are judged in every turn. A claim that fails on a side ends the
//! case without a result.

#[cfg(feature = "cli")]
pub mod block;
#[cfg(feature = "cli")]
pub mod by_boot;
#[cfg(feature = "cli")]
mod counted_sides;
#[cfg(feature = "cli")]
pub mod error_rate;
#[cfg(feature = "cli")]
pub mod experiment;
#[cfg(feature = "cli")]
mod launch;
pub mod protocol;
#[cfg(feature = "cli")]
mod running_side;
#[cfg(feature = "cli")]
pub mod sampled_sides;
#[cfg(feature = "cli")]
pub mod sequence;
#[cfg(feature = "cli")]
pub mod setting;
pub mod side;
#[cfg(feature = "cli")]
mod side_stream;
#[cfg(feature = "cli")]
pub mod slowed_sides;
#[cfg(feature = "cli")]
pub mod turns;
#[cfg(feature = "cli")]
pub mod unpaired_sessions;

#[cfg(feature = "cli")]
pub use launch::{Launch, Relink};
pub use protocol::is_side_process;
#[cfg(feature = "cli")]
pub use running_side::{Draw, Seat, Side, Start, Taken};
#[cfg(feature = "cli")]
pub use side_stream::Connection;

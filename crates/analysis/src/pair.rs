//! Comparison of two builds, wrappers or settings (sides A and B) by pairs of processes.
//!
//! A *pair* is one fresh process of each side. Where both can run at once they take *turns* of about a millisecond on
//! one CPU, so a disturbance of the machine affects both ([`turns`]). Where the sides exclude each other, such as two
//! values of a global setting, whole processes run in blocks of ABBA or BAAB ([`sequence::ByBlocks`]). Either way a pair yields one
//! number, a log ratio. Each fresh process has a new random memory layout and page placement (except for the pages of its
//! text), so pairs differ. Therefore the unit of a verdict is the pair, never the sample ([`sequence`]).
//!
//! A side proves what it times, as every measuring process does. The first pair of a case calls the witness and checks
//! proportionality; every turn checks the case's counters. A claim that fails on a side ends the case without a result.

pub mod by_boot;
pub mod experiment;
mod launch;
mod running_side;
pub mod sampled_sides;
pub mod sequence;
pub mod setting;
pub mod turns;

pub use launch::{Connection, Launch, Relink};
pub use running_side::{Draw, Side, SideProcess, Start, Taken};

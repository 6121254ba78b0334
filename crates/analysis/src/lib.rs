//! What is made of numbers: comparisons of two sides that take turns, comparisons of records, gates, the tables of papers, and the
//! forms that other programs read. A bench needs none of this; `syscost` and its tools do.
//!
//! Rooms, top to bottom: `pair` starts processes and has its pairs judged by `study`; `render` shows what `study` found; `record`
//! holds the plain data of both. What one run measured, and how it is shown, is the crate `syscost-engine`.
#![deny(unsafe_code)]

pub mod pair;
pub mod record;
pub mod render;
pub mod study;

use syscost_platform::{self as platform, error};
use syscost_statistic as statistic;

#[cfg(test)]
extern crate self as syscost_analysis; // what several crates include in their tests names this one so

//! Evaluates measured numbers: comparisons of two sides that take turns, comparisons of records, gates, the tables of papers,
//! and output for other programs. `syscost` and its tools use this crate; a bench does not.
//!
//! The modules, from top to bottom: `pair` starts processes and lets `study` judge their pairs. `render` prints the results of
//! `study`. `record` has the plain data of both. The data of a single run and its tables are in the crate `syscost-engine`.
#![deny(unsafe_code)]

pub mod pair;
pub mod record;
pub mod render;
pub mod study;

use syscost_platform::{self as platform, error};
use syscost_statistic as statistic;

#[cfg(test)]
extern crate self as syscost_analysis; // test support that several crates include uses this name

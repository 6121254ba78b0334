//! What do this kernel and this hardware charge for an operation, how sure are we, and did it change?
//!
//! `syscost` is a Criterion harness that proves what it timed. Criterion takes the samples, computes statistics and saves
//! files; this crate adds a calibrated cycle counter as its clock, *claims* that are checked by counters before a number
//! is saved, and an observation table at the end. As a program it measures what a kernel charges (see the README). As a
//! library it does the same for your own operations.
//!
//! # A first bench
//!
//! ```no_run
#![doc = include_str!("../examples/mine.rs")]
//! ```
//!
//! `cargo bench --bench mine` then ends like this:
//!
//! ```text
//! operation  expected     quiet next run         ticks       net  ratio  claims
//! ── mine ──────────────────────────────────────────────────────────────────────
//! parent     58.64 ns  98.48 ns [95.35, 101.72]  226.5  94.79 ns  1.62×  ✓6 5/40
//! ```
//!
//! If the compiler had deleted the loop, or the C library had answered from memory, a sentence would replace the number,
//! nothing would be saved, and the exit code would be 1.
//!
//! A bench is a list of [`Group`]s of [`Case`]s. A case sets up a [`Subject`], whose timed part is exactly what runs inside
//! the clock's brackets; a [`Need`] that the machine lacks skips it, and a [`Claim`] that does not hold fails it. An
//! existing Criterion bench can take the clock alone: [`harness::CycleTime`]. Other programs can use [`clock::Clock`].
//!
//! # Modules
//!
//! `suite` has one module for each group, with its manual; `kit` the parts that several groups share; `command` the command line.
//! The types of cases and the machinery are in the crate `syscost-engine`, which has no measurements and is passed the groups. A bench of
//! another crate needs that crate alone. Comparisons are `syscost-analysis`, revisions built for them `syscost-build`.
#![deny(unsafe_code)]

#[doc(hidden)]
pub mod command;
pub mod harness;
#[doc(hidden)]
pub mod kit;
pub mod manual;
mod page_cache;
#[doc(hidden)]
pub mod peer;
#[doc(hidden)]
pub mod suite;

pub use case::{Axis, Curve, Fit, Group, Study};
pub use case::{Batch, Case, Claim, Gauge, OwnTasks, Prediction, Preparation, Repetition, SetUp, set_up};
pub use case::{Cpus, Need, Place, Scale};
pub use case::{Derived, Found, Matrix, Report, Role, Rule, Subject, Task};
pub use error::{Error, Kind, Result};
pub use kit::parallel::in_threads;
#[doc(inline)]
pub use syscost_engine::{alloc, clock};
#[doc(hidden)]
pub use syscost_engine::{case, driver, environment, exit, json_line, pair, record, render, study, trial};

use syscost_counters as counters;
use syscost_platform::{self as platform, error};
use syscost_statistic as statistic;
use syscost_technique as technique;

/// The C library's names, for claims: the number of a system call differs between architectures.
pub use libc;

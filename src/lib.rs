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
//! # Rooms
//!
//! The source is divided into rooms, one module each. An arrow points from a room to the one that it is built on, and none
//! points back. The contract and the machinery are the crate `syscost-engine`, which has no measurement; this crate passes it the
//! groups. The public rooms are linked.
//!
//! ```text
//! platform ← clock ← case ← kit ← suite/<group> ← trial ← harness (Criterion) ← benches/*.rs
//!    ↑     environment ←────────────┘                │ reports to, and is started by
//!    └── counters, technique                         ▼
//! statistic ←──────────── record ← study ← render ← driver, pair, guest ← command ← main.rs
//! ```
//!
//! * `platform`: Linux and the processor as safe functions.
//! * [`clock`]: the cycle counter, its calibration, the witness that single-steps an operation, readings of counters.
//! * [`counters`]: the system's own counters as a library.
//! * [`technique`]: monitors that trace, sample or watch from another CPU.
//! * `environment`: fingerprint of the machine, and checks of its fitness.
//! * `case`: the contract above. `kit`: parts that several groups share. `suite`: one module per group, with its manual.
//! * `trial`: sets a case up, runs it between readings of the counters, and judges its claims.
//! * `driver`: starts one measuring process per group, keeps the record and prints the table.
//! * [`harness`]: the entry points of a bench target, and the only room that names Criterion.
//! * `liar`: cases that lie, with the claims of real ones, which must catch them.
//! * `guest`: boots other kernels, which count instructions or take turns. `reboot`: measures them on the machine itself, boot by boot.
//! * `json_line`: the messages between processes, for `driver`, `pair`, `peer` and guests.
//! * `pair`: compares two builds by pairs of processes that take turns.
//! * `record`: what was measured, as plain data. `study`: what it means. `render`: how it is shown. `statistic`: pure
//!   functions.
//! * `monitor`, `peer`, `page_cache`, `command`: parts of the binary.
//!
//! # Features
//!
//! `cli` (default): the binary `syscost`, progress on a terminal, predictions from a file, published values, records that
//! can be carried to another machine. Without it the crate depends on Criterion and its dependencies (clap, regex, serde),
//! hdrhistogram, io-uring, libc, memmap2, nix, tempfile and thiserror.
#![deny(unsafe_code)]
// What only the command line uses is found dead by the build that has it.
#![cfg_attr(not(feature = "cli"), allow(dead_code, unused_imports))]

#[cfg(feature = "cli")]
#[doc(hidden)]
pub mod command;
pub mod harness;
#[doc(hidden)]
pub mod kit;
#[cfg(feature = "cli")]
mod liar;
pub mod manual;
#[cfg(feature = "cli")]
mod page_cache;
#[cfg(feature = "cli")]
#[doc(hidden)]
pub mod peer;
#[doc(hidden)]
pub mod suite;

pub use case::{Axis, Curve, Fit, Group, Study};
pub use case::{Batch, Case, Claim, Gauge, OwnTasks, Prediction, Preparation, Repetition, SetUp, set_up};
pub use case::{Cpus, Need, Place, Scale};
pub use case::{Derived, Found, Matrix, Report, Role, Rule, Subject, Task};
pub use error::{Error, Kind, Result};
pub use kit::threads::in_threads;
#[doc(inline)]
pub use syscost_counters as counters;
#[doc(inline)]
pub use syscost_engine::{alloc, clock};
#[doc(hidden)]
pub use syscost_engine::{case, driver, environment, exit, json_line, pair, record, render, study, trial};
#[doc(inline)]
pub use syscost_technique as technique;

use syscost_platform::{self as platform, error};
use syscost_statistic as statistic;

/// The C library's names, for claims: the number of a system call is another on each architecture.
pub use libc;

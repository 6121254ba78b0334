//! What do this kernel and this hardware charge for an operation, how sure are we, and did it change?
//!
//! `syscost` is a Criterion harness that proves what it timed. Criterion samples and saves; this crate brings
//! a calibrated cycle counter as its clock, *claims* that are checked by counters before a number is saved,
//! and an observation table at the end. As a program it measures what a kernel charges (see the README);
//! as a library it does the same for operations of your own:
//!
//! ```no_run
#![doc = include_str!("../examples/mine.rs")]
//! ```
//!
//! `cargo bench --bench mine` then ends like this:
//!
//! ```text
//! operation  predicted  measured 95 % interval   ticks       net    m/p  claims
//! ── mine ──────────────────────────────────────────────────────────────────────
//! parent      50.06 ns  239.1 ns [234.0, 242.9]  620.6  223.8 ns  4.47×  ✓5 2/50
//! ```
//!
//! If the compiler had deleted the loop, or the C library had answered from memory, there would be a sentence
//! in place of the number, nothing saved, and exit code 1.
//!
//! Who only wants the clock in a Criterion bench that exists takes [`harness::CycleTime`]; who only wants to
//! time something takes [`instrument::Clock`].
//!
//! # Five nouns, one direction
//!
//! ```text
//! machine  ←  instrument  ←  subject  ←  trial  ←  harness (Criterion)  ←  benches/*.rs
//!             environment ←──────────────┘            │ writes target/criterion
//!                  ↑                                  ▼
//!                record  ←──────────────  command  ←  main.rs
//! ```
//!
//! * [`machine`]: the kernel and the hardware as we touch them; the only floor where `unsafe` is spoken.
//! * [`instrument`]: what reads: the clock, the counters, the witness.
//! * [`counters`]: the system's own counters as a library: CAMP's functions, and handles that are faster.
//! * [`technique`]: monitors that trace, sample or watch from another CPU, and control by what they measure.
//! * `monitor`: the machine as it is watched: rates, and the page that Prometheus reads.
//! * [`environment`]: what else was true at the time: fingerprint and doctor.
//! * [`subject`]: what is read: one file a group, with its claims and its manual.
//! * [`trial`]: set up, read, run, read, ask the claims.
//! * [`record`]: what was read, as plain data, and the table.
//! * [`pair`]: two processes that take turns, which is how two numbers are told apart.
//! * [`harness`]: the joint to Criterion.
//!
//! # Features
//!
//! `cli` (default): the binary `syscost`, progress on a terminal, predictions from a file, published values,
//! records that can be carried.
//! Without it the crate is Criterion, libc, nix, memmap2, tempfile, core_affinity and what
//! Criterion has anyway (clap, regex, serde), comfy-table, thiserror.
#![deny(unsafe_code)]

mod case;
pub mod clock;
pub mod counters;
mod driver;
mod environment;
mod error;
mod exit;
pub mod harness;
#[doc(hidden)]
pub mod internals;
mod kit;
#[cfg(feature = "cli")]
mod monitor;
mod pair;
#[cfg(feature = "cli")]
mod peer;
mod platform;
mod record;
mod render;
mod statistic;
mod study;
mod suite;
pub mod technique;
mod trial;

#[cfg(feature = "cli")]
mod command;

pub use case::{Case, Claim, Group, Need, Place, Report, Rule, Scale, SetUp, Subject, set_up};
pub use error::{Error, Kind, Result};
/// The C library's names, for claims: the number of a system call is another on each architecture.
pub use libc;

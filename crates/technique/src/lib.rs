//! Techniques of performance measurement: counting, tracing, sampling, the cost of these, and control by the measured values.
//!
//! A *measure* of a state is of type A (how often it was entered), of type B (the value of a variable at each entry) or
//! of type C (the fraction of time spent in it): [`state_measure`]. The state may be defined by the user's conditions on
//! variables: [`event_register`]. Monitors differ in when they look at the state:
//!
//! | monitor | looks | measures | weakness |
//! |---|---|---|---|
//! | [`trace`] | at each event | A, B and C, exactly | its probes are part of the result: [`estimate`] |
//! | [`sample`], [`extent`] | when a timer expires | C, with an interval | must not be synchronous with the program |
//! | [`pulse`] | at each of 2^N clock pulses | C, without a division | likewise |
//! | [`hybrid`] | from another CPU | A and C of events sent there | loses events, or delays the sender |
//! | [`sampled_hybrid`] | from another CPU, at random times | C, with an interval, without any wait | misses short states |
//! | [`foreign_memory`] | from another process, which copies memory of the program | what the program counts itself | words of different moments |
//! | [`steering`] | at random times; what it collects changes on request, in several processes at once | A, B or C | misses short states |
//! | [`probe_point`] | at places that are patched while the program runs | A and B | each pass costs a call, also without a probe |
//! | [`instruction_frequency`] | after each instruction | the count of each instruction | ten thousand times slower |
//!
//! [`visit`] computes which visits sampling misses or counts twice; [`seek`] shows how sampling falsifies a measure of type
//! B. [`profile`] finds the tenth of a program that takes nine tenths of its time, and [`call_graph`] writes a profile to a
//! file with the callers of each routine. [`probe_effect`] counts the context switches and page faults that a probe adds.
//!
//! Control: [`index`] damps a measured performance, [`control`] closes a loop over it, and [`multiprogramming`] controls how
//! many jobs share a memory. [`virtual_clock`] reads the CPU time of one process and runs a timer on it. [`io_overlap`]
//! measures for which share of the time the CPU and its channels are busy at once.
//!
//! [`queue_model`] is calibrated by one measurement and compared with another. [`time_line`] places events of several
//! machines on one time line, with the error of each; [`logical_time`] orders them by cause and effect. [`known`] ends an
//! experiment: it checks that the true value lies in the measured interval. [`by_turns`] measures a quantity with and without
//! control, or with and without a probe, and judges their ratio.
//!
//! For most modules an example of the same name compares the result with a known truth: `cargo run --release --example
//! sampling`.
//!
//! Source: E. Kraemer, *Measurement Techniques* (slides, 2002); each module names its slides.

#![deny(unsafe_code)]

pub mod by_turns;
pub mod call_graph;
pub mod control;
pub mod estimate;
pub mod event_register;
pub mod extent;
pub mod foreign_memory;
pub mod hybrid;
pub mod index;
pub mod instruction_frequency;
pub mod io_overlap;
pub mod known;
pub mod logical_time;
pub mod multiprogramming;
pub mod probe_effect;
pub mod probe_point;
pub mod profile;
pub mod pulse;
pub mod queue_model;
pub mod sample;
pub mod sampled_hybrid;
pub mod seek;
pub mod state_measure;
pub mod steering;
pub mod time_line;
pub mod trace;
pub mod virtual_clock;
pub mod visit;

/// An estimate with its interval of 95 %.
pub use syscost_statistic::Interval;

pub use syscost_platform::error::{Error, Result};

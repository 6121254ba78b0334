//! The techniques of measuring: what can be counted, traced and sampled, what the measuring itself costs, and how a
//! measure that was taken can steer what it measured.
//!
//! A *measure* is of type A (how often a state was entered), of type B (what else was true when it was) or of type C
//! (the fraction of time for which it lasted): [`measure`]. Who wants one must say when to look:
//!
//! | monitor | looks | answers | and fools |
//! |---|---|---|---|
//! | [`trace`] | when something happens | A, B and C, exactly | its own probes are in the answer: [`estimate`] |
//! | [`sample`], [`extent`] | when a timer says so | C, with an interval | it must not be in step with what it looks at |
//! | [`pulse`] | at each of 2^N pulses | C, without a division | likewise |
//! | [`hybrid`] | from another CPU | A and C of what is sent there | it loses events, or holds up who sends |
//! | [`frequency`] | after every instruction | how often each is executed | ten thousand times slower |
//!
//! [`visit`] tells what sampling misses and counts twice, [`seek`] what it makes of a measure of type A. [`profile`] finds
//! the tenth of a program that takes nine tenths of its time.
//!
//! What was measured can steer what it was measured of. [`index`] damps it, [`control`] closes the loop over it, and
//! [`multiprogramming`] does so for jobs that take each other's memory. [`virtual_clock`] has the time of one process, and a
//! timer on it; [`io_overlap`] tells how much of the time the CPU and its channels are busy at once.
//!
//! Source: E. Kraemer, *Measurement Techniques* (slides, 2002); each module names its own.

pub mod control;
pub mod estimate;
pub mod extent;
pub mod hybrid;
pub mod index;
pub mod instruction_frequency;
pub mod io_overlap;
pub mod multiprogramming;
pub mod profile;
pub mod pulse;
pub mod sample;
pub mod seek;
pub mod state_measure;
pub mod trace;
pub mod virtual_clock;
pub mod visit;

pub use crate::statistic::Interval;

//! The techniques of measuring: what can be counted, traced and sampled, what the measuring itself costs, and how a
//! measure that was taken can steer what it measured.
//!
//! A *measure* is of type A (how often a state was entered), of type B (what else was true when it was) or of type C
//! (the fraction of time for which it lasted): [`measure`]. A *trace monitor* looks when something happens, and can answer
//! all three; a *sampled monitor* looks when a timer says so, and can answer the third, with an interval.
//!
//! Source: E. Kraemer, Measurement Techniques (slides, 2002). Each module names its own.

pub mod measure;

// Monitors of time and control by what was measured: each line of theirs stands below this one, in their order.
pub mod control;
pub mod index;
pub mod io_overlap;
pub mod multiprogramming;
pub mod virtual_clock;

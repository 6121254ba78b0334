//! `syscost monitor` and `syscost validate`, run as a user runs them.
//!
//! A test that lacks a requirement prints so and passes; `scripts/test` counts it as skipped.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test may")]
#![allow(clippy::print_stdout, reason = "a test that is skipped says so")]
#![allow(unreachable_pub, dead_code, reason = "the tests of all programs share these modules")]

mod live;
#[path = "../../../../tests/surroundings/place.rs"]
mod place;
#[path = "../../../../tests/surroundings/process.rs"]
mod process;
mod validation;

//! `syscost history` and `syscost fleet` under faults: damaged files, killed processes, missing programs.
//!
//! A test that lacks something prints that and passes; `scripts/test` counts it as skipped.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test may")]
#![allow(clippy::print_stdout, reason = "a test that is skipped says so")]
#![allow(unreachable_pub, dead_code, reason = "the tests of all programs share these modules")]

mod fleet;
mod nights;
mod nights_doubted;
mod nights_forgotten;
#[path = "../../../../tests/surroundings/place.rs"]
mod place;
#[path = "../../../../tests/surroundings/process.rs"]
mod process;

//! `syscost kernels`, with real guests if a kernel and an emulator are available.
//!
//! A test that lacks something prints that and passes; `scripts/test` counts it as skipped.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test may")]
#![allow(clippy::print_stdout, reason = "a test that is skipped says so")]
#![allow(unreachable_pub, dead_code, reason = "the tests of all programs share these modules")]

mod kernel_turns;
mod kernels;
#[path = "../../../../tests/surroundings/place.rs"]
mod place;
#[path = "../../../../tests/surroundings/process.rs"]
mod process;
mod session;

/// Whether the process of this number runs. A zombie does not count as running.
pub fn is_running(pid: i32) -> bool {
    let state = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    !state.is_empty() && !state.contains(") Z ")
}

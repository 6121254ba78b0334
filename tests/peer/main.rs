//! Tests of `syscost peer`: with clients of all kinds, with strangers at its data ports, and of clients whose peer does not
//! start, dies, stalls, lies or speaks another version, on this machine and across two network namespaces.
//!
//! Tests that need root and `ip` are skipped with a sentence if these are missing.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test may")]
#![allow(clippy::print_stdout, reason = "a test that cannot be done says so")]
#![allow(unreachable_pub, reason = "nobody reaches into a test; `pub` says what a module offers")]

mod answers;
mod fuzz;
mod place;
mod rogue;
mod serves;
mod start;
mod stranger;
mod wire;

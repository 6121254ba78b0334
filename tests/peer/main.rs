//! `syscost peer` as others meet it: clients of all kinds, strangers at its data ports, and clients that find a peer that
//! does not start, dies, stalls, lies or speaks another version, here and across two network namespaces.
//!
//! What needs root and `ip` is skipped with a sentence where they are missing.
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

//! `syscost peer` as others meet it: strangers who send what they like, and clients who find a peer that dies,
//! stalls, lies or speaks another version, here and across two network namespaces.
//!
//! What needs root and `ip` is skipped with a sentence where they are missing.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test may")]
#![allow(clippy::print_stdout, reason = "a test that cannot be done says so")]
#![allow(unreachable_pub, reason = "nobody reaches into a test; `pub` says what a module offers")]

mod fuzz;
mod place;
mod rogue;
mod serves;
mod stranger;
mod wire;

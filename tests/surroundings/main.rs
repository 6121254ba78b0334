//! The binary in bad surroundings: a full disk, missing rights, no descriptors, early signals. In all of them it ends with
//! the right exit code, says why in a sentence, loses no number and leaves nothing behind.
//!
//! Some tests need things that not every machine has (root or not root, `unshare`, `python3`). A test that cannot run prints
//! a sentence and passes.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test may")]
#![allow(clippy::print_stdout, reason = "a test that cannot be done says so")]
#![allow(unreachable_pub, reason = "nobody reaches into a test; `pub` says what a module offers")]

mod asked;
mod baseline;
mod built_by_cargo;
mod carried;
mod case_names;
mod changing_guest;
mod child;
mod comparable;
mod copies;
mod damaged;
mod disk;
mod displacement;
mod execution;
mod file;
mod file_system;
mod fuzz;
mod group;
mod held_up;
mod hostile_file;
mod inherited;
mod interruption;
mod less_than_linux;
mod liar;
mod limit;
mod load;
mod machine_changes;
mod memory;
mod own_bench;
mod pair;
mod partner;
mod place;
mod process;
mod record;
mod refused_output;
mod revision;
mod run_names;
mod sandbox;
mod shim;
mod source;
mod squeezed;
mod standard_stream;
mod stored;
mod why;

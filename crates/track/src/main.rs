//! `syscost history`, `fleet`, `page` and `draw`: measurements over nights, over machines, and as pictures.
//!
//! `syscost` starts this program for these commands. [`record`] has the files that are kept, [`study`] their evaluation, and
//! [`render`] their presentation.
#![deny(unsafe_code)]

mod command;
#[cfg(test)]
#[path = "../../analysis/tests/support/fixture_head.rs"]
mod fixture_head;
mod record;
mod render;
mod study;

use std::process::ExitCode;

fn main() -> ExitCode {
    command::run()
}

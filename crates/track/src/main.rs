//! `syscost history`, `fleet`, `page` and `draw`: measurements over nights, over machines, and as pictures.
//!
//! `syscost` starts this program for these commands. [`record`] is what is kept, [`study`] what it means, [`render`] how it is
//! shown.
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

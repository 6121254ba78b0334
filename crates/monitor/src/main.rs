//! `syscost monitor`, `probe` and `validate`: the system's counters live, at a fixed rate, and compared with known work.
//!
//! `syscost` starts this program for these commands. [`watch`], [`view`] and [`host_view`] compute the shown values.
//! [`live_view`] shows them, [`exposition`] writes them for Prometheus, and [`http_server`] answers requests.
#![deny(unsafe_code)]
mod exposition;
mod host_page;
mod host_view;
mod http_server;
mod live_view;
mod monitor;
mod probe;
mod validate;
mod view;
mod watch;

use clap::Subcommand;
use std::process::ExitCode;
use syscost_command_line::start::start_tool;
use syscost_platform::output;

#[derive(Subcommand)]
enum Command {
    Monitor(monitor::Args),
    Probe(probe::Args),
    Validate(validate::Args),
}

fn main() -> ExitCode {
    start_tool("Watches the system's counters, and validates them", &[], |command: &Command| {
        // These commands measure for a long time before they print, so the output is checked first.
        if !matches!(command, Command::Monitor(_)) {
            output::check_stdout()?;
        }
        match command {
            Command::Monitor(args) => monitor::run(args),
            Command::Probe(args) => probe::run(args),
            Command::Validate(args) => validate::run(args),
        }
    })
}

//! `syscost monitor`, `probe` and `validate`: the system's counters live, at a fixed rate, and held against known work.
//!
//! `syscost` starts this program for these commands. [`watch`], [`view`] and [`host_view`] hold what is shown.
//! [`live_view`] shows it, [`exposition`] writes it for Prometheus, and [`http_server`] answers the requests.
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
        // These measure for long before they print: the output is checked first.
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

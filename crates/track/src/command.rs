//! The command line: one file for each subcommand.

mod draw;
mod fleet;
mod history;

use clap::Subcommand;
use std::process::ExitCode;
use syscost::suite::GROUPS;
use syscost_command_line::start::start_tool;
use syscost_platform::output;

#[derive(Subcommand)]
enum Command {
    #[command(subcommand)]
    History(Box<history::Command>),
    #[command(subcommand)]
    Fleet(Box<fleet::Command>),
    Page(draw::PageArgs),
    Draw(Box<draw::Args>),
}

/// Does what this process's command line asks.
pub fn run() -> ExitCode {
    start_tool(
        "Follows measurements over nights and machines, and draws them",
        GROUPS,
        |command: &Command| {
            // These measure for long before they print: the output is checked first.
            if matches!(command, Command::History(_) | Command::Fleet(_)) {
                output::check_stdout()?;
            }
            match command {
                Command::History(command) => history::run(command),
                Command::Fleet(command) => fleet::run(command),
                Command::Page(args) => draw::write_pages(args),
                Command::Draw(args) => draw::run(args),
            }
        },
    )
}

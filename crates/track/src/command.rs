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

/// Runs the command on this process's command line, and returns its exit code.
pub fn run() -> ExitCode {
    start_tool(
        "Follows measurements over nights and machines, and draws them",
        GROUPS,
        |command: &Command| {
            // These commands measure for a long time before they print, so the output is checked first.
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

//! The program `syscost-kernels`, which `syscost kernels` starts, and the first process of a guest.

use clap::Subcommand;
use std::process::ExitCode;
use syscost::suite::GROUPS;
use syscost_command_line::start::start_tool;
use syscost_kernels::guest::init as guest_init;
use syscost_kernels::kernels;
use syscost_platform::output;

#[derive(Subcommand)]
enum Command {
    Kernels(Box<kernels::Args>),
    #[command(hide = true)]
    GuestInit(guest_init::Args),
}

fn main() -> ExitCode {
    start_tool("Compares kernels", GROUPS, |command: &Command| match command {
        Command::Kernels(args) => {
            // The command measures for a long time before it prints, so the output is checked first.
            output::check_stdout()?;
            kernels::run(args)
        }
        Command::GuestInit(args) => guest_init::run(args),
    })
}

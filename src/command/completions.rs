//! `syscost completions`: what a shell needs to complete a command line of `syscost`.

use super::Line;
use super::help;
use super::page;
use crate::error::Result;
use clap::CommandFactory;
use clap_complete::{Shell, generate};
use std::process::ExitCode;

/// Print what a shell needs to complete commands and flags
///
/// Prints a script for the shell. For bash: `syscost completions bash > ~/.local/share/bash-completion/completions/syscost`.
#[derive(clap::Args)]
pub struct Args {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

pub fn run(args: &Args) -> Result<ExitCode> {
    let mut script = Vec::new();
    generate(args.shell, &mut help::add_help_topics(Line::command()), "syscost", &mut script);
    page::write(&String::from_utf8_lossy(&script))?;
    Ok(ExitCode::SUCCESS)
}

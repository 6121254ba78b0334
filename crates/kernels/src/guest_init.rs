//! `syscost guest-init`: the first process of a guest that `syscost kernels` has booted.

use crate::guest::init;
use std::process::ExitCode;
use syscost_command_line::page;
use syscost_platform::error::Result;

/// The name of this command.
const NAME: &str = "guest-init";

/// Be the first process of a guest: answer the questions in its initramfs, and end it
#[derive(clap::Args)]
pub struct Args {
    /// Count one case here, under an instruction clock, and print the outcome as JSON
    #[arg(long, value_name = "ID")]
    case: Option<String>,
    /// Iterations of the smaller batch
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u64).range(1..=1 << 20))]
    iterations: u64,
    /// Serve sides on the second serial line, in the place of questions
    #[arg(long, conflicts_with = "case")]
    turns: bool,
}

/// Runs the command.
///
/// # Errors
/// What the command asks for cannot be done.
pub fn run(args: &Args) -> Result<ExitCode> {
    match &args.case {
        Some(id) => page::write_json(&init::count_case_by_id(id, args.iterations))?,
        None => init::serve_as_init(NAME, args.turns)?,
    }
    Ok(ExitCode::SUCCESS)
}

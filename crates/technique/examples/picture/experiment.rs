//! An experiment in two parts. The live part measures this machine, which may lack what the part needs. The part on paper has
//! known results, which must hold.

use std::process::ExitCode;
use syscost_technique::known::Known;
use syscost_technique::{Error, Result};

/// Runs both parts as the command line asks. `--quick` shortens the live part, `--known` leaves it out, `--moved` moves the
/// known values of the part on paper, and any other word is the directory for pictures. An error of either part gives exit
/// code 1. A machine that lacks what the live part needs gets a message, and no error.
pub fn main(live: fn(bool, Option<&str>) -> Result<()>, on_paper: fn(Known) -> Result<()>) -> ExitCode {
    match run_both(live, on_paper) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run_both(live: fn(bool, Option<&str>) -> Result<()>, on_paper: fn(Known) -> Result<()>) -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let given = |option: &str| arguments.iter().any(|argument| argument == option);
    let directory = arguments.iter().find(|argument| !argument.starts_with('-'));
    if !given("--known") {
        live(given("--quick"), directory.map(String::as_str)).or_else(skipped)?;
    }
    on_paper(Known::from_arguments(arguments.into_iter()))
}

fn skipped(error: Error) -> Result<()> {
    if !error.is_machine_limitation() {
        return Err(error);
    }
    println!("skipped: {error}");
    Ok(())
}

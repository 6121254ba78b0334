//! `syscost man`: the manual pages of the commands, from the same definitions as their help.

use super::Line;
use super::start::MAN;
use super::tool;
use super::{outline, page};
use crate::error::{Error, Result};
use clap::CommandFactory;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Write a manual page for each command into a directory
///
/// Writes `syscost.1` and a page for each command, such as `syscost-run.1`. `man -l DIR/syscost.1` shows one.
#[derive(clap::Args)]
pub struct Args {
    /// The directory; it is made if it is not there
    #[arg(value_name = "DIR")]
    directory: PathBuf,
}

pub fn run(args: &Args) -> Result<ExitCode> {
    let directory = &args.directory;
    std::fs::create_dir_all(directory).map_err(|e| Error::file(directory, "making the directory", e))?;
    let mut line = Line::command();
    line.build();
    let mut pages = outline::write_pages(&line, "syscost", directory)?;
    for tool in tool::installed_tools() {
        pages += write_tool_pages(&tool, directory)?;
    }
    page::write_to_stderr(&format!("{pages} pages in {}", directory.display()));
    Ok(ExitCode::SUCCESS)
}

/// Starts a tool so that it writes the pages of its commands. Returns the number of pages.
///
/// # Errors
/// The tool cannot be started, or reports a failure.
fn write_tool_pages(tool: &Path, directory: &Path) -> Result<usize> {
    let output = std::process::Command::new(tool).arg(MAN).arg(directory).output();
    let output = output.map_err(|e| Error::file(tool, "starting", e))?;
    String::from_utf8_lossy(&output.stdout).trim().parse().map_err(|_| {
        Error::Missing(format!(
            "{} wrote no manual pages: {}",
            tool.display(),
            String::from_utf8_lossy(&output.stderr).trim()
        ))
    })
}

//! The manual pages of commands, from the same definitions as their help.

use crate::error::{Error, Result};
use crate::page::save_file;
use clap::Command;
use clap_mangen::Man;
use std::path::Path;

/// Writes the pages of the commands below this one; how many.
///
/// # Errors
/// A file cannot be written.
pub fn write_subcommand_pages(line: &Command, directory: &Path) -> Result<usize> {
    let mut line = line.clone();
    line.build();
    let below = line.get_subcommands().filter(|below| below.get_name() != "help" && !below.is_hide_set());
    below.map(|below| write_pages(below, &format!("syscost-{}", below.get_name()), directory)).sum()
}

/// Writes the page of a command and those below it; how many.
///
/// # Errors
/// A file cannot be written.
pub fn write_pages(command: &Command, name: &str, directory: &Path) -> Result<usize> {
    let file = directory.join(format!("{name}.1"));
    let mut text = Vec::new();
    let page = Man::new(command.clone()).title(name);
    page.render(&mut text).map_err(|e| Error::file(&file, "writing a page", e))?;
    save_file(&file, &text)?;
    let below = command.get_subcommands().filter(|below| below.get_name() != "help" && !below.is_hide_set());
    below
        .map(|below| write_pages(below, &format!("{name}-{}", below.get_name()), directory))
        .sum::<Result<usize>>()
        .map(|pages| pages + 1)
}

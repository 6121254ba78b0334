//! The commands of a tool as JSON. The tool prints them, and `syscost completions`, in another process, reads them.

use crate::error::{Error, Result};
use crate::page::save_file;
use crate::start::OUTLINE;
use clap::builder::PossibleValuesParser;
use clap::{Arg, ArgAction, Command};
use clap_mangen::Man;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// A command, with its flags and its subcommands.
#[derive(Serialize, Deserialize)]
pub struct Outline {
    name: String,
    about: String,
    arguments: Vec<ArgumentOutline>,
    below: Vec<Self>,
}

/// A flag, or a positional argument.
#[derive(Serialize, Deserialize)]
struct ArgumentOutline {
    id: String,
    long: Option<String>,
    value_name: Option<String>,
    help: String,
    is_repeated: bool,
    takes_value: bool,
    /// Whether the argument stands behind `--`.
    is_last: bool,
    /// The only possible values; empty if other values are possible, too.
    values: Vec<String>,
}

/// Starts a tool to get its commands.
///
/// # Errors
/// The tool cannot be started, or prints something else.
pub fn ask_tool(tool: &Path) -> Result<Vec<Command>> {
    let output = std::process::Command::new(tool).arg(OUTLINE).output();
    let output = output.map_err(|e| Error::file(tool, "starting", e))?;
    let outlines: Vec<Outline> = serde_json::from_slice(&output.stdout).map_err(|_| {
        Error::Missing(format!(
            "{} does not tell its commands: {}; build it anew, from the sources of this program",
            tool.display(),
            String::from_utf8_lossy(&output.stderr).trim()
        ))
    })?;
    Ok(outlines.into_iter().map(Outline::into_command).collect())
}

impl Outline {
    /// The visible subcommands of this command.
    pub fn from_subcommands(command: &Command) -> Vec<Self> {
        command.get_subcommands().filter(|below| !below.is_hide_set()).map(Self::from_command).collect()
    }

    fn from_command(command: &Command) -> Self {
        let arguments = command.get_arguments().filter(|argument| !argument.is_hide_set());
        Self {
            name: command.get_name().to_owned(),
            about: command.get_about().map(ToString::to_string).unwrap_or_default(),
            arguments: arguments.map(ArgumentOutline::from_argument).collect(),
            below: Self::from_subcommands(command),
        }
    }

    fn into_command(self) -> Command {
        let command = Command::new(keep(self.name)).about(self.about).disable_help_subcommand(true);
        let command = command.args(self.arguments.into_iter().map(ArgumentOutline::into_argument));
        command.subcommands(self.below.into_iter().map(Self::into_command))
    }
}

impl ArgumentOutline {
    fn from_argument(argument: &Arg) -> Self {
        let values = argument.get_possible_values();
        Self {
            id: argument.get_id().to_string(),
            long: argument.get_long().map(str::to_owned),
            value_name: argument.get_value_names().and_then(|names| Some(names.first()?.to_string())),
            help: argument.get_help().map(ToString::to_string).unwrap_or_default(),
            is_repeated: matches!(argument.get_action(), ArgAction::Append),
            takes_value: argument.get_action().takes_values(),
            is_last: argument.is_last_set(),
            values: values.iter().map(|value| value.get_name().to_owned()).collect(),
        }
    }

    fn into_argument(self) -> Arg {
        let mut argument = Arg::new(keep(self.id)).help(self.help).last(self.is_last);
        if !self.takes_value {
            argument = argument.action(ArgAction::SetTrue);
        } else if !self.values.is_empty() {
            argument = argument.value_parser(PossibleValuesParser::new(self.values.into_iter().map(keep)));
        }
        if let Some(name) = self.value_name.filter(|_| self.takes_value) {
            argument = argument.value_name(keep(name));
        }
        match self.long {
            Some(long) => argument.long(keep(long)),
            None if self.is_repeated => argument.num_args(1..),
            None => argument,
        }
    }
}

/// Leaks a name, because clap needs names that live as long as the program.
fn keep(name: String) -> &'static str {
    name.leak()
}

// The manual pages of commands, from the same definitions as their help.

/// Writes the manual pages of the subcommands of a command. Returns the number of pages.
///
/// # Errors
/// A file cannot be written.
pub fn write_subcommand_pages(line: &Command, directory: &Path) -> Result<usize> {
    let mut line = line.clone();
    line.build();
    write_pages_below(&line, "syscost", directory)
}

fn write_pages_below(command: &Command, name: &str, directory: &Path) -> Result<usize> {
    let below = command.get_subcommands().filter(|below| below.get_name() != "help" && !below.is_hide_set());
    below.map(|below| write_pages(below, &format!("{name}-{}", below.get_name()), directory)).sum()
}

/// Writes the manual pages of a command and its subcommands. Returns the number of pages.
///
/// # Errors
/// A file cannot be written.
pub fn write_pages(command: &Command, name: &str, directory: &Path) -> Result<usize> {
    let file = directory.join(format!("{name}.1"));
    let mut text = Vec::new();
    let page = Man::new(command.clone()).title(name);
    page.render(&mut text).map_err(|e| Error::file(&file, "writing a page", e))?;
    save_file(&file, &text)?;
    Ok(1 + write_pages_below(command, name, directory)?)
}

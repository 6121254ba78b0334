//! Commands of other programs: `syscost NAME` runs the tool that lies beside this program or in the search path, and passes
//! all words on, as git and cargo do.

use super::outline;
use crate::error::{Error, Result};
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, ExitCode};
use syscost_command_line::start::find_program_file;

/// A command, the tool of this workspace that implements it, and its purpose. A tool is the package `syscost-TOOL` in
/// `crates/TOOL`.
type ToolCommand = (&'static str, &'static str, &'static str);

#[rustfmt::skip]
pub const COMMANDS: &[ToolCommand] = &[
    ("kernels", "kernels", "Compare kernels: as guests by turns or by counted instructions, or over reboots"),
    ("history", "track", "Follow cases over nights and commits, and find what changed"),
    ("fleet", "track", "Measure many machines, and compare them"),
    ("page", "track", "Write runs and histories as pages of HTML"),
    ("draw", "track", "Draw a run as pictures, or as one page of HTML"),
    ("selftest", "selftest", "Put the method and the claims on trial: false alarms, overlooked slowdowns, lies"),
    ("monitor", "monitor", "Watch one machine or several, live"),
    ("probe", "monitor", "Read nine counters at a rate, and tell what that costs"),
    ("validate", "monitor", "Hold the counters against what is known to have happened"),
];

/// Each tool: its name, the path of its program if it is installed, and its commands.
fn tools() -> impl Iterator<Item = (&'static str, Option<PathBuf>, &'static [ToolCommand])> {
    let tools = COMMANDS.chunk_by(|a, b| a.1 == b.1).map(|commands| (commands[0].1, commands));
    tools.map(|(tool, commands)| (tool, find_program_file(&format!("syscost-{tool}")), commands))
}

/// The program for the first word: a tool of the list above, or another `syscost-WORD`. `None` if neither exists.
///
/// # Errors
/// The word names a tool of this workspace that is not installed.
pub fn find_program(words: &[OsString], is_own: impl Fn(&str) -> bool) -> Result<Option<PathBuf>> {
    let Some(name) = command_name(words) else { return Ok(None) };
    if is_own(name) {
        return Ok(None);
    }
    let tool = COMMANDS.iter().find(|(command, ..)| *command == name).map(|(_, tool, _)| *tool);
    let program = format!("syscost-{}", tool.unwrap_or(name));
    match (find_program_file(&program), tool) {
        (None, Some(tool)) => Err(Error::Usage(format!(
            "`syscost {name}` needs the program {program}, which is neither beside this one nor on the search path: `cargo build \
             --release --workspace` builds it, `cargo install --path crates/{tool}` installs it"
        ))),
        (file, _) => Ok(file),
    }
}

/// The command that this line names: its first word, or the word after `help`.
fn command_name(words: &[OsString]) -> Option<&str> {
    let word = |at: usize| words.get(at).and_then(|word| word.to_str());
    let name = if word(1) == Some("help") { word(2) } else { word(1) }?;
    let is_plain = name.chars().all(|c| c.is_ascii_lowercase() || c == '-') && !name.starts_with('-');
    is_plain.then_some(name)
}

/// Replaces this process by that program (execve), with the same words.
///
/// # Errors
/// It cannot be started.
pub fn become_program(program: PathBuf, words: &[OsString]) -> Result<ExitCode> {
    let arguments = words.get(1..).unwrap_or_default();
    let cause = Command::new(&program).args(arguments).exec();
    Err(Error::file(program, "starting", cause))
}

/// The programs of the installed tools.
pub fn installed_tools() -> impl Iterator<Item = PathBuf> {
    tools().filter_map(|(_, program, _)| program)
}

/// The commands of all tools: with flags and subcommands if the tool is installed, otherwise the names only.
///
/// # Errors
/// An installed tool does not report its commands.
pub fn command_trees() -> Result<Vec<clap::Command>> {
    let trees = tools().map(|(_, program, commands)| match program {
        Some(program) => outline::ask_tool(&program),
        None => Ok(commands.iter().map(|(name, _, about)| clap::Command::new(*name).about(*about)).collect()),
    });
    trees.collect::<Result<Vec<_>>>().map(|trees| trees.concat())
}

/// The list of the tools' commands that `syscost help` prints, and how to install missing tools.
pub fn commands_text() -> String {
    let mut text = "Commands of the tools:\n".to_owned();
    for (tool, program, commands) in tools() {
        for (name, _, about) in commands {
            text += &format!("  {name:<12}  {about}\n");
        }
        if program.is_none() {
            let how = format!("cargo install --path crates/{tool}");
            text += &format!("  {:12}  (syscost-{tool} is not installed: {how})\n", "");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<OsString> {
        line.split(' ').map(OsString::from).collect()
    }

    #[test]
    fn the_first_word_or_the_one_behind_help_names_the_tool() {
        for line in ["syscost kernels ab", "syscost help kernels", "syscost kernels"] {
            assert_eq!(command_name(&words(line)), Some("kernels"), "{line}");
        }
        for line in ["syscost", "syscost --version", "syscost ../kernels", "syscost help", "syscost Kernels"]
        {
            assert_eq!(command_name(&words(line)), None, "{line}");
        }
    }

    #[test]
    fn a_command_of_this_program_is_not_looked_for_elsewhere() {
        assert_eq!(find_program(&words("syscost kernels"), |_| true).unwrap(), None);
        assert_eq!(find_program(&words("syscost no-such-tool"), |_| false).unwrap(), None);
    }

    #[test]
    fn each_tool_is_a_package_of_the_workspace() {
        for (_, tool, _) in COMMANDS {
            let manifest = format!("{}/crates/{tool}/Cargo.toml", env!("CARGO_MANIFEST_DIR"));
            let text = std::fs::read_to_string(&manifest).unwrap();
            assert!(text.contains(&format!("name = \"syscost-{tool}\"")), "{manifest}");
        }
    }
}

//! Commands that other programs have: `syscost NAME` runs the tool from beside this program or from the search path, with all
//! its words, as git and cargo do.

use super::outline;
use crate::error::{Error, Result};
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, ExitCode};
use syscost_command_line::start::find_program_file;

/// A package of this workspace whose program has further commands.
struct Tool {
    package: &'static str,
    /// Its directory in the repository.
    directory: &'static str,
    /// Name and purpose of each command.
    commands: &'static [(&'static str, &'static str)],
}

const TOOLS: [Tool; 4] = [
    Tool {
        package: "syscost-kernels",
        directory: "crates/kernels",
        commands: &[(
            "kernels",
            "Compare kernels: as guests by turns or by counted instructions, or over reboots",
        )],
    },
    Tool {
        package: "syscost-track",
        directory: "crates/track",
        commands: &[
            ("history", "Follow cases over nights and commits, and find what changed"),
            ("fleet", "Measure many machines, and compare them"),
            ("page", "Write runs and histories as pages of HTML"),
            ("draw", "Draw a run as pictures, or as one page of HTML"),
        ],
    },
    Tool {
        package: "syscost-selftest",
        directory: "crates/selftest",
        commands: &[(
            "selftest",
            "Put the method and the claims on trial: false alarms, overlooked slowdowns, lies",
        )],
    },
    Tool {
        package: "syscost-monitor",
        directory: "crates/monitor",
        commands: &[
            ("monitor", "Watch one machine or several, live"),
            ("probe", "Read nine counters at a rate, and tell what that costs"),
            ("validate", "Hold the counters against what is known to have happened"),
        ],
    },
];

/// The program that the first word asks for: one of the tools above, or another `syscost-WORD`. `None` if there is neither.
///
/// # Errors
/// A tool of this workspace that is not installed.
pub fn find_program(words: &[OsString], is_own: impl Fn(&str) -> bool) -> Result<Option<PathBuf>> {
    let Some(name) = command_name(words) else { return Ok(None) };
    if is_own(name) {
        return Ok(None);
    }
    let tool = TOOLS.iter().find(|tool| tool.commands.iter().any(|(command, _)| *command == name));
    let program = tool.map_or_else(|| format!("syscost-{name}"), |tool| tool.package.to_owned());
    match (find_program_file(&program), tool) {
        (None, Some(tool)) => Err(Error::Usage(format!(
            "`syscost {name}` needs the program {}, which is neither beside this one nor on the search path: `cargo build \
             --release --workspace` builds it, `cargo install --path {}` installs it",
            tool.package, tool.directory
        ))),
        (file, _) => Ok(file),
    }
}

/// The command of this line: the first word, or the one behind `help`.
fn command_name(words: &[OsString]) -> Option<&str> {
    let word = |at: usize| words.get(at).and_then(|word| word.to_str());
    let name = if word(1) == Some("help") { word(2) } else { word(1) }?;
    let is_plain = name.chars().all(|c| c.is_ascii_lowercase() || c == '-') && !name.starts_with('-');
    is_plain.then_some(name)
}

/// Becomes this program, with the same words.
///
/// # Errors
/// It cannot be started.
pub fn become_program(program: PathBuf, words: &[OsString]) -> Result<ExitCode> {
    let arguments = words.get(1..).unwrap_or_default();
    let cause = Command::new(&program).args(arguments).exec();
    Err(Error::file(program, "starting", cause))
}

/// The tools that are there.
pub fn installed_tools() -> impl Iterator<Item = PathBuf> {
    TOOLS.iter().filter_map(|tool| find_program_file(tool.package))
}

/// The commands of the tools: with their flags and those below them if the tool is installed, else by name.
///
/// # Errors
/// A tool does not tell them.
pub fn command_trees() -> Result<Vec<clap::Command>> {
    let named = |(name, about): &(&'static str, &'static str)| clap::Command::new(*name).about(*about);
    let trees = TOOLS.iter().map(|tool| match find_program_file(tool.package) {
        Some(program) => outline::ask_tool(&program),
        None => Ok(tool.commands.iter().map(named).collect()),
    });
    trees.collect::<Result<Vec<_>>>().map(|trees| trees.concat())
}

/// Name and purpose of every command of the tools.
pub fn tool_commands() -> impl Iterator<Item = &'static (&'static str, &'static str)> {
    TOOLS.iter().flat_map(|tool| tool.commands)
}

/// The commands of the tools below those of `syscost help`, and how to get those that are missing.
pub fn commands_text() -> String {
    let mut text = "Commands of the tools:\n".to_owned();
    for tool in &TOOLS {
        let is_present = find_program_file(tool.package).is_some();
        for (name, about) in tool.commands {
            text += &format!("  {name:<12}  {about}\n");
        }
        if !is_present {
            text += &format!(
                "  {:12}  ({} is not installed: cargo install --path {})\n",
                "", tool.package, tool.directory
            );
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
        for tool in &TOOLS {
            let manifest =
                std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(tool.directory).join("Cargo.toml");
            let text = std::fs::read_to_string(&manifest).unwrap();
            assert!(text.contains(&format!("name = \"{}\"", tool.package)), "{}", manifest.display());
        }
    }
}

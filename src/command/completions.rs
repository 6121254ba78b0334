//! `syscost completions`: prints the script with which a shell completes command lines of `syscost`.

use super::Line;
use super::help;
use super::page;
use super::tool;
use crate::error::Result;
use clap::{Arg, Command, CommandFactory};
use clap_complete::{Shell, generate};
use std::process::ExitCode;

/// Print what a shell needs to complete commands, flags and ids of cases
///
/// Prints a script for the shell. For bash: `syscost completions bash > ~/.local/share/bash-completion/completions/syscost`. It
/// has the commands of the tools that are installed now. The shell asks `syscost list` for the ids, in bash, zsh and fish.
#[derive(clap::Args)]
pub struct Args {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

pub fn run(args: &Args) -> Result<ExitCode> {
    let line = help::add_help_topics(Line::command(), tool::command_trees()?);
    page::write(&completion_script(args.shell, line))?;
    Ok(ExitCode::SUCCESS)
}

/// The bash expression that lists the ids. `$1` is the program, as the user typed it.
const BASH_IDS: &str = r#"$([[ ${cur} == -* ]] || "$1" list 2>/dev/null | cut -f1)"#;
const ZSH_IDS: &str = "#compdef syscost

_syscost_ids() {
    local -a ids=(${(f)\"$(syscost list 2>/dev/null | cut -f1)\"})
    compadd -a ids
}
";
const FISH_IDS: &str = r#"-f -a "(syscost list 2>/dev/null | cut -f1,2)""#;

/// The script that clap generates, with a call of `syscost list` added wherever an id may stand; clap knows no ids.
fn completion_script(shell: Shell, line: Command) -> String {
    // clap writes the possible values of an argument into a string that bash expands.
    let mut line = if shell == Shell::Bash { offer_instead_of_ids(line, BASH_IDS) } else { line };
    let mut script = Vec::new();
    generate(shell, &mut line, "syscost", &mut script);
    let script = String::from_utf8_lossy(&script).into_owned();
    match shell {
        Shell::Zsh => {
            let script = script.replacen("#compdef syscost\n", ZSH_IDS, 1);
            script.lines().map(|line| zsh_line(line) + "\n").collect()
        }
        Shell::Fish => script + &fish_lines(&line, &[]),
        _ => script,
    }
}

/// Whether this argument is an id or a pattern of ids.
fn takes_ids(argument: &Arg) -> bool {
    argument.is_positional() && ID_ARGUMENTS.contains(&argument.get_id().as_str())
}

const ID_ARGUMENTS: [&str; 2] = ["filter", "subject"];

fn offer_instead_of_ids(command: Command, word: &'static str) -> Command {
    let offer = |argument: Arg| if takes_ids(&argument) { argument.value_parser([word]) } else { argument };
    command.mut_args(offer).mut_subcommands(|below| offer_instead_of_ids(below, word))
}

/// A line that clap generated, such as `'::filter -- Regular expression…:_default' \`, with our completion function instead of
/// `_default`.
fn zsh_line(line: &str) -> String {
    let argument = line.trim_start_matches(['\'', ':']).split(' ').next().unwrap_or_default();
    let is_of_ids = line.starts_with("':") && ID_ARGUMENTS.contains(&argument);
    if is_of_ids { line.replace(":_default'", ":_syscost_ids'") } else { line.to_owned() }
}

/// One line for this command and each subcommand that takes ids; clap writes no lines for positional arguments.
fn fish_lines(command: &Command, words: &[&str]) -> String {
    let mut lines = String::new();
    if let (true, [first, rest @ ..]) = (command.get_positionals().any(takes_ids), words) {
        let seen = rest.iter().map(|word| format!("; and __fish_seen_subcommand_from {word}"));
        let condition = format!("__fish_syscost_using_subcommand {first}{}", seen.collect::<String>());
        lines += &format!("complete -c syscost -n \"{condition}\" {FISH_IDS}\n");
    }
    let below = command.get_subcommands();
    lines.extend(below.map(|below| fish_lines(below, &[words, &[below.get_name()]].concat())));
    lines
}

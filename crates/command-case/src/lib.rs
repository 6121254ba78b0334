//! # What is timed
//! One execution of a command: from the start of its first process until that process has ended and was waited for. A command
//! without special characters of a shell is started directly; any other runs under `sh -c`, whose cost is part of it.
//!
//! # What is not
//! `prepare` and `clean` run before and after each execution. Standard output and error go to files, which are read and
//! compared afterwards. The command may run on every CPU that this process was allowed.
//!
//! # How we know
//! Every execution ends with the expected exit code and leaves no process behind. Its output is compared with that of the first
//! one. The process that proves the case also runs the command under `ptrace` and counts the system calls of all its
//! processes; page faults, switches and peak memory come from `wait4`. A first execution that uses far more CPU time than
//! later ones tells of an answer that is kept between executions.
//!
//! # What fools it
//! A command whose answer was kept before the first execution: let `prepare` remove it. A command whose processes detach
//! into another session and outlive it are killed, and the case is disproved.
//!
//! # Reading the number
//! `fork/exec/tiny` and `fork/exec/true` are the floor: what starting and ending a small program costs on this machine.
//!
//! # Source
//! hyperfine, and `time(1)`; `wait4(2)`, `ptrace(2)`.
#![deny(unsafe_code)]

mod command_subject;
mod declaration;
mod execution;

pub use declaration::{CommandSpec, Expect, ExpectedOutput, FILE, Run};

use command_subject::CommandSubject;
use std::sync::OnceLock;
use syscost_engine::Result;
use syscost_engine::case::{Case, Claim, Group, OwnTasks, set_up};
use syscost_platform::{self as platform, error};

/// The environment variable that hands commands to a measuring process, as a JSON list of [`CommandSpec`].
pub const VARIABLE: &str = "SYSCOST_COMMANDS";

/// The commands that were declared, as a group.
pub const GROUP: Group = Group::new("command", include_str!("lib.rs"), cases);

/// The commands of this process: those of [`VARIABLE`], else those of [`FILE`] in the current directory.
///
/// # Errors
/// The file, or a field of it, is wrong.
pub fn declared() -> Result<Vec<CommandSpec>> {
    match std::env::var(VARIABLE) {
        Ok(json) => CommandSpec::list_from_json(&json),
        Err(_) => CommandSpec::list_from_file(FILE.as_ref()),
    }
}

/// These groups, and [`GROUP`] behind them if commands are declared.
///
/// # Errors
/// As of [`declared`].
pub fn with_commands(groups: &'static [Group]) -> Result<&'static [Group]> {
    static ALL: OnceLock<&'static [Group]> = OnceLock::new();
    if declared()?.is_empty() {
        return Ok(groups);
    }
    Ok(ALL.get_or_init(|| Vec::leak(groups.iter().copied().chain([GROUP]).collect())))
}

fn cases() -> Vec<Case> {
    declared().unwrap_or_default().into_iter().map(command_case).collect()
}

fn command_case(spec: CommandSpec) -> Case {
    let (name, title) = (spec.name.clone(), spec.run.to_string());
    let set_up = set_up(move |place| CommandSubject::new(spec.clone(), place));
    Case::new(name, title, set_up)
        .own_tasks(OwnTasks::Elsewhere)
        .one_by_one()
        .claim(Claim::Checked("each execution ended with the expected exit code, and left no process behind"))
}

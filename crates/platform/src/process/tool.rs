//! Starts system programs whose output is read: `ip`, `ps`, `git`. They print in the C locale, whatever the user's language, and read
//! no input. Also starts the running program once more.
//!
//! # Invariants
//!
//! * **EXECFN**: the auxiliary vector's entry is null, or points to a text that ends in a zero byte and stays as long as the
//!   process does (getauxval(3)).

#![allow(unsafe_code)]

use crate::inert;
use std::ffi::{CStr, OsStr, OsString};
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// Variables by which a user changes what a program prints, or how it reads its options: `ps(1)` has several personalities.
const OUTPUT_VARIABLES: [&str; 6] =
    ["LANGUAGE", "PS_PERSONALITY", "PS_FORMAT", "CMD_ENV", "I_WANT_A_BROKEN_PS", "POSIXLY_CORRECT"];
/// The most characters that are quoted of a program's last line.
const LONGEST: usize = 300;

/// A command that runs the program in the C locale, with an empty standard input.
pub fn command(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    for variable in OUTPUT_VARIABLES {
        command.env_remove(variable);
    }
    command.env("LC_ALL", "C").stdin(Stdio::null());
    command
}

/// A word for a shell, in quotes unless it has plain characters only: it may be the text of a file.
pub fn quote_for_shell(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/_.-%@=+,:".contains(c);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}

/// How a program failed: its exit status, and the first line of its standard error that begins with `error`, else the last line.
pub fn failure_message(output: &Output) -> String {
    let said = String::from_utf8_lossy(&output.stderr);
    let mut lines = said.lines().filter(|line| !line.trim().is_empty());
    // Advice and a backtrace may follow the error.
    let error = lines.clone().find(|line| line.starts_with("error"));
    match error.or_else(|| lines.next_back()) {
        Some(line) => format!("({}): {}", output.status, inert::neutralize_line(line.trim(), LONGEST)),
        None => format!("({}) without a word of why", output.status),
    }
}

/// The kernel's link to the file of this program. QEMU's user mode intercepts reading the link, and names the program that it
/// emulates. For the kernel the program is the emulator, and executing the link starts the emulator.
const OWN_LINK: &str = "/proc/self/exe";
/// The same link by a name that QEMU does not intercept.
const EXECUTED_LINK: &str = "/proc/thread-self/exe";
/// The command line by which [`EXECUTED_LINK`] was started.
const EXECUTED_COMMAND_LINE: &str = "/proc/thread-self/cmdline";

/// The file of the running program. Without `/proc` it is the path by which the kernel started the program.
///
/// # Errors
/// Neither is known.
pub fn own_program_file() -> io::Result<PathBuf> {
    std::env::current_exe().or_else(|error| std::path::absolute(started_file().ok_or(error)?))
}

/// A command that starts the running program once more, by the kernel's own link: its file may have been replaced meanwhile, as by
/// a build beside a run, and then its path leads nowhere or to another program. If an emulator runs the program, the command
/// starts the emulator with it: the kernel cannot execute a program of another processor.
pub fn own_program_command() -> Command {
    let own = own_program_file().unwrap_or_else(|_| OWN_LINK.into());
    let mut command = match emulator_options(&own) {
        Some(options) => {
            let mut command = Command::new(EXECUTED_LINK);
            command.args(options).arg(&own);
            command
        }
        None if Path::new(OWN_LINK).symlink_metadata().is_ok() => Command::new(OWN_LINK),
        None => Command::new(&own),
    };
    command.arg0(std::env::args_os().next().unwrap_or_default());
    command
}

/// The path by which the kernel started this program.
fn started_file() -> Option<PathBuf> {
    // SAFETY: EXECFN.
    let text = unsafe { libc::getauxval(libc::AT_EXECFN) } as *const libc::c_char;
    // SAFETY: EXECFN.
    let text = (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) })?;
    Some(PathBuf::from(OsStr::from_bytes(text.to_bytes())))
}

/// The options of the emulator that runs this program; `None` if none does.
fn emulator_options(own: &Path) -> Option<Vec<OsString>> {
    let executed = std::fs::read_link(EXECUTED_LINK).ok()?;
    let is_emulator = executed != own && executed.file_name()?.as_bytes().starts_with(b"qemu-");
    let line = is_emulator.then(|| std::fs::read(EXECUTED_COMMAND_LINE).ok())??;
    Some(options_before(&line, std::env::args_os().count()))
}

/// The options in the command line of an emulator, whose words end in a zero byte. The last `own` words are the program and its
/// arguments. If the kernel started the emulator (binfmt_misc), there are no options, and the program may be named twice.
fn options_before(line: &[u8], own: usize) -> Vec<OsString> {
    let words: Vec<_> = line.strip_suffix(b"\0").unwrap_or(line).split(|byte| *byte == 0).collect();
    let options = words.get(1..words.len().saturating_sub(own)).unwrap_or_default();
    let are_options = options.first().is_some_and(|first| first.starts_with(b"-"));
    options.iter().filter(|_| are_options).map(|word| OsString::from_vec(word.to_vec())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_message_quotes_the_error_or_the_last_line_if_any() {
        let failed = |script: &str| failure_message(&command("sh").args(["-c", script]).output().unwrap());
        assert_eq!(failed("echo a >&2; echo why >&2; echo >&2; exit 3"), "(exit status: 3): why");
        let rustup = "printf 'error: not installed\\nhelp: install\\n\\nStack backtrace:\\n  13: <unknown>\\n' >&2; exit 1";
        assert_eq!(failed(rustup), "(exit status: 1): error: not installed");
        assert_eq!(failed("exit 4"), "(exit status: 4) without a word of why");
        assert!(failed("kill -9 $$").contains("SIGKILL"));
    }

    #[test]
    fn a_program_prints_in_the_c_locale() {
        let output = command("sh").args(["-c", "echo $LC_ALL-$LANGUAGE; cat"]).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stdout), "C-\n");
    }

    #[test]
    fn the_file_that_was_started_is_the_one_that_runs() {
        let started = started_file().expect("the kernel tells").canonicalize().expect("a file");
        assert_eq!(started, std::env::current_exe().expect("/proc").canonicalize().expect("a file"));
    }

    #[test]
    fn options_of_an_emulator_stand_before_the_program() {
        let options = |line: &str, own| options_before(line.replace(' ', "\0").as_bytes(), own);
        assert_eq!(options("qemu-aarch64 -L /lib ./a run x ", 3), ["-L", "/lib"]);
        assert_eq!(options("qemu-aarch64 ./a run x ", 3), [""; 0]);
        assert_eq!(options("/usr/bin/qemu-aarch64-static /a ./a run ", 2), [""; 0], "binfmt_misc, flag P");
        assert_eq!(options("", 3), [""; 0]);
    }

    #[test]
    fn a_program_that_no_emulator_runs_is_started_by_its_link() {
        assert_eq!(own_program_command().get_program(), OWN_LINK);
    }
}

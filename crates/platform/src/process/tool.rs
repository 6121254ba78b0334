//! Starts programs of the system whose output is read: `ip`, `ps`, `git`. They answer in the C locale, whatever the user speaks, and ask
//! nothing.

use crate::inert;
use std::ffi::OsStr;
use std::process::{Command, Output, Stdio};

/// Variables by which a user changes what a program prints, or how it reads its options: `ps(1)` has several personalities.
const HABITS: [&str; 6] =
    ["LANGUAGE", "PS_PERSONALITY", "PS_FORMAT", "CMD_ENV", "I_WANT_A_BROKEN_PS", "POSIXLY_CORRECT"];
/// The most characters that are quoted of a program's last line.
const LONGEST: usize = 300;

/// The program in the C locale, with nothing on its standard input.
pub fn command(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    for variable in HABITS {
        command.env_remove(variable);
    }
    command.env("LC_ALL", "C").stdin(Stdio::null());
    command
}

/// A word for a shell. It may be the text of a file: whatever is not plain is between quotes.
pub fn quote_for_shell(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/_.-%@=+,:".contains(c);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}

/// How a program failed: its exit status, and the line of its standard error that says `error`, else the last one.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_quotes_the_error_or_the_last_line_or_says_that_there_is_none() {
        let failed = |script: &str| failure_message(&command("sh").args(["-c", script]).output().unwrap());
        assert_eq!(failed("echo a >&2; echo why >&2; echo >&2; exit 3"), "(exit status: 3): why");
        let rustup = "printf 'error: not installed\\nhelp: install\\n\\nStack backtrace:\\n  13: <unknown>\\n' >&2; exit 1";
        assert_eq!(failed(rustup), "(exit status: 1): error: not installed");
        assert_eq!(failed("exit 4"), "(exit status: 4) without a word of why");
        assert!(failed("kill -9 $$").contains("SIGKILL"));
    }

    #[test]
    fn a_program_answers_in_the_c_locale() {
        let output = command("sh").args(["-c", "echo $LC_ALL-$LANGUAGE; cat"]).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stdout), "C-\n");
    }
}

//! Output of the commands: the standard output and the standard error, JSON, warnings and progress.

#![allow(clippy::print_stdout, clippy::print_stderr)]

pub use crate::platform::inert::neutralize_text as inert;
pub use syscost_engine::driver::progress_bar;
pub use syscost_engine::render::cell::Tone;
pub use syscost_engine::render::display_width as length;
pub use syscost_engine::render::terminal_text::{
    Row, align_columns, columns_and_damaged, columns_text, count_with_noun, heading, paint, prose_width,
    tabbed_or_damaged, tabbed_rows, table, table_width, utc_moment, wrap, wrap_sentences,
};

use crate::error::{Error, Result};
use crate::platform::{inert, output};
use nix::errno::Errno;
use serde::Serialize;
use std::fmt::Display;
use std::io::{ErrorKind, IsTerminal, Write};
use std::path::Path;
use syscost_engine::record::store;
use syscost_engine::render::summary::format_seconds;

/// Writes to the standard output. A closed pipe is no error.
///
/// # Errors
/// The output cannot be written: the disk is full, or the output was closed from the start.
pub fn write(text: &str) -> Result<()> {
    write_unless_closed(text).map(|_| ())
}

/// Like [`write()`], but returns false once the reader has closed the pipe.
///
/// # Errors
/// As those of [`write()`].
pub fn write_unless_closed(text: &str) -> Result<bool> {
    write_bytes(&inert::neutralize_output(text, std::io::stdout().is_terminal()))
}

/// Writes control sequences for a terminal. Text from elsewhere must have passed [`inert::neutralize_output`].
///
/// # Errors
/// As those of [`write()`].
pub fn write_terminal_control(text: &str) -> Result<()> {
    write_bytes(text).map(drop)
}

fn write_bytes(text: &str) -> Result<bool> {
    if output::is_stdout_closed() {
        return Err(Error::file("the standard output", "writing", Errno::EBADF.into()));
    }
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(Error::file("the standard output", "writing", error)),
    }
}

/// Writes a value as indented JSON, its keys in alphabetical order.
///
/// # Errors
/// Those of [`write()`], or the value has a key that JSON cannot represent.
pub fn write_json(value: &impl Serialize) -> Result<()> {
    let value = serde_json::to_value(value);
    let value = value.map_err(|e| Error::file("the output", "writing as JSON", e.into()))?;
    write(&format!("{value:#}\n"))
}

/// Writes the value as JSON if `is_json`, otherwise the text.
///
/// # Errors
/// As those of [`write_json`].
pub fn write_json_or(is_json: bool, value: &impl Serialize, text: impl FnOnce() -> String) -> Result<()> {
    if is_json { write_json(value) } else { write(&text()) }
}

/// Writes a line to the standard error.
pub fn write_to_stderr(text: &str) {
    let mut error = std::io::stderr().lock();
    let text = inert::neutralize_output(text, error.is_terminal());
    let _ = writeln!(error, "{text}");
}

/// On a terminal, says what a long command is about to do and how long that may take, in seconds. Its progress follows.
pub fn announce(work: &str, [least, most]: [f64; 2]) {
    if std::io::stderr().is_terminal() {
        write_to_stderr(&announcement(work, [least, most]));
    }
}

fn announcement(work: &str, [least, most]: [f64; 2]) -> String {
    let (least, most) = (format_seconds(least), format_seconds(most));
    let length = if least == most { format!("about {most}") } else { format!("{least} to {most}") };
    format!("{work}: {length}; Ctrl-C ends it and keeps what is complete")
}

/// Writes a warning or an error to the standard error, after `syscost: `.
pub fn warn(sentence: &impl Display) {
    write_to_stderr(&format!("syscost: {}", inert(&sentence.to_string())));
}

/// Whether the standard output is no terminal. Commands then print one row per line, for programs.
pub fn is_piped() -> bool {
    !std::io::stdout().is_terminal()
}

/// Writes a file atomically: completely or not at all.
///
/// # Errors
/// The file, or a temporary one beside it, cannot be written.
pub fn save_file(file: &Path, bytes: &[u8]) -> Result<()> {
    // The temporary file needs a parent directory, which only an absolute path always has.
    let path = std::path::absolute(file).map_err(|e| Error::file(file, "naming", e))?;
    store::replace_file(&path, bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_announcement_says_the_work_its_length_and_what_an_interrupt_leaves() {
        assert_eq!(
            announcement("40 cases", [48.0, 200.0]),
            "40 cases: 48 s to 3 min 20 s; Ctrl-C ends it and keeps what is complete"
        );
        assert!(announcement("1 verdict", [2.2, 1.9]).contains("1 verdict: about 2 s;"));
    }
}

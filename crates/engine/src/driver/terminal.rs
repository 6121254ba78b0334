//! All output of a run but its progress: tables and sentences.
#![allow(clippy::print_stdout, clippy::print_stderr)]

use crate::error::Error;
use crate::exit::Exit;
use crate::platform::{inert, output};
use crate::render::table::Layout;
use std::fmt::Display;
use std::io::{self, ErrorKind, IsTerminal, Write};
use std::sync::OnceLock;

/// The first error of writing to the standard output, such as a full disk. A closed pipe does not count as an
/// error.
static LOST: OnceLock<io::Error> = OnceLock::new();

/// Prints to the standard output. [`output_error`] tells whether it arrived.
pub fn print(text: &str) {
    let mut out = std::io::stdout().lock();
    let text = inert::neutralize_output(text, out.is_terminal());
    match writeln!(out, "{text}").and_then(|()| out.flush()) {
        // The first of several is reported.
        Err(error) if error.kind() != ErrorKind::BrokenPipe => _ = LOST.set(error),
        _ => (),
    }
}

/// The first error of writing to the standard output; `None` if all was written, or the reader closed the pipe.
pub fn output_error() -> Option<Error> {
    let errno = LOST.get()?.raw_os_error().unwrap_or_default();
    Some(Error::file(output::NAME, "writing", io::Error::from_raw_os_error(errno)))
}

/// Prints an error or another sentence for the user to the standard error.
pub fn report_error(sentence: impl Display) {
    let _ = writeln!(std::io::stderr(), "syscost: {}", inert::neutralize_text(&sentence.to_string()));
}

/// Ends this process by the code of a run, for a bench whose `main` returns nothing.
#[allow(clippy::exit)]
pub fn end_process(exit: Exit) -> ! {
    std::process::exit(exit.code().into())
}

/// Erases this many lines above the cursor of the terminal.
pub(super) fn erase_lines_above(lines: usize) {
    // A failure shows when the next text is printed.
    let _ = write!(std::io::stdout(), "{}", erasing_text(lines));
}

/// Goes up and erases each line (ECMA-48, CUU and EL). Terminals keep what ED erases from the top of the screen in their history,
/// where an unfinished table would stand above the final one.
fn erasing_text(lines: usize) -> String {
    "\r\u{1b}[1A\u{1b}[2K".repeat(lines)
}

/// Whether the terminal says that it obeys escape sequences.
pub(super) fn obeys_escapes() -> bool {
    std::env::var_os("TERM").is_some_and(|term| term != "dumb")
}

/// The layout for the standard output: the terminal's width, colours and characters. In a pipe the table is plain, and
/// as wide as needed or as `COLUMNS` says; zero columns mean that the width is not known, as terminals say it.
pub fn layout() -> Layout {
    let terminal = std::io::stdout().is_terminal();
    // https://no-color.org; a terminal that is called dumb obeys no escape sequence.
    let plain =
        std::env::var_os("NO_COLOR").is_some() || std::env::var_os("TERM").is_some_and(|term| term == "dumb");
    let color = terminal && !plain;
    let asked = || std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    let width = if terminal { width() } else { asked() };
    Layout { width: width.filter(|&columns| columns > 0), color, ascii: terminal && !is_utf8_locale() }
}

/// Whether the locale is UTF-8: the first of these variables that is set names it (POSIX 8.2). Without any, UTF-8 is
/// assumed, as today's terminals use it.
fn is_utf8_locale() -> bool {
    let set = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().find_map(set);
    locale.is_none_or(|locale| locale.to_lowercase().replace('-', "").contains("utf8"))
}

/// Lines of the terminal; `None` if it does not tell.
pub(super) fn height() -> Option<usize> {
    terminal_size::terminal_size().map(|(_, height)| height.0.into())
}

fn width() -> Option<u16> {
    terminal_size::terminal_size().map(|(width, _)| width.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_erased_line_by_line_so_that_no_terminal_keeps_it() {
        assert_eq!(erasing_text(2), "\r\u{1b}[1A\u{1b}[2K\r\u{1b}[1A\u{1b}[2K");
        assert!(erasing_text(0).is_empty() && !erasing_text(23).contains('J'));
    }
}

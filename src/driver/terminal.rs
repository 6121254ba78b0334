//! All output of a run: tables and sentences, and on a terminal a progress bar with the current case.
#![allow(clippy::print_stdout, clippy::print_stderr)]

use crate::render::table::Layout;
#[cfg(feature = "cli")]
use std::cell::Cell;
use std::fmt::Display;
use std::io::{IsTerminal, Write};

/// Prints to the standard output. An error is ignored: the reader of a pipe may close it early.
pub fn print(text: &str) {
    let _ = writeln!(std::io::stdout(), "{text}");
}

/// Prints an error or another sentence for the user to the standard error.
pub fn complain(sentence: impl Display) {
    let _ = writeln!(std::io::stderr(), "syscost: {sentence}");
}

/// The layout for the standard output: the terminal's width, colours and characters. In a pipe the table is plain, and
/// as wide as needed or as `COLUMNS` says.
pub fn layout() -> Layout {
    let terminal = std::io::stdout().is_terminal();
    let color = terminal && std::env::var_os("NO_COLOR").is_none();
    let asked = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    Layout { width: if terminal { width() } else { asked }, color, ascii: terminal && !is_utf8() }
}

/// Whether the locale is UTF-8: the first of these variables that is set names it (POSIX 8.2). Without any, UTF-8 is
/// assumed, as today's terminals use it.
fn is_utf8() -> bool {
    let set = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().find_map(set);
    locale.is_none_or(|locale| locale.to_lowercase().replace('-', "").contains("utf8"))
}

#[cfg(feature = "cli")]
fn width() -> Option<u16> {
    terminal_size::terminal_size().map(|(width, _)| width.0)
}

#[cfg(not(feature = "cli"))]
fn width() -> Option<u16> {
    Some(80)
}

/// A progress bar on the terminal, drawn by the driver between cases.
pub(super) struct Progress {
    /// Executions that have ended.
    #[cfg(feature = "cli")]
    done: Cell<u64>,
    #[cfg(feature = "cli")]
    bar: indicatif::ProgressBar,
}

#[cfg(feature = "cli")]
impl Progress {
    pub(super) fn over(cases: usize, hidden: bool) -> Self {
        let bar =
            if hidden { indicatif::ProgressBar::hidden() } else { indicatif::ProgressBar::new(cases as u64) };
        let style =
            indicatif::ProgressStyle::with_template("{pos}/{len} {prefix}{msg:.bold} {wide_bar} {eta} left");
        // If a later indicatif refuses the template, its own style remains.
        if let Ok(style) = style {
            bar.set_style(style.progress_chars("━━─"));
        }
        Self { done: Cell::new(0), bar }
    }

    /// Shows which of several runs begins.
    pub(super) fn run(&self, what: &str, number: usize, of: usize) {
        self.bar.set_prefix(format!("{what} {number} of {of}: "));
    }

    pub(super) fn begin(&self, id: &str) {
        self.bar.set_message(id.to_owned());
        self.bar.tick();
    }

    pub(super) fn done(&self) {
        self.done.set(self.done.get() + 1);
        // Cases that do not settle get more executions than were certain.
        self.bar.set_length(self.bar.length().unwrap_or_default().max(self.done.get()));
        self.bar.inc(1);
    }

    /// Prints a line without breaking the bar.
    pub(super) fn print(&self, text: &str) {
        self.bar.suspend(|| print(text));
    }

    pub(super) fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

#[cfg(not(feature = "cli"))]
impl Progress {
    pub(super) fn over(_: usize, _: bool) -> Self {
        Self {}
    }
    pub(super) fn begin(&self, _: &str) {}
    pub(super) fn done(&self) {}
    pub(super) fn print(&self, text: &str) {
        print(text);
    }
    pub(super) fn finish(&self) {}
}

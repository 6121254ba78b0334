//! What a person sees while it runs: on a terminal the case, how far, and how long left; in a pipe nothing.
//! All output of the harness leaves through here.
#![allow(clippy::print_stdout, clippy::print_stderr)]

use crate::render::table::Layout;
use std::io::{IsTerminal, Write};

/// Prints to the standard output. A reader who has closed the pipe has seen enough.
pub(super) fn print(text: &str) {
    let _ = writeln!(std::io::stdout(), "{text}");
}

/// Prints to the standard error.
pub(super) fn say(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}

/// The terminal's width, whether it takes colours, and whether its locale has more than ASCII; in a pipe as wide
/// as needed (or as `COLUMNS` says), and plain.
pub fn layout() -> Layout {
    let terminal = std::io::stdout().is_terminal();
    let color = terminal && std::env::var_os("NO_COLOR").is_none();
    let asked = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    Layout {
        width: if terminal { width() } else { asked },
        color,
        brief: false,
        ascii: terminal && !is_utf8(),
    }
}

/// The first of these variables that is set names the locale (POSIX 8.2). Where none is, what a terminal takes is
/// not known, and today's take UTF-8.
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

/// A bar on the terminal. It is drawn between cases only, by the driver and never by the process that
/// measures.
pub(super) struct Progress {
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
        // The template is a constant that parses; if a later indicatif refuses it, its own style will do.
        if let Ok(style) = style {
            bar.set_style(style.progress_chars("━━─"));
        }
        Self { bar }
    }

    /// Which of several goes over the cases begins.
    pub(super) fn go(&self, number: usize, of: usize) {
        self.bar.set_prefix(format!("process {number} of {of}: "));
    }

    pub(super) fn begin(&self, id: &str) {
        self.bar.set_message(id.to_owned());
        self.bar.tick();
    }

    pub(super) fn done(&self) {
        self.bar.inc(1);
    }

    /// Prints a line of output without tearing the bar.
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

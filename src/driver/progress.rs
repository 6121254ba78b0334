//! The progress report of a run. On a terminal it is one line, written anew: the case, the progress and the time left. Elsewhere
//! it is a line for each group.

use super::terminal::print;
#[cfg(feature = "cli")]
use std::cell::Cell;
use std::io::{IsTerminal, Write};

/// The progress of a run, which the driver writes to the standard error between cases.
pub(super) struct Progress {
    /// Executions that have ended.
    #[cfg(feature = "cli")]
    done: Cell<u64>,
    #[cfg(feature = "cli")]
    bar: indicatif::ProgressBar,
    /// Whether to print one line for each group in place of the bar.
    lines: bool,
}

/// How a run tells its progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Telling {
    /// Not at all.
    Nothing,
    /// By a bar on a terminal.
    Bar,
    /// By a bar on a terminal, by a line a group elsewhere.
    Groups,
}

impl Progress {
    /// Prints the progress of a group's first round as a line, where the output is a log and not a terminal.
    pub(super) fn print_group_line(&self, told: &str) {
        if self.lines {
            // The standard error may be closed.
            let _ = writeln!(std::io::stderr(), "{told}");
        }
    }
}

#[cfg(feature = "cli")]
impl Progress {
    pub(super) fn over(cases: usize, telling: Telling) -> Self {
        let bar = match telling {
            Telling::Nothing => indicatif::ProgressBar::hidden(),
            _ => indicatif::ProgressBar::new(cases as u64),
        };
        let style = indicatif::ProgressStyle::with_template(
            "{prefix}{percent:>3} % {bar:20} {pos}/{len} · {eta} left · {wide_msg}",
        );
        // If a later indicatif refuses the template, its own style remains.
        if let Ok(style) = style {
            bar.set_style(style.progress_chars("━━─"));
        }
        let lines = telling == Telling::Groups && !std::io::stderr().is_terminal();
        Self { done: Cell::new(0), bar, lines }
    }

    /// Shows which of several runs begins.
    pub(super) fn show_run_number(&self, what: &str, number: usize, of: usize) {
        self.bar.set_prefix(format!("{what} {number} of {of}: "));
    }

    /// Shows the case that begins or, between two cases, what the run waits for.
    pub(super) fn begin(&self, what: &str) {
        self.bar.set_message(what.to_owned());
        self.bar.tick();
    }

    pub(super) fn done(&self) {
        self.done.set(self.done.get() + 1);
        // Cases that do not settle get more executions than the minimum for which the bar was made.
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
    pub(super) fn over(_: usize, telling: Telling) -> Self {
        Self { lines: telling == Telling::Groups && !std::io::stderr().is_terminal() }
    }
    pub(super) fn begin(&self, _: &str) {}
    pub(super) fn done(&self) {}
    pub(super) fn print(&self, text: &str) {
        print(text);
    }
    pub(super) fn finish(&self) {}
}

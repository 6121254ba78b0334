//! The progress report of a run. On a terminal it is one line, written anew: the case, the progress and the time left. Elsewhere
//! it is a line for each group.

use super::terminal::{self, print};
use crate::render::summary::ANSWER_LINES;
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
    /// Whether the answers of an unfinished run are shown above the bar.
    live: bool,
    /// Lines of the answers that stand there.
    shown: Cell<usize>,
}

/// Whether to print lines for the groups, and whether to show the answers so far.
fn choose_output(telling: Telling) -> (bool, bool) {
    let is_told = telling == Telling::Groups;
    let terminals = [std::io::stdout().is_terminal(), std::io::stderr().is_terminal()];
    (is_told && !terminals[1], is_told && terminals[0] && terminal::obeys_escapes())
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
    /// Whether the answers of an unfinished run can be shown and replaced: on a terminal that has room for them.
    pub(super) fn has_room_for_screen(&self) -> bool {
        self.live && terminal::height().is_some_and(|lines| lines > ANSWER_LINES)
    }

    /// Prints the progress of a group's first round as a line, where the output is a log and not a terminal.
    pub(super) fn print_group_line(&self, told: &str) {
        if self.lines {
            // The standard error may be closed.
            let _ = writeln!(std::io::stderr(), "{told}");
        }
    }

    fn replace_screen(&self, text: &str) {
        self.erase_screen();
        print(text.trim_end());
        self.shown.set(text.lines().count());
    }

    /// Takes the answers so far away: the final ones follow, or newer ones.
    fn erase_screen(&self) {
        terminal::erase_lines_above(self.shown.take());
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
        let (lines, live) = choose_output(telling);
        Self { done: Cell::new(0), bar, lines, live, shown: Cell::new(0) }
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

    /// Sets the number of executions from which the time left is computed: after the first round it is known what this machine can run.
    pub(super) fn expect_executions(&self, count: usize) {
        self.bar.set_length(self.done.get().max(count as u64));
    }

    /// Prints a line without breaking the bar.
    pub(super) fn print(&self, text: &str) {
        self.bar.suspend(|| print(text));
    }

    /// Shows the answers so far in place of those before.
    pub(super) fn show_screen(&self, text: &str) {
        self.bar.suspend(|| self.replace_screen(text));
    }

    pub(super) fn finish(&self) {
        self.bar.finish_and_clear();
        self.erase_screen();
    }
}

#[cfg(not(feature = "cli"))]
impl Progress {
    pub(super) fn over(_: usize, telling: Telling) -> Self {
        let (lines, live) = choose_output(telling);
        Self { lines, live, shown: Cell::new(0) }
    }
    pub(super) fn show_screen(&self, text: &str) {
        self.replace_screen(text);
    }
    pub(super) fn begin(&self, _: &str) {}
    pub(super) fn done(&self) {}
    pub(super) fn expect_executions(&self, _: usize) {}
    pub(super) fn print(&self, text: &str) {
        print(text);
    }
    pub(super) fn finish(&self) {
        self.erase_screen();
    }
}

//! The progress report of a run. On a terminal it is one line, written anew: the case, the progress and the time left. Elsewhere
//! it is a line for each group.

use super::terminal::{self, print};
use crate::render::summary::ANSWER_LINES;
use crate::render::summary::format_seconds;
use std::cell::Cell;
use std::io::{IsTerminal, Write};
use std::time::Duration;
use std::time::Instant;

/// The progress of a run, which the driver writes to the standard error between cases.
pub(super) struct Progress {
    /// Executions that have ended.
    done: Cell<u64>,
    bar: indicatif::ProgressBar,
    began: Instant,
    /// When the limit of the run is over, from `began` on.
    limit: Cell<Option<Duration>>,
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

/// Seconds until a run ends that has gone on for `elapsed`, by the mean time of its executions so far; no more than its limit leaves.
fn forecast_seconds(elapsed: f64, done: u64, expected: u64, limit: Option<f64>) -> Option<f64> {
    let is_known = done > 0 && done < expected;
    let by_pace = is_known.then(|| elapsed * (expected - done) as f64 / done as f64);
    by_pace.into_iter().chain(limit.map(|left| left.max(0.0))).reduce(f64::min)
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

impl Progress {
    pub(super) fn over(cases: usize, telling: Telling) -> Self {
        let bar = match telling {
            Telling::Nothing => indicatif::ProgressBar::hidden(),
            _ => indicatif::ProgressBar::new(cases as u64),
        };
        let style = indicatif::ProgressStyle::with_template(
            "{prefix}{percent:>3} % {bar:20} {pos}/{len} · {wide_msg}",
        );
        // If a later indicatif refuses the template, its own style remains.
        if let Ok(style) = style {
            bar.set_style(style.progress_chars("━━─"));
        }
        let (lines, live) = choose_output(telling);
        let (began, limit) = (Instant::now(), Cell::new(None));
        Self { done: Cell::new(0), bar, began, limit, lines, live, shown: Cell::new(0) }
    }

    /// Shows which of several runs begins.
    pub(super) fn show_run_number(&self, what: &str, number: usize, of: usize) {
        self.bar.set_prefix(format!("{what} {number} of {of}: "));
    }

    /// Sets what the limit leaves: the forecast is no more.
    pub(super) fn limit_time(&self, left: Option<Duration>) {
        self.limit.set(left.map(|left| self.began.elapsed() + left));
    }

    /// Shows the case that begins or, between two cases, what the run waits for.
    pub(super) fn begin(&self, what: &str) {
        let (elapsed, expected) = (self.began.elapsed(), self.bar.length().unwrap_or_default());
        let limit = self.limit.get().map(|limit| limit.saturating_sub(elapsed).as_secs_f64());
        let left = forecast_seconds(elapsed.as_secs_f64(), self.done.get(), expected, limit);
        let left = left.map(|left| format!("{} left · ", format_seconds(left))).unwrap_or_default();
        self.bar.set_message(left + what);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_left_follows_the_pace_and_never_exceeds_the_limit() {
        // Ten executions of one second each, of 40.
        assert_eq!(forecast_seconds(10.0, 10, 40, None), Some(30.0));
        // Under load each takes four: the forecast grows, and the limit holds.
        assert_eq!(forecast_seconds(40.0, 10, 40, None), Some(120.0));
        assert_eq!(forecast_seconds(12.0, 3, 40, Some(8.0)), Some(8.0));
        assert_eq!(forecast_seconds(21.0, 5, 40, Some(-1.0)), Some(0.0), "the last case still runs");
        // Further executions of unsettled cases: only the limit is known.
        assert_eq!(forecast_seconds(15.0, 40, 40, Some(5.0)), Some(5.0));
        assert_eq!(forecast_seconds(0.0, 0, 40, None), None);
    }
}

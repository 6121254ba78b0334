//! The output of a run: tables, sentences and progress.

#![allow(clippy::print_stdout, clippy::print_stderr)]

use super::arguments::Mode;
use super::process_task::{CaseExecution, ExecutionEnd};
use super::supervision::Supervisor;
use crate::error::Error;
use crate::exit::Exit;
use crate::platform::{inert, output};
use crate::render::summary::{ANSWER_LINES, format_seconds};
use crate::render::table::Layout;
use crate::trial::CaseEnd;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::cell::Cell;
use std::fmt::Display;
use std::io::{self, ErrorKind, IsTerminal, Write};
use std::sync::OnceLock;
use std::time::{Duration, Instant};
use terminal_size::terminal_size;

/// The first error of writing to the standard output, such as a full disk. A closed pipe does not count as an
/// error.
static LOST: OnceLock<io::Error> = OnceLock::new();

/// Prints to the standard output. [`output_error`] returns the first error of these writes.
pub fn print(text: &str) {
    let mut out = std::io::stdout().lock();
    let text = inert::neutralize_output(text, out.is_terminal());
    match writeln!(out, "{text}").and_then(|()| out.flush()) {
        // Only the first error is kept.
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

/// Ends this process with the exit code of a run, for a bench whose `main` returns nothing.
#[allow(clippy::exit)]
pub fn end_process(exit: Exit) -> ! {
    std::process::exit(exit.code().into())
}

/// The escape codes that go up and erase this many lines one by one (ECMA-48, CUU and EL). Terminals keep lines that ED erases
/// from the top of the screen in their history, where an unfinished table would stand above the final one.
fn erasing_text(lines: usize) -> String {
    "\r\u{1b}[1A\u{1b}[2K".repeat(lines)
}

/// Whether `TERM` names a terminal that obeys escape sequences.
pub(super) fn obeys_escapes() -> bool {
    std::env::var_os("TERM").is_some_and(|term| term != "dumb")
}

/// The layout for the standard output: the terminal's width, colours and characters. In a pipe the table is plain, and
/// as wide as needed or as `COLUMNS` says. A width of zero columns means that the width is unknown.
pub fn layout() -> Layout {
    let terminal = std::io::stdout().is_terminal();
    // https://no-color.org; a terminal that is called dumb obeys no escape sequence.
    let plain =
        std::env::var_os("NO_COLOR").is_some() || std::env::var_os("TERM").is_some_and(|term| term == "dumb");
    let color = terminal && !plain;
    let asked = || std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    let width = if terminal { terminal_size().map(|(width, _)| width.0) } else { asked() };
    Layout { width: width.filter(|&columns| columns > 0), color, ascii: terminal && !is_utf8_locale() }
}

/// Whether the locale is UTF-8: the first of these variables that is set names it (POSIX 8.2). Without any, UTF-8 is
/// assumed, as today's terminals use it.
fn is_utf8_locale() -> bool {
    let set = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().find_map(set);
    locale.is_none_or(|locale| locale.to_lowercase().replace('-', "").contains("utf8"))
}

/// A bar over this number of steps on a terminal, nothing in a pipe.
pub fn progress_bar(steps: usize, template: &str) -> ProgressBar {
    let bar = ProgressBar::new(steps as u64);
    // If a later indicatif refuses the template, its own style remains.
    match ProgressStyle::with_template(template) {
        Ok(style) => bar.with_style(style.progress_chars("━━─")),
        Err(_) => bar,
    }
}

// The progress report of a run. On a terminal it is one line, which is overwritten: the case, the progress and the time left.
// Elsewhere it is a line for each group.

/// The progress of a run, which the driver writes to the standard error between cases.
pub(super) struct Progress {
    /// Executions that have ended.
    done: Cell<u64>,
    bar: ProgressBar,
    began: Instant,
    /// The time limit of the run, counted from `began`; `None` without a limit.
    limit: Cell<Option<Duration>>,
    /// Whether to print one line for each group in place of the bar.
    lines: bool,
    /// Whether the answers of an unfinished run are shown above the bar.
    live: bool,
    /// Number of lines of these answers that are on the terminal.
    shown: Cell<usize>,
}

/// Returns whether to print lines for the groups, and whether to show the answers so far.
fn choose_output(telling: Telling) -> (bool, bool) {
    let shows_groups = telling == Telling::Groups;
    let terminals = [std::io::stdout().is_terminal(), std::io::stderr().is_terminal()];
    (shows_groups && !terminals[1], shows_groups && terminals[0] && obeys_escapes())
}

/// Forecast of the seconds until a run ends, by the mean duration of its `done` executions; at most the seconds that `limit` leaves.
fn forecast_seconds(elapsed: f64, done: u64, expected: u64, limit: Option<f64>) -> Option<f64> {
    let is_known = done > 0 && done < expected;
    let by_pace = is_known.then(|| elapsed * (expected - done) as f64 / done as f64);
    by_pace.into_iter().chain(limit.map(|left| left.max(0.0))).reduce(f64::min)
}

/// How a run reports its progress.
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
        self.live && terminal_size().is_some_and(|(_, height)| usize::from(height.0) > ANSWER_LINES)
    }

    /// Prints the progress of a group's first round as a line, where the output is a log and not a terminal.
    pub(super) fn print_group_line(&self, text: &str) {
        if self.lines {
            // The standard error may be closed.
            let _ = writeln!(std::io::stderr(), "{text}");
        }
    }

    /// Erases the answers shown so far, before newer or final ones are printed.
    fn erase_screen(&self) {
        let _ = write!(std::io::stdout(), "{}", erasing_text(self.shown.take()));
    }

    pub(super) fn over(cases: usize, telling: Telling) -> Self {
        let bar = progress_bar(cases, "{prefix}{percent:>3} % {bar:20} {pos}/{len} · {wide_msg}");
        if telling == Telling::Nothing {
            bar.set_draw_target(ProgressDrawTarget::hidden());
        }
        let (lines, live) = choose_output(telling);
        let (began, limit) = (Instant::now(), Cell::new(None));
        Self { done: Cell::new(0), bar, began, limit, lines, live, shown: Cell::new(0) }
    }

    /// Shows which of several runs begins.
    pub(super) fn show_run_number(&self, what: &str, number: usize, of: usize) {
        self.bar.set_prefix(format!("{what} {number} of {of}: "));
    }

    /// Sets the time that the limit leaves. The forecast never exceeds it.
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

    /// Sets the expected number of executions, from which the time left is computed. The first round shows what this machine can run.
    pub(super) fn expect_executions(&self, count: usize) {
        self.bar.set_length(self.done.get().max(count as u64));
    }

    /// Prints a line without breaking the bar.
    pub(super) fn print(&self, text: &str) {
        self.bar.suspend(|| print(text));
    }

    /// Replaces the answers on the terminal by newer ones.
    pub(super) fn show_screen(&self, text: &str) {
        self.bar.suspend(|| {
            self.erase_screen();
            print(text.trim_end());
            self.shown.set(text.lines().count());
        });
    }

    pub(super) fn finish(&self) {
        self.bar.finish_and_clear();
        self.erase_screen();
    }
}

// The line of a case that is only tested.

impl Supervisor<'_> {
    /// Prints how a case ended, if the cases are only tested.
    pub(super) fn print_verdict(&self, case: &CaseExecution) {
        if self.arguments.mode == Mode::Test && !self.arguments.bencher {
            self.progress.print(&format!("{}: {}", case.id, verdict_text(&case.end)));
        }
    }
}

fn verdict_text(end: &ExecutionEnd) -> String {
    match end {
        Ok(m) if m.is_unwitnessed() => {
            format!(
                "unwitnessed, {} claims hold, {} were not asked",
                m.evidence.len(),
                m.unwitnessed_claims().count()
            )
        }
        Ok(m) => format!("ok, {} claims hold", m.evidence.len()),
        Err(CaseEnd::Skipped(sentence)) => format!("skipped: {sentence}"),
        Err(CaseEnd::Disturbed(sentence)) => format!("disturbed: {sentence}"),
        Err(CaseEnd::Contradicted(sentence)) => format!("not settled: {sentence}"),
        Err(CaseEnd::Failed(sentence) | CaseEnd::CutShort(sentence)) => format!("FAILED: {sentence}"),
        Err(CaseEnd::Interrupted) => "interrupted".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_erased_line_by_line_so_that_no_terminal_keeps_it() {
        assert_eq!(erasing_text(2), "\r\u{1b}[1A\u{1b}[2K\r\u{1b}[1A\u{1b}[2K");
        assert!(erasing_text(0).is_empty() && !erasing_text(23).contains('J'));
    }

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

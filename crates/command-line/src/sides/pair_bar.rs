//! The progress bar of `syscost ab`: the case, its pairs, the estimate, the time left.

use crate::page;
use crate::statistic::median;
use indicatif::ProgressBar;
use std::cell::RefCell;
use std::time::Instant;
use syscost_analysis::pair::sequence::Progress;

/// A progress bar on the terminal, nothing in a pipe. The driver draws it between pairs, off the measured CPU.
pub struct Bar {
    bar: ProgressBar,
    cases: usize,
    state: RefCell<State>,
}

struct State {
    begun: Instant,
    case: String,
    done: usize,
}

impl Bar {
    /// A bar over this number of cases.
    pub fn new(cases: usize) -> Self {
        let bar = page::progress_bar(cases, "{pos}/{len} {wide_msg}");
        let state = State { begun: Instant::now(), case: String::new(), done: 0 };
        Self { bar, cases, state: RefCell::new(state) }
    }

    /// Updates the bar after a pair.
    pub fn show_pair(&self, at: &Progress<'_>) {
        let mut state = self.state.borrow_mut();
        if state.case != at.case.id {
            state.done += usize::from(!state.case.is_empty());
            state.case.clone_from(&at.case.id);
            self.bar.set_position(state.done as u64);
        }
        let differences = at.case.valid_log_ratios();
        let estimate = match differences.len() {
            0 => "…".to_owned(),
            _ => format!("{:+.2} %", 100.0 * median(&differences).exp_m1()),
        };
        self.bar.set_message(format!(
            "{}  pair {} of {}  {estimate}  {}",
            at.case.id,
            (differences.len() + 1).min(at.wanted),
            at.wanted,
            time_left(&state, self.cases)
        ));
    }

    /// Shows the case that has its pair on a boot that serves many.
    pub fn show_boot_pair(&self, at: &Progress<'_>) {
        let boots = at.case.pairs.len() + 1;
        self.bar.set_message(format!("open  boot {boots}  {}", at.case.id));
    }

    /// Shows how many cases need no more boots.
    pub fn show_settled(&self, cases: usize) {
        self.bar.set_position(cases as u64);
    }

    /// Removes it.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

/// The time left by the mean time of the finished cases; empty before the first has finished.
fn time_left(state: &State, cases: usize) -> String {
    if state.done == 0 {
        return String::new();
    }
    let each = state.begun.elapsed().as_secs_f64() / state.done as f64;
    let seconds = each * cases.saturating_sub(state.done) as f64;
    format!("about {}:{:02} left", seconds as u64 / 60, seconds as u64 % 60)
}

//! A benchmark's closure as an operation of syscost: it runs batches, and is examined before it is measured.

use crate::bencher::{Bencher, Outcome};
use crate::session::count_entries;
use criterion::measurement::Measurement;
use std::any::{Any, type_name};
use std::time::{Duration, Instant};
use syscost_engine::case::{Case, Claim, OwnTasks, Report, Subject};
use syscost_engine::clock::{Clock, Ticks};
use syscost_engine::{Error, Result};
use syscost_platform::callgrind;
use syscost_platform::process::thread_count;
use syscost_platform::time::OtherThreadsTime;
use syscost_statistic::mean;

/// The time for which the operation runs before it is measured, to show whether other threads take part.
const TRIED: Duration = Duration::from_millis(1);
/// Other threads take part if their CPU time exceeds this share of the elapsed time …
const SHARE: f64 = 0.02;
/// … and this many ns; a thread that only falls asleep uses less.
const LEAST_NS: f64 = 50_000.0;
/// The time after a batch in which work of other threads is noticed. Thread pools spin for some 100 µs after a batch.
const WINDOW: Duration = Duration::from_millis(4);
/// The number of windows whose mean is used, since a busy machine gives a thread no CPU in some windows.
const WINDOWS: usize = 5;
/// The share of the window above which CPU time of other threads after a batch counts as work left behind.
const BEHIND: f64 = 0.1;

/// A benchmark's closure.
pub(crate) struct Operation<'f, M: Measurement> {
    call: &'f mut dyn FnMut(&mut Bencher<'_, M>),
    pub(crate) outcome: Outcome,
    /// Instructions of an iteration without the operation; 0 if unknown.
    pub(crate) empty_loop: f64,
    /// The address of an instruction that each iteration executes exactly once, if one is known.
    pub(crate) once: Option<usize>,
    /// The time of an iteration with its preparation; before any iteration was run, an upper bound of it.
    pub(crate) each: Duration,
    /// Whether other threads take part.
    is_parallel: bool,
    /// CPU time of other threads during all batches, and the time that passed in them, ns.
    others_ns: f64,
    passed_ns: f64,
    /// The time that the closure returned for its own loops, and the time that passed during them, ns.
    custom_ns: (f64, f64),
    pub(crate) unchecked: Vec<String>,
    untraced: Option<String>,
}

impl<'f, M: Measurement + 'static> Operation<'f, M> {
    pub(crate) fn new(call: &'f mut dyn FnMut(&mut Bencher<'_, M>)) -> Self {
        Self {
            call,
            outcome: Outcome::default(),
            empty_loop: 0.0,
            once: None,
            each: Duration::ZERO,
            is_parallel: false,
            others_ns: 0.0,
            passed_ns: 0.0,
            custom_ns: (0.0, 0.0),
            unchecked: Vec::new(),
            untraced: None,
        }
    }

    /// Completes the operation's case: tries the operation, and adds the claims that may be checked. `open_files` is the
    /// number of files that were open before the first benchmark function.
    ///
    /// # Errors
    /// An error where the operation cannot be measured.
    pub(crate) fn describe(
        &mut self,
        mut case: Case,
        clock: &Clock,
        proven: bool,
        open_files: usize,
    ) -> Result<Case> {
        // Under Valgrind a trace would follow Valgrind itself.
        let is_watched = !proven && untraced_reason(open_files).is_none() && !callgrind::is_running();
        let early = is_watched.then(|| self.early_work(clock));
        let idle_ns =
            if thread_count() > 1 { mean(&[(); WINDOWS].map(|()| others_in_window())) } else { 0.0 };
        self.try_until_warm(idle_ns, clock)?;
        // Threads that the bench keeps busy all the time may get no CPU while the operation is tried.
        self.is_parallel |= idle_ns > BEHIND * WINDOW.as_nanos() as f64;
        let parallel = || self.is_parallel.then(|| "its threads would not be counted".to_owned());
        self.untraced = untraced_reason(open_files).or_else(parallel);
        if let (Some(early), None) = (early, &self.untraced) {
            self.judge_work(early, clock)?;
        }
        if self.is_parallel {
            case.own_tasks = OwnTasks::Elsewhere;
            if !proven {
                self.look_behind(idle_ns, clock)?;
            }
        }
        (self.others_ns, self.passed_ns, self.custom_ns) = (0.0, 0.0, (0.0, 0.0));
        // The closure's own set-up, and that of a batched loop, may take any share of the time.
        Ok(case.claim(Claim::KeepsWorking(self.empty_loop)).timed_share(0.0))
    }

    /// Runs growing batches until one takes half a millisecond, and notes whether other threads take part, during or shortly
    /// after it. `idle_ns` is their CPU time in a window without a batch.
    pub(crate) fn try_until_warm(&mut self, idle_ns: f64, clock: &Clock) -> Result<()> {
        const MOST: u64 = 1 << 20;
        let (mut iterations, others) = (1, OtherThreadsTime::now());
        let begun = Instant::now();
        loop {
            let before = begun.elapsed();
            self.run_once(iterations, clock)?;
            self.each = (begun.elapsed() - before) / iterations as u32;
            if begun.elapsed() - before > TRIED / 2 || iterations >= MOST {
                break;
            }
            iterations *= 4;
        }
        let passed_ns = begun.elapsed().as_nanos() as f64;
        if thread_count() > 1 {
            // A busy machine may give the threads no CPU until the last batch has ended.
            std::thread::sleep(WINDOW * WINDOWS as u32);
        }
        let others_ns = OtherThreadsTime::now().least_ns_since(others) as f64 - idle_ns * WINDOWS as f64;
        self.is_parallel = others_ns > (SHARE * passed_ns).max(LEAST_NS);
        Ok(())
    }

    /// Notes whether other threads continue to work after a batch. `idle_ns` is their CPU time in a window without a batch.
    fn look_behind(&mut self, idle_ns: f64, clock: &Clock) -> Result<()> {
        let mut behind = Vec::new();
        for _ in 0..WINDOWS {
            self.run_once(1, clock)?;
            behind.push(others_in_window());
        }
        let more_ns = mean(&behind) - idle_ns;
        if more_ns > BEHIND * WINDOW.as_nanos() as f64 {
            self.unchecked.push(format!(
                "work is left to other threads, which the figure leaves out: behind a batch they ran for {:.0} of {} µs",
                more_ns / 1e3,
                WINDOW.as_micros()
            ));
        }
        Ok(())
    }

    /// Calls the closure for one batch, and returns the time of the batch.
    pub(crate) fn run_once(&mut self, iterations: u64, clock: &Clock) -> Result<Ticks> {
        let mut bencher = Bencher::new(iterations, clock, duration::<M>);
        (self.call)(&mut bencher);
        self.outcome = bencher.outcome;
        if self.outcome.is_foreign {
            return Err(Error::Missing(format!(
                "its iter_custom returns values of {}, which are no `Duration`: only times are measured here",
                type_name::<M>()
            )));
        }
        self.outcome.ticks.ok_or_else(|| {
            Error::Disproved(
                "the benchmark's closure called no method of its Bencher, such as `iter`: nothing was measured".into(),
            )
        })
    }
}

/// The value of this measurement as a time, whatever unit the measurement displays; `None` if it is not a `Duration`.
fn duration<M: Measurement + 'static>(value: &M::Value) -> Option<Duration> {
    let value: &dyn Any = value;
    value.downcast_ref::<Duration>().copied()
}

/// The sentence that a closure with its own loop returns less than half of the elapsed time; otherwise `None`.
fn untold_time_sentence((told_ns, passed_ns): (f64, f64)) -> Option<String> {
    (2.0 * told_ns < passed_ns).then(|| {
        format!(
            "its iter_custom returned {:.1} % of the time that passed in it: the rest is preparation, or a part of the operation",
            100.0 * told_ns / passed_ns
        )
    })
}

/// CPU time of other threads while this one sleeps, ns.
fn others_in_window() -> f64 {
    let before = OtherThreadsTime::now();
    std::thread::sleep(WINDOW);
    OtherThreadsTime::now().least_ns_since(before) as f64
}

/// The reason why a copy of this process may not run the operation; `None` if it may.
fn untraced_reason(open_files: usize) -> Option<String> {
    let threads = thread_count();
    let files = count_entries("/proc/self/fd");
    if threads > 1 {
        return Some(format!("this process has {threads} threads, and its traced copy would have one"));
    }
    (files > open_files).then(|| {
        format!("the bench keeps {} more files open, which its traced copy would share", files - open_files)
    })
}

impl<M: Measurement + 'static> Subject for Operation<'_, M> {
    fn run(&mut self, iterations: u64, clock: &Clock) -> Result<Ticks> {
        // No bracket of the clock is used here, since brackets delimit the timed parts.
        let (others, begun) = (OtherThreadsTime::now(), Instant::now());
        let ticks = self.run_once(iterations, clock)?;
        let passed_ns = begun.elapsed().as_nanos() as f64;
        let others_ns = OtherThreadsTime::now().least_ns_since(others) as f64;
        (self.others_ns, self.passed_ns) = (self.others_ns + others_ns, self.passed_ns + passed_ns);
        if let Some((told, passed)) = self.outcome.custom {
            self.custom_ns.0 += told.as_nanos() as f64;
            self.custom_ns.1 += passed.as_nanos() as f64;
        }
        if !self.is_parallel && others_ns > (SHARE * passed_ns).max(LEAST_NS) {
            return Err(Error::Disturbed(
                "other threads began to take part after the benchmark was tried, and it is measured on one CPU: run again".into(),
            ));
        }
        Ok(ticks)
    }

    fn report(&self) -> Report {
        let times = self.others_ns / self.passed_ns.max(1.0);
        let beside = format!(
            "other threads of the process ran for {times:.2} times the time of the batches: the figure is the time until their \
             answer, on all CPUs"
        );
        let evidence =
            if self.is_parallel { beside } else { "no other thread of the process took part".into() };
        let (mut unchecked, untraced) = (self.unchecked.clone(), self.untraced.clone());
        unchecked.extend(untold_time_sentence(self.custom_ns));
        Report { evidence: vec![evidence], unchecked, untraced, ..Report::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn less_than_half_of_the_elapsed_time_is_reported() {
        assert_eq!(untold_time_sentence((0.0, 0.0)), None, "its loop is timed here");
        assert_eq!(untold_time_sentence((6e6, 1e7)), None);
        assert!(untold_time_sentence((1e6, 1e7)).is_some_and(|said| said.contains("10.0 %")));
    }
}

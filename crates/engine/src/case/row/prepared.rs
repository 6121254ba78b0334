//! Operations that own what they work on, made in the process that measures.

use super::{Case, set_up};
use crate::case::{Claim, Found, Place, Report, Subject};
use crate::clock::{Clock, Ticks};
use crate::error::{Error, Result};
use crate::platform::process;
use std::cell::Cell;
use std::hint::black_box;
use std::pin::{Pin, pin};
use std::rc::Rc;

/// Instructions per iteration of an empty loop: a decrement and a jump.
const EMPTY_LOOP_INSTRUCTIONS: f64 = 2.0;
/// Bytes of a result that one instruction stores.
const STORED_BYTES: usize = 32;

/// The argument of `prepare`: where the case is set up, and the gauges that the operation adds.
pub struct Preparation<'a> {
    /// The scratch directory, the scale and the CPUs.
    pub place: &'a Place,
    gauges: Vec<(Found, Gauge)>,
}

/// A figure that the user defines: the mean of the values noted in a batch, shown with its interval.
#[derive(Clone, Debug, Default)]
pub struct Gauge(Rc<Cell<(f64, u64)>>);

/// The iterations of a batch as one future, which an executor must run to its end.
pub type Batch<'a> = Pin<&'a mut dyn Future<Output = ()>>;

/// An operation and its gauges.
struct Prepared<B> {
    batch: B,
    gauges: Vec<(Found, Gauge)>,
    untraced: Option<String>,
}

impl Case {
    /// An operation that `prepare` makes in the measuring process, where it may own a collection or an open file. An iteration
    /// is one call of it. Its result passes through [`black_box`] and is dropped; both are timed, as in Criterion.
    ///
    /// ```
    /// use syscost_engine::Case;
    /// let case = Case::prepared("look-up", "a look-up in a map of a thousand", |_| {
    ///     let map: std::collections::HashMap<u64, u64> = (0..1_000).map(|n| (n, n * n)).collect();
    ///     let mut keys = (0..1_000).cycle();
    ///     move || keys.next().and_then(|key| map.get(&key).copied())
    /// });
    /// assert_eq!(case.claims.len(), 1, "it keeps working");
    /// ```
    ///
    /// The case claims [`Claim::KeepsWorking`]. A witness runs some iterations in a forked copy of the process, which shares
    /// the positions of open files. If `prepare` starts threads, the case is *unwitnessed*.
    pub fn prepared<F, O>(
        name: impl Into<String>,
        title: impl Into<String>,
        prepare: impl Fn(&mut Preparation<'_>) -> F + 'static,
    ) -> Self
    where
        F: FnMut() -> O + 'static,
        O: 'static,
    {
        let subject = move |place: &Place| {
            Prepared::make(place, |preparation| {
                let mut operation = prepare(preparation);
                move |n: u64, clock: &Clock| Ok(clock.time(|| repeat(&mut operation, n)))
            })
        };
        Self::new(name, title, set_up(subject)).claim(Claim::KeepsWorking(empty_loop_instructions::<O>()))
    }

    /// An asynchronous operation and the executor that runs it, both made by `prepare` in the measuring process. The
    /// executor is a closure that runs a [`Batch`] to its end, such as `move |batch: Batch| runtime.block_on(batch)`. An
    /// iteration is one call of the operation, awaited; the start of the executor is not timed.
    ///
    /// ```
    /// use std::task::{Context, Poll, Waker};
    /// use syscost_engine::{Batch, Case};
    /// let case = Case::asynchronous("ready", "a future that is ready", |_| {
    ///     let poll = |mut batch: Batch| {
    ///         while batch.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending() {}
    ///     };
    ///     (poll, || std::future::ready(1))
    /// });
    /// assert_eq!(case.name, "ready");
    /// ```
    ///
    /// Threads of an executor share the CPU of the measuring thread.
    pub fn asynchronous<E, F, A>(
        name: impl Into<String>,
        title: impl Into<String>,
        prepare: impl Fn(&mut Preparation<'_>) -> (E, F) + 'static,
    ) -> Self
    where
        E: Fn(Batch<'_>) + 'static,
        F: FnMut() -> A + 'static,
        A: Future + 'static,
    {
        let subject = move |place: &Place| {
            Prepared::make(place, |preparation| {
                let (executor, mut operation) = prepare(preparation);
                move |n: u64, clock: &Clock| run_batch(&executor, &mut operation, n, clock)
            })
        };
        Self::new(name, title, set_up(subject)).claim(Claim::KeepsWorking(0.0))
    }
}

/// The loop of a batch. It is not inlined, so that the surrounding code does not change how it is compiled.
#[inline(never)]
fn repeat<O>(operation: &mut impl FnMut() -> O, n: u64) {
    for _ in 0..n {
        black_box(operation());
    }
}

/// A batch as one future, run by the executor. The loop alone is timed.
fn run_batch<A: Future>(
    executor: &impl Fn(Batch<'_>),
    operation: &mut impl FnMut() -> A,
    n: u64,
    clock: &Clock,
) -> Result<Ticks> {
    let mut ticks = None;
    executor(pin!(async {
        let start = clock.start();
        for _ in 0..n {
            black_box(operation().await);
        }
        ticks = Some(clock.stop() - start);
    }));
    let unfinished = || Error::Disproved("the executor returned before the batch had ended".into());
    ticks.ok_or_else(unfinished)
}

/// Instructions of an iteration without an operation that passes a result of this type to [`black_box`].
pub fn empty_loop_instructions<O>() -> f64 {
    EMPTY_LOOP_INSTRUCTIONS + size_of::<O>().div_ceil(STORED_BYTES) as f64
}

impl Preparation<'_> {
    /// Adds a gauge of this name and unit, such as `B`. The unit of a plain number is empty.
    pub fn gauge(&mut self, name: &'static str, unit: &'static str) -> Gauge {
        let gauge = Gauge::default();
        self.gauges.push((Found::new(name, unit, Vec::new()), gauge.clone()));
        gauge
    }
}

impl Gauge {
    /// Notes a value. If the operation calls this, its two additions are timed too.
    #[inline]
    pub fn note(&self, value: f64) {
        let (sum, count) = self.0.get();
        self.0.set((sum + value, count + 1));
    }

    /// The mean of the values that were noted since the last call.
    fn take_mean(&self) -> Option<f64> {
        let (sum, count) = self.0.take();
        (count > 0).then(|| sum / count as f64)
    }
}

impl<B: FnMut(u64, &Clock) -> Result<Ticks>> Prepared<B> {
    /// Prepares an operation, and notes whether that has started threads.
    fn make(place: &Place, prepare: impl FnOnce(&mut Preparation<'_>) -> B) -> Result<Self> {
        let mut preparation = Preparation { place, gauges: Vec::new() };
        let batch = prepare(&mut preparation);
        let threads = process::thread_count();
        let untraced = (threads > 1)
            .then(|| format!("this process has {threads} threads, and its traced copy would have one"));
        Ok(Self { batch, gauges: preparation.gauges, untraced })
    }
}

impl<B: FnMut(u64, &Clock) -> Result<Ticks>> Subject for Prepared<B> {
    fn run(&mut self, iterations: u64, clock: &Clock) -> Result<Ticks> {
        let ticks = (self.batch)(iterations, clock)?;
        for (found, gauge) in &mut self.gauges {
            found.values.extend(gauge.take_mean());
        }
        Ok(ticks)
    }

    fn report(&self) -> Report {
        let found = self.gauges.iter().map(|(found, _)| found.clone()).collect();
        Report { found, untraced: self.untraced.clone(), ..Report::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::{Cpus, Scale};
    use std::task::{Context, Waker};

    fn place() -> Place {
        Place { scratch: std::env::temp_dir(), scale: Scale::Smoke, cpus: Cpus::default() }
    }

    fn set_up(case: &Case) -> Box<dyn Subject> {
        (case.set_up)(&place()).expect("set up")
    }

    #[test]
    fn an_operation_is_made_by_the_set_up_and_owns_what_it_changes() {
        let made = Rc::new(Cell::new(0));
        let counted = Rc::clone(&made);
        let case = Case::prepared("push", "a number pushed", move |_| {
            counted.set(counted.get() + 1);
            let mut numbers = Vec::new();
            let counted = Rc::clone(&counted);
            move || {
                numbers.push(1);
                counted.set(numbers.len());
            }
        });
        assert_eq!(made.get(), 0, "the list of cases prepares nothing");
        let mut subject = set_up(&case);
        assert_eq!(made.get(), 1);
        let clock = Clock::start_up();
        subject.run(3, &clock).expect("a batch");
        subject.run(4, &clock).expect("a second batch");
        assert_eq!(made.get(), 7, "as many calls as iterations, of one operation");
    }

    #[test]
    fn a_gauge_has_the_mean_of_each_batch() {
        let case = Case::prepared("count", "counting", |preparation| {
            let gauge = preparation.gauge("count", "B");
            let mut count = 0.0;
            move || {
                count += 1.0;
                gauge.note(count);
            }
        });
        let (mut subject, clock) = (set_up(&case), Clock::start_up());
        subject.run(3, &clock).expect("a batch");
        subject.run(2, &clock).expect("a second batch");
        assert_eq!(subject.report().found, [Found::new("count", "B", vec![2.0, 4.5])]);
    }

    #[test]
    fn a_gauge_without_notes_is_no_figure() {
        let case = Case::prepared("count", "counting", |preparation| {
            let gauge = preparation.gauge("count", "");
            move || drop(gauge.clone())
        });
        let mut subject = set_up(&case);
        subject.run(3, &Clock::start_up()).expect("a batch");
        assert!(subject.report().found[0].values.is_empty());
    }

    #[test]
    fn an_executor_that_returns_before_the_batch_ends_is_disproved() {
        let once = |mut batch: Batch<'_>| {
            let _ = batch.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        };
        let ready = Case::asynchronous("ready", "a ready future", move |_| (once, || std::future::ready(1)));
        assert!(set_up(&ready).run(5, &Clock::start_up()).is_ok());
        let never =
            Case::asynchronous("never", "a future that waits", move |_| (once, std::future::pending::<()>));
        let error = set_up(&never).run(5, &Clock::start_up()).expect_err("it did not end").to_string();
        assert!(error.contains("before the batch had ended"), "{error}");
    }

    #[test]
    fn over_makes_a_case_for_each_value_and_names_it_by_the_value() {
        let cases =
            Case::over("numbers", [1, 10], |count| Case::prepared("sum", "a sum", move |_| move || count));
        let named: Vec<_> = cases.iter().map(|case| (case.name.as_str(), case.parameter)).collect();
        assert_eq!(named, [("sum/1", Some("numbers")), ("sum/10", Some("numbers"))]);
    }
}

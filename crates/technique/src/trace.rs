//! A trace monitor: spans around routines, controlled by a flag at run time.
//!
//! If the monitor is off, a span only tests the flag. If it is on, a span reads a clock at its beginning and end, counts a
//! call, and adds to two times of its routine: the total ([`Tally::total`]), and the time without inner spans
//! ([`Tally::own`]), from which a profile is made. A span does not allocate.
//!
//! ```
//! use std::time::Instant;
//! use syscost_technique::trace::Monitor;
//!
//! const LOOK_UP: usize = 0;
//! let begun = Instant::now();
//! let monitor = Monitor::new(&["look up"], || begun.elapsed().as_nanos() as u64);
//! let look_up = |name: &str| {
//!     let _span = monitor.open_span(LOOK_UP);
//!     name.len()
//! };
//! look_up("unseen");
//! monitor.set_enabled(true);
//! look_up("seen");
//! assert_eq!(monitor.tally(LOOK_UP).calls, 1);
//! ```
//!
//! The clock is any function. A cycle counter adds little cost to a span. The virtual clock of the thread stops while other
//! tasks have the CPU, and costs two system calls per span. [`Monitor::probe_cost`] measures the cost of a span, so that it
//! can be subtracted ([`super::estimate`]).
//!
//! Source: Kraemer, slides 37 to 50.

use super::estimate::ProbeCost;
use std::cell::Cell;
use std::hint::black_box;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use syscost_statistic::median;

/// A monitor of the routines of a program with one thread.
#[derive(Debug)]
pub struct Monitor<N> {
    on: AtomicBool,
    now: N,
    routines: Vec<Routine>,
    /// Time and number of the spans that have ended directly inside the innermost open one.
    below: Cell<(u64, u64)>,
}

#[derive(Debug, Default)]
struct Routine {
    name: &'static str,
    calls: Cell<u64>,
    total: Cell<u64>,
    own: Cell<u64>,
    inner: Cell<u64>,
    /// The number of its open spans: more than one in a recursion.
    open: Cell<u32>,
}

/// The measurement of one routine. Times are in units of the monitor's clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// The number of its calls.
    pub calls: u64,
    /// Time in the routine and in the routines that it called. Recursive calls count once.
    pub total: u64,
    /// Time in the routine itself.
    pub own: u64,
    /// The number of spans that were opened directly in it.
    pub inner: u64,
}

impl Tally {
    /// Its own time without the cost of the probes. That cost is the inside part of its own spans, and the
    /// outside part of the spans opened in it.
    pub fn own_time_without_probes(&self, probe: ProbeCost) -> f64 {
        let probes = self.calls as f64 * probe.inside + self.inner as f64 * probe.outside;
        (self.own as f64 - probes).max(0.0)
    }
}

impl<N: Fn() -> u64 + Copy> Monitor<N> {
    /// A monitor of these routines with the clock `now`, switched off.
    pub fn new(routines: &[&'static str], now: N) -> Self {
        let routine = |&name| Routine { name, ..Routine::default() };
        let routines = routines.iter().map(routine).collect();
        Self { on: AtomicBool::new(false), now, routines, below: Cell::default() }
    }

    /// Switches the monitor on or off. This has no effect on spans that are open.
    pub fn set_enabled(&self, on: bool) {
        self.on.store(on, Relaxed);
    }

    /// Opens a span of a routine, by its index. It ends when it is dropped.
    ///
    /// # Panics
    /// The monitor is on and there is no such routine.
    #[inline(always)]
    pub fn open_span(&self, routine: usize) -> Span<'_, N> {
        let open = if self.on.load(Relaxed) { Some(self.begin_span(routine)) } else { None };
        Span { open }
    }

    #[inline(always)]
    fn begin_span(&self, routine: usize) -> Open<'_, N> {
        let watched = &self.routines[routine];
        watched.open.set(watched.open.get() + 1);
        let below = self.below.take();
        Open { monitor: self, routine: watched, below, begun: (self.now)() }
    }

    /// The measurement of a routine. Open spans are not included.
    pub fn tally(&self, routine: usize) -> Tally {
        let Routine { calls, total, own, inner, .. } = &self.routines[routine];
        Tally { calls: calls.get(), total: total.get(), own: own.get(), inner: inner.get() }
    }

    /// The names and measurements of all routines.
    pub fn tallies(&self) -> impl Iterator<Item = (&'static str, Tally)> + '_ {
        self.routines.iter().enumerate().map(|(at, routine)| (routine.name, self.tally(at)))
    }

    /// Resets all measurements. Open spans continue.
    pub fn clear(&self) {
        for routine in &self.routines {
            [&routine.calls, &routine.total, &routine.own, &routine.inner]
                .into_iter()
                .for_each(|count| count.set(0));
        }
    }

    /// The cost of an empty span in units of the clock, the median of 25 batches on a new monitor with the same clock. The
    /// effects of a span on caches and on neighbouring instructions in a real program are not included.
    pub fn probe_cost(&self) -> ProbeCost {
        const BATCHES: usize = 25;
        const SPANS: u64 = 1000;
        let around_nothing = Self::new(&["nothing"], self.now);
        around_nothing.set_enabled(true);
        let batch = || {
            around_nothing.clear();
            let begun = (self.now)();
            (0..SPANS).for_each(|_| drop(black_box(around_nothing.open_span(0))));
            let spans = (self.now)() - begun;
            let begun = (self.now)();
            (0..SPANS).for_each(|turn| _ = black_box(turn));
            let turns = (self.now)() - begun;
            let each = |steps: u64| steps as f64 / SPANS as f64;
            (each(around_nothing.tally(0).total), each(spans.saturating_sub(turns)))
        };
        let (inside, whole): (Vec<_>, Vec<_>) = (0..BATCHES).map(|_| batch()).unzip();
        let inside = median(&inside);
        ProbeCost { inside, outside: (median(&whole) - inside).max(0.0) }
    }
}

/// An open span of a routine, from its creation to its drop.
#[must_use = "a span that is dropped at once measures nothing"]
pub struct Span<'a, N: Fn() -> u64 + Copy> {
    /// `None` if the monitor was off.
    open: Option<Open<'a, N>>,
}

struct Open<'a, N> {
    monitor: &'a Monitor<N>,
    routine: &'a Routine,
    /// The value of `below` that the outer span had.
    below: (u64, u64),
    begun: u64,
}

impl<N: Fn() -> u64 + Copy> Drop for Span<'_, N> {
    #[inline(always)]
    fn drop(&mut self) {
        let Some(Open { monitor, routine, below, begun }) = &self.open else { return };
        let took = (monitor.now)().saturating_sub(*begun);
        let (inside, inner) = monitor.below.replace((below.0 + took, below.1 + 1));
        let add = |count: &Cell<u64>, more| count.set(count.get() + more);
        add(&routine.calls, 1);
        add(&routine.own, took.saturating_sub(inside));
        add(&routine.inner, inner);
        routine.open.set(routine.open.get() - 1);
        if routine.open.get() == 0 {
            add(&routine.total, took);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use syscost_platform::{arch, time};

    /// A clock that the test moves.
    fn clock() -> (&'static Cell<u64>, impl Fn() -> u64 + Copy) {
        let time: &Cell<u64> = Box::leak(Box::default());
        (time, || time.get())
    }

    fn pass(time: &Cell<u64>, steps: u64) {
        time.set(time.get() + steps);
    }

    #[test]
    fn time_belongs_to_the_innermost_span_and_to_all_around_it() {
        let (time, now) = clock();
        let monitor = Monitor::new(&["outer", "inner"], now);
        monitor.set_enabled(true);
        {
            let _outer = monitor.open_span(0);
            pass(time, 10);
            for _ in 0..3 {
                let _inner = monitor.open_span(1);
                pass(time, 5);
            }
            pass(time, 1);
        }
        assert_eq!(monitor.tally(0), Tally { calls: 1, total: 26, own: 11, inner: 3 });
        assert_eq!(monitor.tally(1), Tally { calls: 3, total: 15, own: 15, inner: 0 });
    }

    #[test]
    fn the_cost_of_probes_is_subtracted_from_the_routines_that_contain_it() {
        let tally = Tally { calls: 2, total: 200, own: 100, inner: 3 };
        assert_eq!(tally.own_time_without_probes(ProbeCost { inside: 5.0, outside: 10.0 }), 60.0);
        assert_eq!(tally.own_time_without_probes(ProbeCost { inside: 500.0, outside: 0.0 }), 0.0);
    }

    #[test]
    fn recursive_calls_count_their_time_once() {
        let (time, now) = clock();
        let monitor = Monitor::new(&["recursive"], now);
        monitor.set_enabled(true);
        fn descend(monitor: &Monitor<impl Fn() -> u64 + Copy>, time: &Cell<u64>, depth: u32) {
            let _span = monitor.open_span(0);
            pass(time, 2);
            if depth > 0 {
                descend(monitor, time, depth - 1);
            }
        }
        descend(&monitor, time, 4);
        assert_eq!(monitor.tally(0), Tally { calls: 5, total: 10, own: 10, inner: 4 });
    }

    #[test]
    fn a_monitor_that_is_off_records_nothing_and_open_spans_stay_whole() {
        let (time, now) = clock();
        let monitor = Monitor::new(&["a", "b"], now);
        {
            let _unseen = monitor.open_span(0);
            monitor.set_enabled(true);
            let _seen = monitor.open_span(1);
            pass(time, 7);
            monitor.set_enabled(false);
        }
        assert_eq!(monitor.tally(0), Tally::default());
        assert_eq!(monitor.tally(1), Tally { calls: 1, total: 7, own: 7, inner: 0 });
        monitor.clear();
        assert!(monitor.tallies().all(|(_, tally)| tally == Tally::default()));
    }

    #[test]
    fn a_span_allocates_nothing() {
        let monitor = Monitor::new(&["a"], arch::read);
        for on in [false, true] {
            monitor.set_enabled(on);
            let allocated = allocation_counter::measure(|| drop(monitor.open_span(0)));
            assert_eq!(allocated.count_total, 0, "on: {on}");
        }
    }

    /// The time of the work without a span is known: the same work runs without one.
    #[test]
    fn the_cost_of_spans_can_be_subtracted() {
        let monitor = Monitor::new(&["work"], time::thread_cpu_ns);
        let run = || {
            let begun = time::thread_cpu_ns();
            for _ in 0..2_000 {
                let _span = monitor.open_span(0);
                arch::register_loop(black_box(300));
            }
            (time::thread_cpu_ns() - begun) as f64
        };
        let [mut ratio, mut naive] = [0.0; 2];
        // Other processes may disturb a turn, so one good turn of ten suffices.
        for _ in 0..10 {
            let probe = monitor.probe_cost();
            monitor.set_enabled(false);
            let truth = run();
            monitor.set_enabled(true);
            monitor.clear();
            let with = run();
            let corrected = with - 2_000.0 * (probe.inside + probe.outside);
            if ratio == 0.0 || f64::abs(corrected / truth - 1.0) < f64::abs(ratio - 1.0) {
                (ratio, naive) = (corrected / truth, with / truth);
            }
        }
        assert!((ratio - 1.0).abs() < 0.5 * (naive - 1.0).abs(), "naive {naive}, corrected {ratio}");
    }
}

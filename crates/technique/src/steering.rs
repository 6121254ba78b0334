//! A monitor that takes steering requests: while the program runs, a request changes its sampling period, its level of detail
//! or its event.
//!
//! The monitor samples a state at random times on a thread of its own. [`SteeredMonitor::request`] returns once a change
//! has taken effect. It returns the [`Stretch`] that the change ended, so that no figure combines data of two settings. A
//! rejected request changes nothing.
//!
//! ```
//! use std::time::Duration;
//! use syscost_technique::event_register::variable;
//! use syscost_technique::steering::{DetailLevel, Request, Settings, SteeredMonitor};
//!
//! # fn main() -> syscost_technique::Result<()> {
//! let settings = Settings {
//!     period: Duration::from_secs(3600),
//!     detail: DetailLevel::Fraction,
//!     event: variable("queue").at_least(1),
//! };
//! let monitor = SteeredMonitor::start(&["queue"], settings, 7, || [3])?;
//! let coarse = monitor.request(Request::Period(Duration::from_micros(100)))?;
//! monitor.request(Request::Detail(DetailLevel::Samples))?;
//! std::thread::sleep(Duration::from_millis(100));
//! let fine = monitor.end()?;
//! assert_eq!((coarse.samples, fine.samples), (0, fine.kept.len() as u64));
//! # Ok(())
//! # }
//! ```
//!
//! A [`Manager`] steers the monitors of several processes: a request takes effect at one logical time in all of them, or in
//! none of them ([`SteeredMonitor::follow`]). The logical time of a monitor advances with each sample and with each change.
//!
//! Source: Kraemer, slides 13 (how easily the collected information is changed), 41 (steering requests) and 102 (level of
//! detail).

mod steered_group;

pub use steered_group::{Manager, Steered};

use crate::event_register::{Condition, Edge, EventRegister};
use crate::io_overlap::exponential_gaps;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use syscost_platform::error::{Error, Result};
use syscost_statistic::{Interval, proportion_interval};

/// The part of each sample that is kept; the smallest part is first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DetailLevel {
    /// The number of samples that found the event's state: type C.
    Fraction,
    /// Also each sample at which the state was entered: types A and B, except for entries and exits between two samples.
    Entries,
    /// Every sample.
    Samples,
}

/// The settings of a monitor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The mean time between two samples.
    pub period: Duration,
    /// The part of each sample that is kept.
    pub detail: DetailLevel,
    /// The condition whose state is measured.
    pub event: Condition,
}

/// A steering request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// Sets another mean time between two samples.
    Period(Duration),
    /// Sets another level of detail.
    Detail(DetailLevel),
    /// Sets another event. The state counts as entered if the first sample finds the system in it.
    Event(Condition),
}

/// A sample that was kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Observation<const N: usize> {
    /// Time since the start of the monitor.
    pub at: Duration,
    /// The values of the variables.
    pub state: [u64; N],
    /// The change since the previous sample; `None` without one.
    pub edge: Option<Edge>,
}

/// The data that was collected under one setting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stretch<const N: usize> {
    /// The setting.
    pub settings: Settings,
    /// The logical time at which the setting took effect. The samples of the stretch have later logical times.
    pub since: u64,
    /// The number of samples.
    pub samples: u64,
    /// The number of samples that found the system in the event's state.
    pub in_state: u64,
    /// The samples that are kept at its level of detail. Their number has no limit.
    pub kept: Vec<Observation<N>>,
}

impl<const N: usize> Stretch<N> {
    fn new(settings: Settings, since: u64) -> Self {
        Self { settings, since, samples: 0, in_state: 0, kept: Vec::new() }
    }

    /// The fraction of time in the state, with its binomial interval of 95 %.
    pub fn fraction_in_state(&self) -> Interval {
        proportion_interval(self.in_state, self.samples)
    }
}

/// A monitor of N variables on a thread of its own.
pub struct SteeredMonitor<const N: usize> {
    collector: Arc<Mutex<Collector<N>>>,
    /// Wakes the thread after a change. The thread ends when this sender is dropped.
    changes: Sender<()>,
    thread: JoinHandle<()>,
}

impl<const N: usize> SteeredMonitor<N> {
    /// Starts a thread that samples `look`, which returns the values of `variables` in this order.
    ///
    /// # Errors
    /// [`Error::Usage`] in the cases of [`SteeredMonitor::request`]; [`Error::Kernel`] where no thread can be started.
    pub fn start(
        variables: &[&'static str; N],
        settings: Settings,
        seed: u64,
        look: impl FnMut() -> [u64; N] + Send + 'static,
    ) -> Result<Self> {
        let collector = Arc::new(Mutex::new(Collector::new(*variables, settings)?));
        let (changes, changed) = channel();
        let its = Arc::clone(&collector);
        let thread = std::thread::Builder::new().spawn(move || collect(&its, &changed, seed, look));
        let refused = |cause| Error::Kernel { call: "starting a thread for the monitor".into(), cause };
        Ok(Self { collector, changes, thread: thread.map_err(refused)? })
    }

    /// Makes a change, and returns the data collected before it.
    ///
    /// # Errors
    /// [`Error::Usage`] if the period is 0, or if the event uses an unknown variable;
    /// [`Error::Disproved`] if the monitor has ended, since its `look` panicked.
    pub fn request(&self, request: Request) -> Result<Stretch<N>> {
        let mut collector = self.lock()?;
        let time = collector.time + 1;
        let ended = collector.apply(&request, time)?;
        self.changes.send(()).map_err(|_| ended_early())?;
        Ok(ended)
    }

    /// Ends the monitor, and returns the data collected since the last change.
    ///
    /// # Errors
    /// [`Error::Disproved`] if the monitor has ended before.
    pub fn end(self) -> Result<Stretch<N>> {
        drop(self.changes);
        self.thread.join().map_err(|_| ended_early())?;
        Ok(self.collector.lock().map_err(|_| ended_early())?.next_stretch())
    }

    /// Locks the collector. No sample is taken while the lock is held.
    fn lock(&self) -> Result<MutexGuard<'_, Collector<N>>> {
        self.collector.lock().map_err(|_| ended_early())
    }
}

fn ended_early() -> Error {
    Error::Disproved("the monitor has ended: the function that looks at the state panicked".into())
}

/// Samples until the channel `changes` is closed.
fn collect<const N: usize>(
    collector: &Mutex<Collector<N>>,
    changes: &Receiver<()>,
    seed: u64,
    mut look: impl FnMut() -> [u64; N],
) {
    let begun = Instant::now();
    let (mut period, mut gap) = (Duration::ZERO, exponential_gaps(Duration::ZERO, seed));
    // If `look` panics, the lock is poisoned, and every request fails.
    while let Ok(held) = collector.lock() {
        if period != held.stretch.settings.period {
            period = held.stretch.settings.period;
            gap = exponential_gaps(period, seed);
        }
        drop(held);
        // The gaps are exponential and thus memoryless, so a gap that a change interrupts may be drawn again.
        match changes.recv_timeout(Duration::from_nanos(gap())) {
            Ok(()) => {}
            Err(RecvTimeoutError::Timeout) => {
                let Ok(mut held) = collector.lock() else { return };
                let state = look();
                held.observe(begun.elapsed(), state);
            }
            Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}

/// The data and settings of a monitor, without its thread.
struct Collector<const N: usize> {
    variables: [&'static str; N],
    register: EventRegister,
    is_inside: bool,
    /// The logical time of the last sample or change.
    time: u64,
    /// The logical time for which the last change was requested; 0 before the first change.
    changed: u64,
    stretch: Stretch<N>,
}

impl<const N: usize> Collector<N> {
    fn new(variables: [&'static str; N], settings: Settings) -> Result<Self> {
        check_period(settings.period)?;
        let register = EventRegister::new(&variables, settings.event.clone(), Duration::ZERO)?;
        let stretch = Stretch::new(settings, 0);
        Ok(Self { variables, register, is_inside: false, time: 0, changed: 0, stretch })
    }

    /// Checks a request without applying it.
    fn check(&self, request: &Request) -> Result<()> {
        match request {
            Request::Period(period) => check_period(*period),
            Request::Detail(_) => Ok(()),
            Request::Event(event) => self.register_of(event).map(drop),
        }
    }

    fn register_of(&self, event: &Condition) -> Result<EventRegister> {
        EventRegister::new(&self.variables, event.clone(), Duration::ZERO)
    }

    /// Changes the settings at a logical time, or at the next one if that has passed. Returns the stretch that the change
    /// ends.
    fn apply(&mut self, request: &Request, time: u64) -> Result<Stretch<N>> {
        self.check(request)?;
        (self.time, self.changed) = (time.max(self.time + 1), time);
        let ended = self.next_stretch();
        let settings = &mut self.stretch.settings;
        match request {
            Request::Period(period) => settings.period = *period,
            Request::Detail(detail) => settings.detail = *detail,
            Request::Event(event) => {
                settings.event = event.clone();
                self.register = self.register_of(event)?;
                self.is_inside = false;
            }
        }
        Ok(ended)
    }

    /// Begins a stretch with the same settings, and returns the previous stretch.
    fn next_stretch(&mut self) -> Stretch<N> {
        let next = Stretch::new(self.stretch.settings.clone(), self.time);
        std::mem::replace(&mut self.stretch, next)
    }

    fn observe(&mut self, at: Duration, state: [u64; N]) {
        self.time += 1;
        let edge = self.register.observe(at, &state);
        self.is_inside = edge.map_or(self.is_inside, |edge| edge == Edge::Entered);
        let stretch = &mut self.stretch;
        stretch.samples += 1;
        stretch.in_state += u64::from(self.is_inside);
        let is_kept = match stretch.settings.detail {
            DetailLevel::Fraction => false,
            DetailLevel::Entries => edge == Some(Edge::Entered),
            DetailLevel::Samples => true,
        };
        if is_kept {
            stretch.kept.push(Observation { at, state, edge });
        }
    }
}

fn check_period(period: Duration) -> Result<()> {
    if period.is_zero() {
        return Err(Error::Usage("the period of a monitor is 0: expected a time above 0".into()));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event_register::variable;

    fn settings() -> Settings {
        let event = variable("busy").equals(1);
        Settings { period: Duration::from_secs(3600), detail: DetailLevel::Fraction, event }
    }

    fn collector() -> Collector<2> {
        Collector::new(["busy", "queue"], settings()).expect("its variables are there")
    }

    /// Observes five samples: three with the system busy, two with a queue.
    fn observe_five(collector: &mut Collector<2>) {
        for (at, state) in [[1, 0], [1, 5], [0, 6], [0, 0], [1, 0]].into_iter().enumerate() {
            collector.observe(Duration::from_secs(at as u64), state);
        }
    }

    #[test]
    fn each_level_of_detail_keeps_its_samples() {
        let mut collector = collector();
        let mut kept = Vec::new();
        for level in [DetailLevel::Fraction, DetailLevel::Entries, DetailLevel::Samples] {
            collector.apply(&Request::Detail(level), 0).expect("a level");
            // The system leaves the state between two levels of detail.
            collector.observe(Duration::ZERO, [0, 0]);
            observe_five(&mut collector);
            assert_eq!((collector.stretch.samples, collector.stretch.in_state), (6, 3));
            kept.push(collector.stretch.kept.len());
        }
        assert_eq!(kept, [0, 2, 6]);
    }

    #[test]
    fn a_new_event_is_measured_from_its_request_on_in_a_stretch_of_its_own() {
        let mut collector = collector();
        observe_five(&mut collector);
        let event = variable("queue").at_least(5);
        let before = collector.apply(&Request::Event(event.clone()), 9).expect("a variable");
        assert_eq!((before.samples, before.in_state, before.since), (5, 3, 0));
        assert_eq!((collector.time, collector.stretch.since), (9, 9), "it took effect at that time");
        assert_eq!((before.settings.event, &collector.stretch.settings.event), (settings().event, &event));
        observe_five(&mut collector);
        assert_eq!((collector.stretch.samples, collector.stretch.in_state), (5, 2));
    }

    #[test]
    fn a_rejected_request_changes_nothing() {
        let mut collector = collector();
        observe_five(&mut collector);
        let before = collector.stretch.clone();
        let disk = collector.apply(&Request::Event(variable("disk").equals(1)), 7).expect_err("no disk");
        assert!(disk.to_string().contains("`disk`") && disk.to_string().contains("busy, queue"), "{disk}");
        assert!(collector.apply(&Request::Period(Duration::ZERO), 7).is_err());
        assert_eq!(collector.stretch, before);
        assert!(Collector::new(["busy"], Settings { period: Duration::ZERO, ..settings() }).is_err());
    }

    /// At one sample per hour no sample is taken. A monitor that ignored the request would have none after it either.
    #[test]
    fn a_running_monitor_applies_a_request() {
        let (looks, looked) = channel();
        let look = move || {
            let _ = looks.send(());
            [1, 0]
        };
        let monitor = SteeredMonitor::start(&["busy", "queue"], settings(), 3, look).expect("a thread");
        let coarse = monitor.request(Request::Period(Duration::from_millis(1))).expect("taken");
        assert_eq!(coarse.settings, settings());
        let fast = monitor.request(Request::Detail(DetailLevel::Samples)).expect("taken");
        assert_eq!(fast.settings.period, Duration::from_millis(1));
        for _ in 0..10 {
            looked
                .recv_timeout(Duration::from_secs(30))
                .expect("the request for a shorter period is ignored");
        }
        let detailed = monitor.request(Request::Event(variable("queue").at_least(1))).expect("taken");
        assert_eq!((detailed.kept.len() as u64, detailed.in_state), (detailed.samples, detailed.samples));
        looked.recv_timeout(Duration::from_secs(30)).expect("it goes on");
        let last = monitor.end().expect("it has not ended");
        assert_eq!((last.settings.detail, last.in_state), (DetailLevel::Samples, 0));
    }

    #[test]
    fn a_monitor_that_has_panicked_returns_an_error() {
        let brief = Settings { period: Duration::from_nanos(1), ..settings() };
        let look = || -> [u64; 2] { std::panic::resume_unwind(Box::new(())) };
        let monitor = SteeredMonitor::start(&["busy", "queue"], brief, 3, look).expect("a thread");
        while monitor.request(Request::Detail(DetailLevel::Fraction)).is_ok() {}
        assert!(monitor.end().is_err());
    }
}

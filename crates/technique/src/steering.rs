//! A monitor that takes steering requests: while the program runs it can be asked to change its sampling period, its
//! level of detail or its event.
//!
//! The monitor samples a state at random times on a thread of its own. [`SteeredMonitor::request`] returns once a change
//! has taken effect, with the [`Stretch`] that ended by it, so that no figure is made of data under two settings. What is
//! rejected changes nothing.
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
//! Source: Kraemer, slides 13 (how easily the collected information is changed), 41 (steering requests) and 102 (level of
//! detail).

use crate::event_register::{Condition, Edge, EventRegister};
use crate::io_overlap::exponential_gaps;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use syscost_platform::error::{Error, Result};
use syscost_statistic::{Interval, proportion_interval};

/// How much of each sample is kept, the least first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DetailLevel {
    /// The number of samples in the state of the event: type C.
    Fraction,
    /// Also each sample that found the state entered: types A and B, but for what falls between two samples.
    Entries,
    /// Each sample.
    Samples,
}

/// What a monitor collects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The mean time between two samples.
    pub period: Duration,
    /// How much of each sample is kept.
    pub detail: DetailLevel,
    /// The condition whose state is measured.
    pub event: Condition,
}

/// A steering request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// Another mean time between two samples.
    Period(Duration),
    /// Another level of detail.
    Detail(DetailLevel),
    /// Another event. The state counts as entered if the first sample finds it so.
    Event(Condition),
}

/// A sample that was kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Observation<const N: usize> {
    /// Time since the start of the monitor.
    pub at: Duration,
    /// The values of the variables.
    pub state: [u64; N],
    /// The change since the sample before, if there was one.
    pub edge: Option<Edge>,
}

/// What was collected under one setting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stretch<const N: usize> {
    /// The setting.
    pub settings: Settings,
    /// Samples.
    pub samples: u64,
    /// Samples that found the system in the state of the event.
    pub in_state: u64,
    /// The observations of its level of detail. They grow without a limit.
    pub kept: Vec<Observation<N>>,
}

impl<const N: usize> Stretch<N> {
    fn new(settings: Settings) -> Self {
        Self { settings, samples: 0, in_state: 0, kept: Vec::new() }
    }

    /// The fraction of time in the state, with its binomial interval of 95 %.
    pub fn fraction_in_state(&self) -> Interval {
        proportion_interval(self.in_state, self.samples)
    }
}

/// A request, and where its answer goes.
type Asked<const N: usize> = (Request, Sender<Result<Stretch<N>>>);

/// A monitor of N variables on a thread of its own.
pub struct SteeredMonitor<const N: usize> {
    requests: Sender<Asked<N>>,
    thread: JoinHandle<Stretch<N>>,
}

impl<const N: usize> SteeredMonitor<N> {
    /// Starts sampling what `look` returns: the values of these variables, in this order.
    ///
    /// # Errors
    /// [`Error::Usage`] as of [`SteeredMonitor::request`]; [`Error::Kernel`] without a thread.
    pub fn start(
        variables: &[&'static str; N],
        settings: Settings,
        seed: u64,
        look: impl FnMut() -> [u64; N] + Send + 'static,
    ) -> Result<Self> {
        let collector = Collector::new(*variables, settings)?;
        let (requests, asked) = channel();
        let thread = std::thread::Builder::new().spawn(move || collect(collector, &asked, seed, look));
        let refused = |cause| Error::Kernel { call: "starting a thread for the monitor".into(), cause };
        Ok(Self { requests, thread: thread.map_err(refused)? })
    }

    /// Asks for a change, waits until it has taken effect, and returns what was collected before it.
    ///
    /// # Errors
    /// [`Error::Usage`] if the period is 0, or the event is of a variable that there is not;
    /// [`Error::Disproved`] if the monitor has ended, since its `look` panicked.
    pub fn request(&self, request: Request) -> Result<Stretch<N>> {
        let (answer, answered) = channel();
        // If the monitor has ended, no answer comes.
        let _ = self.requests.send((request, answer));
        answered.recv().map_err(|_| ended_early())?
    }

    /// Ends the monitor, and returns what was collected since the last change.
    ///
    /// # Errors
    /// [`Error::Disproved`] if it has ended before.
    pub fn end(self) -> Result<Stretch<N>> {
        drop(self.requests);
        self.thread.join().map_err(|_| ended_early())
    }
}

fn ended_early() -> Error {
    Error::Disproved("the monitor has ended: the function that looks at the state panicked".into())
}

/// Samples until the requests are closed.
fn collect<const N: usize>(
    mut collector: Collector<N>,
    requests: &Receiver<Asked<N>>,
    seed: u64,
    mut look: impl FnMut() -> [u64; N],
) -> Stretch<N> {
    let begun = Instant::now();
    let mut period = collector.stretch.settings.period;
    let mut gap = exponential_gaps(period, seed);
    loop {
        // The gaps have no memory: one that a request interrupts may be drawn again.
        match requests.recv_timeout(Duration::from_nanos(gap())) {
            Ok((request, answer)) => {
                let _ = answer.send(collector.apply(request));
                if period != collector.stretch.settings.period {
                    period = collector.stretch.settings.period;
                    gap = exponential_gaps(period, seed);
                }
            }
            Err(RecvTimeoutError::Timeout) => collector.observe(begun.elapsed(), look()),
            Err(RecvTimeoutError::Disconnected) => return collector.stretch,
        }
    }
}

/// The data of a monitor, without its thread.
struct Collector<const N: usize> {
    variables: [&'static str; N],
    register: EventRegister,
    is_inside: bool,
    stretch: Stretch<N>,
}

impl<const N: usize> Collector<N> {
    fn new(variables: [&'static str; N], settings: Settings) -> Result<Self> {
        check_period(settings.period)?;
        let register = EventRegister::new(&variables, settings.event.clone(), Duration::ZERO)?;
        Ok(Self { variables, register, is_inside: false, stretch: Stretch::new(settings) })
    }

    /// Changes the settings, and returns the stretch that ends by it.
    fn apply(&mut self, request: Request) -> Result<Stretch<N>> {
        let mut settings = self.stretch.settings.clone();
        match request {
            Request::Period(period) => {
                check_period(period)?;
                settings.period = period;
            }
            Request::Detail(detail) => settings.detail = detail,
            Request::Event(event) => {
                self.register = EventRegister::new(&self.variables, event.clone(), Duration::ZERO)?;
                self.is_inside = false;
                settings.event = event;
            }
        }
        Ok(std::mem::replace(&mut self.stretch, Stretch::new(settings)))
    }

    fn observe(&mut self, at: Duration, state: [u64; N]) {
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

    /// Three samples with the system busy, and two with a queue.
    fn observe_five(collector: &mut Collector<2>) {
        for (at, state) in [[1, 0], [1, 5], [0, 6], [0, 0], [1, 0]].into_iter().enumerate() {
            collector.observe(Duration::from_secs(at as u64), state);
        }
    }

    #[test]
    fn each_level_of_detail_keeps_what_it_says() {
        let mut collector = collector();
        let mut kept = Vec::new();
        for level in [DetailLevel::Fraction, DetailLevel::Entries, DetailLevel::Samples] {
            collector.apply(Request::Detail(level)).expect("a level");
            // The state is left between two levels.
            collector.observe(Duration::ZERO, [0, 0]);
            observe_five(&mut collector);
            assert_eq!((collector.stretch.samples, collector.stretch.in_state), (6, 3));
            kept.push(collector.stretch.kept.len());
        }
        assert_eq!(kept, [0, 2, 6]);
    }

    #[test]
    fn another_event_is_measured_from_the_request_on_and_apart() {
        let mut collector = collector();
        observe_five(&mut collector);
        let event = variable("queue").at_least(5);
        let before = collector.apply(Request::Event(event.clone())).expect("a variable");
        assert_eq!((before.samples, before.in_state), (5, 3));
        assert_eq!((before.settings.event, &collector.stretch.settings.event), (settings().event, &event));
        observe_five(&mut collector);
        assert_eq!((collector.stretch.samples, collector.stretch.in_state), (5, 2));
    }

    #[test]
    fn what_is_rejected_changes_nothing() {
        let mut collector = collector();
        observe_five(&mut collector);
        let before = collector.stretch.clone();
        let disk = collector.apply(Request::Event(variable("disk").equals(1))).expect_err("no disk");
        assert!(disk.to_string().contains("`disk`") && disk.to_string().contains("busy, queue"), "{disk}");
        assert!(collector.apply(Request::Period(Duration::ZERO)).is_err());
        assert_eq!(collector.stretch, before);
        assert!(Collector::new(["busy"], Settings { period: Duration::ZERO, ..settings() }).is_err());
    }

    /// At one sample an hour none comes; if the request were ignored, none would come after it either.
    #[test]
    fn a_running_monitor_does_what_it_is_asked_for() {
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
    fn a_monitor_that_has_panicked_says_so() {
        let brief = Settings { period: Duration::from_nanos(1), ..settings() };
        let look = || -> [u64; 2] { std::panic::resume_unwind(Box::new(())) };
        let monitor = SteeredMonitor::start(&["busy", "queue"], brief, 3, look).expect("a thread");
        while monitor.request(Request::Detail(DetailLevel::Fraction)).is_ok() {}
        assert!(monitor.end().is_err());
    }
}

//! Requests at a given rate, as schbench sends them: the 99th percentile of the time until they are answered, and the rate from
//! which on that percentile is too long.

use super::request::{MULTIPLICATIONS, Work, await_word, now_ns, time_alone_ns};
use crate::kit::contract::*;
use crate::kit::kernel_call::check_granted;
use crate::kit::placement::roaming;
use crate::platform::arch;
use crate::platform::futex::{Reach, wait, wake, wake_all};
use crate::platform::partner::{Class, Kind, Partner};
use crate::platform::sleep::{Nanosleep, Sleep};
use crate::statistic::{Random, percentile};
use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize};
use std::time::Duration;

/// Loads, percent of what the workers can do, and whether a default run measures them.
pub(super) const LOADS: [(u32, bool); 6] =
    [(25, false), (50, false), (75, true), (90, false), (100, false), (125, false)];
/// Requests in a round for each worker: one request in a hundred is late if each CPU falls behind once.
const REQUESTS: usize = 100;
/// The most workers. One sender can keep up with this number.
const MOST_WORKERS: usize = 16;
/// A request must be answered in this time, ns: ten times its work.
const BOUND_NS: f64 = 1e6;

pub(super) const CURVE: Curve =
    Curve::new("wake_up/load-p99/", "99th percentile", Axis::Count("% of the CPUs' work"))
        .with_study(Study::Bound(BOUND_NS));

pub(super) fn load_case((percent, is_default): (u32, bool)) -> Case {
    let title = format!("99th percentile of requests of 0.1 ms that keep the CPUs busy to {percent} %");
    let set_up = load_set_up(percent, arch::multiply_chain);
    let case = Case::new(format!("load-p99/{percent}"), title, set_up);
    let case = if is_default { case } else { case.need(FULL_SCALE) };
    let work = 3.0 * MULTIPLICATIONS as f64;
    let ideal = ideal_p99_ns(&arrivals_ns(2 * REQUESTS, work / 2.0, percent), work, 2);
    let why =
        "waiting for two servers at random arrivals; a timer's slack, a CPU chosen, an interrupt, a switch";
    case.need(PINNED)
        .one_by_one()
        .own_tasks(OwnTasks::Elsewhere)
        .claim(Claim::Checked(
            "every request was answered once, and took the time that its work takes at least",
        ))
        .predict(ideal, 200_000.0, why)
}

/// The set-up of requests that keep the CPUs busy to `percent`. Each is answered after `work`.
pub fn load_set_up(percent: u32, work: Work) -> SetUp {
    set_up(move |place| Load::start(place, percent, work))
}

/// The times at which requests are due, ns after the start of a round. They are random and independent, and the same in every round
/// and run. All CPUs together serve one request in `work_ns`.
fn arrivals_ns(requests: usize, work_ns: f64, percent: u32) -> Vec<u64> {
    let (mut random, mut due) = (Random::new(1), 0.0);
    let mean = work_ns * 100.0 / f64::from(percent);
    let mut next = || {
        due -= mean * random.unit().ln();
        due as u64
    };
    (0..requests).map(|_| next()).collect()
}

/// The 99th percentile of the latency, ns, if each request began as soon as it is due and a worker is free.
fn ideal_p99_ns(due: &[u64], work_ns: f64, workers: usize) -> f64 {
    let mut free = vec![0.0_f64; workers];
    let mut latency = |due: f64| {
        let first = free.iter_mut().min_by(|a, b| a.total_cmp(b)).expect("one worker at least");
        *first = first.max(due) + work_ns;
        *first - due
    };
    percentile(&due.iter().map(|&due| latency(due as f64)).collect::<Vec<_>>(), 99.0)
}

/// The times of a request, ns: when a worker took it, and when its work was done.
#[derive(Default)]
struct Slot {
    taken_ns: AtomicU64,
    done_ns: AtomicU64,
}

/// The state that the sender and the workers share.
struct Counter {
    slots: Vec<Slot>,
    /// The numbers of requests in this round that were sent, that a worker took, and that are done.
    sent: AtomicUsize,
    taken: AtomicUsize,
    done: AtomicU32,
    /// The futex word on which workers sleep. It changes with each request.
    wake_word: AtomicU32,
}

impl Counter {
    fn begin_round(&self) {
        self.sent.store(0, SeqCst);
        self.done.store(0, SeqCst);
        self.taken.store(0, SeqCst);
    }

    /// Sends one request, and wakes a worker if one sleeps.
    fn send(&self) {
        self.sent.fetch_add(1, SeqCst);
        self.wake_word.fetch_add(1, SeqCst);
        wake(&self.wake_word, Reach::Private);
    }

    /// Takes the oldest request that no worker has taken; `None` if there is none.
    fn take(&self) -> Option<&Slot> {
        let next = |taken| (taken < self.sent.load(SeqCst)).then_some(taken + 1);
        self.taken.fetch_update(SeqCst, SeqCst, next).ok().map(|number| &self.slots[number])
    }

    /// A worker's step: one request, or a sleep until one is sent.
    fn work_or_wait(&self, work: Work) {
        let wake_word = self.wake_word.load(SeqCst);
        let Some(slot) = self.take() else {
            wait(&self.wake_word, wake_word, Reach::Private);
            return;
        };
        slot.taken_ns.store(now_ns(), SeqCst);
        black_box(work(black_box(MULTIPLICATIONS)));
        slot.done_ns.store(now_ns(), SeqCst);
        if self.done.fetch_add(1, SeqCst) as usize + 1 == self.slots.len() {
            wake(&self.done, Reach::Private);
        }
    }
}

struct Load {
    /// They move between CPUs on purpose, so they are not reported as partners, which must stay on their CPUs.
    workers: Vec<Partner>,
    counter: Arc<Counter>,
    due_ns: Vec<u64>,
    /// The time of the work on an undisturbed CPU, ns.
    alone_ns: f64,
}

impl Load {
    fn start(place: &Place, percent: u32, work: Work) -> Result<Self> {
        let here = place.cpus.here.ok_or_else(|| Error::Missing("there is no CPU of its own".into()))?;
        let count = (place.cpus.others.len() + 1).min(MOST_WORKERS);
        let alone_ns = time_alone_ns() as f64;
        let due_ns = arrivals_ns(REQUESTS * count, alone_ns / count as f64, percent);
        let slots = due_ns.iter().map(|_| Slot::default()).collect();
        let (sent, taken, done, wake_word) = Default::default();
        let counter = Arc::new(Counter { slots, sent, taken, done, wake_word });
        let workers = (0..count).map(|_| start_worker(&counter, here, work)).collect::<Result<_>>()?;
        Ok(Self { workers, counter, due_ns, alone_ns })
    }

    /// Sends a round of requests, each when it is due. Returns the 99th percentile of the times until they were done, ns.
    fn round_p99_ns(&mut self) -> Result<f64> {
        self.counter.begin_round();
        let began = now_ns();
        for due in &self.due_ns {
            check_granted("a sleep", Nanosleep.sleep_until(Duration::from_nanos(began + due)))?;
            self.counter.send();
        }
        let all = self.due_ns.len();
        let late = |done| format!("{done} of {all} requests are answered after 5 s");
        await_word(&self.counter.done, all as u32, now_ns(), &mut self.workers, late)?;
        let mut latencies = Vec::with_capacity(self.due_ns.len());
        for (slot, due) in self.counter.slots.iter().zip(&self.due_ns) {
            let (taken, done) = (slot.taken_ns.load(SeqCst), slot.done_ns.load(SeqCst));
            let (worked, due) = (done.saturating_sub(taken), began + due);
            if taken < due {
                let early = due - taken;
                return Err(Error::Contradicted(format!(
                    "a worker had a request {early} ns before it was due"
                )));
            }
            if (worked as f64) < self.alone_ns / 2.0 {
                return Err(Error::Contradicted(format!(
                    "a request was answered after {worked} ns of work, and {:.0} ns are the least for it",
                    self.alone_ns / 2.0
                )));
            }
            latencies.push((done - due) as f64);
        }
        Ok(percentile(&latencies, 99.0))
    }
}

/// Starts a worker that may run on every CPU.
fn start_worker(counter: &Arc<Counter>, here: usize, work: Work) -> Result<Partner> {
    let (theirs, nudged) = (Arc::clone(counter), Arc::clone(counter));
    let step = roaming(move || {
        theirs.work_or_wait(work);
        0
    });
    let nudge = move || {
        nudged.wake_word.fetch_add(1, SeqCst);
        wake_all(&nudged.wake_word, Reach::Private);
    };
    Partner::start(Kind::Thread, (here, Class::Ordinary), step, nudge)
}

impl Subject for Load {
    fn run(&mut self, iterations: u64, clock: &Clock) -> Result<Ticks> {
        let ticks = |ns: f64| Ticks((ns * clock.hz() / 1e9) as u64);
        // Computed and not timed by a bracket: the figure is a percentile of times that end in other threads.
        (0..iterations).map(|_| Ok(clock.record_bracket(ticks(self.round_p99_ns()?)))).sum()
    }

    fn report(&self) -> Report {
        let last = self.due_ns.last().copied().unwrap_or(1) as f64;
        let rate = self.due_ns.len() as f64 * 1e9 / last;
        let ideal = ideal_p99_ns(&self.due_ns, self.alone_ns, self.workers.len());
        let found = [("rate", "/s", rate), ("ideal-p99", "ns", ideal)];
        Report {
            found: found.map(|(name, unit, value)| Found::new(name, unit, vec![value])).into(),
            ..Report::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kit::runnable::test_place;

    #[test]
    fn arrivals_have_their_rate_and_waiting_grows_with_it() {
        let ideal = |percent| {
            let due = arrivals_ns(200_000, 50.0e3, percent);
            let mean = due[due.len() - 1] as f64 / due.len() as f64;
            assert!((mean * f64::from(percent) / 5.0e6 - 1.0).abs() < 0.01, "{mean}");
            ideal_p99_ns(&due, 100.0e3, 2) / 100.0e3
        };
        // Two servers of constant time (M/D/2): few wait at a quarter of the load.
        let (quarter, most) = (ideal(25), ideal(90));
        assert!((1.0..2.0).contains(&quarter) && most > 4.0 * quarter, "{quarter} {most}");
    }

    #[test]
    fn every_request_is_answered_and_an_answer_without_work_is_rejected() {
        let place = test_place(&std::env::temp_dir(), Scale::Smoke);
        let clock = Clock::start_up();
        let mut honest = Load::start(&place, 50, arch::multiply_chain).unwrap();
        let ticks = honest.run(2, &clock).unwrap();
        assert!(clock.nanoseconds(ticks).0 >= honest.alone_ns);
        assert_eq!(honest.counter.done.load(SeqCst) as usize, honest.due_ns.len());
        let mut idle = Load::start(&place, 50, |_| 0).unwrap();
        assert!(matches!(idle.run(1, &clock), Err(Error::Contradicted(_))));
    }
}

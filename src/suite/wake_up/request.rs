//! A request to a sleeping worker, beside tasks that keep every CPU busy, timed until the worker runs or has done its work.

use super::PAUSE;
use crate::kit::contract::*;
use crate::kit::placement::roaming;
use crate::platform::arch;
use crate::platform::futex::{Reach, wait, wait_until, wake};
use crate::platform::partner::{Class, Kind, Partner, start_spinner};
use crate::platform::time::clock_gettime_ns;
use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64};
use std::time::Duration;

/// The work of a request: this number of multiplications, each of which needs the result of the one before; 0.1 ms at 3 GHz.
pub(super) const MULTIPLICATIONS: u64 = 100_000;
/// Busy tasks of each CPU, and whether a default run measures the setting.
const BUSY: [(&str, usize, bool); 3] =
    [("idle", 0, false), ("busy-1-per-cpu", 1, true), ("busy-2-per-cpu", 2, false)];
/// The time limit for a worker, ns: hundreds of time slices.
const PATIENCE_NS: u64 = 5_000_000_000;

/// The end of the timed interval, which begins when the request is sent.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Until {
    /// The worker runs.
    WorkerRuns,
    /// The worker has answered.
    WorkIsDone,
}

/// The work of a request. Returns the product.
pub type Work = fn(u64) -> u64;

pub(super) fn request_cases() -> Vec<Case> {
    let rows = [
        ("request-wake", "a worker runs that was sent a request", Until::WorkerRuns),
        ("request", "0.1 ms of work is done by a worker that slept", Until::WorkIsDone),
    ];
    rows.into_iter().flat_map(|row| BUSY.map(|busy| request_case(row, busy))).collect()
}

fn request_case(
    (name, title, until): (&str, &str, Until),
    (setting, busy, is_default): (&str, usize, bool),
) -> Case {
    let title = format!("{title}, beside {busy} busy tasks on each CPU");
    let case =
        Case::new(format!("{name}/{setting}"), title, request_set_up(until, busy, arch::multiply_chain));
    let case = if is_default { case } else { case.need(FULL_SCALE) };
    let work = if until == Until::WorkIsDone { 3.0 * MULTIPLICATIONS as f64 } else { 0.0 };
    let why =
        "a CPU chosen, an interrupt to it, a switch; a fair scheduler lets a sleeper run before busy tasks";
    case.need(PINNED)
        .one_by_one()
        .own_tasks(OwnTasks::Elsewhere)
        .claim(Claim::Checked(
            "the worker slept before each request, and took the time that its work takes at least",
        ))
        .predict(work + if busy == 0 { 60_000.0 } else { 5_000.0 }, 10_000.0, why)
}

/// The set-up of requests beside `busy` tasks on each CPU. Each request is answered after `work`.
pub fn request_set_up(until: Until, busy: usize, work: Work) -> SetUp {
    set_up(move |place| Requests::start(place, until, busy, work))
}

/// The state that the measuring thread and the worker share.
#[derive(Default)]
struct Desk {
    /// Number of the last request. The worker sleeps on it.
    request: AtomicU32,
    /// Number of the last request that was answered. The measuring thread sleeps on it.
    answered: AtomicU32,
    /// Whether the worker slept before the last request.
    slept: AtomicBool,
    woken_ns: AtomicU64,
    done_ns: AtomicU64,
}

struct Requests {
    /// The busy tasks. The worker moves between CPUs on purpose, so it is not reported as a partner, which must stay on its CPU.
    busy: Vec<Partner>,
    worker: Partner,
    desk: Arc<Desk>,
    until: Until,
    /// The least time of the work, ns: half of its time alone, since the worker's core may be faster.
    least_work_ns: u64,
}

pub(super) fn now_ns() -> u64 {
    clock_gettime_ns(libc::CLOCK_MONOTONIC)
}

/// The time that the work takes when nothing disturbs, ns.
pub(super) fn time_alone_ns() -> u64 {
    let once = || {
        let began = now_ns();
        black_box(arch::multiply_chain(black_box(MULTIPLICATIONS)));
        now_ns() - began
    };
    (0..5).map(|_| once()).min().unwrap_or(0)
}

impl Requests {
    fn start(place: &Place, until: Until, busy: usize, work: Work) -> Result<Self> {
        let least_work_ns = time_alone_ns() / 2;
        let here = place.cpus.here.ok_or_else(|| Error::Missing("there is no CPU of its own".into()))?;
        let cpus = place.cpus.others.iter().copied().chain([here]);
        let desk = Arc::new(Desk::default());
        let (theirs, nudged) = (Arc::clone(&desk), Arc::clone(&desk));
        let mut seen = 0;
        let step = roaming(move || {
            let slept = wait(&theirs.request, seen, Reach::Private) == 0;
            let request = theirs.request.load(SeqCst);
            if request != seen {
                seen = request;
                theirs.answer(request, slept, work);
            }
            0
        });
        let nudge = move || nudged.send();
        let worker = Partner::start(Kind::Thread, (here, Class::Ordinary), step, nudge)?;
        let hogs = cpus.flat_map(|cpu| std::iter::repeat_n(cpu, busy));
        let busy = hogs.map(|cpu| start_spinner(cpu, Class::Ordinary)).collect::<Result<_>>()?;
        Ok(Self { busy, worker, desk, until, least_work_ns })
    }

    /// Pauses so that the worker falls asleep, sends a request, and waits for the answer. Returns the latency, ns, or `None` if
    /// the worker did not sleep.
    fn latency_ns(&mut self) -> Result<Option<u64>> {
        std::thread::sleep(PAUSE);
        let sent = now_ns();
        self.desk.send();
        let number = self.desk.request.load(SeqCst);
        let late = |_| "the worker has not answered for 5 s".into();
        await_word(&self.desk.answered, number, sent, std::slice::from_mut(&mut self.worker), late)?;
        let (woken, done) = (self.desk.woken_ns.load(SeqCst), self.desk.done_ns.load(SeqCst));
        if !self.desk.slept.load(SeqCst) {
            return Ok(None);
        }
        let worked = done - woken;
        if worked < self.least_work_ns {
            return Err(Error::Contradicted(format!(
                "the worker answered after {worked} ns of work, and {} ns are the least for it",
                self.least_work_ns
            )));
        }
        let until = if self.until == Until::WorkerRuns { woken } else { done };
        Ok(Some(until.saturating_sub(sent)))
    }
}

/// Sleeps until `word` has the value `wanted`. Fails if a worker died, or 5 s after `since` (ns).
pub(super) fn await_word(
    word: &AtomicU32,
    wanted: u32,
    since: u64,
    workers: &mut [Partner],
    late: impl FnOnce(u32) -> String,
) -> Result<()> {
    let deadline = since + PATIENCE_NS;
    loop {
        let now = word.load(SeqCst);
        if now == wanted {
            return Ok(());
        }
        if let Some(fate) = workers.iter_mut().find_map(Partner::fate) {
            return Err(fate.into_error("a worker: "));
        }
        if now_ns() > deadline {
            return Err(Error::Disturbed(format!("{}: the CPUs are too busy", late(now))));
        }
        wait_until(word, now, Duration::from_nanos(deadline));
    }
}

impl Desk {
    fn send(&self) {
        self.request.fetch_add(1, SeqCst);
        wake(&self.request, Reach::Private);
    }

    /// Does the work, notes its times and whether the worker slept, and wakes the measuring thread.
    fn answer(&self, request: u32, slept: bool, work: Work) {
        self.woken_ns.store(now_ns(), SeqCst);
        black_box(work(black_box(MULTIPLICATIONS)));
        self.done_ns.store(now_ns(), SeqCst);
        self.slept.store(slept, SeqCst);
        self.answered.store(request, SeqCst);
        wake(&self.answered, Reach::Private);
    }
}

impl Subject for Requests {
    fn run(&mut self, iterations: u64, clock: &Clock) -> Result<Ticks> {
        /// The most requests until one must find the worker asleep.
        const TRIES: u64 = 10;
        let (mut sum, mut done, mut tries) = (Ticks(0), 0, TRIES * iterations);
        while done < iterations {
            tries = tries.checked_sub(1).ok_or_else(|| {
                Error::Disturbed(format!("the worker slept before fewer than one of {TRIES} requests"))
            })?;
            if let Some(ns) = self.latency_ns()? {
                // Computed and not timed by a bracket, because the time ends in another thread.
                sum += clock.record_bracket(Ticks((ns as f64 * clock.hz() / 1e9) as u64));
                done += 1;
            }
        }
        Ok(sum)
    }

    fn report(&self) -> Report {
        Report { partners: self.busy.iter().map(Partner::task).collect(), ..Report::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kit::runnable::test_place;

    #[test]
    fn a_worker_wakes_before_its_work_is_done_and_one_that_does_not_work_is_caught() {
        let place = test_place(&std::env::temp_dir(), Scale::Smoke);
        let clock = Clock::start_up();
        let lowest = |until, work: Work| {
            let mut requests = Requests::start(&place, until, 1, work)?;
            let times = (0..20).map(|_| requests.run(1, &clock)).collect::<Result<Vec<_>>>();
            times.map(|times| times.into_iter().min().unwrap())
        };
        let runs = lowest(Until::WorkerRuns, arch::multiply_chain).unwrap();
        assert!(runs < lowest(Until::WorkIsDone, arch::multiply_chain).unwrap());
        assert!(matches!(lowest(Until::WorkIsDone, |_| 0), Err(Error::Contradicted(_))));
    }
}

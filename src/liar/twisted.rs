//! Lies about any case: fewer iterations than asked for, at once or later, a time that was remembered or made up, work
//! outside of what is timed, work left to a thread.

use crate::case::{Case, Place, Report, SetUp, Subject, set_up};
use crate::clock::{Clock, Counts, Ticks};
use crate::error::Result;
use crate::platform::arch;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

/// A way to lie that needs no knowledge of the operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Twist {
    /// Leaves out one iteration in ten.
    NineTenths,
    /// Leaves out every other iteration.
    Half,
    /// Does the first batch, and afterwards answers what that took, in proportion.
    Remembered,
    /// Does nothing, and says that every iteration took as long.
    MadeUp,
    /// Does nothing, and says that every batch took as long.
    Constant,
    /// Does every batch truly up to as many iterations as the first witness sees, and half of the others.
    HalfBeyond,
    /// Likewise, and counts in place of the others.
    CountsBeyond,
    /// Does the first batches truly, and later ones by half.
    HalfLater,
    /// Does the first batches truly, and counts in later ones.
    CountsLater,
    /// Does 16 iterations at most.
    Capped,
    /// Says that it took a hundred times as long.
    Hundredfold,
    /// Says that it took a tenth of the time.
    Tenth,
    /// Times half of the batch.
    HalfTimed,
    /// Times one iteration.
    OneTimed,
    /// Does the operation beside the bracket, and counts inside.
    Outside,
    /// Keeps nine tenths of the single times.
    SinglesLeftOut,
    /// Keeps the best single time for each.
    BestForAll,
    /// Likewise, and answers their sum.
    BestInAll,
}

/// Iterations of a batch that are done truly by who lies in long ones: as many as the first witness sees.
const TRUE_ITERATIONS: u64 = crate::clock::witness::ITERATIONS;
/// Batches that are done truly by who lies later.
const TRUE_BATCHES: u64 = 4;

/// Ticks of an iteration or a batch that are made up.
const MADE_UP: u64 = 1_000;

struct Twisted {
    honest: Box<dyn Subject>,
    twist: Twist,
    /// Iterations and ticks of the first batch.
    first: Option<(u64, u64)>,
    /// Batches so far.
    batches: u64,
}

impl Subject for Twisted {
    fn run(&mut self, iterations: u64, clock: &Clock) -> Result<Ticks> {
        self.batches += 1;
        let is_later = self.batches > TRUE_BATCHES;
        let beyond = iterations.saturating_sub(TRUE_ITERATIONS);
        match self.twist {
            Twist::NineTenths => self.honest.run(iterations - iterations.div_ceil(10), clock),
            Twist::Half => self.honest.run(iterations / 2, clock),
            Twist::MadeUp => Ok(Ticks(iterations * MADE_UP)),
            Twist::Constant => Ok(Ticks(MADE_UP)),
            Twist::Remembered => self.remembered(iterations, clock),
            Twist::HalfBeyond => self.honest.run(iterations - beyond.div_ceil(2), clock),
            Twist::HalfLater if is_later => self.honest.run(iterations / 2, clock),
            Twist::CountsLater if is_later => Ok(counts(iterations, clock)),
            Twist::HalfLater | Twist::CountsLater => self.honest.run(iterations, clock),
            Twist::Capped => self.honest.run(iterations.min(16), clock),
            Twist::SinglesLeftOut | Twist::BestForAll | Twist::BestInAll => self.singles(iterations, clock),
            Twist::CountsBeyond
            | Twist::Hundredfold
            | Twist::Tenth
            | Twist::HalfTimed
            | Twist::OneTimed
            | Twist::Outside => self.told(iterations, clock),
        }
    }

    fn report(&self) -> Report {
        self.honest.report()
    }
}

/// Counting, which is no operation.
fn counts(iterations: u64, clock: &Clock) -> Ticks {
    clock.time(|| arch::register_loop(iterations.div_ceil(8)))
}

impl Twisted {
    /// Does the first batch, and answers later ones from it.
    fn remembered(&mut self, iterations: u64, clock: &Clock) -> Result<Ticks> {
        if let Some((first, ticks)) = self.first {
            return Ok(Ticks((ticks as f64 * iterations as f64 / first as f64) as u64));
        }
        let ticks = self.honest.run(iterations, clock)?;
        self.first = Some((iterations, ticks.0));
        Ok(ticks)
    }

    /// Does all iterations, or nearly, and does not tell what they took.
    fn told(&mut self, iterations: u64, clock: &Clock) -> Result<Ticks> {
        let (honest, of_half) = (&mut self.honest, iterations.div_ceil(2));
        match self.twist {
            Twist::CountsBeyond => {
                let truly = honest.run(iterations.min(TRUE_ITERATIONS), clock)?;
                Ok(Ticks(truly.0 + counts(iterations.saturating_sub(TRUE_ITERATIONS), clock).0))
            }
            Twist::Hundredfold => Ok(Ticks(100 * honest.run(iterations, clock)?.0)),
            Twist::HalfTimed => {
                honest.run(iterations - of_half, clock)?;
                honest.run(of_half, clock)
            }
            Twist::OneTimed => {
                honest.run(iterations, clock)?;
                honest.run(1, clock)
            }
            Twist::Tenth => Ok(Ticks(honest.run(iterations, clock)?.0 / 10)),
            _ => {
                honest.run(iterations, clock)?;
                Ok(counts(iterations, clock))
            }
        }
    }

    /// Does the iterations one at a time, and notes other times than theirs.
    fn singles(&mut self, iterations: u64, clock: &Clock) -> Result<Ticks> {
        let own = Clock::with_scale(clock.scale());
        let times = (0..iterations).map(|_| self.honest.run(1, &own)).collect::<Result<Vec<_>>>()?;
        let best = times.iter().copied().min().unwrap_or_default();
        for (at, ticks) in times.iter().enumerate() {
            match self.twist {
                Twist::SinglesLeftOut if at % 10 == 0 => {}
                Twist::SinglesLeftOut => _ = clock.note(*ticks),
                _ => _ = clock.note(best),
            }
        }
        let sum = times.iter().map(|ticks| ticks.0).sum();
        Ok(Ticks(if self.twist == Twist::BestInAll { best.0 * iterations } else { sum }))
    }
}

/// The case with this lie.
pub fn twisted(mut case: Case, twist: Twist) -> Case {
    let honest = std::mem::replace(&mut case.set_up, nothing());
    case.set_up = set_up(move |place| Ok(Twisted { honest: honest(place)?, twist, first: None, batches: 0 }));
    case
}

fn nothing() -> SetUp {
    set_up(|_| Ok(|_: u64, _: &Clock| Ok(Ticks(0))))
}

/// Iterations that may wait for the thread.
const QUEUED: usize = 1 << 16;
/// How long the thread may take. The witness's child has no thread, and waits for none.
const PATIENCE: Duration = Duration::from_millis(300);

/// A thread that does the work. Only handing it over is timed.
struct LeftToThread {
    orders: SyncSender<u64>,
    done: Receiver<()>,
    one_by_one: bool,
}

/// Finds the real case of an id, in the thread that does its work.
pub type Find = fn(&str) -> Option<Case>;

/// The case of this id, whose work a thread does.
pub fn left_to_a_thread(id: &'static str, find: Find) -> Option<Case> {
    let case = find(id)?;
    let one_by_one = case.one_by_one;
    let set_up = set_up(move |place| Ok(LeftToThread::start(id, find, place.clone(), one_by_one)));
    Some(Case { set_up, ..case })
}

impl LeftToThread {
    fn start(id: &'static str, find: Find, place: Place, one_by_one: bool) -> Self {
        let (orders, ordered) = sync_channel(QUEUED);
        let (finished, done) = sync_channel(1);
        // It ends when the orders do, or if the operation fails.
        std::thread::spawn(move || _ = work(id, find, &place, &ordered, &finished));
        Self { orders, done, one_by_one }
    }

    /// Waits until all is done, untimed.
    fn finish(&self) {
        let _ = self.orders.send(0);
        let _ = self.done.recv_timeout(PATIENCE);
    }
}

/// The thread: it sets the real case up and does as many iterations as are ordered; an order of none asks for an answer.
fn work(
    id: &str,
    find: Find,
    place: &Place,
    orders: &Receiver<u64>,
    finished: &SyncSender<()>,
) -> Option<()> {
    let mut subject = (find(id)?.set_up)(place).ok()?;
    let clock = Clock::with_scale(SCALE);
    loop {
        match orders.recv().ok()? {
            0 => finished.send(()).ok()?,
            iterations => _ = subject.run(iterations, &clock).ok()?,
        }
    }
}

/// The scale of the thread's clock, whose times are discarded.
const SCALE: crate::clock::ClockScale = crate::clock::ClockScale { counter: false, hz: 1e9, step: 1 };

impl Subject for LeftToThread {
    fn run(&mut self, iterations: u64, clock: &Clock) -> Result<Ticks> {
        let ticks = match self.one_by_one {
            true => clock.each(
                iterations,
                &mut self.orders,
                |_| Ok(()),
                |orders| orders.try_send(1).is_ok(),
                |_, _| Ok(Counts::Yes),
            )?,
            false => clock.time(|| {
                for _ in 0..iterations {
                    let _ = std::hint::black_box(self.orders.try_send(1));
                }
            }),
        };
        self.finish();
        Ok(ticks)
    }
}

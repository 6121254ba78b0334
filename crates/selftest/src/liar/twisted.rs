//! Lies about any case: fewer iterations than requested, at once or later; a time that was remembered or invented; work
//! outside of the timed part; work left to a thread.

use crate::error::Result;
use crate::platform::arch;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;
use syscost_engine::case::{Case, Place, Report, SetUp, Subject, set_up};
use syscost_engine::clock::{Clock, Counts, Ticks};

/// A lie that needs no knowledge of the operation.
#[derive(Clone, Copy)]
pub struct Twist {
    /// The description of what it does.
    pub words: &'static str,
    run: Run,
    /// The smallest number of iterations of a batch in which it leaves out a twentieth.
    pub from: u64,
}

/// A function that is called instead of the honest subject's run of this number of iterations.
type Run = fn(&mut Twisted, u64, &Clock) -> Result<Ticks>;

/// The number of iterations that a liar does honestly in each batch before it lies: as many as the first witness sees.
const TRUE_ITERATIONS: u64 = syscost_engine::clock::witness::ITERATIONS;
/// The number of batches that a liar does honestly before it lies.
const TRUE_BATCHES: u64 = 4;
/// The invented time of an iteration or of a batch, in ticks.
const TICKS: u64 = 1_000;
/// The number of iterations of a batch of which a twentieth is beyond the witness's batch.
pub const COUNTED_BEYOND: u64 = TRUE_ITERATIONS * 20 / 19 + 1;

/// Defines twists by name, description, smallest number of iterations of a batch that leaves out a twentieth, and function.
macro_rules! twists {
    ($($name:ident, $words:literal, $from:expr, $run:expr;)*) => {
        $(pub const $name: Twist = Twist { words: $words, run: $run, from: $from };)*
    };
}

twists! {
    NINE_TENTHS, "does nine tenths of the iterations", 1, |lie, n, clock| lie.honest.run(n - n.div_ceil(10), clock);
    HALF, "does half of the iterations", 1, |lie, n, clock| lie.honest.run(n / 2, clock);
    REMEMBERED, "works once and answers that time again", 1, Twisted::repeat_first_time;
    MADE_UP, "makes up a time for each iteration", 1, |_, n, _| Ok(Ticks(n * TICKS));
    CONSTANT, "makes up a time for each batch", 1, |_, _, _| Ok(Ticks(TICKS));
    HALF_BEYOND, "does half of what is beyond the witness's batch", 143, |lie, n, clock| lie.honest.run(n - iterations_past_witness(n).div_ceil(2), clock);
    COUNTS_BEYOND, "counts in place of what is beyond the witness's batch", COUNTED_BEYOND, |lie, n, clock| Ok(lie.honest.run(n - iterations_past_witness(n), clock)? + time_counting(iterations_past_witness(n), clock));
    THREE_QUARTERS_BEYOND_1000, "does three quarters of what is beyond 1000 iterations", 1_250, |lie, n, clock| lie.honest.run(n - n.saturating_sub(1_000) / 4, clock);
    COUNTS_BEYOND_100000, "counts in place of what is beyond 100000 iterations", 105_264, |lie, n, clock| Ok(lie.honest.run(n.min(100_000), clock)? + time_counting(n.saturating_sub(100_000), clock));
    NINE_TENTHS_BEYOND, "does nine tenths of what is beyond the witness's batch", 256, |lie, n, clock| lie.honest.run(n - iterations_past_witness(n) / 10, clock);
    BEST_TIMES, "answers the best of single times for each", 2, |lie, n, clock| Ok(Ticks(lie.run_singly(n, clock)?.into_iter().min().unwrap_or_default().0 * n));
    UNWATCHED, "does half, where a first iteration is as quick as ever", 2, |lie, n, clock| {
        let one = lie.honest.run(1, clock)?;
        let usual = lie.first.map(|(_, ticks)| ticks);
        lie.first = Some((1, usual.map_or(one.0, |usual| usual.min(one.0))));
        let is_unwatched = usual.is_some_and(|usual| one.0 < 8 * usual);
        Ok(one + lie.honest.run(if is_unwatched { (n - 1) / 2 } else { n - 1 }, clock)?)
    };
    HALF_LATER, "does half, after a few true batches", 1, |lie, n, clock| lie.honest.run(if lie.batches > TRUE_BATCHES { n / 2 } else { n }, clock);
    COUNTS_LATER, "counts, after a few true batches", 1, |lie, n, clock| if lie.batches > TRUE_BATCHES { Ok(time_counting(n, clock)) } else { lie.honest.run(n, clock) };
    CAPPED, "does 16 iterations at most", 17, |lie, n, clock| lie.honest.run(n.min(16), clock);
    HUNDREDFOLD, "says that it took a hundred times as long", 1, |lie, n, clock| Ok(Ticks(100 * lie.honest.run(n, clock)?.0));
    // This twist is for [`leave_to_thread`], whose own times are uneven only now and then.
    UNEVEN, "leaves the work to another thread, and says uneven times", 1, |lie, n, clock| Ok(Ticks(lie.honest.run(n, clock)?.0 * (1 + lie.batches * 7 % 10) / 10));
    TENTH, "says that it took a tenth of the time", 1, |lie, n, clock| Ok(Ticks(lie.honest.run(n, clock)?.0 / 10));
    HALF_TIMED, "times half of the batch", 1, |lie, n, clock| {
        lie.honest.run(n / 2, clock)?;
        lie.honest.run(n.div_ceil(2), clock)
    };
    ONE_TIMED, "times one iteration", 1, |lie, n, clock| {
        lie.honest.run(n, clock)?;
        lie.honest.run(1, clock)
    };
    OUTSIDE, "works beside the bracket, and counts inside", 1, |lie, n, clock| {
        lie.honest.run(n, clock)?;
        Ok(time_counting(n, clock))
    };
    SEVEN_TENTHS, "says that it took seven tenths of the time", 1, |lie, n, clock| Ok(Ticks(lie.honest.run(n, clock)?.0 * 7 / 10));
    SEVEN_TENTHS_TIMED, "returns the time of seven tenths of the batch", 1, |lie, n, clock| {
        lie.honest.run(three_tenths(n), clock)?;
        lie.honest.run(n - three_tenths(n), clock)
    };
    THREE_TENTHS_BESIDE, "does three tenths beside the bracket", 1, |lie, n, clock| {
        let own = Clock::with_scale(clock.scale());
        lie.honest.run(three_tenths(n), &own)?;
        lie.honest.run(n - three_tenths(n), clock)
    };
    SINGLES_LEFT_OUT, "keeps nine tenths of the single times", 1, |lie, n, clock| {
        let times = lie.run_singly(n, clock)?;
        times
            .iter()
            .enumerate()
            .filter(|(at, _)| at % 10 != 0)
            .for_each(|(_, ticks)| _ = clock.record_bracket(*ticks));
        Ok(sum_ticks(&times))
    };
    BEST_FOR_ALL, "keeps the best single time for each", 2, |lie, n, clock| {
        let times = lie.run_singly(n, clock)?;
        note_best(&times, clock);
        Ok(sum_ticks(&times))
    };
    BEST_IN_ALL, "keeps the best single time for each, and answers their sum", 2, |lie, n, clock| Ok(Ticks(note_best(&lie.run_singly(n, clock)?, clock).0 * n));
}

/// The honest subject, as a liar uses it.
struct Twisted {
    honest: Box<dyn Subject>,
    run: Run,
    /// The iterations and the ticks of the first batch.
    first: Option<(u64, u64)>,
    /// The number of batches so far.
    batches: u64,
}

impl Subject for Twisted {
    fn run(&mut self, iterations: u64, clock: &Clock) -> Result<Ticks> {
        self.batches += 1;
        let run = self.run;
        run(self, iterations, clock)
    }

    fn report(&self) -> Report {
        self.honest.report()
    }
}

impl Twisted {
    /// Runs the first batch, and then returns times in proportion to the first one without running.
    fn repeat_first_time(&mut self, iterations: u64, clock: &Clock) -> Result<Ticks> {
        if let Some((first, ticks)) = self.first {
            return Ok(Ticks((ticks as f64 * iterations as f64 / first as f64) as u64));
        }
        let ticks = self.honest.run(iterations, clock)?;
        self.first = Some((iterations, ticks.0));
        Ok(ticks)
    }

    /// Runs the iterations one at a time, and returns their times without recording them in `clock`.
    fn run_singly(&mut self, iterations: u64, clock: &Clock) -> Result<Vec<Ticks>> {
        let own = Clock::with_scale(clock.scale());
        (0..iterations).map(|_| self.honest.run(1, &own)).collect()
    }
}

/// The number of iterations that the first witness does not see.
fn iterations_past_witness(iterations: u64) -> u64 {
    iterations.saturating_sub(TRUE_ITERATIONS)
}

fn three_tenths(iterations: u64) -> u64 {
    (iterations as f64 * 0.3).round() as u64
}

/// The time of a counting loop, which replaces the operation.
fn time_counting(iterations: u64, clock: &Clock) -> Ticks {
    clock.time(|| arch::register_loop(iterations.div_ceil(8)))
}

fn sum_ticks(times: &[Ticks]) -> Ticks {
    Ticks(times.iter().map(|ticks| ticks.0).sum())
}

/// Notes the best of these times as the time of every iteration, and returns it.
fn note_best(times: &[Ticks], clock: &Clock) -> Ticks {
    let best = times.iter().copied().min().unwrap_or_default();
    times.iter().for_each(|_| _ = clock.record_bracket(best));
    best
}

/// The case, twisted by this lie.
pub fn twist_case(mut case: Case, twist: Twist) -> Case {
    let honest = std::mem::replace(&mut case.set_up, empty_set_up());
    case.set_up =
        set_up(move |place| Ok(Twisted { honest: honest(place)?, run: twist.run, first: None, batches: 0 }));
    case
}

fn empty_set_up() -> SetUp {
    set_up(|_| Ok(|_: u64, _: &Clock| Ok(Ticks(0))))
}

/// The maximum number of iterations that may wait for the thread.
const QUEUED: usize = 1 << 16;
/// The longest wait for the thread. The witness's child process has no such thread and does not wait.
const PATIENCE: Duration = Duration::from_millis(300);

/// A thread that does the work. Only the handover to the thread is timed.
struct LeftToThread {
    orders: SyncSender<u64>,
    done: Receiver<()>,
    one_by_one: bool,
}

/// A function that finds the real case of an id, in the thread that does the work.
pub type Find = fn(&str) -> Option<Case>;

/// The case with this id, whose work is left to a thread.
pub fn leave_to_thread(id: &'static str, find: Find) -> Option<Case> {
    let case = find(id)?;
    let one_by_one = case.one_by_one;
    let set_up = set_up(move |place| Ok(LeftToThread::start(id, find, place.clone(), one_by_one)));
    Some(Case { set_up, ..case })
}

impl LeftToThread {
    fn start(id: &'static str, find: Find, place: Place, one_by_one: bool) -> Self {
        let (orders, ordered) = sync_channel(QUEUED);
        let (finished, done) = sync_channel(1);
        // The thread ends when the channel of orders closes, or when the operation fails.
        std::thread::spawn(move || _ = run_ordered_work(id, find, &place, &ordered, &finished));
        Self { orders, done, one_by_one }
    }

    /// Waits, untimed, until the thread has done all work.
    fn finish(&self) {
        let _ = self.orders.send(0);
        let _ = self.done.recv_timeout(PATIENCE);
    }
}

/// The thread's work: sets up the real case and does the ordered number of iterations. An order of 0 asks for a
/// reply.
fn run_ordered_work(
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

/// A clock scale for the thread, whose times are discarded.
const SCALE: syscost_engine::clock::ClockScale =
    syscost_engine::clock::ClockScale { counter: false, hz: 1e9, step: 1, uncertainty_ppm: 0.0 };

impl Subject for LeftToThread {
    fn run(&mut self, iterations: u64, clock: &Clock) -> Result<Ticks> {
        let ticks = match self.one_by_one {
            true => clock.time_each(
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

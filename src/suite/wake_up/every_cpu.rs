//! A wake-up on every CPU at the same moment: until the last one runs.

use super::{COARSE_SLEEP, IDLE_STATES, Setting};
use crate::kit::contract::*;
use crate::kit::crew::Crew;
use crate::kit::kernel_call::check_granted;
use crate::kit::parallel::all_partners_stayed;
use crate::kit::scheduling_policy::{PRIORITY, REAL_TIME};
use crate::platform::partner::Kind;
use crate::platform::sleep::{Nanosleep, RealTime, ShallowIdle, Sleep};
use crate::platform::time::clock_gettime_ns;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

/// Between two moments: a CPU that is late by less misses none.
const SLEEP_NS: u64 = COARSE_SLEEP.as_nanos() as u64;
/// Moments of one turn of the crew.
const MOMENTS: usize = 256;
/// A lateness that none has: the sleep ended before its moment.
const EARLY: u64 = u64::MAX;

pub(super) fn every_cpu_case(setting: Setting) -> Case {
    let title = format!("the latest of a wake-up of every CPU, {}", setting.title);
    let set_up = every_cpu_set_up(setting, Moments::sleep_through);
    let case = Case::new(format!("every-cpu/{}", setting.name), title, set_up).need(PINNED).need(TWO_CPUS);
    let case = if setting.is_real_time { case.need(REAL_TIME).need(IDLE_STATES) } else { case };
    let slack = if setting.is_real_time { 0.0 } else { 150_000.0 };
    let noted =
        Claim::Checked("the task of each CPU noted how late it was at each moment, and none was early");
    let why =
        "the slowest of as many interrupts, CPUs that wake, and switches; 50 µs of slack where it is granted";
    let case = case.one_by_one().claim(noted).claim(Claim::Regime(claim_all_slept));
    case.predict(60_000.0, slack + 6_000.0, why)
}

/// Wake-ups of the measuring CPU, and of the others by `turn`.
pub fn every_cpu_set_up(setting: Setting, turn: Turn) -> SetUp {
    set_up(move |place| Sleepers::start(place, setting, turn))
}

/// The moments of a turn, which all tasks share.
pub struct Moments {
    /// The moment of the first, ns of CLOCK_MONOTONIC; each of the others is one sleep later.
    first_ns: AtomicU64,
    /// The greatest lateness at each moment, ns.
    latest_ns: [AtomicU64; MOMENTS],
    /// Wake-ups of all tasks in this turn.
    noted: AtomicU64,
}

impl Moments {
    /// Sleeps until each of the first `count` moments, and notes how late it was. Returns 0, or the negative error number of a
    /// sleep that was refused.
    fn sleep_through(&self, count: usize) -> i64 {
        let first = self.first_ns.load(SeqCst);
        for (latest, number) in self.latest_ns[..count].iter().zip(0..) {
            let due = first + number * SLEEP_NS;
            let answer = Nanosleep.sleep_until(Duration::from_nanos(due));
            let woken = clock_gettime_ns(libc::CLOCK_MONOTONIC);
            if answer < 0 {
                return answer;
            }
            latest.fetch_max(woken.checked_sub(due).unwrap_or(EARLY), SeqCst);
            self.noted.fetch_add(1, SeqCst);
        }
        0
    }
}

/// What the other CPUs do in a turn.
pub type Turn = fn(&Moments, usize) -> i64;

struct Sleepers {
    crew: Crew,
    moments: Arc<Moments>,
    /// Of the crew and the measuring one.
    tasks: usize,
    _class: Option<RealTime>,
    _shallow: Option<ShallowIdle>,
}

impl Sleepers {
    fn start(place: &Place, setting: Setting, turn: Turn) -> Result<Self> {
        let zero = || AtomicU64::new(0);
        let latest_ns = std::array::from_fn(|_| zero());
        let moments = Arc::new(Moments { first_ns: zero(), latest_ns, noted: zero() });
        let _shallow = setting.is_shallow.then(ShallowIdle::hold).transpose()?;
        let enter = move || setting.is_real_time.then(|| RealTime::enter(PRIORITY)).transpose();
        let crew = Crew::start(Kind::Thread, &place.cpus.others, |_| {
            let (moments, mut class) = (Arc::clone(&moments), None);
            Ok(move |count: u64| {
                // Entered by the thread itself; it sleeps between two turns.
                if class.is_none() {
                    class = enter().ok();
                }
                let answer = turn(&moments, count as usize);
                if class.is_some() { answer } else { -i64::from(libc::EPERM) }
            })
        })?;
        Ok(Self { crew, moments, tasks: place.cpus.others.len() + 1, _class: enter()?, _shallow })
    }

    /// All CPUs sleep until each of this number of moments. The latest wake-ups are in `moments`.
    fn take_turn(&mut self, count: usize) -> Result<()> {
        /// Until the first moment: every task has begun its turn by then.
        const AHEAD: u64 = 100_000;
        self.moments.latest_ns.iter().for_each(|latest| latest.store(0, SeqCst));
        self.moments.noted.store(0, SeqCst);
        let turn = self.crew.wake_and_wait(count as u64)?;
        self.moments.first_ns.store(clock_gettime_ns(libc::CLOCK_MONOTONIC) + AHEAD, SeqCst);
        self.crew.signal_start(turn);
        let answer = self.moments.sleep_through(count);
        self.crew.wait_until_finished()?;
        check_granted("a sleep", answer)?;
        let (noted, all) = (self.moments.noted.load(SeqCst), (count * self.tasks) as u64);
        ensure(noted == all, || Error::Disproved(format!("of {all} wake-ups of all CPUs {noted} came")))
    }
}

impl Subject for Sleepers {
    fn run(&mut self, iterations: u64, clock: &Clock) -> Result<Ticks> {
        let ticks = |ns: u64| Ticks((ns as f64 * clock.hz() / 1e9) as u64);
        let (mut sum, mut left) = (Ticks(0), iterations as usize);
        while left > 0 {
            let count = left.min(MOMENTS);
            self.take_turn(count)?;
            // When all were awake, ns after the first moment. A wake-up that is late reaches into the next sleep, and that time
            // passed once.
            let (mut due, mut awake) = (0, 0);
            for latest in &self.moments.latest_ns[..count] {
                let late = latest.load(SeqCst);
                ensure(late != EARLY, || {
                    Error::Disproved("a CPU woke before its moment: that was no sleep until then".into())
                })?;
                // Computed, and not timed by a bracket: it begins at a moment, where no code runs.
                clock.record_bracket(ticks(late));
                let before = awake.max(due);
                awake = awake.max(due + late);
                sum += ticks(awake - before);
                due += SLEEP_NS;
            }
            left -= count;
        }
        Ok(sum)
    }

    fn report(&self) -> Report {
        Report { partners: self.crew.partner_tasks(), ..Report::default() }
    }
}

/// The claim that the tasks of all CPUs slept. One that is late finds that the next moment has passed.
fn claim_all_slept(delta: &Delta, iterations: u64) -> Judged {
    let stayed = all_partners_stayed(delta, iterations)?;
    let others = delta.partners.map_or(0, |partners| partners.fewest_voluntary);
    let fewest = others.min(delta.counted.voluntary_switches);
    let said = format!("the tasks of all CPUs slept {fewest} times at least in {iterations} iterations");
    match fewest + (iterations / 10).max(1) >= iterations {
        true => Ok(format!("{said}; {stayed}")),
        false => Err(format!("{said}: the moments had passed already")),
    }
}

#[cfg(test)]
mod tests {
    use super::super::IDLE;
    use super::*;
    use crate::kit::runnable::test_place;

    #[test]
    fn every_moment_has_the_latest_of_all_cpus() {
        let place = test_place(&std::env::temp_dir(), Scale::Smoke);
        if place.cpus.others.is_empty() {
            return crate::platform::testing::print_skipped("there is one CPU");
        }
        let clock = Clock::start_up();
        let mut sleepers = Sleepers::start(&place, IDLE, Moments::sleep_through).unwrap();
        // More than fit into one turn.
        let ticks = sleepers.run(MOMENTS as u64 + 3, &clock).unwrap();
        assert!(ticks > Ticks(0));
        let filled = |range: std::ops::Range<usize>| {
            sleepers.moments.latest_ns[range].iter().all(|latest| latest.load(SeqCst) > 0)
        };
        assert!(filled(0..3) && !filled(3..4), "the second turn has three moments");
    }

    #[test]
    fn a_sleep_that_ends_early_and_one_that_is_left_out_are_disproved() {
        let place = test_place(&std::env::temp_dir(), Scale::Smoke);
        if place.cpus.others.is_empty() {
            return crate::platform::testing::print_skipped("there is one CPU");
        }
        let early: Turn = |moments, count| {
            moments.latest_ns[..count].iter().for_each(|latest| _ = latest.fetch_max(EARLY, SeqCst));
            moments.noted.fetch_add(count as u64, SeqCst);
            0
        };
        for (turn, said) in [(early, "before its moment"), ((|_, _| 0) as Turn, "of all CPUs 2 came")] {
            let mut sleepers = Sleepers::start(&place, IDLE, turn).unwrap();
            let error = sleepers.run(2, &Clock::start_up()).expect_err("a lie");
            assert!(matches!(&error, Error::Disproved(sentence) if sentence.contains(said)), "{error}");
        }
    }
}

//! Wake-ups on every CPU at the same moment, timed until the last CPU runs its task.

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

/// The time between two moments, ns. A CPU that is late by less misses no moment.
const SLEEP_NS: u64 = COARSE_SLEEP.as_nanos() as u64;
/// The most moments in one turn of the crew.
const MOMENTS: usize = 256;
/// The value in place of a lateness if a sleep ended before its moment.
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

/// The set-up of wake-ups on all CPUs. The measuring CPU sleeps by itself; the others run `turn`.
pub fn every_cpu_set_up(setting: Setting, turn: Turn) -> SetUp {
    set_up(move |place| Sleepers::start(place, setting, turn))
}

/// The moments of a turn, which all tasks share.
pub struct Moments {
    /// The first moment, ns of CLOCK_MONOTONIC. Each further moment is one sleep later.
    first_ns: AtomicU64,
    /// The greatest lateness at each moment, ns.
    latest_ns: [AtomicU64; MOMENTS],
    /// The number of wake-ups of all tasks in this turn.
    noted: AtomicU64,
}

impl Moments {
    /// Sleeps until each of the first `count` moments, and notes the lateness of each wake-up. Returns 0, or the negative error
    /// number of a sleep that failed.
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

/// The function that the tasks on the other CPUs run in a turn. Returns 0 or a negative error number.
pub type Turn = fn(&Moments, usize) -> i64;

struct Sleepers {
    crew: Crew,
    moments: Arc<Moments>,
    /// The number of tasks: those of the crew and the measuring one.
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
                // The thread itself must enter the class. It sleeps between two turns.
                if class.is_none() {
                    class = enter().ok();
                }
                let answer = turn(&moments, count as usize);
                if class.is_some() { answer } else { -i64::from(libc::EPERM) }
            })
        })?;
        Ok(Self { crew, moments, tasks: place.cpus.others.len() + 1, _class: enter()?, _shallow })
    }

    /// Makes all CPUs sleep until each of `count` moments. Afterwards `moments` holds the greatest lateness of each.
    fn take_turn(&mut self, count: usize) -> Result<()> {
        /// Time until the first moment, ns. By then every task has begun its turn.
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
            // `awake` is when all tasks were awake, ns after the first moment. A late wake-up extends into the next sleep; that
            // time is counted only once.
            let (mut due, mut awake) = (0, 0);
            for latest in &self.moments.latest_ns[..count] {
                let late = latest.load(SeqCst);
                ensure(late != EARLY, || {
                    Error::Disproved("a CPU woke before its moment: that was no sleep until then".into())
                })?;
                // Computed and not timed by a bracket, because the time begins at a moment when no code runs.
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

/// The claim that the tasks of all CPUs slept. A task that is late may find the next moment passed, and then does not sleep.
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
        // More moments than fit into one turn.
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

//! Threads that sleep on one word, and the calls that wake them or move them to another word.

use crate::kit::contract::*;
use crate::kit::crew::Crew;
use crate::kit::kernel_call::check_granted;
use crate::platform::futex::{Reach, count_sleepers, requeue_all, wait, wake, wake_all};
use crate::platform::partner::{Class, Kind, Partner};
use crate::platform::shared::Words;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::SeqCst;
use std::time::{Duration, Instant};

/// Threads that sleep.
const WAITERS: usize = 16;
/// How long the waiters may take to fall asleep.
const PATIENCE: Duration = Duration::from_secs(5);

/// Indices into the shared page: the word on which the waiters sleep, which is set to 1 to end them, and the other word.
const SLEEP: usize = 0;
pub const OTHER: usize = 1;
/// The answer where a call woke no thread.
const NONE_WOKEN: i64 = -(libc::ESRCH as i64);

/// The calls that are timed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Call {
    /// A call for each sleeper.
    WakeEach,
    /// One call for all sleepers.
    WakeAll,
    /// One call that moves all sleepers to the other word.
    Requeue,
    /// Two threads on two CPUs, of which each wakes a half.
    WakeByTwo,
}

use Call::{Requeue, WakeAll, WakeByTwo, WakeEach};

/// Name, title, call, predicted core cycles of a waiter, and whether a default run measures it.
#[rustfmt::skip]
const ROWS: [(&str, &str, Call, f64, bool); 4] = [
    ("futex-wake/one-by-one-16", "16 sleeping threads woken by 16 calls", WakeEach, 3_000.0, true),
    ("futex-wake/at-once-16", "16 sleeping threads woken by one call", WakeAll, 2_500.0, false),
    ("futex-wake/by-two-16", "16 sleeping threads woken by two threads, one call each", WakeByTwo, 2_000.0, false),
    ("futex-requeue/at-once-16", "16 sleeping threads moved to another futex", Requeue, 100.0, false),
];

pub(super) fn waiter_cases() -> Vec<Case> {
    ROWS.map(|(name, title, call, cycles, is_default)| {
        let case = Case::new(name, title, waiter_set_up(call, SLEEP));
        let case = if is_default { case } else { case.need(FULL_SCALE) };
        let case = if call == Call::WakeByTwo { case.need(TWO_CPUS) } else { case };
        case.need(PINNED)
            .one_by_one()
            .own_tasks(OwnTasks::Elsewhere)
            .derived_figure("waiter", Rule::OfCost(1.0 / WAITERS as f64))
            .claim(Claim::Checked("all 16 slept before, and the kernel says that it woke or moved 16"))
            .claim(Claim::Counted(claim_waiters_slept))
            .predict(0.0, cycles * WAITERS as f64, "a task made ready on its CPU, or linked to another queue")
    })
    .into()
}

/// The claim that each waiter left its CPU once an iteration. The last time may not be counted yet. A waiter that is woken after it
/// was queued and before it has left its CPU does not leave it, for example if a host stops its virtual CPU there.
fn claim_waiters_slept(delta: &Delta, iterations: u64) -> Judged {
    let left = delta.partners.map_or(0, |partners| partners.fewest_switches);
    let seen = format!("each waiter left its CPU at least {left} times in {iterations} iterations");
    // A twelfth may be missing: fewer than the tenth of the iterations that a lie may leave out.
    let missed = (iterations / 12).max(1);
    if left + missed < iterations { Err(seen) } else { Ok(seen) }
}

/// Sets up sleepers on the word `SLEEP`. [`Call::WakeEach`] wakes the sleepers on `woken_word`.
pub fn waiter_set_up(call: Call, woken_word: usize) -> SetUp {
    set_up(move |place| Waiters::start(place, call, woken_word))
}

struct Waiters {
    call: Call,
    /// Index of the word whose sleepers are woken.
    woken_word: usize,
    words: Arc<Words>,
    waiters: Vec<Partner>,
    /// The second thread that wakes.
    crew: Crew,
    turn: u32,
}

impl Waiters {
    /// Starts the waiters, spread over all CPUs, and the second thread that wakes, if there is one.
    fn start(place: &Place, call: Call, woken_word: usize) -> Result<Self> {
        let words = Arc::new(Words::new()?);
        let cpus: Vec<usize> = place.cpus.here.into_iter().chain(place.cpus.others.iter().copied()).collect();
        let start = |cpu: &usize| {
            let (theirs, nudged) = (Arc::clone(&words), Arc::clone(&words));
            let step = move || {
                wait(&theirs[SLEEP].value, 0, Reach::Private);
                0
            };
            let nudge = move || {
                nudged[SLEEP].value.store(1, SeqCst);
                for at in [SLEEP, OTHER] {
                    wake_all(&nudged[at].value, Reach::Private);
                }
            };
            Partner::start(Kind::Thread, (*cpu, Class::Ordinary), step, nudge)
        };
        let waiters = cpus.iter().cycle().take(WAITERS).map(start).collect::<Result<_>>()?;
        let second: &[usize] = if call == Call::WakeByTwo { &place.cpus.others[..1] } else { &[] };
        let crew = Crew::start(Kind::Thread, second, |_| {
            let words = Arc::clone(&words);
            Ok(move |_: u64| wake_each(&words[SLEEP].value, WAITERS / 2))
        })?;
        Ok(Self { call, woken_word, words, waiters, crew, turn: 0 })
    }

    /// Waits until all waiters sleep.
    fn await_sleep(&mut self) -> Result<()> {
        let begun = Instant::now();
        loop {
            match count_sleepers(&self.words[SLEEP].value, 0) {
                count if count == WAITERS as i64 => break,
                count if count < 0 => check_granted("futex FUTEX_CMP_REQUEUE", count)?,
                count if begun.elapsed() > PATIENCE => {
                    return Err(Error::Disturbed(format!(
                        "only {count} of {WAITERS} threads fell asleep in 5 s"
                    )));
                }
                _ => std::thread::sleep(Duration::from_micros(20)),
            }
        }
        if self.call == Call::WakeByTwo {
            self.turn = self.crew.wake_and_wait(1)?;
        }
        Ok(())
    }

    /// Makes the timed call. Returns how many sleepers it woke or moved, or a negative error number.
    #[inline(always)]
    fn call(&mut self) -> Result<i64> {
        let words = &self.words;
        Ok(match self.call {
            Call::WakeEach => wake_each(&words[self.woken_word].value, WAITERS),
            Call::WakeAll => wake_all(&words[SLEEP].value, Reach::Private),
            Call::Requeue => requeue_all(&words[SLEEP].value, &words[OTHER].value, 0),
            Call::WakeByTwo => {
                self.crew.signal_start(self.turn);
                let own = wake_each(&words[SLEEP].value, WAITERS / 2);
                self.crew.wait_until_finished()?;
                own + WAITERS as i64 / 2
            }
        })
    }

    /// Checks that the call woke or moved all waiters.
    fn check_answer(&self, answer: i64) -> Result<()> {
        if answer == NONE_WOKEN {
            return Err(Error::Contradicted("a call woke no thread, and threads slept".into()));
        }
        check_granted("futex", answer)?;
        let woken_later = match self.call {
            Call::Requeue => wake_all(&self.words[OTHER].value, Reach::Private),
            _ => answer,
        };
        ensure((answer, woken_later) == (WAITERS as i64, WAITERS as i64), || {
            Error::Contradicted(format!(
                "{WAITERS} threads slept, {answer} were woken or moved, and {woken_later} were found where they should be"
            ))
        })
    }
}

/// Wakes this number of sleepers, one by one. Returns how many, or [`NONE_WOKEN`].
#[inline(always)]
fn wake_each(word: &AtomicU32, count: usize) -> i64 {
    for _ in 0..count {
        if wake(word, Reach::Private) != 1 {
            return NONE_WOKEN;
        }
    }
    count as i64
}

impl Subject for Waiters {
    fn run(&mut self, iterations: u64, clock: &Clock) -> Result<Ticks> {
        clock.time_each(iterations, self, Self::await_sleep, Self::call, |waiters, answer| {
            waiters.check_answer(answer?).map(|()| Counts::Yes)
        })
    }

    fn report(&self) -> Report {
        Report { partners: self.waiters.iter().map(Partner::task).collect(), ..Report::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kit::runnable::{assert_cases_run, test_place};

    #[test]
    fn all_sleepers_are_woken_or_moved() {
        let place = test_place(&std::env::temp_dir(), Scale::Full);
        assert_cases_run(waiter_cases(), &place);
    }

    #[test]
    fn a_wake_up_of_no_sleeper_is_caught() {
        let place = test_place(&std::env::temp_dir(), Scale::Smoke);
        let mut waiters = Waiters::start(&place, Call::WakeAll, SLEEP).unwrap();
        waiters.await_sleep().unwrap();
        assert!(matches!(waiters.check_answer(15), Err(Error::Contradicted(_))));
    }
}

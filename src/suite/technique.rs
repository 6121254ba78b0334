//! # What is timed
//! What measuring itself costs, technique by technique. `flag`: the look at a flag that is off. `span/off`: a span of the
//! trace monitor that is switched off; `span/counter` and `span/virtual-clock` one that is on and reads the cycle counter
//! or the clock of the thread. `virtual-clock`: one reading of the process's clock. `sample`: a timer's expiry until its
//! handler has looked at the state and the address of its thread. `event/…`: an event handed to another CPU, through a slot
//! with one flag or a slot with two. `burst/ring`: so many events through a ring of slots, until the last has been taken;
//! `event` below it is one of them. `step`: one instruction of another process, looked at and let go.
//!
//! # What is not
//! The monitors' set-up. `event/…` is timed until the last event of a batch has been taken. A burst fits into the ring:
//! the sender alone, who need not wait for its end, pays less.
//! Programming the timer is in `sample`, once a look, as it is where periods are drawn by chance.
//!
//! # How we know
//! A span that is on is counted, and after each batch there must be one an iteration, and none where it was off. A witness
//! counts the entries of some spans. Every look must have been counted, and every one must have found the state that the
//! thread said. Of the events that two flags or a ring hand over number and sum must arrive, none of them twice; of one
//! flag the last must, and `captured` below the table says which share of them did. Each instruction that is stepped must
//! be one of the two of the loop that the other process is in, in turn.
//!
//! # What fools it
//! Back to back, spans overlap in the processor: around real work they may cost more, since they keep it from looking
//! ahead. With one flag the sender writes to its own cache as long as nobody fetches the line: the more is lost, the
//! cheaper it is. Events in a ring are the cheaper the further the sender is ahead, since a line then holds several of
//! them: hence bursts of one size, of which twice as many cost twice as much. Each of a burst of 16 costs seven times as
//! much as each of 1024, and with every slot on a line of its own each of 1024 ten times as much. In a guest a step and a
//! timer are answered by the hypervisor.
//!
//! # Reading the number
//! A monitor may be used where its cost times the frequency of the events is small: 1 % is one span in a hundred times its
//! cost. `burst/ring`'s `event` less than `span/virtual-clock` says that a hybrid monitor disturbs less than a software
//! one, and `step` over an instruction's own third of a nanosecond says why nobody traces everything.
//!
//! # Source
//! E. Kraemer, *Measurement Techniques* (slides 34 to 71): monitor artifact, programmable timers, interface registers.

use crate::case::need::{PINNED, TWO_CPUS};
use crate::case::{Case, Claim, Found, Group, OwnTasks, Place, Report, Rule, SetUp, Subject};
use crate::clock::{Clock, Ticks};
use crate::kit::parallel::all_stayed;
use crate::kit::placement::Placement;
use crate::kit::sampler::{Gaps, Sampler};
use crate::platform::partner::Task;
use crate::platform::ptrace::Stepper;
use crate::platform::{arch, time};
use crate::technique::hybrid::{Interface, Observer, OneWay, Ring, Tally, TwoWay, event};
use crate::technique::trace::Monitor;
use crate::{Error, Result};
use std::hint::black_box;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// The group.
pub const GROUP: Group =
    Group { name: "technique", manual: include_str!("technique.rs"), version: 1, cases, fits: &[] };

fn cases() -> Vec<Case> {
    let clock = ("clock_gettime", libc::SYS_clock_gettime);
    vec![
        Case::looped("flag", "a flag that is off, looked at", flags)
            .claim(Claim::NeverEnters)
            .claim(Claim::Executes(2.0))
            .claim(Claim::Linear)
            .predict(1.0, 0.0, "a load and a branch that is never taken, beside the loop's own"),
        span("off", "a span that is switched off", false, arch::read).claim(Claim::NeverEnters).predict(
            2.0,
            2.0,
            "the flag, and at the end whether there is something to end",
        ),
        span("counter", "a span by the cycle counter", true, arch::read).claim(Claim::NeverEnters).predict(
            45.0,
            20.0,
            "two reads of the counter, and some sums",
        ),
        span("virtual-clock", "a span by the thread's clock", true, time::thread_cpu_ns)
            .claim(Claim::Enters(vec![clock; 2]))
            .predict(300.0, 600.0, "two entries, each of which brings the thread's account up to date"),
        virtual_clock().claim(Claim::Enters(vec![clock])),
        sample(),
        handed::<OneWay>("one-way", "a slot with one flag", 0.0)
            .claim(Claim::Checked("no event came that was not sent, and the last one did"))
            .predict(
                1.0,
                1.0,
                "two stores to a line of its own, which the other fetches once in hundreds of events",
            ),
        handed::<TwoWay>("two-way", "a slot with two flags", 1.0).claim(Claim::Checked(WHOLE)).predict(
            330.0,
            10.0,
            "a line fetched from another core's cache, twice",
        ),
        burst(),
        step(),
    ]
}

const WHOLE: &str = "every event that was sent was captured once";

/// The flag, `n` times. It stays out of line, so that it can be held against its disassembly.
#[inline(never)]
fn flags(n: u64) {
    let flag = AtomicBool::new(false);
    let mut seen = 0u64;
    for _ in 0..n {
        if black_box(&flag).load(Relaxed) {
            seen += 1;
        }
    }
    black_box(seen);
}

fn span<N: Fn() -> u64 + Copy + 'static>(name: &str, title: &str, on: bool, now: N) -> Case {
    let set_up: SetUp = Box::new(move |_: &Place| {
        let monitor = Monitor::new(&["nothing"], now);
        monitor.switch(on);
        Ok(Box::new(move |n: u64, clock: &Clock| {
            monitor.clear();
            let ticks = clock.time(|| {
                for _ in 0..n {
                    drop(black_box(&monitor).span(0));
                }
            });
            let (seen, wanted) = (monitor.tally(0).calls, if on { n } else { 0 });
            match seen == wanted {
                true => Ok(ticks),
                false => Err(Error::Usage(format!("the monitor has seen {seen} spans and not {wanted}"))),
            }
        }) as Box<dyn Subject>)
    });
    Case::new(format!("span/{name}"), title, set_up)
        .claim(Claim::Checked(if on { "every span was counted" } else { "no span was counted" }))
        .claim(Claim::Linear)
}

fn virtual_clock() -> Case {
    let read = |n| {
        for _ in 0..n {
            black_box(time::clock_gettime_entry_ns(black_box(libc::CLOCK_PROCESS_CPUTIME_ID)));
        }
    };
    Case::looped("virtual-clock", "the process's clock, read", read)
        .control(|n| (0..n).for_each(|turn| _ = black_box(turn)))
        .claim(Claim::AboveControl)
        .claim(Claim::Linear)
        .predict(150.0, 300.0, "entry and exit, and the accounts of all threads")
}

/// The state that the thread says while it is looked at.
const STATE: u32 = 3;

fn sample() -> Case {
    let set_up: SetUp = Box::new(|_: &Place| {
        let sampler = Sampler::new(Gaps::Never, 0..usize::MAX, 0)?;
        sampler.state().store(STATE, Relaxed);
        Ok(Box::new(move |n: u64, clock: &Clock| looked(&sampler, n, clock)) as Box<dyn Subject>)
    });
    Case::new("sample", "a timer's expiry, until its handler has looked", set_up)
        .claim(Claim::Checked(
            "every look found the state that the thread said, within the addresses of all code",
        ))
        .claim(Claim::Linear)
        .predict(3_000.0, 4_000.0, "a timer programmed, its interrupt, a signal delivered and left")
}

fn looked(sampler: &Sampler, n: u64, clock: &Clock) -> Result<Ticks> {
    /// Turns of waiting for a handler, each some nanoseconds: no timer is so late.
    const PATIENCE: u32 = 1 << 30;
    let before = sampler.found();
    let ticks = clock.time(|| {
        for look in 1..=n {
            sampler.look_now();
            let came = || black_box(sampler).count() >= before.count + look;
            if !(0..PATIENCE).any(|_| came()) {
                break;
            }
        }
    });
    let after = sampler.found();
    let seen = after.in_state[STATE as usize] - before.in_state[STATE as usize];
    let there = after.in_range - before.in_range;
    match (seen, there) == (n, n) {
        true => Ok(ticks),
        false => Err(Error::Usage(format!("of {n} looks {seen} found the state and {there} an address"))),
    }
}

/// The measuring thread sends, and the other CPU counts.
struct Handed<I> {
    observer: Observer<I>,
    /// Events of an iteration. Where they are several, the last is waited for each time.
    burst: u64,
    sent: u64,
    /// The share of the events of each batch that was captured.
    captured: Vec<f64>,
    /// The smallest share that is right.
    least: f64,
}

fn handed<I: Interface>(name: &str, through: &str, least: f64) -> Case {
    let title = format!("an event handed to another CPU through {through}");
    elsewhere::<I>(format!("event/{name}"), title, 1, least)
}

/// Events of a burst, for which the ring always has room.
const BURST: u64 = 1024;

fn burst() -> Case {
    let title = format!("{BURST} events handed to another CPU through a ring of slots");
    elsewhere::<Ring>("burst/ring".into(), title, BURST, 1.0)
        .claim(Claim::Checked(WHOLE))
        .derive("event", Rule::OfCost(1.0 / BURST as f64))
        .predict(
            BURST as f64 * LINE * (1.0 / EVENTS_IN_A_LINE + 1.0 / LAG),
            BURST as f64 * 10.0,
            "a line of slots for every sixteen events, and who sends is asked once in eighty; the rest is the taking",
        )
}

/// Core cycles until a line has come from another core's cache.
const LINE: f64 = 165.0;
/// Numbers of 32 bits in a line of 64 bytes.
const EVENTS_IN_A_LINE: f64 = 16.0;
/// While who takes fetches the line that says how far the other is, the other sends so many more: the taking falls behind
/// at once, and asks again only when it has caught up.
const LAG: f64 = 80.0;

fn elsewhere<I: Interface>(name: String, title: String, burst: u64, least: f64) -> Case {
    let set_up: SetUp = Box::new(move |place: &Place| {
        let observer = Observer::<I>::start(Placement::Cross.cpu(place)?, 0)?;
        Ok(Box::new(Handed { observer, burst, sent: 0, captured: Vec::new(), least }) as Box<dyn Subject>)
    });
    Case::new(name, title, set_up)
        .own_tasks(OwnTasks::Elsewhere)
        .need(PINNED)
        .need(TWO_CPUS)
        .claim(Claim::Linear)
        .claim(Claim::Counted(all_stayed))
}

impl<I: Interface> Subject for Handed<I> {
    fn run(&mut self, iterations: u64, clock: &Clock) -> Result<Ticks> {
        let before = self.observer.tally();
        let events = iterations * self.burst;
        let (first, last) = (self.sent, self.sent + events);
        // Single events are all sent before the last is waited for.
        let stretch = if self.burst == 1 { events } else { self.burst };
        let (mut taken, mut arrived) = (true, Ok(()));
        let ticks = clock.time(|| {
            for begins in (first..last).step_by(stretch.max(1) as usize) {
                let interface = self.observer.interface();
                for number in begins..begins + stretch {
                    taken &= interface.send(event(number, 0));
                }
                if arrived.is_ok() {
                    arrived = self.observer.wait_for(event(begins + stretch - 1, 0));
                }
            }
        });
        self.sent = last;
        if !taken {
            return Err(Error::Usage("the monitor on the other CPU takes no events any more".into()));
        }
        arrived?;
        let after = self.observer.tally();
        let sum = (first..last).fold(0u64, |sum, number| sum.wrapping_add(u64::from(event(number, 0))));
        self.captured.push(share(&before, &after, (events, sum), self.least)?);
        Ok(ticks)
    }

    fn report(&self) -> Report {
        Report {
            partners: vec![self.observer.task()],
            found: vec![Found::new("captured", "", self.captured.clone())],
            ..Report::default()
        }
    }
}

/// The share of the events that was captured, given their number and sum.
fn share(before: &Tally, after: &Tally, (sent, sum): (u64, u64), least: f64) -> Result<f64> {
    let captured = after.captured() - before.captured();
    let share = captured as f64 / sent as f64;
    let whole = captured == sent && after.received - before.received == sent;
    if share > 1.0 || share < least || whole && after.sum.wrapping_sub(before.sum) != sum {
        return Err(Error::Usage(format!("{sent} events were sent and {captured} others captured")));
    }
    Ok(share)
}

/// Steps that it takes from the fork into the loop, at most.
const WAY_THERE: u32 = 100_000;

fn step() -> Case {
    let set_up: SetUp = Box::new(|_: &Place| Ok(Box::new(stepped) as Box<dyn Subject>));
    Case::new("step", "one instruction of another process, looked at and let go", set_up)
        .own_tasks(OwnTasks::SameCpu)
        .claim(Claim::Checked("every step was one of the loop's two instructions, in turn"))
        .claim(Claim::Linear)
        .predict(8_000.0, 10_000.0, "two switches of process, an exception, registers and code copied")
}

/// A child in an endless loop of two instructions. It is a new one for each batch, since a child of this kind is not left
/// to itself for longer than some seconds.
fn stepped(n: u64, clock: &Clock) -> Result<Ticks> {
    let mut stepper = Stepper::start(|| arch::register_loop(u64::MAX))?;
    let begins = arch::register_loop as *const () as usize;
    let mut recent = [0; 4];
    for _ in 0..WAY_THERE {
        recent.rotate_left(1);
        recent[3] = stepper.next()?.address;
        stepper.execute()?;
        let inside = (begins..begins + 128).contains(&recent[3]);
        if inside && recent[0] == recent[2] && recent[1] == recent[3] {
            break;
        }
    }
    let mut strange = 0;
    let mut refused = Ok(true);
    let ticks = clock.time(|| {
        for at in 0..n {
            match stepper.next() {
                Ok(step) => strange += u64::from(step.address != recent[2 + (at % 2) as usize]),
                Err(error) => refused = Err(error),
            }
            if refused.is_ok() {
                refused = stepper.execute();
            }
        }
    });
    match (refused?, strange) {
        (true, 0) => Ok(ticks),
        _ => Err(Error::Usage(format!("{strange} of {n} steps were elsewhere than in the loop"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_lost_or_changed_is_noticed() {
        let none = Tally { received: 0, repeated: 0, sum: 0, counts: [0; 256] };
        let four = Tally { received: 4, sum: 10, ..none };
        assert_eq!(share(&none, &four, (4, 10), 1.0).expect("whole"), 1.0);
        assert!(share(&none, &four, (4, 11), 1.0).is_err(), "another event");
        assert!(share(&none, &four, (5, 10), 1.0).is_err(), "one was lost");
        assert!(share(&none, &four, (3, 10), 0.0).is_err(), "more than were sent");
        assert_eq!(share(&none, &Tally { repeated: 2, ..four }, (4, 10), 0.0).expect("one flag"), 0.5);
    }
}

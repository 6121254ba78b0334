//! # What is timed
//! The cost of measuring, technique by technique. `flag`: testing a flag that is off. `span/off`: a span of the trace
//! monitor while it is switched off; `span/counter` and `span/virtual-clock` while it is on and reads the cycle
//! counter or the clock of the thread. `virtual-clock`: one reading of the process's clock. `sample`: from a timer's
//! expiry until its handler has recorded the state and the address of its thread. `event/…`: an event passed to
//! another CPU through a slot with one flag or with two. `burst/ring`: 1024 events through a ring of slots, until the
//! last was taken; `event` below it is one of them. `step`: one instruction of another process, observed and
//! executed.
//!
//! # What is not
//! Setting the monitors up. `event/…` is timed until the last event of a batch was taken. A burst fits into the ring:
//! a sender that does not wait for the end of the burst pays less. Programming the timer is part of `sample`, once per
//! expiry, as it is with random periods.
//!
//! # How we know
//! After each batch the monitor must have counted one span per iteration, and none if it was off. A witness counts
//! the system calls of some spans. Every expiry must have been counted, and each must have found the thread's state.
//! Two flags or a ring must deliver the number and the sum of the events, none of them twice. One flag must deliver
//! the last event; `captured` below the table is the share of events that it delivered. Each stepped instruction must be the
//! next of the two in the other process's loop.
//!
//! # What fools it
//! Consecutive spans overlap in the processor: around real work they may cost more, since they limit its look-ahead.
//! With one flag the sender writes to its own cache until the receiver fetches the line: the more events are lost,
//! the cheaper they are. Events in a ring become cheaper the further the sender is ahead, since a line then holds
//! several of them. So all bursts have the same size, and twice as many cost twice as much. An event in a burst of 16
//! costs seven times as much as in a burst of 1024; with every slot on its own line an event in a burst of 1024 costs ten
//! times as much. In a guest the hypervisor handles steps and timers. RISC-V has no single steps: there `step` is a breakpoint,
//! set and removed.
//!
//! # Reading the number
//! A monitor may be used if its cost times the frequency of the events is small. The overhead is 1 % if the time between two
//! spans is a hundred times the cost of a span. If `event` of `burst/ring` is less than `span/virtual-clock`, a hybrid monitor
//! disturbs less than a software monitor. An instruction itself takes a third of a nanosecond: compared with it, `step` shows
//! why programs are not traced instruction by instruction.
//!
//! # Source
//! E. Kraemer, *Measurement Techniques* (slides 34 to 71): monitor artifact, programmable timers, interface registers.

use crate::kit::contract::*;
use crate::kit::parallel::all_partners_stayed;
use crate::kit::placement::Placement;
use crate::platform::ptrace::{Stepped, Stepper};
use crate::platform::sampler::{Gaps, Sampler};
use crate::platform::{arch, time};
use crate::technique::hybrid::{Interface, Observer, OneWay, Ring, Tally, TwoWay, encode_event};
use crate::technique::trace::Monitor;
use std::hint::black_box;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

pub const GROUP: Group = Group::new("technique", include_str!("technique.rs"), cases);

#[rustfmt::skip]
fn cases() -> Vec<Case> {
    let clock = ("clock_gettime", libc::SYS_clock_gettime);
    vec![
        Case::looped("flag", "a flag that is off, looked at", test_flag)
            .claim(Claim::NeverEnters).claim(Claim::Executes(2.0)).claim(Claim::Linear)
            .predict(1.0, 0.0, "a load and a branch that is never taken, beside the loop's own"),
        span_case("off", "a span that is switched off", false, arch::read)
            .claim(Claim::NeverEnters).predict(2.0, 2.0, "the flag, and at the end whether there is something to end"),
        span_case("counter", "a span by the cycle counter", true, arch::read)
            .claim(Claim::NeverEnters).predict(45.0, 20.0, "two reads of the counter, and some sums"),
        span_case("virtual-clock", "a span by the thread's clock", true, time::thread_cpu_ns)
            .claim(Claim::Enters(vec![clock; 2])).predict(300.0, 600.0, "two entries, each of which brings the thread's account up to date"),
        virtual_clock_case().claim(Claim::Enters(vec![clock])),
        sample_case(),
        event_case::<OneWay>("one-way", "a slot with one flag", 0.0)
            .claim(Claim::Checked("no event came that was not sent, and the last one did"))
            .predict(1.0, 1.0, "two stores to a line of its own, which the other fetches once in hundreds of events"),
        event_case::<TwoWay>("two-way", "a slot with two flags", 1.0)
            .claim(Claim::Checked(WHOLE)).predict(330.0, 10.0, "a line fetched from another core's cache, twice"),
        burst_case(),
        step_case(),
    ]
}

const WHOLE: &str = "every event that was sent was captured once";

/// Tests the flag `n` times. This function is not inlined, so that its disassembly can be inspected.
#[inline(never)]
fn test_flag(n: u64) {
    let flag = AtomicBool::new(false);
    let mut seen = 0u64;
    for _ in 0..n {
        if black_box(&flag).load(Relaxed) {
            seen += 1;
        }
    }
    black_box(seen);
}

fn span_case<N: Fn() -> u64 + Copy + 'static>(name: &str, title: &str, on: bool, now: N) -> Case {
    let set_up = set_up(move |_| {
        let monitor = Monitor::new(&["nothing"], now);
        monitor.set_enabled(on);
        Ok(move |n: u64, clock: &Clock| {
            monitor.clear();
            let ticks = clock.time(|| {
                for _ in 0..n {
                    drop(black_box(&monitor).open_span(0));
                }
            });
            let (seen, wanted) = (monitor.tally(0).calls, if on { n } else { 0 });
            match seen == wanted {
                true => Ok(ticks),
                false => Err(Error::Disproved(format!("the monitor has seen {seen} spans and not {wanted}"))),
            }
        })
    });
    Case::new(format!("span/{name}"), title, set_up)
        .claim(Claim::Checked(if on { "every span was counted" } else { "no span was counted" }))
        .claim(Claim::Linear)
}

fn virtual_clock_case() -> Case {
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

/// The number of the state that the thread has while it is sampled.
const STATE: u32 = 3;

fn sample_case() -> Case {
    let set_up = set_up(|_| {
        let sampler = Sampler::new(Gaps::Never, 0..usize::MAX, 0)?;
        sampler.state_word().store(STATE, Relaxed);
        Ok(move |n: u64, clock: &Clock| time_samples(&sampler, n, clock))
    });
    Case::new("sample", "a timer's expiry, until its handler has looked", set_up)
        .claim(Claim::Checked(
            "every look found the state that the thread said, within the addresses of all code",
        ))
        .claim(Claim::Linear)
        .predict(3_000.0, 4_000.0, "a timer programmed, its interrupt, a signal delivered and left")
}

fn time_samples(sampler: &Sampler, n: u64, clock: &Clock) -> Result<Ticks> {
    /// The most turns of the loop that waits for the handler, some nanoseconds each. They last longer than a timer can be late.
    const PATIENCE: u32 = 1 << 30;
    let before = sampler.samples();
    let ticks = clock.time(|| {
        for look in 1..=n {
            sampler.sample_now();
            let came = || black_box(sampler).sample_count() >= before.count + look;
            if !(0..PATIENCE).any(|_| came()) {
                break;
            }
        }
    });
    let after = sampler.samples();
    let seen = after.in_state[STATE as usize] - before.in_state[STATE as usize];
    let there = after.in_range - before.in_range;
    ensure((seen, there) == (n, n), || {
        Error::Contradicted(format!("of {n} looks {seen} found the state and {there} an address"))
    })
    .map(|()| ticks)
}

/// Events that the measuring thread sends and an observer on another CPU counts.
struct Events<I> {
    observer: Observer<I>,
    /// Events per iteration. If there are several, each iteration waits for the last.
    burst: u64,
    sent: u64,
    /// For each batch, the share of its events that the observer captured, 0 to 1.
    captured: Vec<f64>,
    /// The least captured share that is not an error.
    least: f64,
}

fn event_case<I: Interface>(name: &str, through: &str, least: f64) -> Case {
    let title = format!("an event handed to another CPU through {through}");
    observed_events_case::<I>(format!("event/{name}"), title, 1, least)
}

/// Events of a burst, which fits into the ring.
const BURST: u64 = 1024;

fn burst_case() -> Case {
    let title = format!("{BURST} events handed to another CPU through a ring of slots");
    observed_events_case::<Ring>("burst/ring".into(), title, BURST, 1.0)
        .claim(Claim::Checked(WHOLE))
        .derived_figure("event", Rule::OfCost(1.0 / BURST as f64))
        .predict(
            BURST as f64 * LINE * (1.0 / EVENTS_IN_A_LINE + 1.0 / LAG),
            BURST as f64 * 10.0,
            "a line of slots for every sixteen events, and the sender is asked once in eighty; the rest is the taking",
        )
}

/// Core cycles to fetch a line from another core's cache.
const LINE: f64 = 165.0;
/// Numbers of 32 bits in a line of 64 bytes.
const EVENTS_IN_A_LINE: f64 = 16.0;
/// The number of events that are sent while the receiver fetches the line with the sender's position. The receiver falls
/// behind at once, and fetches the line again only when it has caught up.
const LAG: f64 = 80.0;

fn observed_events_case<I: Interface>(name: String, title: String, burst: u64, least: f64) -> Case {
    let set_up = set_up(move |place| {
        let observer = Observer::<I>::start(Placement::Cross.partner_cpu(place)?, 0)?;
        Ok(Events { observer, burst, sent: 0, captured: Vec::new(), least })
    });
    Case::new(name, title, set_up)
        .need(PINNED)
        .need(TWO_CPUS)
        .claim(Claim::Linear)
        .claim(Claim::Counted(all_partners_stayed))
}

impl<I: Interface> Subject for Events<I> {
    fn run(&mut self, iterations: u64, clock: &Clock) -> Result<Ticks> {
        let before = self.observer.tally();
        let events = iterations * self.burst;
        let (first, last) = (self.sent, self.sent + events);
        // A batch of single events waits only for the last event.
        let stretch = if self.burst == 1 { events } else { self.burst };
        let (mut taken, mut arrived) = (true, Ok(()));
        let ticks = clock.time(|| {
            for begins in (first..last).step_by(stretch.max(1) as usize) {
                let interface = self.observer.interface();
                for number in begins..begins + stretch {
                    taken &= interface.send(encode_event(number, 0));
                }
                if arrived.is_ok() {
                    arrived = self.observer.wait_for(encode_event(begins + stretch - 1, 0));
                }
            }
        });
        self.sent = last;
        if !taken {
            return Err(Error::Contradicted("the monitor on the other CPU takes no events any more".into()));
        }
        arrived?;
        let after = self.observer.tally();
        let sum =
            (first..last).fold(0u64, |sum, number| sum.wrapping_add(u64::from(encode_event(number, 0))));
        self.captured.push(captured_share(&before, &after, (events, sum), self.least)?);
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

/// The share of the events that were captured, 0 to 1. `sent` and `sum` are the number and the sum of the sent events.
fn captured_share(before: &Tally, after: &Tally, (sent, sum): (u64, u64), least: f64) -> Result<f64> {
    let captured = after.distinct_events() - before.distinct_events();
    let share = captured as f64 / sent as f64;
    let whole = captured == sent && after.received - before.received == sent;
    if share > 1.0 || share < least || whole && after.sum.wrapping_sub(before.sum) != sum {
        return Err(Error::Disproved(format!("{sent} events were sent and {captured} others captured")));
    }
    Ok(share)
}

/// The most single steps from the fork until the child is in its loop.
const WAY_THERE: u32 = 100_000;

fn step_case() -> Case {
    Case::new("step", "one instruction of another process, looked at and let go", set_up(|_| Ok(time_steps)))
        .own_tasks(OwnTasks::SameCpu)
        .claim(Claim::Checked("every step was one of the loop's two instructions, in turn"))
        .claim(Claim::Linear)
        .predict(8_000.0, 10_000.0, "two switches of process, an exception, registers and code copied")
}

/// Steps a child through an endless loop of two instructions. Each batch has a child of its own, since a stepped
/// child is killed after some seconds.
fn time_steps(n: u64, clock: &Clock) -> Result<Ticks> {
    let mut stepper = Stepper::start(|| arch::register_loop(u64::MAX))?;
    let begins = arch::register_loop as *const () as usize;
    let mut recent = [0; 4];
    for _ in 0..WAY_THERE {
        recent.rotate_left(1);
        recent[3] = stepper.next()?.address;
        stepper.execute_instruction()?;
        let inside = (begins..begins + 128).contains(&recent[3]);
        if inside && recent[0] == recent[2] && recent[1] == recent[3] {
            break;
        }
    }
    let mut strange = 0;
    let mut refused = Ok(Stepped::On);
    let ticks = clock.time(|| {
        for at in 0..n {
            match stepper.next() {
                Ok(step) => strange += u64::from(step.address != recent[2 + (at % 2) as usize]),
                Err(error) => refused = Err(error),
            }
            if refused.is_ok() {
                refused = stepper.execute_instruction();
            }
        }
    });
    match (refused?, strange) {
        (Stepped::On, 0) => Ok(ticks),
        _ => Err(Error::Contradicted(format!("{strange} of {n} steps were elsewhere than in the loop"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_lost_or_changed_is_noticed() {
        let none = Tally { received: 0, repeated: 0, sum: 0, counts: [0; 256] };
        let four = Tally { received: 4, sum: 10, ..none };
        assert_eq!(captured_share(&none, &four, (4, 10), 1.0).expect("whole"), 1.0);
        assert!(captured_share(&none, &four, (4, 11), 1.0).is_err(), "another event");
        assert!(captured_share(&none, &four, (5, 10), 1.0).is_err(), "one was lost");
        assert!(captured_share(&none, &four, (3, 10), 0.0).is_err(), "more than were sent");
        assert_eq!(
            captured_share(&none, &Tally { repeated: 2, ..four }, (4, 10), 0.0).expect("one flag"),
            0.5
        );
    }
}

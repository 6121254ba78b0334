//! # What is timed
//! A token from the measuring thread to a partner and back. The partner is a forked process or a thread, and the token
//! goes through two pipes, two event counters (`eventfd`), a pair of Unix sockets, two named pipes, two POSIX message
//! queues, two System V or two POSIX semaphores, two words that the ends sleep on (`futex`), the standard library's
//! mutex and condition variable, or one word that both ends poll. `yield` is one `sched_yield` beside a partner that
//! yields as well.
//!
//! # What is not
//! The start of the partner, and the reading of its counters. Everything that either end does for a round trip is timed.
//!
//! # How we know
//! The kernel's accounts of both ends are read before and after each sample: on one CPU each end must have left it at
//! least once a round trip, across CPUs each must have slept (where the CPUs are kept awake, for most round trips).
//! Neither end may be seen on a CPU other than its own. A call that fails ends the case, and so does a partner that
//! dies or has not answered for two seconds.
//!
//! # What fools it
//! Where the two ends run, and whether their CPUs enter idle states: both are in the id. `same-cpu` is two calls and
//! two switches on one CPU. `cross-cpu` pays for an interrupt to another CPU and for that CPU's wake-up, in a guest
//! for the exit from the host's halt; the kernel may poll for a while before it idles (`haltpoll`), which makes the
//! cost bimodal. In `cross-cpu-awake` a task of the idle class spins on each of the two CPUs. The two CPUs are the
//! measuring one and the highest other; on a machine with several sockets another choice gives another number. Two
//! ends that are awake can run in lockstep, so that each finds its token before it sleeps: that is another operation,
//! and the case is tried again. The scheduler may run the woken task at once or let the waker continue: both are two
//! switches. `yield` runs whatever the scheduler chooses; the evidence says what it chose. In our loops no function returns after a
//! switch. Such a return, as from read(2) of the C library, is mispredicted, since the kernel overwrites the return stack buffer of
//! the processor: in a guest on Zen 4 pipes took 3.96 µs without such a return, 4.40 with one at one end, 4.76 with one at both.
//!
//! # Reading the number
//! The control is the same calls in one process: two transfers. What the round trip costs beyond it is two switches,
//! each with its sleep and its wake-up, so `switch` below the table is half of that. Across CPUs there is no switch
//! on the way but a `hand-over`. Threads save the change of address space. `perf bench sched pipe` makes the same
//! calls as `pipe-processes`, with messages of four bytes.
//!
//! # Source
//! CSC501 project report (0.98 µs a switch of processes by blocking pipes, 0.48 µs of threads by semaphores, both with the
//! transfer subtracted) and CSE 221 project report (4.57 µs and 2.4 µs by blocking pipes); lmbench's `lat_pipe`, `lat_unix`, `lat_sem`,
//! `lat_fifo`; `perf bench sched pipe`.

use crate::kit::contract::*;
use crate::kit::ipc::{
    Bytes, Channel, Condition, Event, Futex, PolledWord, PosixSemaphore, Queue, Semaphore,
};
use crate::kit::parallel::all_partners_stayed;
use crate::kit::placement::{Placement, explain_refusal};
use crate::kit::round_trip::{
    Open, both_left_cpu, both_slept, check_both_counts, partner_passed_tokens, round_trip_set_up,
};
use crate::platform::futex::{Reach, wait, wake};
use crate::platform::partner::{Class, Kind, Partner};
use crate::platform::shared::Words;
use crate::platform::{process, syscall};
use Kind::{Process, Thread};
use Placement::{Awake, Cross, Same};
use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;

pub const GROUP: Group = Group::new("ping_pong", include_str!("ping_pong.rs"), cases)
    .headlines(&[Headline::new(123, "pipe-processes/same-cpu", "a byte by pipes, there and back")]);

#[rustfmt::skip]
fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    let mut add = |more: Vec<Case>| cases.extend(more);
    add(channel_cases("pipe", Process, Bytes::pipe_pair, &[Same, Cross, Awake]));
    add(channel_cases("eventfd", Process, Event::pair, &[Same, Cross]));
    add(channel_cases("unix-stream", Process, Bytes::unix_stream_pair, &[Same, Cross]));
    add(channel_cases("unix-datagram", Process, Bytes::unix_datagram_pair, &[Same]));
    add(channel_cases("fifo", Process, Bytes::fifo_pair, &[Same]));
    add(channel_cases("mqueue", Process, Queue::pair, &[Same, Cross]));
    add(channel_cases("sysv-semaphore", Process, Semaphore::pair, &[Same, Cross]));
    add(channel_cases("futex", Process, Futex::shared_pair, &[Same, Cross, Awake]));
    add(vec![polling_case(Process)]);
    add(vec![yield_case(Process)]);
    add(channel_cases("pipe", Thread, Bytes::pipe_pair, &[Same, Cross, Awake]));
    add(channel_cases("eventfd", Thread, Event::pair, &[Same]));
    add(channel_cases("futex", Thread, Futex::private_pair, &[Same, Cross, Awake]));
    add(channel_cases("posix-semaphore", Thread, PosixSemaphore::pair, &[Same]));
    add(channel_cases("condition", Thread, Condition::pair, &[Same, Cross]));
    add(vec![polling_case(Thread)]);
    add(vec![yield_case(Thread)]);
    cases
}

fn kind_plural(kind: Kind) -> &'static str {
    if kind == Process { "processes" } else { "threads" }
}

/// The channels whose token is passed by read(2) and write(2).
const BY_DESCRIPTOR: [&str; 5] = ["pipe", "eventfd", "unix-stream", "unix-datagram", "fifo"];

/// A case of the round trip over this channel for each placement of the partner.
fn channel_cases<C: Channel>(way: &'static str, kind: Kind, open: Open<C>, at: &[Placement]) -> Vec<Case> {
    let case = |&placement: &Placement| {
        let name = format!("{way}-{}/{}", kind_plural(kind), placement.name());
        let title = format!("to and fro by {way}, two {}, {}", kind_plural(kind), placement.title());
        let case = Case::new(name, title, round_trip_set_up(way, kind, open, placement));
        let derived = if placement == Same { "switch" } else { "hand-over" };
        let case = case.control_set_up(transfer_control(way, open)).derived_figure(derived, Rule::OfNet(0.5));
        let (hardware, software, why) = expected_cycles(placement);
        let case =
            placement.add_needs(case).need(channel_need(way)).claim(Claim::AboveControl).claim(
                if placement == Same { Claim::Counted(both_left_cpu) } else { Claim::Regime(both_slept) },
            );
        let case = if BY_DESCRIPTOR.contains(&way) {
            case.claim(Claim::Counted(partner_passed_tokens::<1>))
        } else {
            case
        };
        case.predict(hardware, software, why)
    };
    at.iter().map(case).collect()
}

/// Predicted core cycles of hardware and software for a round trip without its transfers: two switches.
fn expected_cycles(placement: Placement) -> (f64, f64, &'static str) {
    match placement {
        Same => (2_000.0, 3_400.0, "two sleeps, wake-ups and switches; registers and translations to refill"),
        Cross => (60_000.0, 10_000.0, "two interrupts to a CPU that sleeps, in a guest two exits from halt"),
        Awake => {
            (8_000.0, 8_000.0, "two interrupts to a CPU that is awake, two switches from the idle class")
        }
    }
}

/// The need that the channel can be opened and used. A sandbox may forbid a call, or a table of the kernel may be full.
fn channel_need(way: &'static str) -> Need {
    match way {
        "mqueue" => Need::new(|place| try_channel(Queue::pair, place)),
        "sysv-semaphore" => Need::new(|place| try_channel(Semaphore::pair, place)),
        "fifo" => Need::new(|place| try_channel(Bytes::fifo_pair, place)),
        "eventfd" => Need::new(|place| try_channel(Event::pair, place)),
        "unix-stream" | "unix-datagram" => Need::new(|place| try_channel(Bytes::unix_stream_pair, place)),
        _ => Need::new(|place| try_channel(Bytes::pipe_pair, place)),
    }
}

fn try_channel<C: Channel>(open: Open<C>, place: &Place) -> std::result::Result<(), String> {
    let channels = open(&place.scratch).map_err(|e| format!("it cannot be opened here: {e}"))?;
    match channels[0].send() {
        answer if answer < 0 => {
            Err(format!("it cannot be used here: {}", Error::decode_errno(answer).desc()))
        }
        _ => Ok(()),
    }
}

/// The control: the four calls of a round trip in one process, without a switch.
fn transfer_control<C: Channel>(name: &'static str, open: Open<C>) -> SetUp {
    set_up(move |place| {
        let [there, back] = open(&place.scratch)?;
        Ok(move |n: u64, clock: &Clock| {
            let mut lowest = 0;
            let ticks = clock.time(|| {
                for _ in 0..n {
                    lowest = lowest.min(there.send()).min(there.receive());
                    lowest = lowest.min(back.send()).min(back.receive());
                }
            });
            ensure(lowest >= 0, || explain_refusal(name, lowest, &mut [], n))?;
            Ok(ticks)
        })
    })
}

/// A case with one word that both ends poll: the cache line moves between CPUs, and neither end sleeps.
fn polling_case(kind: Kind) -> Case {
    let name = format!("polling-{}/{}", kind_plural(kind), Cross.name());
    let title = format!("to and fro in a word that two {} poll, {}", kind_plural(kind), Cross.title());
    Cross
        .add_needs(Case::new(name, title, round_trip_set_up("polling", kind, PolledWord::pair, Cross)))
        .claim(Claim::Linear)
        .claim(Claim::Counted(all_partners_stayed))
        .predict(300.0, 10.0, "a cache line fetched from the other core's cache twice")
}

/// Index of the word that is 1 while the partner yields.
const GATE: usize = 0;

pub(super) fn yield_case(kind: Kind) -> Case {
    let title = format!("sched_yield of two {} to each other, on one CPU", kind_plural(kind));
    let name = format!("yield-{}/{}", kind_plural(kind), Placement::Same.name());
    let control = set_up(|_| Ok(|n: u64, clock: &Clock| Ok(clock.time(|| yield_repeatedly(n)))));
    Placement::Same
        .add_needs(Case::new(name, title, yield_set_up(kind)))
        .control_set_up(control)
        .derived_figure("switch", Rule::PerEvent)
        .claim(Claim::Regime(check_both_ran))
        .predict(2_000.0, 2_500.0, "two switches, and two calls of the scheduler that it chooses in")
}

#[inline(always)]
fn yield_repeatedly(n: u64) {
    for _ in 0..n {
        black_box(syscall::sched_yield());
    }
}

struct Yielding {
    partner: Partner,
    gate: Arc<Words>,
    /// Context switches of the last run, away from this thread and back to it.
    switches: u64,
}

fn yield_set_up(kind: Kind) -> SetUp {
    set_up(move |place| {
        let gate = Arc::new(Words::new()?);
        let (theirs, nudged) = (Arc::clone(&gate), Arc::clone(&gate));
        let step = move || {
            let gate = &theirs[GATE].value;
            if gate.load(SeqCst) == 0 {
                wait(gate, 0, Reach::Shared);
            } else {
                syscall::sched_yield();
            }
            0
        };
        let nudge = move || {
            nudged[GATE].value.store(1, SeqCst);
            wake(&nudged[GATE].value, Reach::Shared);
        };
        let at = (Placement::Same.partner_cpu(place)?, Class::Ordinary);
        Ok(Yielding { partner: Partner::start(kind, at, step, nudge)?, gate, switches: 0 })
    })
}

impl Subject for Yielding {
    fn run(&mut self, iterations: u64, clock: &Clock) -> Result<Ticks> {
        let gate = &self.gate[GATE].value;
        gate.store(1, SeqCst);
        wake(gate, Reach::Shared);
        let before = switches_so_far()?;
        let ticks = clock.time(|| yield_repeatedly(iterations));
        self.switches = 2 * (switches_so_far()? - before);
        gate.store(0, SeqCst);
        Ok(ticks)
    }

    fn report(&self) -> Report {
        Report { partners: vec![self.partner.task()], events: Some(self.switches), ..Report::default() }
    }
}

/// The number of context switches away from this thread so far.
fn switches_so_far() -> Result<u64> {
    let usage = process::thread_usage()?;
    Ok(usage.voluntary_context_switches() as u64 + usage.involuntary_context_switches() as u64)
}

/// The number of yields in a batch that need not switch: those before the partner has woken.
const FIRST: u64 = 2;

/// Claim: both tasks ran in turn, so at least half of the yields were switches. The scheduler may continue the
/// task that yields: `pick_eevdf` chooses by deadlines, and `yield_task_fair` only postpones the deadline of the yielding
/// task. The case allows that, since it divides by the number of switches that happened.
fn check_both_ran(delta: &Delta, iterations: u64) -> Judged {
    const LEAST: f64 = 0.5;
    let own = delta.counted.involuntary_switches + delta.counted.voluntary_switches;
    let partner = delta.partners.map_or(0, |partners| partners.fewest_switches);
    check_both_counts("left the CPU", own + FIRST, partner + FIRST, iterations, LEAST)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::PartnerReport;
    use crate::kit::runnable::{assert_cases_run, test_place};

    #[test]
    fn every_case_makes_round_trips() {
        let directory = tempfile::tempdir().unwrap();
        let mut place = test_place(directory.path(), Scale::Smoke);
        assert_cases_run(cases(), &place);
        place.cpus.others.clear();
        let skipped = |case: &&Case| case.needs.iter().any(|need| need.check_place(&place).is_err());
        let cross = cases().iter().filter(|case| case.name.contains("cross-cpu")).count();
        assert_eq!(cases().iter().filter(skipped).count(), cross, "on one CPU");
    }

    #[test]
    fn yields_without_a_switch_are_allowed_but_both_ends_must_run() {
        let judged = |own, partner, yields| {
            let mut delta = Delta::default();
            delta.counted.involuntary_switches = own;
            delta.partners = Some(PartnerReport { fewest_switches: partner, ..PartnerReport::default() });
            check_both_ran(&delta, yields)
        };
        assert!(judged(0, 0, 2).is_ok(), "the partner had not woken");
        assert!(judged(800, 790, 1000).is_ok());
        assert!(judged(1000, 3, 1000).is_err());
    }
}

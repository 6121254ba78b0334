//! # What is timed
//! A token from the measuring thread to a partner and back. The partner is a forked process or a thread, and the token
//! goes through two pipes, two event counters (`eventfd`), a pair of Unix sockets, two named pipes, two POSIX message
//! queues, two System V or two POSIX semaphores, two words that the ends sleep on (`futex`), the standard library's
//! mutex and condition variable, or one word that both ends poll. `yield` is one `sched_yield` beside a partner that
//! yields as well.
//!
//! # What is not
//! The partner's start, and the reading of its counters. Everything that either end does for a round trip is timed.
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
//! ends that are awake can fall into step, so that each finds its token before it sleeps: that is another operation,
//! and the case is tried again. The scheduler may run the woken task at once or let the waker continue: both are two
//! switches. `yield` runs whatever the scheduler chooses; the evidence says what it chose.
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

use crate::case::{Case, Claim, Group, Need, Place, Rule, SetUp, set_up};
use crate::clock::Clock;
use crate::error::Error;
use crate::kit::ipc::{
    Bytes, Channel, Condition, Event, Futex, PolledWord, PosixSemaphore, Queue, Semaphore,
};
use crate::kit::parallel::all_partners_stayed;
use crate::kit::placement::{Placement, explain_refusal};
use crate::kit::round_trip::{Open, both_left_cpu, both_slept, partner_passed_tokens, round_trip_set_up};
use crate::platform::partner::Kind;
use crate::record::Headline;
use Kind::{Process, Thread};
use Placement::{Awake, Cross, Same};

mod turn_taking;

pub const GROUP: Group = Group::new("ping_pong", include_str!("ping_pong.rs"), cases).headlines(&HEADLINES);

const HEADLINES: [Headline; 1] =
    [Headline::new(123, "pipe-processes/same-cpu", "a byte by pipes, there and back")];

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
    add(vec![turn_taking::yield_case(Process)]);
    add(channel_cases("pipe", Thread, Bytes::pipe_pair, &[Same, Cross, Awake]));
    add(channel_cases("eventfd", Thread, Event::pair, &[Same]));
    add(channel_cases("futex", Thread, Futex::private_pair, &[Same, Cross, Awake]));
    add(channel_cases("posix-semaphore", Thread, PosixSemaphore::pair, &[Same]));
    add(channel_cases("condition", Thread, Condition::pair, &[Same, Cross]));
    add(vec![polling_case(Thread)]);
    add(vec![turn_taking::yield_case(Thread)]);
    cases
}

fn kind_plural(kind: Kind) -> &'static str {
    if kind == Process { "processes" } else { "threads" }
}

/// Channels whose tokens are read and written.
const BY_DESCRIPTOR: [&str; 5] = ["pipe", "eventfd", "unix-stream", "unix-datagram", "fifo"];

/// A case of the round trip over this channel for each placement of the partner.
fn channel_cases<C: Channel>(
    way: &'static str,
    kind: Kind,
    open: Open<C>,
    placements: &[Placement],
) -> Vec<Case> {
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
    placements.iter().map(case).collect()
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

/// The channel can be opened and used: a call may be forbidden, or a table full.
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
            if lowest < 0 {
                return Err(explain_refusal(name, lowest, &mut [], n));
            }
            Ok(ticks)
        })
    })
}

/// One word that both ends poll: the cache line moves, and neither end sleeps.
fn polling_case(kind: Kind) -> Case {
    let name = format!("polling-{}/{}", kind_plural(kind), Cross.name());
    let title = format!("to and fro in a word that two {} poll, {}", kind_plural(kind), Cross.title());
    Cross
        .add_needs(Case::new(name, title, round_trip_set_up("polling", kind, PolledWord::pair, Cross)))
        .claim(Claim::Linear)
        .claim(Claim::Counted(all_partners_stayed))
        .predict(300.0, 10.0, "a cache line fetched from the other core's cache twice")
}

#[cfg(test)]
mod tests;

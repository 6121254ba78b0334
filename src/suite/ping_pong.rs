//! # What is timed
//! One token there and one back between the measuring thread and a partner, which is a forked process or a thread
//! of its own: through two pipes, two counters of events (`eventfd`), a pair of Unix sockets, two named pipes, two
//! POSIX message queues, two System V semaphores, two words that are slept on (`futex`), the standard library's
//! mutex and condition variable, or one word that both poll. `yield` is one `sched_yield` with a partner that
//! yields as well.
//!
//! # What is not
//! The partner's start, and the check of its counters. Nothing of what either does for a round trip is left out.
//!
//! # How we know
//! Before and after each sample the kernel's accounts of both ends are read: on one CPU each of them must have
//! left it at least once a round trip, across CPUs each must have gone to sleep (and where the CPUs are kept
//! awake, mostly). Neither may be seen on another CPU than its own. A call that fails ends the case, and so does
//! a partner that dies or has not answered for two seconds.
//!
//! # What fools it
//! Where the two ends are, and whether the CPUs between fall asleep: both are in the id. `same-cpu` is two calls
//! and two switches on one CPU; `cross-cpu` pays for an interrupt to another CPU and for its waking, in a guest
//! for leaving the host's halt, and the kernel may poll a while before it sleeps (`haltpoll`), which makes it
//! bimodal; in `cross-cpu-awake` a task of the idle class spins on each of the two. Which two CPUs: the measuring one
//! and the highest other; on a machine with several sockets another choice is another number. Two ends that are
//! awake can fall into step, so that each finds its token before it sleeps: that is another operation, and the
//! case is tried again. The scheduler may let the woken run at once or the waker go on: both are two switches.
//! `yield` goes where the scheduler likes: what it did is in the evidence.
//!
//! # Reading the number
//! The control is the same calls in one process, two transfers. What the round trip costs beyond them is two
//! switches, each with the sleep and the waking that belong to it, so `switch` below the table is half of that;
//! across CPUs there is no switch in the way but a `hand-over`. Threads save the change of address space.
//! `perf bench sched pipe` makes the same calls as `pipe-processes`, with messages of four bytes.
//!
//! # Source
//! CSC501 project report (0.98 µs a switch of processes, 0.48 µs of threads) and CSE 221 project report (4.57 µs
//! and 2.4 µs), both with blocking pipes and the transfer taken off; lmbench's `lat_pipe`, `lat_unix`, `lat_sem`,
//! `lat_fifo`; `perf bench sched pipe`.

use crate::Error;
use crate::case::{Case, Claim, Group, Need, Place, Rule, SetUp, Subject};
use crate::clock::Clock;
use crate::kit::crowd::all_stayed;
use crate::kit::ipc::{Bytes, Condition, Event, Futex, Line, Queue, Semaphore, Toggle};
use crate::kit::placement::{Placement, refused};
use crate::kit::token::{Open, both_left, both_slept, round_trip};
use crate::platform::partner::Kind;
use Kind::{Process, Thread};
use Placement::{Awake, Cross, Same};

mod turn_taking;

/// The group.
pub const GROUP: Group =
    Group { name: "ping_pong", manual: include_str!("ping_pong.rs"), version: 1, cases, fits: &[] };

#[rustfmt::skip]
fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    let mut add = |more: Vec<Case>| cases.extend(more);
    add(on("pipe", Process, Bytes::pipes, &[Same, Cross, Awake]));
    add(on("eventfd", Process, Event::both, &[Same, Cross]));
    add(on("unix-stream", Process, Bytes::streams, &[Same, Cross]));
    add(on("unix-datagram", Process, Bytes::datagrams, &[Same]));
    add(on("fifo", Process, Bytes::fifos, &[Same]));
    add(on("mqueue", Process, Queue::both, &[Same, Cross]));
    add(on("sysv-semaphore", Process, Semaphore::both, &[Same, Cross]));
    add(on("futex", Process, Futex::shared, &[Same, Cross, Awake]));
    add(vec![polled(Process)]);
    add(vec![turn_taking::case(Process)]);
    add(on("pipe", Thread, Bytes::pipes, &[Same, Cross, Awake]));
    add(on("eventfd", Thread, Event::both, &[Same]));
    add(on("futex", Thread, Futex::private, &[Same, Cross, Awake]));
    add(on("condition", Thread, Condition::both, &[Same, Cross]));
    add(vec![polled(Thread)]);
    add(vec![turn_taking::case(Thread)]);
    cases
}

fn named(kind: Kind) -> &'static str {
    if kind == Process { "processes" } else { "threads" }
}

/// The round trip over this line, wherever the partner is to be.
fn on<L: Line>(way: &'static str, kind: Kind, open: Open<L>, placements: &[Placement]) -> Vec<Case> {
    let case = |&placement: &Placement| {
        let name = format!("{way}-{}/{}", named(kind), placement.name());
        let title = format!("to and fro by {way}, two {}, {}", named(kind), placement.words());
        let case = Case::new(name, title, round_trip(way, kind, open, placement));
        let derived = if placement == Same { "switch" } else { "hand-over" };
        let case = case.control_set_up(transfers(way, open)).derive(derived, Rule::OfNet(0.5));
        let (hardware, software, why) = expected(placement);
        placement
            .needed(case)
            .need(offered(way))
            .claim(Claim::AboveControl)
            .claim(if placement == Same { Claim::Counted(both_left) } else { Claim::Regime(both_slept) })
            .predict(hardware, software, why)
    };
    placements.iter().map(case).collect()
}

/// Core cycles of the hardware and of the software for a round trip without its transfers: two switches.
fn expected(placement: Placement) -> (f64, f64, &'static str) {
    match placement {
        Same => (2_000.0, 3_400.0, "two sleeps, wake-ups and switches; registers and translations to refill"),
        Cross => (60_000.0, 10_000.0, "two interrupts to a CPU that sleeps, in a guest two exits from halt"),
        Awake => {
            (8_000.0, 8_000.0, "two interrupts to a CPU that is awake, two switches from the idle class")
        }
    }
}

/// A call that is forbidden, or a table that is full, is met when the line is opened: then the case is skipped.
fn offered(way: &'static str) -> Need {
    match way {
        "mqueue" => Need::new(|place| opens(Queue::both, place)),
        "sysv-semaphore" => Need::new(|place| opens(Semaphore::both, place)),
        "fifo" => Need::new(|place| opens(Bytes::fifos, place)),
        "eventfd" => Need::new(|place| opens(Event::both, place)),
        "unix-stream" | "unix-datagram" => Need::new(|place| opens(Bytes::streams, place)),
        _ => Need::new(|place| opens(Bytes::pipes, place)),
    }
}

fn opens<L: Line>(open: Open<L>, place: &Place) -> std::result::Result<(), String> {
    let lines = open(&place.scratch).map_err(|e| format!("it cannot be opened here: {e}"))?;
    match lines[0].send() {
        answer if answer < 0 => Err(format!("it cannot be used here: {}", Error::errno(answer).desc())),
        _ => Ok(()),
    }
}

/// The control: what both ends do for a round trip, all of it by one process, so that nobody is switched to.
fn transfers<L: Line>(name: &'static str, open: Open<L>) -> SetUp {
    Box::new(move |place: &Place| {
        let [there, back] = open(&place.scratch)?;
        Ok(Box::new(move |n: u64, clock: &Clock| {
            let mut lowest = 0;
            let ticks = clock.time(|| {
                for _ in 0..n {
                    lowest = lowest.min(there.send()).min(there.receive());
                    lowest = lowest.min(back.send()).min(back.receive());
                }
            });
            if lowest < 0 {
                return Err(refused(name, lowest, &mut [], n));
            }
            Ok(ticks)
        }) as Box<dyn Subject>)
    })
}

/// One word that both ends poll: the cache line goes to and fro, and nobody sleeps.
fn polled(kind: Kind) -> Case {
    let name = format!("polling-{}/{}", named(kind), Cross.name());
    let title = format!("to and fro in a word that two {} poll, {}", named(kind), Cross.words());
    Cross
        .needed(Case::new(name, title, round_trip("polling", kind, Toggle::both, Cross)))
        .claim(Claim::Linear)
        .claim(Claim::Counted(all_stayed))
        .predict(300.0, 10.0, "a cache line fetched from the other core's cache twice")
}

#[cfg(test)]
mod tests;

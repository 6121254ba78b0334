//! # What is timed
//! Asking which of many descriptors can be read. One call asks for 10, 100 or 500 and does not wait: by `poll`, by
//! `select` and by `epoll_wait`. The descriptors are regular files, which are always ready; or pipes or TCP connections over
//! loopback. Of these none is ready, or (`…-last`) only the last one, permanently.
//!
//! # What is not
//! Opening, connecting and registering. `select` overwrites its set: the copy of some 70 to 130 bytes that every
//! program must make before each question is part of the figure. `epoll` does not accept regular files, so it has
//! no cases with them. The control is a loop without a call.
//!
//! # How we know
//! A witness counts the entries of some iterations: the one call, once each. Every answer must be the number of
//! descriptors that were made ready: none, one, or all. Each TCP connection is checked to be our own.
//!
//! # What fools it
//! The kernel's structures of a descriptor may be in the cache or not: 500 sockets are several hundred KiB of kernel
//! memory. The descriptors have the lowest possible numbers, because `select` looks at every number below the highest:
//! a program that asks about a few high numbers pays for all numbers below.
//!
//! # Reading the number
//! The slope of the fitted line is the cost of one more descriptor. `poll` and `select` pay it at every question;
//! `epoll_wait` pays only for ready descriptors. With 500 descriptors the ratio of the two is what a server saves.
//!
//! # Source
//! lmbench's `lat_select` (McVoy and Staelin 1996), which asks about one descriptor many times over; here each is a
//! file of its own. poll(2), select(2), epoll(7).

mod operation_poll;

use crate::kit::contract::*;
use crate::kit::kernel_call::{check_answers, no_call_control};
use crate::platform::arch::Answers;
use crate::platform::syscall::{EPOLL_WAIT, POLL, SELECT};
use operation_poll::{Descriptors, Kind, Polled, Question, Registered, Selected};
use std::os::fd::OwnedFd;

#[rustfmt::skip]
pub const GROUP: Group = Group::new("wait", include_str!("wait.rs"), cases)
    .version(2)
    .fits(&[
        Fit { step: "a further regular file in poll", prefix: "wait/poll-file/" },
        Fit { step: "a further pipe in poll", prefix: "wait/poll-pipe/" },
        Fit { step: "a further pipe in poll, the last ready", prefix: "wait/poll-pipe-last/" },
        Fit { step: "a further TCP connection in poll", prefix: "wait/poll-tcp/" },
        Fit { step: "a further regular file in select", prefix: "wait/select-file/" },
        Fit { step: "a further pipe in select", prefix: "wait/select-pipe/" },
        Fit { step: "a further pipe in select, the last ready", prefix: "wait/select-pipe-last/" },
        Fit { step: "a further TCP connection in select", prefix: "wait/select-tcp/" },
        Fit { step: "a further pipe in epoll_wait", prefix: "wait/epoll-pipe/" },
        Fit { step: "a further pipe in epoll_wait, the last ready", prefix: "wait/epoll-pipe-last/" },
        Fit { step: "a further TCP connection in epoll_wait", prefix: "wait/epoll-tcp/" },
        Fit { step: "a further TCP connection in epoll_wait, the last ready", prefix: "wait/epoll-tcp-last/" },
    ])
    .headlines(&[Headline::new(125, "epoll-pipe/100", "epoll, 1 of 100 ready")]);

/// Numbers of descriptors.
const COUNTS: [usize; 3] = [10, 100, 500];

/// The descriptors of a case: their kind, and whether the last one is ready.
#[derive(Clone, Copy)]
struct Watched {
    /// Part of the case's name.
    name: &'static str,
    /// Part of its title.
    title: &'static str,
    kind: Kind,
    /// Whether the last descriptor is made ready.
    last: bool,
}

const WATCHED: [Watched; 5] = [
    Watched { name: "file", title: "regular files", kind: Kind::File, last: false },
    Watched { name: "pipe", title: "pipes, none ready", kind: Kind::Pipe, last: false },
    Watched { name: "pipe-last", title: "pipes, the last ready", kind: Kind::Pipe, last: true },
    Watched { name: "tcp", title: "TCP connections, none ready", kind: Kind::Tcp, last: false },
    Watched { name: "tcp-last", title: "TCP connections, the last ready", kind: Kind::Tcp, last: true },
];

impl Watched {
    /// The number of ready descriptors among `count`.
    fn ready_count(self, count: usize) -> i64 {
        (if self.kind == Kind::File { count } else { usize::from(self.last) }) as i64
    }

    /// Predicted cost of one descriptor, core cycles, and the reason.
    fn cost_per_descriptor(self) -> (f64, &'static str) {
        match self.kind {
            Kind::File => (25.0, "each descriptor found and given back; a file is ready unasked"),
            Kind::Pipe => (50.0, "each descriptor found, its pipe asked, given back"),
            Kind::Tcp => (90.0, "each descriptor found, its socket asked through three layers, given back"),
        }
    }
}

fn cases() -> Vec<Case> {
    // For poll and select a ready connection costs as much as a ready pipe, and the last descriptor as much as any other.
    let asked = || WATCHED.into_iter().filter(|of| !(of.last && of.kind == Kind::Tcp));
    let rarely = |of: Watched, case: Case| if of.last { case.need(FULL_SCALE) } else { case };
    let mut cases = Vec::new();
    for of in asked() {
        let (each, why) = of.cost_per_descriptor();
        cases.extend(COUNTS.map(|count| {
            let case = question_case("poll", of, count, |open| Ok(Polled::new(open)))
                .claim(Claim::Enters(vec![POLL]));
            rarely(of, case.predict(100.0, 150.0 + (each + 10.0) * count as f64, why))
        }));
    }
    for of in asked() {
        let (each, why) = of.cost_per_descriptor();
        cases.extend(COUNTS.map(|count| {
            let case = question_case("select", of, count, Selected::new).claim(Claim::Enters(vec![SELECT]));
            rarely(of, case.predict(100.0, 200.0 + each * count as f64, why))
        }));
    }
    for of in WATCHED.into_iter().filter(|of| of.kind != Kind::File) {
        let found = if of.last { 200.0 } else { 0.0 };
        cases.extend(COUNTS.map(|count| {
            question_case("epoll", of, count, Registered::new).claim(Claim::Enters(vec![EPOLL_WAIT])).predict(
                100.0,
                100.0 + found,
                "a list of what is ready is looked at, whatever is registered",
            )
        }));
    }
    cases
}

/// A case of one question per iteration. `make` prepares the question for the open descriptors.
fn question_case<Q: Question + 'static>(
    call: &'static str,
    of: Watched,
    count: usize,
    make: impl Fn(&[OwnedFd]) -> Result<Q> + 'static,
) -> Case {
    let ready = of.ready_count(count);
    let asked = set_up(move |place| {
        let open = Descriptors::new(of.kind, count, &place.scratch)?;
        if of.last {
            open.make_last_ready()?;
        }
        let mut question = make(&open.asked)?;
        wait_until_ready(call, ready, &mut question)?;
        Ok(move |n: u64, clock: &Clock| {
            let _alive = &open;
            let mut seen = Answers::default();
            let ticks = clock.time(|| seen = question.ask_repeatedly(n));
            check_answers(call, &(ready..=ready), seen).map(|()| ticks)
        })
    });
    let title = format!("{call} over {count} {}", of.title);
    Case::new(format!("{call}-{}/{count}", of.name), title, asked)
        .control_set_up(no_call_control())
        .claim(Claim::Checked("every answer was the number of descriptors that are ready"))
        .claim(Claim::AboveControl)
        .claim(Claim::Linear)
}

/// Asks until `ready` descriptors are reported, at most 1000 times: over TCP the written byte arrives a moment later.
fn wait_until_ready(call: &str, ready: i64, question: &mut impl Question) -> Result<()> {
    const ATTEMPTS: u32 = 1_000;
    let mut seen = question.ask_repeatedly(1);
    for _ in 0..ATTEMPTS {
        if seen.lowest == ready || seen.lowest < 0 {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(1));
        seen = question.ask_repeatedly(1);
    }
    check_answers(call, &(ready..=ready), seen)
}

//! # What is timed
//! CPU time, not time: what the operation takes from a fluid process on its CPU, which uses up whatever is left of
//! it. Nobody's accounts are asked for the number, so that work done in interrupts is in it, whomever the kernel
//! charges. `compute` is arithmetic of so many microseconds; `loopback` a TCP message of so many bytes to a server on
//! another CPU and its reply of one byte, `steered` the same where receiving is steered to the CPU of the measuring
//! process, `nodes` between two network namespaces with Ethernet frames of 1500 bytes on a wire of 300 Mbit/s between
//! (`scripts/two-nodes`), each with a CPU of its own; `throughput` the last with computation after each reply, 30
//! multiplications a byte, and the messages a second of a CPU beside it that several such senders never leave idle;
//! `loops` a message of 2000 bytes in runs of so many; `direct-read` 4 KiB from a device past the page cache; `pipe` a
//! token to a process on another CPU and back; `nanosleep` a sleep of 100 µs.
//!
//! # What is not
//! What the fluid loses when a run begins and ends is measured on empty runs and taken off. What another CPU does for
//! the operation is not displaced here: the server's own work, and on `loopback` none of it as far as it is done there.
//!
//! # How we know
//! The fluid covers each run: it says when its window opens before the run and closes after it. Every run stands
//! between two calibrations of the fluid alone. Three estimators that trust different things must agree, or it is
//! said. Runs in which other tasks had the CPU, the hypervisor took time, or a turn of the fluid changed its length are
//! told by covariates and left out; where too few are left the paper's estimate is missing and it is said that the
//! machine was not quiet. A cost that is negative, or more than the time that there was, is never printed. Every reply
//! carries the number of the message that it answers; who waits must have slept.
//!
//! # What fools it
//! A CPU that changes its pace between calibration and run: the gap estimator takes its pace from the run itself and is
//! the number shown. Another process on the CPU: it is taken out by the accounts, and interrupts that came in its time
//! are counted as often as in the fluid's, by the waits that ended there and not in the fluid; where most did, and
//! where two estimators contradict each other and there is no third, there is no number. A connection with a past: when
//! the other end acknowledges hangs on it, so that one message had two costs, a third apart; `scripts/two-nodes` has every
//! frame acknowledged as it comes. Senders of one nice value: who finds another at work waits until that one sleeps, and
//! spares itself a switch. With a sender that never slept, since its reply came while it computed, the rate was up to
//! 13 % above what was predicted; and a message sent right after the last reply cost 4 µs more than one sent after
//! computation. So `throughput` predicts the very operation that was measured. The fluid keeps the CPU awake,
//! so that what it costs to leave sleep is not in the number; and its caches must be filled again after each
//! interruption, which is (the error terms say how much). A kernel that charges interrupts to nobody leaves the wall
//! clock alone.
//!
//! # Reading the number
//! `accounting` below the table is what the process clock says, `missed` the share of the cost that it does not say.
//! Negative is an over-charge: the kernel charges a task that is woken from another CPU from the moment at which the
//! interrupt was sent, while the fluid still runs; where one arrives at once there is next to none. How much a send
//! misses hangs on when it is acknowledged: over a wire that takes no time (`--wire none`) the first of several frames
//! is acknowledged while the next are being sent, and the interrupt is charged to the sender, as it should be.
//! `throughput` is a message and computation, measured of one sender beside the fluid; what one busy CPU does of them
//! follows from the cost of one, and is held against four senders that wait asleep for their replies while others of them
//! compute. `syscost report displacement` prints them, and the tables of the paper with these numbers beside, and the
//! error terms.
//!
//! # Source
//! Woodside, Courtois, Schramm: A "Displacement" Technique for Robust Portable Measurement of Communications Processing
//! Overheads, Carleton University, 1997. Tables 1 to 4, figures 2 to 6.

mod exchange;
mod node;
mod other;
mod sender;

use crate::case::need::{FULL_SCALE, Need, PINNED, TWO_CPUS};
use crate::case::{Case, Claim, Group, Repetition};
use crate::record::{Axis, Curve};
use exchange::{ANSWERED, Exchange, Way};

pub const GROUP: Group = Group::new("displacement", include_str!("displacement.rs"), cases).curves(&[
    cpu_time_curve("displacement/loopback/", "loopback"),
    cpu_time_curve("displacement/steered/", "steered"),
    cpu_time_curve("displacement/nodes/", "between namespaces"),
]);

/// A curve of CPU time along the size of a message.
const fn cpu_time_curve(prefix: &'static str, title: &'static str) -> Curve {
    Curve::new(prefix, title, Axis::Bytes("message")).chart("CPU time")
}

/// The sizes of the paper's tables, bytes.
const SIZES: [usize; 8] = [1000, 2000, 3000, 4000, 5000, 6000, 7000, 8000];
/// The size of its fourth table.
const LOOPED: usize = 2000;
/// Core cycles of computation a byte: a byte takes 27 ns at 300 Mbit/s, the computation half as long again, at 3 GHz.
const COMPUTED: f64 = 120.0;
/// Runs of its fourth table.
const REPLICATIONS: usize = 20;

fn cases() -> Vec<Case> {
    let mut cases: Vec<_> = (1..=8).map(|i| other::compute(400 * i)).collect();
    for way in [Way::Loopback, Way::Steered, Way::Nodes] {
        cases.extend(SIZES.map(|bytes| message(way, bytes)));
    }
    cases.extend(SIZES.map(throughput));
    cases.extend([200, 1000, 5000, 10_000, 15_000].map(loops));
    cases.extend([other::direct_read(), other::pipe(), other::nanosleep()]);
    cases
        .into_iter()
        .map(|case| if case.displaced.is_some() { case } else { case.displaced(Repetition::default()) })
        .collect()
}

fn message(way: Way, bytes: usize) -> Case {
    let title = format!("TCP message of {bytes} bytes, reply of one, {}", way.words());
    let case = Case::new(format!("{}/{bytes}B", way.name()), title, Exchange::set_up(way, bytes));
    exchanged(case, way, bytes)
}

/// What all exchanges need, claim and predict.
fn exchanged(case: Case, way: Way, bytes: usize) -> Case {
    let (hardware, software, why) = way.expected(bytes);
    case.need(PINNED)
        .need(TWO_CPUS)
        .need(way.need())
        .claim(Claim::Checked(ANSWERED))
        .claim(Claim::Counted(other::slept))
        .predict(hardware, software, why)
}

fn throughput(bytes: usize) -> Case {
    let title =
        format!("TCP message of {bytes} bytes between two nodes and computation, and the rate of a busy CPU");
    let case = Case::new(format!("throughput/{bytes}B"), title, Exchange::set_up_saturated(bytes));
    let (hardware, software, _) = Way::Nodes.expected(bytes);
    exchanged(case, Way::Nodes, bytes).need(Need::new(sender::may_be_less_nice)).predict(
        hardware + COMPUTED * bytes as f64,
        software,
        "a message, and half as long again as it is on the wire",
    )
}

fn loops(count: u64) -> Case {
    let title = format!("TCP message of {LOOPED} bytes between two nodes, in runs of {count}");
    let case = Case::new(format!("loops/{count}"), title, Exchange::set_up(Way::Nodes, LOOPED));
    let case = exchanged(case, Way::Nodes, LOOPED);
    let case = if count > 1000 { case.need(FULL_SCALE) } else { case };
    case.displaced(Repetition { iterations: Some(count), runs: Some(REPLICATIONS) })
}

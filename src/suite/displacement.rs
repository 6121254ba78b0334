//! # What is timed
//! CPU time, not elapsed time: what the operation takes from a *fluid* process on the same CPU, which uses whatever
//! CPU time is left. The number does not come from the kernel's accounts, so it includes work done in interrupts,
//! whichever task the kernel charges for it. `compute` is arithmetic for a number of microseconds. `loopback` is a
//! TCP message of a number of bytes to a server on another CPU and its reply of one byte; `steered` is the same with
//! receive work steered to the CPU of the measuring process; `nodes` is the same between two network namespaces, over
//! Ethernet frames of 1500 bytes and a wire of 300 Mbit/s (`scripts/two-nodes`), each namespace with a CPU of its
//! own. `tcp-peer` is the same to a machine that runs `syscost peer`. `loopback-receive` and `nodes-receive` ask by one byte for
//! a message of a number of bytes. `rpc` is a remote procedure call of two numbers, marshalled as Sun RPC does it. `sender` is
//! `nodes` with computation while the message is under way. The computation takes 1.13 times as long as a message and its reply
//! took at set-up; it is lengthened by this factor until 99 of 100 replies have arrived when they are read. One such sender hardly
//! leaves its CPU idle, and its messages per second are measured without the fluid. `computation` is such computation by itself.
//! `throughput` is `nodes` with the computation after each reply, and the messages per second of a CPU that six such senders
//! never leave idle.
//! `loops` is a message of 2000 bytes in runs of a number of messages. `direct-read` reads 4 KiB from a device past the page
//! cache, `pipe` sends a token to a process on another CPU and back, `nanosleep` sleeps 100 µs.
//!
//! # What is not
//! What the fluid loses when a run begins and ends is measured on empty runs and subtracted. Work on another CPU
//! displaces nothing here: the server's own work, and on `loopback` and `tcp-peer` any part of the operation that is
//! done there. The number of `tcp-peer` lacks the interrupts of an interface whose affinity is another CPU.
//!
//! # How we know
//! The fluid covers each run: its window opens before the run and closes after it. Every run stands between two
//! calibrations of the fluid alone. Three estimators that rest on different assumptions must agree; where they do
//! not, the output says so. Covariates find the runs in which other tasks had the CPU, the hypervisor took time, or
//! the fluid's loop changed its length; these runs are left out. Where too few runs are left, the paper's estimate is
//! missing and the output says that the machine was not quiet. A cost below zero, or above the time of the run,
//! is never printed. Every reply carries the number of the message that it answers, and the reply to a remote call also the sum
//! of its arguments. A process that waits must have slept; if its replies arrived before it slept, for example because another
//! task had its CPU meanwhile, it is measured again.
//!
//! # What fools it
//! A CPU that changes its frequency between calibration and run: the number shown is that of the gap estimator, which
//! takes the fluid's pace from the run itself. Another process on the CPU: its time is subtracted by the kernel's
//! accounts. The interrupts in its time are estimated from those in the fluid's time, by the waits that ended in its time and
//! not in the fluid's. No number is given where most waits did so, or where two estimators contradict each other and there is
//! no third. A connection's history: it decides when the other end acknowledges, so that one message had
//! two costs, a third apart; `scripts/two-nodes` has every frame acknowledged on arrival. A sender that paces its
//! frames, as bbr does, is interrupted by a timer before each frame that waits: three times for 5000 bytes and five times for
//! 8000. The number depends on its estimate of the wire, which changes with the pauses between messages. A queue that
//! stands for the wire has such timers, too. `scripts/two-nodes` sends by reno, and does the work of the wire on the
//! other CPU. Senders with equal nice values: one that is woken while another works waits until that one sleeps, and
//! saves a switch. A sender that never sleeps, because its reply comes while it computes, is spared a sleep, a wake-up
//! and two switches: the table of `sender` shows how much more the message costs by itself. The fluid keeps the CPU awake,
//! so the number excludes what leaving an idle state costs. The fluid must refill its caches after each interruption;
//! that is in the number, and the error terms say how much. With a kernel that charges interrupts to no task, only the
//! wall clock is left.
//!
//! # Reading the number
//! `accounting` below the table is what the process clock says, `missed` the share of the cost that the process clock
//! misses. A negative share is an over-charge: the kernel charges a task that another CPU wakes from the moment at
//! which the interrupt was sent, while the fluid still runs; where interrupts arrive at once there is hardly any. How
//! much a send misses depends on when it is acknowledged: over a wire without delay (`--wire none`) the first of
//! several frames is acknowledged while the next are being sent, and the interrupt is charged to the sender,
//! correctly. `throughput` is a message and computation, measured for one sender beside the fluid. The rate that
//! follows from this cost for a busy CPU is compared with that of six senders, each of which waits asleep for its
//! reply while others compute. `sender` is the paper's own experiment: the sum of `nodes` and `computation`, each
//! measured by itself, predicts the rate of one sender. `computation` counts in this sum for as many multiplications as the sender did. The
//! record keeps this number, which depends on the wire and on the machine: the costs of `sender` and `throughput` cannot be
//! compared between machines, but the errors of their predictions can. `syscost report --paper` prints all predictions, the
//! tables of the paper beside these numbers, and the error terms. The turns of the fluid in a window of its
//! calibration, L(1), are fewer than in a run, L(2): the resolution allows for it, and both are printed.
//!
//! # Source
//! Woodside, Courtois, Schramm: A "Displacement" Technique for Robust Portable Measurement of Communications Processing
//! Overheads, Carleton University, 1997. Tables 1 to 4, figures 2 to 6.

mod exchange;
mod local_case;
mod message_path;
mod rpc;
mod shared_cpu;

use crate::kit::contract::*;
use crate::kit::remote;
use exchange::{ANSWERED, Exchange, LoneSender, Sizes};
use message_path::NetworkPath::{self, Loopback, Nodes, Steered};
use shared_cpu::SharedCpu;
use std::cell::Cell;
use std::rc::Rc;

pub const GROUP: Group =
    Group::new("displacement", include_str!("displacement.rs"), cases).version(2).curves(&[
        cpu_time_curve("displacement/loopback/", "loopback"),
        cpu_time_curve("displacement/steered/", "steered"),
        cpu_time_curve("displacement/nodes/", "between namespaces"),
        cpu_time_curve("displacement/tcp-peer/", "to the peer"),
        cpu_time_curve("displacement/loopback-receive/", "received by the loopback"),
        cpu_time_curve("displacement/nodes-receive/", "received between namespaces"),
    ]);

/// A curve of CPU time along the size of a message.
const fn cpu_time_curve(prefix: &'static str, title: &'static str) -> Curve {
    Curve::new(prefix, title, Axis::Bytes("size of the message")).with_chart("CPU time")
}

/// Message sizes of the paper's tables, bytes.
const SIZES: [usize; 8] = [1000, 2000, 3000, 4000, 5000, 6000, 7000, 8000];
/// Sizes of messages that are received, bytes.
const RECEIVED: [usize; 4] = [1000, 2000, 4000, 8000];
/// Message size of the paper's fourth table, bytes.
const LOOPED: usize = 2000;
/// Runs that count for a row of the paper's fourth table; runs that are left out are not among them.
const REPLICATIONS: usize = 20;
/// What a sender is predicted to compute, core cycles at 3 GHz: 27 ns for each byte on a wire of 300 Mbit/s, and 100 µs until the
/// server has been woken and its reply is there.
const COMPUTED_A_BYTE: f64 = 80.0;
const COMPUTED_A_MESSAGE: f64 = 300_000.0;

fn cases() -> Vec<Case> {
    let mut cases: Vec<_> = (1..=8).map(|i| local_case::compute_case(400 * i)).collect();
    for path in [Loopback, Steered, Nodes] {
        cases.extend(SIZES.map(|bytes| message_case(path, bytes)));
    }
    cases.extend(SIZES.map(peer_message_case));
    cases.extend(SIZES.map(throughput_case));
    cases.extend(SIZES.map(sender_case));
    // It has the need of the `sender` cases, whose rate it helps to predict.
    cases.push(local_case::sender_computation_case().need(Nodes.need()));
    cases.extend([200, 1000, 5000, 10_000, 15_000].map(loops_case));
    cases.extend([local_case::direct_read_case(), local_case::pipe_case(), local_case::nanosleep_case()]);
    for path in [Loopback, Nodes] {
        cases.extend(RECEIVED.map(|bytes| receive_case(path, bytes)));
    }
    cases.extend([Loopback, Nodes].map(rpc::call_case));
    let displaced = |case: Case| match case.displaced {
        Some(_) => case,
        None => case.by_displacement(Repetition::default()),
    };
    cases.into_iter().map(displaced).collect()
}

fn message_case(path: NetworkPath, bytes: usize) -> Case {
    let title = format!("TCP message of {bytes} bytes, reply of one, {}", path.title());
    let start = start_exchange(path, Sizes::sent(bytes));
    exchange_case(format!("{}/{bytes}B", path.name()), title, (path, bytes), start)
}

/// The mirror of [`message_case`]: this process sends one byte and receives the message. Since the byte asks for the message, no
/// message is under way before or after a run.
fn receive_case(path: NetworkPath, bytes: usize) -> Case {
    let title = format!("TCP message of {bytes} bytes received, asked for by one byte, {}", path.title());
    let start = start_exchange(path, Sizes::received(bytes));
    exchange_case(format!("{}-receive/{bytes}B", path.name()), title, (path, bytes), start)
}

/// As [`message_case`], to a machine that runs `syscost peer`.
fn peer_message_case(bytes: usize) -> Case {
    let (hardware, software, why) = Nodes.expected_cycles(bytes);
    remote::answer_case(bytes as u32)
        .need(PINNED)
        .claim(Claim::Regime(local_case::check_slept))
        .predict(hardware, software, why)
}

/// A set-up of an exchange without computation.
fn start_exchange(path: NetworkPath, sizes: Sizes) -> SetUp {
    set_up(move |place| Exchange::start(path, sizes, 0, place))
}

/// The case of one sender that waits for its replies: what it needs, claims and predicts.
fn exchange_case(name: String, title: String, (path, bytes): (NetworkPath, usize), start: SetUp) -> Case {
    let (hardware, software, why) = path.expected_cycles(bytes);
    Case::new(name, title, start)
        .need(PINNED)
        .need(TWO_CPUS)
        .need(path.need())
        .claim(Claim::Checked(ANSWERED))
        .claim(Claim::Regime(local_case::check_slept))
        .predict(hardware, software, why)
}

/// Multiplications of a sender for each message. They are calibrated when the case is set up; the subject that is set up next, with
/// which the prediction is compared, computes as many.
#[derive(Clone, Default)]
struct SharedComputation(Rc<Cell<u64>>);

impl SharedComputation {
    /// Starts an exchange between two nodes, and calibrates its computation.
    fn start_calibrated(&self, bytes: usize, place: &Place) -> Result<Exchange> {
        let mut exchange = Exchange::start(Nodes, Sizes::sent(bytes), 0, place)?;
        self.0.set(exchange.calibrate_computation()?);
        Ok(exchange)
    }
}

fn throughput_case(bytes: usize) -> Case {
    let title =
        format!("TCP message of {bytes} bytes between two nodes and computation, and the rate of a busy CPU");
    let found = SharedComputation::default();
    let same = found.clone();
    let start = set_up(move |place| found.start_calibrated(bytes, place));
    let saturated = set_up(move |place| SharedCpu::start(Nodes, Sizes::sent(bytes), same.0.get(), place));
    let (hardware, software, _) = Nodes.expected_cycles(bytes);
    exchange_case(format!("throughput/{bytes}B"), title, (Nodes, bytes), start)
        .need(Need::new(shared_cpu::may_lower_nice_value))
        .by_displacement(Repetition { saturated: Some(saturated), ..Repetition::default() })
        .predict(hardware + computed_cycles(bytes), software, "a message, and the multiplications")
}

/// Predicted core cycles of a sender's computation for a message of this number of bytes.
fn computed_cycles(bytes: usize) -> f64 {
    COMPUTED_A_MESSAGE + COMPUTED_A_BYTE * bytes as f64
}

/// One sender, alone on its CPU, which it never leaves idle.
fn sender_case(bytes: usize) -> Case {
    let title =
        format!("TCP message of {bytes} bytes between two nodes, and computation while it is under way");
    let found = SharedComputation::default();
    let same = found.clone();
    let start = set_up(move |place| found.start_calibrated(bytes, place).map(LoneSender));
    let saturated =
        set_up(move |place| Exchange::start(Nodes, Sizes::sent(bytes), same.0.get(), place).map(LoneSender));
    let (hardware, software, _) = Nodes.expected_cycles(bytes);
    let why = "a message without a sleep, and the multiplications";
    Case::new(format!("sender/{bytes}B"), title, start)
        .need(PINNED)
        .need(TWO_CPUS)
        .need(Nodes.need())
        .claim(Claim::Checked(ANSWERED))
        .claim(Claim::Regime(local_case::check_hardly_slept))
        .by_displacement(Repetition { saturated: Some(saturated), ..Repetition::default() })
        .predict(hardware + computed_cycles(bytes), 0.5 * software, why)
}

fn loops_case(count: u64) -> Case {
    let title = format!("TCP message of {LOOPED} bytes between two nodes, in runs of {count}");
    let repetition = Repetition { iterations: Some(count), runs: Some(REPLICATIONS), saturated: None };
    let start = start_exchange(Nodes, Sizes::sent(LOOPED));
    let case =
        exchange_case(format!("loops/{count}"), title, (Nodes, LOOPED), start).by_displacement(repetition);
    if count > 1000 { case.need(FULL_SCALE) } else { case }
}

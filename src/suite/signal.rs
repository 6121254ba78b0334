//! # What is timed
//! Setting the action of a signal, blocking it, and sending it. `install` sets the action, `mask` blocks and unblocks.
//! A signal that a process sends to itself is ignored, caught by a handler, or read from a `signalfd`. `fault` is a write to
//! a read-only page; the handler of the fault makes the page writable. Other cases are the expiry of a timer
//! that is set to a time in the past: for a POSIX timer until its handler has run, for a timerfd until it has been read.
//!
//! # What is not
//! The control of `caught` calls `kill` with the number 0, which finds the process and sends nothing, so that the net
//! figure is the delivery alone.
//! The loop around `fault` protects the page again each time. Its control protects the page and makes it writable by
//! two calls and writes to it without a fault, so the net figure is the fault and the signal alone. Installing the
//! handler is not timed.
//!
//! # How we know
//! A witness counts the entries of some iterations: `kill` and `rt_sigreturn` of a signal that is caught. The handler
//! counts its runs: after each batch the count must have grown by one an iteration. The number that is read from a `signalfd`,
//! and the count that is read from a timerfd, are checked each time. Time grows in proportion to the number of signals.
//!
//! # What fools it
//! The handler's frame holds the processor's extended state: with AVX-512 or AMX it is several KiB, which is written
//! and read back for each signal, whether the program uses those registers or not. A timer that is set to a time in the
//! past still programs the hardware for an interrupt; in a guest that is an exit to the hypervisor, and most of the
//! figure. Between two ticks the kernel may notice an expiry on its return to the program.
//!
//! # Reading the number
//! The net figure of `caught` is the delivery: the frame, the handler, and the return by `rt_sigreturn`. lmbench's
//! `lat_sig catch` subtracts the cost of sending by the same call. Its `lat_sig prot` subtracts that of the handler: compare it
//! with `fault`'s net figure minus the delivery, which is the fault and one `mprotect` with cold caches. `signalfd` is the cost
//! of being notified without being interrupted.
//!
//! # Source
//! lmbench's `lat_sig` (install, catch, prot), whose figures for prot were 0.13 to 0.81 µs in seven runs and nothing in
//! one. signal(7), signalfd(2), timer_create(2), timerfd_create(2).

mod operation;

use crate::kit::contract::*;
use crate::kit::kernel_call::{self, check_granted, only, time_calls};
use operation::{Action, Descriptor, Page, SIGNAL, Timer, TimerDescriptor};
use std::hint::black_box;

pub const GROUP: Group = Group::new("signal", include_str!("signal.rs"), cases).headlines(&[Headline::new(
    112,
    "caught",
    "a signal sent and caught",
)]);

#[rustfmt::skip]
fn cases() -> Vec<Case> {
    vec![
        operation_case("install", "rt_sigaction: choosing a handler", |_| Action::counting_handler(), |action, _| action.install_again())
            .claim(Claim::Enters(vec![("rt_sigaction", libc::SYS_rt_sigaction)]))
            .predict(100.0, 250.0, "entry and exit, two structures copied, a lock"),
        operation_case("mask", "a signal blocked and unblocked", |_| Ok(()), |(), _| operation::set_blocked(true).min(operation::set_blocked(false)))
            .claim(Claim::Enters(vec![("rt_sigprocmask", libc::SYS_rt_sigprocmask); 2]))
            .predict(200.0, 250.0, "two entries, a set copied, a lock"),
        operation_case("ignored", "kill of oneself, ignored", |_| Action::ignoring_signal(), |_, me| operation::send_signal(me, SIGNAL))
            .claim(Claim::Enters(vec![("kill", libc::SYS_kill)]))
            .predict(100.0, 500.0, "entry and exit, the process found and permitted"),
        operation_case("caught", "kill of oneself, caught by a handler", |_| Action::counting_handler(), |_, me| operation::send_signal(me, SIGNAL))
            // The same call with the number 0: the process is found and the permission checked, and nothing is sent.
            .control_set_up(repeated_operation("kill", |_| Ok(()), |(), me| operation::send_signal(me, 0)))
            .claim(Claim::Enters(vec![("kill", libc::SYS_kill), ("rt_sigreturn", libc::SYS_rt_sigreturn)]))
            .claim(Claim::Checked(ONCE))
            .predict(900.0, 1_500.0, "an entry more than the control, a frame of the whole processor state written and read"),
        operation_case("signalfd", "kill of oneself, read from a signalfd", |_| Descriptor::new(),
            |descriptor, me| operation::send_signal(me, SIGNAL).min(only(SIGNAL.into(), descriptor.read())))
            .claim(Claim::Enters(vec![("kill", libc::SYS_kill), ("read", libc::SYS_read)]))
            .claim(Claim::Checked("the signal that was read was the one sent"))
            .need(Need::new(|_| Descriptor::check_read_by_child()))
            .predict(200.0, 1_500.0, "two entries, a queue entry allocated and freed, 128 bytes copied"),
        fault_case(),
        operation_case("timer", "a POSIX timer's expiry, until its handler has run", |_| Ok((Action::counting_handler()?, Timer::new()?)), |(_, timer), _| {
            let before = operation::handler_runs();
            let set = timer.expire_at_once();
            if set == 0 { wait_until_caught(before) } else { set }
        })
            .claim(Claim::Checked(ONCE))
            .predict(3_000.0, 4_000.0, "a timer programmed, its interrupt, a signal delivered"),
        operation_case("timerfd", "a timerfd's expiry, until it has been read", |_| TimerDescriptor::new(), |timer, _| only(1, timer.expire_and_read()))
            .claim(Claim::Enters(vec![("timerfd_settime", libc::SYS_timerfd_settime), ("read", libc::SYS_read)]))
            .claim(Claim::Checked("the timer had expired once when it was read"))
            .predict(3_000.0, 3_000.0, "a timer programmed, its interrupt, a sleep and a wake-up"),
    ]
}

const ONCE: &str = "the handler ran once an iteration";

/// The most turns of the loop that waits for the handler, some nanoseconds each. They last longer than any timer is late.
const PATIENCE: u32 = 1 << 30;

/// Spins until the handler has run after `before` runs. Returns 0, or `-ETIME`.
#[inline(always)]
fn wait_until_caught(before: u64) -> i64 {
    for _ in 0..PATIENCE {
        if black_box(operation::handler_runs()) != before {
            return 0;
        }
        std::hint::spin_loop();
    }
    -i64::from(libc::ETIME)
}

/// The case of a protection fault that is caught and repaired. Its control makes the same calls and write without the fault.
fn fault_case() -> Case {
    let case = |faults: bool| {
        set_up(move |_| {
            let mut page = if faults { Page::with_repair_handler()? } else { Page::without_handler()? };
            Ok(move |n: u64, clock: &Clock| {
                let before = operation::handler_runs();
                let ticks = time_calls("mprotect", n, clock, || {
                    let protected = page.set_writable(false);
                    let allowed = if faults { 0 } else { page.set_writable(true) };
                    page.write();
                    protected.min(allowed)
                })?;
                let claimed = if faults { n } else { 0 };
                check_handler_count(operation::handler_runs() - before, claimed).map(|()| ticks)
            })
        })
    };
    let protects = ("mprotect", libc::SYS_mprotect);
    let why = "an exception, a frame written and read, and one call less than the control";
    Case::new("fault", "a protection fault, caught and repaired, and the page protected again", case(true))
        .control_set_up(case(false))
        .claim(Claim::Enters(vec![protects, protects, ("rt_sigreturn", libc::SYS_rt_sigreturn)]))
        .claim(Claim::Checked(ONCE))
        .claim(Claim::AboveControl)
        .claim(Claim::Linear)
        .predict(2_500.0, 2_500.0, why)
}

/// A case of one operation per iteration. The operation takes the id of its process and returns 0 or a negative error number. A
/// first, untimed operation shows how often one runs the handler; each iteration must run it as often.
fn operation_case<T: 'static>(
    name: &'static str,
    title: &'static str,
    open: impl Fn(&Place) -> Result<T> + 'static,
    once: impl Fn(&mut T, i32) -> i64 + Copy + 'static,
) -> Case {
    kernel_call::call_case(name, title, repeated_operation(name, open, once))
}

fn repeated_operation<T: 'static>(
    name: &'static str,
    open: impl Fn(&Place) -> Result<T> + 'static,
    once: impl Fn(&mut T, i32) -> i64 + Copy + 'static,
) -> SetUp {
    set_up(move |place| {
        let mut on = open(place)?;
        // A forbidden operation fails here, before timing. This first operation also shows whether it runs the handler.
        let before = operation::handler_runs();
        check_granted(name, once(&mut on, nix::unistd::getpid().as_raw()))?;
        let each = operation::handler_runs() - before;
        Ok(move |n: u64, clock: &Clock| {
            // Read here and not in the set-up, because a witness runs this closure in a child with another process id.
            let me = nix::unistd::getpid().as_raw();
            let before = operation::handler_runs();
            let ticks = time_calls(name, n, clock, || once(&mut on, me))?;
            check_handler_count(operation::handler_runs() - before, each * n).map(|()| ticks)
        })
    })
}

fn check_handler_count(times: u64, claimed: u64) -> Result<()> {
    if times == claimed {
        return Ok(());
    }
    Err(Error::Disproved(format!("the handler ran {times} times where {claimed} signals were sent")))
}

//! # What is timed
//! The life of a thread that does nothing: created and joined by `pthread_create` with a stack of 64 KiB, 8 MiB
//! and 64 MiB, with a guard page and (`unguarded`) without; created alone; by Rust's `std::thread`; and by
//! `clone` without the library, joined by the futex that the kernel wakes. And `hand-off`: a thread that sleeps
//! in a pool is handed something, answers, and sleeps again, on the measuring CPU and across two.
//!
//! # What is not
//! In `create-…` the thread's own life and the join, which stand outside the bracket. Starting the pool.
//!
//! # How we know
//! Every answer of the library and of the kernel is looked at. The kernel's own count of created tasks grew by at
//! least one an iteration, and after each batch this process has as many threads as before it. Threads inherit
//! the mask of the measuring thread, which is asked beforehand to be one CPU; the pool's thread says where it
//! runs after every batch, and how often it was switched away from: at least every second time. Time grows in
//! proportion to the number of threads.
//!
//! # What fools it
//! The C library keeps up to 40 MiB of stacks of threads that have ended and gives them to the next (glibc): with
//! 64 KiB and 8 MiB no stack is mapped and no guard page is set while it is timed, only with 64 MiB. It still
//! gives the pages that an earlier thread touched back to the kernel when a thread ends, so each new one has a
//! fault or two. For `create-…` creator and thread are of the policy `SCHED_BATCH`, so that the thread does not
//! come first; where it does, because a tick came in between, it says so, and its creation is not counted. Across
//! CPUs the hand-off pays an interrupt and, in a guest, for leaving the idle loop: it differs several times
//! between a machine at rest and one in use.
//!
//! # Reading the number
//! `clone` is the kernel's part; what `join-64KiB` costs above it is the library's, and what `std` costs above
//! that is Rust's: a name, a result and two shared allocations. `fork/touched-mib/0` is the same with a memory of
//! its own. A hand-off is two wake-ups and two switches.
//!
//! # Source
//! CSC501 project report (create and join, 11.7 µs); CSE 221 project report (kernel thread creation, 7.37 µs).
//! pthread_create(3), clone(2), futex(2).

mod operation;
mod operation_pool;

use crate::case::{Case, Claim, Group, Need, OwnTasks, Place, SetUp, Subject};
use crate::clock::{Clock, Ticks};
use crate::kit::scheduling_policy::Batch;
use crate::kit::start_order::Order;
use crate::kit::start_order::{Again, created};
use crate::kit::watchdog::{PERIOD, Watchdog};
use crate::platform::{cpu, limit};
use crate::{Error, Result};
use nix::errno::Errno;
use operation::{Arriving, Attributes, Bare, Thread};
use operation_pool::{Pool, Told};
use std::hint::black_box;

/// The group.
pub const GROUP: Group =
    Group { name: "thread", manual: include_str!("thread.rs"), version: 1, cases, fits: &[] };

fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for (size, stack) in [("64KiB", 64 << 10), ("8MiB", 8 << 20), ("64MiB", 64 << 20)] {
        // Beyond the library's store of stacks each is mapped and given back.
        let (hardware, software) = if stack > 40 << 20 { (5e3, 40e3) } else { (3e3, 25e3) };
        for (suffix, guarded) in [("", true), ("-unguarded", false)] {
            let with = if guarded { "with" } else { "without" };
            let case = life(
                format!("same-cpu/join-{size}{suffix}"),
                format!("pthread_create and join, a stack of {size} {with} a guard page"),
                move |_| Attributes::new(stack, guarded),
                |attributes| {
                    let mut thread = Thread::default();
                    let created = attributes.create(&mut thread);
                    if created < 0 { created } else { thread.join() }
                },
            );
            let why = "a task allocated, a fault on its stack, two switches, a futex";
            cases.push(case.claim(Claim::Linear).predict(hardware, software, why));
        }
    }
    cases.extend(["64KiB", "8MiB"].map(create_alone));
    cases.push(
        life("same-cpu/std", "std::thread, spawned and joined", |_| Ok(()), |()| spawn_and_join())
            .claim(Claim::Linear)
            .predict(4e3, 30e3, "what pthread_create costs, and a few allocations"),
    );
    cases.push(
        life("same-cpu/clone", "clone of a thread, joined by futex", |_| Bare::new(), Bare::create_and_join)
            .claim(Claim::Linear)
            .predict(2e3, 15e3, "a task allocated, two switches, a futex; no library and no fault"),
    );
    cases.extend([hand_off_here(), hand_off_there()]);
    cases
}

fn create_alone(size: &'static str) -> Case {
    let stack = if size == "64KiB" { 64 << 10 } else { 8 << 20 };
    let set_up: SetUp = Box::new(move |_| {
        let attributes = Attributes::new(stack, true)?;
        let threads = ready(|| {
            let mut thread = Thread::default();
            let created = attributes.create(&mut thread);
            if created < 0 { created } else { thread.join() }
        })?;
        let (order, batch) = (Order::new()?, Batch::begin()?);
        Ok(Box::new(move |n: u64, clock: &Clock| {
            let _batch = &batch;
            let mut again = Again::of(n);
            let (mut sum, mut done) = (Ticks(0), 0);
            while done < n {
                order.begin();
                let mut thread = Arriving::default();
                let start = clock.start();
                let created = black_box(attributes.create_arriving(&mut thread, &order));
                let ticks = clock.stop() - start;
                order.returned();
                refused("pthread_create", created)?;
                refused("pthread_join", thread.0.join())?;
                if order.was_early() {
                    again.once_more("pthread_create")?;
                    continue;
                }
                sum += clock.note(ticks);
                done += 1;
            }
            none_left(threads)?;
            Ok(sum)
        }) as Box<dyn Subject>)
    });
    claimed(Case::new(
        format!("same-cpu/create-{size}"),
        format!("pthread_create alone, a stack of {size}"),
        set_up,
    ))
    .claim(Claim::Checked("no thread that began before pthread_create had returned was counted"))
    .claim(Claim::Linear)
    .predict(1e3, 12e3, "a task allocated and made ready; it has yet to run")
}

/// A case of whole lives: `once` creates a thread, waits for its end and answers 0.
fn life<T: 'static>(
    name: impl Into<String>,
    title: impl Into<String>,
    open: impl Fn(&Place) -> Result<T> + 'static,
    once: impl Fn(&mut T) -> i64 + Copy + 'static,
) -> Case {
    let set_up: SetUp = Box::new(move |place| {
        let mut on = open(place)?;
        let threads = ready(|| once(&mut on))?;
        Ok(Box::new(move |n: u64, clock: &Clock| {
            let mut lowest = 0;
            let ticks = clock.time(|| {
                for _ in 0..n {
                    lowest = lowest.min(once(&mut on));
                    if lowest < 0 {
                        break;
                    }
                }
            });
            refused("the life of a thread", lowest)?;
            none_left(threads)?;
            Ok(ticks)
        }) as Box<dyn Subject>)
    });
    claimed(Case::new(name, title, set_up))
}

fn claimed(case: Case) -> Case {
    case.need(ONE_CPU)
        .own_tasks(OwnTasks::SameCpu)
        .claim(Claim::Checked("every thread was created and joined, and none was left behind"))
        .claim(Claim::Counted(created))
}

fn spawn_and_join() -> i64 {
    match std::thread::Builder::new().spawn(|| ()) {
        // The thread cannot panic.
        Ok(thread) => -i64::from(thread.join().is_err()),
        Err(error) => -i64::from(error.raw_os_error().unwrap_or(libc::EIO)),
    }
}

/// One life before the first that is timed. The number of threads that there are without it.
fn ready(once: impl FnOnce() -> i64) -> Result<u64> {
    let threads = operation::count();
    refused("creating a thread", once())?;
    none_left(threads)?;
    Ok(threads)
}

/// A thread that was joined may need a moment more to leave the kernel's list.
fn none_left(before: u64) -> Result<()> {
    const MOMENTS: u32 = 1_000;
    for _ in 0..MOMENTS {
        if operation::count() <= before {
            return Ok(());
        }
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    Err(Error::Child(format!("{} threads more than before are left", operation::count() - before)))
}

fn refused(call: &str, answer: i64) -> Result<()> {
    let errno = Error::errno(answer);
    match errno {
        _ if answer >= 0 => Ok(()),
        Errno::EAGAIN => Err(Error::Missing(limit::no_task(call, errno.into()))),
        _ => Err(Error::refused_to_case(call, errno)),
    }
}

/// Threads inherit the mask of their creator.
const ONE_CPU: Need = Need::new(|_| match cpu::allowed().len() {
    1 => Ok(()),
    cpus => Err(format!(
        "the measuring thread may run on {cpus} CPUs, and its threads beside it: allow sched_setaffinity"
    )),
});

const TWO_CPUS: Need = Need::new(|_| match cpu::other_than(cpu::current()) {
    Some(_) => Ok(()),
    None => Err("there is one CPU to run on, and this needs two: allow another (taskset, cpuset)".into()),
});

fn hand_off_here() -> Case {
    hand_off("same-cpu", "on one CPU", || Ok(cpu::current()))
        .need(ONE_CPU)
        .own_tasks(OwnTasks::SameCpu)
        .claim(Claim::Linear)
        .predict(1.5e3, 6e3, "two wake-ups, two sleeps, two switches")
}

fn hand_off_there() -> Case {
    let other = || {
        let other = cpu::other_than(cpu::current());
        other.ok_or_else(|| Error::Missing("there is no second CPU".into()))
    };
    hand_off("cross-cpu", "across two CPUs", other)
        .need(ONE_CPU)
        .need(TWO_CPUS)
        .own_tasks(OwnTasks::Elsewhere)
        .predict(100e3, 20e3, "two wake-ups of an idle CPU by interrupt")
}

fn hand_off(placement: &str, words: &str, place_of: fn() -> Result<usize>) -> Case {
    let set_up: SetUp = Box::new(move |_| {
        let cpu = place_of()?;
        let mut pool = Pool::on(cpu)?;
        let watchdog = Watchdog::over_this_thread(PERIOD)?;
        Ok(Box::new(move |n: u64, clock: &Clock| {
            let before = pool.ask();
            let mut lowest = 0;
            let ticks = clock.time(|| {
                for _ in 0..n {
                    watchdog.waits_for_turn(pool.next_turn());
                    lowest = lowest.min(pool.hand_over());
                    if lowest < 0 {
                        break;
                    }
                }
            });
            watchdog.rests();
            if let Some(sentence) = watchdog.bark() {
                return Err(Error::Child(format!("the pool's thread: {sentence}")));
            }
            refused("a hand-off by futex", lowest)?;
            took_part(n, cpu, before, pool.ask())?;
            Ok(ticks)
        }) as Box<dyn Subject>)
    });
    Case::new(
        format!("{placement}/hand-off"),
        format!("hand-off to a sleeping thread and back, {words}"),
        set_up,
    )
    .claim(Claim::Checked(
        "the pool's thread ran where it was pinned, and was switched away from between the hand-offs",
    ))
}

/// Turns of which a batch may lack the switch: the first finds the pool's thread awake.
const AWAKE: u64 = 2;

/// The pool's thread was where it should be, and was switched away from at least every second turn: else it had
/// been awake, and nobody was woken. Not every time it sleeps: on one CPU who is woken may come first, and across
/// CPUs the two may fall into step for some turns, which is another operation.
fn took_part(hand_offs: u64, cpu: usize, before: Told, after: Told) -> Result<()> {
    if after.cpu != cpu {
        return Err(Error::Child(format!(
            "the pool's thread runs on CPU {} and was pinned to {cpu}: something else sets its affinity",
            after.cpu
        )));
    }
    let switches = after.switches - before.switches;
    if 2 * (switches + AWAKE) < hand_offs {
        return Err(Error::Disturbed(format!(
            "the pool's thread was switched away from {switches} times in {hand_offs} hand-offs: it had been awake"
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(cpu: usize, switches: u64) -> Told {
        Told { cpu, switches }
    }

    #[test]
    fn a_pool_that_slept_most_turns_took_part() {
        assert!(took_part(8, 1, told(1, 10), told(1, 12)).is_ok());
    }

    #[test]
    fn a_pool_that_was_awake_is_asked_again() {
        let answer = took_part(8, 1, told(1, 10), told(1, 11));
        assert!(matches!(answer, Err(Error::Disturbed(sentence)) if sentence.contains("1 times in 8")));
    }

    #[test]
    fn a_pool_that_ran_elsewhere_is_a_failure() {
        assert!(matches!(took_part(8, 1, told(1, 10), told(0, 90)), Err(Error::Child(_))));
    }
}

//! # What is timed
//! The life of a thread that does nothing: created and joined by `pthread_create` with a stack of 64 KiB, 8 MiB and 64
//! MiB, with a guard page and (`unguarded`) without; created only (`create-…`); by Rust's `std::thread`; and by `clone`
//! without the library, joined by the futex that the kernel wakes. And `hand-off`: a thread that sleeps in a pool is
//! given a turn, answers, and sleeps again, on the measuring CPU or on another one.
//!
//! # What is not
//! In `create-…` the thread's own life and the join, which are outside the bracket. Starting the pool.
//!
//! # How we know
//! Every return value of the library and of the kernel is checked. The kernel's own count of created tasks grew by at least
//! one an iteration, and after each batch this process has as many threads as before it. Threads inherit the mask of
//! the measuring thread, which must be one CPU; the pool's thread reports after every batch on which CPU it runs and
//! how often the kernel switched away from it: in at least every second hand-off. Time grows in proportion to the
//! number of threads.
//!
//! # What fools it
//! The C library keeps up to 40 MiB of stacks of threads that have ended and reuses them (glibc): with 64 KiB and 8 MiB
//! no stack is mapped and no guard page is set while it is timed, only with 64 MiB. When a thread ends, the library
//! still returns the pages that it touched to the kernel, so each new one has a fault or two. For `create-…` creator
//! and thread have the policy `SCHED_BATCH`, so that the thread does not run first. If it does, because of a timer tick in
//! between, the thread notes it, and its creation is not counted. Across CPUs the hand-off includes an interrupt and, in a
//! guest, leaving the idle loop: it differs severalfold between a machine at rest and one in use.
//!
//! # Reading the number
//! `clone` is the kernel's part; what `join-64KiB` costs above it is the library's, and what `std` costs above that is
//! Rust's: a name, a result and two shared allocations. `fork/touched-mib/0` is the same for a process, which has its own
//! address space. A hand-off is two wake-ups and two switches.
//!
//! # Source
//! CSC501 project report (create and join, 11.7 µs); CSE 221 project report (kernel thread creation, 7.37 µs).
//! pthread_create(3), clone(2), futex(2).

mod operation;

use crate::kit::contract::*;
use crate::kit::kernel_call::{check_granted, time_until_refused};
use crate::kit::scheduling_policy::Batch;
use crate::kit::start_order::{Order, Repeats, tasks_were_created};
use crate::kit::task;
use crate::kit::watchdog::{PERIOD, Watchdog};
use crate::platform::cpu;
use operation::{Arriving, Attributes, Bare, Pool, Usage};

pub const GROUP: Group = Group::new("thread", include_str!("thread.rs"), cases).headlines(&[Headline::new(
    24,
    "same-cpu/join-8MiB",
    "a thread created and joined",
)
.as_answer()]);

/// Sizes of the stacks: the text in the id, and the size in bytes.
const STACKS: [(&str, usize); 3] = [("64KiB", 64 << 10), ("8MiB", 8 << 20), ("64MiB", 64 << 20)];
/// The C library reuses stacks up to this size (glibc); larger ones it maps and unmaps for each thread.
const REUSED: usize = 40 << 20;

fn cases() -> Vec<Case> {
    let mut cases: Vec<_> =
        STACKS.into_iter().flat_map(|stack| [true, false].map(|g| joined_thread_case(stack, g))).collect();
    cases.extend([STACKS[0], STACKS[1]].map(created_only_case));
    #[rustfmt::skip]
    cases.extend([
        thread_life_case("same-cpu/std", "std::thread, spawned and joined", |_| Ok(()), |()| spawn_and_join())
            .claim(Claim::Linear).predict(4e3, 30e3, "what pthread_create costs, and a few allocations"),
        thread_life_case("same-cpu/clone", "clone of a thread, joined by futex", |_| Bare::new(), Bare::create_and_join)
            .claim(Claim::Linear).predict(2e3, 15e3, "a task allocated, two switches, a futex; no library and no fault"),
    ]);
    cases.extend([same_cpu_hand_off(), cross_cpu_hand_off()]);
    cases
}

fn joined_thread_case((size, stack): (&str, usize), guarded: bool) -> Case {
    let (suffix, with) = if guarded { ("", "with") } else { ("-unguarded", "without") };
    let (hardware, software) = if stack > REUSED { (5e3, 40e3) } else { (3e3, 25e3) };
    thread_life_case(
        format!("same-cpu/join-{size}{suffix}"),
        format!("pthread_create and join, a stack of {size} {with} a guard page"),
        move |_| Attributes::new(stack, guarded),
        |attributes| attributes.create_and_join(),
    )
    .claim(Claim::Linear)
    .predict(hardware, software, "a task allocated, a fault on its stack, two switches, a futex")
}

fn created_only_case((size, stack): (&str, usize)) -> Case {
    let creations = set_up(move |_| {
        let attributes = Attributes::new(stack, true)?;
        let threads = create_trial_thread(|| attributes.create_and_join())?;
        let (order, batch) = (Order::new()?, Batch::begin()?);
        Ok(move |n: u64, clock: &Clock| {
            let _alive = &batch;
            let ticks = clock.time_each(
                n,
                &mut (Arriving::default(), Repeats::for_batch(n)),
                |_| {
                    order.clear_flags();
                    Ok(())
                },
                |(thread, _)| attributes.create_arriving(thread, &order),
                |(thread, repeats), created| {
                    order.note_return();
                    task::check_created("pthread_create", created)?;
                    task::check_created("pthread_join", thread.0.join())?;
                    repeats.judge_creation("pthread_create", &order)
                },
            )?;
            check_none_left(threads).map(|()| ticks)
        })
    });
    let title = format!("pthread_create alone, a stack of {size}");
    with_thread_claims(Case::new(format!("same-cpu/create-{size}"), title, creations))
        .claim(Claim::Checked("no thread that began before pthread_create had returned was counted"))
        .claim(Claim::Linear)
        .predict(1e3, 12e3, "a task allocated and made ready; it has yet to run")
}

/// A case of the whole life of a thread: `once` creates one, waits for its end and returns 0 or a negative error number.
fn thread_life_case<T: 'static>(
    name: impl Into<String>,
    title: impl Into<String>,
    open: impl Fn(&Place) -> Result<T> + 'static,
    once: impl Fn(&mut T) -> i64 + Copy + 'static,
) -> Case {
    let lives = set_up(move |place| {
        let mut on = open(place)?;
        let threads = create_trial_thread(|| once(&mut on))?;
        Ok(move |n: u64, clock: &Clock| {
            let (ticks, answer) = time_until_refused(n, clock, || once(&mut on));
            task::check_created("the life of a thread", answer)?;
            check_none_left(threads).map(|()| ticks)
        })
    });
    with_thread_claims(Case::new(name, title, lives))
}

fn with_thread_claims(case: Case) -> Case {
    case.need(ONE_CPU)
        .own_tasks(OwnTasks::SameCpu)
        .claim(Claim::Checked("every thread was created and joined, and none was left behind"))
        .claim(Claim::Counted(tasks_were_created))
}

fn spawn_and_join() -> i64 {
    match std::thread::Builder::new().spawn(|| ()) {
        // The thread cannot panic.
        Ok(thread) => -i64::from(thread.join().is_err()),
        Err(error) => -i64::from(error.raw_os_error().unwrap_or(libc::EIO)),
    }
}

/// Creates one thread before the timed ones, so that a prohibition or a limit fails here. Returns the number of threads of this
/// process without it.
fn create_trial_thread(once: impl FnOnce() -> i64) -> Result<u64> {
    let threads = operation::thread_count();
    task::check_created("creating a thread", once())?;
    check_none_left(threads)?;
    Ok(threads)
}

/// Checks that there are no more threads than before. A thread that was joined may need some milliseconds to leave the
/// kernel's list.
fn check_none_left(before: u64) -> Result<()> {
    const ATTEMPTS: u32 = 1_000;
    for _ in 0..ATTEMPTS {
        if operation::thread_count() <= before {
            return Ok(());
        }
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    Err(Error::Contradicted(format!(
        "{} threads more than before are left",
        operation::thread_count() - before
    )))
}

/// The need that the measuring thread may run on one CPU only, since threads inherit the CPU mask of their creator.
const ONE_CPU: Need = Need::new(|_| match cpu::allowed_cpus().len() {
    1 => Ok(()),
    cpus => Err(format!(
        "the measuring thread may run on {cpus} CPUs, and its threads beside it: allow sched_setaffinity"
    )),
});

const TWO_CPUS: Need = Need::new(|_| match cpu::find_other_cpu(cpu::current_cpu()) {
    Some(_) => Ok(()),
    None => Err("there is one CPU to run on, and this needs two: allow another (taskset, cpuset)".into()),
});

fn same_cpu_hand_off() -> Case {
    hand_off_case("same-cpu", "on one CPU", || Ok(cpu::current_cpu()))
        .need(ONE_CPU)
        .own_tasks(OwnTasks::SameCpu)
        .claim(Claim::Linear)
        .predict(1.5e3, 6e3, "two wake-ups, two sleeps, two switches")
}

fn cross_cpu_hand_off() -> Case {
    let other = || {
        let other = cpu::find_other_cpu(cpu::current_cpu());
        other.ok_or_else(|| Error::Missing("there is no second CPU".into()))
    };
    hand_off_case("cross-cpu", "across two CPUs", other)
        .need(ONE_CPU)
        .need(TWO_CPUS)
        .own_tasks(OwnTasks::Elsewhere)
        .predict(100e3, 20e3, "two wake-ups of an idle CPU by interrupt")
}

fn hand_off_case(placement: &str, words: &str, place_of: fn() -> Result<usize>) -> Case {
    let hand_offs = set_up(move |_| {
        let cpu = place_of()?;
        let mut pool = Pool::start_on(cpu)?;
        let watchdog = Watchdog::for_this_thread(PERIOD)?;
        Ok(move |n: u64, clock: &Clock| {
            let before = pool.read_usage();
            let (ticks, answer) = time_until_refused(n, clock, || {
                watchdog.watch_turn(pool.next_turn_number());
                pool.run_turn()
            });
            watchdog.end_wait();
            if let Some(sentence) = watchdog.take_expired_sentence() {
                return Err(Error::Disturbed(format!("the pool's thread: {sentence}")));
            }
            check_granted("a hand-off by futex", answer)?;
            check_pool_switched(n, cpu, before, pool.read_usage()).map(|()| ticks)
        })
    });
    let title = format!("hand-off to a sleeping thread and back, {words}");
    Case::new(format!("{placement}/hand-off"), title, hand_offs).claim(Claim::Checked(
        "the pool's thread ran where it was pinned, and was switched away from between the hand-offs",
    ))
}

/// The number of hand-offs in a batch that may lack a switch, because the first one finds the pool's thread awake.
const AWAKE: u64 = 2;

/// Checks that the pool's thread ran on its CPU, and that the kernel switched away from it in at least every second hand-off: if
/// not, it was awake and no hand-off woke it. It need not sleep every time: on one CPU the woken thread may preempt, and across
/// CPUs the two threads may run in lockstep for some turns, which is another operation.
fn check_pool_switched(hand_offs: u64, cpu: usize, before: Usage, after: Usage) -> Result<()> {
    if after.cpu != cpu {
        return Err(Error::Disturbed(format!(
            "the pool's thread was kept on CPU {cpu} and runs on CPU {}; {}",
            after.cpu,
            cpu::why_partner_lost(cpu)
        )));
    }
    let switches = after.switches - before.switches;
    if 2 * (switches + AWAKE) >= hand_offs {
        return Ok(());
    }
    Err(Error::Disturbed(format!(
        "the pool's thread was switched away from {switches} times in {hand_offs} hand-offs: it had been awake"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usage(cpu: usize, switches: u64) -> Usage {
        Usage { cpu, switches }
    }

    #[test]
    fn a_pool_that_slept_most_turns_took_part() {
        assert!(check_pool_switched(8, 1, usage(1, 10), usage(1, 12)).is_ok());
    }

    #[test]
    fn a_pool_that_stayed_awake_is_a_disturbance() {
        let answer = check_pool_switched(8, 1, usage(1, 10), usage(1, 11));
        assert!(matches!(answer, Err(Error::Disturbed(sentence)) if sentence.contains("1 times in 8")));
    }

    #[test]
    fn a_pool_that_ran_on_another_cpu_is_a_disturbance() {
        assert!(matches!(check_pool_switched(8, 1, usage(1, 10), usage(0, 90)), Err(Error::Disturbed(_))));
    }
}

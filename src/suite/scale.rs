//! # What is timed
//! One operation on several CPUs at the same time. One process or one thread on each performs it; the time is that from the
//! start signal until the last task has finished. There are some forty operations on descriptors, files, locks, sockets and
//! memory, each on an object of the task's own, or on one that all share (`-shared`). `getppid`, `pipe`, `fresh-page`
//! and `open-close` are part of a default run, the others of a full one. An iteration is one operation on each CPU.
//! `one` is the measuring thread alone. The last part of an id is the number of tasks; `all` is one on each CPU, if
//! that number is not one of the others.
//!
//! # What is not
//! The start of the partners, and their wait for the signal.
//!
//! # How we know
//! Every result is checked: an operation that is refused ends the case. The witness sees the system calls of `one`. All tasks do the same number of operations.
//! Every partner must have been seen on its own CPU only. For one task, time must grow in proportion to the number of
//! operations. For several it need not: the longer others hold a lock, the longer a task waits for it.
//!
//! # What fools it
//! Two hyperthreads share a core: then half of the loss is the processor's and not the kernel's. A clock frequency
//! that drops when all cores work has the same effect. Threads of one process share its mappings and its table of
//! descriptors, processes do not: the difference between the two is the price of that sharing. All tasks wait for a
//! partner that is late or disturbed, so that one busy CPU looks like bad scaling.
//!
//! # Reading the number
//! `efficiency` below the table is the time of one task alone divided by the time of N tasks together. It is also the
//! operations a second of all tasks divided by N times those of one alone: 1 without interference, 1/N if all wait in one
//! queue. Against N it is a curve (`syscost draw --plot DIR`). `rate` is the operations a second of each CPU; N times that
//! is the rate of the machine.
//!
//! # Source
//! will-it-scale (A. Blanchard), as processes and as threads; lmbench's `lat_pmake`, whose jobs are `known-work`; the calls of libMicro (P. Harman and others).

mod operation;

use crate::kit::contract::*;
use crate::kit::kernel_call::check_granted;
use crate::kit::parallel::{Parallelism, all_partners_stayed, parallel_subject};
use crate::platform::arch::multiply_chain;
use crate::platform::partner::Kind;
use std::hint::black_box;

pub const GROUP: Group =
    Group::new("scale", include_str!("scale.rs"), cases).version(2).curves(operation::CURVES);

/// A curve of efficiency over the number of tasks. By definition it is 1 for one task.
const fn efficiency_curve(prefix: &'static str, title: &'static str) -> Curve {
    Curve::new(prefix, title, Axis::Count("processes or threads at once"))
        .with_figure("efficiency")
        .with_start(1, 1.0)
}

/// Performs the given number of operations. Returns a negative error number if one failed.
type Work = Box<dyn FnMut(u64) -> i64 + Send>;
/// Prepares the work of the task with the given index.
type Make = fn(&Place, usize) -> Result<Work>;

/// The operation that each task performs.
#[derive(Clone, Copy)]
struct Operation {
    /// The first part of an id.
    name: &'static str,
    title: &'static str,
    /// The system calls of one operation.
    calls: &'static [(&'static str, i64)],
    /// The error number that the calls must return, if their refusal is what is timed; otherwise 0.
    refusal: i32,
    /// The predicted core cycles of hardware and software.
    cycles: (f64, f64),
    make: Make,
}

/// Runs jobs of 10 µs (at 3 GHz) without system calls. If they slow down, the cause is the processor or the scheduler.
fn multiply(jobs: u64) -> i64 {
    (0..jobs).for_each(|_| _ = black_box(multiply_chain(black_box(10_000))));
    0
}

/// The operations that a default run measures; a full one measures all.
const BY_DEFAULT: [&str; 4] = ["getppid", "pipe", "fresh-page", "open-close"];

/// Numbers of tasks, and their needs.
const PARALLELISM: [(Parallelism, Need); 7] = [
    (Parallelism::Count(2), Need::new(|place| place.cpus.check_count(2))),
    (Parallelism::Count(4), Need::new(|place| place.cpus.check_count(4))),
    (Parallelism::Count(8), Need::new(|place| place.cpus.check_count(8))),
    (Parallelism::Count(16), Need::new(|place| place.cpus.check_count(16))),
    (Parallelism::Count(32), Need::new(|place| place.cpus.check_count(32))),
    (Parallelism::Count(64), Need::new(|place| place.cpus.check_count(64))),
    (Parallelism::All, Need::new(check_distinct_count)),
];

fn cases() -> Vec<Case> {
    operation::OPERATIONS.iter().flat_map(cases_of_operation).collect()
}

fn cases_of_operation(operation: &Operation) -> Vec<Case> {
    let parallel =
        [Kind::Process, Kind::Thread].into_iter().flat_map(|kind| PARALLELISM.map(|tasks| (kind, tasks)));
    let several = parallel.map(|(kind, crowd)| parallel_case(kind, crowd, operation));
    let all = [single_task_case(operation)].into_iter().chain(several);
    match BY_DEFAULT.contains(&operation.name) {
        true => all.collect(),
        false => all.map(|case| case.need(FULL_SCALE)).collect(),
    }
}

/// Skips `all` if the number of CPUs equals that of another case.
fn check_distinct_count(place: &Place) -> std::result::Result<(), String> {
    let all = place.cpus.others.len() + 1;
    let is_other = PARALLELISM.iter().all(|(tasks, _)| *tasks != Parallelism::Count(all));
    ensure(is_other, || format!("with {all} CPUs this is the same as the case of {all}"))
}

fn single_task_set_up(make: Make) -> SetUp {
    set_up(move |place| {
        // An index that differs from those of the parallel cases.
        let mut work = make(place, usize::MAX)?;
        Ok(move |n: u64, clock: &Clock| {
            let mut lowest = 0;
            let ticks = clock.time(|| lowest = work(n));
            check_granted("an operation, in the timed loop", lowest).map(|()| ticks)
        })
    })
}

fn single_task_case(operation: &Operation) -> Case {
    let Operation { name, title, calls, refusal, cycles: (hardware, software), make } = *operation;
    let refused = calls.iter().filter(|_| refusal != 0);
    let case = Case::new(format!("{name}/one"), format!("{title}, by one alone"), single_task_set_up(make))
        .derived_figure("rate", Rule::Rate)
        .claim(Claim::Linear)
        .claim(if calls.is_empty() { Claim::NeverEnters } else { Claim::Enters(calls.to_vec()) })
        .predict(hardware, software, "as in the group that measures it by itself");
    refused.fold(case, |case, (_, number)| case.claim(Claim::Answers(*number, -i64::from(refusal))))
}

fn parallel_case(kind: Kind, (tasks, need): (Parallelism, Need), operation: &Operation) -> Case {
    let Operation { name, title, cycles: (hardware, software), make, .. } = *operation;
    let kinds = if kind == Kind::Process { "processes" } else { "threads" };
    let set_up =
        set_up(move |place| parallel_subject(kind, tasks, place, |index| make(place, index), |_| Ok(())));
    let count = tasks.name();
    Case::new(format!("{name}-{kinds}/{count}"), format!("{title}, by {count} {kinds} at once"), set_up)
        .control_set_up(single_task_set_up(make))
        .need(PINNED)
        .need(TWO_CPUS)
        .need(need)
        .derived_figure("efficiency", Rule::ControlOverCost)
        .derived_figure("rate", Rule::Rate)
        .claim(Claim::Counted(all_partners_stayed))
        .predict(hardware, software, "as one alone: a kernel should let them pass each other")
        .prediction_includes_control()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::{Cpus, Scale};

    /// The numbers of processes that are measured where `cpus` are allowed.
    fn measured(cpus: usize) -> Vec<String> {
        let place = Place {
            scratch: std::env::temp_dir(),
            scale: Scale::Smoke,
            cpus: Cpus::from_allowed(Some(0), (0..cpus).collect()),
        };
        let asked = |case: &Case| case.needs.iter().all(|need| need.check_place(&place).is_ok());
        let cases = cases().into_iter().filter(asked);
        cases.filter_map(|case| Some(case.name.strip_prefix("pipe-processes/")?.to_owned())).collect()
    }

    #[test]
    fn the_counts_are_those_for_which_there_are_cpus() {
        assert!(measured(1).is_empty());
        assert_eq!(measured(2), ["2"]);
        assert_eq!(measured(6), ["2", "4", "all"]);
        assert_eq!(measured(64).last().map(String::as_str), Some("64"));
        assert_eq!(measured(96).last().map(String::as_str), Some("all"));
    }

    #[test]
    fn too_few_cpus_skip_a_case_with_a_sentence() {
        let place =
            Place { scratch: "/".into(), scale: Scale::Smoke, cpus: Cpus::from_allowed(Some(0), vec![0, 1]) };
        assert!(place.cpus.check_count(4).expect_err("too few").contains("this process is allowed 2"));
        assert!(check_distinct_count(&place).expect_err("the same").contains("the case of 2"));
    }
}

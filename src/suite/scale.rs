//! # What is timed
//! One operation on several CPUs at the same time, by a process or a thread on each, from the signal until the last
//! task has finished: `getppid`, a byte written to a pipe of the task's own and read again, a fresh page mapped,
//! touched and unmapped, a file of the task's own opened and closed. An iteration is one operation on each CPU. `one`
//! is the measuring thread alone. The last part of an id is the number of tasks; `all` is one on each CPU, where that
//! is none of the other numbers.
//!
//! # What is not
//! The start of the partners, and their wait for the signal.
//!
//! # How we know
//! Every result is checked: an operation that is refused ends the case. All tasks do the same number of operations.
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
//! `efficiency` below the table is the time of one task alone over the time of all together, which is what all of
//! them did in a second over N times what one does alone: 1 without interference, 1/N where all wait in one queue.
//! Against N it is a curve (`syscost draw --plot DIR`). `rate` is what each CPU did in a second; times N, it is the
//! machine's.
//!
//! # Source
//! will-it-scale (A. Blanchard): `getppid1`, `pipe1`, `page_fault1`, `open1`, as processes and as threads.

use crate::case::need::{PINNED, TWO_CPUS};
use crate::case::{Case, Claim, Group, Need, Place, Rule, SetUp, set_up};
use crate::clock::Clock;
use crate::error::{Error, Result};
use crate::kit::kernel_call::check_granted;
use crate::kit::parallel::{Parallelism, all_partners_stayed, parallel_subject};
use crate::platform::partner::Kind;
use crate::platform::syscall::{self, RawCall};
use crate::record::{Axis, Curve};
use memmap2::MmapMut;
use std::ffi::CString;
use std::fs::File;
use std::hint::black_box;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;

pub const GROUP: Group = Group::new("scale", include_str!("scale.rs"), cases).version(2).curves(&[
    efficiency_curve("scale/getppid-processes/", "getppid, processes"),
    efficiency_curve("scale/getppid-threads/", "getppid, threads"),
    efficiency_curve("scale/pipe-processes/", "pipe, processes"),
    efficiency_curve("scale/pipe-threads/", "pipe, threads"),
    efficiency_curve("scale/fresh-page-processes/", "fresh page, processes"),
    efficiency_curve("scale/fresh-page-threads/", "fresh page, threads"),
    efficiency_curve("scale/open-close-processes/", "open and close, processes"),
    efficiency_curve("scale/open-close-threads/", "open and close, threads"),
]);

/// A curve of efficiency, which is 1 for one task by definition.
const fn efficiency_curve(prefix: &'static str, title: &'static str) -> Curve {
    Curve::new(prefix, title, Axis::Count("processes or threads at once"))
        .with_figure("efficiency")
        .with_start(1, 1.0)
}

/// Does this many operations; returns a negative error number where one was refused.
type Work = Box<dyn FnMut(u64) -> i64 + Send>;
/// Makes the work of the task with this index.
type Make = fn(&Place, usize) -> Result<Work>;

/// Name, title, work, and the predicted core cycles of hardware and software.
type Operation = (&'static str, &'static str, Make, (f64, f64));

const OPERATIONS: [Operation; 4] = [
    ("getppid", "getppid", getppid_work, (100.0, 90.0)),
    ("pipe", "a byte through a pipe of one's own", pipe_work, (200.0, 700.0)),
    ("fresh-page", "a page mapped, touched and unmapped", fresh_page_work, (1_000.0, 4_000.0)),
    ("open-close", "a file of one's own opened and closed", open_close_work, (200.0, 3_000.0)),
];

/// Numbers of tasks, and their needs.
const PARALLELISM: [(Parallelism, Need); 7] = [
    (Parallelism::Count(2), Need::new(check_cpu_count::<2>)),
    (Parallelism::Count(4), Need::new(check_cpu_count::<4>)),
    (Parallelism::Count(8), Need::new(check_cpu_count::<8>)),
    (Parallelism::Count(16), Need::new(check_cpu_count::<16>)),
    (Parallelism::Count(32), Need::new(check_cpu_count::<32>)),
    (Parallelism::Count(64), Need::new(check_cpu_count::<64>)),
    (Parallelism::All, Need::new(check_distinct_count)),
];

fn cases() -> Vec<Case> {
    OPERATIONS.into_iter().flat_map(cases_of_operation).collect()
}

fn cases_of_operation((name, title, make, expected): Operation) -> Vec<Case> {
    let parallel =
        [Kind::Process, Kind::Thread].into_iter().flat_map(|kind| PARALLELISM.map(|tasks| (kind, tasks)));
    let several = parallel.map(|(kind, crowd)| parallel_case(kind, crowd, (name, title, make, expected)));
    [single_task_case(name, title, make, expected)].into_iter().chain(several).collect()
}

fn check_cpu_count<const COUNT: usize>(place: &Place) -> std::result::Result<(), String> {
    match place.cpus.others.len() + 1 {
        allowed if allowed >= COUNT => Ok(()),
        // One sentence for all of them, so that they share a paragraph.
        allowed => Err(format!(
            "each needs a CPU of its own, and this process is allowed {allowed}: allow more (`taskset -c`), or take a \
             larger machine"
        )),
    }
}

/// Skips `all` if the number of CPUs equals that of another case.
fn check_distinct_count(place: &Place) -> std::result::Result<(), String> {
    let all = place.cpus.others.len() + 1;
    match PARALLELISM.iter().any(|(tasks, _)| *tasks == Parallelism::Count(all)) {
        true => Err(format!("with {all} CPUs this is the same as the case of {all}")),
        false => Ok(()),
    }
}

fn single_task_set_up(make: Make) -> SetUp {
    set_up(move |place| {
        // An index that no task of several has.
        let mut work = make(place, usize::MAX)?;
        Ok(move |n: u64, clock: &Clock| {
            let mut lowest = 0;
            let ticks = clock.time(|| lowest = work(n));
            check_granted("an operation, in the timed loop", lowest).map(|()| ticks)
        })
    })
}

fn single_task_case(name: &str, title: &str, make: Make, (hardware, software): (f64, f64)) -> Case {
    Case::new(format!("{name}/one"), format!("{title}, by one alone"), single_task_set_up(make))
        .derived_figure("rate", Rule::Rate)
        .claim(Claim::Linear)
        .predict(hardware, software, "as in the group that measures it by itself")
}

fn parallel_case(
    kind: Kind,
    (tasks, need): (Parallelism, Need),
    (name, title, make, expected): Operation,
) -> Case {
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
        .predict(expected.0, expected.1, "as one alone: a kernel should let them pass each other")
        .prediction_includes_control()
}

fn getppid_work(_: &Place, _: usize) -> Result<Work> {
    Ok(Box::new(|n| RawCall::getppid().repeat(n).lowest))
}

fn pipe_work(_: &Place, _: usize) -> Result<Work> {
    let (read, write) = nix::unistd::pipe().map_err(|e| Error::from_errno("pipe", e))?;
    Ok(Box::new(move |n| {
        let lowest = syscall::repeat_write_read(write.as_raw_fd(), read.as_raw_fd(), &mut 0, n);
        // Nothing written or read is no error of the kernel's, and no byte that went through the pipe.
        if lowest.contains(&0) { -i64::from(libc::EPIPE) } else { lowest[0].min(lowest[1]) }
    }))
}

fn fresh_page_work(_: &Place, _: usize) -> Result<Work> {
    const PAGE: usize = 4096;
    let once = || match MmapMut::map_anon(PAGE) {
        Ok(mut page) => {
            page[0] = 1;
            i64::from(black_box(page[0])) - 1
        }
        Err(error) => -i64::from(error.raw_os_error().unwrap_or(libc::ENOMEM)),
    };
    Ok(Box::new(move |n| (0..n).fold(0, |lowest, _| black_box(once()).min(lowest))))
}

fn open_close_work(place: &Place, index: usize) -> Result<Work> {
    let path = place.scratch.join(format!("scale-{index}"));
    File::create(&path).map_err(|e| Error::file(&path, "creating", e))?;
    let path = CString::new(path.as_os_str().as_bytes())
        .map_err(|_| Error::Usage(format!("{}: a path holds a zero byte", path.display())))?;
    Ok(Box::new(move |n| syscall::repeat_open_close(&path, n)))
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
        assert!(check_cpu_count::<4>(&place).expect_err("too few").contains("this process is allowed 2"));
        assert!(check_distinct_count(&place).expect_err("the same").contains("the case of 2"));
    }
}

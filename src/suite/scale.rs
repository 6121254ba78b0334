//! # What is timed
//! The same operation on several CPUs at once, by a process or a thread on each, from the signal until the last has
//! finished: `getppid`, a byte written to a pipe of one's own and read again, a fresh page mapped, touched and
//! unmapped, a file of one's own opened and closed. An iteration is one operation on each CPU. `one` is the
//! measuring thread alone; the last part of an id says how many work, and `all` is one on each CPU where their
//! number is none of the others.
//!
//! # What is not
//! The start of the partners and their waiting for the signal.
//!
//! # How we know
//! Every operation's answer is looked at: one that is refused ends the case. All do the same number of them. Every
//! partner must have been seen on its own CPU only. Alone, time grows in proportion to the number of operations;
//! together it need not: who waits for a lock waits the longer, the longer the others hold it.
//!
//! # What fools it
//! Two hyperthreads share a core: then half of the loss is the processor's and not the kernel's. A clock that
//! drops when all cores work does the same. Threads of one process share its mappings and its table of
//! descriptors, processes do not: the difference of the two is the price of that sharing. A partner that comes
//! late or is disturbed makes all wait, so that a busy CPU among them is seen as bad scaling.
//!
//! # Reading the number
//! `efficiency` below the table is the time of one alone over the time together, which is what all of them did in a
//! second over N times what one alone does: 1 if nobody is in anybody's way, 1/N if all stand in one queue. Against
//! N it is a curve (`syscost report --plot`). `rate` is what each CPU did in a second; times N, it is the machine's.
//!
//! # Source
//! will-it-scale (A. Blanchard): `getppid1`, `pipe1`, `page_fault1`, `open1`, as processes and as threads.

use crate::case::need::{PINNED, TWO_CPUS};
use crate::case::{Case, Claim, Group, Need, Place, Rule, SetUp, Subject};
use crate::clock::Clock;
use crate::kit::crowd::{Crowd, all_stayed, together};
use crate::kit::ipc::{Bytes, Line};
use crate::platform::partner::Kind;
use crate::platform::syscall;
use crate::record::{Axis, Curve};
use crate::{Error, Result};
use memmap2::MmapMut;
use std::ffi::CString;
use std::fs::File;
use std::hint::black_box;
use std::os::unix::ffi::OsStrExt;

pub const GROUP: Group = Group::new("scale", include_str!("scale.rs"), cases).curves(&[
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
    Curve::new(prefix, title, Axis::Count("processes or threads at once")).figure("efficiency").start(1, 1.0)
}

/// So many operations; a negative error number where one was refused.
type Work = Box<dyn FnMut(u64) -> i64 + Send>;
/// Makes the work of one of them, with what it opens for itself.
type Make = fn(&Place, usize) -> Result<Work>;

/// Name, words, work, and the core cycles of the hardware and of the software.
type Operation = (&'static str, &'static str, Make, (f64, f64));

const OPERATIONS: [Operation; 4] = [
    ("getppid", "getppid", getppid, (100.0, 90.0)),
    ("pipe", "a byte through a pipe of one's own", pipe, (200.0, 700.0)),
    ("fresh-page", "a page mapped, touched and unmapped", fresh_page, (1_000.0, 4_000.0)),
    ("open-close", "a file of one's own opened and closed", open_close, (200.0, 3_000.0)),
];

/// How many work together, and what that needs.
const CROWDS: [(Crowd, Need); 7] = [
    (Crowd::Count(2), Need::new(enough::<2>)),
    (Crowd::Count(4), Need::new(enough::<4>)),
    (Crowd::Count(8), Need::new(enough::<8>)),
    (Crowd::Count(16), Need::new(enough::<16>)),
    (Crowd::Count(32), Need::new(enough::<32>)),
    (Crowd::Count(64), Need::new(enough::<64>)),
    (Crowd::All, Need::new(another)),
];

fn cases() -> Vec<Case> {
    OPERATIONS.into_iter().flat_map(of_operation).collect()
}

fn of_operation((name, words, make, expected): Operation) -> Vec<Case> {
    let crowds = [Kind::Process, Kind::Thread].into_iter().flat_map(|kind| CROWDS.map(|crowd| (kind, crowd)));
    let several = crowds.map(|(kind, crowd)| several(kind, crowd, (name, words, make, expected)));
    [one(name, words, make, expected)].into_iter().chain(several).collect()
}

fn enough<const COUNT: usize>(place: &Place) -> std::result::Result<(), String> {
    match place.cpus.others.len() + 1 {
        allowed if allowed >= COUNT => Ok(()),
        // One sentence for all of them, so that they share a paragraph.
        allowed => Err(format!(
            "each needs a CPU of its own, and this process is allowed {allowed}: allow more (`taskset -c`), or take a \
             larger machine"
        )),
    }
}

/// All CPUs are a case of their own only where their number is none of the others.
fn another(place: &Place) -> std::result::Result<(), String> {
    let all = place.cpus.others.len() + 1;
    match CROWDS.iter().any(|(crowd, _)| *crowd == Crowd::Count(all)) {
        true => Err(format!("with {all} CPUs this is the same as the case of {all}")),
        false => Ok(()),
    }
}

fn alone(make: Make) -> SetUp {
    Box::new(move |place: &Place| {
        // A number that nobody has who works together with others.
        let mut work = make(place, usize::MAX)?;
        Ok(Box::new(move |n: u64, clock: &Clock| {
            let mut lowest = 0;
            let ticks = clock.time(|| lowest = work(n));
            match lowest {
                0.. => Ok(ticks),
                refused => Err(Error::refused("an operation, in the timed loop", Error::errno(refused))),
            }
        }) as Box<dyn Subject>)
    })
}

fn one(name: &str, words: &str, make: Make, (hardware, software): (f64, f64)) -> Case {
    Case::new(format!("{name}/one"), format!("{words}, by one alone"), alone(make))
        .derive("rate", Rule::Rate)
        .claim(Claim::Linear)
        .predict(hardware, software, "as in the group that measures it by itself")
}

fn several(kind: Kind, (crowd, need): (Crowd, Need), (name, words, make, expected): Operation) -> Case {
    let kinds = if kind == Kind::Process { "processes" } else { "threads" };
    let set_up: SetUp =
        Box::new(move |place: &Place| together(kind, crowd, place, |index| make(place, index), |_| Ok(())));
    let count = crowd.name();
    Case::new(format!("{name}-{kinds}/{count}"), format!("{words}, by {count} {kinds} at once"), set_up)
        .control_set_up(alone(make))
        .need(PINNED)
        .need(TWO_CPUS)
        .need(need)
        .derive("efficiency", Rule::ControlOverCost)
        .derive("rate", Rule::Rate)
        .claim(Claim::Counted(all_stayed))
        .predict(expected.0, expected.1, "as one alone: a kernel should let them pass each other")
}

/// `n` times, and the lowest answer of all.
#[inline(always)]
fn repeat(n: u64, mut once: impl FnMut() -> i64) -> i64 {
    let mut lowest = 0;
    for _ in 0..n {
        lowest = lowest.min(black_box(once()));
    }
    lowest
}

fn getppid(_: &Place, _: usize) -> Result<Work> {
    Ok(Box::new(|n| repeat(n, syscall::getppid)))
}

fn pipe(_: &Place, _: usize) -> Result<Work> {
    let pipe = Bytes::pipe()?;
    Ok(Box::new(move |n| repeat(n, || pipe.send().min(pipe.receive()))))
}

fn fresh_page(_: &Place, _: usize) -> Result<Work> {
    const PAGE: usize = 4096;
    let once = || match MmapMut::map_anon(PAGE) {
        Ok(mut page) => {
            page[0] = 1;
            i64::from(black_box(page[0])) - 1
        }
        Err(error) => -i64::from(error.raw_os_error().unwrap_or(libc::ENOMEM)),
    };
    Ok(Box::new(move |n| repeat(n, once)))
}

fn open_close(place: &Place, index: usize) -> Result<Work> {
    let path = place.scratch.join(format!("scale-{index}"));
    File::create(&path).map_err(|e| Error::file(&path, "creating", e))?;
    let path = CString::new(path.as_os_str().as_bytes())
        .map_err(|_| Error::Usage(format!("{}: a path holds a zero byte", path.display())))?;
    Ok(Box::new(move |n| repeat(n, || syscall::open_close(&path))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::{Cpus, Scale};

    /// The counts of processes that are measured where so many CPUs are allowed.
    fn measured(cpus: usize) -> Vec<String> {
        let place = Place {
            scratch: std::env::temp_dir(),
            scale: Scale::Smoke,
            cpus: Cpus::around(Some(0), (0..cpus).collect()),
        };
        let asked = |case: &Case| case.needs.iter().all(|need| need.ask(&place).is_ok());
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
    fn who_has_too_few_cpus_is_told_how_many_it_takes() {
        let place =
            Place { scratch: "/".into(), scale: Scale::Smoke, cpus: Cpus::around(Some(0), vec![0, 1]) };
        assert!(enough::<4>(&place).expect_err("too few").contains("this process is allowed 2"));
        assert!(another(&place).expect_err("the same").contains("the case of 2"));
    }
}

//! # What is timed
//! A token round a ring of tasks on one CPU: each task waits for it at a pipe of its own, reads a working set of its
//! own from end to end, and passes the token on. One iteration is one round, which is as many switches as the ring
//! has tasks. `processes-8/64KiB` is a ring of eight processes with 64 KiB each. `move` is the measuring thread that moves to another
//! CPU and back, by two calls of `sched_setaffinity`.
//!
//! # What is not
//! Starting the tasks, and the first writing of each working set.
//!
//! # How we know
//! The kernel's accounts of every task are read before and after each sample: each task must have left the CPU at
//! least once a round, and none may be seen on another CPU. Every working set was written by its own task, so that no
//! two share a page. After each move the thread asks on which CPU it runs. A task that dies or does not answer ends the case.
//!
//! # What fools it
//! Working sets that together exceed a cache cost more than the switch. The larger rings measure exactly that: their
//! number is not the price of changing registers. The control reads one set, which stays in the cache, so that all
//! refilling counts as part of the switch. In the last cache levels the cost depends on the physical pages of a set, too. The
//! neighbours of a guest share its last cache level.
//!
//! # Reading the number
//! `switch` below the table is the round without the control, divided by the tasks: the price of a switch with what the
//! caches lose by it. The control is the same calls and the same reading by one process and one pipe.
//! `processes-2/0KiB` is near the `switch` of `ping_pong/pipe-processes/same-cpu`.
//!
//! # Source
//! lmbench's `lat_ctx` (McVoy and Staelin 1996), which has the same sizes; libMicro's `bind`.

use crate::kit::contract::*;
use crate::kit::ipc::{Bytes, Channel};
use crate::kit::placement::{Placement, explain_refusal};
use crate::kit::round_trip::Exchange;
use crate::platform::cpu::{CpuMask, current_cpu};
use crate::platform::partner::{Class, Kind, Partner};
use Kind::{Process, Thread};
use std::hint::black_box;
use std::sync::Arc;

pub const GROUP: Group = Group::new("context_switch", include_str!("context_switch.rs"), cases)
    .curves(&[
        by_memory_curve("context_switch/processes-2/", "2 processes"),
        by_memory_curve("context_switch/processes-4/", "4 processes"),
        by_memory_curve("context_switch/processes-8/", "8 processes"),
        by_memory_curve("context_switch/processes-16/", "16 processes"),
        by_memory_curve("context_switch/processes-32/", "32 processes"),
        by_memory_curve("context_switch/processes-96/", "96 processes"),
    ])
    .headlines(&[
        Headline::new(27, "processes-2/0KiB", "a switch between processes").with_figure("switch").as_answer(),
        Headline::new(28, "threads-2/0KiB", "a switch between threads").with_figure("switch"),
    ]);

/// A curve along the memory that each process touches.
const fn by_memory_curve(prefix: &'static str, title: &'static str) -> Curve {
    Curve::new(prefix, title, Axis::Bytes("memory of each process"))
}

/// Tasks of a ring.
const RINGS: [usize; 6] = [2, 4, 8, 16, 32, 96];
/// Working sets, KiB.
const SETS_KIB: [usize; 5] = [0, 4, 16, 64, 256];
/// Rings and sets of threads, enough to compare with processes.
const OF_THREADS: [(usize, usize); 4] = [(2, 0), (8, 0), (8, 16), (32, 0)];
/// From this size on, KiB, reading a working set costs more than the switch: the placement of their pages then decides which
/// of two processes is quicker.
const LARGE_SET_KIB: usize = 256;
/// A ring whose round takes more microseconds than this is measured at full scale only.
const LONGEST_US: usize = 100;

fn cases() -> Vec<Case> {
    let all = RINGS.into_iter().flat_map(|ring| SETS_KIB.map(|kib| (ring, kib)));
    let processes = all.map(|(ring, kib)| ring_case(Process, ring, kib));
    let threads = OF_THREADS.map(|(ring, kib)| ring_case(Thread, ring, kib));
    processes.chain(threads).chain(move_cases()).collect()
}

fn ring_case(kind: Kind, ring: usize, kib: usize) -> Case {
    let kinds = if kind == Process { "processes" } else { "threads" };
    let title = format!("a token round {ring} {kinds} with {kib} KiB each, on one CPU");
    let control = set_up(move |_| {
        let (pipe, set) = (Bytes::pipe()?, written_set(kib));
        Ok(move |n: u64, clock: &Clock| time_one_process(&pipe, &set, n * ring as u64, clock))
    });
    let case = Case::new(format!("{kinds}-{ring}/{kib}KiB"), title, ring_set_up(kind, ring, kib));
    let case = Placement::Same.add_needs(case).control_set_up(control);
    // An estimate of a round: 2.5 µs a task, and a quarter of a microsecond for each KiB.
    let is_long = ring * (10 + kib) / 4 > LONGEST_US || ring > 32;
    let case = if is_long { case.need(FULL_SCALE) } else { case };
    let case = if kib < LARGE_SET_KIB { case.claim(Claim::AboveControl) } else { case };
    let why = "a sleep, a wake-up and a switch for each task; what the caches lose comes on top";
    case.derived_figure("switch", Rule::OfNet(1.0 / ring as f64))
        .claim(Claim::Counted(claim_all_switched))
        .predict(ring as f64 * 1_000.0, ring as f64 * 1_700.0, why)
}

/// A working set, every page written.
fn written_set(kib: usize) -> Vec<u64> {
    vec![1; kib * 1024 / size_of::<u64>()]
}

#[inline(always)]
fn sum_words(set: &[u64]) -> u64 {
    set.iter().fold(0, |sum, word| sum.wrapping_add(*word))
}

/// Times the control: as many hops, by one process and one pipe.
fn time_one_process(pipe: &Bytes, set: &[u64], hops: u64, clock: &Clock) -> Result<Ticks> {
    let mut lowest = 0;
    let ticks = clock.time(|| {
        for _ in 0..hops {
            lowest = lowest.min(pipe.send()).min(pipe.receive());
            black_box(sum_words(black_box(set)));
        }
    });
    if lowest < 0 { Err(explain_refusal("pipe", lowest, &mut [], 1)) } else { Ok(ticks) }
}

/// Sets up a ring, whose first task is the measuring thread.
fn ring_set_up(kind: Kind, ring: usize, kib: usize) -> SetUp {
    set_up(move |place| {
        let at = (Placement::Same.partner_cpu(place)?, Class::Ordinary);
        let pipes: Arc<Vec<_>> = Arc::new((0..ring).map(|_| Bytes::pipe()).collect::<Result<_>>()?);
        let partner = |index: usize| {
            let (theirs, nudged) = (Arc::clone(&pipes), Arc::clone(&pipes));
            let mut set = written_set(kib);
            let mut is_own = false;
            let step = move || {
                if !is_own {
                    // After a fork the pages are shared with the parent until they are written.
                    set.fill(index as u64);
                    is_own = true;
                }
                match theirs[index].receive() {
                    refused if refused < 0 => refused,
                    _ => {
                        black_box(sum_words(black_box(&set)));
                        theirs[(index + 1) % theirs.len()].send()
                    }
                }
            };
            Partner::start(kind, at, step, move || _ = nudged[index].send())
        };
        let partners = (1..ring).map(partner).collect::<Result<_>>()?;
        let set = written_set(kib);
        Exchange::new("a ring of pipes", partners, ring as u64, move || {
            let answer = pipes[1].send().min(pipes[0].receive());
            if answer >= 0 {
                black_box(sum_words(black_box(&set)));
            }
            answer
        })
    })
}

/// The claim that every task switched: on one CPU the token reaches the next task only after this one has left it.
fn claim_all_switched(delta: &Delta, rounds: u64) -> Judged {
    let own = delta.counted.voluntary_switches + delta.counted.involuntary_switches;
    let partners = delta.partners.unwrap_or_default();
    let fewest = own.min(partners.fewest_switches);
    let seen = format!("each of {} tasks left the CPU at least {fewest} times", partners.answering + 1);
    ensure(fewest >= rounds, || format!("{seen} in {rounds} rounds: the token did not go round"))?;
    Ok(format!("{seen} in {rounds} rounds, all of them on this CPU"))
}

/// The calls of one iteration.
const MOVES: u64 = 2;

pub(super) fn move_cases() -> Vec<Case> {
    [Placement::Cross, Placement::Awake].map(move_case).into()
}

fn move_case(placement: Placement) -> Case {
    let title = format!("a thread moved to another CPU and back, {}", placement.title());
    let moving = set_up(move |place| Moving::new(place, placement));
    let case = Case::new(format!("move/{}", placement.name()), title, moving);
    let case = if placement == Placement::Awake { case.need(FULL_SCALE) } else { case };
    let idle = if placement == Placement::Cross { 60_000.0 } else { 4_000.0 };
    let why = "twice a kernel thread that is switched to and moves the task, and a CPU that it is moved to";
    placement
        .add_needs(case)
        // The kernel counts the time until the other CPU takes the thread as waiting for a CPU.
        .own_tasks(OwnTasks::Elsewhere)
        .derived_figure("move", Rule::OfCost(1.0 / MOVES as f64))
        .claim(Claim::Checked("after each call the thread runs on the CPU that it asked for"))
        .claim(Claim::Counted(claim_left_cpu))
        .predict(idle, 12_000.0, why)
}

/// The thread that moves.
pub struct Moving {
    /// The CPUs of each call.
    pub sets: [CpuMask; MOVES as usize],
    cpus: [usize; MOVES as usize],
    /// The tasks that keep the CPUs awake.
    spinners: Vec<Partner>,
}

impl Moving {
    /// Moves to the partner's CPU and back.
    ///
    /// # Errors
    /// There is no such CPU, or the kernel refuses a task that keeps it awake.
    pub fn new(place: &Place, placement: Placement) -> Result<Self> {
        let cpus = [placement.partner_cpu(place)?, Placement::Same.partner_cpu(place)?];
        let set = |cpu| CpuMask::new(&[cpu]).map_err(|e| Error::from_errno("a set of CPUs", e));
        Ok(Self { sets: [set(cpus[0])?, set(cpus[1])?], cpus, spinners: placement.start_spinners(place)? })
    }
}

impl Subject for Moving {
    fn run(&mut self, iterations: u64, clock: &Clock) -> Result<Ticks> {
        let (mut strayed, mut refused) = (0u64, None);
        let ticks = clock.time(|| {
            for _ in 0..iterations {
                for (set, cpu) in self.sets.iter().zip(self.cpus) {
                    if let Err(errno) = set.apply() {
                        refused = Some(errno);
                    }
                    strayed += u64::from(current_cpu() != cpu);
                }
            }
        });
        if let Some(errno) = refused {
            // The thread must be on the CPU where the harness expects it.
            let _ = self.sets[1].apply();
            return Err(Error::from_case_errno("sched_setaffinity", errno));
        }
        match strayed {
            0 => Ok(ticks),
            _ => Err(Error::Disproved(format!(
                "after {strayed} of {} calls the thread ran on another CPU than it had asked for",
                MOVES * iterations
            ))),
        }
    }

    fn report(&self) -> Report {
        Report { partners: self.spinners.iter().map(Partner::task).collect(), ..Report::default() }
    }
}

/// The claim that the thread left its CPU at every call: another task, of the kernel, moves it.
fn claim_left_cpu(delta: &Delta, iterations: u64) -> Judged {
    let left = delta.counted.voluntary_switches + delta.counted.involuntary_switches;
    let seen = format!("the thread left a CPU {left} times in {} moves", MOVES * iterations);
    if left < MOVES * iterations { Err(seen) } else { Ok(seen) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::PartnerReport;
    use crate::kit::runnable::{runnable_cases, test_place};
    use crate::platform::cpu;

    #[test]
    fn the_token_comes_back_from_every_ring() {
        let place = test_place(&std::env::temp_dir(), Scale::Smoke);
        let here = place.cpus.here.unwrap();
        let clock = Clock::start_up();
        for (kind, ring, kib) in [(Process, 2, 0), (Process, 8, 4), (Thread, 3, 4)] {
            let run = || (ring_set_up(kind, ring, kib))(&place)?.run(5, &clock);
            assert!(cpu::run_on_cpu(here, run).unwrap().unwrap().0 > 0);
        }
    }

    #[test]
    fn a_task_that_did_not_switch_is_caught() {
        let mut delta = Delta::default();
        delta.counted.voluntary_switches = 10;
        delta.partners = Some(PartnerReport { answering: 7, fewest_switches: 9, ..PartnerReport::default() });
        assert!(claim_all_switched(&delta, 10).unwrap_err().contains("did not go round"));
        assert!(claim_all_switched(&delta, 9).unwrap().contains("each of 8 tasks"));
    }

    #[test]
    fn a_thread_that_moved_is_back_afterwards() {
        let place = test_place(&std::env::temp_dir(), Scale::Full);
        let here = place.cpus.here.unwrap();
        for case in runnable_cases(move_cases(), &place) {
            let ran = cpu::run_on_cpu(here, || {
                (case.set_up)(&place)?.run(20, &Clock::start_up())?;
                Ok::<_, Error>(current_cpu())
            });
            assert_eq!(ran.unwrap().unwrap(), here);
        }
    }

    #[test]
    fn a_thread_that_stayed_is_caught() {
        let mut delta = Delta::default();
        delta.counted.voluntary_switches = 39;
        assert!(claim_left_cpu(&delta, 20).is_err());
        assert!(claim_left_cpu(&delta, 19).is_ok());
    }
}

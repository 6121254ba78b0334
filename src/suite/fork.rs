//! # What is timed
//! The life of a child: it is created, exits at once and is waited for, by `fork`, by `vfork`, and by `clone` with
//! shared memory; `returns-mib/…` is the time until `fork` returns in the parent. Before that, the number of MiB in the
//! id were touched by the parent, in pages of 4 KiB or (`huge-mib`) of 2 MiB, or divided into the given number of
//! `mappings`. Cases named `…/tiny` and `…/true` execute a program: one of three instructions in a file of 129 bytes
//! that this crate writes, which exits, and `/bin/true`, which is loaded with its library; by `fork`, by `vfork`, by
//! `posix_spawn`, and through `sh -c`.
//!
//! # What is not
//! Mapping and touching the parent's memory. In `returns-mib` the child's own life and the wait, which are outside the
//! bracket. The child does nothing: what a program does with its copy of the memory, and the faults of a parent that
//! goes on writing, cost extra.
//!
//! # How we know
//! Each child is waited for and its status is checked: a program that could not be executed exits with 127, and that
//! ends the case. After every batch the kernel is asked whether a child is left, dead or alive. The kernel's own count
//! of created tasks (`/proc/stat`) grew by at least one an iteration. Huge pages are proven by `/proc/self/smaps` when
//! the memory was touched. Where only the return is timed, parent and child have the policy `SCHED_BATCH`, so that the
//! child does not run first. If it still does, after a scheduler tick, it notes this in memory that both share: such a fork
//! is repeated, and not counted. Time grows in proportion to the number of children; with 256 MiB and more each life is
//! timed by itself. A child that does not end is killed after five to ten seconds, and ends its case.
//!
//! # What fools it
//! The measuring process itself: with nothing touched a child still gets the page tables of its seven hundred KiB of
//! private pages and of some forty mappings, a third more than a C program of one page needs. The parent does not write
//! to its memory between two forks, so that its pages stay shared from the first one on: the first fork after they were
//! written costs some more. All children run on the measuring CPU, as they inherit its mask: with another CPU free a
//! child may start sooner, and costs more. Copying tables reads and writes the kernel's structure of each page, 64
//! bytes: beyond some hundred MiB these no longer fit into a cache, the effect of a neighbour that uses the memory
//! multiplies, and the line is steeper. 1024 MiB are not touched at smoke scale. The C library runs what other
//! libraries have registered with `pthread_atfork`; here that is nothing. `sh` is dash on some systems and bash on
//! others, which costs twice as much; either may execute its last command without another fork.
//!
//! # Reading the number
//! The slope by MiB is the cost of a fork that grows with the program's memory; with huge pages it is nearly zero. `vfork`
//! and `posix_spawn` do not copy, so their cost does not grow. What `exec/tiny` costs above a bare life is the kernel's
//! part of executing; what `exec/true` costs above that is the dynamic linker's.
//!
//! # Source
//! CSC501 project report (a whole life, 115 µs); CSE 221 project report (until fork returns, 20.3 µs); lmbench's
//! `lat_proc` (McVoy and Staelin 1996), whose figure for exec is that of a failed one where its program is missing.
//! fork(2), vfork(2), clone(2), posix_spawn(3), execve(2).

mod life;

use crate::kit::contract::*;
use crate::kit::fault_count::with_counted_faults;
use crate::kit::smallest_program::write_runnable_elf;
use crate::kit::start_order::tasks_were_created;
use crate::kit::task::{self, Program, Stack};
use crate::platform::resident::{Mappings, Pages, ResidentMemory};
use life::Bracket;

#[rustfmt::skip]
pub const GROUP: Group = Group::new("fork", include_str!("fork.rs"), cases)
    .fits(&[
        Fit { step: "a further MiB touched, in base pages", prefix: "fork/touched-mib/" },
        Fit { step: "a further MiB touched, until fork returns", prefix: "fork/returns-mib/" },
        Fit { step: "a further MiB touched, in huge pages", prefix: "fork/huge-mib/" },
        Fit { step: "a further mapping", prefix: "fork/mappings/" },
    ])
    .curves(&[
        Curve::new("fork/touched-mib/", "touched memory", Axis::Mebibytes("memory of the parent")),
        Curve::new("fork/returns-mib/", "touched memory, until fork returns", Axis::Mebibytes("memory of the parent")),
        Curve::new("fork/huge-mib/", "the same in huge pages", Axis::Mebibytes("memory of the parent")),
        Curve::new("fork/mappings/", "mappings", Axis::Count("mappings of the parent"))
            .with_chart("cost by mappings"),
    ])
    .headlines(&[
        Headline::new(20, "touched-mib/0", "fork, exit and wait").as_answer(),
        Headline::new(21, "exec/tiny", "fork, exec and wait").as_answer(),
    ]);

fn cases() -> Vec<Case> {
    let mut cases: Vec<_> = [0, 16, 64, 256, 1024].map(touched_memory_case).into();
    cases.extend([0, 16, 64, 256, 1024].map(fork_return_case));
    cases.extend([16, 64, 256, 1024].map(huge_pages_case));
    cases.extend([1, 100, 1000].map(mappings_case));
    cases.extend(shared_memory_cases());
    cases.extend(exec_cases());
    cases
}

/// Predicted cost of a life besides its memory, core cycles: the hardware's part and the kernel's.
const LIFE: (f64, f64) = (30_000.0, 150_000.0);
/// Predicted cost of a MiB in base pages: 256 table entries copied and cleared, 256 reference counts raised and lowered.
const MIB: (f64, f64) = (6_000.0, 34_000.0);

fn touched_memory_case(mib: u32) -> Case {
    let title = format!("fork, exit, wait with {mib} MiB of the parent touched");
    let (hardware, software) = (LIFE.0 + MIB.0 * f64::from(mib), LIFE.1 + MIB.1 * f64::from(mib));
    let bracket = if mib < SINGLE_MIB { Bracket::Batch } else { Bracket::Each };
    let set_up = life::whole_life_set_up("fork", bracket, touched_memory(mib, Pages::Base), fork_and_exit);
    let why = "tables copied and torn down, a count for each page, two switches";
    let case = linear_or_single(mib, Case::new(format!("touched-mib/{mib}"), title, set_up));
    with_counted_faults(with_child_claims(case, (hardware, software), why), [MEMORY_COPIED])
}

fn fork_return_case(mib: u32) -> Case {
    let title = format!("fork until it returns with {mib} MiB of the parent touched");
    let (hardware, software) = (10_000.0 + 3_000.0 * f64::from(mib), 60_000.0 + 17_000.0 * f64::from(mib));
    let set_up = life::fork_call_set_up(touched_memory(mib, Pages::Base));
    let why = "tables copied, a count for each page; the child has yet to run";
    let case = linear_or_single(mib, Case::new(format!("returns-mib/{mib}"), title, set_up));
    let case = with_child_claims(case, (hardware, software), why).claim(Claim::Checked(life::LATER));
    with_counted_faults(case, [MEMORY_COPIED])
}

/// From this size on a life takes milliseconds. Each is timed by itself: batches of several sizes, which would
/// show that the time is proportional, take minutes on a slow machine.
const SINGLE_MIB: u32 = 256;

/// Adds the claim that time is proportional to the number of lives or, for large memory, times each life by itself.
fn linear_or_single(mib: u32, case: Case) -> Case {
    if mib < SINGLE_MIB { case.claim(Claim::Linear) } else { case.one_by_one() }
}

fn huge_pages_case(mib: u32) -> Case {
    let title = format!("fork, exit, wait with {mib} MiB of the parent touched, in huge pages");
    let (hardware, software) = (LIFE.0 + 40.0 * f64::from(mib), LIFE.1 + 400.0 * f64::from(mib));
    let why = "one entry and one spare table for each 2 MiB, two switches";
    let open = touched_memory(mib, Pages::Huge);
    let names = (format!("huge-mib/{mib}"), title);
    let case = life_case(names, "fork", open, fork_and_exit, (hardware, software), why);
    with_counted_faults(case, [MEMORY_COPIED])
        .claim(Claim::Checked("the memory lay in huge pages when it was touched, by /proc/self/smaps"))
}

fn mappings_case(count: u32) -> Case {
    let title = format!("fork, exit, wait with {count} more mappings of a touched page");
    let (hardware, software) = (LIFE.0 + 300.0 * f64::from(count), LIFE.1 + 2_500.0 * f64::from(count));
    let make = move |_: &Place| Mappings::new(count as usize);
    let why = "a structure allocated, linked twice and freed for each mapping";
    let names = (format!("mappings/{count}"), title);
    let case = life_case(names, "fork", make, |_| task::fork_exit(), (hardware, software), why);
    with_counted_faults(case, [MEMORY_COPIED])
}

/// Children in the parent's own memory.
#[rustfmt::skip]
fn shared_memory_cases() -> [Case; 2] {
    const WHY: &str = "a task allocated, run and freed; no memory is copied";
    const CYCLES: (f64, f64) = (5_000.0, 25_000.0);
    [
        life_case(("vfork", "vfork, exit, wait"), "vfork", |_| Ok(()), |()| task::vfork_exit(), CYCLES, WHY),
        life_case(("clone-vm", "clone with shared memory, exit, wait"), "clone with CLONE_VM", |_| Stack::new(), task::clone_vm_exit, CYCLES, WHY),
    ]
}

/// A case of whole lives, all of a batch in one bracket. `call` names the creating call, `open` makes what `create` works on.
fn life_case<T: 'static>(
    (name, title): (impl Into<String>, impl Into<String>),
    call: &'static str,
    open: impl Fn(&Place) -> Result<T> + 'static,
    create: impl Fn(&mut T) -> i64 + Copy + 'static,
    cycles: (f64, f64),
    why: &'static str,
) -> Case {
    let set_up = life::whole_life_set_up(call, Bracket::Batch, open, create);
    with_child_claims(Case::new(name, title, set_up), cycles, why).claim(Claim::Linear)
}

type Execute = fn(&mut Program) -> i64;
type Find = fn(&Place) -> Result<Program>;

/// A way to execute a program: name in the id, words for the title, the call, and its predicted cost without the
/// program, core cycles.
const WAYS: [(&str, &str, Execute, f64); 3] = [
    ("exec", "fork and execve", |program| program.fork_exec(), 180_000.0),
    ("vfork-exec", "vfork and execve", |program| program.vfork_exec(), 30_000.0),
    ("posix-spawn", "posix_spawn", |program| program.spawn(), 40_000.0),
];

fn exec_cases() -> Vec<Case> {
    let found: [(&str, &str, Find, f64); 2] = [
        ("tiny", "a program of 129 bytes", tiny_program, 250_000.0),
        ("true", "/bin/true", |_| Program::new(system_program("true")?, &[]), 1_500_000.0),
    ];
    let mut cases = Vec::new();
    for (way, how, execute, own) in WAYS {
        for (name, what, find, program) in found {
            let names = (format!("{way}/{name}"), format!("{how} of {what}, exit, wait"));
            let why = "a new address space, pages mapped and faulted in, all of it torn down";
            let cycles = (0.2 * (own + program), 0.8 * (own + program));
            cases.push(life_case(names, how, find, execute, cycles, why));
        }
    }
    cases.push(shell_case("tiny", "a program of 129 bytes", |place| {
        let program = write_runnable_elf(&place.scratch)?;
        Program::new(system_program("sh")?, &["-c", &program])
    }));
    cases.push(shell_case("true", "/bin/true", |_| {
        Program::new(system_program("sh")?, &["-c", system_program("true")?])
    }));
    cases
}

fn shell_case(name: &str, what: &str, find: Find) -> Case {
    let execute: Execute = |program| program.spawn();
    let names = (format!("shell/{name}"), format!("posix_spawn of sh -c with {what}, exit, wait"));
    let why = "a shell loaded and linked, then a program more";
    life_case(names, "posix_spawn of sh", find, execute, (700_000.0, 2_800_000.0), why)
}

/// Adds the claims that all cases have, and the prediction.
fn with_child_claims(case: Case, (hardware, software): (f64, f64), why: &'static str) -> Case {
    case.own_tasks(OwnTasks::SameCpu)
        .claim(Claim::Checked(life::REAPED))
        .claim(Claim::Counted(tasks_were_created))
        .predict(hardware, software, why)
}

const MEMORY_COPIED: Claim = Claim::Counted(claim_memory_copied);

/// The claim that the child got an address space of its own. It shares the parent's pages until one of them writes, which
/// the parent does at once, to its stack: so there is at least one fault per fork, and none if the memory itself is shared.
fn claim_memory_copied(delta: &Delta, iterations: u64) -> Judged {
    let faults = delta.counted.minor_faults;
    ensure(faults >= iterations, || {
        format!("the parent took {faults} faults in {iterations} forks: its memory was shared and not copied")
    })?;
    Ok(format!("the parent took {faults} faults on pages that {iterations} forks had shared"))
}

fn fork_and_exit(_: &mut Option<ResidentMemory>) -> i64 {
    task::fork_exit()
}

/// More memory than this is not touched at smoke scale.
const SMOKE_MIB: u32 = 256;

/// Returns the function that maps and touches this many MiB in the parent.
fn touched_memory(mib: u32, pages: Pages) -> impl Fn(&Place) -> Result<Option<ResidentMemory>> {
    move |place| {
        ensure(mib <= SMOKE_MIB || place.scale != Scale::Smoke, || {
            Error::Missing(format!("smoke scale: {mib} MiB are touched at default and full scale"))
        })?;
        if mib == 0 { Ok(None) } else { ResidentMemory::new((mib as usize) << 20, pages).map(Some) }
    }
}

fn tiny_program(place: &Place) -> Result<Program> {
    Program::new(&write_runnable_elf(&place.scratch)?, &[])
}

/// Path of a program of the system.
fn system_program(name: &str) -> Result<&'static str> {
    let places: &[&str] = if name == "sh" { &["/bin/sh"] } else { &["/bin/true", "/usr/bin/true"] };
    let found = places.iter().copied().find(|path| std::path::Path::new(path).exists());
    found.ok_or_else(|| Error::Missing(format!("there is no {} on this system: install one", places[0])))
}

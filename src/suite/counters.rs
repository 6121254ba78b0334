//! # What is timed
//! Reading one of the system's counters: each function of CAMP's Figure 3 that returns at once, through an open handle
//! (`kept`) and by opening, reading and closing (`stateless`). Most have a floor: the same system calls without parsing
//! what they return (`kept-floor`, `stateless-floor`). A rate reads its file twice, and the rate over all CPUs also reads
//! how many there are. `probe/block` is nine counters one after another, as CAMP's monitor of that name and `syscost probe`
//! read them; `probe/block-floor` is the same eight system calls. `…/400-threads` reads a process of 400 threads, and
//! `…/200-interfaces` one interface of 200, in a network namespace of its own.
//!
//! # What is not
//! Opening what is kept. Functions that return a rate wait for an interval; here it is zero, so that only their other
//! cost is timed.
//!
//! # How we know
//! A witness counts the entries of some iterations and their call numbers by `ptrace(2)`: exactly those of the case.
//! Every answer is checked: a reading that is refused ends the case. Time grows in proportion to the number of
//! readings.
//!
//! # What fools it
//! `/proc/stat` grows with the number of CPUs and interrupts, and the kernel always formats all of it. `/proc/PID/stat`
//! is summed over the threads: the process read here is the one that started this one, with a few threads. Reading the
//! clock of a process that runs costs more than that of one that sleeps. A mount of `/proc` with `hidepid` adds a
//! check.
//!
//! # Reading the number
//! The CPU time of a monitor is this cost times its number of readings a second. What `kept` costs above its floor is
//! finding the number in the text, the time stamp, and for a CPU time the check that the process is still the same.
//!
//! # Source
//! CAMP (LISA 2007), Figure 3 and Figures 6 to 8; proc(5).

mod route;

use crate::counters::Probe;
use crate::counters::{Fault, Process, camp, physical_memory};
use crate::kit::contract::*;
use nix::sys::stat::fstat;
use nix::time::{ClockId, clock_gettime};
use route::{ROUTES, Route};
use std::fs::File;
use std::hint::black_box;
use std::os::unix::fs::FileExt;

pub const GROUP: Group = Group::new("counters", include_str!("counters.rs"), cases);

/// A reading, or the reason why there is none.
type Answer<T> = std::result::Result<T, Fault>;
/// One reading, as a number.
type Call = Box<dyn FnMut() -> Answer<u64>>;
/// Opens what a reading needs. Called once a case.
type Open = fn() -> Result<Call>;
/// System calls: name and number.
type Calls = &'static [(&'static str, i64)];

/// The file that lists the CPUs that are online.
const ONLINE: &str = "/sys/devices/system/cpu/online";

const READ_AT: (&str, i64) = ("pread64", libc::SYS_pread64);
const PREAD: Calls = &[READ_AT];
const SYSINFO: Calls = &[("sysinfo", libc::SYS_sysinfo)];
const CLOCK: Calls = &[("clock_gettime", libc::SYS_clock_gettime)];
/// `/proc/uptime`, two counters of an interface, a file of a disk, `stat` and `statm` of a process; free memory; a clock.
const BLOCK: Calls = &[READ_AT, READ_AT, READ_AT, READ_AT, READ_AT, READ_AT, SYSINFO[0], CLOCK[0]];
const CLOCK_AND_PIDFD: Calls = &[CLOCK[0], ("pidfd_send_signal", libc::SYS_pidfd_send_signal)];

fn cases() -> Vec<Case> {
    let mut cases: Vec<_> = ROUTES.iter().flat_map(file_counter_cases).collect();
    cases.extend(system_call_cases());
    cases.extend(several_call_cases());
    cases.extend(route::populous_cases());
    cases
}

/// The cases of a counter that is a file: kept and stateless, and their floors.
fn file_counter_cases(route: &'static Route) -> Vec<Case> {
    let Route { name, words, path, kept, stateless, cycles } = *route;
    let mut cases = vec![
        reading(format!("{name}/kept"), words, PREAD, (cycles, 100.0, READ), kept),
        reading(format!("{name}/kept-floor"), words, PREAD, (cycles, 0.0, READ), move || kept_floor(path)),
    ];
    if let Some(stateless) = stateless {
        let cost = (if is_rate(name) { 2.0 } else { 1.0 } * cycles, 4_000.0, OPENED);
        let pair = [
            reading(format!("{name}/stateless"), words, &[], cost, stateless),
            reading(format!("{name}/stateless-floor"), words, &[], cost, move || stateless_floor(name, path)),
        ];
        cases.extend(pair.map(|case| {
            // These cost nearly the same as other cases: full scale only.
            if matches!(name, "spent" | "disk-reads" | "pressure") { case.need(FULL_SCALE) } else { case }
        }));
    }
    cases
}

/// Whether the counter is a rate, which reads its file twice.
fn is_rate(name: &str) -> bool {
    matches!(name, "idle" | "spent")
}

/// The least that a kept counter can cost: one read of its open file, without parsing.
fn kept_floor(path: fn() -> Result<String>) -> Result<Call> {
    let path = path()?;
    let file = File::open(&path).map_err(|e| Error::file(&path, "opening", e))?;
    let mut buffer = vec![0; 64 << 10];
    boxed_call(move || read_once(&file, &mut buffer))
}

/// The least that a counter without a kept file can cost: its files opened, read and closed, without parsing.
fn stateless_floor(name: &str, path: fn() -> Result<String>) -> Result<Call> {
    let (path, twice, over_all_cpus) = (path()?, is_rate(name), name == "idle");
    let mut buffer = vec![0; 64 << 10];
    boxed_call(move || {
        let file = File::open(&path).map_err(|_| Fault::Gone(path.clone()))?;
        if twice {
            read_once(&file, &mut buffer)?;
        }
        if over_all_cpus {
            let cpus = File::open(ONLINE).map_err(|_| Fault::Gone(ONLINE.into()))?;
            read_once(&cpus, &mut buffer)?;
        }
        read_once(&file, &mut buffer)
    })
}

const READ: &str = "the kernel writes the numbers as text";
const OPENED: &str = "a path is walked, a file is made and unmade, and the kernel writes the numbers as text";
const FIELD: &str = "entry and exit, and fields of the kernel's";

/// Counters that have system calls of their own.
#[rustfmt::skip]
fn system_call_cases() -> Vec<Case> {
    vec![
        reading("cpu-time/kept", "CPU time of a process", CLOCK_AND_PIDFD, (600.0, 400.0, FIELD), || {
            call_on_handle(Process::open(starter_pid())?, |process| process.cpu_time().map(|reading| reading.value.as_nanos() as u64))
        }),
        reading("cpu-time/kept-floor", "its clock, and whether it is there", CLOCK_AND_PIDFD, (600.0, 300.0, FIELD), || {
            let (process, clock) = (Process::open(starter_pid())?, ClockId::from_raw((!starter_pid() << 3) | 2));
            boxed_call(move || {
                let time = clock_gettime(clock).map_or(0, |time| time.tv_nsec() as u64);
                if process.is_there() { Ok(time) } else { Err(Fault::Gone("the process".into())) }
            })
        }),
        reading("cpu-time/clock-alone", "its clock, by its number alone", CLOCK, (400.0, 200.0, FIELD), || {
            let clock = ClockId::from_raw((!starter_pid() << 3) | 2);
            boxed_call(move || Ok(clock_gettime(clock).map_or(0, |time| time.tv_nsec() as u64)))
        })
        .need(FULL_SCALE),
        reading("free-memory/kept", "free memory", SYSINFO, (500.0, 100.0, FIELD), || {
            boxed_call(|| physical_memory::free().map(|reading| reading.value))
        }),
        reading("free-memory/kept-floor", "free memory", SYSINFO, (500.0, 0.0, FIELD), || {
            boxed_call(|| Ok(nix::sys::sysinfo::sysinfo().map_or(0, |info| info.ram_unused())))
        }),
        reading("threads/kept", "threads of a process", &[], (500.0, 100.0, FIELD), || {
            call_on_handle(Process::open(starter_pid())?, |process| process.threads().map(|reading| reading.value))
        }),
        reading("threads/kept-floor", "links of a directory", &[], (500.0, 0.0, FIELD), || {
            let path = format!("/proc/{}/task", starter_pid());
            let directory = File::open(&path).map_err(|e| Error::file(&path, "opening", e))?;
            boxed_call(move || Ok(fstat(&directory).map_or(0, |status| status.st_size.unsigned_abs().max(1))))
        }),
        reading("threads/stateless", "threads of a process", &[], (1_500.0, 100.0, "a path is walked"), || {
            call_on_handle(starter_pid(), |pid| camp::thread_count(*pid).map(|reading| reading.value))
        }),
    ]
}

/// Counters that need several system calls or other work, and the block of nine counters.
#[rustfmt::skip]
fn several_call_cases() -> Vec<Case> {
    vec![
        reading("cpus/kept", "CPUs that may be used", &[], (400.0, 300.0, "entry and exit, and a set of 1024 bits"), || {
            boxed_call(|| camp::cpu_count_allowed().map(|count| count as u64))
        })
        .need(FULL_SCALE),
        reading("identifier/stateless", "opening a process", &[], (2_000.0, 20_000.0, "four files are opened and closed"), || {
            call_on_handle(starter_pid(), |pid| camp::process_identifier(*pid).map(|process| process.pid() as u64))
        })
        .need(FULL_SCALE),
        reading("probe/block", "nine counters in a block", BLOCK, (9_000.0, 1_000.0, SUM), nine_counters_call),
        reading("probe/block-floor", "their eight calls", BLOCK, (9_000.0, 0.0, SUM), block_floor),
    ]
}

const SUM: &str = "the sum of its parts, of which two are one look";

/// Nine counters in the order of CAMP's `probe`.
fn nine_counters_call() -> Result<Call> {
    let (probe, ..) = open_probe()?;
    boxed_call(move || {
        probe.read_block().map(|block| block.free ^ block.page_faults ^ block.cpu_time.as_nanos() as u64 | 1)
    })
}

/// A probe with the names of its interface and its disk. Without these the block would have fewer counters.
fn open_probe() -> Result<(Probe, String, String)> {
    let probe = Probe::open(starter_pid())?;
    match (probe.interface_name().map(str::to_owned), probe.disk_name().map(str::to_owned)) {
        (Some(interface), Some(disk)) => Ok((probe, interface, disk)),
        _ => Err(Error::Missing("there is no interface or no disk for a block of nine".into())),
    }
}

/// The system calls of [`open_probe`], in its order.
fn block_floor() -> Result<Call> {
    let (_, interface, disk) = open_probe()?;
    let pid = starter_pid();
    let open = |path: String| File::open(&path).map_err(|e| Error::file(&path, "opening", e));
    let uptime = open("/proc/uptime".into())?;
    let [sent, received] =
        ["tx", "rx"].map(|way| open(format!("/sys/class/net/{interface}/statistics/{way}_bytes")));
    let rest = [sent?, received?, open(format!("/sys/class/block/{disk}/stat"))?];
    let process = [open(format!("/proc/{pid}/stat"))?, open(format!("/proc/{pid}/statm"))?];
    let (clock, mut buffer) = (ClockId::from_raw((!pid << 3) | 2), vec![0; 64 << 10]);
    boxed_call(move || {
        read_once(&uptime, &mut buffer)?;
        black_box(nix::sys::sysinfo::sysinfo().is_ok());
        rest.iter().try_for_each(|file| read_once(file, &mut buffer).map(drop))?;
        black_box(clock_gettime(clock).is_ok());
        process.iter().try_for_each(|file| read_once(file, &mut buffer).map(drop))?;
        Ok(1)
    })
}

/// A case of one reading an iteration. Its control is the same loop around a constant.
/// `calls` are those that a witness must see; if there are none, no claim is made about calls.
fn reading(
    name: impl Into<String>,
    title: &str,
    calls: Calls,
    (hardware, software, why): (f64, f64, &'static str),
    open: impl Fn() -> Result<Call> + 'static,
) -> Case {
    let case = Case::new(name, title, set_up(move |_| Ok(repeat_call(open()?))))
        .control_set_up(set_up(|_| Ok(repeat_call(Box::new(|| Ok(1))))))
        .claim(Claim::Checked("every reading had a value"))
        .claim(Claim::AboveControl)
        .claim(Claim::Linear)
        .predict(hardware, software, why);
    if calls.is_empty() { case } else { case.claim(Claim::Enters(calls.to_vec())) }
}

/// The subject: one reading after another in one bracket. The loop keeps the last refusal.
fn repeat_call(mut call: Call) -> impl Subject {
    move |n: u64, clock: &Clock| {
        let mut refused = None;
        let ticks = clock.time(|| {
            for _ in 0..n {
                refused = black_box(call()).err().or(refused.take());
            }
        });
        refused.map_or(Ok(ticks), |fault| Err(fault.into()))
    }
}

fn boxed_call(call: impl FnMut() -> Answer<u64> + 'static) -> Result<Call> {
    Ok(Box::new(call))
}

/// A reading through a handle that stays open.
fn call_on_handle<H: 'static>(mut open: H, read: impl Fn(&mut H) -> Answer<u64> + 'static) -> Result<Call> {
    boxed_call(move || read(&mut open))
}

/// Reads a file without looking at its text.
fn read_once(file: &File, buffer: &mut [u8]) -> Answer<u64> {
    match file.read_at(buffer, 0) {
        Ok(length) if length > 0 => Ok(length as u64),
        _ => Err(Fault::Gone("the file".into())),
    }
}

/// Id of the process that started this one: it has a few threads, and mostly waits. Asking for it is a system call, which
/// must not be in the timed part.
fn starter_pid() -> i32 {
    match nix::unistd::getppid().as_raw() {
        // The parent belongs to another PID namespace, or a sandbox hides it.
        ..=0 => std::process::id() as i32,
        parent => parent,
    }
}

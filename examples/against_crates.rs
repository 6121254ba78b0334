//! What a reading costs by this crate, and by the crates `procfs` and `sysinfo` where they offer the same: medians of
//! nanoseconds a call, measured in turns.
//!
//!     cargo run --profile bench --example against_crates
//!
//! With `--answers` it measures what it is asked for: a line `COUNTER CONTENDER ITERATIONS` each, and answers the
//! nanoseconds that they took. `scripts/against-peers-counters` asks so, with psutil in the same turns.

#![allow(clippy::print_stdout, reason = "an example talks")]

use procfs::{Current, CurrentSI};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::hint::black_box;
use std::io::BufRead;
use std::time::{Duration, Instant};
use syscost::counters::{
    Disk, Interface, Memory, Percent, Pressure, Process, Processors, camp, enumeration, memory, pressure,
};
use sysinfo::{DiskRefreshKind, Disks, Networks, ProcessRefreshKind, ProcessesToUpdate, System};

/// One reading.
type Call = Box<dyn FnMut() -> u64>;
/// Who reads, by what it is called.
type Contenders = Vec<(&'static str, Call)>;

/// Rounds of turns, and how long a turn takes.
const ROUNDS: usize = 41;
const TURN: Duration = Duration::from_millis(2);

fn main() {
    let mut counters = counters();
    if std::env::args().any(|argument| argument == "--answers") {
        return answer(&mut counters);
    }
    println!("{:<16}{:<12}{:>10}  {:>9}  {:>9}", "counter", "by", "ns", "÷ kept", "÷ best");
    for (counter, contenders) in &mut counters {
        let medians = in_turns(contenders);
        let kept = medians.iter().find(|(name, _)| *name == "kept").map_or(f64::NAN, |(_, ns)| *ns);
        let best =
            medians.iter().filter(|(name, _)| is_ours(name)).map(|(_, ns)| *ns).fold(f64::INFINITY, f64::min);
        for (name, ns) in medians {
            println!("{counter:<16}{name:<12}{ns:>10.0}  {:>9.2}  {:>9.2}", ns / kept, ns / best);
        }
    }
}

fn is_ours(name: &str) -> bool {
    matches!(name, "kept" | "stateless")
}

fn answer(counters: &mut BTreeMap<&'static str, Contenders>) {
    for line in std::io::stdin().lock().lines().map_while(Result::ok) {
        let words: Vec<_> = line.split_whitespace().collect();
        match &words[..] {
            ["list"] => {
                let names = counters.iter().map(|(counter, contenders)| {
                    let names: Vec<_> = contenders.iter().map(|(name, _)| *name).collect();
                    format!("{counter} {}", names.join(" "))
                });
                println!("{}", names.collect::<Vec<_>>().join(","));
            }
            [counter, contender, iterations] => {
                let found = counters.iter_mut().find(|(name, _)| *name == counter);
                let (_, contenders) = found.expect("a counter of the list");
                let (_, call) =
                    contenders.iter_mut().find(|(name, _)| name == contender).expect("one of its contenders");
                println!("{}", time(call, iterations.parse().expect("a number")).as_nanos());
            }
            _ => panic!("expected COUNTER CONTENDER ITERATIONS, found {line:?}"),
        }
    }
}

fn time(call: &mut Call, iterations: u64) -> Duration {
    let begun = Instant::now();
    for _ in 0..iterations {
        black_box(call());
    }
    begun.elapsed()
}

/// Median nanoseconds of a call, of each. Who begins changes from round to round.
fn in_turns(contenders: &mut Contenders) -> Vec<(&'static str, f64)> {
    let iterations: Vec<u64> = contenders
        .iter_mut()
        .map(|(_, call)| {
            time(call, 20);
            (TURN.as_nanos() * 20 / time(call, 20).as_nanos().max(1)).max(1) as u64
        })
        .collect();
    let mut taken = vec![Vec::new(); contenders.len()];
    for round in 0..ROUNDS {
        let mut order: Vec<_> = (0..contenders.len()).collect();
        if round % 2 == 1 {
            order.reverse();
        }
        for at in order {
            taken[at]
                .push(time(&mut contenders[at].1, iterations[at]).as_nanos() as f64 / iterations[at] as f64);
        }
    }
    let median = |values: &mut Vec<f64>| {
        values.sort_by(f64::total_cmp);
        values[values.len() / 2]
    };
    contenders.iter().zip(&mut taken).map(|((name, _), values)| (*name, median(values))).collect()
}

fn call(call: impl FnMut() -> u64 + 'static) -> Call {
    Box::new(call)
}

/// The process that is read: this one's parent, which mostly waits. Its own would be dearer. It is asked for once, by a
/// call of the kernel, which is not to be timed.
fn pid() -> i32 {
    std::os::unix::process::parent_id() as i32
}

fn counters() -> BTreeMap<&'static str, Contenders> {
    let mut counters = BTreeMap::from([
        ("cpu-times", cpu_times()),
        ("idle-time", idle_time()),
        ("free-memory", free_memory()),
        ("available", available()),
        ("cpu-time", cpu_time()),
        ("resident", resident()),
        ("page-faults", page_faults()),
        ("threads", threads()),
        ("net-bytes", net_bytes()),
        ("is-there", is_there()),
    ]);
    if let Some(disk) = enumeration::disks().ok().and_then(|disks| disks.into_iter().next()) {
        counters.insert("disk-reads", disk_reads(&disk));
    }
    if let Ok(kept) = Pressure::open(pressure::Resource::Cpu) {
        let stateless = || {
            pressure::once(pressure::Resource::Cpu)
                .map_or(0, |reading| reading.value.some.map_or(0, |some| some.total.as_nanos() as u64))
        };
        let contenders: Contenders = vec![
            ("kept", call(move || kept.stalled().expect("read").value.as_nanos() as u64)),
            ("stateless", call(stateless)),
            ("procfs", call(|| procfs::CpuPressure::current().expect("read").some.total)),
        ];
        counters.insert("pressure", contenders);
    }
    counters
}

/// What all CPUs did, for which there is no stateless function: CAMP's is a rate. The kernel writes all of `/proc/stat`
/// for every look, so that nobody can be much faster than another. `sysinfo` refuses to look again within 200 ms; what can be measured is a first look.
fn cpu_times() -> Contenders {
    let mut kept = Processors::open().expect("/proc");
    vec![
        ("kept", call(move || kept.spent(None).expect("read").value.idle)),
        ("procfs", call(|| procfs::KernelStats::current().expect("read").total.idle)),
        (
            "sysinfo",
            call(|| {
                let mut system = System::new().expect("a system");
                system.refresh_cpu_usage();
                system.cpus().len() as u64
            }),
        ),
    ]
}

fn idle_time() -> Contenders {
    let kept = Processors::open().expect("/proc");
    vec![
        ("kept", call(move || kept.idle().expect("read").value.as_millis() as u64)),
        // Two looks, of which one is counted by the others.
        (
            "stateless",
            call(|| {
                camp::percent_processor_time(None, Duration::ZERO)
                    .map_or(1, |percent: Percent| percent.value as u64)
            }),
        ),
        ("procfs", call(|| procfs::Uptime::current().expect("read").idle as u64)),
    ]
}

fn free_memory() -> Contenders {
    let mut system = System::new().expect("a system");
    vec![
        ("kept", call(|| memory::free().expect("read").value)),
        ("stateless", call(|| camp::free_physical_memory().expect("read").value)),
        ("procfs", call(|| procfs::Meminfo::current().expect("read").mem_free)),
        (
            "sysinfo",
            call(move || {
                system.refresh_memory();
                system.free_memory()
            }),
        ),
    ]
}

fn available() -> Contenders {
    let kept = Memory::open().expect("/proc");
    vec![
        ("kept", call(move || kept.available().expect("read").value)),
        ("stateless", call(|| memory::available().expect("read").value)),
        ("procfs", call(|| procfs::Meminfo::current().expect("read").mem_available.unwrap_or(0))),
    ]
}

fn theirs() -> procfs::process::Process {
    procfs::process::Process::new(pid()).expect("the parent")
}

/// `sysinfo` with as little as it may be asked for.
fn refreshed(kind: ProcessRefreshKind, of: fn(&sysinfo::Process) -> u64) -> Call {
    let (mut system, pid) = (System::new().expect("a system"), sysinfo::Pid::from_u32(pid() as u32));
    call(move || {
        system.refresh_processes_specifics(ProcessesToUpdate::Some(&[pid]), false, kind);
        system.process(pid).map_or(0, of)
    })
}

fn cpu_time() -> Contenders {
    let (parent, their) = (pid(), theirs());
    let kept = Process::open(parent).expect("the parent");
    vec![
        ("kept", call(move || kept.cpu_time().expect("read").value.as_nanos() as u64)),
        (
            "stateless",
            call(move || {
                camp::cpu_time_total(parent, Duration::ZERO).map_or(1, |percent| percent.value as u64)
            }),
        ),
        ("procfs", call(move || their.stat().map(|stat| stat.utime + stat.stime).expect("read"))),
        (
            "sysinfo",
            refreshed(
                ProcessRefreshKind::nothing().without_tasks().with_cpu(),
                sysinfo::Process::accumulated_cpu_time,
            ),
        ),
    ]
}

fn resident() -> Contenders {
    let (parent, their) = (pid(), theirs());
    let kept = Process::open(parent).expect("the parent");
    vec![
        ("kept", call(move || kept.resident().expect("read").value)),
        ("stateless", call(move || camp::working_set_kb(parent).expect("read").value)),
        ("procfs", call(move || their.statm().expect("read").resident)),
        (
            "sysinfo",
            refreshed(ProcessRefreshKind::nothing().without_tasks().with_memory(), sysinfo::Process::memory),
        ),
    ]
}

fn page_faults() -> Contenders {
    let (parent, their) = (pid(), theirs());
    let kept = Process::open(parent).expect("the parent");
    vec![
        ("kept", call(move || kept.page_faults().expect("read").value)),
        ("stateless", call(move || camp::num_page_faults(parent).expect("read").value)),
        ("procfs", call(move || their.stat().map(|stat| stat.minflt + stat.majflt).expect("read"))),
    ]
}

fn threads() -> Contenders {
    let (parent, their) = (pid(), theirs());
    let kept = Process::open(parent).expect("the parent");
    vec![
        ("kept", call(move || kept.threads().expect("read").value)),
        ("stateless", call(move || camp::thread_count(parent).expect("read").value)),
        ("procfs", call(move || their.stat().expect("read").num_threads as u64)),
    ]
}

fn net_bytes() -> Contenders {
    let (kept, mut networks) = (
        Interface::open("lo").expect("every namespace has it"),
        Networks::new_with_refreshed_list().expect("a list"),
    );
    vec![
        ("kept", call(move || kept.bytes_sent().expect("read").value)),
        ("stateless", call(|| camp::net_bytes_sent("lo").expect("read").value)),
        ("procfs", call(|| procfs::net::dev_status().expect("read")["lo"].sent_bytes)),
        (
            "sysinfo",
            call(move || {
                networks.refresh(false);
                networks.get(OsStr::new("lo")).map_or(0, |lo| lo.total_transmitted())
            }),
        ),
    ]
}

/// `sysinfo` knows disks by what is mounted of them.
fn disk_reads(disk: &str) -> Contenders {
    let (kept, name, theirs) = (Disk::open(disk).expect("a disk"), disk.to_owned(), disk.to_owned());
    let refresh = DiskRefreshKind::nothing().with_io_usage();
    let mut disks = Disks::new_with_refreshed_list_specifics(refresh).expect("a list");
    vec![
        ("kept", call(move || kept.reads().expect("read").value)),
        ("stateless", call(move || camp::num_reads_disk(&name).expect("read").value)),
        (
            "procfs",
            call(move || {
                let all = procfs::diskstats().expect("read");
                all.iter().find(|disk| disk.name == theirs).map_or(0, |disk| disk.reads)
            }),
        ),
        (
            "sysinfo",
            call(move || {
                disks.refresh_specifics(false, refresh);
                disks.iter().map(|disk| disk.usage().total_read_bytes).sum()
            }),
        ),
    ]
}

fn is_there() -> Contenders {
    let (parent, their) = (pid(), theirs());
    let kept = Process::open(parent).expect("the parent");
    vec![
        ("kept", call(move || u64::from(kept.is_there()))),
        (
            "stateless",
            call(move || camp::process_identifier(parent).map_or(0, |process| process.pid() as u64)),
        ),
        ("procfs", call(move || u64::from(their.is_alive()))),
    ]
}

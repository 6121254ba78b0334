//! The cost of a reading by this crate, and by the crates `procfs` and `sysinfo` where they offer the same: median
//! nanoseconds for each call, measured in turns. `floor` is the same system call on an open descriptor without parsing,
//! and `reopened` on a descriptor that is opened for it.
//!
//!     cargo run --profile bench -p against-crates
//!
//! With `--answers` it reads lines `COUNTER CONTENDER ITERATIONS` and answers each with the nanoseconds that these
//! took. `experiments/against-peers-counters` uses that, with psutil in the same turns.

#![allow(clippy::print_stdout, reason = "a program talks")]

use nix::time::{ClockId, clock_gettime};
use procfs::{Current, CurrentSI};
use std::collections::BTreeMap;
use std::fs::File;
use std::hint::black_box;
use std::io::BufRead;
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};
use syscost_counters::Probe;
use syscost_counters::{
    Disk, Interface, Memory, Percent, Pressure, Process, Processors, camp, enumeration, physical_memory,
    pressure,
};
use sysinfo::{DiskRefreshKind, Disks, Networks, ProcessRefreshKind, ProcessesToUpdate, System};

/// One reading.
type Call = Box<dyn FnMut() -> u64>;
/// The readers of a counter, by name.
type Contenders = Vec<(&'static str, Call)>;

/// Rounds of turns, and how long a turn takes.
const ROUNDS: usize = 41;
const TURN: Duration = Duration::from_millis(2);

fn main() {
    let mut counters = counters();
    if std::env::args().any(|argument| argument == "--answers") {
        return answer(&mut counters);
    }
    println!("{:<16}{:<12}{:>10}  {:>9}  {:>9}", "counter", "by", "ns", "÷ floor", "÷ ours");
    for (counter, contenders) in &mut counters {
        let medians = in_turns(contenders);
        let of =
            |wanted: &str| medians.iter().find(|(name, _)| *name == wanted).map_or(f64::NAN, |(_, ns)| *ns);
        let best =
            medians.iter().filter(|(name, _)| is_ours(name)).map(|(_, ns)| *ns).fold(f64::INFINITY, f64::min);
        for (name, ns) in &medians {
            let floor = if *name == "stateless" { of("reopened") } else { of("floor") };
            println!("{counter:<16}{name:<12}{ns:>10.0}  {:>9.2}  {:>9.2}", ns / floor, ns / best);
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

/// Median nanoseconds of a call of each contender. The order changes from round to round.
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

/// The look at a file that everybody takes, by hand: where it is kept open, and where it is opened for each look.
fn by_hand(path: impl Into<String>) -> Contenders {
    let path: String = path.into();
    vec![("floor", look_at(&path)), ("reopened", opened(vec![path]))]
}

fn look_at(path: &str) -> Call {
    let (file, mut buffer) = (File::open(path).expect("a file of the kernel's"), vec![0; 64 << 10]);
    call(move || file.read_at(&mut buffer, 0).expect("read") as u64)
}

/// Opens these files one after another and reads each.
fn opened(paths: Vec<String>) -> Call {
    let mut buffer = vec![0; 64 << 10];
    call(move || {
        let mut length = 0;
        for path in &paths {
            let file = File::open(path).expect("a file of the kernel's");
            length += file.read_at(&mut buffer, 0).expect("read");
        }
        length as u64
    })
}

fn of_parent(name: &str) -> String {
    format!("/proc/{}/{name}", pid())
}

fn free_by_hand() -> u64 {
    nix::sys::sysinfo::sysinfo().map_or(0, |info| info.ram_unused())
}

/// The clock of the parent; its number is asked for once.
fn clock_by_hand() -> impl Fn() -> u64 {
    let clock = ClockId::from_raw((!pid() << 3) | 2);
    move || clock_gettime(clock).map_or(0, |time| time.tv_nsec() as u64)
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
        ("block", block()),
    ]);
    if let Some(disk) = enumeration::disks().ok().and_then(|disks| disks.into_iter().next()) {
        counters.insert("disk-reads", disk_reads(&disk));
    }
    if let Ok(kept) = Pressure::open(pressure::Resource::Cpu) {
        let stateless = || {
            pressure::read_pressure(pressure::Resource::Cpu)
                .map_or(0, |reading| reading.value.some.map_or(0, |some| some.total.as_nanos() as u64))
        };
        let contenders: Contenders = vec![
            ("kept", call(move || kept.stalled_time().expect("read").value.as_nanos() as u64)),
            ("stateless", call(stateless)),
            ("procfs", call(|| procfs::CpuPressure::current().expect("read").some.total)),
        ];
        counters.insert("pressure", merge(contenders, by_hand("/proc/pressure/cpu")));
    }
    counters
}

fn merge(mut contenders: Contenders, more: Contenders) -> Contenders {
    contenders.extend(more);
    contenders
}

/// The nine of `probe`, by their names for an interface and a disk.
fn block() -> Contenders {
    let probe = Probe::open(pid()).expect("the parent");
    let (interface, disk) = (probe.interface_name().map(str::to_owned), probe.disk_name().map(str::to_owned));
    let mut looks = vec![look_at("/proc/uptime"), call(free_by_hand)];
    for way in
        interface.iter().flat_map(|name| ["tx", "rx"].map(|way| format!("{name}/statistics/{way}_bytes")))
    {
        looks.push(look_at(&format!("/sys/class/net/{way}")));
    }
    looks.extend(disk.map(|name| look_at(&format!("/sys/class/block/{name}/stat"))));
    looks.push(call(clock_by_hand()));
    looks.extend(["stat", "statm"].map(|name| look_at(&of_parent(name))));
    vec![
        ("kept", call(move || probe.read_block().expect("read").free)),
        ("floor", call(move || looks.iter_mut().map(|look| look()).fold(0, u64::wrapping_add))),
    ]
}

/// What all CPUs did, for which there is no stateless function: CAMP's is a rate. The kernel writes all of `/proc/stat`
/// for every look, so that no reader can be much faster. `sysinfo` refuses to look again within 200 ms; what
/// can be measured is a first look.
fn cpu_times() -> Contenders {
    let mut kept = Processors::open().expect("/proc");
    let contenders = vec![
        ("kept", call(move || kept.time_spent(None).expect("read").value.idle)),
        ("procfs", call(|| procfs::KernelStats::current().expect("read").total.idle)),
        ("sysinfo", call(first_look_of_sysinfo)),
    ];
    merge(contenders, vec![("floor", look_at("/proc/stat"))])
}

fn idle_time() -> Contenders {
    let kept = Processors::open().expect("/proc");
    let contenders = vec![
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
        // The share that the CPUs are busy, which is what idle time is read for.
        ("sysinfo", call(first_look_of_sysinfo)),
    ];
    merge(contenders, vec![("floor", look_at("/proc/uptime")), ("reopened", twice_of_uptime())])
}

fn first_look_of_sysinfo() -> u64 {
    let mut system = System::new();
    system.refresh_cpu_usage();
    system.cpus().len() as u64
}

/// A share takes two looks, and how many CPUs there are.
fn twice_of_uptime() -> Call {
    let mut cpus = opened(vec!["/sys/devices/system/cpu/online".into()]);
    let mut buffer = [0; 64];
    call(move || {
        let uptime = File::open("/proc/uptime").expect("/proc");
        let length =
            uptime.read_at(&mut buffer, 0).expect("read") + uptime.read_at(&mut buffer, 0).expect("read");
        length as u64 + cpus()
    })
}

fn free_memory() -> Contenders {
    let mut system = System::new();
    let contenders = vec![
        ("kept", call(|| physical_memory::free().expect("read").value)),
        ("stateless", call(|| camp::free_physical_memory().expect("read").value)),
        ("procfs", call(|| procfs::Meminfo::current().expect("read").mem_free)),
        (
            "sysinfo",
            call(move || {
                system.refresh_memory();
                system.free_memory()
            }),
        ),
    ];
    merge(contenders, vec![("floor", call(free_by_hand)), ("reopened", call(free_by_hand))])
}

fn available() -> Contenders {
    let kept = Memory::open().expect("/proc");
    let contenders = vec![
        ("kept", call(move || kept.available().expect("read").value)),
        ("stateless", call(|| physical_memory::available().expect("read").value)),
        ("procfs", call(|| procfs::Meminfo::current().expect("read").mem_available.unwrap_or(0))),
    ];
    merge(contenders, by_hand("/proc/meminfo"))
}

fn theirs() -> procfs::process::Process {
    procfs::process::Process::new(pid()).expect("the parent")
}

/// `sysinfo` with as little as it may be asked for.
fn refreshed(kind: ProcessRefreshKind, field: fn(&sysinfo::Process) -> u64) -> Call {
    let (mut system, pid) = (System::new(), sysinfo::Pid::from_u32(pid() as u32));
    call(move || {
        system.refresh_processes_specifics(ProcessesToUpdate::Some(&[pid]), false, kind);
        system.process(pid).map_or(0, field)
    })
}

fn cpu_time() -> Contenders {
    let (parent, their) = (pid(), theirs());
    let kept = Process::open(parent).expect("the parent");
    let contenders = vec![
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
    ];
    merge(contenders, cpu_time_by_hand())
}

/// Its clock, and whether the process is still the same.
fn cpu_time_by_hand() -> Contenders {
    let (process, kept, twice) =
        (Process::open(pid()).expect("the parent"), clock_by_hand(), clock_by_hand());
    vec![
        ("floor", call(move || kept() + u64::from(process.is_there()))),
        // A share is of two looks, and of the time between them.
        (
            "reopened",
            call(move || {
                let (before, begun) = (twice(), Instant::now());
                (twice() - before) / (begun.elapsed().as_nanos() as u64).max(1)
            }),
        ),
    ]
}

fn resident() -> Contenders {
    let (parent, their) = (pid(), theirs());
    let kept = Process::open(parent).expect("the parent");
    let contenders = vec![
        ("kept", call(move || kept.resident().expect("read").value)),
        ("stateless", call(move || camp::working_set_kb(parent).expect("read").value)),
        ("procfs", call(move || their.statm().expect("read").resident)),
        (
            "sysinfo",
            refreshed(ProcessRefreshKind::nothing().without_tasks().with_memory(), sysinfo::Process::memory),
        ),
    ];
    merge(contenders, by_hand(of_parent("statm")))
}

fn page_faults() -> Contenders {
    let (parent, their) = (pid(), theirs());
    let kept = Process::open(parent).expect("the parent");
    let contenders = vec![
        ("kept", call(move || kept.page_faults().expect("read").value)),
        ("stateless", call(move || camp::num_page_faults(parent).expect("read").value)),
        ("procfs", call(move || their.stat().map(|stat| stat.minflt + stat.majflt).expect("read"))),
    ];
    merge(contenders, by_hand(of_parent("stat")))
}

fn threads() -> Contenders {
    let (parent, their) = (pid(), theirs());
    let kept = Process::open(parent).expect("the parent");
    let contenders = vec![
        ("kept", call(move || kept.threads().expect("read").value)),
        ("stateless", call(move || camp::thread_count(parent).expect("read").value)),
        ("procfs", call(move || their.stat().expect("read").num_threads as u64)),
    ];
    merge(contenders, links_by_hand())
}

/// The directory of the threads, which has a link for each.
fn links_by_hand() -> Contenders {
    let path = of_parent("task");
    let tasks = File::open(&path).expect("a directory");
    vec![
        ("floor", call(move || nix::sys::stat::fstat(&tasks).map_or(0, |status| status.st_size as u64))),
        (
            "reopened",
            call(move || nix::sys::stat::stat(path.as_str()).map_or(0, |status| status.st_size as u64)),
        ),
    ]
}

fn net_bytes() -> Contenders {
    let (kept, mut networks) =
        (Interface::open("lo").expect("every namespace has it"), Networks::new_with_refreshed_list());
    let contenders = vec![
        ("kept", call(move || kept.bytes_sent().expect("read").value)),
        ("stateless", call(|| camp::net_bytes_sent("lo").expect("read").value)),
        ("procfs", call(|| procfs::net::dev_status().expect("read")["lo"].sent_bytes)),
        (
            "sysinfo",
            call(move || {
                networks.refresh(false);
                networks.get("lo").map_or(0, |lo| lo.total_transmitted())
            }),
        ),
    ];
    merge(contenders, by_hand("/sys/class/net/lo/statistics/tx_bytes"))
}

/// `sysinfo` knows disks by what is mounted of them.
fn disk_reads(disk: &str) -> Contenders {
    let path = format!("/sys/class/block/{disk}/stat");
    let (kept, name, theirs) = (Disk::open(disk).expect("a disk"), disk.to_owned(), disk.to_owned());
    let refresh = DiskRefreshKind::nothing().with_io_usage();
    let mut disks = Disks::new_with_refreshed_list_specifics(refresh);
    let contenders = vec![
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
    ];
    merge(contenders, by_hand(path))
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

//! The cost of the functions of CAMP's Figure 3 beside that of starting a program for an answer (its Figures 6 and 7).
//!
//! As there, functions of one kind of data are a group, each group is called three times 10 000 times, and functions of
//! CPU time wait for no interval: they read twice, and where no step of their counter has passed between the two they say
//! so. Bars are logarithmic, since a program costs a thousand calls and more.

use serde_json::{Value, json};
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};
use syscost_command_line::page;
use syscost_counters::{Fault, camp};
use syscost_engine::exit::Exit;
use syscost_engine::record::quantity::format_duration;
use syscost_platform::error::Result;
use syscost_platform::signal;

/// Runs of a group, calls in each, and starts of a program.
const RUNS: usize = 3;
const CALLS: usize = 10_000;
const STARTS: usize = 15;
/// Characters of a bar for a factor of ten, and what an empty bar means, ns.
const DECADE: f64 = 3.0;
const EMPTY_NS: f64 = 100.0;

/// Functions that read one kind of data: their name, a call of all, which says whether they answered, and how many they are.
type Functions = (&'static str, fn(&Devices) -> bool, usize);

/// What the functions are asked about.
struct Devices {
    pid: i32,
    disk: Option<String>,
}

const GROUPS: [Functions; 7] = [
    ("CPU, all", |_| has_both_readings(camp::percent_processor_time(None, NO_WAIT)), 1),
    ("CPU, one", |_| has_both_readings(camp::percent_processor_time(Some(0), NO_WAIT)), 1),
    ("free memory", |_| camp::free_physical_memory().is_ok(), 1),
    ("network", read_network_counters, 4),
    ("disk", read_disk_counters, 2),
    ("process CPU", read_process_cpu, 3),
    ("process, rest", read_process_counters, 4),
];
const NO_WAIT: Duration = Duration::ZERO;

/// Programs that print some of the same data: the one of the paper, and two that do less.
const PROGRAMS: [&[&str]; 3] = [&["ps", "-f"], &["vmstat"], &["cat", "/proc/meminfo"]];

/// Whether both readings were made: without a wait between them, `TooShort` is a valid answer.
fn has_both_readings<T>(share: std::result::Result<T, Fault>) -> bool {
    matches!(share, Ok(_) | Err(Fault::TooShort { .. }))
}

fn read_network_counters(_: &Devices) -> bool {
    use camp::{net_bytes_received, net_bytes_sent, net_packets_received, net_packets_sent};
    [net_bytes_sent, net_packets_sent, net_bytes_received, net_packets_received]
        .iter()
        .all(|function| function("lo").is_ok())
}

fn read_disk_counters(devices: &Devices) -> bool {
    let is_readable =
        |name: &String| camp::num_reads_disk(name).is_ok() && camp::num_writes_disk(name).is_ok();
    devices.disk.as_ref().is_some_and(is_readable)
}

fn read_process_cpu(devices: &Devices) -> bool {
    [camp::cpu_time_total, camp::cpu_time_user, camp::cpu_time_kernel]
        .iter()
        .all(|function| has_both_readings(function(devices.pid, NO_WAIT)))
}

fn read_process_counters(devices: &Devices) -> bool {
    [camp::num_page_faults, camp::working_set_kb, camp::vm_size_kb, camp::thread_count]
        .iter()
        .all(|function| function(devices.pid).is_ok())
}

/// Nanoseconds of a call or of a start; `None` where it gives no answer.
struct Cost {
    name: String,
    ns: Option<f64>,
    is_program: bool,
}

pub(super) fn run(pid: i32, as_json: bool) -> Result<ExitCode> {
    let devices = Devices { pid, disk: camp::enum_physical_disks()?.into_iter().next() };
    let mut found = Vec::new();
    for (name, call, functions) in GROUPS {
        let ns = (0..RUNS).map(|_| mean_call_ns(CALLS, || call(&devices))).collect::<Option<Vec<f64>>>();
        let mean = ns.map(|ns| ns.iter().sum::<f64>() / (RUNS * functions) as f64);
        found.push(Cost { name: name.to_owned(), ns: mean, is_program: false });
        if let Some(signal) = signal::pending() {
            return Ok(Exit::Signal(signal).into());
        }
    }
    for words in PROGRAMS {
        let ns = mean_call_ns(STARTS, || start_program(words));
        found.push(Cost { name: words.join(" "), ns, is_program: true });
    }
    match as_json {
        true => page::write_json(&found.iter().map(cost_json).collect::<Vec<_>>())?,
        false => page::write(&cost_table(&found))?,
    }
    Ok(ExitCode::SUCCESS)
}

/// The mean time of what succeeds, ns; `None` if it does not.
fn mean_call_ns(times: usize, run: impl Fn() -> bool) -> Option<f64> {
    let begun = Instant::now();
    let all = (0..times).all(|_| run());
    all.then(|| begun.elapsed().as_nanos() as f64 / times as f64)
}

/// Starts a program and takes its answer, which must not be empty.
fn start_program(words: &[&str]) -> bool {
    let Some((program, arguments)) = words.split_first() else { return false };
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stderr(Stdio::null());
    command.output().is_ok_and(|output| output.status.success() && !output.stdout.is_empty())
}

fn cost_json(cost: &Cost) -> Value {
    let key = if cost.is_program { "start_ns" } else { "call_ns" };
    json!({ "name": cost.name, key: cost.ns })
}

fn cost_table(found: &[Cost]) -> String {
    let programs: Vec<_> = found.iter().filter(|cost| cost.is_program).collect();
    let name_of = |cost: &&Cost| format!("of {}", cost.name.split(' ').next().unwrap_or_default());
    let head = ["functions", "a call", "a second"].map(str::to_owned).into_iter();
    let head = head.chain(programs.iter().map(name_of)).chain(["log scale".to_owned()]);
    let row = |cost: &Cost| {
        let told = |render: &dyn Fn(f64) -> String| cost.ns.map_or_else(|| "–".to_owned(), render);
        let share = |program: &&Cost| match (cost.ns, program.ns) {
            (Some(ns), Some(whole)) => format!("{:.3} %", 100.0 * ns / whole),
            _ => "–".into(),
        };
        let time = [cost.name.clone(), told(&format_duration), told(&|ns| format!("{:.0}", 1e9 / ns))];
        let shares = programs.iter().map(share);
        time.into_iter().chain(shares).chain([told(&log_bar)]).collect()
    };
    let rows: Vec<Vec<String>> = std::iter::once(head.collect()).chain(found.iter().map(row)).collect();
    let rows: Vec<[String; 7]> = rows.into_iter().filter_map(|row| row.try_into().ok()).collect();
    let note = "\na call: the mean of 3 times 10 000; of ps: its share of a start of that program;\nbars: 3 █ are 10 times as long.\n";
    page::columns_text(&rows, usize::MAX) + note
}

/// A bar in proportion to the logarithm.
fn log_bar(ns: f64) -> String {
    "█".repeat((DECADE * (ns / EMPTY_NS).max(1.0).log10()).round() as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_is_not_there_gives_no_time() {
        assert!(!start_program(&["no-such-program-of-anybody"]) && !start_program(&[]));
        assert_eq!(mean_call_ns(3, || false), None);
        assert!(mean_call_ns(3, || true).is_some());
        let cost = |name: &str, ns, is_program| Cost { name: name.into(), ns, is_program };
        let costs = |ns| {
            [cost("a", Some(1e6), false), cost("ps -f", ns, true), cost("b", ns, true), cost("c", ns, true)]
        };
        assert!(cost_table(&costs(None)).contains('–') && cost_json(&costs(None)[1])["start_ns"].is_null());
        assert!(cost_table(&costs(Some(4e6))).contains("25.000 %"), "{}", cost_table(&costs(Some(4e6))));
    }

    #[test]
    fn a_bar_grows_by_three_for_ten_times_as_long() {
        assert_eq!([50.0, 100.0, 1e3, 1e6].map(|ns| log_bar(ns).chars().count()), [0, 0, 3, 12]);
    }

    #[test]
    fn every_group_answers_of_this_process_more_than_a_hundred_times_a_second() {
        let devices = Devices { pid: std::process::id() as i32, disk: None };
        for (name, call, _) in GROUPS.iter().filter(|(name, ..)| *name != "disk") {
            assert!(call(&devices), "{name}");
        }
    }
}

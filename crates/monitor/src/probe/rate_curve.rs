//! The cost of the probe against its rate (Figure 8 of CAMP's paper), as a table with bars and as JSON.
//!
//! As in the paper, one probe is observed by another: a child reads blocks at the rate, and this process reads the child's
//! CPU time and the machine's, 20 times at each rate. The first row is the machine without a probe.

use serde_json::{Value, json};
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};
use syscost_command_line::page;
use syscost_counters::{Fault, Process, Processors, camp};
use syscost_engine::exit::Exit;
use syscost_engine::record::quantity::format_duration;
use syscost_platform::error::{Error, Result};
use syscost_platform::process::{cpus_online, die_with_starter, own_program_command};
use syscost_platform::signal;
use syscost_statistic::mean;
use syscost_statistic::student::mean_interval;

/// Widest bar, characters.
const BAR: f64 = 16.0;
/// The number of samples at a rate.
const SAMPLES: usize = 20;
/// The time by which a probe runs longer than it is observed, seconds.
const MARGIN: f64 = 0.3;

/// The observations at one rate: shares in percent.
struct At {
    rate: u32,
    probe: Vec<f64>,
    machine: Vec<f64>,
    threads: [u64; 2],
    /// The probe's own summary.
    own: Value,
}

/// Starts a probe at each rate for this time, which reads the process `pid` or itself; prints the observations.
pub(super) fn run(pid: Option<i32>, rates: &[u32], seconds: f64, as_json: bool) -> Result<ExitCode> {
    let mut found = Vec::new();
    for rate in std::iter::once(&0).chain(rates) {
        found.push(measure_at_rate(*rate, pid, seconds)?);
        if let Some(signal) = signal::pending() {
            return Ok(Exit::Signal(signal).into());
        }
    }
    let json = found.iter().map(rate_json).collect::<Vec<_>>();
    page::write_json_or(as_json, &json, || rate_table(&found))?;
    Ok(ExitCode::SUCCESS)
}

/// A running probe, which ends when this value is dropped.
struct Running(Child);

impl Running {
    fn start_probe(rate: u32, pid: Option<i32>, seconds: f64) -> Result<Self> {
        let mut command = own_program_command();
        let (rate, seconds) = (rate.to_string(), (seconds + MARGIN).to_string());
        command.args(["probe", "--summary", "--json", "--rate", &rate, "--for", &seconds]);
        command.args(pid.map(|pid| format!("--pid={pid}")));
        die_with_starter(&mut command);
        let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn();
        child.map(Self).map_err(|e| Error::Child(format!("a second probe cannot be started: {e}")))
    }

    /// Waits for its end, and returns its own summary.
    fn read_summary(mut self) -> Result<Value> {
        let mut said = String::new();
        let stdout = self.0.stdout.as_mut();
        stdout.map(|stdout| std::io::Read::read_to_string(stdout, &mut said));
        serde_json::from_str(&said)
            .map_err(|_| Error::Child("the second probe did not say what it cost".into()))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn measure_at_rate(rate: u32, pid: Option<i32>, seconds: f64) -> Result<At> {
    let running = (rate > 0).then(|| Running::start_probe(rate, pid, seconds)).transpose()?;
    // The probe's start is not observed.
    std::thread::sleep(Duration::from_secs_f64(MARGIN / 2.0));
    let process = running.as_ref().map(|running| Process::open(running.0.id() as i32)).transpose()?;
    let (processors, cpus) = (Processors::open()?, cpus_online() as f64);
    let threads = || process.as_ref().map_or(Ok(0), |process| process.threads().map(|read| read.value));
    let looked = || -> Result<(Instant, f64, f64)> {
        let used =
            process.as_ref().map_or(Ok(Duration::ZERO), |process| process.cpu_time().map(|read| read.value));
        let (used, idle) = (used?, processors.idle()?);
        Ok((idle.at, used.as_secs_f64(), idle.value.as_secs_f64()))
    };
    let first = threads()?;
    let (mut probe, mut machine) = (Vec::new(), Vec::new());
    let (begun, mut before) = (Instant::now(), looked()?);
    for sample in 1..=SAMPLES {
        let until = begun + Duration::from_secs_f64(seconds * sample as f64 / SAMPLES as f64);
        std::thread::sleep(until.saturating_duration_since(Instant::now()));
        if signal::pending().is_some() {
            break;
        }
        let now = looked()?;
        let window = (now.0 - before.0).as_secs_f64();
        probe.push(100.0 * (now.1 - before.1) / window);
        machine.push((100.0 * (1.0 - (now.2 - before.2) / cpus / window)).max(0.0));
        before = now;
    }
    let threads = [first, threads()?];
    let own = running.map_or(Ok(Value::Null), Running::read_summary)?;
    Ok(At { rate, probe, machine, threads, own: own["cost"].clone() })
}

/// The mean of the samples, and half of its 95 % interval.
fn mean_and_half_interval(samples: &[f64]) -> (f64, f64) {
    mean_interval(samples)
        .map_or((mean(samples), f64::NAN), |mean| (mean.estimate, mean.high - mean.estimate))
}

impl At {
    /// CPU time per block, ns.
    fn cpu_ns_per_block(&self) -> Option<f64> {
        Some(self.own["cpu_ns"].as_f64()? / self.own["blocks"].as_f64()?.max(1.0))
    }

    /// Growth of the probe's resident set, KiB, and of its number of descriptors.
    fn resource_growth(&self) -> Option<[i64; 2]> {
        let growth = |key: &str| Some(self.own[key]["last"].as_i64()? - self.own[key]["first"].as_i64()?);
        Some([growth("resident_bytes")? >> 10, growth("descriptors")?])
    }
}

fn rate_json(at: &At) -> Value {
    let ((probe, probe_half), (machine, machine_half)) =
        (mean_and_half_interval(&at.probe), mean_and_half_interval(&at.machine));
    json!({
        "rate": at.rate,
        "probe_percent": {"mean": probe, "half_interval": probe_half},
        "machine_percent": {"mean": machine, "half_interval": machine_half},
        "samples": at.probe.len(),
        "threads": {"first": at.threads[0], "last": at.threads[1]},
        "cpu_ns_a_block": at.cpu_ns_per_block(),
        "own": at.own,
    })
}

fn rate_table(found: &[At]) -> String {
    let most = found.iter().map(|at| mean_and_half_interval(&at.probe).0).fold(0.0, f64::max);
    let head = ["blocks/s", "missed", "a block", "machine", "grown", "probe", ""];
    let head = head.map(str::to_owned);
    let row = |at: &At| {
        let ((probe, half), (machine, its_half)) =
            (mean_and_half_interval(&at.probe), mean_and_half_interval(&at.machine));
        let none = || "–".to_owned();
        [
            if at.rate == 0 { "none".into() } else { at.rate.to_string() },
            at.own["missed"].as_u64().map_or_else(none, |missed| missed.to_string()),
            at.cpu_ns_per_block().map_or_else(none, format_duration),
            format!("{machine:.1} ±{its_half:.1}"),
            at.resource_growth().map_or_else(none, |grown| growth_text(grown, at.threads)),
            if at.rate == 0 { none() } else { format!("{probe:.3} ±{half:.3}") },
            proportional_bar(probe, most),
        ]
    };
    let rows: Vec<_> = std::iter::once(head).chain(found.iter().map(row)).collect();
    let note = "\nmachine: percent of all CPUs; probe: percent of one; grown: its memory, files or\nthreads; ±: the 95 % interval of 20 samples.\n";
    page::columns_text(&rows, usize::MAX) + note
}

/// Describes the growth of a probe: KiB, descriptors, and threads at the first and the last observation.
fn growth_text([kib, descriptors]: [i64; 2], [first, last]: [u64; 2]) -> String {
    match (kib, descriptors, first == last) {
        (..=0, 0, true) => "nothing".into(),
        _ => format!("{kib} KiB, {descriptors} files, threads {first}→{last}"),
    }
}

/// A bar in proportion to the greatest value, `most`.
fn proportional_bar(value: f64, most: f64) -> String {
    let length = if most > 0.0 { (BAR * value / most).round() as usize } else { 0 };
    "█".repeat(length)
}

// The cost of the functions of CAMP's Figure 3, beside the cost of starting a program for the same data (its Figures 6 and
// 7).
//
// As in the paper, functions of one kind of data form a group, and each group is called three times 10 000 times. Functions
// of CPU time wait for no interval: they read twice, and return an error if no step of their counter has passed in between.
// Bars are logarithmic, since starting a program costs as much as a thousand calls or more.

/// Runs of a group, calls in each run, and starts of a program.
const RUNS: usize = 3;
const CALLS: usize = 10_000;
const STARTS: usize = 15;
/// The number of characters of a bar for a factor of ten, and the time that an empty bar stands for, ns.
const DECADE: f64 = 3.0;
const EMPTY_NS: f64 = 100.0;

/// A group of functions that read one kind of data: its name, a call of all of them that returns whether they succeeded, and
/// their number.
type Functions = (&'static str, fn(&Devices) -> bool, usize);

/// The objects that the functions read.
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

/// Programs that print some of the same data: that of the paper, and two that do less.
const PROGRAMS: [&[&str]; 3] = [&["ps", "-f"], &["vmstat"], &["cat", "/proc/meminfo"]];

/// Whether both readings were made: without a wait between them, `TooShort` is a valid result.
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

/// Nanoseconds of a call or of a start; `None` where it fails.
struct Cost {
    name: String,
    ns: Option<f64>,
    is_program: bool,
}

pub(super) fn measure_calls(pid: i32, as_json: bool) -> Result<ExitCode> {
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
    let json = found.iter().map(cost_json).collect::<Vec<_>>();
    page::write_json_or(as_json, &json, || cost_table(&found))?;
    Ok(ExitCode::SUCCESS)
}

/// The mean time of a successful run, ns; `None` if a run fails.
fn mean_call_ns(times: usize, run: impl Fn() -> bool) -> Option<f64> {
    let begun = Instant::now();
    let all = (0..times).all(|_| run());
    all.then(|| begun.elapsed().as_nanos() as f64 / times as f64)
}

/// Starts a program and reads its output, which must not be empty. Returns whether that succeeded.
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

/// A bar in proportion to the logarithm of the time.
fn log_bar(ns: f64) -> String {
    "█".repeat((DECADE * (ns / EMPTY_NS).max(1.0).log10()).round() as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_are_in_proportion() {
        let length = |value| proportional_bar(value, 8.0).chars().count();
        assert_eq!([8.0, 4.0, 0.0].map(length), [16, 8, 0]);
        assert_eq!(proportional_bar(0.0, 0.0), "");
    }

    #[test]
    fn the_row_of_the_machine_alone_has_no_probe() {
        let at = measure_at_rate(0, None, 0.3).expect("watched");
        assert_eq!((at.machine.len(), at.own.is_null()), (SAMPLES, true));
        let table = rate_table(&[at]);
        assert!(table.contains("none") && table.contains('–'), "{table}");
    }

    #[test]
    fn a_missing_program_has_no_time() {
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
    fn a_bar_grows_by_three_characters_for_a_tenfold_time() {
        assert_eq!([50.0, 100.0, 1e3, 1e6].map(|ns| log_bar(ns).chars().count()), [0, 0, 3, 12]);
    }

    #[test]
    fn every_group_can_be_read_a_hundred_times_per_second() {
        let devices = Devices { pid: std::process::id() as i32, disk: None };
        for (name, call, _) in GROUPS.iter().filter(|(name, ..)| *name != "disk") {
            assert!(call(&devices), "{name}");
        }
    }
}

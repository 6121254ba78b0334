//! The cost of the probe against its rate (Figure 8 of CAMP's paper), as a table with bars and as JSON.
//!
//! As there, one probe is watched by another: a child reads blocks at the rate, and this process reads the child's CPU
//! time and the machine's, 20 times at each rate. The first row is the machine without a probe.

use serde_json::{Value, json};
use std::process::{Child, ExitCode, Stdio};
use std::time::{Duration, Instant};
use syscost_command_line::page;
use syscost_counters::{Process, Processors};
use syscost_engine::exit::Exit;
use syscost_engine::record::quantity::format_duration;
use syscost_platform::error::{Error, Result};
use syscost_platform::process::{cpus_online, die_with_starter, own_program_command};
use syscost_platform::signal;
use syscost_statistic::mean;
use syscost_statistic::student::mean_interval;

/// Widest bar, characters.
const BAR: f64 = 16.0;
/// Samples of a rate.
const SAMPLES: usize = 20;
/// What a probe runs longer than it is watched.
const MARGIN: f64 = 0.3;

/// What was seen at one rate: shares in percent.
struct At {
    rate: u32,
    probe: Vec<f64>,
    machine: Vec<f64>,
    threads: [u64; 2],
    /// What the probe says of itself.
    own: Value,
}

/// Watches a probe of this process or another at each rate for this time, and prints what was seen.
pub(super) fn run(pid: Option<i32>, rates: &[u32], seconds: f64, as_json: bool) -> Result<ExitCode> {
    let mut found = Vec::new();
    for rate in std::iter::once(&0).chain(rates) {
        found.push(measure_at_rate(*rate, pid, seconds)?);
        if let Some(signal) = signal::pending() {
            return Ok(Exit::Signal(signal).into());
        }
    }
    match as_json {
        true => page::write_json(&found.iter().map(rate_json).collect::<Vec<_>>())?,
        false => page::write(&rate_table(&found))?,
    }
    Ok(ExitCode::SUCCESS)
}

/// A probe, which ends with this value.
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

    /// What it says of itself at its end.
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
    // Its start is not what is watched.
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

/// The mean, and half of its 95 % interval.
fn mean_and_half_interval(samples: &[f64]) -> (f64, f64) {
    mean_interval(samples)
        .map_or((mean(samples), f64::NAN), |mean| (mean.estimate, mean.high - mean.estimate))
}

impl At {
    /// CPU time of a block, ns.
    fn cpu_ns_per_block(&self) -> Option<f64> {
        Some(self.own["cpu_ns"].as_f64()? / self.own["blocks"].as_f64()?.max(1.0))
    }

    /// Growth of the probe's resident set, KiB, and of its descriptors.
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

/// Whether a probe has come to hold more: KiB and descriptors, and threads at the first and the last look.
fn growth_text([kib, descriptors]: [i64; 2], [first, last]: [u64; 2]) -> String {
    match (kib, descriptors, first == last) {
        (..=0, 0, true) => "nothing".into(),
        _ => format!("{kib} KiB, {descriptors} files, threads {first}→{last}"),
    }
}

/// A bar in proportion to the greatest value.
fn proportional_bar(value: f64, most: f64) -> String {
    let length = if most > 0.0 { (BAR * value / most).round() as usize } else { 0 };
    "█".repeat(length)
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
    fn the_machine_alone_has_no_probe() {
        let at = measure_at_rate(0, None, 0.3).expect("watched");
        assert_eq!((at.machine.len(), at.own.is_null()), (SAMPLES, true));
        let table = rate_table(&[at]);
        assert!(table.contains("none") && table.contains('–'), "{table}");
    }
}

//! Requests per second with and without the probe, in alternate turns.

use super::other_host::OtherHost;
use crate::Answer;
use crate::apache::{Apache, Model};
use std::process::{Child, Command, Stdio};
use syscost_statistic::{Interval, Random, hodges_lehmann, median};

/// Blocks per second that the probe reads; 0 means no probe.
const RATES: [u32; 3] = [0, 10, 1000];
/// Seconds of one run of wrk.
const SECONDS: u32 = 2;
/// Connections: two for each CPU of a small machine.
const CONNECTIONS: u32 = 4;
const SEED: u64 = 9;
/// The server and its clients have a CPU each: placement by the scheduler would be the largest source of variance. The
/// probe runs on the server's CPU, where its cost is taken from the server.
pub const SERVER_CPU: &str = "1";
const CLIENT_CPU: &str = "0";

/// The result of one run.
#[derive(Clone, Copy)]
struct Run {
    requests: f64,
    latency_us: f64,
    probe_cpu: f64,
}

pub fn run(rounds: usize, clients: &OtherHost) -> Answer {
    let server = Apache::start(Model::Event, &["taskset", "-c", SERVER_CPU])?;
    wrk(&server, clients)?; // warm
    let mut random = Random::new(SEED);
    let mut runs: Vec<[Run; RATES.len()]> = Vec::new();
    println!("{:>5}  {:>10}  {:>10}  {:>10}", "round", "none", "10/s", "1000/s");
    for round in 1..=rounds.max(6) {
        let mut order = [0, 1, 2];
        random.shuffle(&mut order);
        let mut found = [None; RATES.len()];
        for at in order {
            found[at] = Some(beside_probe(&server, clients, RATES[at])?);
        }
        let [Some(none), Some(few), Some(many)] = found else { return Err("a rate was left out".into()) };
        println!("{round:>5}  {:>10.0}  {:>10.0}  {:>10.0}", none.requests, few.requests, many.requests);
        runs.push([none, few, many]);
    }
    println!("\nchange against no probe, with its 95 % interval over {} rounds:", runs.len());
    for (at, rate) in RATES.iter().enumerate().skip(1) {
        let change = |value: fn(&Run) -> f64| {
            let logs: Vec<f64> = runs.iter().map(|run| (value(&run[at]) / value(&run[0])).ln()).collect();
            let Interval { estimate, low, high } =
                hodges_lehmann(&logs, 0.95).map(|log| 100.0 * log.exp_m1());
            format!("{estimate:+.2} % [{low:+.2}, {high:+.2}]")
        };
        let cpu: Vec<f64> = runs.iter().map(|run| run[at].probe_cpu).collect();
        println!(
            "{rate:>5} blocks/s: requests {}, median latency {}; the probe took {:.3} % of a CPU",
            change(|run| run.requests),
            change(|run| run.latency_us),
            median(&cpu)
        );
    }
    Ok(())
}

fn beside_probe(server: &Apache, clients: &OtherHost, rate: u32) -> Answer<Run> {
    let probe = (rate > 0).then(|| probe(server, rate)).transpose()?;
    let (requests, latency_us) = wrk(server, clients)?;
    let probe_cpu = probe.map_or(Ok(0.0), cost)?;
    Ok(Run { requests, latency_us, probe_cpu })
}

pub fn probe(server: &Apache, rate: u32) -> Answer<Child> {
    let syscost = std::env::var("SYSCOST").map_err(|_| "SYSCOST does not name the binary")?;
    let mut command = Command::new("taskset");
    command.args(["-c", SERVER_CPU, &syscost, "probe", "--summary", "--json"]);
    command.args(["--rate", &rate.to_string(), "--pid", &server.pid().to_string()]);
    Ok(command.stdout(Stdio::piped()).spawn()?)
}

/// Ends the probe, and returns the share of a CPU that it used, percent.
pub fn cost(probe: Child) -> Answer<f64> {
    // SIGTERM, because a process that a script starts in the background ignores SIGINT, and so do its children.
    Command::new("kill").arg(probe.id().to_string()).status()?;
    let output = probe.wait_with_output()?;
    let said: serde_json::Value = serde_json::from_slice(&output.stdout)?;
    said["cost"]["cpu_percent"].as_f64().ok_or_else(|| "the probe does not say what it cost".into())
}

/// Requests per second, and the median latency, µs.
fn wrk(server: &Apache, clients: &OtherHost) -> Answer<(f64, f64)> {
    let mut command = Command::new("nsenter");
    command.arg(format!("--net={}", clients.namespace_path().display()));
    command.args(["taskset", "-c", CLIENT_CPU, "wrk", "-t1", "--latency"]);
    command.args([format!("-c{CONNECTIONS}"), format!("-d{SECONDS}s")]);
    let output = command.arg(format!("http://{}/page", server.address)).output()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let word = |name: &str| {
        let line = text.lines().find(|line| line.trim_start().starts_with(name));
        line.and_then(|line| line.split_whitespace().last()).map(str::to_owned)
    };
    if text.contains("Non-2xx") || text.contains("Socket errors") {
        return Err(format!("wrk met errors:\n{text}").into());
    }
    let requests = word("Requests/sec:").and_then(|word| word.parse().ok());
    let latency = word("50%").and_then(|word| micros(&word));
    requests.zip(latency).ok_or_else(|| format!("wrk said:\n{text}").into())
}

fn micros(word: &str) -> Option<f64> {
    let units = [("us", 1.0), ("ms", 1e3), ("s", 1e6)];
    units.iter().find_map(|(unit, factor)| Some(word.strip_suffix(unit)?.parse::<f64>().ok()? * factor))
}

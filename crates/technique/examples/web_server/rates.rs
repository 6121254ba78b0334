//! Response times of a server at the paper's rate of connections and at others, beside probes of several rates, in alternate
//! turns.
//!
//! The paper made 1400 connections, 40 per second, beside each probe. Here the same 35 seconds are divided into turns in
//! random order, so that other events on the machine affect all probes alike.

use super::other_host::OtherHost;
use crate::Answer;
use crate::apache::{Apache, Model};
use crate::crowd::{Visits, arrive};
use crate::impact::{SERVER_CPU, cost, probe};
use crate::picture::rates_svg;
use std::fmt::Write;
use std::path::Path;
use std::time::{Duration, Instant};
use syscost_counters::aggregate::process_tree;
use syscost_statistic::{Interval, Random, hodges_lehmann, median};

/// Connections per second if the command line gives no rate: the rate of the paper.
const PAPER: u32 = 40;
/// Blocks per second that the probe reads; 0 means no probe.
pub const PROBES: [u32; 5] = [0, 1, 10, 100, 1000];
/// The number of turns, and the length of one turn. Together they make the paper's 1400 connections at its rate.
const TURNS: usize = 20;
const TURN: Duration = Duration::from_millis(1750);
const CLIENT_CPU: usize = 0;
const SEED: u64 = 40;

/// The turns at one rate of connections: one turn per probe in each round.
pub struct AtRate {
    pub connections: u32,
    pub turns: Vec<[Turn; PROBES.len()]>,
}

/// The measurements of a turn.
#[derive(Clone, Copy, Default)]
pub struct Turn {
    /// Mean and median response time, ms.
    pub mean: f64,
    pub median: f64,
    /// Share of a CPU that the server and the probe used, percent.
    pub load: f64,
    pub probe: f64,
    /// Share of the connections that began late, percent.
    pub late: f64,
}

pub fn run(directory: &Path, rates: &[&str], clients: &OtherHost) -> Answer {
    std::fs::create_dir_all(directory)?;
    let rates = rates.iter().map(|rate| rate.parse()).collect::<Result<Vec<u32>, _>>()?;
    let rates = if rates.is_empty() { vec![PAPER] } else { rates };
    let server = Apache::start(Model::Prefork, &["taskset", "-c", SERVER_CPU])?;
    let mut all = Vec::new();
    for connections in rates {
        arrive(clients, server.address, connections, connections as usize, CLIENT_CPU)?; // warm
        let at = AtRate { connections, turns: turns(&server, clients, connections)? };
        print!("{}", at.render()?);
        all.push(at);
    }
    std::fs::write(directory.join("rates.csv"), table(&all)?)?;
    let file = directory.join("rates.svg");
    std::fs::write(&file, rates_svg(&all)?)?;
    println!("{}", file.display());
    Ok(())
}

fn turns(server: &Apache, clients: &OtherHost, connections: u32) -> Answer<Vec<[Turn; PROBES.len()]>> {
    let (mut random, mut turns) = (Random::new(SEED), Vec::new());
    for _ in 0..TURNS {
        let mut order: [usize; PROBES.len()] = std::array::from_fn(|at| at);
        random.shuffle(&mut order);
        let mut turn = [Turn::default(); PROBES.len()];
        for at in order {
            turn[at] = measure_with_probe(server, clients, connections, PROBES[at])?;
        }
        turns.push(turn);
    }
    Ok(turns)
}

fn measure_with_probe(server: &Apache, clients: &OtherHost, connections: u32, rate: u32) -> Answer<Turn> {
    let running = (rate > 0).then(|| probe(server, rate)).transpose()?;
    // The start of the probe is not measured.
    std::thread::sleep(Duration::from_millis(60));
    let used = || process_tree(server.pid()).map(|tree| tree.value.cpu_time);
    let (begun, before) = (Instant::now(), used()?);
    let count = (f64::from(connections) * TURN.as_secs_f64()).round() as usize;
    let Visits { times, late } = arrive(clients, server.address, connections, count, CLIENT_CPU)?;
    let load = 100.0 * used()?.saturating_sub(before).as_secs_f64() / begun.elapsed().as_secs_f64();
    let probe = running.map_or(Ok(0.0), cost)?;
    Ok(Turn {
        mean: times.iter().sum::<f64>() / times.len() as f64,
        median: median(&times),
        load,
        probe,
        late: 100.0 * late as f64 / count as f64,
    })
}

impl AtRate {
    /// A value of each turn beside one probe.
    fn over(&self, at: usize, value: impl Fn(&Turn) -> f64) -> Vec<f64> {
        self.turns.iter().map(|turn| value(&turn[at])).collect()
    }

    /// The mean response time beside a probe, ms.
    pub fn response(&self, at: usize) -> Interval {
        hodges_lehmann(&self.over(at, |turn| turn.mean), 0.95)
    }

    /// The change of the response time against the turn without a probe in the same round, percent.
    fn change(&self, at: usize) -> Interval {
        let logs: Vec<f64> = self.turns.iter().map(|turn| (turn[at].mean / turn[0].mean).ln()).collect();
        hodges_lehmann(&logs, 0.95).map(|log| 100.0 * log.exp_m1())
    }

    fn render(&self) -> Result<String, std::fmt::Error> {
        let count = self.turns.len() as f64 * f64::from(self.connections) * TURN.as_secs_f64();
        let load = median(&self.over(0, |turn| turn.load));
        let late: Vec<f64> = (0..PROBES.len()).flat_map(|at| self.over(at, |turn| turn.late)).collect();
        let late = late.iter().sum::<f64>() / late.len().max(1) as f64;
        let mut text = format!(
            "{} connections a second, {count:.0} beside each probe; without one the server has {load:.1} % of a CPU; {late:.1} % began \
             late\n",
            self.connections
        );
        writeln!(
            text,
            "{:>9}  {:>12}  {:>10}  {:>26}  {:>9}",
            "blocks/s", "response, ms", "median", "change", "probe"
        )?;
        for (at, rate) in PROBES.iter().enumerate() {
            let (response, change) = (self.response(at), self.change(at));
            let change = match at {
                0 => "–".to_owned(),
                _ => format!("{:+.2} % [{:+.2}, {:+.2}]", change.estimate, change.low, change.high),
            };
            let (middle, cost) =
                (median(&self.over(at, |turn| turn.median)), median(&self.over(at, |turn| turn.probe)));
            writeln!(
                text,
                "{rate:>9}  {:>12.4}  {middle:>10.4}  {change:>26}  {cost:>7.3} %",
                response.estimate
            )?;
        }
        Ok(text + "\n")
    }
}

fn table(all: &[AtRate]) -> Result<String, std::fmt::Error> {
    let mut text = String::from(
        "connections_per_second,blocks_per_second,turn,mean_ms,median_ms,server_percent,probe_percent\n",
    );
    for at in all {
        for (turn, seen) in at.turns.iter().enumerate() {
            for (rate, Turn { mean, median, load, probe, .. }) in PROBES.iter().zip(seen) {
                writeln!(
                    text,
                    "{},{rate},{turn},{mean:.5},{median:.5},{load:.3},{probe:.4}",
                    at.connections
                )?;
            }
        }
    }
    Ok(text)
}

//! The cost of the probe against its rate (Figure 8 of CAMP's paper), as a table with bars and as JSON.

use super::cost_table::duration_of;
use super::{page, read, silent};
use crate::counters::Probe;
use crate::counters::pace::Pace;
use crate::counters::probe_cost::ProbeCost;
use crate::error::Result;
use crate::platform::signal;
use serde_json::{Value, json};
use std::process::ExitCode;
use std::time::Duration;

/// Widest bar, characters.
const BAR: f64 = 40.0;

/// What was found at one rate.
struct At {
    rate: u32,
    cost: ProbeCost,
}

/// Reads at each rate for this time, and prints what that cost.
pub(super) fn run(probe: &Probe, rates: &[u32], seconds: f64, as_json: bool) -> Result<ExitCode> {
    let mut found = Vec::new();
    for rate in rates {
        let blocks = (seconds * f64::from(*rate)).round().max(1.0) as u64;
        let pace = Pace::every(Duration::from_secs(1) / *rate);
        let (cost, ended) = read(probe, &silent(), pace, blocks, true)?;
        if let Some(fault) = ended {
            return Err(fault.into());
        }
        if let Some(signal) = signal::pending() {
            return Ok(ExitCode::from(128 + signal as u8));
        }
        found.push(At { rate: *rate, cost });
    }
    match as_json {
        true => page::write_json(&found.iter().map(object).collect())?,
        false => page::write(&table(&found))?,
    }
    Ok(ExitCode::SUCCESS)
}

fn object(At { rate, cost }: &At) -> Value {
    json!({
        "rate": rate,
        "blocks": cost.blocks.len(),
        "missed": cost.missed,
        "cpu_percent": cost.cpu_percent(),
        "cpu_ns_a_block": cost.cpu().as_nanos() as f64 / cost.blocks.len().max(1) as f64,
    })
}

fn table(found: &[At]) -> String {
    let most = found.iter().map(|at| at.cost.cpu_percent()).fold(0.0, f64::max);
    let head = ["blocks a second", "missed", "cpu a block", "% of one CPU", ""].map(str::to_owned);
    let row = |At { rate, cost }: &At| {
        let each = cost.cpu().as_nanos() as f64 / cost.blocks.len().max(1) as f64;
        let percent = cost.cpu_percent();
        [
            rate.to_string(),
            cost.missed.to_string(),
            duration_of(each),
            format!("{percent:.3}"),
            bar(percent, most),
        ]
    };
    let rows: Vec<_> = std::iter::once(head).chain(found.iter().map(row)).collect();
    page::aligned(&rows, usize::MAX).into_iter().map(|line| line.trim_end().to_owned() + "\n").collect()
}

/// A bar in proportion to the greatest value.
fn bar(value: f64, most: f64) -> String {
    let length = if most > 0.0 { (BAR * value / most).round() as usize } else { 0 };
    "█".repeat(length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_are_in_proportion() {
        let length = |value| bar(value, 8.0).chars().count();
        assert_eq!([8.0, 4.0, 0.0].map(length), [40, 20, 0]);
        assert_eq!(bar(0.0, 0.0), "");
    }
}

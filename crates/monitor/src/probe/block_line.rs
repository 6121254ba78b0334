//! A block as a line: rates on a terminal, counts in a pipe.

use serde_json::json;
use std::fmt::Write;
use std::time::{Duration, Instant};
use syscost_command_line::page;
use syscost_counters::{Block, Probe};
use syscost_engine::record::quantity::format_size;
use syscost_platform::process::cpus_online;

/// Widths of the columns on a terminal.
const WIDTHS: [usize; 9] = [9, 7, 10, 10, 10, 8, 8, 9, 10];
/// The steps of idle time. A share over less than two of them means nothing.
const STEP: Duration = Duration::from_millis(10);

pub(super) enum Form {
    /// For a terminal.
    Columns { interface: String, disk: String },
    /// Separated by tabs, for a program.
    Rows,
    /// A JSON object on each line.
    Json,
}

impl Form {
    pub(super) fn new(json: bool, probe: &Probe) -> Self {
        let name = |name: Option<&str>| name.unwrap_or("none").to_owned();
        match (json, page::is_piped()) {
            (true, _) => Self::Json,
            (false, true) => Self::Rows,
            (false, false) => {
                Self::Columns { interface: name(probe.interface_name()), disk: name(probe.disk_name()) }
            }
        }
    }

    /// The heading; empty for a program.
    pub(super) fn heading(&self) -> String {
        let Self::Columns { interface, disk } = self else { return String::new() };
        let words = ["seconds", "busy", "free", "sent/s", "recv/s", "disk/s", "cpu", "faults/s", "resident"];
        align_cells(&words.map(str::to_owned)) + &format!("  interface {interface}, disk {disk}\n")
    }

    pub(super) fn append_line(
        &self,
        text: &mut String,
        first: &Instant,
        before: Option<&Block>,
        block: &Block,
    ) {
        let seconds = (block.at - *first).as_secs_f64();
        let line = match self {
            Self::Columns { .. } => align_cells(&rate_cells(seconds, before, block)) + "\n",
            Self::Rows => tabbed_counts(seconds, block) + "\n",
            Self::Json => format!("{}\n", block_json(seconds, block)),
        };
        let _ = text.write_str(&line);
    }
}

fn align_cells(cells: &[String; 9]) -> String {
    cells.iter().zip(WIDTHS).map(|(cell, width)| format!("{cell:>width$}")).collect()
}

fn rate_cells(seconds: f64, before: Option<&Block>, block: &Block) -> [String; 9] {
    let none = || "–".to_owned();
    let passed = before.map(|before| block.at - before.at);
    let busy = before.zip(passed).filter(|(_, passed)| *passed > 2 * STEP).map(|(before, passed)| {
        let idle = block.idle.saturating_sub(before.idle).as_secs_f64() / cpus_online() as f64;
        format!("{:.0} %", (100.0 * (1.0 - idle / passed.as_secs_f64())).clamp(0.0, 100.0))
    });
    let per_second = |field: &dyn Fn(&Block) -> Option<u64>| {
        let grown = field(block)?.checked_sub(field(before?)?)?;
        Some(grown as f64 / passed?.as_secs_f64())
    };
    let bytes = |field: &dyn Fn(&Block) -> Option<u64>| {
        per_second(field).map_or_else(none, |rate| format_size(rate as u64))
    };
    let events = |field: &dyn Fn(&Block) -> Option<u64>| {
        per_second(field).map_or_else(none, |rate| format!("{rate:.0}"))
    };
    let cpu = per_second(&|block| Some(block.cpu_time.as_nanos() as u64));
    [
        format!("{seconds:.3}"),
        busy.unwrap_or_else(none),
        format_size(block.free),
        bytes(&|block| block.bytes_sent),
        bytes(&|block| block.bytes_received),
        events(&|block| block.disk_operations),
        cpu.map_or_else(none, |ns| format!("{:.1} %", ns / 1e7)),
        events(&|block| Some(block.page_faults)),
        format_size(block.resident),
    ]
}

fn tabbed_counts(seconds: f64, block: &Block) -> String {
    let absent = |value: Option<u64>| value.map_or(String::new(), |value| value.to_string());
    let cells = [
        format!("{seconds:.6}"),
        format!("{:.2}", block.idle.as_secs_f64()),
        block.free.to_string(),
        absent(block.bytes_sent),
        absent(block.bytes_received),
        absent(block.disk_operations),
        block.cpu_time.as_nanos().to_string(),
        block.page_faults.to_string(),
        block.threads.to_string(),
        block.resident.to_string(),
    ];
    cells.join("\t")
}

fn block_json(seconds: f64, block: &Block) -> serde_json::Value {
    json!({
        "seconds": seconds,
        "idle_seconds": block.idle.as_secs_f64(),
        "free_bytes": block.free,
        "bytes_sent": block.bytes_sent,
        "bytes_received": block.bytes_received,
        "disk_operations": block.disk_operations,
        "cpu_ns": block.cpu_time.as_nanos() as u64,
        "page_faults": block.page_faults,
        "threads": block.threads,
        "resident_bytes": block.resident,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(at: Instant, idle_ms: u64, cpu_ms: u64) -> Block {
        Block {
            at,
            idle: Duration::from_millis(idle_ms),
            free: 1 << 30,
            bytes_sent: Some(cpu_ms),
            bytes_received: None,
            disk_operations: None,
            cpu_time: Duration::from_millis(cpu_ms),
            page_faults: 7,
            threads: 1,
            resident: 4096,
        }
    }

    #[test]
    fn a_rate_that_is_not_known_is_no_zero() {
        let start = Instant::now();
        let first = rate_cells(0.0, None, &block(start, 0, 0));
        assert_eq!((first[1].as_str(), first[6].as_str(), first[4].as_str()), ("–", "–", "–"));
        let near = block(start + Duration::from_millis(5), 0, 1);
        let near = rate_cells(0.005, Some(&block(start, 0, 0)), &near);
        assert_eq!(
            (near[1].as_str(), near[6].as_str()),
            ("–", "20.0 %"),
            "the clock is fine, the ticks are not"
        );
    }

    #[test]
    fn a_program_is_given_counts() {
        let start = Instant::now();
        assert_eq!(
            tabbed_counts(1.5, &block(start, 20, 3)),
            format!("1.500000\t0.02\t{}\t3\t\t\t3000000\t7\t1\t4096", 1 << 30)
        );
        assert_eq!(block_json(1.5, &block(start, 20, 3))["disk_operations"], serde_json::Value::Null);
    }
}

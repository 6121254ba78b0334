//! `syscost probe`: reads nine counters in a block, at a fixed rate, and reports the cost of the readings, as JSON or as a
//! table.

mod rate_curve;

use serde_json::json;
use std::fmt::Write;
use std::process::ExitCode;
use std::time::{Duration, Instant};
use syscost_command_line::{flag, page};
use syscost_counters::pace::Pace;
use syscost_counters::probe_cost::ProbeCost;
use syscost_counters::{Block, Fault, Probe};
use syscost_engine::exit::Exit;
use syscost_engine::record::quantity::{format_duration, format_size};
use syscost_platform::error::{Error, Result};
use syscost_platform::process::cpus_online;
use syscost_platform::signal;

/// The time for which lines are collected before they are written. A write for each of a thousand lines per second would be
/// most of the probe's cost.
const PATIENCE: Duration = Duration::from_millis(100);

/// Read nine counters at a rate, and tell what that cost
///
/// Reads idle time, free memory, bytes sent and received, disk operations, and a process's CPU time, page faults,
/// threads and resident set at a fixed rate, by descriptors that stay open. Deadlines are absolute, so that the time of
/// a reading does not delay the next; missed deadlines are counted and not made up for. The probe's own cost is printed
/// at the end.
#[derive(clap::Args)]
#[command(
    after_help = "On a terminal a line shows rates since the one before; a dash where two readings are too near for the \
    steps in which their counter moves. In a pipe, and with --json, it has the counts themselves. In a pipe the columns \
    are: seconds, idle seconds of all CPUs, free bytes, bytes sent, bytes received, disk operations, CPU nanoseconds, \
    page faults, threads, resident bytes."
)]
pub(super) struct Args {
    /// Blocks per second
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=1000))]
    rate: u32,
    /// End after this number of blocks
    #[arg(long, value_name = "N", conflicts_with = "seconds", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
    /// End after this time
    #[arg(long = "for", value_name = "SECONDS", value_parser = flag::parse_seconds)]
    seconds: Option<f64>,
    /// Watch a second probe at each of these rates in turn, for 2 seconds or `--for` each, and draw its cost against the rate
    #[arg(long, value_name = "N,N,…", value_delimiter = ',', conflicts_with_all = ["rate", "count", "summary"], value_parser = clap::value_parser!(u32).range(1..=1000))]
    rates: Vec<u32>,
    /// Print the cost of each kind of function, and that of starting ps, vmstat or cat for the same data
    #[arg(long, conflicts_with_all = ["rate", "rates", "count", "seconds", "summary"])]
    costs: bool,
    /// The process that is read [default: the probe itself]
    #[arg(long, value_name = "PID", value_parser = clap::value_parser!(i32).range(1..))]
    pid: Option<i32>,
    /// Print nothing but the cost at the end
    #[arg(long)]
    summary: bool,
    /// Print a line of JSON per block
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &Args) -> Result<ExitCode> {
    signal::watch_signals()?;
    let own = std::process::id() as i32;
    if args.costs {
        return rate_curve::measure_calls(args.pid.unwrap_or(own), args.json);
    }
    let probe = Probe::open(args.pid.unwrap_or(own)).map_err(|fault| match fault {
        Fault::Gone(what) => Error::Usage(format!("--pid: {what}: there is no such process")),
        other => other.into(),
    })?;
    if !args.rates.is_empty() {
        drop(probe);
        return rate_curve::run(args.pid, &args.rates, args.seconds.unwrap_or(2.0), args.json);
    }
    let period = Duration::from_secs(1) / args.rate;
    let blocks = match (args.count, args.seconds) {
        (Some(count), _) => count,
        (None, Some(seconds)) => (seconds * f64::from(args.rate)).round().max(1.0) as u64,
        (None, None) => u64::MAX,
    };
    let form = Form::new(args.json, &probe);
    if !args.summary {
        page::write(&form.heading())?;
    }
    let (cost, ended) = read(&probe, &form, Pace::every(period), blocks, args.summary)?;
    match form {
        _ if args.json => page::write(&format!("{}\n", cost_json(&cost, args.rate)))?,
        Form::Rows if !args.summary => page::write_to_stderr(render_cost(&cost, args.rate).trim_end()),
        _ => page::write(&render_cost(&cost, args.rate))?,
    }
    Ok(match (ended, signal::pending()) {
        (Some(fault), _) => {
            page::warn(&fault);
            ExitCode::FAILURE
        }
        // A probe without a limit is meant to be ended by a signal.
        (None, Some(_)) if blocks == u64::MAX => ExitCode::SUCCESS,
        (None, signal) => Exit::Success.or_signal(signal).into(),
    })
}

/// Reads `blocks` blocks, or fewer if a signal arrives or the process ends; the end of the process is returned as a fault.
fn read(
    probe: &Probe,
    form: &Form,
    mut pace: Pace,
    blocks: u64,
    silent: bool,
) -> Result<(ProbeCost, Option<Fault>)> {
    let mut cost = ProbeCost::begin()?;
    let (mut before, mut ended) = (None::<Block>, None);
    let (mut text, mut sent) = (String::with_capacity(64 << 10), Instant::now());
    for _ in 0..blocks {
        if !pace.wait_for_deadline() || signal::pending().is_some() {
            break;
        }
        let block = match probe.read_block() {
            Ok(block) => block,
            Err(fault) => {
                ended = Some(fault);
                break;
            }
        };
        cost.add_block(&block);
        if !silent {
            form.append_line(&mut text, &cost.first, before.as_ref(), &block);
            if sent.elapsed() >= PATIENCE || text.len() > 48 << 10 {
                if !page::write_unless_closed(&text)? {
                    text.clear();
                    break;
                }
                text.clear();
                sent = Instant::now();
            }
        }
        before = Some(block);
    }
    page::write(&text)?;
    cost.end(pace.missed_deadlines());
    Ok((cost, ended))
}

pub(super) fn cost_json(cost: &ProbeCost, rate: u32) -> serde_json::Value {
    json!({"cost": {
        "rate": rate,
        "blocks": cost.blocks.len(),
        "missed": cost.missed,
        "seconds": cost.elapsed.as_secs_f64(),
        "cpu_ns": cost.cpu_time().as_nanos() as u64,
        "cpu_percent": cost.cpu_percent(),
        "block_ns": {"min": cost.blocks.min(), "median": cost.blocks.value_at_quantile(0.5)},
        "period_ns": {
            "median": cost.periods.value_at_quantile(0.5),
            "deviation": cost.periods.stdev(),
            "max": cost.periods.max(),
        },
        "resident_bytes": {"first": cost.resident[0], "last": cost.resident[1]},
        "descriptors": {"first": cost.descriptors[0], "last": cost.descriptors[1]},
    }})
}

pub(super) fn render_cost(cost: &ProbeCost, rate: u32) -> String {
    let ns = |value: u64| format_duration(value as f64);
    let (blocks, missed, percent) = (cost.blocks.len(), cost.missed, cost.cpu_percent());
    let (cpu, seconds) = (ns(cost.cpu_time().as_nanos() as u64), cost.elapsed.as_secs_f64());
    let mut rows = vec![
        ["blocks", &format!("{blocks} at {rate} a second, {missed} deadlines missed")].map(str::to_owned),
        ["cpu", &format!("{percent:.3} % of one CPU by the process's clock: {cpu} in {seconds:.2} s")]
            .map(str::to_owned),
    ];
    let mut row = |name: &str, text: String| rows.push([name.to_owned(), text]);
    if blocks > 1 {
        let median = ns(cost.periods.value_at_quantile(0.5));
        let (deviation, longest) = (format_duration(cost.periods.stdev()), ns(cost.periods.max()));
        row("period", format!("median {median}, deviation {deviation}, longest {longest}"));
    }
    if blocks > 0 {
        let (median, least) = (ns(cost.blocks.value_at_quantile(0.5)), ns(cost.blocks.min()));
        row("block", format!("median {median}, least {least}"));
    }
    let [first, last] = cost.resident;
    let grown = (last as i64 - first as i64) >> 10;
    row("memory", format!("{} resident, {grown:+} KiB since the second block", format_size(last)));
    let [before, open] = cost.descriptors;
    let constant = if before == open { "constant" } else { "NOT constant" };
    row("descriptors", format!("{open}, {constant}"));
    page::columns_text(&rows, usize::MAX)
}

// The line of a block: rates on a terminal, counts in a pipe.

/// Widths of the columns on a terminal.
const WIDTHS: [usize; 9] = [9, 7, 10, 10, 10, 8, 8, 9, 10];
/// The step of idle time. A share over less than two steps means nothing.
const STEP: Duration = Duration::from_millis(10);

enum Form {
    /// Aligned columns with rates, for a terminal.
    Columns { interface: String, disk: String },
    /// Counts separated by tabs, for a program.
    Rows,
    /// A JSON object on each line.
    Json,
}

impl Form {
    fn new(json: bool, probe: &Probe) -> Self {
        let name = |name: Option<&str>| name.unwrap_or("none").to_owned();
        match (json, page::is_piped()) {
            (true, _) => Self::Json,
            (false, true) => Self::Rows,
            (false, false) => {
                Self::Columns { interface: name(probe.interface_name()), disk: name(probe.disk_name()) }
            }
        }
    }

    /// The heading of the columns; empty for a program.
    fn heading(&self) -> String {
        let Self::Columns { interface, disk } = self else { return String::new() };
        let words = ["seconds", "busy", "free", "sent/s", "recv/s", "disk/s", "cpu", "faults/s", "resident"];
        align_cells(&words.map(str::to_owned)) + &format!("  interface {interface}, disk {disk}\n")
    }

    fn append_line(&self, text: &mut String, first: &Instant, before: Option<&Block>, block: &Block) {
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

    fn parsed(line: &str) -> std::result::Result<Args, clap::Error> {
        flag::parse_line(line)
    }

    #[test]
    fn a_rate_is_one_to_a_thousand_and_an_end_is_one_of_two() {
        for bad in ["--rate 0", "--rate 1001", "--count 0", "--count 3 --for 1", "--for x", "--pid 0"] {
            assert!(parsed(bad).is_err(), "{bad}");
        }
        assert_eq!(parsed("--rate 1000 --for 0.5").expect("half a second").rate, 1000);
        for bad in ["--rates 1,0", "--rates 1 --rate 2", "--costs --for 1", "--rates"] {
            assert!(parsed(bad).is_err(), "{bad}");
        }
        assert_eq!(parsed("--rates 1,2,5 --for 1").expect("three").rates, [1, 2, 5]);
    }

    #[test]
    fn blocks_are_read_at_the_rate_and_leave_no_descriptor_open() {
        let probe = Probe::open(std::process::id() as i32).expect("ourselves");
        let form = Form::new(true, &probe);
        let begun = Instant::now();
        let pace = Pace::every(Duration::from_millis(5));
        let (cost, ended) = read(&probe, &form, pace, 20, true).expect("read");
        assert!(begun.elapsed() >= Duration::from_millis(95) && ended.is_none());
        assert_eq!(cost.blocks.len(), 20);
    }

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
    fn an_unknown_rate_is_not_shown_as_zero() {
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
    fn a_pipe_gets_counts() {
        let start = Instant::now();
        assert_eq!(
            tabbed_counts(1.5, &block(start, 20, 3)),
            format!("1.500000\t0.02\t{}\t3\t\t\t3000000\t7\t1\t4096", 1 << 30)
        );
        assert_eq!(block_json(1.5, &block(start, 20, 3))["disk_operations"], serde_json::Value::Null);
    }
}

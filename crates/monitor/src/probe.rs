//! `syscost probe`: reads nine counters in a block, at a fixed rate, and reports what the reading itself cost, as JSON or as a
//! table.

mod block_line;
mod fork_cost;
mod rate_curve;

use block_line::Form;
use serde_json::json;
use std::process::ExitCode;
use std::time::{Duration, Instant};
use syscost_command_line::{flag, page};
use syscost_counters::pace::Pace;
use syscost_counters::probe_cost::ProbeCost;
use syscost_counters::{Block, Fault, Probe};
use syscost_engine::exit::Exit;
use syscost_engine::record::quantity::{format_duration, format_size};
use syscost_platform::error::{Error, Result};
use syscost_platform::signal;

/// How long lines are collected before they are written: a call for each of a thousand lines a second would be most of
/// the probe's cost.
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
    /// Blocks a second
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
    /// Tell what each kind of function costs, and what starting ps, vmstat or cat for an answer does
    #[arg(long, conflicts_with_all = ["rate", "rates", "count", "seconds", "summary"])]
    costs: bool,
    /// The process that is read [default: the probe itself]
    #[arg(long, value_name = "PID", value_parser = clap::value_parser!(i32).range(1..))]
    pid: Option<i32>,
    /// Print nothing but the cost at the end
    #[arg(long)]
    summary: bool,
    /// Print a line of JSON a block
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &Args) -> Result<ExitCode> {
    signal::watch_signals()?;
    let own = std::process::id() as i32;
    if args.costs {
        return fork_cost::run(args.pid.unwrap_or(own), args.json);
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
        // A probe without an end is meant to be ended by a signal.
        (None, Some(_)) if blocks == u64::MAX => ExitCode::SUCCESS,
        (None, signal) => Exit::Success.or_signal(signal).into(),
    })
}

/// Reads `blocks` blocks, or fewer if a signal comes or the process ends; the latter is returned as a fault.
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
    fn blocks_come_at_their_rate_and_leave_nothing_open() {
        let probe = Probe::open(std::process::id() as i32).expect("ourselves");
        let form = Form::new(true, &probe);
        let begun = Instant::now();
        let pace = Pace::every(Duration::from_millis(5));
        let (cost, ended) = read(&probe, &form, pace, 20, true).expect("read");
        assert!(begun.elapsed() >= Duration::from_millis(95) && ended.is_none());
        assert_eq!(cost.blocks.len(), 20);
    }
}

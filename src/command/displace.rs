//! `syscost displace`: the CPU time that a command or a running service takes, interrupts included.

use super::flag;
use super::page::{self, Tone, columns_text, paint, prose_width, wrap_sentences};
use crate::clock::{Clock, check_clocks};
use crate::environment::Accounting;
use crate::error::{Error, Result};
use crate::exit::Exit;
use crate::platform::kernel_files::KernelFiles;
use crate::platform::{cpu, signal};
use crate::record::quantity::{format_change, format_duration, format_interval};
use crate::render::table::Layout;
use crate::statistic::fluid_cost::Window;
use crate::statistic::{Interval, median};
use crate::trial::displaced_process::{self, Costs, Covered, Fluids, Found};
use serde_json::{Value, json};
use std::ffi::OsString;
use std::process::ExitCode;
use std::time::Duration;

/// Measure the CPU time that a command or a running service displaces
///
/// Runs a process of low priority that uses up what the command leaves of the CPU, and prints what the command took
/// from it: its own time and that of the interrupts that worked for it, whichever task the kernel charged. Also prints
/// what wait4 reports, and the share that accounting missed. With --operations it prints the cost of one operation of the
/// command.
#[derive(clap::Args)]
#[command(
    after_help = "The command and its children stay on one CPU. A service is covered on every CPU that it may run on; \
    nothing of it is changed. Meanwhile the CPU is busy and awake, and other tasks there wait a little longer."
)]
pub struct Args {
    /// The CPU for the command [default: the last on which no other syscost measures]
    #[arg(long, value_name = "N", conflicts_with = "pid")]
    cpu: Option<usize>,
    /// Seconds between two lines of the series in the JSON
    #[arg(long, value_name = "SECONDS", default_value_t = 0.1, value_parser = flag::parse_seconds)]
    interval: f64,
    /// How often to run the command; an interval takes three runs or more
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..), conflicts_with = "pid")]
    runs: u32,
    /// Print the cost of one of N operations: `{}` in COMMAND becomes N, and then the number of an empty run, whose cost is
    /// subtracted
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..), conflicts_with = "pid")]
    operations: Option<u64>,
    /// Operations of the empty run, for a command that refuses 0
    #[arg(long, value_name = "N", default_value_t = 0, requires = "operations")]
    empty: u64,
    /// Watch this process instead of starting one
    #[arg(long, value_name = "PID", conflicts_with = "command")]
    pid: Option<u32>,
    /// How long to watch it, seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 5.0, value_parser = flag::parse_seconds, requires = "pid")]
    seconds: f64,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// The command
    #[arg(trailing_var_arg = true, required_unless_present = "pid", value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// Where the number of operations stands in the command.
const PLACEHOLDER: &str = "{}";

impl Args {
    /// Checks that the command says where the number of operations goes, and that an empty run has fewer.
    fn check_operations(&self) -> Result<()> {
        let Some(operations) = self.operations else { return Ok(()) };
        if self.empty >= operations {
            return Err(Error::Usage(format!(
                "--empty {} is no empty run beside --operations {operations}: expected a smaller number",
                self.empty
            )));
        }
        if self.command_with(operations) != self.command {
            return Ok(());
        }
        Err(Error::Usage(format!(
            "--operations {operations}: the command does not say where the number goes; write {PLACEHOLDER} for it, as in \
                 `syscost displace --operations {operations} -- client --calls {PLACEHOLDER}`"
        )))
    }

    /// The command with this number of operations. A word that is not UTF-8 holds no placeholder.
    fn command_with(&self, operations: u64) -> Vec<OsString> {
        let number = operations.to_string();
        let fill = |word: &OsString| {
            word.to_str().map_or(word.clone(), |text| text.replace(PLACEHOLDER, &number).into())
        };
        self.command.iter().map(fill).collect()
    }
}

pub fn run(args: &Args) -> Result<ExitCode> {
    args.check_operations()?;
    signal::watch_signals()?;
    if let Some(dispute) = check_clocks()? {
        crate::driver::report_error(dispute);
    }
    let clock = Clock::start_up();
    let accounting = Accounting::read(&KernelFiles::live());
    let runs = match args.pid {
        Some(pid) => vec![watch_service(args, pid, &clock, &accounting)?],
        None => run_command(args, &clock, &accounting)?,
    };
    if runs.is_empty() {
        return Ok(Exit::Disproved.or_signal(signal::pending()).into());
    }
    if args.json {
        page::write_json(&costs_json(&runs, &accounting))?
    } else {
        page::write(&render_costs(&runs, &accounting, crate::driver::layout()))?
    }
    Ok(runs.iter().find_map(|run| run.code).map_or(ExitCode::SUCCESS, ExitCode::from))
}

/// Runs the command as often as asked for, and returns the finished runs. Stops after a failure; leaves an interrupted run out.
fn run_command(args: &Args, clock: &Clock, accounting: &Accounting) -> Result<Vec<Covered>> {
    let claimed = cpu::claim_cpu();
    let chosen = args.cpu.or(claimed.as_ref().map(|claimed| claimed.cpu)).unwrap_or_else(cpu::current_cpu);
    if !cpu::allowed_cpus().contains(&chosen) {
        return Err(Error::Usage(format!(
            "CPU {chosen} is not among those that this process may run on: {:?}",
            cpu::allowed_cpus()
        )));
    }
    let _aside = cpu::Aside::keep_off(chosen)?;
    let mut fluids = Fluids::start(&[chosen], clock, accounting.hides_interrupts(), 0)?;
    let interval = Duration::from_secs_f64(args.interval);
    let mut cover = |command: &[OsString]| displaced_process::cover_command(command, &mut fluids, interval);
    if args.operations.is_some() {
        // The first start may read the program from the disk. The empty runs that count come after it.
        cover(&args.command_with(args.empty))?;
    }
    let mut runs: Vec<Covered> = Vec::new();
    while runs.len() < args.runs as usize && signal::pending().is_none() {
        let Some(run) = cover_once(args, &mut cover)? else { break };
        let failed = run.code.is_some();
        runs.push(run);
        if failed {
            break;
        }
    }
    Ok(runs)
}

/// One run of the command, or an empty run and then one with all operations.
///
/// # Errors
/// Those of `cover`; the empty run failed.
fn cover_once(
    args: &Args,
    cover: &mut impl FnMut(&[OsString]) -> Result<Option<Covered>>,
) -> Result<Option<Covered>> {
    let Some(operations) = args.operations else { return cover(&args.command) };
    let Some(empty) = cover(&args.command_with(args.empty))? else { return Ok(None) };
    if let Some(code) = empty.code {
        return Err(Error::Usage(format!(
            "the empty run, with {} for {PLACEHOLDER}, ended with exit code {code}: if the command refuses that number, name \
             another, as in `--empty 1`",
            args.empty
        )));
    }
    let run = cover(&args.command_with(operations))?;
    Ok(run.map(|run| run.subtract_empty_run(&empty, operations - args.empty)))
}

fn watch_service(args: &Args, pid: u32, clock: &Clock, accounting: &Accounting) -> Result<Covered> {
    let cpus = displaced_process::allowed_cpus_of(pid)?;
    let mut fluids = Fluids::start(&cpus, clock, accounting.hides_interrupts(), pid)?;
    let [whole, interval] = [args.seconds, args.interval].map(Duration::from_secs_f64);
    displaced_process::cover_service(pid, &mut fluids, whole, interval)
}

// How `syscost displace` writes what was displaced, for a person and for a program.

/// The four estimates of the cost, each with the name under which it is printed.
fn named_estimators(costs: &Costs) -> [(&'static str, &Found); 4] {
    [
        ("accounting", &costs.charged),
        ("gap", &costs.gap),
        ("daemon-free", &costs.daemon_free),
        ("paper", &costs.paper),
    ]
}

fn render_costs(runs: &[Covered], accounting: &Accounting, layout: Layout) -> String {
    let costs = Costs::from_runs(runs);
    let elapsed: Vec<f64> = runs.iter().map(|run| run.replicate.covered.window.elapsed).collect();
    let cpus: Vec<_> = runs[0].cpus.iter().map(ToString::to_string).collect();
    let times = if runs.len() > 1 { format!(", {} runs", runs.len()) } else { String::new() };
    let empty = empty_run_ns(runs);
    let what = empty.map_or(String::new(), |_| format!("one operation, in runs of {}; ", operations(runs)));
    let head = format!(
        "{what}CPU {}, {} of its time{}{times}",
        cpus.join(","),
        format_duration(median(&elapsed)),
        if cpus.len() > 1 { " together" } else { "" }
    );
    let mut text = paint(Tone::Bold, &head, layout) + "\n";
    let rows: Vec<_> =
        named_estimators(&costs).iter().map(|(name, found)| estimator_row(name, found, &costs)).collect();
    text += &columns_text(&rows, prose_width(layout));
    if let Some(missed) = costs.missed_share() {
        text += &if missed >= 0.0 {
            format!("\naccounting missed {:.1} % of it\n", 100.0 * missed)
        } else {
            format!("\naccounting charged {:.1} % more than it was\n", -100.0 * missed)
        };
    }
    if let Some(ns) = empty {
        text += &format!("\nsubtracted: the empty run, {}\n", format_duration(ns));
    }
    text + "\n" + &wrap_sentences(costs.flags.iter().chain(&accounting.setting_sentences()), layout)
}

/// The number of operations by which a run and its empty run differ.
fn operations(runs: &[Covered]) -> u64 {
    runs[0].replicate.covered.operations as u64
}

/// The median cost of an empty run by the gap estimate, ns. `None` if operations are not counted.
fn empty_run_ns(runs: &[Covered]) -> Option<f64> {
    let each: Vec<_> =
        runs.iter().filter(|run| run.empty.is_some()).filter_map(|run| run.replicate.empty.gap).collect();
    (!each.is_empty()).then(|| median(&each))
}

fn estimator_row(name: &str, found: &Found, costs: &Costs) -> [String; 4] {
    let beyond = |value: &Interval| match (&costs.charged, name) {
        (Ok(charged), "gap" | "daemon-free" | "paper") => format_change(value.estimate / charged.estimate),
        _ => String::new(),
    };
    match found {
        Ok(value) if value.low < value.high => {
            [name.into(), format_duration(value.estimate), beyond(value), format_interval(value, "ns")]
        }
        Ok(value) => [name.into(), format_duration(value.estimate), beyond(value), String::new()],
        Err(why) => [name.into(), "–".into(), String::new(), why.clone()],
    }
}

fn costs_json(runs: &[Covered], accounting: &Accounting) -> Value {
    let costs = Costs::from_runs(runs);
    let value = |found: &Found| match found {
        Ok(interval) => json!({ "ns": interval.estimate, "low": interval.low, "high": interval.high }),
        Err(why) => json!({ "missing": why }),
    };
    let named = named_estimators(&costs).into_iter().map(|(name, found)| (name.to_owned(), value(found)));
    json!({
        "cpus": runs[0].cpus,
        "operations": operations(runs),
        "empty_run_ns": empty_run_ns(runs),
        "columns": named.collect::<serde_json::Map<_, _>>(),
        "missed": costs.missed_share(),
        "flags": costs.flags,
        "accounting": accounting.setting_sentences(),
        "runs": runs.iter().map(run_json).collect::<Vec<_>>(),
    })
}

fn run_json(run: &Covered) -> Value {
    let covered = &run.replicate.covered;
    json!({
        "elapsed_ns": covered.window.elapsed,
        "charged_ns": covered.charged,
        "deferred_interrupts_ns": covered.deferred,
        "others_share": covered.others_share(),
        "stolen_ticks": run.replicate.stolen_ticks,
        "exit_code": run.code.unwrap_or(0),
        "series": run.series.iter().map(|window| window_json(window, run)).collect::<Vec<_>>(),
    })
}

/// One interval of the series: the CPU time that the fluid lost in it, ns, from the interval's own time per loop.
fn window_json(window: &Window, run: &Covered) -> Value {
    let usual = run.replicate.before.interrupts;
    let displaced = window.mean_undisturbed_turn().map(|turn| {
        let lost = window.elapsed - window.loops * (turn + usual);
        lost.clamp(0.0, window.elapsed)
    });
    json!({ "elapsed_ns": window.elapsed, "displaced_ns": displaced, "fluid_ns": window.own })
}

#[cfg(test)]
mod tests {
    use super::super::flag::parse_line;
    use super::*;

    #[test]
    fn a_command_or_a_process_is_asked_for_and_not_both() {
        assert!(parse_line::<Args>("").is_err());
        assert!(parse_line::<Args>("--pid 12 -- true").is_err());
        assert!(parse_line::<Args>("--pid 12 --cpu 1").is_err());
        assert_eq!(parse_line::<Args>("--pid 12").expect("a process").pid, Some(12));
        assert_eq!(parse_line::<Args>("--runs 5 -- sh -c true").expect("a command").command.len(), 3);
    }

    #[test]
    fn the_number_of_operations_goes_where_the_command_says() {
        let words =
            |line: &str, operations| parse_line::<Args>(line).expect("a good line").command_with(operations);
        assert_eq!(words("--operations 500 -- client -n {} --to={}:h", 0), ["client", "-n", "0", "--to=0:h"]);
        for (line, hint) in [
            ("--operations 500 -- client -n 500", "write {} for it"),
            ("--operations 1 --empty 1 -- client {}", "expected a smaller number"),
        ] {
            let refused = parse_line::<Args>(line).expect("clap takes it").check_operations();
            assert!(refused.expect_err(line).to_string().contains(hint), "{line}");
        }
        assert!(parse_line::<Args>("--operations 0 -- client {}").is_err());
        assert!(parse_line::<Args>("--empty 1 -- client {}").is_err(), "an empty run of what?");
        assert!(parse_line::<Args>("--operations 9 --pid 12").is_err());
        parse_line::<Args>("-- find . -exec ls {} ;")
            .expect("a command")
            .check_operations()
            .expect("no number");
    }

    #[test]
    fn a_duration_must_be_a_finite_positive_number_of_seconds() {
        for bad in ["0", "-1", "nan", "inf", "x"] {
            assert!(parse_line::<Args>(&format!("--interval={bad} -- true")).is_err(), "{bad}");
        }
        assert_eq!(parse_line::<Args>("--interval 0.5 -- true").expect("half a second").interval, 0.5);
    }
}

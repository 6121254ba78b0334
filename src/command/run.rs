//! `syscost run`: `cargo bench` without Cargo. Its flags become a command line in Criterion's syntax, which is passed to
//! the measuring processes. Those processes run this same binary.

use super::flag::{Filter, Format, Home, Measuring, parse_seconds};
use super::restore::warn_of_outstanding;
use super::why::explain_operations;
use crate::driver::{self, Arguments, FEWEST_REPLICATIONS, Options};
use crate::error::{Error, Result};
use crate::platform::process::own_program_command;
use crate::record::quantity::{DISPLACED, NANOSECONDS};
use crate::suite::GROUPS;
use clap::ValueEnum;
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::ExitCode;
use syscost_command_case::CommandSpec;

/// Measure, save what was measured, and print the table
///
/// Measures the matching cases, each group in a process of its own, saves the run, and ends with the
/// observation table. A case whose claims do not hold is reported and has no number.
#[derive(clap::Args)]
#[command(
    after_help = "What is not given is taken from SYSCOST_SCALE, SYSCOST_MEASURE, SYSCOST_EVENTS, SYSCOST_DIR and \
    SYSCOST_PREDICTIONS, as with `cargo bench`."
)]
pub struct Args {
    #[command(flatten)]
    filter: Filter,
    #[command(flatten)]
    measuring: Measuring,
    /// How: by the clock around the operation, or by what it displaces, in CPU time, interrupts included
    #[arg(long, value_enum, conflicts_with_all = ["measure", "instructions"])]
    method: Option<Method>,
    /// Displacement: operations of a run (L_PUT in the paper of 1997), where the id of a case does not say them [default: as many
    /// as fill 30 ms, or 60 ms at full scale]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    operations: Option<u64>,
    /// Displacement: undisturbed runs of a case, at least 10 [default: 10, or 20 at full scale]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(i64::from(FEWEST_REPLICATIONS)..))]
    replications: Option<u32>,
    /// Perf events to count beside the time, between commas, in batches that are not timed: page-faults,
    /// context-switches, task-clock, …; with a PMU instructions, cache-misses, …
    #[arg(long, value_name = "LIST")]
    events: Option<String>,
    /// Save what is measured under this name as well
    #[arg(long, value_name = "NAME", conflicts_with = "baseline")]
    save_baseline: Option<String>,
    /// Compare with what was saved under this name, and save nothing under any
    #[arg(long, value_name = "NAME")]
    baseline: Option<String>,
    /// Measure each case by N processes at the same time, each on a CPU of its own: the slowest one, the sum and the efficiency
    /// (`syscost help copies`)
    #[arg(short = 'P', long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..),
        conflicts_with_all = ["method", "measure", "instructions", "why"])]
    copies: Option<u16>,
    /// Samples a case, at least 10
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(10..))]
    sample_size: Option<u32>,
    /// Limit, seconds: no case begins after it, and one that has begun ends. Cases that do not settle get what is left. With less
    /// than 0.15 s a case a whole run measures its headline cases alone [default: none; unsettled cases get half a second a case]
    #[arg(long, value_name = "SECONDS", value_parser = parse_seconds)]
    time: Option<f64>,
    /// End a whole run with every table, and not with one screen
    #[arg(long)]
    all: bool,
    /// End with exit code 3 if a case is disturbed, unwitnessed or not settled
    #[arg(long)]
    strict: bool,
    /// Sample the stacks of the operations, and say by function where their time goes, in place of the usual run (`syscost help why`)
    #[arg(long, requires = "filter")]
    why: bool,
    /// Of a bench of your own: its binary
    #[arg(long, value_name = "FILE", requires = "why")]
    bin: Option<PathBuf>,
    /// How to write the functions
    #[arg(long, value_enum, default_value_t = Format::Terminal, requires = "why")]
    format: Format,
    /// TOML file of your own predictions: a table an id, with hardware_ns, software_ns, why
    #[arg(long, value_name = "FILE")]
    predictions: Option<PathBuf>,
    #[command(flatten)]
    home: Home,
    /// A command to measure instead of cases, as a shell line (`syscost help commands`)
    #[arg(long, value_name = "COMMAND", conflicts_with_all = ["filter", "method", "measure", "instructions", "why"])]
    command: Option<String>,
}

/// The method by which the cost of an operation is determined.
#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum Method {
    Clock,
    Displacement,
}

pub fn run(args: &Args) -> Result<ExitCode> {
    if args.why {
        return explain_operations(&args.filter, &args.measuring, args.bin.as_deref(), args.format);
    }
    if let Some(line) = &args.command {
        return run_command(line);
    }
    let arguments = Arguments::parse(args.criterion_flags())?;
    let options = args.options()?;
    warn_of_outstanding(&args.home.directory());
    driver::run(super::groups()?, &arguments, &options).map(ExitCode::from)
}

/// Becomes the same command line with the filter of this command, which its environment declares.
fn run_command(line: &str) -> Result<ExitCode> {
    const FLAG: &str = "--command";
    let spec = CommandSpec::from_line(line);
    let mut given: Vec<_> = std::env::args_os().skip(1).collect();
    if let Some(at) = given.iter().position(|word| word == FLAG) {
        given.drain(at..=at + 1);
    }
    given.retain(|word| !word.to_string_lossy().starts_with(&format!("{FLAG}=")));
    let mut again = own_program_command();
    again.args(given).args(["--exact", &format!("command/{}", spec.name)]);
    again.env(syscost_command_case::VARIABLE, CommandSpec::list_to_json(&[spec]));
    Err(Error::Kernel { call: "execve of this program".into(), cause: again.exec() })
}

impl Args {
    /// The command line for Criterion, of the flags that Criterion has too.
    fn criterion_flags(&self) -> Vec<OsString> {
        let samples = self.sample_size.map(|n| n.to_string());
        let values = [
            ("--save-baseline", &self.save_baseline),
            ("--baseline", &self.baseline),
            ("--sample-size", &samples),
        ];
        let given = values.into_iter().filter_map(|(flag, value)| Some((flag, value.as_ref()?)));
        let given = given.map(|(flag, value)| OsString::from(format!("{flag}={value}")));
        let all = self.all.then(|| OsString::from("--all"));
        self.filter.append_to(std::iter::once("--bench".into()).chain(all).chain(given).collect())
    }

    /// The options for which Criterion has no flag.
    fn options(&self) -> Result<Options> {
        let options = self.measuring.options(GROUPS)?;
        let unit = match self.method {
            Some(Method::Clock) => NANOSECONDS.into(),
            Some(Method::Displacement) => DISPLACED.into(),
            None => options.unit,
        };
        let events = self.events.as_deref().map(driver::parse_events).transpose()?.unwrap_or(options.events);
        Ok(Options {
            unit,
            events,
            predictions: self.predictions.clone().or(options.predictions),
            home: self.home.given.clone(),
            seconds: self.time.or(options.seconds),
            operations: self.operations,
            replications: self.replications,
            strict: self.strict || options.strict,
            wants_a_number: true,
            copies: self.copies.map_or(1, usize::from),
            ..options
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::flag::parse_line;

    fn arguments(line: &str) -> Arguments {
        Arguments::parse(parse_line::<Args>(line).expect("a good line").criterion_flags())
            .expect("Criterion's")
    }

    #[test]
    fn a_plain_run_is_a_plain_cargo_bench() {
        let plain = arguments("");
        assert_eq!(plain.mode, driver::Mode::Measure);
        assert_eq!((plain.save.as_deref(), plain.filter), (Some("base"), None));
    }

    #[test]
    fn flags_mean_what_criterion_means_by_them() {
        let args = arguments("call/u64/3 --exact --save-baseline main --sample-size 20");
        assert_eq!((args.filter.as_deref(), args.exact), (Some("call/u64/3"), true));
        assert_eq!((args.save.as_deref(), args.samples), (Some("main"), Some(20)));
        assert_eq!(arguments("--baseline main").compare.as_deref(), Some("main"));
    }

    #[test]
    fn a_run_on_a_full_disk_is_still_understood() {
        let unsaved = arguments("call/u64/3 --exact --save-baseline main").without_saving();
        let again = Arguments::parse(unsaved.for_measuring_process()).expect("Criterion's");
        assert_eq!((again.filter.as_deref(), again.exact, again.save), (Some("call/u64/3"), true, None));
    }

    #[test]
    fn the_operations_and_runs_of_a_displaced_case_are_passed_on() {
        let options = |line| parse_line::<Args>(line).expect("a good line").options().expect("options");
        let asked = options("--operations 10000 --replications 20");
        assert_eq!((asked.operations, asked.replications), (Some(10_000), Some(20)));
        assert!(
            parse_line::<Args>("--operations 0").is_err() && parse_line::<Args>("--replications 9").is_err()
        );
    }

    #[test]
    fn a_filter_is_never_a_flag() {
        assert_eq!(arguments("-- --list").filter.as_deref(), Some("--list"));
    }
}

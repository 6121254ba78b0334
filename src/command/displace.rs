//! `syscost displace`: what a command, or a service that runs already, takes of the CPU, interrupts included.

mod measure;
mod show;

use super::{flag, page};
use crate::clock::{Calibrating, Clock};
use crate::environment::Accounting;
use crate::platform::kernel_files::KernelFiles;
use crate::platform::{cpu, signal};
use crate::{Error, Result};
use clap::Args;
use measure::{Cover, Fluids};
use std::ffi::OsString;
use std::process::ExitCode;
use std::time::Duration;

/// Windows and their length before and after each run.
const CALIBRATING: Calibrating = Calibrating { windows: 8, each: Duration::from_millis(5) };

/// Measure the CPU time that a command or a running service displaces
///
/// Pours a process onto the CPU that uses up whatever the command leaves of it, and tells what the command took from
/// it: its own time and that of the interrupts that worked for it, whomever the kernel charged. Beside it stands what
/// wait4 says, and the share that accounting missed.
#[derive(Args)]
#[command(
    after_help = "The command and its children stay on one CPU. A service is covered on every CPU that it may run on; \
    nothing of it is changed. While it lasts the CPU is busy and awake, and whoever else runs there waits a little \
    longer."
)]
pub(super) struct Asked {
    /// The CPU for the command [default: the last that nobody measures on]
    #[arg(long, value_name = "N", conflicts_with = "pid")]
    cpu: Option<usize>,
    /// Seconds between two lines of the series in the JSON
    #[arg(long, value_name = "SECONDS", default_value_t = 0.1, value_parser = flag::seconds)]
    interval: f64,
    /// How often to run the command: three times or more give an interval
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..), conflicts_with = "pid")]
    runs: u32,
    /// Watch this process instead of starting one
    #[arg(long, value_name = "PID", conflicts_with = "command")]
    pid: Option<u32>,
    /// How long to watch it, seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 5.0, value_parser = flag::seconds, requires = "pid")]
    seconds: f64,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// The command
    #[arg(trailing_var_arg = true, required_unless_present = "pid", value_name = "COMMAND")]
    command: Vec<OsString>,
}

pub(super) fn run(asked: &Asked) -> Result<ExitCode> {
    signal::watch()?;
    let clock = Clock::start_up();
    let accounting = Accounting::of(&KernelFiles::live());
    let interval = Duration::from_secs_f64(asked.interval);
    let covers = match asked.pid {
        Some(pid) => vec![service(asked, pid, &clock, &accounting)?],
        None => command(asked, &clock, &accounting, interval)?,
    };
    if covers.is_empty() {
        return Ok(signal::pending().map_or(ExitCode::FAILURE, |signal| ExitCode::from(128 + signal as u8)));
    }
    match asked.json {
        true => page::write_json(&show::json(&covers, &accounting))?,
        false => page::write(&show::text(&covers, &accounting, crate::driver::layout()))?,
    }
    Ok(covers.iter().find_map(|cover| cover.code).map_or(ExitCode::SUCCESS, ExitCode::from))
}

/// Every run of the command. One that is interrupted is not told of.
fn command(asked: &Asked, clock: &Clock, accounting: &Accounting, interval: Duration) -> Result<Vec<Cover>> {
    let claimed = cpu::claim();
    let chosen = asked.cpu.or(claimed.as_ref().map(|claimed| claimed.cpu)).unwrap_or_else(cpu::current);
    if !cpu::allowed().contains(&chosen) {
        return Err(Error::Usage(format!(
            "CPU {chosen} is not among those that this process may run on: {:?}",
            cpu::allowed()
        )));
    }
    let _aside = cpu::Aside::from(chosen)?;
    let mut fluids = Fluids::pour(&[chosen], clock, accounting.hides_interrupts(), 0)?;
    let mut covers = Vec::new();
    for _ in 0..asked.runs {
        let Some(cover) = measure::command(&asked.command, &mut fluids, interval)? else { break };
        let failed = cover.code.is_some();
        covers.push(cover);
        if failed || signal::pending().is_some() {
            break;
        }
    }
    Ok(covers)
}

fn service(asked: &Asked, pid: u32, clock: &Clock, accounting: &Accounting) -> Result<Cover> {
    let cpus = measure::cpus_of(pid)?;
    let mut fluids = Fluids::pour(&cpus, clock, accounting.hides_interrupts(), pid)?;
    let [whole, interval] = [asked.seconds, asked.interval].map(Duration::from_secs_f64);
    measure::service(pid, &mut fluids, whole, interval)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::FromArgMatches;

    fn asked(line: &str) -> std::result::Result<Asked, clap::Error> {
        let command = Asked::augment_args(clap::Command::new("displace").no_binary_name(true));
        Asked::from_arg_matches(&command.try_get_matches_from(line.split_ascii_whitespace())?)
    }

    #[test]
    fn a_command_or_a_process_is_asked_for_and_not_both() {
        assert!(asked("").is_err());
        assert!(asked("--pid 12 -- true").is_err());
        assert!(asked("--pid 12 --cpu 1").is_err());
        assert_eq!(asked("--pid 12").expect("a process").pid, Some(12));
        assert_eq!(asked("--runs 5 -- sh -c true").expect("a command").command.len(), 3);
    }

    #[test]
    fn a_stretch_of_time_is_a_number_of_seconds_that_can_be_waited_for() {
        for bad in ["0", "-1", "nan", "inf", "x"] {
            assert!(asked(&format!("--interval={bad} -- true")).is_err(), "{bad}");
        }
        assert_eq!(asked("--interval 0.5 -- true").expect("half a second").interval, 0.5);
    }
}

//! `syscost fleet`: one experiment on many machines. A scheduler that exists starts the jobs; nothing here does.

mod fleet_collect;
mod fleet_compare;
mod fleet_measure;
mod fleet_plan;
mod fleet_status;

use crate::record::fleet_record::{Experiment, FleetStore};
use clap::Subcommand;
use indicatif::ProgressBar;
use std::path::PathBuf;
use std::process::ExitCode;
use syscost_command_line::page;
use syscost_platform::error::Result;

/// Measure kernels on many machines, and say what they cost on all of them
///
/// One TOML file says which hosts measure which cases under which kernels. Slurm, Ansible or any other scheduler runs `syscost
/// fleet measure` there; `collect` brings the records together, `status` shows what is missing and why, and `compare`
/// answers within each machine first and then over all: `syscost help machines`.
#[derive(clap::Args)]
pub(super) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Plan(fleet_plan::Args),
    Measure(fleet_measure::Args),
    Status(fleet_status::Args),
    Collect(fleet_collect::Args),
    Compare(fleet_compare::Args),
}

/// Which experiment, and where its records lie.
#[derive(clap::Args)]
struct Place {
    /// TOML file of the experiment
    experiment: PathBuf,
    /// Directory of its records [default: NAME.fleet beside the file]
    #[arg(long, value_name = "DIR")]
    store: Option<PathBuf>,
}

impl Place {
    /// # Errors
    /// The file cannot be read, or is wrong.
    fn open_experiment(&self) -> Result<(Experiment, FleetStore)> {
        let experiment = Experiment::read(&self.experiment)?;
        let directory =
            self.store.clone().unwrap_or_else(|| experiment.default_store_directory(&self.experiment));
        Ok((experiment, FleetStore::from_root(&directory)))
    }
}

/// A bar over the hosts, on a terminal only.
fn host_progress_bar(experiment: &Experiment) -> ProgressBar {
    page::progress_bar(experiment.hosts.len(), "{pos} of {len} hosts, {eta} left")
}

pub(super) fn run(args: &Args) -> Result<ExitCode> {
    match &args.command {
        Command::Plan(args) => fleet_plan::run(args),
        Command::Measure(args) => fleet_measure::run(args),
        Command::Status(args) => fleet_status::run(args),
        Command::Collect(args) => fleet_collect::run(args),
        Command::Compare(args) => fleet_compare::run(args),
    }
}

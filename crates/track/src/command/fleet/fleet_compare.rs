//! `syscost fleet compare`: what the kernels cost on all machines.

use super::Place;
use crate::record::fleet_record::{Experiment, FleetStore};
use crate::render::fleet_table;
use crate::study::fleet_effect::{FleetAnswer, Gathering};
use std::process::ExitCode;
use syscost_command_line::flag::Form;
use syscost_command_line::page;
use syscost_platform::error::{Error, Result};

/// Most damaged records that are named.
const TOLD: usize = 10;

/// Compare the kernels on each machine, and then over all machines
///
/// Shows the mean effect of each kernel against the first, the spread between machines, and the machines that stand out. In a pipe
/// a line a case: kernel, id, verdict, ratio, its interval, spread, machines, and those that stand out, between tabs.
#[derive(clap::Args)]
#[command(
    after_help = "Exit code 0: compared, whatever the verdicts; 1: no machine has records of two kernels, or a record \
    is damaged."
)]
pub(super) struct Args {
    #[command(flatten)]
    place: Place,
    /// Show every case, also those that did not change
    #[arg(long)]
    all: bool,
    /// Show one host by itself
    #[arg(long, value_name = "HOST")]
    host: Option<String>,
    #[command(flatten)]
    form: Form,
}

pub(super) fn run(args: &Args) -> Result<ExitCode> {
    let (experiment, store) = args.place.open_experiment()?;
    let host = args.host.as_deref().map(|host| experiment.find_host(host)).transpose()?;
    let (answer, damaged) = gather_answer(&experiment, &store, host);
    damaged.iter().take(TOLD).for_each(page::warn);
    if damaged.len() > TOLD {
        page::warn(&format!(
            "and {} more that are damaged: `syscost fleet status` names them",
            damaged.len() - TOLD
        ));
    }
    if answer.columns.iter().all(|column| column.cases.is_empty()) {
        return Err(Error::Missing(format!(
            "{}: no machine has records of two kernels: `syscost fleet status` shows what is missing",
            store.root().display()
        )));
    }
    args.form.write(
        || &answer,
        || match host {
            Some(_) => fleet_table::tabbed_host_rows(&answer),
            None => fleet_table::tabbed_case_rows(&answer),
        },
        |layout| match host {
            Some(host) => fleet_table::render_host(&answer, host, args.all, layout),
            None => fleet_table::render_fleet(&answer, args.all, layout),
        },
    )?;
    Ok(ExitCode::from(u8::from(!damaged.is_empty())))
}

/// Host by host, so that only one host's records are in memory at a time.
fn gather_answer(
    experiment: &Experiment,
    store: &FleetStore,
    host: Option<&str>,
) -> (FleetAnswer, Vec<Error>) {
    let mut gathering = Gathering::new(experiment);
    let mut damaged = Vec::new();
    let bar = super::host_progress_bar(experiment);
    for name in bar.wrap_iter(experiment.hosts.iter()) {
        let mut records = Vec::new();
        for job in experiment.jobs_of_host(name) {
            match store.load_record(experiment, job) {
                Ok(record) => records.extend(record),
                Err(error) => damaged.push(error),
            }
        }
        gathering.add(name, records);
    }
    bar.finish_and_clear();
    (gathering.into_answer(host), damaged)
}

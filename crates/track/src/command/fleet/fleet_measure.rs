//! `syscost fleet measure`: one job of an experiment, on the host that it is for.

use super::Place;
use crate::record::fleet_record::{Experiment, Job, JobRecord};
use crate::study::job_figures::record_of_job;
use std::process::ExitCode;
use syscost::suite::GROUPS;
use syscost_analysis::record::bundle;
use syscost_command_line::flag::{Filter, Home, Measuring};
use syscost_command_line::{page, record};
use syscost_engine::case::Scale;
use syscost_engine::exit::Exit;
use syscost_engine::record::quantity;
use syscost_platform::error::{Error, Result};
use syscost_platform::kernel_files::KernelFiles;
use syscost_platform::signal;

/// Measure one job here: what a scheduler runs on each host
///
/// Checks that the kernel is the one that is asked for, measures, and adds the record to the store. What ended it
/// otherwise is noted there for `syscost fleet status`. A job that has its record is not measured again.
#[derive(clap::Args)]
#[command(
    after_help = "Exit code 0: the record is there; 1: it could not be measured; 2: the experiment has no such job; \
    125: another kernel is running; 128 and the signal: interrupted."
)]
pub(super) struct Args {
    #[command(flatten)]
    place: Place,
    /// The host, as the experiment names it
    host: String,
    /// The kernel, as the experiment names it
    kernel: String,
    /// The repeat, from 1
    repeat: u32,
    #[command(flatten)]
    home: Home,
}

pub(super) fn run(args: &Args) -> Result<ExitCode> {
    let (experiment, store) = args.place.open_experiment()?;
    let job = experiment.find_job(&args.host, &args.kernel, args.repeat)?;
    if store.load_record(&experiment, job).is_ok_and(|known| known.is_some()) {
        page::write_to_stderr(&format!("{} is there already", store.record_path(job).display()));
        return Ok(ExitCode::SUCCESS);
    }
    store.record_start(job, quantity::unix_now())?;
    if let Some(why) = kernel_mismatch(job) {
        store.record_failure(job, &why)?;
        page::warn(&why);
        return Ok(Exit::Skipped.into());
    }
    match measure_job(&experiment, job, &args.home) {
        Ok(Measured::Whole(record)) => {
            let path = store.record_path(job);
            store.add(&experiment, job, &record.sealed_bytes(&path)?)?;
            page::write_to_stderr(&format!(
                "{} of {}: kept as {}",
                record.cases.len(),
                page::count_with_noun(record.cases.len() + record.without.len(), "case", "cases"),
                path.display()
            ));
            Ok(ExitCode::SUCCESS)
        }
        Ok(Measured::Interrupted(why, code)) => {
            store.record_failure(job, &why)?;
            page::warn(&why);
            Ok(code)
        }
        Err(error) => {
            store.record_failure(job, &error.to_string())?;
            Err(error)
        }
    }
}

/// Why the running kernel is not the one that the job is for.
fn kernel_mismatch(job: Job<'_>) -> Option<String> {
    let files = KernelFiles::live();
    let [release, line] = [files.kernel_release(), files.read_first_line("proc/cmdline")];
    job.kernel_mismatch(&release.unwrap_or_default(), &line.unwrap_or_default())
}

/// How measuring ended.
enum Measured {
    Whole(Box<JobRecord>),
    Interrupted(String, ExitCode),
}

/// Measures the job. Its runs stay in the store of this host for `syscost report`; its record holds a figure for
/// each case.
fn measure_job(experiment: &Experiment, job: Job<'_>, home: &Home) -> Result<Measured> {
    let began = quantity::unix_now();
    let filter = Filter::new(experiment.cases.clone());
    let measuring = Measuring::at_scale(Scale::named(&experiment.scale).unwrap_or_default());
    let path = record::measure_record(&filter, &measuring, home, experiment.processes, GROUPS)?;
    if let Some(signal) = signal::pending() {
        let after = quantity::unix_now().saturating_sub(began);
        let why = format!(
            "interrupted by {signal} after {after} s, before its {} processes had finished",
            experiment.processes
        );
        return Ok(Measured::Interrupted(why, Exit::Signal(signal).into()));
    }
    let path = path.ok_or_else(|| Error::Disturbed("no process had finished".into()))?;
    let record = record_of_job(job, &experiment.name, &bundle::read_head(&path)?)?;
    if record.cases.is_empty() {
        let why = record.without.values().next().map_or("no case matches", String::as_str);
        return Err(Error::Missing(format!("no case has a number: {why}")));
    }
    Ok(Measured::Whole(Box::new(record)))
}

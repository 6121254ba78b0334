//! `syscost fleet plan` prints the jobs of an experiment, for a user or a scheduler. `syscost fleet measure` measures one of them
//! on this machine.

use crate::record::fleet_record::{Experiment, FleetStore, Job, JobRecord};
use crate::study::job_figures::record_of_job;
use clap::ValueEnum;
use std::process::ExitCode;
use syscost::suite::GROUPS;
use syscost_analysis::record::bundle;
use syscost_command_line::flag::{Filter, Home, Measuring};
use syscost_command_line::{page, record};
use syscost_engine::case::need::TAKES_SECONDS;
use syscost_engine::case::{Case, Cpus, Group, Place, Scale};
use syscost_engine::driver::layout;
use syscost_engine::exit::Exit;
use syscost_engine::record::quantity;
use syscost_platform::error::{Error, Result};
use syscost_platform::kernel_files::KernelFiles;
use syscost_platform::signal;

/// The size of a record without its cases, and of each case, bytes: measured on records of whole suites.
const RECORD: [u64; 2] = [4_000, 110];

/// Print the jobs of each host, and their longest time
///
/// In a pipe a line a job: host, kernel, repeat, minutes, and the kernel as a feature that Slurm can ask for, between tabs.
#[derive(clap::Args)]
pub(in crate::command) struct Args {
    #[command(flatten)]
    place: super::Place,
    /// Print one fact of the experiment instead, for a script
    #[arg(long, value_name = "FACT", value_enum)]
    print: Option<Fact>,
}

/// A fact of the experiment that a script would otherwise have to read from the file.
#[derive(Clone, Copy, ValueEnum)]
enum Fact {
    /// Its name
    Name,
    /// The directory of its records
    Store,
}

pub(super) fn run(args: &Args) -> Result<ExitCode> {
    let (experiment, store) = args.place.open_experiment()?;
    let text = match args.print {
        Some(Fact::Name) => format!("{}\n", experiment.name),
        Some(Fact::Store) => format!("{}\n", store.root().display()),
        None => plan_text(&experiment, &store)?,
    };
    page::write(&text)?;
    Ok(ExitCode::SUCCESS)
}

fn plan_text(experiment: &Experiment, store: &FleetStore) -> Result<String> {
    let cases = count_matching_cases(experiment)?;
    if page::is_piped() {
        return Ok(page::tabbed_rows(experiment.jobs().map(|job| job_row(experiment, job))));
    }
    Ok(render_plan(experiment, store, cases))
}

/// The number of cases that match and are measured at this scale, as far as this machine can determine it.
///
/// # Errors
/// The filter is no regular expression, or nothing matches.
fn count_matching_cases(experiment: &Experiment) -> Result<usize> {
    let filter = Filter::new(experiment.cases.clone());
    let matches = filter.matcher()?;
    let scale = Scale::named(&experiment.scale).unwrap_or_default();
    let place = Place { scratch: std::env::temp_dir(), scale, cpus: Cpus::for_measuring_process() };
    let too_long = TAKES_SECONDS.check_place(&place).err();
    let is_too_long = |case: &Case| {
        case.needs.iter().any(|need| too_long.is_some() && need.check_place(&place).err() == too_long)
    };
    let of_group = |group: &'static Group| (group.cases)().into_iter().map(|case| (group.id(&case), case));
    let found: Vec<_> = GROUPS.iter().flat_map(of_group).filter(|(id, _)| matches(id)).collect();
    match filter.no_match_error() {
        Some(error) if found.is_empty() => Err(error),
        _ => Ok(found.iter().filter(|(_, case)| !is_too_long(case)).count()),
    }
}

fn job_row(experiment: &Experiment, job: Job<'_>) -> [String; 5] {
    let feature = job.kernel.replace(|c: char| !c.is_ascii_alphanumeric(), "_");
    [
        job.host.into(),
        job.kernel.into(),
        job.repeat.to_string(),
        experiment.minutes.to_string(),
        format!("k{feature}"),
    ]
}

fn render_plan(experiment: &Experiment, store: &FleetStore, cases: usize) -> String {
    let Experiment { scale, minutes, repeats, processes, .. } = experiment;
    let of_host = experiment.kernels.len() * *repeats as usize;
    let jobs = experiment.hosts.len() * of_host;
    let in_all = of_host as u64 * u64::from(*minutes);
    let bytes = RECORD[0] + RECORD[1] * cases as u64;
    let count = page::count_with_noun;
    let hosts = count(experiment.hosts.len(), "host", "hosts");
    let kernels = count(experiment.kernels.len(), "kernel", "kernels");
    let repeats = count(*repeats as usize, "repeat", "repeats");
    let cases = count(cases, "case", "cases");
    let processes = count(*processes as usize, "process", "processes");
    let [each, all] = [bytes, bytes * jobs as u64].map(quantity::format_size);
    let rows = [
        ["jobs", &format!("{jobs}: {hosts} × {kernels} × {repeats}, {of_host} a host")],
        ["each", &format!("up to {cases} in {processes} at {scale} scale, {minutes} min at most")],
        [
            "a host",
            &format!(
                "{} h {:02} min at most, and the boots; hosts work beside each other",
                in_all / 60,
                in_all % 60
            ),
        ],
        ["records", &format!("{}: about {each} each, {all} in all", store.root().display())],
        ["order", "a host's kernels take turns, in reversed order every other repeat"],
        ["a job is", "syscost fleet measure EXPERIMENT HOST KERNEL REPEAT"],
    ];
    page::columns_text(&rows.map(|row| row.map(str::to_owned)), page::table_width(layout()))
}

// `syscost fleet measure`: measures one job of an experiment, on the host of the job.

/// Measure one job on this host; a scheduler runs this command on each host
///
/// Checks that the job's kernel is running, measures, and adds the record to the store. A failure is noted there for
/// `syscost fleet status`. A job that has its record is not measured again.
#[derive(clap::Args)]
#[command(
    after_help = "Exit code 0: the record is there; 1: it could not be measured; 2: the experiment has no such job; \
    125: another kernel is running; 128 and the signal: interrupted."
)]
pub(in crate::command) struct MeasureArgs {
    #[command(flatten)]
    place: super::Place,
    /// The host, as the experiment names it
    host: String,
    /// The kernel, as the experiment names it
    kernel: String,
    /// The repeat, from 1
    repeat: u32,
    #[command(flatten)]
    home: Home,
}

pub(super) fn measure(args: &MeasureArgs) -> Result<ExitCode> {
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

/// Why the running kernel is not the job's kernel; `None` if it is.
fn kernel_mismatch(job: Job<'_>) -> Option<String> {
    let files = KernelFiles::live();
    let [release, line] = [files.kernel_release(), files.read_first_line("proc/cmdline")];
    job.kernel_mismatch(&release.unwrap_or_default(), &line.unwrap_or_default())
}

/// The end of a measurement: a whole record, or the reason of an interruption and the exit code.
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

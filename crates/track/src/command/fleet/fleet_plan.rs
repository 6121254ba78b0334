//! `syscost fleet plan`: the jobs of an experiment, for a person or for a scheduler.

use crate::record::fleet_record::{Experiment, FleetStore, Job};
use clap::ValueEnum;
use std::process::ExitCode;
use syscost::suite::GROUPS;
use syscost_command_line::flag::Filter;
use syscost_command_line::page;
use syscost_engine::case::need::TAKES_SECONDS;
use syscost_engine::case::{Case, Cpus, Group, Place, Scale};
use syscost_engine::driver::layout;
use syscost_engine::record::quantity::format_size;
use syscost_platform::error::Result;

/// Bytes of a record without its cases, and of each case: measured on records of whole suites.
const RECORD: [u64; 2] = [4_000, 110];

/// Print what would run where, and for how long at most
///
/// In a pipe a line a job: host, kernel, repeat, minutes, and the kernel as a feature that Slurm can ask for, between tabs.
#[derive(clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    place: super::Place,
    /// Print one fact of the experiment instead, for a script
    #[arg(long, value_name = "FACT", value_enum)]
    print: Option<Fact>,
}

/// What a script would else have to read from the file itself.
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

/// How many cases match and are measured at this scale, as far as this machine can tell.
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
    let [each, all] = [bytes, bytes * jobs as u64].map(format_size);
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

//! `syscost fleet`: one experiment on many machines. A scheduler of the user (Slurm, Ansible) starts the jobs; this program starts none.

mod fleet_plan;

use crate::record::fleet_record::{Added, Experiment, FleetStore, Job, Progress};
use crate::render::fleet_table::{self, job_start_metrics};
use crate::study::fleet_effect::{FleetAnswer, Gathering};
use clap::Subcommand;
use indicatif::ProgressBar;
use serde_json::json;
use std::path::PathBuf;
use std::process::ExitCode;
use syscost_command_line::flag::Form;
use syscost_command_line::page::{self, Tone};
use syscost_engine::exit::Exit;
use syscost_engine::record::quantity;
use syscost_engine::render::table::Layout;
use syscost_platform::error::{Error, Result};

/// Measure kernels on many machines, and compare their costs over all of them
///
/// One TOML file lists the hosts, the cases and the kernels. Slurm, Ansible or any other scheduler runs `syscost fleet measure`
/// on the hosts. `collect` brings the records together, `status` shows missing jobs with the reasons, and `compare` compares
/// the kernels first within each machine and then over all machines: `syscost help machines`.
#[derive(Subcommand)]
pub(super) enum Command {
    Plan(fleet_plan::Args),
    Measure(fleet_plan::MeasureArgs),
    Status(StatusArgs),
    Collect(CollectArgs),
    Compare(CompareArgs),
}

/// The experiment, and the directory of its records.
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

/// A progress bar over the hosts; it shows on a terminal only.
fn host_progress_bar(experiment: &Experiment) -> ProgressBar {
    page::progress_bar(experiment.hosts.len(), "{pos} of {len} hosts, {eta} left")
}

pub(super) fn run(command: &Command) -> Result<ExitCode> {
    match command {
        Command::Plan(args) => fleet_plan::run(args),
        Command::Measure(args) => fleet_plan::measure(args),
        Command::Status(args) => show_status(args),
        Command::Collect(args) => collect_records(args),
        Command::Compare(args) => compare_kernels(args),
    }
}

// `syscost fleet collect`: copies records from other directories into the store of the experiment.

/// The most records of a kind that are named: refused, of no job, or damaged.
const TOLD: usize = 10;

/// Bring records into the store of the experiment
///
/// Takes directories that were filled on the hosts, as by Ansible's `fetch`. Each record is checked: it must be of its job, of
/// the job's kernel, and of this user. A record that is known is not added again; of two records of one job, the one that
/// began first stays. The source directories are not changed.
#[derive(clap::Args)]
#[command(after_help = "Exit code 0: all that was there is collected; 1: a record was refused.")]
pub(super) struct CollectArgs {
    #[command(flatten)]
    place: Place,
    /// Directories of records: HOST/KERNEL/REPEAT.json
    #[arg(required = true, value_name = "DIR")]
    from: Vec<PathBuf>,
}

fn collect_records(args: &CollectArgs) -> Result<ExitCode> {
    let (experiment, store) = args.place.open_experiment()?;
    let (mut new, mut known, mut replaced, mut later) = (0, 0, 0, 0);
    let mut refused: Vec<Error> = Vec::new();
    let mut strays = Vec::new();
    for directory in &args.from {
        if !directory.is_dir() {
            return Err(Error::Usage(format!("{}: there is no such directory", directory.display())));
        }
        let from = FleetStore::from_root(directory);
        let bar = host_progress_bar(&experiment);
        for job in bar.wrap_iter(experiment.hosts.iter()).flat_map(|host| experiment.jobs_of_host(host)) {
            match store.copy_from(&experiment, job, &from) {
                Ok(None) => (),
                Ok(Some(Added::New)) => new += 1,
                Ok(Some(Added::Known)) => known += 1,
                Ok(Some(Added::Earlier)) => replaced += 1,
                Ok(Some(Added::Later)) => later += 1,
                Err(error) => refused.push(error),
            }
        }
        bar.finish_and_clear();
        strays.extend(from.stray_records(&experiment, TOLD));
    }
    warn_of_first(&refused, "like these");
    for stray in strays.iter().take(TOLD) {
        page::warn(&format!("{}: of no job of {}, and left there", stray.display(), experiment.name));
    }
    let mut said = vec![page::count_with_noun(new, "new record", "new records"), format!("{known} known")];
    let more = [
        (replaced, "in place of one that began later"),
        (later, "later than the one that is there"),
        (refused.len(), "refused"),
    ];
    said.extend(more.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}")));
    page::write(&format!("{}: {}\n", store.root().display(), said.join(", ")))?;
    Ok(Exit::failed_if(!refused.is_empty()).into())
}

fn warn_of_first(errors: &[Error], others: &str) {
    errors.iter().take(TOLD).for_each(page::warn);
    if errors.len() > TOLD {
        page::warn(&format!("and {} more {others}", errors.len() - TOLD));
    }
}

// `syscost fleet compare`: the effect of each kernel over all machines.

/// Compare the kernels on each machine, and then over all machines
///
/// Shows the mean effect of each kernel against the first, the spread between machines, and the machines that stand out. In a pipe
/// a line a case: kernel, id, verdict, ratio, its interval, spread, machines, and those that stand out, between tabs.
#[derive(clap::Args)]
#[command(
    after_help = "Exit code 0: compared, whatever the verdicts; 1: no machine has records of two kernels, or a record \
    is damaged."
)]
pub(super) struct CompareArgs {
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

fn compare_kernels(args: &CompareArgs) -> Result<ExitCode> {
    let (experiment, store) = args.place.open_experiment()?;
    let host = args.host.as_deref().map(|host| experiment.find_host(host)).transpose()?;
    let (answer, damaged) = gather_answer(&experiment, &store, host);
    warn_of_first(&damaged, "that are damaged: `syscost fleet status` names them");
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

/// The answer, and errors for damaged records. Hosts are read one by one, so that only one host's records are in memory.
fn gather_answer(
    experiment: &Experiment,
    store: &FleetStore,
    host: Option<&str>,
) -> (FleetAnswer, Vec<Error>) {
    let mut gathering = Gathering::new(experiment);
    let mut damaged = Vec::new();
    let bar = host_progress_bar(experiment);
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

// `syscost fleet status`: a matrix of hosts and kernels, and why something is missing.

/// Up to this number of hosts all are shown; of more hosts only those that are not done.
const FEW: usize = 24;
/// The most rows of hosts, and the most reasons, that are shown without `--all`.
const LISTED: usize = 24;

/// Show which jobs are done, running, missing or failed, and why
///
/// In a pipe a line a job: host, kernel, repeat, state and why, between tabs.
#[derive(clap::Args)]
#[command(after_help = "Exit code 0: nothing failed; 1: a job failed, is lost, or its record is damaged.")]
pub(super) struct StatusArgs {
    #[command(flatten)]
    place: Place,
    /// Show every host, also those that are done
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    form: Form,
    /// Print when each job began as OpenMetrics, for annotations beside what `syscost monitor` shows of its host
    #[arg(long, conflicts_with = "json")]
    metrics: bool,
}

/// A job and its progress.
struct Line<'a> {
    job: Job<'a>,
    progress: Progress,
}

fn show_status(args: &StatusArgs) -> Result<ExitCode> {
    let (experiment, store) = args.place.open_experiment()?;
    let now = quantity::unix_now();
    let line = |job| Line { job, progress: store.progress(&experiment, job, now) };
    let lines: Vec<_> = experiment.jobs().map(line).collect();
    if args.metrics {
        page::write(&openmetrics_text(&experiment, &store, &lines))?;
    } else {
        args.form.write(
            || lines.iter().map(Line::to_json).collect::<Vec<_>>(),
            || page::tabbed_rows(lines.iter().map(Line::table_cells)),
            |layout| render_matrix(&experiment, &store, &lines, args.all, layout),
        )?;
    }
    Ok(Exit::failed_if(lines.iter().any(Line::is_bad)).into())
}

impl Line<'_> {
    fn is_done(&self) -> bool {
        self.progress == Progress::Done
    }

    fn is_bad(&self) -> bool {
        matches!(self.progress, Progress::Failed(_) | Progress::Damaged(_) | Progress::Lost(_))
    }

    /// The state of the job, as a word and as a character of the matrix.
    fn state_and_mark(&self) -> (&'static str, char) {
        match self.progress {
            Progress::Done => ("done", '#'),
            Progress::Damaged(_) => ("damaged", 'x'),
            Progress::Failed(_) => ("failed", '!'),
            Progress::Running(_) => ("running", '>'),
            Progress::Lost(_) => ("lost", '?'),
            Progress::Missing => ("missing", '.'),
        }
    }

    fn reason(&self) -> String {
        match &self.progress {
            Progress::Damaged(why) | Progress::Failed(why) => why.clone(),
            Progress::Running(seconds) => format!("for {}", duration_text(*seconds)),
            Progress::Lost(seconds) => {
                format!(
                    "began {} ago, and its limit has passed: it was killed, or its host was",
                    duration_text(*seconds)
                )
            }
            Progress::Done | Progress::Missing => String::new(),
        }
    }

    fn table_cells(&self) -> [String; 5] {
        let Job { host, kernel, repeat } = self.job;
        [host.into(), kernel.into(), repeat.to_string(), self.state_and_mark().0.into(), self.reason()]
    }

    fn to_json(&self) -> serde_json::Value {
        let Job { host, kernel, repeat } = self.job;
        json!({ "host": host, "kernel": kernel, "repeat": repeat, "state": self.state_and_mark().0, "why": self.reason() })
    }
}

fn openmetrics_text(experiment: &Experiment, store: &FleetStore, lines: &[Line<'_>]) -> String {
    let begun = lines.iter().filter_map(|line| {
        let [host, kernel, repeat, state, _] = line.table_cells();
        Some(([host, kernel, repeat, state], store.start_time(line.job)?))
    });
    job_start_metrics(&experiment.name, begun)
}

fn duration_text(seconds: u64) -> String {
    match seconds {
        0..=119 => format!("{seconds} s"),
        120..=7199 => format!("{} min", seconds / 60),
        _ => format!("{} h {:02} min", seconds / 3600, seconds / 60 % 60),
    }
}

fn render_matrix(
    experiment: &Experiment,
    store: &FleetStore,
    lines: &[Line<'_>],
    all: bool,
    layout: Layout,
) -> String {
    let kernels = &experiment.kernels;
    let hosts: Vec<&[Line<'_>]> = lines.chunks(kernels.len() * experiment.repeats as usize).collect();
    let is_open = |host: &&&[Line<'_>]| all || hosts.len() <= FEW || !host.iter().all(Line::is_done);
    let shown: Vec<_> = hosts.iter().filter(is_open).collect();
    let most = if all { usize::MAX } else { LISTED };
    let names = shown.iter().take(most).map(|host| page::length(host[0].job.host));
    let widest = names.chain(["host".len()]).max().unwrap_or(0);
    let head = format!("{:<widest$}  {}", "host", kernels.join("   "));
    let mut text = format!("{}: {}\n\n", experiment.name, state_counts(lines));
    text += &(page::paint(Tone::Bold, head.trim_end(), layout) + "\n");
    for host in shown.iter().take(most) {
        let marks = |kernel: &String| {
            let jobs = host.iter().filter(|line| line.job.kernel == kernel);
            format!("{:<1$}", repeat_marks(jobs), page::length(kernel))
        };
        let cells = kernels.iter().map(marks).collect::<Vec<_>>().join("   ");
        text += &format!("{:<widest$}  {}\n", host[0].job.host, cells.trim_end());
    }
    if shown.len() > most {
        text += &format!("and {} more hosts that are not done (--all)\n", shown.len() - most);
    }
    text += "\n# done  > running  ! failed  ? lost  x damaged  . missing: a character a repeat\n";
    let bad: Vec<_> = lines.iter().filter(|line| line.is_bad()).collect();
    for line in bad.iter().take(most) {
        let [host, kernel, repeat, state, reason] = line.table_cells();
        let first = format!("{host} {kernel} {repeat}: ");
        let said = page::wrap(&first, &format!("{state}: {reason}"), page::table_width(layout));
        text += &(page::paint(Tone::Red, &said, layout) + "\n");
    }
    if bad.len() > most {
        text += &format!("and {} more (--all)\n", bad.len() - most);
    }
    text + &format!("records: {}\n", store.root().display())
}

/// The marks of the jobs, one character for each repeat, in the order of repeats.
fn repeat_marks<'a>(jobs: impl Iterator<Item = &'a Line<'a>>) -> String {
    let mut marks: Vec<_> = jobs.map(|line| (line.job.repeat, line.state_and_mark().1)).collect();
    marks.sort_unstable();
    marks.into_iter().map(|(_, mark)| mark).collect()
}

fn state_counts(lines: &[Line<'_>]) -> String {
    let states = ["done", "running", "failed", "lost", "damaged", "missing"];
    let count = |state: &str| lines.iter().filter(|line| line.state_and_mark().0 == state).count();
    let counts = states.iter().map(|state| (count(state), state)).filter(|(count, _)| *count > 0);
    let counts = counts.map(|(count, state)| format!("{count} {state}")).collect::<Vec<_>>().join(", ");
    format!("{}: {counts}", page::count_with_noun(lines.len(), "job", "jobs"))
}

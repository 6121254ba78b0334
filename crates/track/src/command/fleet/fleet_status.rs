//! `syscost fleet status`: a matrix of hosts and kernels, and why something is missing.

use super::Place;
use crate::record::fleet_record::{Experiment, FleetStore, Job, Progress};
use crate::render::fleet_table::job_start_metrics;
use serde_json::json;
use std::process::ExitCode;
use syscost_command_line::flag::Form;
use syscost_command_line::page::{self, Tone};
use syscost_engine::exit::Exit;
use syscost_engine::record::quantity;
use syscost_engine::render::table::Layout;
use syscost_platform::error::Result;

/// Hosts up to which all are shown.
const FEW: usize = 24;
/// The most rows and reasons.
const TOLD: usize = 24;

/// Show which jobs are done, running, missing or failed, and why
///
/// In a pipe a line a job: host, kernel, repeat, state and why, between tabs.
#[derive(clap::Args)]
#[command(after_help = "Exit code 0: nothing failed; 1: a job failed, is lost, or its record is damaged.")]
pub(super) struct Args {
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

/// A job and how far it has come.
struct Line<'a> {
    job: Job<'a>,
    progress: Progress,
}

pub(super) fn run(args: &Args) -> Result<ExitCode> {
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

    /// How far it is, in a word and as a character of the matrix.
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
    let most = if all { usize::MAX } else { TOLD };
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

/// A character for each repeat, in order.
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

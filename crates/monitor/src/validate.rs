//! `syscost validate`: runs the experiments of [`validation`](syscost_counters::validation) and prints their findings.

use serde_json::{Value, json};
use std::process::ExitCode;
use std::time::Duration;
use syscost_command_line::page::{self, Tone};
use syscost_counters::validation::{EXPERIMENTS, Experiment, Finding, Functions, Setting, Verdict};
use syscost_engine::driver::layout;
use syscost_engine::exit::Exit;
use syscost_engine::render::table::Layout;
use syscost_engine::trial::scratch;
use syscost_platform::error::Result;
use syscost_platform::process::inheritance;
use syscost_platform::signal;

/// Hold the counters against what is known to have happened
///
/// Repeats the experiments by which CAMP was validated (LISA 2007, Figure 5 and Tables 1 to 3, and its informal ones):
/// processes use a known amount of a resource and are watched by the library's counters. Prints the paper's values and
/// those of this machine, each with its tolerance, which is the paper's or tighter. Takes nearly three minutes, most of
/// it for the loads of the first two experiments. With `--interval 0.5` the loads are sampled exactly as in the paper, 200
/// times at 0.5 s, which takes some eight minutes.
#[derive(clap::Args)]
#[command(
    after_help = "Exit code 0: everything that could be judged here was as it should be; 1: something was not; 4: \
    something was not, and others on this machine may be why, or an experiment broke off: try again when it is at rest. \
    What needs root (a pair of virtual interfaces, a loop device) and finds none is said in a sentence and judges \
    nothing."
)]
pub(super) struct Args {
    /// Experiments, C1 to C8 [default: all]
    #[arg(value_name = "EXPERIMENT", value_parser = parse_experiment)]
    experiments: Vec<&'static Experiment>,
    /// Windows of 100 ms for each load of C1 and C2; the paper took 200
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = clap::value_parser!(u32).range(10..=10_000))]
    samples: u32,
    /// From the beginning of one window to that of the next; the paper took 0.5 [default: no pause between windows]
    #[arg(long, value_name = "SECONDS", value_parser = parse_interval)]
    interval: Option<f64>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

fn parse_experiment(name: &str) -> std::result::Result<&'static Experiment, String> {
    Experiment::by_name(name).ok_or_else(|| "expected C1 to C8".into())
}

/// Parses seconds, at least the length of a window.
fn parse_interval(text: &str) -> std::result::Result<f64, String> {
    text.parse()
        .ok()
        .filter(|s| (0.1..=10.0).contains(s))
        .ok_or_else(|| "expected seconds from 0.1 to 10".into())
}

/// The findings of an experiment that has run.
struct Done {
    experiment: &'static Experiment,
    findings: Vec<Finding>,
}

pub(super) fn run(args: &Args) -> Result<ExitCode> {
    signal::watch_signals()?;
    // The experiments fork their loads from this process.
    inheritance::prepare_measuring_process().iter().for_each(page::warn);
    let all = || EXPERIMENTS.iter().collect();
    let experiments: Vec<&Experiment> =
        if args.experiments.is_empty() { all() } else { args.experiments.clone() };
    let bar = page::progress_bar(experiments.len(), "{spinner} {pos}/{len} {msg:.bold} {elapsed}");
    let scratch = scratch::make_directory()?;
    let interval = Duration::from_secs_f64(args.interval.unwrap_or(0.0));
    let mut done = Vec::new();
    for experiment in experiments {
        bar.set_message(format!("{} {}", experiment.name, experiment.title));
        let tick = || {
            bar.tick();
            signal::pending().is_none()
        };
        let setting = Setting {
            samples: args.samples,
            interval,
            scratch: scratch.path(),
            functions: Functions::OURS,
            tick: &tick,
        };
        let findings = experiment.run_experiment(&setting);
        if signal::pending().is_some() {
            break;
        }
        done.push(Done { experiment, findings });
        bar.inc(1);
    }
    bar.finish_and_clear();
    match (args.json, page::is_piped()) {
        (true, _) => page::write_json(&done.iter().flat_map(findings_json).collect::<Vec<_>>())?,
        (false, true) => page::write(&page::tabbed_rows(done.iter().flat_map(finding_rows)))?,
        (false, false) => page::write(&render_experiments(&done, layout()))?,
    }
    Ok(exit_status(&done).or_signal(signal::pending()).into())
}

fn exit_status(done: &[Done]) -> Exit {
    let any = |is: fn(&Verdict) -> bool| {
        done.iter().flat_map(|done| &done.findings).any(|finding| is(&finding.verdict))
    };
    match () {
        () if any(|verdict| *verdict == Verdict::Failed) => Exit::Disproved,
        () if any(|verdict| matches!(verdict, Verdict::Inconclusive(_))) => Exit::Inconclusive,
        () => Exit::Success,
    }
}

fn findings_json(done: &Done) -> Vec<Value> {
    let value = |finding: &Finding| {
        json!({
            "experiment": done.experiment.name, "paper": done.experiment.paper, "what": finding.what,
            "published": finding.published, "expected": finding.expected, "found": finding.found,
            "tolerance": finding.tolerance, "verdict": finding.verdict.word(), "why": finding.verdict.why(),
        })
    };
    done.findings.iter().map(value).collect()
}

/// The rows of a table. Columns: experiment, what, published, expected, found, tolerance, verdict.
fn finding_rows(done: &Done) -> Vec<[String; 7]> {
    let row = |finding: &Finding| {
        let Finding { what, published, expected, found, tolerance, verdict } = finding;
        let verdict = verdict
            .why()
            .map_or_else(|| verdict.word().to_owned(), |why| format!("{}: {why}", verdict.word()));
        let name = done.experiment.name.to_owned();
        [name, what.clone(), published.clone(), expected.clone(), found.clone(), tolerance.clone(), verdict]
    };
    done.findings.iter().map(row).collect()
}

fn render_experiments(done: &[Done], layout: Layout) -> String {
    const HEAD: [&str; 7] = ["", "what", "paper", "expected", "found", "tolerance", "verdict"];
    let head = [HEAD.map(str::to_owned)];
    let all: Vec<_> = head.into_iter().chain(done.iter().flat_map(finding_rows)).collect();
    let mut lines = page::align_columns(&all, page::table_width(layout)).into_iter();
    let mut text = lines.next().map_or(String::new(), |head| page::paint(Tone::Bold, &head, layout) + "\n");
    for done in done {
        let title = format!("{} {} ({})", done.experiment.name, done.experiment.title, done.experiment.paper);
        text += &(page::heading(&title, page::table_width(layout), layout) + "\n");
        for (finding, line) in done.findings.iter().zip(lines.by_ref()) {
            let tone = match finding.verdict {
                Verdict::Passed => Tone::Plain,
                Verdict::NotJudged(_) | Verdict::Inconclusive(_) => Tone::Yellow,
                Verdict::Failed => Tone::Red,
            };
            text += &(page::paint(tone, &line, layout) + "\n");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn done(verdict: Verdict) -> Done {
        let finding = Finding {
            what: "it".into(),
            published: "9".into(),
            expected: "9".into(),
            found: "9".into(),
            tolerance: "exact".into(),
            verdict,
        };
        Done { experiment: &EXPERIMENTS[0], findings: vec![finding] }
    }

    #[test]
    fn an_unjudged_row_is_no_failure_and_one_failure_fails_all() {
        let exit = |verdicts: Vec<Verdict>| exit_status(&verdicts.into_iter().map(done).collect::<Vec<_>>());
        let unclear = || Verdict::Inconclusive("others had the CPU".into());
        assert_eq!(exit(vec![Verdict::Passed, Verdict::NotJudged("no root".into())]), Exit::Success);
        assert_eq!(exit(vec![Verdict::Passed, Verdict::Failed]), Exit::Disproved);
        assert_eq!(exit(vec![Verdict::Passed, unclear()]), Exit::Inconclusive);
        assert_eq!(exit(vec![unclear(), Verdict::Failed]), Exit::Disproved);
    }

    #[test]
    fn a_row_shows_the_paper_s_value_ours_and_the_reason() {
        let text = render_experiments(&[done(Verdict::NotJudged("it takes root".into()))], Layout::default());
        for words in ["C1", "Figure 5a", "9", "not judged: it takes root"] {
            assert!(text.contains(words), "{words} in {text}");
        }
    }

    #[test]
    fn an_experiment_is_chosen_by_its_name() {
        assert_eq!(parse_experiment("c4").expect("one of them").name, "C4");
        assert!(parse_experiment("C9").is_err());
    }
}

//! `syscost selftest`: the rates of false alarms and of missed slowdowns of `syscost ab` on this machine.

mod again;
mod claims;
mod relinked;
mod unpaired;

use crate::error::{Error, Result};
use crate::error_rate::SlowedSides;
use crate::error_rate::{Outcome, Parameters, reach_verdicts};
use crate::platform::signal;
use crate::statistic::{Interval, median, proportion_interval};
use indicatif::ProgressBar;
use std::path::PathBuf;
use std::process::ExitCode;
use syscost::suite::GROUPS;
use syscost_analysis::pair::experiment::Testbed;
use syscost_analysis::record::paired::Rule;
use syscost_analysis::render::sheet::Column;
use syscost_command_line::flag::BuildFlags;
use syscost_command_line::page::{self, Tone};
use syscost_command_line::sides::announce_pairs;
use syscost_command_line::start::find_program_file;
use syscost_engine::driver::layout;
use syscost_engine::exit::Exit;
use syscost_engine::record::Verdict;
use syscost_engine::render::table::Layout;

/// The cases of a full trial: arithmetic, a loop, a call, the vDSO, short and long system calls, memory.
const CASES: [&str; 10] = [
    "known_work/multiply",
    "empty_loop/memory",
    "call/u64/3",
    "syscall/clock-gettime-vdso",
    "syscall/getppid",
    "syscall/read-zero",
    "syscall/pipe",
    "syscall/open-close",
    "chase/random/256KiB",
    "mapping/first-touch/1MiB",
];
/// The cases of a quick trial.
const FEW: [&str; 4] = ["known_work/multiply", "call/u64/3", "syscall/getppid", "chase/random/256KiB"];
/// The largest accepted share of false alarms.
const ALARMS: f64 = 0.01;
/// The smallest accepted share of found slowdowns of 5 %.
const FOUND: f64 = 0.95;

/// Put the method on trial: false alarms and overlooked slowdowns on this machine
///
/// Compares a side with itself, where every alarm is false, and with itself slowed by known amounts, by a seccomp
/// filter that the kernel runs at every system call, or by a spin of known length. The same processes are judged by
/// the usual rule, too: two of them, compared by their samples.
#[derive(clap::Args)]
pub struct Args {
    /// Ids of the cases to try, between commas
    #[arg(long, value_name = "IDS", value_delimiter = ',')]
    cases: Vec<String>,
    /// Slowdowns to inject, in per cent, between commas
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "5%,3%", value_parser = syscost_command_line::sides::parse_share)]
    effects: Vec<f64>,
    /// Verdicts per case without an injected slowdown [default: 5, and 31 with --full]
    #[arg(long, value_name = "N")]
    verdicts: Option<usize>,
    /// Try ten cases: 310 verdicts without a slowdown, a hundred of each slowdown; half an hour
    #[arg(long)]
    full: bool,
    /// Put the printed intervals on trial: measure some cases in several runs, or read the RECORDs of such runs, and see
    /// whether each run's figures lie in the interval of the one before
    #[arg(long, value_name = "RECORD", num_args = 0.., conflicts_with = "full")]
    again: Option<Vec<PathBuf>>,
    /// Runs for `--again`
    #[arg(long, value_name = "N", default_value_t = 6, requires = "again", value_parser = clap::value_parser!(u16).range(2..))]
    runs: u16,
    /// Try the comparison of records instead of pairs: ten sessions without a slowdown and ten slowed by 5 %
    #[arg(long, conflicts_with_all = ["cases", "effects", "verdicts", "full"])]
    unpaired: bool,
    /// Try comparisons of two links of one source in place of the method: REV is built once and linked anew again and again
    #[arg(long, value_name = "REV", num_args = 0..=1, default_missing_value = "HEAD", conflicts_with_all = ["effects", "full"])]
    relinked: Option<String>,
    #[command(flatten)]
    build: BuildFlags,
    /// Seed of all random choices
    #[arg(long, default_value_t = 0x5eed)]
    seed: u64,
    /// Put the claims on trial instead: cases that lie, each of which its claims must catch, and the true ones
    #[arg(long, conflicts_with_all = ["effects", "verdicts", "full", "seed"])]
    claims: bool,
    /// Size the samples of `--claims` as on a machine that is this many times as slow
    #[arg(long, value_name = "TIMES", default_value_t = 1.0, requires = "claims")]
    slowness: f64,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub fn run(args: &Args) -> Result<ExitCode> {
    args.build.check_revision(args.relinked.is_some())?;
    if let Some(files) = &args.again {
        return again::run(&args.cases, files, args.runs.into(), args.json);
    }
    if let Some(rev) = &args.relinked {
        return relinked::run(rev, args);
    }
    if args.unpaired {
        return unpaired::run(args.seed, args.json);
    }
    if args.claims {
        return claims::run(&args.cases, args.slowness, args.json);
    }
    let cases = args.chosen_cases();
    let ring = Testbed::set_up()?;
    let exe = syscost_program()?;
    let sides = SlowedSides::new(&exe)?;
    let start = |filters| sides.prepare_launches(filters);
    let question = Parameters {
        start: &start,
        rule: Rule::default(),
        seed: args.seed,
        cases: cases.len(),
        groups: GROUPS,
    };
    let plan = args.plan_trials(&cases);
    let verdicts = plan.iter().map(|(_, _, count)| count).sum();
    announce_pairs(verdicts, ["verdict", "verdicts"], question.rule);
    let bar = verdict_bar(verdicts);
    let mut outcomes = Vec::new();
    for (id, slowdown, count) in plan {
        let mut watch = |so_far: &Outcome| advance_bar(&bar, so_far);
        outcomes.push(reach_verdicts(&ring, &question, &id, slowdown, count, &mut watch)?);
        if signal::pending().is_some() {
            break;
        }
    }
    bar.finish_and_clear();
    page::write_json_or(args.json, &outcomes, || outcome_table(&outcomes, layout()))?;
    Ok(exit_code(&outcomes))
}

impl Args {
    fn chosen_cases(&self) -> Vec<String> {
        let chosen: &[&str] = if self.full { &CASES } else { &FEW };
        if self.cases.is_empty() {
            return chosen.iter().map(|id| (*id).to_owned()).collect();
        }
        self.cases.clone()
    }

    /// The case, slowdown and number of verdicts of each trial: first without a slowdown, then each slowdown a third as
    /// often.
    fn plan_trials(&self, cases: &[String]) -> Vec<(String, f64, usize)> {
        let count = self.verdicts.unwrap_or(if self.full { 31 } else { 5 }).max(1);
        let effects = self.effects.iter().map(|&effect| (effect, count.div_ceil(3)));
        let rounds = std::iter::once((0.0, count)).chain(effects);
        rounds.flat_map(|(effect, n)| cases.iter().map(move |id| (id.clone(), effect, n))).collect()
    }
}

/// The path of the program under test, which also has the commands `burden` and `record`.
fn syscost_program() -> Result<PathBuf> {
    find_program_file("syscost").ok_or_else(|| {
        Error::Usage("there is no program `syscost` beside this one or on the search path: install it".into())
    })
}

fn verdict_bar(verdicts: usize) -> ProgressBar {
    page::progress_bar(verdicts, "{pos}/{len} {msg:.bold} {wide_bar} {eta} left")
}

fn advance_bar(bar: &ProgressBar, so_far: &Outcome) {
    bar.inc(1);
    let changes = so_far.verdicts.iter().filter(|verdict| verdict.is_change()).count();
    bar.set_message(format!(
        "{} {}: {changes} of {}",
        so_far.id,
        slowdown_label(so_far.asked),
        so_far.verdicts.len()
    ));
}

fn slowdown_label(share: f64) -> String {
    if share > 0.0 { format!("+{:.0} %", 100.0 * share) } else { "A/A".into() }
}

/// Exit code 1 if the intervals show too many false alarms or too many missed slowdowns of 5 %, or if there was no verdict.
fn exit_code(outcomes: &[Outcome]) -> ExitCode {
    let nothing =
        outcomes.iter().all(|o| o.verdicts.is_empty()) || outcomes.iter().any(|o| o.ended.is_some());
    let alarms = nothing || sum_outcomes(outcomes, 0.0).is_some_and(|sums| sums.changes.low > ALARMS);
    let overlooked = sum_outcomes(outcomes, 0.05).is_some_and(|sums| sums.changes.high < FOUND);
    Exit::failed_if(alarms || overlooked).or_signal(signal::pending()).into()
}

/// The sums of one slowdown over all cases.
struct Sums {
    verdicts: usize,
    found: usize,
    changes: Interval,
    seconds: f64,
    side_by_side: Interval,
    in_turn: Interval,
}

fn sum_outcomes(outcomes: &[Outcome], asked: f64) -> Option<Sums> {
    let ours: Vec<_> = outcomes.iter().filter(|o| (o.asked - asked).abs() < 1e-9).collect();
    let verdicts: usize = ours.iter().map(|o| o.verdicts.len()).sum();
    let found = ours.iter().map(|o| count_found(o)).sum();
    let seconds: Vec<f64> = ours.iter().flat_map(|o| o.seconds.iter().copied()).collect();
    let pooled = |field: fn(&Outcome) -> (usize, usize)| {
        let (all, hits) = ours.iter().fold((0, 0), |(all, hits), o| (all + field(o).0, hits + field(o).1));
        proportion_interval(hits as u64, all as u64)
    };
    (verdicts > 0).then(|| Sums {
        verdicts,
        found,
        changes: proportion_interval(found as u64, verdicts as u64),
        seconds: median(&seconds),
        side_by_side: pooled(|o| o.side_by_side),
        in_turn: pooled(|o| o.in_turn),
    })
}

/// The number of verdicts that count as found: `slower`, and without an injected slowdown any alarm.
fn count_found(outcome: &Outcome) -> usize {
    let slower = outcome.count_verdict(Verdict::Slower);
    if outcome.asked > 0.0 { slower } else { slower + outcome.count_verdict(Verdict::Faster) }
}

fn outcome_table(outcomes: &[Outcome], layout: Layout) -> String {
    let head = COLUMNS.map(|(head, _)| head);
    let rows = outcomes.iter().map(|outcome| (Tone::Plain, COLUMNS.map(|(_, cell)| cell(outcome))));
    page::table(head, rows, usize::MAX, layout)
        + "\n"
        + &page::wrap_sentences(outcome_sentences(outcomes), layout)
        + "\n"
        + &page::paint(
            Tone::Bold,
            &page::wrap("", &answer_sentence(outcomes), page::prose_width(layout)),
            layout,
        )
        + "\n"
}

/// One sentence for the user: the number of false alarms, and the number of slowdowns of 5 % that were found.
fn answer_sentence(outcomes: &[Outcome]) -> String {
    let alarms = sum_outcomes(outcomes, 0.0);
    let slowdowns = sum_outcomes(outcomes, 0.05);
    let told = |sums: &Sums, what: &str| format!("{} of {} {what}", sums.found, sums.verdicts);
    let parts: Vec<String> = [
        alarms.as_ref().map(|sums| told(sums, "comparisons of a thing with itself were taken for a change")),
        slowdowns.as_ref().map(|sums| told(sums, "slowdowns of 5 % were found")),
    ]
    .into_iter()
    .flatten()
    .collect();
    if parts.is_empty() {
        return "Nothing was found out: there was no verdict.".into();
    }
    parts.join("; ") + ". Every verdict: `--json`."
}

/// Columns of the table: the heading, and the cell of a case.
const COLUMNS: [Column<Outcome>; 11] = [
    ("case", |o| o.id.clone()),
    ("injected", |o| slowdown_label(o.asked)),
    ("by", |o| o.means.clone()),
    ("measured", |o| format!("{:+.2} %", 100.0 * o.injected)),
    ("found", |o| format!("{}/{}", count_found(o), o.verdicts.len())),
    ("same", |o| o.count_verdict(Verdict::Same).to_string()),
    ("open", |o| o.count_verdict(Verdict::Inconclusive).to_string()),
    ("unfit", |o| o.unfit.to_string()),
    ("s/verdict", |o| median_text(&o.seconds, "", 1.0)),
    ("pairs", |o| format!("{} +{}", o.pairs, o.rejected)),
    ("smallest seen", |o| median_text(&o.detectable, " %", 100.0)),
];

fn median_text(values: &[f64], unit: &str, by: f64) -> String {
    if values.is_empty() { "–".to_owned() } else { format!("{:.1}{unit}", by * median(values)) }
}

fn outcome_sentences(outcomes: &[Outcome]) -> Vec<String> {
    let mut said = Vec::new();
    let mut effects: Vec<f64> = outcomes.iter().map(|o| o.asked).collect();
    effects.dedup();
    for asked in effects {
        let Some(sums) = sum_outcomes(outcomes, asked) else { continue };
        let what = if asked > 0.0 {
            format!("{} slowdowns found", slowdown_label(asked))
        } else {
            "false alarms".into()
        };
        said.push(format!(
            "{what}: {} of {}, {}; {:.1} s a verdict (median)",
            sums.found,
            sums.verdicts,
            interval_percent(sums.changes),
            sums.seconds
        ));
        said.push(if asked > 0.0 {
            format!("  the rule of two processes on the same pairs finds {}", interval_percent(sums.side_by_side))
        } else {
            format!(
                "  the rule of two processes cries wolf in {} of processes one after the other, in {} of sides that \
                 took turns",
                interval_percent(sums.in_turn),
                interval_percent(sums.side_by_side)
            )
        });
    }
    let unfit: usize = outcomes.iter().map(|o| o.unfit).sum();
    if unfit > 0 {
        said.push(format!(
            "{unfit} times the machine was unfit: too many pairs were disturbed by others; such a verdict is not counted"
        ));
    }
    for o in outcomes {
        said.extend(o.ended.as_ref().map(|sentence| format!("{} ended early: {sentence}", o.id)));
    }
    let seen: Vec<f64> =
        outcomes.iter().flat_map(|o| o.detectable.iter().copied()).filter(|s| s.is_finite()).collect();
    if !seen.is_empty() {
        said.push(format!(
            "smallest slowdown that 64 pairs see here four times in five: {:.1} % in the median case",
            100.0 * median(&seen)
        ));
    }
    said
}

fn interval_percent(interval: Interval) -> String {
    let percent = |share: f64| 100.0 * share;
    format!(
        "{:.1} % [{:.1}, {:.1}]",
        percent(interval.estimate),
        percent(interval.low),
        percent(interval.high)
    )
}

//! `syscost gate`: an exit code for continuous integration.

mod counted_builds;

use super::ab::{self, Manner, Pairs, Sides, parse_share};
use super::archive::Archive;
use super::flag::{AllocationLimit, Filter, Home, Measuring};
use super::page::{self, Tone};
use super::record;
use crate::driver::layout;
use crate::error::{Error, Kind, Result};
use crate::platform::{inert, output, plain_file, signal};
use crate::record::quantity::{self, INSTRUCTIONS, NANOSECONDS, is_instruction_unit};
use crate::record::{ALLOCATIONS, Verdict};
use crate::render::table::Layout;
use std::ffi::{OsStr, OsString};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use syscost_analysis::render::answer;
use syscost_analysis::render::markdown_table::markdown_table;
use syscost_analysis::render::remark_group::{group_sentences, id_list, sentence_shape};
use syscost_analysis::study::comparison::{Comparison, Options, compare, is_exact};
use syscost_analysis::study::exact_count::{CountChange, changes_between_records, changes_of_pairs};
use syscost_analysis::study::gate::{
    Answer, Finding, Mutes, NOT_MEASURED, Progress, answer, findings_from_comparison, findings_from_pairs,
};
use syscost_analysis::study::sequential::layout_sentence;

use counted_builds::{compared_counts, count_builds};

/// Fail if something became slower: for continuous integration and for `git bisect run`
///
/// Either against a stored baseline (--baseline): the cases are measured now, in several processes, kept as a
/// record, and compared. A baseline of one session says nothing of how sessions differ: until five records
/// of this machine have shown that, the answer is "inconclusive". Or against another build, now, by pairs of live
/// processes (--a-rev, --a-bin, …: A is the old one, B the new): that needs no history.
#[derive(clap::Args)]
#[command(
    after_help = "Exit code 0: unchanged or faster; 1: slower; 2: usage; 3: incomparable; 4: inconclusive; 5: \
    the machine is unfit; 125: could not be measured; 128 and the signal: \
    interrupted. With --bisect: 0 good, 1 bad, 125 anything else but an interruption."
)]
pub struct Args {
    #[command(flatten)]
    filter: Filter,
    /// Record, baseline, run or file to hold today's numbers against
    #[arg(long, value_name = "NAME|FILE", conflicts_with = "Sides")]
    baseline: Option<OsString>,
    /// Today's numbers, if they are there already; nothing is measured then
    #[arg(long, value_name = "NAME|FILE", requires = "baseline")]
    candidate: Option<OsString>,
    #[command(flatten)]
    sides: Sides,
    /// The last look at a case, against another build [default: 64]
    #[arg(long, value_name = "N", value_enum, conflicts_with = "baseline")]
    pairs: Option<Pairs>,
    /// How many processes to measure in, against a baseline
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=100))]
    processes: u32,
    #[command(flatten)]
    judging: Judging,
    #[command(flatten)]
    allocations: AllocationLimit,
    /// With --instructions: up to this share more is let through
    #[arg(long, value_name = "PERCENT", default_value = "0%", value_parser = parse_share)]
    max_more_instructions: f64,
    #[command(flatten)]
    measuring: Measuring,
    /// Seed of everything random
    #[arg(long, default_value_t = 0x5eed)]
    seed: u64,
    #[command(flatten)]
    home: Home,
}

/// What is let through, and how the answer is given. `syscost kernels gate` shares it.
#[derive(Clone, clap::Args)]
pub struct Judging {
    /// A slowdown up to this share is let through: 1% at least
    #[arg(long, value_name = "PERCENT", default_value = "3%", value_parser = parse_max_regress)]
    pub max_regress: f64,
    /// TOML file of cases to overlook: a table an id, with reason and until
    #[arg(long, value_name = "FILE")]
    mute: Option<PathBuf>,
    /// Answer as `git bisect run` wants it
    #[arg(long)]
    bisect: bool,
    /// Append a summary in Markdown to this file, such as "$GITHUB_STEP_SUMMARY"
    #[arg(long, value_name = "FILE")]
    summary: Option<PathBuf>,
}

/// Parses a share of at least 1 %. Smaller differences come from the layout of a binary alone, and could rarely be
/// shown.
fn parse_max_regress(text: &str) -> Result<f64> {
    let share = parse_share(text)?;
    match share >= 0.01 {
        true => Ok(share),
        false => Err(Error::Usage(format!("{text:?} is too little to be shown: expected 1% or more"))),
    }
}

/// Findings of a comparison, and the notes below them.
pub type Compared = (Vec<Finding>, Vec<String>);

pub fn run(args: &Args) -> Result<ExitCode> {
    let mut judging = args.judging.clone();
    if is_instruction_unit(&args.measuring.options()?.unit) {
        judging.max_regress = args.max_more_instructions;
    }
    judging.judge_comparison(|| match (&args.baseline, args.sides.are_different()) {
        (Some(baseline), _) => Ok((compare_with_record(args, baseline)?, Vec::new())),
        (None, true) => compare_builds(args),
        (None, false) => Err(Error::Usage(
            "nothing to hold against: name a --baseline, or an old build by --a-rev or --a-bin".into(),
        )),
    })
}

impl Judging {
    /// Compares, prints the answer, and gives the exit code that says it. After a signal the code is that of the signal, in
    /// a bisection too: it ends `git bisect run`, which would otherwise go on with the next revision.
    ///
    /// # Errors
    /// The command line must be changed. Other errors are printed, and are no answer.
    pub fn judge_comparison(&self, compare: impl FnOnce() -> Result<Compared>) -> Result<ExitCode> {
        let answer = match self.compare_and_print(compare) {
            Ok(answer) => answer,
            Err(error @ Error::Incomparable(_)) => {
                page::warn(&error);
                Answer::Incomparable
            }
            // Exit code 2: the command line or a file must be changed. A bisection skips even that.
            Err(error) if !self.bisect && matches!(error.kind(), Kind::Usage | Kind::File) => {
                return Err(error);
            }
            // Exit code 1 would say "slower".
            Err(error) => {
                page::warn(&error);
                Answer::Unmeasured
            }
        };
        let exit = if self.bisect { answer.exit_for_bisect() } else { answer.exit_status() };
        Ok(exit.or_signal(signal::pending()).into())
    }

    fn compare_and_print(&self, compare: impl FnOnce() -> Result<Compared>) -> Result<Answer> {
        // Read before minutes of measuring: it may be wrong.
        let mutes = self.mute.as_deref().map_or_else(|| Ok(Mutes::default()), Mutes::read)?;
        output::check_stdout()?;
        self.summary.as_deref().map_or(Ok(()), plain_file::check_can_append)?;
        let (mut findings, mut notes) = compare()?;
        if let Some(signal) = signal::pending() {
            page::warn(&format!("interrupted by {signal}: there is no answer"));
            return Ok(Answer::Unmeasured);
        }
        notes.extend(mutes.apply(&mut findings, quantity::unix_now()));
        let answer = answer(&findings);
        page::write(&render_answer(&findings, &notes, answer, layout()))?;
        if let Some(file) = &self.summary {
            // The answer holds even if the summary cannot be written.
            if let Err(error) =
                append_text(file, &markdown_summary(self.max_regress, &findings, &notes, answer))
            {
                page::warn(&error);
            }
        }
        Ok(answer)
    }
}

/// Compares two builds or settings by pairs. Answers the findings, and the notes on them.
fn compare_builds(args: &Args) -> Result<Compared> {
    let options = args.measuring.options()?;
    if options.unit == INSTRUCTIONS {
        let how = (options.scale, args.seed);
        let paired = count_builds(&args.filter, &args.sides, how, &args.home.directory())?;
        let (mut findings, notes) = compared_counts(&paired, args.max_more_instructions);
        mark_grown(&mut findings, args.allocations.exceeded(changes_of_pairs(ALLOCATIONS, &paired))?);
        return Ok((findings, notes));
    }
    if options.unit != NANOSECONDS {
        return Err(Error::Usage(format!(
            "pairs are timed: {} is counted against a --baseline only",
            options.unit
        )));
    }
    let manner = Manner {
        threshold: args.judging.max_regress,
        margin: Some(args.judging.max_regress),
        pairs: args.pairs,
        seed: args.seed,
        scale: options.scale,
        no_canaries: false,
    };
    let paired = ab::compare_sides(&args.filter, &args.sides, &manner, &args.home.directory())?;
    let of_cases =
        paired.cases.iter().flat_map(|case| case.notes.iter().map(|note| (case.id.as_str(), note.clone())));
    let rows = paired.judge();
    let layout = layout_sentence(&rows);
    let notes = paired.notes.iter().cloned().chain(layout).chain(group_sentences(of_cases)).collect();
    let mut findings = findings_from_pairs(&paired, &rows);
    mark_grown(&mut findings, args.allocations.exceeded(changes_of_pairs(ALLOCATIONS, &paired))?);
    Ok((findings, notes))
}

/// Compares a stored record with today's numbers.
fn compare_with_record(args: &Args, baseline: &OsStr) -> Result<Vec<Finding>> {
    let archive = Archive::at(&args.home);
    let old = archive.load_head(baseline)?;
    let candidate = match &args.candidate {
        Some(name) => name.clone(),
        None => match record::measure_record(&args.filter, &args.measuring, &args.home, args.processes)? {
            Some(file) => file.into_os_string(),
            None => return Ok(Vec::new()),
        },
    };
    let limit = if is_exact(&old) { args.max_more_instructions } else { args.judging.max_regress };
    let heads = [old, archive.load_head(&candidate)?];
    let history = super::compare::load_history(&archive)?;
    let mut comparison: Comparison = compare(&heads, &history, Options { threshold: limit });
    let matches = args.filter.matcher()?;
    comparison.keep_rows(|id| matches(id));
    let mut findings = findings_from_comparison(&comparison);
    if args.allocations.is_given() {
        let mut changes = allocation_changes(&archive, [baseline, &candidate])?;
        changes.retain(|change| matches(&change.id));
        mark_grown(&mut findings, args.allocations.exceeded(changes)?);
    }
    Ok(findings)
}

/// The allocations of the cases that both of these records have counted.
///
/// # Errors
/// A record cannot be read.
pub fn allocation_changes(archive: &Archive, names: [&OsStr; 2]) -> Result<Vec<CountChange>> {
    let [old, new] = names.map(|name| archive.load_bundle(name));
    Ok(changes_between_records(ALLOCATIONS, &old?.records, &new?.records))
}

/// Marks the findings of these cases.
fn mark_grown(findings: &mut [Finding], grown: Vec<CountChange>) {
    for change in grown {
        if let Some(finding) = findings.iter_mut().find(|finding| finding.id == change.id) {
            finding.grown = Some(change.sentence());
        }
    }
}

/// The findings that decide, the notes, and the answer, for a terminal.
fn render_answer(findings: &[Finding], said: &[String], answer: Answer, layout: Layout) -> String {
    let width = page::prose_width(layout);
    let mut text = String::new();
    for alike in group_findings(findings) {
        text += &(page::wrap("• ", &finding_sentence(&alike), width) + "\n");
    }
    text.extend(said.iter().map(|sentence| page::wrap("note: ", sentence, width) + "\n"));
    text += &(page::wrap("", &answer_sentence(findings), width) + "\n");
    let tone = if answer == Answer::Pass { Tone::Bold } else { Tone::Red };
    text + &page::paint(tone, &format!("gate: {}; {}", answer.summary(), verdict_counts(findings)), layout)
        + "\n"
}

/// The findings that were compared, without the canaries, which the user did not ask for.
fn compared_findings(findings: &[Finding]) -> impl Iterator<Item = &Finding> {
    findings.iter().filter(|finding| finding.progress != Progress::Skipped && !finding.canary)
}

/// One sentence over all compared findings.
fn answer_sentence(findings: &[Finding]) -> String {
    let compared = compared_findings(findings).map(|finding| answer::Compared {
        id: &finding.id,
        verdict: finding.verdict,
        change: finding.change,
    });
    answer::answer_sentence(&compared.collect::<Vec<_>>())
}

/// Whether a finding is more than "nothing changed".
fn is_notable(finding: &Finding) -> bool {
    finding.muted.is_some()
        || finding.grown.is_some()
        || (finding.verdict != Verdict::Same && finding.progress != Progress::Skipped)
}

/// The findings to show, in order. Cases without a verdict for the same reason share a line.
fn group_findings(findings: &[Finding]) -> Vec<Vec<&Finding>> {
    let mut groups: Vec<Vec<&Finding>> = Vec::new();
    for finding in findings.iter().filter(|finding| is_notable(finding)) {
        let same = |group: &&mut Vec<&Finding>| {
            let first = group[0];
            let why = |finding: &Finding| finding.reason.as_deref().map(sentence_shape);
            !first.verdict.is_change()
                && first.grown.is_none()
                && finding.grown.is_none()
                && (first.verdict, why(first), &first.muted)
                    == (finding.verdict, why(finding), &finding.muted)
        };
        match groups.iter_mut().find(same) {
            Some(group) => group.push(finding),
            None => groups.push(vec![finding]),
        }
    }
    groups
}

fn finding_sentence(alike: &[&Finding]) -> String {
    let finding = alike[0];
    let ids: Vec<_> = alike.iter().map(|finding| finding.id.as_str()).collect();
    let mut words = format!("{}: {}", id_list(&ids), finding.verdict_name());
    if let Some(change) = finding.change.filter(|change| change.is_finite() && alike.len() == 1) {
        words += &format!(" by {:+.2} %", 100.0 * change);
    }
    if let Some(reason) = &finding.reason {
        words += &format!(": {reason}");
    }
    if let Some(grown) = &finding.grown {
        words += &format!("; {grown}");
    }
    if let Some(reason) = &finding.muted {
        words += &format!("; overlooked: {reason}");
    }
    words
}

fn verdict_counts(findings: &[Finding]) -> String {
    let (failed, compared): (Vec<_>, Vec<_>) =
        compared_findings(findings).partition(|one| one.is_unmeasured());
    let verdicts: Vec<_> = compared.iter().map(|finding| finding.verdict).collect();
    let failed = (!failed.is_empty()).then(|| format!("{} {NOT_MEASURED}", failed.len()));
    let counts = (!verdicts.is_empty()).then(|| Verdict::format_counts(&verdicts));
    let all: Vec<_> = counts.into_iter().chain(failed).collect();
    if all.is_empty() { "no case was compared".into() } else { all.join(", ") }
}

fn markdown_summary(max_regress: f64, findings: &[Finding], said: &[String], answer: Answer) -> String {
    let mut text = format!(
        "### syscost gate: {}\n\n{}, slowdowns up to {} % let through\n\n",
        answer.summary(),
        verdict_counts(findings),
        100.0 * max_regress
    );
    let rows: Vec<_> = findings.iter().filter(|finding| is_notable(finding)).collect();
    let cells = |finding: &&Finding| {
        let change = finding.change.map_or("–".into(), |change| format!("{:+.2} %", 100.0 * change));
        let muted = finding.muted.as_ref().map(|reason| format!("overlooked: {reason}"));
        let why: Vec<_> = finding.reason.iter().chain(&finding.grown).chain(&muted).cloned().collect();
        vec![format!("`{}`", finding.id), finding.verdict_name().into(), change, why.join("; ")]
    };
    if !rows.is_empty() {
        let heads = ["case", "verdict", "change", "why"];
        text += &markdown_table(heads, |column| column != 2, rows.iter().map(cells));
    }
    text.extend(said.iter().map(|sentence| format!("\n* {sentence}\n")));
    text + "\n"
}

/// Appends to a file, to which other steps of a build write, too.
fn append_text(file: &Path, text: &str) -> Result<()> {
    let written =
        plain_file::open_to_append(file)?.write_all(inert::neutralize_output(text, false).as_bytes());
    written.map_err(|e| Error::file(file, "appending to", e))
}

#[cfg(test)]
mod tests;

//! `syscost gate`: an exit code for continuous integration.

use super::archive::Archive;
use super::flag::{AllocationLimit, CountLimit, Filter, Home, Measuring};
use super::judging::{Compared, Judging};
use super::sides::{self, Manner, Pairs, Sides, parse_share, save_pairs};
use super::{page, record};
use crate::case::Scale;
use crate::error::{Error, Result, ensure};
use crate::record::ALLOCATIONS;
use crate::record::quantity::{INSTRUCTIONS, NANOSECONDS, is_instruction_unit};
use crate::record::store::OwnFile;
use crate::suite::GROUPS;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use syscost_analysis::pair::Start;
use syscost_analysis::pair::experiment::{Experiment, Plan, Roster, Testbed, choose_cases};
use syscost_analysis::record::paired::{Paired, Rule};
use syscost_analysis::render::answer::group_sentences;
use syscost_analysis::study::comparison::{Comparison, Options, compare, is_exact};
use syscost_analysis::study::exact_count::{CountChange, changes_between_records, changes_of_pairs};
use syscost_analysis::study::gate::{
    Finding, findings_from_comparison, findings_from_counts, findings_from_pairs,
};
use syscost_analysis::study::sequential::layout_sentence;

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
    /// Fail if a case has more of a count than this: a number, as in system-calls=0, or a share, as in page-faults=2%. What a command
    /// counts, `syscost help commands` lists
    #[arg(long, value_name = "NAME=LIMIT", value_delimiter = ',', value_parser = CountLimit::parse, conflicts_with = "baseline")]
    max_more: Vec<CountLimit>,
    #[command(flatten)]
    measuring: Measuring,
    /// Seed of everything random
    #[arg(long, default_value_t = 0x5eed)]
    seed: u64,
    #[command(flatten)]
    home: Home,
}

pub fn run(args: &Args) -> Result<ExitCode> {
    let mut judging = args.judging.clone();
    if is_instruction_unit(&args.measuring.options(GROUPS)?.unit) {
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

/// Compares two builds or settings by pairs. Returns the findings and the notes on them.
fn compare_builds(args: &Args) -> Result<Compared> {
    let options = args.measuring.options(GROUPS)?;
    if options.unit == INSTRUCTIONS {
        let how = (options.scale, args.seed);
        let paired = count_builds(&args.filter, &args.sides, how, &args.home.directory())?;
        let (mut findings, notes) = compared_counts(&paired, args.max_more_instructions);
        mark_grown(&mut findings, args.allocations.exceeded(changes_of_pairs(ALLOCATIONS, &paired))?);
        return Ok((findings, notes));
    }
    ensure(options.unit == NANOSECONDS, || {
        Error::Usage(format!("pairs are timed: {} is counted against a --baseline only", options.unit))
    })?;
    let manner = Manner {
        threshold: args.judging.max_regress,
        margin: Some(args.judging.max_regress),
        pairs: args.pairs,
        seed: args.seed,
        scale: options.scale,
        no_canaries: false,
    };
    let paired = sides::compare_sides(&args.filter, &args.sides, &manner, &args.home.directory())?;
    let of_cases =
        paired.cases.iter().flat_map(|case| case.notes.iter().map(|note| (case.id.as_str(), note.clone())));
    let rows = paired.judge();
    let layout = layout_sentence(&rows);
    let notes = paired.notes.iter().cloned().chain(layout).chain(group_sentences(of_cases)).collect();
    let mut findings = findings_from_pairs(&paired, &rows);
    mark_grown(&mut findings, args.allocations.exceeded(changes_of_pairs(ALLOCATIONS, &paired))?);
    for limit in &args.max_more {
        mark_grown(&mut findings, limit.exceeded(&paired)?);
    }
    Ok((findings, notes))
}

/// Compares a stored record with today's numbers.
fn compare_with_record(args: &Args, baseline: &OsStr) -> Result<Vec<Finding>> {
    let archive = Archive::at(&args.home);
    let old = archive.load_head(baseline)?;
    let measured =
        record::measure_record(&args.filter, &args.measuring, &args.home, args.processes, super::groups()?)?;
    let Some(candidate) = measured.map(PathBuf::into_os_string) else { return Ok(Vec::new()) };
    let limit = if is_exact(&old) { args.max_more_instructions } else { args.judging.max_regress };
    let heads = [old, archive.load_head(&candidate)?];
    let history = super::baselines::load_history(&archive)?;
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

/// The changes in allocations, for the cases whose allocations both records count.
///
/// # Errors
/// A record cannot be read.
pub fn allocation_changes(archive: &Archive, names: [&OsStr; 2]) -> Result<Vec<CountChange>> {
    let [old, new] = names.map(|name| archive.load_bundle(name));
    Ok(changes_between_records(ALLOCATIONS, &old?.records, &new?.records))
}

/// Marks the finding of each of these cases as one whose allocations grew.
fn mark_grown(findings: &mut [Finding], grown: Vec<CountChange>) {
    for change in grown {
        if let Some(finding) = findings.iter_mut().find(|finding| finding.id == change.id) {
            let before = finding.grown.take().map_or(String::new(), |before| before + "; ");
            finding.grown = Some(before + &change.sentence());
        }
    }
}

// Two builds whose instructions are counted: `syscost gate --instructions`, with `--a-rev` or `--a-bin`.

/// The note that explains the verdicts.
const COUNTED: &str = "instructions in user space were counted, by single steps, and no time was measured: slower means more of them";

/// Counts the cases that match on both sides. The counts are kept in the store of this home.
///
/// # Errors
/// No case matches, the sides are settings of the machine, or one cannot be built or started.
fn count_builds(filter: &Filter, sides: &Sides, (scale, seed): (Scale, u64), home: &Path) -> Result<Paired> {
    if sides.setting_commands().is_some() {
        return Err(Error::Usage("no setting of the machine changes the instructions of an operation: compare builds, or measure time".into()));
    }
    let matches = filter.matcher()?;
    let ready = sides.build_sides(seed)?;
    let testbed = Testbed::set_up()?;
    let starts = ready.launches().map(|launch| launch as &dyn Start);
    let Roster { ids, unpaired, differences } = testbed.match_cases(starts)?;
    let differences = if ready.differences().is_empty() { differences } else { ready.differences().to_vec() };
    sides.check_toolchains(&differences)?;
    let ids = choose_cases(&ids, &matches, false)?;
    let plan = Plan {
        sides: ready.side_names(sides),
        by_turns: false,
        rule: Rule::default(),
        seed,
        scale,
        placement: None,
    };
    let bar = page::progress_bar(ids.len(), "{pos}/{len} {wide_msg}");
    let mut paired = testbed.count_cases(&Experiment { starts, plan }, &ids, &mut |id| {
        bar.set_message(id.to_owned());
        bar.inc(1);
    });
    bar.finish_and_clear();
    paired.cases.extend(unpaired.iter().filter(|only| matches(&only.id)).map(|only| only.to_case_pairs()));
    paired.notes.extend(differences.into_iter().chain([COUNTED.to_owned()]));
    page::write_to_stderr(&format!(
        "kept in {}",
        save_pairs(home, &paired, &mut OwnFile::default())?.display()
    ));
    Ok(paired)
}

/// The findings on these counts. A growth of at most the share `limit` passes.
fn compared_counts(paired: &Paired, limit: f64) -> Compared {
    let changes = changes_of_pairs(INSTRUCTIONS, paired);
    (findings_from_counts(paired, &changes, limit), paired.notes.clone())
}

#[cfg(test)]
mod tests;

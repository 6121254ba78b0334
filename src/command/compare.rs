//! `syscost compare`: two or more baselines side by side, each against the first. It measures nothing.

mod comparison_table;

use super::archive::Archive;
use super::baselines::{baseline_heads, compare_all_rows};
use super::flag::{AllocationLimit, Format, Home, Only};
use super::gate::allocation_changes;
use super::page;
use super::report::write_rendered;
use crate::environment::Weight;
use crate::error::{Error, Result};
use crate::exit::Exit;
use crate::render::table::Layout;
use clap::ValueEnum;
use regex::Regex;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use syscost_analysis::record::bundle::{Head, split_by_kernel};
use syscost_analysis::render::answer::{self, Compared};
use syscost_analysis::render::compared::{csv, markdown};
use syscost_analysis::render::sheet::indented_json;
use syscost_analysis::study::comparison::{Comparison, Row};

/// Set baselines side by side, with a verdict for every case
///
/// Compares each baseline with the first: its value, its change in brackets, stars around a change that is
/// significant. Boots are compared with boots where the kernels differ, sessions with sessions where not: five
/// a side give a verdict by themselves; for fewer the other records of this machine tell how much they deviate.
/// In a pipe, a case a line between tabs: id, first value, and for each further baseline its
/// value, the ratio to the first, and the verdict.
#[derive(clap::Args)]
#[command(
    after_help = "Exit code 0; 1: a case makes more allocations than --max-more-allocations lets through."
)]
pub struct Args {
    /// Names of records, baselines or runs, or files of them; the first is what the others are compared with
    #[arg(value_name = "BASELINE", required = true)]
    baselines: Vec<OsString>,
    /// What the sides are: with `kernel`, each kernel that the named records ran on, the earliest first
    #[arg(long, value_enum, conflicts_with = "max_more_allocations")]
    by: Option<By>,
    /// How to write it [default: terminal, or rows between tabs in a pipe]
    #[arg(long, value_enum)]
    format: Option<Format>,
    /// Show only cases whose id matches this regular expression; verdicts stay those among all cases
    #[arg(long, value_name = "REGEX")]
    filter: Option<String>,
    /// Show only this part
    #[arg(long, value_enum)]
    only: Option<Only>,
    /// Changes up to this many per cent count as none; 1 at least [default: 1; 0 where instructions are counted]
    #[arg(long, value_name = "PERCENT", value_parser = parse_percent)]
    threshold: Option<f64>,
    /// Write to this file, whole or not at all, and not to the standard output
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    allocations: AllocationLimit,
    #[command(flatten)]
    home: Home,
}

/// What the sides of a comparison are, if not the records that are named.
#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum By {
    /// The kernels on which their processes ran
    Kernel,
}

/// Parses a percentage such as `5` into a share such as 0.05.
fn parse_percent(percent: &str) -> std::result::Result<f64, String> {
    let number: f64 = percent.trim_end_matches('%').trim_end().parse().unwrap_or(f64::NAN);
    match number {
        n if (0.0..=1000.0).contains(&n) => Ok(n / 100.0),
        _ => Err("expected percent, 5 for one".into()),
    }
}

pub fn run(args: &Args) -> Result<ExitCode> {
    let comparison = compare_selected(args)?;
    let piped = args.format.is_none() && args.output.is_none() && page::is_piped();
    if piped {
        warn_of_differences(&comparison);
        page::write(&page::tabbed_rows(comparison.rows.iter().map(row_cells)))?;
    } else {
        let format = args.format.unwrap_or(Format::Terminal);
        write_rendered(args.output.as_deref(), |layout| render_comparison(format, &comparison, layout))?;
    }
    Ok(Exit::failed_if(has_more_allocations(args)?).into())
}

/// Whether a case of a later baseline allocates more than in the first, beyond the limit. Reports each such case.
fn has_more_allocations(args: &Args) -> Result<bool> {
    let (archive, mut any) = (Archive::at(&args.home), false);
    let filter = args.filter.as_deref().map(parse_filter).transpose()?;
    for other in args.baselines.iter().skip(1).filter(|_| args.allocations.is_given()) {
        let mut changes = allocation_changes(&archive, [&args.baselines[0], other])?;
        changes.retain(|change| filter.as_ref().is_none_or(|filter| filter.is_match(&change.id)));
        for change in args.allocations.exceeded(changes)? {
            page::warn(&format!("{}: {}, in {}", change.id, change.sentence(), other.to_string_lossy()));
            any = true;
        }
    }
    Ok(any)
}

/// The comparison, reduced to the rows that the flags select.
fn compare_selected(args: &Args) -> Result<Comparison> {
    let filter = args.filter.as_deref().map(parse_filter).transpose()?;
    let archive = Archive::at(&args.home);
    let heads = match args.by {
        Some(By::Kernel) => kernel_heads(&archive, &args.baselines)?,
        None => baseline_heads(&archive, &args.baselines)?,
    };
    let mut comparison = compare_all_rows(&archive, &heads, args.threshold)?;
    if let Some(filter) = filter {
        comparison.keep_rows(|id| filter.is_match(id));
        if comparison.rows.is_empty() {
            return Err(Error::Usage(format!("no case of these baselines matches {:?}", filter.as_str())));
        }
    }
    if args.only == Some(Only::Changed) {
        comparison.keep_changed();
    }
    comparison.sort_by_weight();
    Ok(comparison)
}

/// One head for each kernel that these baselines ran on. Fewer than two kernels are an error.
fn kernel_heads(archive: &Archive, baselines: &[OsString]) -> Result<Vec<Head>> {
    let bundles = baselines.iter().map(|name| archive.load_bundle(name)).collect::<Result<Vec<_>>>()?;
    let sides = split_by_kernel(bundles.into_iter().flat_map(|bundle| bundle.records).collect())?;
    match &sides[..] {
        [only] => Err(Error::Usage(format!(
            "all that is named ran on {}: `--by kernel` compares kernels, and without it records are compared",
            only.head.name
        ))),
        _ => Ok(sides.into_iter().map(|side| side.head).collect()),
    }
}

fn parse_filter(filter: &str) -> Result<Regex> {
    Regex::new(filter).map_err(|_| {
        Error::Usage(format!(
            "--filter {filter:?} is not a regular expression; `call/u64` is one, or `^call/`"
        ))
    })
}

/// Warns on the standard error how the machines differ, because the rows for a program do not say it.
fn warn_of_differences(comparison: &Comparison) {
    for baseline in &comparison.baselines {
        let Some(relation) = &baseline.relation else { continue };
        let heavy = relation.differences.iter().filter(|d| d.weight > Weight::Fact);
        let differences = heavy.map(|d| format!("{} is {}, was {}", d.field, d.theirs, d.ours));
        for sentence in relation.incomparable.iter().chain(&relation.warnings).cloned().chain(differences) {
            page::warn(&format!("{}: {sentence}", baseline.name));
        }
    }
}

fn row_cells(row: &Row) -> Vec<String> {
    let number = |value: Option<f64>| value.map(|value| value.to_string()).unwrap_or_default();
    let mut cells = vec![row.id.clone()];
    for cell in &row.cells {
        cells.push(number(cell.value.map(|value| value.estimate)));
        if let Some(change) = &cell.change {
            cells.extend([number(change.ratio), change.verdict.to_string()]);
        }
    }
    cells
}

/// The summary of all shown changes.
fn render_answer(comparison: &Comparison, layout: Layout) -> String {
    let of_row = |row| Row::changes(row).map(move |change| (&row.id, change));
    let compared = comparison.rows.iter().flat_map(of_row).map(|(id, change)| Compared {
        id,
        verdict: change.verdict,
        change: change.ratio.map(|ratio| ratio - 1.0),
    });
    let rest = "Only what changed: `--only changed`; one group: `--filter '^GROUP/'`; as a table for a discussion: `--format markdown`.";
    answer::render_answer(&compared.collect::<Vec<_>>(), rest, layout)
}

fn render_comparison(format: Format, comparison: &Comparison, layout: Layout) -> Result<String> {
    match format {
        Format::Terminal => {
            let parts = [
                comparison_table::render_heading(comparison, layout),
                comparison_table::render_table(comparison, layout),
            ];
            Ok(parts.concat()
                + &comparison_table::render_footer(comparison, layout)
                + "\n"
                + &render_answer(comparison, layout))
        }
        Format::Markdown => Ok(markdown(comparison)),
        Format::Json => indented_json("the comparison", comparison),
        Format::Csv => csv(comparison),
    }
}

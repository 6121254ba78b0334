//! `syscost page`: what is kept here as a directory of pages, for a disk or for a forge's static pages.

use super::draw::{current_findings, group_manuals};
use crate::record::history_log::{Content, HistoryLog};
use crate::record::history_point::HistoryPoint;
use crate::render::html_page::{History, Page};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use syscost::suite::GROUPS;
use syscost_analysis::record::paired::Paired;
use syscost_command_line::archive::Archive;
use syscost_command_line::flag::Home;
use syscost_command_line::page;
use syscost_command_line::page::save_file;
use syscost_engine::driver::add_missing_curves;
use syscost_engine::record::Record;
use syscost_engine::record::store::Store;
use syscost_engine::record::store::record_name;
use syscost_platform::error::{Error, Result};

/// Write what is kept here as pages of HTML: runs, histories and comparisons by turns
///
/// Writes DIR/index.html: the newest run, every history with its changes, and the comparisons that are named. Earlier runs
/// have pages of their own in DIR/runs/. Every page is one file that needs no other and no network, so that DIR can be opened
/// from a disk or served by a forge. Where there is a history and no run, the page shows the histories alone.
#[derive(clap::Args)]
pub(super) struct Args {
    /// Directory for the pages; it is made if it is missing
    #[arg(value_name = "DIR")]
    directory: PathBuf,
    /// A history in this file, in place of those that are kept here; may be given several times
    #[arg(long, value_name = "FILE")]
    history: Vec<PathBuf>,
    /// The verdicts and pairs of this file that `ab` saved; may be given several times
    #[arg(long, value_name = "FILE")]
    pairs: Vec<PathBuf>,
    /// How many of the newest runs have a page
    #[arg(long, value_name = "N", default_value_t = 20)]
    runs: usize,
    #[command(flatten)]
    home: Home,
}

pub(super) fn run(args: &Args) -> Result<ExitCode> {
    let archive = Archive::at(&args.home);
    let histories = read_histories(args, &archive)?;
    let runs = newest_runs(&archive, args.runs)?;
    if runs.is_empty() && histories.is_empty() && args.pairs.is_empty() {
        return Err(archive.no_runs_error());
    }
    let pairs = args.pairs.iter().map(|file| Paired::load(file)).collect::<Result<Vec<_>>>()?;
    let shown: Vec<_> = histories.iter().map(|(name, points)| History { name, points }).collect();
    let (newest, earlier) = runs.split_first().map_or((None, &[][..]), |(newest, rest)| (Some(newest), rest));
    let others: Vec<_> =
        earlier.iter().map(|run| (format!("runs/{}", page_file_name(run)), run_description(run))).collect();
    let index = Page {
        record: newest,
        findings: &newest.map(current_findings).unwrap_or_default(),
        manuals: newest.map(group_manuals).unwrap_or_default(),
        comparison: None,
        pairs: &pairs,
        histories: &shown,
        others: &others,
    };
    write(&args.directory.join("index.html"), &index)?;
    for run in earlier {
        let back = [("../index.html".to_owned(), "all runs".to_owned())];
        let of_run =
            Page { record: Some(run), manuals: group_manuals(run), others: &back, ..Page::default() };
        write(&args.directory.join("runs").join(page_file_name(run)), &of_run)?;
    }
    page::write_to_stderr(&args.directory.join("index.html").display().to_string());
    Ok(ExitCode::SUCCESS)
}

/// The newest runs, the newest first. One that cannot be read is named and left out.
fn newest_runs(archive: &Archive, most: usize) -> Result<Vec<Record>> {
    let read = |file: &PathBuf| Store::load(file).inspect_err(page::warn).ok();
    let mut runs: Vec<Record> = archive.run_files()?.iter().rev().take(most).filter_map(read).collect();
    runs.iter_mut().for_each(|run| add_missing_curves(run, GROUPS));
    Ok(runs)
}

/// Names and points of the histories that are asked for, or of all that are kept.
fn read_histories(args: &Args, archive: &Archive) -> Result<Vec<(String, Vec<HistoryPoint>)>> {
    let kept = if args.history.is_empty() { archive.store().history_files()? } else { args.history.clone() };
    let read = |file: &PathBuf| {
        let Content { points, damaged } = HistoryLog::from_existing_file(file)?.read()?;
        damaged.iter().for_each(page::warn);
        Ok((record_name(file), points))
    };
    kept.iter().map(read).collect()
}

/// A run's name begins with its moment and is a file name; one from elsewhere may be anything.
fn page_file_name(run: &Record) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '-' };
    format!("{}.html", run.run.chars().map(plain).take(120).collect::<String>().trim_start_matches('.'))
}

fn run_description(run: &Record) -> String {
    let kernel = run.fingerprint.kernel_release.as_deref().unwrap_or("unknown");
    format!("{} UTC, Linux {kernel}, {} scale", page::utc_moment(run.started), run.scale)
}

fn write(file: &Path, shown: &Page<'_>) -> Result<()> {
    let directory = file.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(directory).map_err(|e| Error::file(directory, "making", e))?;
    save_file(file, shown.to_html().as_bytes())
}

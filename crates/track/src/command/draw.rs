//! `syscost draw` writes a run as pictures, or as one page that a browser opens from a file. `syscost page` writes all saved runs
//! and histories as pages.

use crate::record::history_log::{Content, HistoryLog};
use crate::record::history_point::HistoryPoint;
use crate::render::html_page::{History, Page};
use crate::render::plot::{Picture, figure_picture, record_pictures, run_pictures};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use syscost::suite::{GROUPS, find_group};
use syscost_analysis::record::paired::Paired;
use syscost_analysis::study::paper::{Paper, figures};
use syscost_command_line::archive::Archive;
use syscost_command_line::flag::Home;
use syscost_command_line::page::save_file;
use syscost_command_line::selection::{Selection, find_paper_run};
use syscost_command_line::{baselines, page};
use syscost_engine::driver::{add_missing_curves, group_headlines};
use syscost_engine::environment::doctor::{Finding, examine};
use syscost_engine::environment::{Fingerprint, Weight};
use syscost_engine::record::Record;
use syscost_engine::record::store::{Store, record_name};
use syscost_engine::trial::scratch;
use syscost_platform::error::{Error, Result};
use syscost_platform::kernel_files::KernelFiles;

/// Draw a saved run as pictures, or as one page of HTML
///
/// With --plot, SVG: a page with the whole run, what was measured over what was predicted, and each curve. With --html,
/// one page that needs no other file and no network: table, distributions, curves, manuals, search and links are in it.
#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    selection: Selection,
    #[command(flatten)]
    target: Target,
    /// With --plot: the figures of Woodside, Courtois and Schramm (1997), with ours beside
    #[arg(long, requires = "plot", conflicts_with_all = ["group", "only"])]
    paper: bool,
    /// On the page: these records side by side, each against the first, as `compare` takes them
    #[arg(long, value_name = "BASELINE", num_args = 2.., requires = "html")]
    compare: Vec<OsString>,
    /// On the page: the verdicts and pairs of this file that `ab` saved; may be given several times
    #[arg(long, value_name = "FILE", requires = "html")]
    pairs: Vec<PathBuf>,
}

/// The directory or the file to write.
#[derive(clap::Args)]
#[group(required = true, multiple = true)]
struct Target {
    /// Write pictures into this directory
    #[arg(long, value_name = "DIR")]
    plot: Option<PathBuf>,
    /// Write one page of HTML to this file, whole or not at all
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

/// Runs the command: writes the pictures or the page.
pub fn run(args: &Args) -> Result<ExitCode> {
    let archive = Archive::at(&args.selection.home);
    let record = if args.paper {
        find_paper_run(&args.selection, &archive)?
    } else {
        args.selection.load_record(&archive, GROUPS, &[])?
    };
    if let Some(file) = &args.target.html {
        write_page(args, file, &record, &archive)?;
    }
    match &args.target.plot {
        Some(directory) if args.paper => {
            let figures = figures(&Paper::read()?, &record);
            write_pictures(
                &record,
                figures.iter().map(|figure| figure_picture(figure, &record)).collect(),
                directory,
            )?;
        }
        Some(directory) => write_pictures(&record, chosen_pictures(args, &record), directory)?,
        None => {}
    }
    Ok(ExitCode::SUCCESS)
}

/// A picture of the whole run, if all of it was selected, and a picture of each of its curves and maps.
fn chosen_pictures<'a>(args: &Args, record: &'a Record) -> Vec<Picture<'a>> {
    let mut all = if args.selection.is_whole() {
        run_pictures(record, &group_headlines(GROUPS.iter()))
    } else {
        Vec::new()
    };
    all.extend(record_pictures(record));
    all
}

/// Writes the pictures of a record as SVG.
fn write_pictures(record: &Record, pictures: Vec<Picture<'_>>, directory: &Path) -> Result<()> {
    if pictures.is_empty() {
        page::warn(&format!(
            "{} has no curve to draw: measure a group that has one, such as chase or scale",
            record.run
        ));
    }
    for picture in pictures {
        let file = directory.join(format!("{}-{}.svg", record.run, picture.name));
        save_file(&file, picture.to_svg().as_bytes())?;
        page::write_to_stderr(&file.display().to_string());
    }
    Ok(())
}

fn write_page(args: &Args, file: &Path, record: &Record, archive: &Archive) -> Result<()> {
    let comparison = if args.compare.is_empty() {
        None
    } else {
        Some(baselines::compare_baselines(archive, &args.compare)?)
    };
    let pairs = args.pairs.iter().map(|file| Paired::load(file)).collect::<Result<Vec<_>>>()?;
    let page = Page {
        record: Some(record),
        findings: &current_findings(record),
        manuals: group_manuals(record),
        comparison: comparison.as_ref(),
        pairs: &pairs,
        ..Page::default()
    };
    save_file(file, page.to_html().as_bytes())?;
    page::write_to_stderr(&file.display().to_string());
    Ok(())
}

/// The doctor's present findings, if the run was made in this boot of this machine and the setup is unchanged. Otherwise they do
/// not apply to the run, and the list is empty.
fn current_findings(record: &Record) -> Vec<Finding> {
    let (files, scratch) = (KernelFiles::live(), scratch::scratch_parent());
    let boot = files.read_first_line("proc/sys/kernel/random/boot_id");
    if boot.is_none() || record.boot != boot {
        return Vec::new();
    }
    let fingerprint = Fingerprint::take(&files, &scratch);
    let differs = record.fingerprint.differences(&fingerprint).iter().any(|d| d.weight > Weight::Fact);
    if differs { Vec::new() } else { examine(&files, &fingerprint, &scratch) }
}

/// The manuals of the run's groups that this build knows.
fn group_manuals(record: &Record) -> BTreeMap<String, String> {
    let names = record.groups.iter().map(|group| group.name.clone());
    names.filter_map(|name| find_group(&name).map(|group| (name, group.manual_text()))).collect()
}

// `syscost page`: writes the saved runs and histories as a directory of pages, for a disk or for a forge's static pages.

/// Write runs, histories and comparisons by turns as pages of HTML
///
/// Writes DIR/index.html: the newest run, every history with its changes, and the comparisons that are named. Earlier runs
/// have pages of their own in DIR/runs/. Every page is one file that needs no other and no network, so that DIR can be opened
/// from a disk or served by a forge. Where there is a history and no run, the page shows the histories alone.
#[derive(clap::Args)]
pub(super) struct PageArgs {
    /// Directory for the pages; it is made if it is missing
    #[arg(value_name = "DIR")]
    directory: PathBuf,
    /// A history in this file, in place of those in the store; may be given several times
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

pub(super) fn write_pages(args: &PageArgs) -> Result<ExitCode> {
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
    save_page(&args.directory.join("index.html"), &index)?;
    for run in earlier {
        let back = [("../index.html".to_owned(), "all runs".to_owned())];
        let of_run =
            Page { record: Some(run), manuals: group_manuals(run), others: &back, ..Page::default() };
        save_page(&args.directory.join("runs").join(page_file_name(run)), &of_run)?;
    }
    page::write_to_stderr(&args.directory.join("index.html").display().to_string());
    Ok(ExitCode::SUCCESS)
}

/// At most `most` runs, the newest first. A run that cannot be read gives a warning and is left out.
fn newest_runs(archive: &Archive, most: usize) -> Result<Vec<Record>> {
    let read = |file: &PathBuf| Store::load(file).inspect_err(page::warn).ok();
    let mut runs: Vec<Record> = archive.run_files()?.iter().rev().take(most).filter_map(read).collect();
    runs.iter_mut().for_each(|run| add_missing_curves(run, GROUPS));
    Ok(runs)
}

/// Names and points of the histories that the arguments name, or of all that are saved.
fn read_histories(args: &PageArgs, archive: &Archive) -> Result<Vec<(String, Vec<HistoryPoint>)>> {
    let kept = if args.history.is_empty() { archive.store().history_files()? } else { args.history.clone() };
    let read = |file: &PathBuf| {
        let Content { points, damaged } = HistoryLog::from_existing_file(file)?.read()?;
        damaged.iter().for_each(page::warn);
        Ok((record_name(file), points))
    };
    kept.iter().map(read).collect()
}

/// The file name of a run's page. The name of a run from another machine may have any characters, so they are replaced.
fn page_file_name(run: &Record) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '-' };
    format!("{}.html", run.run.chars().map(plain).take(120).collect::<String>().trim_start_matches('.'))
}

fn run_description(run: &Record) -> String {
    let kernel = run.fingerprint.kernel_release.as_deref().unwrap_or("unknown");
    format!("{} UTC, Linux {kernel}, {} scale", page::utc_moment(run.started), run.scale)
}

fn save_page(file: &Path, shown: &Page<'_>) -> Result<()> {
    let directory = file.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(directory).map_err(|e| Error::file(directory, "making", e))?;
    save_file(file, shown.to_html().as_bytes())
}

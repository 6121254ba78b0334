//! `syscost draw`: a run as pictures, or as one page that a browser shows from a file.

use crate::render::html_page::Page;
use crate::render::plot::{Picture, figure_picture, record_pictures, run_pictures};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use syscost::suite::{GROUPS, find_group};
use syscost_analysis::record::paired::Paired;
use syscost_analysis::study::paper::{Paper, figures};
use syscost_command_line::archive::Archive;
use syscost_command_line::page::save_file;
use syscost_command_line::selection::{Selection, find_paper_run};
use syscost_command_line::{baselines, page as terminal};
use syscost_engine::driver::group_headlines;
use syscost_engine::environment::doctor::{Finding, examine};
use syscost_engine::environment::{Fingerprint, Weight};
use syscost_engine::record::Record;
use syscost_engine::trial::scratch;
use syscost_platform::error::Result;
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

/// Where it is written.
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

/// Draws what the arguments name.
pub fn run(args: &Args) -> Result<ExitCode> {
    let archive = Archive::at(&args.selection.home);
    let record = if args.paper {
        find_paper_run(&args.selection, &archive)?
    } else {
        args.selection.load_record(&archive, GROUPS)?
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

/// The run as a whole, if all of it was chosen, and each of its curves and maps.
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
        terminal::warn(&format!(
            "{} has no curve to draw: measure a group that has one, such as chase or scale",
            record.run
        ));
    }
    for picture in pictures {
        let file = directory.join(format!("{}-{}.svg", record.run, picture.name));
        save_file(&file, picture.to_svg().as_bytes())?;
        terminal::write_to_stderr(&file.display().to_string());
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
    terminal::write_to_stderr(&file.display().to_string());
    Ok(())
}

/// What the doctor says now, if the run was made on this machine since it was started: else it says nothing of the run.
pub(super) fn current_findings(record: &Record) -> Vec<Finding> {
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
pub(super) fn group_manuals(record: &Record) -> BTreeMap<String, String> {
    let names = record.groups.iter().map(|group| group.name.clone());
    names.filter_map(|name| find_group(&name).map(|group| (name, group.manual_text()))).collect()
}

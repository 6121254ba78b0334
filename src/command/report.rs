//! `syscost report`: a stored run as a table or in another format. It measures nothing.

mod displacement_report;
mod exported;
mod html;
mod pattern;

use super::archive::Archive;
use super::fingerprint::word;
use super::flag::{Beside, Column, Format, Home};
use super::page::{self, Tone};
use crate::driver::{add_curves, headlines, layout, nearest};
use crate::environment::Weight;
use crate::error::{Error, Result};
use crate::platform::inert;
use crate::record::quantity::NANOSECONDS;
use crate::record::{Record, store};
use crate::render::beside::sheets;
use crate::render::format;
use crate::render::paper_table::Sheet;
use crate::render::plot::{Picture, pictures};
use crate::render::summary::{Summary, screen};
use crate::render::table::{Against, Layout, sentences, table};
use crate::study::alike::is_alike;
use crate::study::prediction::apply;
use crate::study::published::Published;
use crate::suite::{GROUPS, find};
use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Print a saved run as a table, or convert it
///
/// Prints a stored run: on one screen, group by group as the observation table (`--all`, or the name of a group), as Markdown for a discussion, as CSV for a spreadsheet,
/// or as the JSON of the record, which can be carried to another machine and reported there.
#[derive(clap::Args)]
pub(super) struct Args {
    /// Name of a run (see `syscost runs`) or file of a record; without one, the newest run. Or a group, whose table
    /// is printed
    #[arg(value_name = "RUN|FILE|GROUP")]
    run: Option<OsString>,
    /// After a group: of which run. After the word `displacement`, which prints the tables of that paper with our
    /// columns beside the published ones: whose columns; without it, those of the newest run that has them
    #[arg(value_name = "RUN|FILE", requires = "run")]
    of: Option<OsString>,
    /// How to write it
    #[arg(long, value_enum, default_value_t = Format::Terminal)]
    format: Format,
    /// Only this group
    #[arg(long, value_name = "NAME")]
    group: Option<String>,
    /// Only the cases whose ids match this pattern, in which `*` stands for anything: 'chase/*/256MiB'
    #[arg(long, value_name = "GLOB")]
    only: Option<String>,
    /// Every table, and not one screen
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    beside: Beside,
    /// What was saved under this name in a column of its own: medians, in nanoseconds
    #[arg(long, value_name = "NAME")]
    baseline: Option<String>,
    /// Write to this file, whole or not at all, and not to the standard output
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Draw its curves into this directory as well, as SVG and PNG: latency, bandwidth or efficiency against size
    /// or number; after the word `displacement`, the figures of that paper
    #[arg(long, value_name = "DIR")]
    plot: Option<PathBuf>,
    /// Write it as another tool reads it, in place of --format
    #[arg(long, value_enum, value_name = "READER", conflicts_with_all = ["format", "html", "against", "baseline", "plot"])]
    export: Option<exported::Reader>,
    #[command(flatten)]
    page: html::Html,
    #[command(flatten)]
    home: Home,
}

pub(super) fn run(args: &Args) -> Result<ExitCode> {
    if displacement_report::is_asked(args) {
        return displacement_report::report(args);
    }
    let asked = Asked::of(args)?;
    let overrides = args.beside.overrides()?;
    let machines = args.beside.machines()?;
    let mut columns: Vec<_> = machines.iter().map(|machine| (machine.name.clone(), machine.ns())).collect();
    let archive = Archive::of(&args.home);
    let mut record = archive.record(asked.run)?;
    for id in apply(&overrides, &mut record) {
        tell_unknown(&id, &record);
    }
    if let Some(group) = asked.group {
        keep(&mut record, group)?;
    }
    if let Some(glob) = &args.only {
        pattern::keep(&mut record, glob)?;
    }
    if let Some(name) = &args.baseline {
        columns.push(baseline(name, &archive.baseline(name)?, &record));
    }
    check(args.format, &columns, &record)?;
    let below: Vec<_> = machines.iter().flat_map(|machine| machine.below(&record)).collect();
    // Records from before curves were stored have none: they are fitted now.
    let fingerprint = record.fingerprint.clone();
    record
        .groups
        .iter_mut()
        .filter(|run| run.curves.is_empty())
        .for_each(|run| add_curves(run, &fingerprint));
    if let Some(file) = args.page.file() {
        args.page.write(file, &record, &archive)?;
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(reader) = args.export {
        let text = exported::text(reader, &record)?;
        match &args.output {
            Some(file) => save(file, text.as_bytes())?,
            None => page::write(&text)?,
        }
        return Ok(ExitCode::SUCCESS);
    }
    let text = |layout| {
        if asked.is_beside(args) {
            return Ok(beside(&machines, &record));
        }
        if asked.is_one_screen(args, &record) {
            return Ok(screen_of(&record, &archive, layout));
        }
        Ok::<_, Error>(text(args.format, &record, &columns, layout)? + &said(args.format, &below, layout))
    };
    match &args.output {
        Some(file) => save(file, inert::output(&text(Layout::default())?, false).as_bytes())?,
        None => page::write(&text(layout())?)?,
    }
    args.plot.as_deref().map_or(Ok(()), |directory| draw(&record, pictures(&record), directory))?;
    Ok(ExitCode::SUCCESS)
}

/// Which run, and which part of it.
struct Asked<'a> {
    run: Option<&'a OsStr>,
    group: Option<&'a str>,
}

impl<'a> Asked<'a> {
    /// # Errors
    /// A second run where only one can be meant.
    fn of(args: &'a Args) -> Result<Self> {
        let (first, second) = (args.run.as_deref(), args.of.as_deref());
        // A file of that name in the current directory is a file only with its path.
        let named = first.and_then(OsStr::to_str).filter(|word| find(word).is_some());
        match (named, second) {
            (Some(group), run) => Ok(Self { run, group: Some(group) }),
            (None, Some(second)) => Err(Error::Usage(format!(
                "{}: a second run goes with the name of a group or with `report displacement` only",
                second.to_string_lossy()
            ))),
            (None, None) => Ok(Self { run: first, group: args.group.as_deref() }),
        }
    }

    /// Whether published reports are to be told row by row, ours beside.
    fn is_beside(&self, args: &Args) -> bool {
        let parts = args.all || self.group.is_some() || args.only.is_some() || args.baseline.is_some();
        args.format == Format::Terminal && !parts && args.beside.against.is_some()
    }

    /// Whether the whole run is to be told on one screen: nothing says which part of it, or how.
    fn is_one_screen(&self, args: &Args, record: &Record) -> bool {
        let parts = args.all || self.group.is_some() || args.only.is_some();
        let columns = args.beside.against.is_some() || args.baseline.is_some();
        args.format == Format::Terminal && !parts && !columns && record.groups.len() > 1
    }
}

/// The Observation Tables of these reports.
fn beside(machines: &[Published], record: &Record) -> String {
    let tables: Vec<_> = sheets(machines, record).iter().map(Sheet::text).collect();
    format!("{}\n\n{}", title(record), tables.join("\n"))
}

/// The first screen, with the newest runs before it that are comparable.
fn screen_of(record: &Record, archive: &Archive, layout: Layout) -> String {
    const NEWEST: usize = 8;
    let files = archive.files().unwrap_or_default();
    let runs = files.iter().rev().take(NEWEST).filter_map(|file| store::Store::load(file).ok());
    let alike = |run: &Record| run.started <= record.started && is_alike(run, record);
    let earlier: Vec<Record> = runs.filter(alike).collect();
    let headlines = headlines(GROUPS.iter());
    screen(&Summary { record, headlines: &headlines, earlier: &earlier, doctor: None, kept: None }, layout)
}

/// Writes the pictures of a record as SVG and PNG.
fn draw(record: &Record, pictures: Vec<Picture<'_>>, directory: &Path) -> Result<()> {
    if pictures.is_empty() {
        page::warn(&format!(
            "{} has no curve to draw: measure a group that has one, such as chase or scale",
            record.run
        ));
    }
    for picture in pictures {
        let file = |kind| directory.join(format!("{}-{}.{kind}", record.run, picture.name));
        save(&file("svg"), picture.svg()?.as_bytes())?;
        save(&file("png"), &picture.png()?)?;
        page::say(&format!("{} and .png", file("svg").display()));
    }
    Ok(())
}

/// Warns that a prediction names no case: it is probably misspelt. One for a case that this run left out is fine.
fn tell_unknown(id: &str, record: &Record) {
    let ours = GROUPS.iter().flat_map(|group| (group.cases)().into_iter().map(|case| group.id(&case)));
    let known: Vec<_> = ours.chain(record.cases().map(|(_, case)| case.id.clone())).collect();
    if !known.iter().any(|other| other == id) {
        let near = nearest(id, &known);
        page::warn(&format!("the predictions name {id}, and there is no such case; the nearest are {near}"));
    }
}

/// The sources of the published values, in the formats that have room for sentences.
fn said(format: Format, below: &[String], layout: Layout) -> String {
    match format {
        Format::Terminal => sentences(below, layout),
        Format::Markdown if !below.is_empty() => {
            below.iter().fold("\n".into(), |text, sentence| text + "* " + sentence + "\n")
        }
        _ => String::new(),
    }
}

fn keep(record: &mut Record, name: &str) -> Result<()> {
    let known: Vec<_> = record.groups.iter().map(|group| group.name.clone()).collect();
    record.groups.retain(|group| group.name == name);
    match record.groups.is_empty() {
        true => Err(Error::Usage(format!("this run has no group {name}; it has {}", known.join(", ")))),
        false => Ok(()),
    }
}

/// A column of a baseline's medians. Warns once of each way in which its machine or its operations differ.
fn baseline(name: &str, saved: &[Record], record: &Record) -> Column {
    let said: BTreeSet<_> = saved.iter().flat_map(|saved| difference(saved, record)).collect();
    for sentence in said {
        page::warn(&format!("the baseline {name}: {sentence}"));
    }
    let cases = saved.iter().flat_map(Record::cases);
    let values = cases.filter_map(|(_, case)| Some((case.id.clone(), case.measured()?.figure().estimate)));
    (name.to_owned(), values.collect())
}

fn difference(saved: &Record, record: &Record) -> Vec<String> {
    let mut said = Vec::new();
    for d in record.fingerprint.differences(&saved.fingerprint).iter().filter(|d| d.weight > Weight::Fact) {
        let (weight, field) = (word(d.weight), d.field);
        said.push(format!("{weight}: {field} is {}, and was {}", d.ours, d.theirs));
    }
    for group in &record.groups {
        if saved.groups.iter().any(|then| then.name == group.name && then.version != group.version) {
            said.push(format!("the version of {} was another: another operation", group.name));
        }
    }
    said
}

/// Refuses columns that the format or the unit would silently leave out.
fn check(format: Format, columns: &[Column], record: &Record) -> Result<()> {
    let Some((name, _)) = columns.first() else { return Ok(()) };
    let why = match format {
        Format::Json => "JSON is the record itself".to_owned(),
        _ if record.unit != NANOSECONDS => {
            format!("this run counted {}, and {name} is in nanoseconds", record.unit)
        }
        _ => return Ok(()),
    };
    Err(Error::Usage(format!("{why}: there is no column for {name}; leave out --against and --baseline")))
}

fn text(format: Format, record: &Record, columns: &[Column], layout: Layout) -> Result<String> {
    let against: Vec<_> = columns.iter().map(|(name, values)| Against { name, values }).collect();
    match format {
        Format::Terminal => Ok(page::paint(Tone::Bold, &title(record), layout)
            + "\n\n"
            + &table(record, None, &against, layout)),
        Format::Markdown => Ok(format::markdown(record, &against)),
        Format::Json => format::json(record),
        Format::Csv => format::csv(record, &against),
    }
}

/// The run's name, start, scale and kernel.
fn title(record: &Record) -> String {
    let kernel = record.fingerprint.kernel_release.as_deref().unwrap_or("unknown");
    format!("{}, {} UTC, {}, kernel {kernel}", record.run, page::moment(record.started), record.scale)
}

/// Writes a file, whole or not at all.
///
/// # Errors
/// The file, or a temporary one beside it, cannot be written.
pub(super) fn save(file: &Path, bytes: &[u8]) -> Result<()> {
    // The temporary file needs a directory, which only an absolute path is sure to have.
    let path = std::path::absolute(file).map_err(|e| Error::file(file, "naming", e))?;
    store::replace(&path, bytes)
}

//! `syscost report`: a stored run as a table or in another format. It measures nothing.

mod displacement_report;
mod exported;
mod html;
mod pattern;

pub(super) use html::{findings, manuals};

use super::archive::{Archive, tell_of_file};
use super::flag::{Beside, Column, Format, Home};
use super::page::{self, Tone};
use crate::driver::{add_missing_curves, headlines, layout, nearest, program};
use crate::environment::Weight;
use crate::error::{Error, Result};
use crate::pair::side::ids;
use crate::platform::inert;
use crate::record::quantity::NANOSECONDS;
use crate::record::{Record, store};
use crate::render::beside::sheets;
use crate::render::format;
use crate::render::plot::{Picture, pictures, whole};
use crate::render::summary::{Summary, screen};
use crate::render::table::{Against, Layout, sentences, table};
use crate::study::alike::{self, is_alike};
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
    /// Draw it into this directory as well, as SVG and PNG: a page with the whole run, what was measured over what was
    /// predicted, and each curve; after the word `displacement`, the figures of that paper
    #[arg(long, value_name = "DIR")]
    plot: Option<PathBuf>,
    /// Write it as another tool reads it, in place of --format
    #[arg(long, value_enum, value_name = "READER", conflicts_with_all = ["format", "html", "against", "baseline", "plot"])]
    export: Option<exported::Reader>,
    /// The build that was tested, as KCIDB knows it
    #[arg(long, value_name = "ORIGIN:ID", requires = "export")]
    build: Option<String>,
    #[command(flatten)]
    page: html::Html,
    #[command(flatten)]
    home: Home,
}

pub(super) fn run(args: &Args) -> Result<ExitCode> {
    if displacement_report::is_asked(args) {
        return displacement_report::report(args);
    }
    let report = Report::of(args)?;
    match args.page.file() {
        Some(file) => args.page.write(file, &report.record, &report.archive)?,
        None => report.write()?,
    }
    Ok(ExitCode::SUCCESS)
}

/// A record, as much of it as was asked for, and what is to stand beside it.
struct Report<'a> {
    args: &'a Args,
    asked: Asked<'a>,
    archive: Archive,
    record: Record,
    machines: Vec<Published>,
    columns: Vec<Column>,
}

impl<'a> Report<'a> {
    /// # Errors
    /// The command line contradicts itself, or something that it names does not exist or cannot be read.
    fn of(args: &'a Args) -> Result<Self> {
        let (asked, archive) = (Asked::of(args)?, Archive::of(&args.home));
        let record = chosen(args, &asked, &archive)?;
        let machines = args.beside.machines()?;
        let published = machines.iter().map(|machine| (machine.name.clone(), machine.ns()));
        let mut columns: Vec<_> = published.collect();
        if let Some(name) = &args.baseline {
            columns.push(baseline(name, &archive.baseline(name)?, &record));
        }
        check(args.format, &columns, &record)?;
        Ok(Self { args, asked, archive, record, machines, columns })
    }

    /// Prints it, or writes it to a file, and draws its pictures.
    fn write(&self) -> Result<()> {
        put(self.args.output.as_deref(), |layout| match self.args.export {
            Some(reader) => exported::text(reader, &self.record, self.args.build.as_deref()),
            None => self.text(layout),
        })?;
        match &self.args.plot {
            Some(directory) if self.args.export.is_none() => self.draw(directory),
            _ => Ok(()),
        }
    }

    fn text(&self, layout: Layout) -> Result<String> {
        if self.asked.is_beside(self.args) {
            return Ok(beside(&self.machines, &self.record, layout));
        }
        if self.asked.is_one_screen(self.args, &self.record) {
            return Ok(screen_of(&self.record, &self.archive, layout));
        }
        let below: Vec<_> = self.machines.iter().flat_map(|machine| machine.below(&self.record)).collect();
        let table = text(self.args.format, &self.record, &self.columns, layout)?;
        Ok(table + &said(self.args.format, &below, layout))
    }

    /// The run as a whole, if all of it is there, and each of its curves and maps.
    fn draw(&self, directory: &Path) -> Result<()> {
        let mut all = match self.asked.is_whole(self.args) {
            true => whole(&self.record, &headlines(GROUPS.iter())),
            false => Vec::new(),
        };
        all.extend(pictures(&self.record));
        draw(&self.record, all, directory)
    }
}

/// The record that was asked for, with other predictions where some are given, and only the part that was named.
///
/// # Errors
/// There is no such record, or nothing in it has that name.
fn chosen(args: &Args, asked: &Asked<'_>, archive: &Archive) -> Result<Record> {
    let overrides = args.beside.overrides()?;
    let mut record = match (asked.run, asked.group) {
        (None, Some(group)) => of_group(archive, group)?,
        (run, _) => archive.record(run)?,
    };
    for id in apply(&overrides, &mut record) {
        tell_unknown(&id, &record);
    }
    if let Some(group) = asked.group {
        keep(&mut record, group)?;
    }
    if let Some(glob) = &args.only {
        pattern::keep(&mut record, glob)?;
    }
    add_missing_curves(&mut record);
    Ok(record)
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
            (Some(group), run) => {
                tell_of_file(OsStr::new(group), "the group of this name");
                Ok(Self { run, group: Some(group) })
            }
            (None, Some(second)) => Err(Error::Usage(format!(
                "{}: a second run goes with the name of a group or with `report displacement` only",
                second.to_string_lossy()
            ))),
            (None, None) => Ok(Self { run: first, group: args.group.as_deref() }),
        }
    }

    /// Whether published reports are to be told row by row, ours beside.
    fn is_beside(&self, args: &Args) -> bool {
        let parts = args.all || args.baseline.is_some() || !self.is_whole(args);
        args.format == Format::Terminal && !parts && args.beside.against.is_some()
    }

    /// Whether no part of the run was named.
    fn is_whole(&self, args: &Args) -> bool {
        self.group.is_none() && args.only.is_none()
    }

    /// Whether the whole run is to be told on one screen: nothing says which part of it, or how.
    fn is_one_screen(&self, args: &Args, record: &Record) -> bool {
        let columns = args.beside.against.is_some() || args.baseline.is_some();
        let plain = args.format == Format::Terminal && !args.all && !columns;
        plain && self.is_whole(args) && record.groups.len() > 1
    }
}

/// The Observation Tables of these reports.
fn beside(machines: &[Published], record: &Record, layout: Layout) -> String {
    let tables: Vec<_> = sheets(machines, record).iter().map(|sheet| sheet.within(layout)).collect();
    format!("{}\n\n{}", title(record), tables.join("\n"))
}

/// The first screen, with the newest runs before it that are comparable.
fn screen_of(record: &Record, archive: &Archive, layout: Layout) -> String {
    const NEWEST: usize = 8;
    let files = archive.files().unwrap_or_default();
    let runs = files.iter().rev().take(NEWEST).filter_map(|file| store::Store::load(file).ok());
    let alike = |run: &Record| run.started <= record.started && is_alike(run, record);
    let earlier: Vec<Record> = runs.filter(alike).collect();
    alike::remark(record, &earlier, None).inspect(page::warn);
    let (headlines, program) = (headlines(GROUPS.iter()), program());
    screen(
        &Summary { record, headlines: &headlines, earlier: &earlier, doctor: None, program: &program },
        layout,
    )
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
    let known: Vec<_> =
        ids(GROUPS).into_iter().chain(record.cases().map(|(_, case)| case.id.clone())).collect();
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

fn of_group(archive: &Archive, group: &str) -> Result<Record> {
    let newest = archive.record(None)?;
    if newest.groups.iter().any(|known| known.name == group) {
        return Ok(newest);
    }
    let Some(found) = archive.earlier_with(group)? else { return Ok(newest) };
    page::warn(&format!("the newest run, {}, has no {group}: this is {}", newest.run, found.run));
    Ok(found)
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
        let (weight, field) = (d.weight.name(), d.field);
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

/// Writes a text to this file, or else to the standard output.
///
/// # Errors
/// There is no such text, or it cannot be written.
pub(super) fn put(file: Option<&Path>, text: impl Fn(Layout) -> Result<String>) -> Result<()> {
    match file {
        Some(file) => save(file, inert::output(&text(Layout::default())?, false).as_bytes()),
        None => page::write(&text(layout())?),
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_commands_no_terminal_that_shows_it() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("report.txt");
        put(Some(&file), |_| Ok("name\u{1b}[2J\u{7}\nnext\n".into())).unwrap();
        let written = std::fs::read_to_string(&file).unwrap();
        assert!(!written.contains(['\u{1b}', '\u{7}']) && written.ends_with("\nnext\n"), "{written:?}");
    }
}

//! `syscost report`: a stored run as a table or in another format. It measures nothing.

use super::archive::Archive;
use super::flag::Format;
use super::page::{self, Tone};
use super::selection::{Selection, find_paper_run};
use crate::driver::{group_headlines, layout, nearest_names, program_command};
use crate::error::{Error, Result};
use crate::pair::side::case_ids;
use crate::platform::inert;
use crate::platform::kernel_files::KernelFiles;
use crate::record::quantity::NANOSECONDS;
use crate::record::{CaseRecord, Record, store};
use crate::render::summary::{Summary, summary_screen};
use crate::render::table::{Against, Layout, format_sentences, record_table};
use crate::study::alike::{self, is_same_series};
use crate::study::prediction::{Overrides, apply_overrides};
use crate::study::published::{self, Published, Reference};
use crate::suite::GROUPS;
use clap::ValueEnum;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use syscost_analysis::render::beside::published_tables;
use syscost_analysis::render::foreign::{
    action_benchmark_json, bencher_json, junit_xml, kcidb_report, lava_lines, open_metrics_text,
};
use syscost_analysis::render::format;
use syscost_analysis::render::paper_table::paper_sheets;
use syscost_analysis::render::sheet::{Sheet, indented_json};
use syscost_analysis::study::paper::Paper;

/// Print a saved run as a table, or convert it
///
/// Prints a stored run: on one screen, group by group as the observation table (`--all`, or `--group`), as Markdown for a discussion, as CSV for a spreadsheet,
/// or as the JSON of the record, which can be carried to another machine and reported there.
#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    selection: Selection,
    /// How to write it
    #[arg(long, value_enum, default_value_t = Format::Terminal)]
    format: Format,
    /// Print the tables of Woodside, Courtois and Schramm (1997) with our columns beside the published ones: of this run, or of
    /// the newest one that has such cases
    #[arg(long, conflicts_with_all = ["all", "against", "export", "group"])]
    paper: bool,
    /// Every table, and not one screen
    #[arg(long)]
    all: bool,
    /// Published machines, between commas.
    #[arg(long, value_name = "LIST", help = published_machines_help())]
    against: Option<String>,
    /// TOML file of your own predictions: a table an id, with hardware_ns, software_ns, why
    #[arg(long, value_name = "FILE")]
    predictions: Option<PathBuf>,
    /// The standard deviation of each case's samples in a column of its own
    #[arg(long, conflicts_with = "export")]
    deviations: bool,
    /// Write to this file, whole or not at all, and not to the standard output
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Write it as another tool reads it, in place of --format
    #[arg(long, value_enum, value_name = "READER", conflicts_with_all = ["format", "against"])]
    export: Option<Reader>,
    /// The build that was tested, as KCIDB knows it
    #[arg(long, value_name = "ORIGIN:ID", requires = "export")]
    build: Option<String>,
}

fn published_machines_help() -> String {
    let names: Vec<_> = published::names().collect();
    format!("Published machines in columns of their own, between commas: {}", names.join(", "))
}

/// An extra column: its head, and a value in nanoseconds for each case id.
type Column = (String, BTreeMap<String, f64>);

pub fn run(args: &Args) -> Result<ExitCode> {
    if args.paper {
        return write_report(args);
    }
    Report::new(args)?.write()?;
    Ok(ExitCode::SUCCESS)
}

/// The part of a record that the user selected, and the columns to show beside it.
struct Report<'a> {
    args: &'a Args,
    archive: Archive,
    record: Record,
    machines: Vec<Published>,
    columns: Vec<Column>,
}

impl<'a> Report<'a> {
    /// # Errors
    /// Something that the command line names does not exist or cannot be read.
    fn new(args: &'a Args) -> Result<Self> {
        let archive = Archive::at(&args.selection.home);
        let overrides = args.predictions.as_deref().map(Overrides::read).transpose()?.unwrap_or_default();
        let machines = args.against.as_deref().map(published::find).transpose()?.unwrap_or_default();
        let mut record = args.selection.load_record(&archive, GROUPS, &machines)?;
        for id in apply_overrides(&overrides, &mut record) {
            warn_of_unknown_case(&id, &record);
        }
        let published = machines.iter().map(|machine| (machine.name.clone(), machine.values_ns()));
        let mut columns: Vec<_> = published.collect();
        columns.extend(args.deviations.then(|| deviation_column(&record)));
        check_columns(args.format, &columns, &record)?;
        Ok(Self { args, archive, record, machines, columns })
    }

    /// Prints the report, or writes it to the file that was named.
    fn write(&self) -> Result<()> {
        write_rendered(self.args.output.as_deref(), |layout| match self.args.export {
            Some(reader) => export(reader, &self.record, self.args.build.as_deref()),
            None => self.render(layout),
        })
    }

    fn render(&self, layout: Layout) -> Result<String> {
        if self.is_paper_comparison() {
            let tables = published_tables(&self.machines, &self.record, layout);
            return Ok(format!("{}\n\n{tables}", run_title(&self.record)));
        }
        if self.is_one_screen() {
            return Ok(render_first_screen(&self.record, &self.archive, layout));
        }
        let below: Vec<_> = self.machines.iter().flat_map(|machine| machine.notes(&self.record)).collect();
        let table = render_record(self.args.format, &self.record, &self.columns, layout)?;
        Ok(table + &source_notes(self.args.format, &below, layout))
    }

    /// Whether to show the observation tables of published reports with our values beside them.
    fn is_paper_comparison(&self) -> bool {
        let parts = self.args.all || self.args.deviations || !self.args.selection.is_whole();
        self.args.format == Format::Terminal && !parts && self.args.against.is_some()
    }

    /// Whether the whole run is shown on one screen: no part, format or column was named.
    fn is_one_screen(&self) -> bool {
        let columns = !self.columns.is_empty();
        let plain = self.args.format == Format::Terminal && !self.args.all && !columns;
        plain && self.args.selection.is_whole() && self.record.groups.len() > 1
    }
}

/// The report on one screen, compared with the newest comparable runs before this one.
fn render_first_screen(record: &Record, archive: &Archive, layout: Layout) -> String {
    const NEWEST: usize = 8;
    let files = archive.run_files().unwrap_or_default();
    let runs = files.iter().rev().take(NEWEST).filter_map(|file| store::Store::load(file).ok());
    let alike = |run: &Record| run.started <= record.started && is_same_series(run, record);
    let earlier: Vec<Record> = runs.filter(alike).collect();
    alike::series_remark(record, &earlier, None).inspect(page::warn);
    let (headlines, program) = (group_headlines(GROUPS.iter()), program_command());
    let (headlines, earlier, doctor, program) = (&headlines[..], &earlier[..], None, &program[..]);
    summary_screen(&Summary { record, headlines, earlier, doctor, program }, layout)
}

/// Warns of a prediction whose id is no case and probably misspelt. An id that only this run left out is fine.
fn warn_of_unknown_case(id: &str, record: &Record) {
    let known: Vec<_> =
        case_ids(GROUPS).into_iter().chain(record.cases().map(|(_, case)| case.id.clone())).collect();
    if !known.iter().any(|other| other == id) {
        let near = nearest_names(id, &known);
        page::warn(&format!("the predictions name {id}, and there is no such case; the nearest are {near}"));
    }
}

/// The sources of the published values; empty in formats without room for sentences.
fn source_notes(format: Format, below: &[String], layout: Layout) -> String {
    match format {
        Format::Terminal => format_sentences(below, layout),
        Format::Markdown if !below.is_empty() => {
            below.iter().fold("\n".into(), |text, sentence| text + "* " + sentence + "\n")
        }
        _ => String::new(),
    }
}

/// The column with the standard deviation of each case's samples, as student reports tabulate it.
fn deviation_column(record: &Record) -> Column {
    let deviation = |case: &CaseRecord| Some((case.id.clone(), case.measured()?.standard_deviation));
    ("sd".into(), record.cases().filter_map(|(_, case)| deviation(case)).collect())
}

/// Returns an error for columns that the format or the unit would silently leave out.
fn check_columns(format: Format, columns: &[Column], record: &Record) -> Result<()> {
    let Some((name, _)) = columns.first() else { return Ok(()) };
    let why = match format {
        Format::Json => "JSON is the record itself".to_owned(),
        _ if record.unit != NANOSECONDS => {
            format!("this run counted {}, and {name} is in nanoseconds", record.unit)
        }
        _ => return Ok(()),
    };
    Err(Error::Usage(format!("{why}: there is no column for {name}; leave out --against and --deviations")))
}

fn render_record(format: Format, record: &Record, columns: &[Column], layout: Layout) -> Result<String> {
    let against: Vec<_> = columns.iter().map(|(name, values)| Against { name, values }).collect();
    match format {
        Format::Terminal => Ok(page::paint(Tone::Bold, &run_title(record), layout)
            + "\n\n"
            + &record_table(record, None, &against, layout)),
        Format::Markdown => Ok(format::markdown(record, &against)),
        Format::Json => indented_json(&record.run, record),
        Format::Csv => format::csv(record, &against),
    }
}

/// The run's name, start, scale and kernel.
fn run_title(record: &Record) -> String {
    let kernel = record.fingerprint.kernel_release.as_deref().unwrap_or("unknown");
    format!("{}, {} UTC, {}, kernel {kernel}", record.run, page::utc_moment(record.started), record.scale)
}

/// Writes a text to this file, or else to the standard output.
///
/// # Errors
/// The text cannot be rendered or written.
pub fn write_rendered(file: Option<&Path>, render: impl Fn(Layout) -> Result<String>) -> Result<()> {
    match file {
        Some(file) => {
            page::save_file(file, inert::neutralize_output(&render(Layout::default())?, false).as_bytes())
        }
        None => page::write(&render(layout())?),
    }
}

// `syscost report --export`: a run in the format of another tool.

/// The service that reads it.
#[derive(Clone, Copy, PartialEq, ValueEnum)]
pub enum Reader {
    /// JSON for github-action-benchmark, as `customSmallerIsBetter`
    ActionBenchmark,
    /// Bencher's metric format, JSON
    Bencher,
    /// A list of tests for a CI, XML
    Junit,
    /// Tests for the kernel community's database KCIDB, JSON by its schema 5; needs --build
    Kcidb,
    /// Gauges for Prometheus and its relatives
    Openmetrics,
    /// Lines for `lava-test-case`, as Linaro's test definitions send them
    Lava,
    /// The headline figures as a reference for machines of this kind, as `crates/engine/fixtures/reference` holds them
    Reference,
}

/// The run in the format of this reader.
///
/// # Errors
/// A number is not finite, or the reader needs the name of a build and there is none.
pub fn export(reader: Reader, record: &Record, build: Option<&str>) -> Result<String> {
    match reader {
        Reader::ActionBenchmark => action_benchmark_json(record),
        Reader::Bencher => bencher_json(record),
        Reader::Junit => Ok(junit_xml(record)),
        Reader::Kcidb => kcidb_report(record, build.ok_or_else(|| Error::Usage(WITHOUT_BUILD.into()))?),
        Reader::Lava => Ok(lava_lines(record)),
        Reader::Openmetrics => Ok(open_metrics_text(record, host_name(record).as_deref())),
        Reader::Reference => reference_json(record),
    }
}

/// The headline figures of a run as JSON: a reference for other runs on machines of this kind.
fn reference_json(record: &Record) -> Result<String> {
    let reference = Reference::from_record(record, &group_headlines(GROUPS.iter()));
    let reference = reference.ok_or_else(|| {
        Error::Missing(
            "the microarchitecture of this processor has no name here, and nothing can be like it".into(),
        )
    })?;
    indented_json("the reference", &reference)
}

const WITHOUT_BUILD: &str =
    "KCIDB asks which build was tested: name it by --build ORIGIN:ID, as it was reported there";

/// The name of this machine, if the run was made in its current boot: a record names the boot and not the host.
fn host_name(record: &Record) -> Option<String> {
    let files = KernelFiles::live();
    let boot = files.read_first_line("proc/sys/kernel/random/boot_id")?;
    files.read_first_line("proc/sys/kernel/hostname").filter(|_| record.boot == Some(boot))
}

// `syscost report --paper`: the tables of Woodside, Courtois and Schramm (1997), with a run's values
// beside the published ones.

fn write_report(args: &Args) -> Result<ExitCode> {
    let record = find_paper_run(&args.selection, &Archive::at(&args.selection.home))?;
    let sheets = paper_sheets(&Paper::read()?, &record);
    write_rendered(args.output.as_deref(), |layout| render_tables(args.format, &record, &sheets, layout))?;
    Ok(ExitCode::SUCCESS)
}

fn render_tables(format: Format, record: &Record, sheets: &[Sheet], layout: Layout) -> Result<String> {
    let joined = |text: &dyn Fn(&Sheet) -> String| sheets.iter().map(text).collect::<Vec<_>>().join("\n");
    match format {
        Format::Terminal => {
            let head = page::paint(page::Tone::Bold, &run_title(record), layout);
            Ok(format!("{head}\n\n{}", joined(&|sheet| sheet.fit_to_terminal(layout))))
        }
        Format::Markdown => Ok(format!("{}\n\n{}", run_title(record), joined(&Sheet::to_markdown))),
        Format::Csv => sheets.iter().map(Sheet::to_csv).collect(),
        Format::Json => {
            let value = serde_json::json!({ "run": record.run, "tables": sheets });
            Ok(format!("{value:#}\n"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_written_file_holds_no_control_characters_of_a_terminal() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("report.txt");
        write_rendered(Some(&file), |_| Ok("name\u{1b}[2J\u{7}\nnext\n".into())).unwrap();
        let written = std::fs::read_to_string(&file).unwrap();
        assert!(!written.contains(['\u{1b}', '\u{7}']) && written.ends_with("\nnext\n"), "{written:?}");
    }
}

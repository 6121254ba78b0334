//! `syscost report --paper`: the tables of Woodside, Courtois and Schramm (1997), with a run's values
//! beside the published ones.

use super::super::archive::Archive;
use super::super::flag::Format;
use super::super::page;
use super::{Args, Selection, run_title, write_rendered};
use crate::error::{Error, Result};
use crate::record::Record;
use crate::record::store::Store;
use crate::render::table::Layout;
use std::process::ExitCode;
use syscost_analysis::render::paper_table::{Sheet, paper_sheets};
use syscost_analysis::study::paper::{GROUP, Paper};

pub fn write_report(args: &Args) -> Result<ExitCode> {
    let record = find_record(&args.selection, &Archive::at(&args.selection.home))?;
    let sheets = paper_sheets(&Paper::read()?, &record);
    write_rendered(args.output.as_deref(), |layout| render_tables(args.format, &record, &sheets, layout))?;
    Ok(ExitCode::SUCCESS)
}

/// The run that was named, or the newest that has measured any of the paper's cases.
///
/// # Errors
/// There is no such run, or it has none of the cases.
pub fn find_record(selection: &Selection, archive: &Archive) -> Result<Record> {
    let record = match &selection.run {
        Some(run) => archive.load_run(Some(run))?,
        None => newest_with_paper_cases(archive)?,
    };
    match has_paper_cases(&record) {
        true => Ok(record),
        false => Err(Error::Usage(format!(
            "{} has no case of {GROUP} that was measured; {}",
            record.run,
            measuring_hint()
        ))),
    }
}

fn measuring_hint() -> &'static str {
    "`scripts/two-nodes syscost run '^displacement/' --scale full` measures all of them, as root"
}

fn has_paper_cases(record: &Record) -> bool {
    record
        .groups
        .iter()
        .any(|run| run.name == GROUP && run.cases.iter().any(|case| case.measured().is_some()))
}

/// The newest run that has measured any of the cases.
fn newest_with_paper_cases(archive: &Archive) -> Result<Record> {
    for file in archive.run_files()?.iter().rev() {
        let record = Store::load(file)?;
        if has_paper_cases(&record) {
            return Ok(record);
        }
    }
    Err(Error::Usage(format!("no run here has a case of {GROUP}; {}", measuring_hint())))
}

fn render_tables(format: Format, record: &Record, sheets: &[Sheet], layout: Layout) -> Result<String> {
    let joined = |field: fn(&Sheet) -> String| sheets.iter().map(field).collect::<Vec<_>>().join("\n");
    match format {
        Format::Terminal => {
            let head = page::paint(page::Tone::Bold, &run_title(record), layout);
            Ok(format!(
                "{head}\n\n{}",
                sheets.iter().map(|sheet| sheet.fit_to_terminal(layout)).collect::<Vec<_>>().join("\n")
            ))
        }
        Format::Markdown => Ok(format!("{}\n\n{}", run_title(record), joined(Sheet::to_markdown))),
        Format::Csv => sheets.iter().map(Sheet::to_csv).collect(),
        Format::Json => {
            let value = serde_json::json!({ "run": record.run, "tables": sheets });
            Ok(format!("{value:#}\n"))
        }
    }
}

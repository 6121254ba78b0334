//! `syscost report displacement`: the tables and figures of Woodside, Courtois and Schramm (1997), with a run's values
//! beside the published ones.

use super::super::archive::{Archive, tell_of_file};
use super::super::flag::Format;
use super::super::page;
use super::{Args, draw, put, title};
use crate::error::{Error, Result};
use crate::record::Record;
use crate::record::store::Store;
use crate::render::paper_table::{Sheet, sheets};
use crate::render::plot::picture;
use crate::render::table::Layout;
use crate::study::paper::{GROUP, Paper, figures};
use std::process::ExitCode;

/// Whether these tables are asked for. A file of that name is a file only with its path, as with every group.
pub(super) fn is_asked(args: &Args) -> bool {
    args.run.as_ref().is_some_and(|run| run == GROUP)
}

pub(super) fn report(args: &Args) -> Result<ExitCode> {
    tell_of_file(GROUP.as_ref(), "the group of this name");
    let archive = Archive::of(&args.home);
    let record = match &args.of {
        Some(of) => archive.record(Some(of))?,
        None => newest(&archive)?,
    };
    if !has_tables(&record) {
        return Err(Error::Usage(format!(
            "{} has no case of {GROUP} that was measured; {}",
            record.run,
            how()
        )));
    }
    let paper = Paper::read()?;
    let sheets = sheets(&paper, &record);
    put(args.output.as_deref(), |layout| text(args.format, &record, &sheets, layout))?;
    if let Some(directory) = &args.plot {
        let figures = figures(&paper, &record);
        draw(&record, figures.iter().map(|figure| picture(figure, &record)).collect(), directory)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn how() -> &'static str {
    "`scripts/two-nodes syscost run '^displacement/' --scale full` measures all of them, as root"
}

fn has_tables(record: &Record) -> bool {
    record
        .groups
        .iter()
        .any(|run| run.name == GROUP && run.cases.iter().any(|case| case.measured().is_some()))
}

/// The newest run that has measured any of the cases.
fn newest(archive: &Archive) -> Result<Record> {
    for file in archive.files()?.iter().rev() {
        let record = Store::load(file)?;
        if has_tables(&record) {
            return Ok(record);
        }
    }
    Err(Error::Usage(format!("no run here has a case of {GROUP}; {}", how())))
}

fn text(format: Format, record: &Record, sheets: &[Sheet], layout: Layout) -> Result<String> {
    let joined = |of: fn(&Sheet) -> String| sheets.iter().map(of).collect::<Vec<_>>().join("\n");
    match format {
        Format::Terminal => {
            let head = page::paint(page::Tone::Bold, &title(record), layout);
            Ok(format!(
                "{head}\n\n{}",
                sheets.iter().map(|sheet| sheet.within(layout)).collect::<Vec<_>>().join("\n")
            ))
        }
        Format::Markdown => Ok(format!("{}\n\n{}", title(record), joined(Sheet::markdown))),
        Format::Csv => sheets.iter().map(Sheet::csv).collect(),
        Format::Json => {
            let value = serde_json::json!({ "run": record.run, "tables": sheets });
            Ok(format!("{value:#}\n"))
        }
    }
}

//! `syscost report --paper`: the tables of Woodside, Courtois and Schramm (1997), with a run's values
//! beside the published ones.

use super::super::archive::Archive;
use super::super::flag::Format;
use super::super::page;
use super::super::selection::find_paper_run;
use super::{Args, run_title, write_rendered};
use crate::error::Result;
use crate::record::Record;
use crate::render::table::Layout;
use std::process::ExitCode;
use syscost_analysis::render::paper_table::{Sheet, paper_sheets};
use syscost_analysis::study::paper::Paper;

pub fn write_report(args: &Args) -> Result<ExitCode> {
    let record = find_paper_run(&args.selection, &Archive::at(&args.selection.home))?;
    let sheets = paper_sheets(&Paper::read()?, &record);
    write_rendered(args.output.as_deref(), |layout| render_tables(args.format, &record, &sheets, layout))?;
    Ok(ExitCode::SUCCESS)
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

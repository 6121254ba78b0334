//! `syscost` without a command: prints the main commands and the last measurement.

use super::archive::Archive;
use super::flag::Home;
use super::page;
use crate::driver::layout;
use crate::error::Result;
use crate::record::Record;
use crate::render::table::Layout;
use std::process::ExitCode;

/// The commands that are used most, with what each does.
const FIRST: [(&str, &str); 7] = [
    ("syscost run", "measure all that this machine can, some minutes, shown on one screen"),
    ("syscost run FILTER", "measure the cases whose ids match, and print their table"),
    ("syscost report", "the newest run on one screen; `report --group NAME` prints one table"),
    ("syscost explain GROUP", "what a group times, what proves it, what fools it"),
    ("syscost record --name NAME", "keep numbers to compare with; `syscost compare OLD NEW` compares two"),
    ("syscost ab", "two kernels, builds or settings by turns; `syscost gate` is for CI"),
    ("syscost doctor", "what would disturb a measurement here"),
];

pub fn run() -> Result<ExitCode> {
    page::write(&render_overview(newest_run_line().as_deref(), layout()))?;
    Ok(ExitCode::SUCCESS)
}

/// A sentence on the newest run, if there is one that can be read.
fn newest_run_line() -> Option<String> {
    let record = Archive::at(&Home { given: None }).load_run(None).ok()?;
    Some(last_run_line(&record))
}

fn last_run_line(record: &Record) -> String {
    let kernel = record.fingerprint.kernel_release.as_deref().unwrap_or("unknown");
    let (when, tally) = (page::utc_moment(record.started), record.tally());
    format!("Measured last, {when} UTC, Linux {kernel}, scale {}: {tally}.", record.scale)
}

fn render_overview(last: Option<&str>, layout: Layout) -> String {
    let rows: Vec<[String; 2]> = FIRST.map(|(line, what)| [line.to_owned(), what.to_owned()]).into();
    let last = last.unwrap_or("Nothing was measured here yet.");
    let head = page::paint(page::Tone::Bold, "What does this kernel charge, and how sure are we?", layout);
    let table = page::columns_text(&rows, page::prose_width(layout));
    let last = page::wrap("", last, page::prose_width(layout));
    format!("{head}\n{table}{last}\n`syscost help` lists every command and topic.\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::fixture_run;

    #[test]
    fn ten_lines_name_the_commands_and_the_last_measurement() {
        let wide = Layout { width: Some(100), ..Layout::default() };
        for last in [None, Some(last_run_line(&fixture_run::fixture_record()))] {
            let text = render_overview(last.as_deref(), wide);
            assert!((10..=12).contains(&text.lines().count()), "{text}");
            assert!(text.contains("easured") && text.contains("syscost doctor"), "{text}");
        }
    }
}

//! `syscost coverage`: the tests of other suites, and the cases that measure the same.

use super::flag::Form;
use super::page::{self, Tone};
use crate::error::Result;
use crate::render::table::Layout;
use crate::suite::coverage::{Answer, Row, rows};
use serde_json::json;
use std::process::ExitCode;

/// Print what other suites measure, and which cases answer it
///
/// Prints a line a suite, and below them the tests that no case answers, each with the reason. In a pipe: one row a line, with suite,
/// tests, what they measure, and ids or the reason, between tabs.
#[derive(clap::Args)]
pub struct Args {
    /// Every row, with the ids of its cases
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    form: Form,
}

pub fn run(args: &Args) -> Result<ExitCode> {
    let rows = rows();
    args.form.write(
        || rows.iter().map(row_json).collect::<Vec<_>>(),
        || page::tabbed_rows(rows.iter().map(row_cells)),
        |layout| page_text(&rows, args.all, layout),
    )?;
    Ok(ExitCode::SUCCESS)
}

fn row_json(row: &Row) -> serde_json::Value {
    let (ids, missing, not_measured) = match &row.answer {
        Answer::Ids(ids) => (ids.clone(), None, None),
        Answer::Missing(why) => (Vec::new(), Some(why), None),
        Answer::NotMeasured(why) => (Vec::new(), None, Some(why)),
    };
    let tests: Vec<_> = row.tests.split(' ').collect();
    json!({ "suite": row.suite, "tests": tests, "what": row.what, "ids": ids, "missing": missing, "not_measured": not_measured })
}

fn row_cells(row: &Row) -> [String; 4] {
    let answer = match &row.answer {
        Answer::Ids(ids) => ids.join(" "),
        Answer::Missing(why) => format!("missing: {why}"),
        Answer::NotMeasured(why) => format!("not measured: {why}"),
    };
    [row.suite.into(), row.tests.into(), row.what.into(), answer]
}

fn page_text(rows: &[Row], all: bool, layout: Layout) -> String {
    let line = |row: &Row| {
        let [suite, tests, what, answer] = row_cells(row);
        page::wrap("    ", &format!("{suite}: {tests} ({what}): {answer}"), page::prose_width(layout)) + "\n"
    };
    if all {
        return rows.iter().map(line).collect();
    }
    let suites = rows.chunk_by(|a, b| a.suite == b.suite).map(|rows| (Tone::Plain, suite_cells(rows)));
    let missing: Vec<_> = rows.iter().filter(|row| matches!(row.answer, Answer::Missing(_))).collect();
    let head = ["suite", "rows", "answered", "missing", "not measured on purpose"];
    format!(
        "{}\n{}\n{} of {} rows have no case\n",
        page::table(head, suites, usize::MAX, layout),
        missing.iter().copied().map(line).collect::<String>(),
        missing.len(),
        rows.len()
    )
}

fn suite_cells(rows: &[Row]) -> [String; 5] {
    let count = |is: fn(&Answer) -> bool| rows.iter().filter(|row| is(&row.answer)).count().to_string();
    [
        rows.first().map_or("", |row| row.suite).into(),
        rows.len().to_string(),
        count(|answer| matches!(answer, Answer::Ids(_))),
        count(|answer| matches!(answer, Answer::Missing(_))),
        count(|answer| matches!(answer, Answer::NotMeasured(_))),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_counts_by_suite_and_names_what_is_missing() {
        let words = |text: String| text.split_whitespace().collect::<Vec<_>>().join(" ");
        let text = words(page_text(&rows(), false, Layout::default()));
        assert!(text.contains("lmbench") && !text.contains("not measured: "), "{text}");
        for row in rows() {
            if let Answer::Missing(reason) = row.answer {
                assert!(text.contains(&words(format!("missing: {reason}"))), "{reason}: {text}");
            }
        }
        assert!(words(page_text(&rows(), true, Layout::default())).contains("scale/futex-mismatch"));
    }
}

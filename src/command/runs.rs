//! `syscost runs`: what was measured so far. A damaged run is named beside the others and hides none.

use super::archive::Archive;
use super::flag::{Form, Home};
use super::page::{self, Tone};
use crate::Result;
use crate::driver::layout;
use crate::record::Record;
use crate::record::store::Store;
use crate::render::table::Layout;
use clap::Args;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::process::ExitCode;

/// Print what was measured so far
///
/// Prints the stored runs, oldest first: name, when (universal time), scale, unit, how many of the cases
/// were measured, and the kernel. In a pipe: name, when, scale, unit, kernel, and the numbers of cases
/// measured, skipped and failed, between tabs; a damaged run is its name, `damaged` and why.
#[derive(Args)]
pub(super) struct Asked {
    #[command(flatten)]
    home: Home,
    #[command(flatten)]
    form: Form,
}

pub(super) fn run(asked: &Asked) -> Result<ExitCode> {
    let archive = Archive::of(&asked.home);
    let files = archive.files()?;
    if files.is_empty() {
        page::warn(&archive.empty());
    }
    let runs: Vec<_> = files.into_iter().map(Run::read).collect();
    match page::is_piped() {
        _ if asked.form.json => page::write_json(&runs.iter().map(Run::json).collect())?,
        true => page::write(&lines(&runs))?,
        false => page::write(&table(&runs, layout()))?,
    }
    Ok(ExitCode::SUCCESS)
}

/// A file, and what was in it.
struct Run {
    file: PathBuf,
    record: Result<Record>,
}

impl Run {
    fn read(file: PathBuf) -> Self {
        Self { record: Store::load(&file), file }
    }

    fn name(&self) -> String {
        self.file.file_stem().unwrap_or_default().to_string_lossy().into_owned()
    }

    fn json(&self) -> Value {
        let path = self.file.display().to_string();
        match &self.record {
            Err(error) => json!({ "run": self.name(), "path": path, "damaged": error.to_string() }),
            Ok(record) => {
                let (measured, skipped, failed) = record.tally();
                json!({
                    "run": record.run, "path": path, "started": record.started, "scale": record.scale,
                    "unit": record.unit, "kernel_release": record.fingerprint.kernel_release,
                    "measured": measured, "skipped": skipped, "failed": failed,
                })
            }
        }
    }

    /// What a program is given.
    fn cells(&self) -> Cells<8> {
        let record = self.record.as_ref().map_err(ToString::to_string)?;
        let (measured, skipped, failed) = record.tally();
        let [measured, skipped, failed] = [measured, skipped, failed].map(|count| count.to_string());
        let [name, when, scale, unit] = self.head(record);
        Ok([name, when, scale, unit, kernel(record), measured, skipped, failed])
    }

    /// What a person is shown.
    fn row(&self) -> Cells<6> {
        let record = self.record.as_ref().map_err(ToString::to_string)?;
        let [name, when, scale, unit] = self.head(record);
        Ok([name, when, scale, unit, tally(record), kernel(record)])
    }

    fn head(&self, record: &Record) -> [String; 4] {
        [self.name(), page::moment(record.started), record.scale.clone(), record.unit.clone()]
    }
}

/// A row, or the sentence that stands in its place.
type Cells<const N: usize> = std::result::Result<[String; N], String>;

fn kernel(record: &Record) -> String {
    record.fingerprint.kernel_release.clone().unwrap_or_else(|| "unknown".into())
}

/// Measured of all; what failed is a word, because it should be read.
fn tally(record: &Record) -> String {
    let (measured, skipped, failed) = record.tally();
    let all = measured + skipped + failed;
    if failed == 0 { format!("{measured}/{all}") } else { format!("{measured}/{all}, {failed} failed") }
}

fn lines(runs: &[Run]) -> String {
    let line = |run: &Run| match run.cells() {
        Ok(cells) => page::tabbed(&[cells]),
        Err(sentence) => page::tabbed(&[[run.name(), "damaged".into(), sentence]]),
    };
    runs.iter().map(line).collect()
}

fn table(runs: &[Run], layout: Layout) -> String {
    let rows: Vec<_> = runs.iter().filter_map(|run| run.row().ok()).collect();
    let sound: String =
        page::aligned(&rows, page::width(layout)).into_iter().map(|line| line + "\n").collect();
    let damaged = runs.iter().filter_map(|run| run.row().err());
    let damaged = damaged.map(|sentence| page::wrap("damaged: ", &sentence, page::prose(layout)));
    sound + &damaged.map(|text| page::paint(Tone::Red, &text, layout) + "\n").collect::<String>()
}

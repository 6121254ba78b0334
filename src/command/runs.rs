//! `syscost runs`: lists the stored runs. Damaged runs are listed as damaged.

use super::archive::{self, Archive};
use super::flag::{Form, Home};
use super::page;
use crate::error::Result;
use crate::record::store::Store;
use crate::record::{Record, Tally};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::process::ExitCode;

/// Print what was measured so far
///
/// Prints the stored runs, oldest first: name, when (universal time), scale, unit, how many of the cases
/// were measured, and the kernel. In a pipe: name, when, scale, unit, kernel, and the numbers of cases
/// measured, skipped, disturbed and failed, between tabs; a damaged run is its name, `damaged` and why. Beside a
/// damaged one the exit code is 2, and 1 where a file may not be read.
#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    home: Home,
    #[command(flatten)]
    form: Form,
}

pub fn run(args: &Args) -> Result<ExitCode> {
    let archive = Archive::at(&args.home);
    let files = archive.run_files()?;
    if files.is_empty() {
        page::warn(&archive.no_runs_error());
    }
    let runs: Vec<_> = files.into_iter().map(Run::read).collect();
    args.form.write(
        || runs.iter().map(Run::json).collect::<Vec<_>>(),
        || runs.iter().map(|run| page::tabbed_or_damaged(run.name(), run.tabbed_cells())).collect(),
        |layout| page::columns_and_damaged(&runs.iter().map(Run::terminal_row).collect::<Vec<_>>(), layout),
    )?;
    Ok(archive::exit_code_for_damaged(runs.iter().filter_map(|run| run.record.as_ref().err())))
}

/// A stored run, or the reason why it cannot be read.
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
                let Tally { measured, unwitnessed, skipped, disturbed, failed, .. } = record.tally();
                json!({
                    "run": record.run, "path": path, "started": record.started, "scale": record.scale,
                    "unit": record.unit, "kernel_release": record.fingerprint.kernel_release,
                    "measured": measured, "unwitnessed": unwitnessed, "skipped": skipped, "disturbed": disturbed, "failed": failed,
                })
            }
        }
    }

    /// A row for a program.
    fn tabbed_cells(&self) -> page::Row<9> {
        let record = self.record.as_ref().map_err(ToString::to_string)?;
        let Tally { measured, skipped, disturbed, failed, .. } = record.tally();
        let numbers = [measured, skipped, disturbed, failed].map(|count| count.to_string());
        let [measured, skipped, disturbed, failed] = numbers;
        let [name, when, scale, unit] = self.leading_cells(record);
        Ok([name, when, scale, unit, kernel_release_text(record), measured, skipped, disturbed, failed])
    }

    /// A row for a terminal.
    fn terminal_row(&self) -> page::Row<6> {
        let record = self.record.as_ref().map_err(ToString::to_string)?;
        let [name, when, scale, unit] = self.leading_cells(record);
        Ok([name, when, scale, unit, measured_of_all(record), kernel_release_text(record)])
    }

    fn leading_cells(&self, record: &Record) -> [String; 4] {
        [self.name(), page::utc_moment(record.started), record.scale.clone(), record.unit.clone()]
    }
}

fn kernel_release_text(record: &Record) -> String {
    record.fingerprint.kernel_release.clone().unwrap_or_else(|| "unknown".into())
}

/// The number of measured cases of all cases in words, and the failures if there are any.
fn measured_of_all(record: &Record) -> String {
    let Tally { measured, skipped, disturbed, failed, .. } = record.tally();
    let all = measured + skipped + disturbed + failed;
    if failed == 0 { format!("{measured}/{all}") } else { format!("{measured}/{all}, {failed} failed") }
}

//! `syscost baseline list`: the records, and what `--save-baseline` left. Damaged ones are listed as such.

use crate::command::archive::{self, Archive};
use crate::command::flag::{Form, Home};
use crate::command::page;
use crate::driver::layout;
use crate::error::Result;
use crate::record::store::record_name;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::ExitCode;
use syscost_analysis::record::bundle::{Head, read_any_head};

/// List the records, and what --save-baseline left
///
/// Prints name, when (universal time), scale, unit, the numbers of processes, sessions and cases, and the
/// kernel. In a pipe, between tabs: name, `record` or `save-baseline`, when, scale, unit, processes, sessions,
/// cases, kernel; a damaged one is its name, `damaged` and why. Beside a damaged one the exit code is 2, and 1
/// where a file may not be read.
#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    home: Home,
    #[command(flatten)]
    form: Form,
}

pub fn run(args: &Args) -> Result<ExitCode> {
    let archive = Archive::at(&args.home);
    let records = archive.record_files()?.into_iter().map(|path| Kept::read(path, "record"));
    let baselines = archive.baseline_files()?.into_iter().map(|path| Kept::read(path, "save-baseline"));
    let kept: Vec<_> = records.chain(baselines).collect();
    if kept.is_empty() {
        page::warn(
            &"there is no record yet: `syscost record` makes one, and `syscost baseline save` keeps a run",
        );
    }
    match page::is_piped() {
        _ if args.form.json => page::write_json(&kept.iter().map(Kept::json).collect::<Vec<_>>())?,
        true => {
            let lines = kept.iter().map(|kept| page::tabbed_or_damaged(kept.name(), kept.tabbed_cells()));
            page::write(&lines.collect::<String>())?;
        }
        false => page::write(&page::columns_and_damaged(
            &kept.iter().map(Kept::terminal_row).collect::<Vec<_>>(),
            layout(),
        ))?,
    }
    Ok(archive::exit_code_for_damaged(kept.iter().filter_map(|kept| kept.head.as_ref().err())))
}

/// Number of processes (the most that measured one case), of sessions, and of cases that have a value.
pub fn count_contents(head: &Head) -> [usize; 3] {
    let measured = head.series.iter().filter(|series| !series.values.is_empty());
    let processes = measured.clone().map(|series| series.values.len()).max().unwrap_or(0);
    let sessions: BTreeSet<_> = head.runs.iter().map(|run| (&run.boot, &run.session)).collect();
    let cases: BTreeSet<_> = measured.map(|series| &series.id).collect();
    [processes, sessions.len(), cases.len()]
}

/// The counts in words. A record of one process is unreplicated: it does not show how far two processes differ.
pub fn replication_text(processes: usize, sessions: usize) -> String {
    match (processes, sessions) {
        (0 | 1, _) => "unreplicated".into(),
        (_, 1) => format!("{processes} processes"),
        _ => format!("{processes} processes, {sessions} sessions"),
    }
}

/// The kernel releases of a record, between commas.
pub fn kernel_releases(head: &Head) -> String {
    let release =
        |f: &crate::environment::Fingerprint| f.kernel_release.clone().unwrap_or_else(|| "unknown".into());
    let releases: BTreeSet<_> = head.fingerprints.iter().map(release).collect();
    releases.into_iter().collect::<Vec<_>>().join(", ")
}

/// A stored file: `record` or `save-baseline`, and its head.
struct Kept {
    path: PathBuf,
    by: &'static str,
    head: Result<Head>,
}

impl Kept {
    fn read(path: PathBuf, by: &'static str) -> Self {
        Self { head: read_any_head(&path), path, by }
    }

    fn name(&self) -> String {
        record_name(&self.path)
    }

    fn json(&self) -> Value {
        let path = self.path.display().to_string();
        match &self.head {
            Err(error) => {
                json!({ "name": self.name(), "by": self.by, "path": path, "damaged": error.to_string() })
            }
            Ok(head) => {
                let [processes, sessions, cases] = count_contents(head);
                json!({
                    "name": self.name(), "by": self.by, "path": path, "created": head.created, "scale": head.scale,
                    "unit": head.unit, "processes": processes, "sessions": sessions, "cases": cases,
                    "replicated": processes > 1, "kernels": kernel_releases(head),
                })
            }
        }
    }

    /// A row for a program.
    fn tabbed_cells(&self) -> page::Row<9> {
        let head = self.head.as_ref().map_err(ToString::to_string)?;
        let [processes, sessions, cases] = count_contents(head).map(|count| count.to_string());
        let (when, scale, unit) = (page::utc_moment(head.created), head.scale.clone(), head.unit.clone());
        Ok([
            self.name(),
            self.by.into(),
            when,
            scale,
            unit,
            processes,
            sessions,
            cases,
            kernel_releases(head),
        ])
    }

    /// A row for a terminal.
    fn terminal_row(&self) -> page::Row<7> {
        let head = self.head.as_ref().map_err(ToString::to_string)?;
        let [processes, sessions, cases] = count_contents(head);
        let (when, scale, unit) = (page::utc_moment(head.created), head.scale.clone(), head.unit.clone());
        let replication = replication_text(processes, sessions);
        Ok([
            self.name(),
            when,
            scale,
            unit,
            replication,
            page::count_with_noun(cases, "case", "cases"),
            kernel_releases(head),
        ])
    }
}

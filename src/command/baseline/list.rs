//! `syscost baseline list`: the records, and what `--save-baseline` left. A damaged one hides no other.

use crate::Result;
use crate::command::archive::Archive;
use crate::command::flag::{Form, Home};
use crate::command::page::{self, Tone};
use crate::driver::layout;
use crate::record::bundle::{Head, name_of, read_any_head};
use crate::render::table::Layout;
use clap::Args;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::ExitCode;

/// List the records, and what --save-baseline left
///
/// Prints name, when (universal time), scale, unit, the numbers of processes, sessions and cases, and the
/// kernel. In a pipe, between tabs: name, `record` or `save-baseline`, when, scale, unit, processes, sessions,
/// cases, kernel; a damaged one is its name, `damaged` and why.
#[derive(Args)]
pub(super) struct Asked {
    #[command(flatten)]
    home: Home,
    #[command(flatten)]
    form: Form,
}

pub(super) fn run(asked: &Asked) -> Result<ExitCode> {
    let archive = Archive::of(&asked.home);
    let records = archive.records()?.into_iter().map(|path| Kept::read(path, "record"));
    let baselines = archive.baselines()?.into_iter().map(|path| Kept::read(path, "save-baseline"));
    let kept: Vec<_> = records.chain(baselines).collect();
    if kept.is_empty() {
        page::warn(
            &"there is no record yet: `syscost record` makes one, and `syscost baseline save` keeps a run",
        );
    }
    match page::is_piped() {
        _ if asked.form.json => page::write_json(&kept.iter().map(Kept::json).collect())?,
        true => page::write(&lines(&kept))?,
        false => page::write(&table(&kept, layout()))?,
    }
    Ok(ExitCode::SUCCESS)
}

/// How many processes spoke of the case of which most did, how many sessions they belong to, and how many
/// cases have a value.
pub(super) fn counts(head: &Head) -> [usize; 3] {
    let measured = head.series.iter().filter(|series| !series.values.is_empty());
    let processes = measured.clone().map(|series| series.values.len()).max().unwrap_or(0);
    let sessions: BTreeSet<_> = head.runs.iter().map(|run| (&run.boot, &run.session)).collect();
    let cases: BTreeSet<_> = measured.map(|series| &series.id).collect();
    [processes, sessions.len(), cases.len()]
}

/// What may be compared: of one process nothing is known of how far two lie apart.
pub(super) fn replication(processes: usize, sessions: usize) -> String {
    match (processes, sessions) {
        (0 | 1, _) => "unreplicated".into(),
        (_, 1) => format!("{processes} processes"),
        _ => format!("{processes} processes, {sessions} sessions"),
    }
}

/// The kernels of a record, most often one.
pub(super) fn kernels(head: &Head) -> String {
    let release =
        |f: &crate::environment::Fingerprint| f.kernel_release.clone().unwrap_or_else(|| "unknown".into());
    let releases: BTreeSet<_> = head.fingerprints.iter().map(release).collect();
    releases.into_iter().collect::<Vec<_>>().join(", ")
}

/// A file, by whom it was made, and what was in it.
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
        name_of(&self.path)
    }

    fn json(&self) -> Value {
        let path = self.path.display().to_string();
        match &self.head {
            Err(error) => {
                json!({ "name": self.name(), "by": self.by, "path": path, "damaged": error.to_string() })
            }
            Ok(head) => {
                let [processes, sessions, cases] = counts(head);
                json!({
                    "name": self.name(), "by": self.by, "path": path, "created": head.created, "scale": head.scale,
                    "unit": head.unit, "processes": processes, "sessions": sessions, "cases": cases,
                    "replicated": processes > 1, "kernels": kernels(head),
                })
            }
        }
    }

    /// What a program is given.
    fn cells(&self, head: &Head) -> [String; 9] {
        let [processes, sessions, cases] = counts(head).map(|count| count.to_string());
        let (when, scale, unit) = (page::moment(head.created), head.scale.clone(), head.unit.clone());
        [self.name(), self.by.into(), when, scale, unit, processes, sessions, cases, kernels(head)]
    }

    /// What a person is shown.
    fn row(&self, head: &Head) -> [String; 7] {
        let [processes, sessions, cases] = counts(head);
        let (when, scale, unit) = (page::moment(head.created), head.scale.clone(), head.unit.clone());
        let replication = replication(processes, sessions);
        [self.name(), when, scale, unit, replication, page::counted(cases, "case", "cases"), kernels(head)]
    }
}

fn lines(kept: &[Kept]) -> String {
    let line = |kept: &Kept| match &kept.head {
        Ok(head) => page::tabbed(&[kept.cells(head)]),
        Err(error) => page::tabbed(&[[kept.name(), "damaged".into(), error.to_string()]]),
    };
    kept.iter().map(line).collect()
}

fn table(kept: &[Kept], layout: Layout) -> String {
    let rows: Vec<_> = kept.iter().filter_map(|kept| Some(kept.row(kept.head.as_ref().ok()?))).collect();
    let sound: String =
        page::aligned(&rows, page::width(layout)).into_iter().map(|line| line + "\n").collect();
    let damaged = kept.iter().filter_map(|kept| kept.head.as_ref().err());
    let damaged = damaged.map(|error| page::wrap("damaged: ", &error.to_string(), page::prose(layout)));
    sound + &damaged.map(|text| page::paint(Tone::Red, &text, layout) + "\n").collect::<String>()
}

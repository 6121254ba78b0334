//! `syscost baseline`: the records that later measurements are compared with.

use super::archive::{self, Archive};
use super::flag::{Form, Home};
use super::page;
use crate::error::{Error, Result};
use crate::record::quantity;
use crate::record::store::record_name;
use clap::Subcommand;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use syscost_analysis::record::bundle::{Bundle, Head, read_any, read_any_head, write_new};

/// Keep, list, show, carry and remove records
///
/// Keeps measurements under a name, in one file for each record. A record never replaces another. A baseline that `cargo
/// bench -- --save-baseline NAME` left can be named too: it has one process for each case, so it is unreplicated.
#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Save(Save),
    List(List),
    Export(Export),
    Import(Import),
    Remove(Remove),
}

/// Keep runs under a name
///
/// Keeps one run, or joins several runs and records into one, under a name. They must agree in unit and scale.
#[derive(clap::Args)]
struct Save {
    /// Name of the new record
    name: String,
    /// Runs, records, or files of either; without any, the newest run
    #[arg(value_name = "RUN|NAME|FILE")]
    of: Vec<OsString>,
    #[command(flatten)]
    home: Home,
}

/// Write a record to a file, to be carried elsewhere
#[derive(clap::Args)]
struct Export {
    /// Name of a record, of a baseline of Criterion's, or of a run
    name: OsString,
    /// The new file, `FILE.syscost` as a rule
    file: PathBuf,
    #[command(flatten)]
    home: Home,
}

/// Keep a record that was carried here
#[derive(clap::Args)]
struct Import {
    /// A file that `export` or `record` wrote, or a run's JSON
    file: PathBuf,
    /// Name to keep it under [default: the name that it bears]
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    #[command(flatten)]
    home: Home,
}

/// Remove a record for good
#[derive(clap::Args)]
struct Remove {
    /// Name of the record
    name: String,
    #[command(flatten)]
    home: Home,
}

pub fn run(args: &Args) -> Result<ExitCode> {
    match &args.command {
        Command::Save(args) => save(args),
        Command::List(args) => list(args),
        Command::Export(args) => export(args),
        Command::Import(args) => import(args),
        Command::Remove(args) => remove(args),
    }
}

fn save(args: &Save) -> Result<ExitCode> {
    let archive = Archive::at(&args.home);
    let bundles = match args.of.as_slice() {
        [] => vec![archive.newest_bundle()?],
        of => of.iter().map(|of| archive.load_bundle(of)).collect::<Result<Vec<_>>>()?,
    };
    let records = bundles.into_iter().flat_map(|bundle| bundle.records).collect();
    save_new_record(&archive, &Bundle::from_records(&args.name, quantity::unix_now(), records)?)
}

fn save_new_record(archive: &Archive, bundle: &Bundle) -> Result<ExitCode> {
    print_written(&bundle.save_in(&archive.store())?, bundle)
}

/// Prints the file's path and what is in it.
fn print_written(path: &Path, bundle: &Bundle) -> Result<ExitCode> {
    let [processes, sessions, cases] = count_contents(&bundle.head);
    let path = path.display().to_string();
    if page::is_piped() {
        let counts = [processes, sessions, cases].map(|count| count.to_string());
        page::write(&page::tabbed_rows(&[[vec![path], counts.to_vec()].concat()]))?;
    } else {
        page::write(&format!(
            "{path}\n{}, {}\n",
            replication_text(processes, sessions),
            page::count_with_noun(cases, "case", "cases")
        ))?
    }
    Ok(ExitCode::SUCCESS)
}

fn export(args: &Export) -> Result<ExitCode> {
    let bundle = Archive::at(&args.home).load_bundle(&args.name)?;
    write_new(&args.file, &bundle)?;
    print_written(&args.file, &bundle)
}

fn import(args: &Import) -> Result<ExitCode> {
    let mut bundle = read_any(&args.file)?;
    if let Some(name) = &args.name {
        name.clone_into(&mut bundle.head.name);
    }
    save_new_record(&Archive::at(&args.home), &bundle)
}

fn remove(args: &Remove) -> Result<ExitCode> {
    let archive = Archive::at(&args.home);
    let store = archive.store();
    if store.record_path(&args.name)?.exists() {
        store.remove_record(&args.name)?;
        return Ok(ExitCode::SUCCESS);
    }
    let is_asked = |file: &PathBuf| file.file_stem().is_some_and(|stem| *stem == *args.name);
    Err(Error::Usage(match archive.baseline_files()?.into_iter().find(is_asked) {
        Some(file) => format!(
            "{} was saved by --save-baseline, and its samples lie in directories of Criterion's: remove {} and those \
             by hand",
            args.name,
            file.display()
        ),
        None => format!("there is no record {}; `syscost baseline list` names them all", args.name),
    }))
}

// `syscost baseline list`: the records, and the baselines that `--save-baseline` left. Damaged files are listed as damaged.

/// List the records, and what --save-baseline left
///
/// Prints name, when (universal time), scale, unit, the numbers of processes, sessions and cases, and the
/// kernel. In a pipe, between tabs: name, `record` or `save-baseline`, when, scale, unit, processes, sessions,
/// cases, kernel; a damaged one is its name, `damaged` and why. Beside a damaged one the exit code is 2, and 1
/// where a file may not be read.
#[derive(clap::Args)]
struct List {
    #[command(flatten)]
    home: Home,
    #[command(flatten)]
    form: Form,
}

fn list(args: &List) -> Result<ExitCode> {
    let archive = Archive::at(&args.home);
    let records = archive.record_files()?.into_iter().map(|path| Kept::read(path, "record"));
    let baselines = archive.baseline_files()?.into_iter().map(|path| Kept::read(path, "save-baseline"));
    let kept: Vec<_> = records.chain(baselines).collect();
    if kept.is_empty() {
        page::warn(
            &"there is no record yet: `syscost record` makes one, and `syscost baseline save` keeps a run",
        );
    }
    args.form.write(
        || kept.iter().map(Kept::json).collect::<Vec<_>>(),
        || {
            kept.iter()
                .map(|kept| page::tabbed_or_damaged(kept.name(), kept.cells().map(|(cells, _)| cells)))
                .collect()
        },
        |layout| {
            page::columns_and_damaged(
                &kept.iter().map(|kept| kept.cells().map(|(_, shown)| shown)).collect::<Vec<_>>(),
                layout,
            )
        },
    )?;
    Ok(archive::exit_code_for_damaged(kept.iter().filter_map(|kept| kept.head.as_ref().err())))
}

/// The numbers of processes (the most that measured one case), of sessions, and of cases with a value.
fn count_contents(head: &Head) -> [usize; 3] {
    let measured = head.series.iter().filter(|series| !series.values.is_empty());
    let processes = measured.clone().map(|series| series.values.len()).max().unwrap_or(0);
    let sessions: BTreeSet<_> = head.runs.iter().map(|run| (&run.boot, &run.session)).collect();
    let cases: BTreeSet<_> = measured.map(|series| &series.id).collect();
    [processes, sessions.len(), cases.len()]
}

/// The numbers of processes and sessions in words. One process is called unreplicated: it does not show how far two differ.
fn replication_text(processes: usize, sessions: usize) -> String {
    match (processes, sessions) {
        (0 | 1, _) => "unreplicated".into(),
        (_, 1) => format!("{processes} processes"),
        _ => format!("{processes} processes, {sessions} sessions"),
    }
}

/// The kernel releases of a record, separated by commas.
fn kernel_releases(head: &Head) -> String {
    let release =
        |f: &crate::environment::Fingerprint| f.kernel_release.clone().unwrap_or_else(|| "unknown".into());
    let releases: BTreeSet<_> = head.fingerprints.iter().map(release).collect();
    releases.into_iter().collect::<Vec<_>>().join(", ")
}

/// A stored file: its head, and the command that wrote it (`record` or `save-baseline`).
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

    /// The cells of the row for a program, and the cells of the row for a terminal.
    fn cells(&self) -> std::result::Result<([String; 9], [String; 7]), String> {
        let head = self.head.as_ref().map_err(ToString::to_string)?;
        let counts @ [processes, sessions, cases] = count_contents(head);
        let about = [self.name(), page::utc_moment(head.created), head.scale.clone(), head.unit.clone()];
        let [name, when, scale, unit] = about.clone();
        let (kernels, noun) = (kernel_releases(head), page::count_with_noun(cases, "case", "cases"));
        let shown = [name, when, scale, unit, replication_text(processes, sessions), noun, kernels.clone()];
        let ([name, when, scale, unit], by) = (about, self.by.into());
        let [processes, sessions, cases] = counts.map(|count| count.to_string());
        Ok(([name, by, when, scale, unit, processes, sessions, cases, kernels], shown))
    }
}

//! `syscost baseline`: the records that later measurements are compared with.

mod list;
mod show;

use super::archive::Archive;
use super::flag::Home;
use super::page;
use crate::record::bundle::{Bundle, read_any, write_new};
use crate::{Error, Result};
use clap::{Args, Subcommand};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

/// Keep, list, show, carry and remove records
///
/// Keeps what was measured under a name, one file a record. A record never replaces another. What `cargo bench
/// -- --save-baseline NAME` left can be named too; it is one process a case, and so unreplicated.
#[derive(Args)]
pub(super) struct Asked {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Save(Save),
    List(list::Asked),
    Show(show::Asked),
    Export(Export),
    Import(Import),
    Remove(Remove),
}

/// Keep runs under a name
///
/// Keeps one run, or joins several runs and records into one, under a name. They must agree in unit and scale.
#[derive(Args)]
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
#[derive(Args)]
struct Export {
    /// Name of a record, of a baseline of Criterion's, or of a run
    name: OsString,
    /// The new file, `FILE.syscost` as a rule
    file: PathBuf,
    #[command(flatten)]
    home: Home,
}

/// Keep a record that was carried here
#[derive(Args)]
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
#[derive(Args)]
struct Remove {
    /// Name of the record
    name: String,
    #[command(flatten)]
    home: Home,
}

pub(super) fn run(asked: &Asked) -> Result<ExitCode> {
    match &asked.command {
        Command::Save(asked) => save(asked),
        Command::List(asked) => list::run(asked),
        Command::Show(asked) => show::run(asked),
        Command::Export(asked) => export(asked),
        Command::Import(asked) => import(asked),
        Command::Remove(asked) => remove(asked),
    }
}

fn save(asked: &Save) -> Result<ExitCode> {
    let archive = Archive::of(&asked.home);
    let bundles = match asked.of.as_slice() {
        [] => vec![archive.newest()?],
        of => of.iter().map(|of| archive.bundle(of)).collect::<Result<Vec<_>>>()?,
    };
    let records = bundles.into_iter().flat_map(|bundle| bundle.records).collect();
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs());
    keep(&archive, &Bundle::of(&asked.name, now, records)?)
}

fn keep(archive: &Archive, bundle: &Bundle) -> Result<ExitCode> {
    let (path, _) = archive.store().save_new(bundle)?;
    say_written(&path, bundle)
}

/// The file, and in a sentence what is in it.
fn say_written(path: &Path, bundle: &Bundle) -> Result<ExitCode> {
    let [processes, sessions, cases] = list::counts(&bundle.head);
    let path = path.display().to_string();
    match page::is_piped() {
        true => page::write(&page::tabbed(&[[
            path,
            processes.to_string(),
            sessions.to_string(),
            cases.to_string(),
        ]]))?,
        false => page::write(&format!(
            "{path}\n{}, {}\n",
            list::replication(processes, sessions),
            page::counted(cases, "case", "cases")
        ))?,
    }
    Ok(ExitCode::SUCCESS)
}

fn export(asked: &Export) -> Result<ExitCode> {
    let bundle = Archive::of(&asked.home).bundle(&asked.name)?;
    write_new(&asked.file, &bundle)?;
    say_written(&asked.file, &bundle)
}

fn import(asked: &Import) -> Result<ExitCode> {
    let mut bundle = read_any(&asked.file)?;
    if let Some(name) = &asked.name {
        bundle = bundle.renamed(name);
    }
    keep(&Archive::of(&asked.home), &bundle)
}

fn remove(asked: &Remove) -> Result<ExitCode> {
    let archive = Archive::of(&asked.home);
    let store = archive.store();
    if store.record_path(&asked.name)?.exists() {
        store.remove_record(&asked.name)?;
        return Ok(ExitCode::SUCCESS);
    }
    let is_asked = |file: &PathBuf| file.file_stem().is_some_and(|stem| *stem == *asked.name);
    Err(Error::Usage(match archive.baselines()?.into_iter().find(is_asked) {
        Some(file) => format!(
            "{} was saved by --save-baseline, and its samples lie in directories of Criterion's: remove {} and those \
             by hand",
            asked.name,
            file.display()
        ),
        None => format!("there is no record {}; `syscost baseline list` names them all", asked.name),
    }))
}

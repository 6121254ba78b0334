//! `syscost baseline`: the records that later measurements are compared with.

mod baseline_list;
mod baseline_show;

use super::archive::Archive;
use super::flag::Home;
use super::page;
use crate::error::{Error, Result};
use crate::record::quantity;
use clap::Subcommand;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use syscost_analysis::record::bundle::{Bundle, read_any, write_new};

/// Keep, list, show, carry and remove records
///
/// Keeps what was measured under a name, one file a record. A record never replaces another. What `cargo bench
/// -- --save-baseline NAME` left can be named too; it is one process a case, and so unreplicated.
#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Save(Save),
    List(baseline_list::Args),
    Show(baseline_show::Args),
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
        Command::List(args) => baseline_list::run(args),
        Command::Show(args) => baseline_show::run(args),
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
    let [processes, sessions, cases] = baseline_list::count_contents(&bundle.head);
    let path = path.display().to_string();
    match page::is_piped() {
        true => {
            let counts = [processes, sessions, cases].map(|count| count.to_string());
            page::write(&page::tabbed_rows(&[[vec![path], counts.to_vec()].concat()]))?;
        }
        false => page::write(&format!(
            "{path}\n{}, {}\n",
            baseline_list::replication_text(processes, sessions),
            page::count_with_noun(cases, "case", "cases")
        ))?,
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

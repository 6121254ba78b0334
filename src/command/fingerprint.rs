//! `syscost fingerprint`: prints the facts on which the numbers of this machine depend, or its differences from another machine.

use super::archive::Archive;
use super::flag::{Form, Home};
use super::page;
use crate::environment::{Difference, Fingerprint, Series, unknown_reason};
use crate::error::Result;
use crate::platform::kernel_files::KernelFiles;
use crate::trial::scratch;
use serde::Serialize;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

/// Print what the numbers of this machine depend on
///
/// Prints what every record says about the machine, its kernel and this build. Nothing in it identifies
/// the machine or its owner. In a pipe: a field and its value a line, between a tab.
#[derive(clap::Args)]
pub struct Args {
    /// Print only in what this machine differs from that of a run (see `syscost runs`) or of a record's
    /// file, the weightiest first
    #[arg(long, value_name = "RUN|FILE")]
    against: Option<OsString>,
    /// Directory in which the files of cases would be made, as `run` has it
    #[arg(long, value_name = "DIRECTORY")]
    dir: Option<PathBuf>,
    #[command(flatten)]
    home: Home,
    #[command(flatten)]
    form: Form,
}

pub fn run(args: &Args) -> Result<ExitCode> {
    let place = args.dir.clone().unwrap_or_else(scratch::scratch_parent);
    let ours = Fingerprint::take(&KernelFiles::live(), &place);
    match &args.against {
        None => {
            let known = |name: &str, value: Option<String>| {
                let reason = || unknown_reason(name).map_or(String::new(), |reason| format!(": {reason}"));
                value.unwrap_or_else(|| format!("unknown{}", reason()))
            };
            let rows: Vec<_> =
                ours.field_values().map(|(name, value)| [name.into(), known(name, value)]).collect();
            write_rows(&args.form, &ours, &rows)?;
        }
        Some(run) => {
            let theirs = Archive::at(&args.home).load_run(Some(run))?.fingerprint;
            let found = ours.differences(&theirs);
            write_rows(&args.form, &found, &found.iter().map(difference_row).collect::<Vec<_>>())?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn difference_row(d: &Difference) -> [String; 4] {
    let values = format!("{} here, {} there", d.ours, d.theirs);
    let series = if d.series == Series::Another { "another series" } else { "" };
    [d.weight.name().into(), d.field.into(), values, series.into()]
}

/// Prints what was found, or that nothing differs.
fn write_rows<const N: usize>(form: &Form, found: &impl Serialize, rows: &[[String; N]]) -> Result<()> {
    let shown = |layout| match rows {
        [] => "nothing differs\n".into(),
        _ => page::columns_text(rows, page::table_width(layout)),
    };
    form.write(|| found, || page::tabbed_rows(rows), shown)
}

//! `syscost fleet collect`: records from elsewhere into the store of the experiment.

use super::Place;
use crate::record::fleet_record::{Added, FleetStore};
use std::path::PathBuf;
use std::process::ExitCode;
use syscost_command_line::page;
use syscost_engine::exit::Exit;
use syscost_platform::error::{Error, Result};

/// Most sentences on records that were refused, and most strays that are named.
const TOLD: usize = 10;

/// Bring records into the store of the experiment
///
/// Takes directories that were filled on the hosts, as by Ansible's `fetch`. Each record is checked: it must be of its job, of
/// the kernel that was asked for, and of this user. What is there already is not added again; of two records of one job the one
/// that began first stays. Nothing is removed from where it comes.
#[derive(clap::Args)]
#[command(after_help = "Exit code 0: all that was there is collected; 1: a record was refused.")]
pub(super) struct Args {
    #[command(flatten)]
    place: Place,
    /// Directories of records: HOST/KERNEL/REPEAT.json
    #[arg(required = true, value_name = "DIR")]
    from: Vec<PathBuf>,
}

pub(super) fn run(args: &Args) -> Result<ExitCode> {
    let (experiment, store) = args.place.open_experiment()?;
    let (mut new, mut known, mut replaced, mut later) = (0, 0, 0, 0);
    let mut refused: Vec<Error> = Vec::new();
    let mut strays = Vec::new();
    for directory in &args.from {
        if !directory.is_dir() {
            return Err(Error::Usage(format!("{}: there is no such directory", directory.display())));
        }
        let from = FleetStore::from_root(directory);
        let bar = super::host_progress_bar(&experiment);
        for job in bar.wrap_iter(experiment.hosts.iter()).flat_map(|host| experiment.jobs_of_host(host)) {
            match store.copy_from(&experiment, job, &from) {
                Ok(None) => (),
                Ok(Some(Added::New)) => new += 1,
                Ok(Some(Added::Known)) => known += 1,
                Ok(Some(Added::Earlier)) => replaced += 1,
                Ok(Some(Added::Later)) => later += 1,
                Err(error) => refused.push(error),
            }
        }
        bar.finish_and_clear();
        strays.extend(from.stray_records(&experiment, TOLD));
    }
    refused.iter().take(TOLD).for_each(page::warn);
    if refused.len() > TOLD {
        page::warn(&format!("and {} more like these", refused.len() - TOLD));
    }
    for stray in strays.iter().take(TOLD) {
        page::warn(&format!("{}: of no job of {}, and left there", stray.display(), experiment.name));
    }
    let mut said = vec![page::count_with_noun(new, "new record", "new records"), format!("{known} known")];
    let more = [
        (replaced, "in place of one that began later"),
        (later, "later than the one that is there"),
        (refused.len(), "refused"),
    ];
    said.extend(more.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}")));
    page::write(&format!("{}: {}\n", store.root().display(), said.join(", ")))?;
    Ok(Exit::failed_if(!refused.is_empty()).into())
}

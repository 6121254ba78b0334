//! `syscost file-cache`: how long a file may be that this machine still reads at memory's speed.

mod curve_page;

use super::{flag, page};
use crate::error::Result;
use crate::exit::Exit;
use crate::page_cache::{Request, measure_size_curve};
use crate::platform::signal;
use crate::trial::scratch;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

/// Draw the speed of reading a file again against its length, to beyond the memory
///
/// A file grows to some ten lengths, from 512 MiB to a quarter more than the available memory, and is read again at each. Shows
/// where the speed falls from memory's to the disk's, and how much came from memory. The longest takes at most half of the free
/// disk, and all that the cache holds for others may be lost from it. The file is given up if others are short of memory. It has
/// no name, so it is gone however the command ends.
#[derive(clap::Args)]
#[command(
    after_help = "The size is what a file gets that is read now, beside what the cache holds for others; on a machine at rest \
    that is most of what is available. Others lose from the cache what they have not used for longest. Exit code 1: the \
    machine was not at rest, or lacks something."
)]
pub struct Args {
    /// The directory of the file, on the disk that is meant [default: $SYSCOST_DIR, or the temporary directory]
    #[arg(long = "dir", value_name = "DIR")]
    directory: Option<PathBuf>,
    /// Memory that is left to others [default: a tenth of all, at least 1GiB]
    #[arg(long, value_name = "SIZE", value_parser = flag::parse_size, conflicts_with = "within")]
    reserve: Option<u64>,
    /// Make a control group with this much memory, which stands in for the machine (root)
    #[arg(long, value_name = "SIZE", value_parser = flag::parse_size)]
    within: Option<u64>,
    /// The longest time
    #[arg(long = "for", value_name = "SECONDS", value_parser = flag::parse_seconds, default_value = "900")]
    seconds: f64,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub fn run(args: &Args) -> Result<ExitCode> {
    signal::watch_signals()?;
    let place = args.directory.clone().unwrap_or_else(scratch::scratch_parent);
    scratch::remove_orphans(&place);
    let template = "{spinner} {binary_bytes} of at most {binary_total_bytes} {elapsed}";
    let (scratch, bar) = (scratch::make_directory_in(&place)?, page::progress_bar(1, template));
    let request = Request {
        directory: scratch.path(),
        reserve: args.reserve,
        group: args.within,
        time: Duration::from_secs_f64(args.seconds),
        interrupted: &|| signal::pending().is_some(),
        progress: &|made, most| {
            bar.set_length(most);
            bar.set_position(made);
        },
    };
    let found = measure_size_curve(&request);
    bar.finish_and_clear();
    if let Some(signal) = signal::pending() {
        return Ok(Exit::Signal(signal).into());
    }
    curve_page::print_curve(&found?, args.json).map(|()| ExitCode::SUCCESS)
}

//! `syscost file-cache`: how long a file may be that this machine still reads at memory's speed.

mod curve_page;

use super::{flag, page};
use crate::driver::layout;
use crate::error::Result;
use crate::exit::Exit;
use crate::page_cache::{Answer, BLOCK, Request, find_cache_size, measure_size_curve};
use crate::platform::signal;
use crate::record::quantity::format_size;
use crate::trial::scratch;
use indicatif::ProgressBar;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

/// Find the size at which reads of a file fall from memory's speed to the disk's
///
/// Makes a file that grows, reads each new piece once, and stops when the cache has given up its beginning. Then short
/// reads at 512 places tell how much of it comes from memory and how much from the disk. What the reads say is checked by
/// mincore(2). The file never takes the last of the memory, is read at the disk's idle priority, and is given up
/// if others are short of memory. It has no name, so it is gone however the command ends.
///
/// With `--curve` files of some ten lengths are read again instead, from 512 MiB to a quarter more than the available memory. The
/// longest takes at most half of the free disk, and all that the cache holds for others may be lost from it.
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
    /// Draw the speed of reading a file again against its length, to beyond the memory
    #[arg(long)]
    curve: bool,
    /// The longest time that the file may grow [default: 50; with --curve 900, reading included]
    #[arg(long = "for", value_name = "SECONDS", value_parser = flag::parse_seconds)]
    seconds: Option<f64>,
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
    let time = args.seconds.unwrap_or(if args.curve { 900.0 } else { 50.0 });
    let request = Request {
        directory: scratch.path(),
        reserve: args.reserve,
        group: args.within,
        time: Duration::from_secs_f64(time),
        interrupted: &|| signal::pending().is_some(),
        progress: &|made, most| {
            bar.set_length(most);
            bar.set_position(made);
        },
    };
    if args.curve {
        let found = measure_size_curve(&request);
        return finish(&bar, found, |curve| curve_page::print_curve(&curve, args.json));
    }
    finish(&bar, find_cache_size(&request), |answer| print_answer(&answer, args))
}

/// Removes the bar, and prints what was found unless a signal came.
fn finish<T>(bar: &ProgressBar, found: Result<T>, print: impl FnOnce(T) -> Result<()>) -> Result<ExitCode> {
    bar.finish_and_clear();
    if let Some(signal) = signal::pending() {
        return Ok(Exit::Signal(signal).into());
    }
    print(found?).map(|()| ExitCode::SUCCESS)
}

fn print_answer(answer: &Answer, args: &Args) -> Result<()> {
    match args.json {
        true => page::write_json(&answer_json(answer)),
        false if page::is_piped() => page::write(&page::tabbed_rows(&answer_rows(answer, args.within))),
        false => {
            page::write(&page::columns_text(&answer_rows(answer, args.within), page::prose_width(layout())))
        }
    }
}

/// What was found, how it is known, and what others paid.
fn answer_rows(answer: &Answer, within: Option<u64>) -> Vec<[String; 3]> {
    let row = |name: &str, value: String, words: String| [name.to_owned(), value, words];
    let kept = format_size(answer.kept_bytes());
    let at_least = if answer.boundary.is_fully_cached() { "at least " } else { "" };
    let [memory, disk] = answer.boundary.read_speeds();
    let share = 100.0 * answer.kept_bytes() as f64 / answer.resident.max(1) as f64 - 100.0;
    let others = format!("{} of it are left to others", format_size(answer.bounds.reserve));
    let toll = answer.toll;
    let stalled = toll
        .stalled
        .map_or("this kernel does not report it".into(), |time| format!("{:.2} s", time.as_secs_f64()));
    vec![
        row("file cache", format!("{at_least}{kept}"), end_reason(answer)),
        row(
            "from memory",
            format!("{memory:.2} GB/s"),
            format!("reads of {} in it", format_size(BLOCK as u64)),
        ),
        row("from the disk", format!("{disk:.2} GB/s"), "the same, of what was given up".into()),
        row(
            "by mincore",
            format_size(answer.resident),
            format!("of the file are in the cache; the reads say {share:+.1} %"),
        ),
        match within {
            Some(group) => row(
                "group",
                format_size(group),
                "a control group of this limit stood in for the machine".into(),
            ),
            None => row("available", format_size(answer.bounds.available), others),
        },
        row(
            "whole cache",
            format!("{} → {}", format_size(answer.cached[0]), format_size(answer.cached[1])),
            "`Cached` of /proc/meminfo, before and after".into(),
        ),
        row(
            "others",
            format!("{} killed, {} pages swapped", toll.killed, toll.swapped),
            format!("all tasks waited for memory: {stalled} of {:.1} s", answer.took.as_secs_f64()),
        ),
    ]
}

/// Why the file did not become longer.
fn end_reason(answer: &Answer) -> String {
    let file = format_size(answer.file);
    match (answer.boundary.is_fully_cached(), answer.out_of_time) {
        (false, _) => format!("so much of a file of {file} is read at memory's speed"),
        (true, true) => format!("all of a file of {file}; the time was over (`--for`)"),
        (true, false) => format!("all of a file of {file}, which may not become longer (`--reserve`)"),
    }
}

fn answer_json(answer: &Answer) -> Value {
    let [memory, disk] = answer.boundary.read_speeds();
    json!({
        "kept_bytes": answer.kept_bytes(),
        "is_lower_bound": answer.boundary.is_fully_cached(),
        "file_bytes": answer.file,
        "mincore_bytes": answer.resident,
        "memory_gb_s": memory,
        "disk_gb_s": disk,
        "available_bytes": answer.bounds.available,
        "reserve_bytes": answer.bounds.reserve,
        "cached_before_bytes": answer.cached[0],
        "cached_after_bytes": answer.cached[1],
        "seconds": answer.took.as_secs_f64(),
        "out_of_time": answer.out_of_time,
        "killed": answer.toll.killed,
        "pages_swapped": answer.toll.swapped,
        "stalled_seconds": answer.toll.stalled.map(|time| time.as_secs_f64()),
    })
}

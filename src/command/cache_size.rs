//! `syscost file-cache`: the length up to which this machine reads a file again at memory's speed.

use super::{flag, page};
use crate::driver::layout;
use crate::error::Result;
use crate::exit::Exit;
use crate::page_cache::{Request, SizeCurve, SizePoint, measure_size_curve};
use crate::platform::signal;
use crate::record::quantity::format_size;
use crate::record::{CurveRecord, Interval, Point};
use crate::render::table::Layout;
use crate::render::table::curve_text::fall_line;
use crate::render::terminal_plot::plot_lines;
use crate::study::drawn_curve::find_fall;
use crate::trial::scratch;
use serde_json::{Value, json};
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
    print_curve(&found?, args.json).map(|()| ExitCode::SUCCESS)
}

// Writes the curve of `syscost file-cache` as a drawing with a table, as rows, or as JSON.

/// The fewest points that are drawn.
const FEWEST: usize = 3;

fn print_curve(curve: &SizeCurve, as_json: bool) -> Result<()> {
    if as_json {
        return page::write_json(&curve_json(curve));
    }
    let rows: Vec<_> = curve.points.iter().map(point_row).collect();
    if page::is_piped() {
        page::write(&page::tabbed_rows(&rows))?;
    } else {
        page::write(&drawing(curve, &rows, layout()))?;
    }
    curve.ended.iter().for_each(|why| page::warn(&format!("longer files are missing: {why}")));
    Ok(())
}

/// The cells of a point: length, speed, share read from memory, rounds.
fn point_row(point: &SizePoint) -> [String; 4] {
    let share = point.from_memory.map_or("unknown".into(), |share| format!("{:.1} %", 100.0 * share));
    [format_size(point.bytes), format!("{:.2} GB/s", point.gb_s), share, point.rounds.to_string()]
}

fn drawing(curve: &SizeCurve, rows: &[[String; 4]], layout: Layout) -> String {
    let record = curve_record(curve);
    let mut lines = Vec::new();
    if record.points.len() >= FEWEST {
        lines.extend(plot_lines(&record, layout.width, layout.ascii));
        lines.push(String::new());
    }
    let head = ["file", "read again", "from memory", "rounds"].map(str::to_owned);
    let table: Vec<_> = std::iter::once(head).chain(rows.iter().cloned()).collect();
    lines.extend(page::align_columns(&table, page::table_width(layout)));
    lines.push(String::new());
    let fall = record.fall.as_ref().map(|fall| fall_line(&record, fall));
    let fall = fall.unwrap_or_else(|| "no fall was found".into());
    lines.push(format!("memory that the cache could take: {}; {fall}", format_size(curve.memory)));
    lines.into_iter().map(|line| line.trim_end().to_owned() + "\n").collect()
}

fn curve_record(curve: &SizeCurve) -> CurveRecord {
    let point = |point: &SizePoint| Point { at: point.bytes, value: Interval::exactly(point.gb_s) };
    let points: Vec<Point> = curve.points.iter().map(point).collect();
    CurveRecord {
        prefix: "file-cache".into(),
        title: "a file read again".into(),
        chart: "bandwidth".into(),
        parameter: "file".into(),
        bytes: true,
        unit: "GB/s".into(),
        fall: find_fall(&points),
        points,
        ..CurveRecord::default()
    }
}

fn curve_json(curve: &SizeCurve) -> Value {
    let point = |point: &SizePoint| {
        json!({
            "bytes": point.bytes, "gb_s": point.gb_s, "from_memory": point.from_memory, "rounds": point.rounds,
        })
    };
    json!({
        "points": curve.points.iter().map(point).collect::<Vec<_>>(),
        "memory_bytes": curve.memory,
        "ended": curve.ended,
        "killed": curve.cost.killed,
        "pages_swapped": curve.cost.swapped,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page_cache::Cost;

    fn curve(speeds: &[f64]) -> SizeCurve {
        let point = |(at, gb_s): (usize, &f64)| SizePoint {
            bytes: 1 << (29 + at),
            rounds: 2,
            gb_s: *gb_s,
            from_memory: (*gb_s < 8.0).then_some(0.25),
        };
        let points = speeds.iter().enumerate().map(point).collect();
        SizeCurve { points, memory: 2 << 30, ended: None, cost: Cost::default() }
    }

    #[test]
    fn a_fall_is_drawn_tabled_and_said() {
        let curve = curve(&[8.0, 8.0, 1.0, 1.0]);
        let rows: Vec<_> = curve.points.iter().map(point_row).collect();
        let text = drawing(&curve, &rows, Layout::default());
        for words in [
            "file-cache (a file read again):",
            "512 MiB",
            "unknown",
            "1.00 GB/s",
            "25.0 %",
            "2 GiB; falls between 1 GiB and 2 GiB, from 8",
        ] {
            assert!(text.contains(words), "{words} in {text}");
        }
        assert_eq!(curve_json(&curve)["points"][3]["from_memory"], 0.25);
    }

    #[test]
    fn one_point_is_no_drawing_and_has_no_fall() {
        let curve = curve(&[8.0]);
        let text = drawing(&curve, &[point_row(&curve.points[0])], Layout::default());
        assert!(!text.contains("a file read again") && text.contains("no fall was found"), "{text}");
    }
}

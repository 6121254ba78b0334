//! `syscost history list`, `show` and `export`: print the content of a history.

use super::Place;
use crate::record::history_point::HistoryPoint;
use crate::render::history_plot::plot_history;
use crate::study::change_event::{ChangeEvent, Moved, find_change_events};
use crate::study::ratio_series::{Link, NORMAL, RatioSeries};
use std::process::ExitCode;
use syscost_analysis::render::sheet::{Column, LF, csv_table, csv_text};
use syscost_command_line::page;
use syscost_engine::driver::{layout, nearest_names};
use syscost_engine::record::guest_side::ClockKind;
use syscost_engine::record::quantity::{format_duration, format_rfc3339};
use syscost_engine::render::table::Layout;
use syscost_platform::error::{Error, Result};

/// Print one case over all points
///
/// When, the ratio to the first reference with its 95 % interval, today's cost, the reference, and the label. The error of bridges is in
/// the interval. Below it the ratios are plotted, with a mark where they changed. In a pipe, the rows alone, between tabs.
#[derive(clap::Args)]
pub(in crate::command) struct Show {
    /// Id of the case
    case: String,
    /// Only the plot and its changes, in a pipe too
    #[arg(long)]
    plot: bool,
    #[command(flatten)]
    place: Place,
}

/// Print every case of every point as CSV
///
/// A line for each case of each point; or with `--wide` a line a point and a column a case, which Apache Otava and spreadsheets read.
#[derive(clap::Args)]
pub(in crate::command) struct Export {
    /// A line a point: time, label, reference, and each case's ratio
    #[arg(long)]
    wide: bool,
    #[command(flatten)]
    place: Place,
}

pub(super) fn list(place: &Place) -> Result<ExitCode> {
    let row = |point: &HistoryPoint| {
        let bridge = point.bridge_to.as_ref().map(|to| format!("bridge to {to}"));
        [
            page::utc_moment(point.started),
            point.cases.len().to_string(),
            point.reference.clone(),
            bridge.unwrap_or_else(|| point.label.clone()),
        ]
    };
    print_rows(place.read_points()?.iter().map(row).collect(), ["when", "cases", "reference", "label"])
}

pub(super) fn show(args: &Show) -> Result<ExitCode> {
    let (points, all) = args.place.read_series()?;
    let Some(one) = all.iter().find(|one| one.id == args.case) else {
        let known: Vec<String> = all.iter().map(|one| one.id.clone()).collect();
        return Err(Error::Usage(if known.is_empty() {
            format!("no point has a case {}", args.case)
        } else {
            format!("no point has a case {}; near: {}", args.case, nearest_names(&args.case, &known))
        }));
    };
    let plot = || page::write(&plot_with_changes(one, &points, &find_change_events(&points, &all), layout()));
    if args.plot {
        return plot().map(|()| ExitCode::SUCCESS);
    }
    let row = |link: &Link| {
        let (point, [ratio, low, high]) = (&points[link.point], ratio_interval(link));
        [
            page::utc_moment(point.started),
            format!("{ratio:.4}"),
            format!("[{low:.4}, {high:.4}]"),
            cost_text(link.cost_ns, point.clock),
            point.reference.clone(),
            point.label.clone(),
        ]
    };
    let head = ["when", "ratio", "95 % interval", "cost", "reference", "label"];
    print_rows(one.links.iter().map(row).collect(), head)?;
    if !page::is_piped() {
        plot()?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The ratios as a plot, and a line for each mark in it: the time of the change, its size with its error, and the label.
fn plot_with_changes(
    one: &RatioSeries,
    points: &[HistoryPoint],
    events: &[ChangeEvent],
    layout: Layout,
) -> String {
    let changes: Vec<(usize, &Moved, &HistoryPoint)> = events
        .iter()
        .filter_map(|event| {
            let moved = event.moved.iter().find(|moved| moved.id == one.id)?;
            let link = one.links.binary_search_by_key(&event.at, |link| link.point).ok()?;
            Some((link, moved, &points[event.at]))
        })
        .collect();
    let ratios: Vec<f64> = one.links.iter().map(|link| link.value.value.exp()).collect();
    let marks: Vec<usize> = changes.iter().map(|(link, ..)| *link).collect();
    let ends = [one.links.first(), one.links.last()].map(|link| link.map(|link| &points[link.point]));
    let moment =
        |end: Option<&HistoryPoint>| end.map_or(String::new(), |point| page::utc_moment(point.started));
    let width = page::prose_width(layout);
    let mut lines =
        vec![page::wrap("", &format!("{}, {} to {}:", one.id, moment(ends[0]), moment(ends[1])), width)];
    lines.extend(plot_history(&ratios, &marks, layout));
    for (at, (_, moved, point)) in changes.iter().enumerate() {
        let number = if at < 9 { (at + 1).to_string() } else { "*".into() };
        let change = format!("{:+.2} % ±{:.2}", 100.0 * moved.change, 100.0 * NORMAL * moved.error);
        let text = format!("{}  {change}  {}", page::utc_moment(point.started), point.label);
        lines.push(page::wrap(&format!("{number}  "), &text, width));
    }
    lines.into_iter().map(|line| line + "\n").collect()
}

/// The cost of an iteration as text: a time, or a number of instructions.
fn cost_text(amount: f64, clock: ClockKind) -> String {
    match clock {
        ClockKind::Host => format_duration(amount),
        ClockKind::Icount => format!("{amount:.1} instr"),
        other => format!("{} ({other})", format_duration(amount)),
    }
}

/// The ratio to the first reference and both ends of its 95 % interval, which includes the errors of bridges.
fn ratio_interval(link: &Link) -> [f64; 3] {
    let half = NORMAL * link.value.error.hypot(link.bridged);
    [0.0, -half, half].map(|off| (link.value.value + off).exp())
}

fn print_rows<const N: usize>(mut rows: Vec<[String; N]>, head: [&str; N]) -> Result<ExitCode> {
    if page::is_piped() {
        page::write(&page::tabbed_rows(&rows))?;
    } else if !rows.is_empty() {
        rows.insert(0, head.map(str::to_owned));
        page::write(&page::columns_text(&rows, page::table_width(layout())))?;
    }
    Ok(ExitCode::SUCCESS)
}

pub(super) fn export(args: &Export) -> Result<ExitCode> {
    let (points, all) = args.place.read_series()?;
    if args.wide {
        page::write(&csv_text(LF, wide_rows(&all, &points).into_iter())?)?;
        return Ok(ExitCode::SUCCESS);
    }
    let lines = all.iter().flat_map(|one| one.links.iter().map(move |link| (one, link)));
    let lines = lines.map(|(one, link)| (one, link, &points[link.point]));
    page::write(&csv_table(LF, &csv_columns(), lines)?)?;
    Ok(ExitCode::SUCCESS)
}

/// The data of a line of CSV: a case at a point.
type CsvLine<'a> = (&'a RatioSeries, &'a Link, &'a HistoryPoint);

fn csv_columns<'a>() -> [Column<CsvLine<'a>>; 11] {
    [
        ("case", |(one, ..)| one.id.clone()),
        ("run", |(.., point)| point.run.clone()),
        ("started", |(.., point)| point.started.to_string()),
        ("label", |(.., point)| point.label.clone()),
        ("reference", |(.., point)| point.reference.clone()),
        ("ratio", |(_, link, _)| ratio_interval(link)[0].to_string()),
        ("low", |(_, link, _)| ratio_interval(link)[1].to_string()),
        ("high", |(_, link, _)| ratio_interval(link)[2].to_string()),
        ("cost_ns", |(_, link, _)| link.cost_ns.to_string()),
        ("pairs", |(_, link, _)| link.pairs.to_string()),
        ("clock", |(.., point)| point.clock.to_string()),
    ]
}

/// A header, and a line for each point that is no bridge. A case that a point lacks is an empty cell.
fn wide_rows(all: &[RatioSeries], points: &[HistoryPoint]) -> Vec<Vec<String>> {
    let head = ["time", "label", "reference"].map(str::to_owned).into_iter();
    let mut lines = vec![head.chain(all.iter().map(|one| one.id.clone())).collect::<Vec<_>>()];
    for (at, point) in points.iter().enumerate().filter(|(_, point)| point.bridge_to.is_none()) {
        let ratio = |one: &RatioSeries| {
            let link = one.links.binary_search_by_key(&at, |link| link.point).ok()?;
            Some(one.links[link].value.value.exp().to_string())
        };
        let names = [format_rfc3339(point.started), point.label.clone(), point.reference.clone()];
        lines.push(names.into_iter().chain(all.iter().map(|one| ratio(one).unwrap_or_default())).collect());
    }
    lines
}

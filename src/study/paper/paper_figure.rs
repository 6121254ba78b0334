//! The figures of the paper as curves: the published ones and those of a run. Where the values of the two machines are
//! too far apart for one axis, the figures show percentages.

use super::{Cost, GROUP, Paper, Rate, SeparatePrediction, Spread, columns_of};
use crate::record::quantity::NANOSECONDS;
use crate::record::{CurveRecord, Displaced, Interval, Point, Record};

/// Curves of one picture.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Figure {
    /// Name of a file: `figure-2`.
    pub name: &'static str,
    /// Title of the picture.
    pub title: &'static str,
    /// The published curves and ours.
    pub curves: Vec<CurveRecord>,
}

/// Labels of the axes.
#[derive(Clone, Copy)]
struct Axes {
    up: &'static str,
    unit: &'static str,
    across: &'static str,
    bytes: bool,
}

const COMPUTED: Axes = Axes {
    up: "CPU time of an operation",
    unit: NANOSECONDS,
    across: "computation that was asked for, µs",
    bytes: false,
};
const SENT: Axes = Axes { up: COMPUTED.up, unit: NANOSECONDS, across: "message", bytes: true };
const MORE: Axes = Axes { up: "displacement beyond accounting", unit: PERCENT, ..SENT };
const OFF: Axes = Axes { up: "predicted rate beyond the measured one", unit: PERCENT, ..SENT };
const MEAN: Axes = Axes {
    up: "mean beyond that of the longest runs",
    unit: PERCENT,
    across: "loops of a run",
    bytes: false,
};
const DEVIATION: Axes = Axes { up: "standard deviation of the runs, of their mean", ..MEAN };
const PERCENT: &str = "%";

/// The figures for which the record has at least two points.
pub fn figures(paper: &Paper, record: &Record) -> Vec<Figure> {
    let all = [
        figure(
            "figure-2",
            "Figure 2: plain computation",
            COMPUTED,
            costs(&paper.compute, record, "", ["accounting", "displacement"]),
        ),
        figure(
            "figure-4",
            "Figure 4: TCP send and a reply of one byte",
            SENT,
            costs(&paper.send, record, "nodes/", ["2 nodes: accounting", "2 nodes: displacement"]),
        ),
        figure(
            "figure-4-difference",
            "Figure 4: what accounting does not say of a TCP send",
            MORE,
            differences(paper, record),
        ),
        figure("figure-5", "Figure 5: throughput as predicted, against measured", OFF, rates(paper, record)),
        figure(
            "figure-6a",
            "Figure 6(a): the mean of 20 runs, by the loops of a run",
            MEAN,
            means(paper, record),
        ),
        figure(
            "figure-6b",
            "Figure 6(b): the standard deviation of 20 runs, by the loops of a run",
            DEVIATION,
            deviations(paper, record),
        ),
    ];
    let has_ours = |figure: &Figure| figure.curves.iter().any(|curve| curve.prefix.starts_with(GROUP));
    all.into_iter().filter(has_ours).collect()
}

/// A curve to be: whether it is ours, its name, its points.
type Line = (bool, &'static str, Vec<Point>);

fn figure(name: &'static str, title: &'static str, axes: Axes, lines: Vec<Line>) -> Figure {
    let drawn = lines.into_iter().filter(|(_, _, points)| points.len() > 1);
    let curve = |(ours, title, points): Line| CurveRecord {
        prefix: if ours { format!("{GROUP}/") } else { String::new() },
        title: title.into(),
        chart: axes.up.into(),
        parameter: axes.across.into(),
        bytes: axes.bytes,
        unit: axes.unit.into(),
        points,
        ..CurveRecord::default()
    };
    Figure { name, title, curves: drawn.map(curve).collect() }
}

/// The number in the last part of an id: `compute/400us`, `1000B`, `loops/200`.
fn number(id: &str) -> Option<u64> {
    let last = id.rsplit('/').next()?;
    last.trim_end_matches(|c: char| !c.is_ascii_digit()).parse().ok()
}

/// A point a row, of those that have a value.
fn line<T>(rows: &[T], id: fn(&T) -> &str, value: impl Fn(&T) -> Option<Interval>) -> Vec<Point> {
    rows.iter().filter_map(|row| Some(Point { at: number(id(row))?, value: value(row)? })).collect()
}

/// A share as a percentage.
fn percent(share: Interval) -> Interval {
    share.map(|share| 100.0 * share)
}

/// Ours of these rows, whose ids stand behind `way`.
fn measured_points(
    rows: &[Cost],
    record: &Record,
    way: &str,
    field: impl Fn(&Displaced) -> Option<Interval>,
) -> Vec<Point> {
    line(rows, |row| &row.id, |row| columns_of(record, &format!("{way}{}", row.id)).and_then(&field))
}

/// Costs by both methods: the published ones, and ours by these names.
fn costs(
    rows: &[Cost],
    record: &Record,
    way: &str,
    [accounting, displacement]: [&'static str; 2],
) -> Vec<Line> {
    let theirs =
        |field: fn(&Cost) -> f64| line(rows, |row| &row.id, |row| Some(Interval::exactly(1e3 * field(row))));
    vec![
        (false, "1997: ioctl", theirs(|row| row.accounting)),
        (false, "1997: displacement", theirs(|row| row.displacement)),
        (true, accounting, measured_points(rows, record, way, |o| o.charged)),
        (true, displacement, measured_points(rows, record, way, |o| o.gap)),
    ]
}

fn differences(paper: &Paper, record: &Record) -> Vec<Line> {
    let ours = |way| measured_points(&paper.send, record, way, |o| o.difference.map(percent));
    vec![
        (false, "1997", line(&paper.send, |row| &row.id, |row| Some(Interval::exactly(row.percent)))),
        (true, "2 nodes", ours("nodes/")),
        (true, "steered", ours("steered/")),
        (true, "loopback", ours("loopback/")),
        (true, "peer", ours("tcp-peer/")),
    ]
}

fn rates(paper: &Paper, record: &Record) -> Vec<Line> {
    let rows = &paper.throughput;
    let ours = |field: fn(&SeparatePrediction) -> Interval| {
        let row_percent = |row: &Rate| {
            Some(percent(field(&SeparatePrediction::from_record(
                record,
                &row.sender,
                [&row.send, &row.computation],
            )?)))
        };
        line(rows, |row| &row.id, row_percent)
    };
    let theirs =
        |field: fn(&Rate) -> f64| line(rows, |row| &row.id, |row| Some(Interval::exactly(field(row))));
    vec![
        (false, "1997: from ioctl", theirs(|row| row.accounting_percent)),
        (false, "1997: from displacement", theirs(|row| row.displacement_percent)),
        (true, "from accounting", ours(|p| p.charged_off)),
        (true, "from displacement", ours(|p| p.displaced_off)),
    ]
}

/// The means of both machines, each relative to its own mean of the longest runs.
fn means(paper: &Paper, record: &Record) -> Vec<Line> {
    let theirs = |row: &Spread| Interval::around(row.mean, row.half);
    let rows = &paper.loops;
    vec![
        (false, "1997", beyond_last(line(rows, |row| &row.id, |row| Some(theirs(row))))),
        (
            true,
            "here",
            beyond_last(line(rows, |row| &row.id, |row| columns_of(record, &row.id).and_then(|o| o.gap))),
        ),
    ]
}

fn beyond_last(points: Vec<Point>) -> Vec<Point> {
    let Some(last) = points.last().map(|point| point.value.estimate) else { return points };
    let percent = |value: f64| 100.0 * (value / last - 1.0);
    points.into_iter().map(|point| Point { value: point.value.map(percent), ..point }).collect()
}

fn deviations(paper: &Paper, record: &Record) -> Vec<Line> {
    let rows = &paper.loops;
    let ours = |row: &Spread| {
        let ours = columns_of(record, &row.id)?;
        Some(percent(Interval::exactly(ours.deviation / ours.gap?.estimate)))
    };
    vec![
        (false, "1997", line(rows, |row| &row.id, |row| Some(Interval::exactly(row.percent)))),
        (true, "here", line(rows, |row| &row.id, ours)),
    ]
}

#[cfg(test)]
mod tests {
    use super::super::fixture_paper::{interval, measured, record};
    use super::*;

    #[test]
    fn a_record_without_points_has_no_figure() {
        let paper = Paper::read().expect("four tables");
        assert!(figures(&paper, &record(Vec::new())).is_empty());
    }

    #[test]
    fn ours_and_theirs_stand_on_one_axis_in_one_unit() {
        let paper = Paper::read().expect("four tables");
        let case = |name: &str, us: f64| {
            let displaced =
                Displaced { charged: interval(1e3 * us), gap: interval(1.1e3 * us), ..Displaced::default() };
            measured(name, displaced)
        };
        let record = record(vec![case("compute/400us", 400.0), case("compute/800us", 800.0)]);
        let figures = figures(&paper, &record);
        assert_eq!(figures.iter().map(|figure| figure.name).collect::<Vec<_>>(), ["figure-2"]);
        let at = |curve: usize, point: usize| {
            let Point { at, value } = figures[0].curves[curve].points[point];
            (at, value.estimate)
        };
        assert_eq!((at(0, 0), at(2, 0), at(2, 1)), ((400, 454e3), (400, 400e3), (800, 800e3)));
        assert!((at(3, 1).1 - 880e3).abs() < 1.0);
    }

    #[test]
    fn means_are_told_against_the_longest_runs() {
        let paper = Paper::read().expect("four tables");
        let points = means(&paper, &record(Vec::new())).swap_remove(0).2;
        assert_eq!((points.len(), points[0].at, points[4].at), (5, 200, 15_000));
        assert!((points[0].value.estimate - 4.27).abs() < 0.01, "{points:?}");
        assert_eq!(points[4].value.estimate, 0.0);
    }
}

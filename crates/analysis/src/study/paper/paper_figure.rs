//! The figures of the paper as curves: the published curves and those of a run. If the values of the two machines are too
//! far apart for one axis, a figure shows percentages.

use super::{Cost, GROUP, Paper, Rate, SeparatePrediction, Spread, find_displacement};
use syscost_engine::record::quantity::NANOSECONDS;
use syscost_engine::record::{CurveRecord, Displaced, Interval, Point, Record};

/// The curves of one picture.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Figure {
    /// Name of the picture's file, such as `figure-2`.
    pub name: &'static str,
    /// Title of the picture.
    pub title: &'static str,
    /// The published curves and those of the run.
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
const RATE: Axes = Axes { up: "messages of a sender", unit: "/s", ..SENT };
const OFF: Axes = Axes { up: "predicted rate beyond the measured one", unit: PERCENT, ..SENT };
const MEAN: Axes = Axes { up: "mean of the runs", unit: NANOSECONDS, across: "loops of a run", bytes: false };
const DEVIATION: Axes = Axes { up: "standard deviation of the runs", ..MEAN };
const PERCENT: &str = "%";

/// The figures for which the record has at least two points.
pub fn figures(paper: &Paper, record: &Record) -> Vec<Figure> {
    let all = [
        draw_figure(
            "figure-2",
            "Figure 2: plain computation",
            COMPUTED,
            cost_lines(
                &paper.compute,
                record,
                "",
                ["accounting", "displacement (gap)", "displacement (paper's)"],
            ),
        ),
        draw_figure(
            "figure-4",
            "Figure 4: TCP send and a reply of one byte",
            SENT,
            cost_lines(
                &paper.send,
                record,
                "nodes/",
                ["2 nodes: accounting", "2 nodes: displacement (gap)", "2 nodes: displacement (paper's)"],
            ),
        ),
        draw_figure(
            "figure-4-difference",
            "Figure 4: what accounting does not say of a TCP send",
            MORE,
            difference_lines(paper, record),
        ),
        draw_figure(
            "figure-5",
            "Figure 5: throughput as measured, and as predicted",
            RATE,
            rate_lines(paper, record),
        ),
        draw_figure(
            "figure-5-difference",
            "Figure 5: throughput as predicted, against measured",
            OFF,
            rate_difference_lines(paper, record),
        ),
        draw_figure(
            "figure-6a",
            "Figure 6(a): the mean of 20 runs, by the loops of a run",
            MEAN,
            mean_lines(paper, record),
        ),
        draw_figure(
            "figure-6b",
            "Figure 6(b): the standard deviation of 20 runs, by the loops of a run",
            DEVIATION,
            deviation_lines(paper, record),
        ),
    ];
    let has_ours = |figure: &Figure| figure.curves.iter().any(|curve| curve.prefix.starts_with(GROUP));
    all.into_iter().filter(has_ours).collect()
}

/// A curve before it is drawn: whether the record measured it, its name, its points.
type Line = (bool, &'static str, Vec<Point>);

fn draw_figure(name: &'static str, title: &'static str, axes: Axes, lines: Vec<Line>) -> Figure {
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

/// The number at the beginning of the last part of an id, such as `compute/400us`, `1000B`, `loops/200`.
fn number_in_id(id: &str) -> Option<u64> {
    let last = id.rsplit('/').next()?;
    last.trim_end_matches(|c: char| !c.is_ascii_digit()).parse().ok()
}

/// One point for each row that has a value.
fn points_of_rows<T>(rows: &[T], id: fn(&T) -> &str, value: impl Fn(&T) -> Option<Interval>) -> Vec<Point> {
    rows.iter().filter_map(|row| Some(Point { at: number_in_id(id(row))?, value: value(row)? })).collect()
}

/// A share as a percentage.
fn to_percent(share: Interval) -> Interval {
    share.map(|share| 100.0 * share)
}

/// The points of these rows in the record; `way` is the prefix of their case ids.
fn measured_points(
    rows: &[Cost],
    record: &Record,
    way: &str,
    field: impl Fn(&Displaced) -> Option<Interval>,
) -> Vec<Point> {
    points_of_rows(
        rows,
        |row| &row.id,
        |row| find_displacement(record, &format!("{way}{}", row.id)).as_ref().and_then(&field),
    )
}

/// Curves of the costs by accounting and by displacement, with both estimators for ours: the published curves and ours.
fn cost_lines(
    rows: &[Cost],
    record: &Record,
    way: &str,
    [accounting, gap, papers]: [&'static str; 3],
) -> Vec<Line> {
    let theirs = |field: fn(&Cost) -> f64| {
        points_of_rows(rows, |row| &row.id, |row| Some(Interval::exactly(1e3 * field(row))))
    };
    vec![
        (false, "1997: ioctl", theirs(|row| row.accounting)),
        (false, "1997: displacement", theirs(|row| row.displacement)),
        (true, accounting, measured_points(rows, record, way, |o| o.charged)),
        (true, gap, measured_points(rows, record, way, |o| o.gap)),
        (true, papers, measured_points(rows, record, way, |o| o.paper)),
    ]
}

fn difference_lines(paper: &Paper, record: &Record) -> Vec<Line> {
    let ours = |way| measured_points(&paper.send, record, way, |o| o.difference.map(to_percent));
    vec![
        (
            false,
            "1997",
            points_of_rows(&paper.send, |row| &row.id, |row| Some(Interval::exactly(row.percent))),
        ),
        (true, "2 nodes", ours("nodes/")),
        (true, "steered", ours("steered/")),
        (true, "loopback", ours("loopback/")),
        (true, "peer", ours("tcp-peer/")),
    ]
}

/// The points of a prediction for one sender, over the rows of the third table.
fn predicted_points(
    paper: &Paper,
    record: &Record,
    field: fn(&SeparatePrediction) -> Interval,
) -> Vec<Point> {
    points_of_rows(
        &paper.throughput,
        |row| &row.id,
        |row| SeparatePrediction::from_record(record, &row.sender, &row.send).as_ref().map(field),
    )
}

/// The points of a published curve, over the rows of the third table.
fn published_rate_points(paper: &Paper, field: fn(&Rate) -> f64) -> Vec<Point> {
    points_of_rows(&paper.throughput, |row| &row.id, |row| Some(Interval::exactly(field(row))))
}

fn rate_lines(paper: &Paper, record: &Record) -> Vec<Line> {
    let theirs = |field| published_rate_points(paper, field);
    let ours = |field| predicted_points(paper, record, field);
    vec![
        (false, "1997: measured", theirs(|row| row.real)),
        (false, "1997: from ioctl", theirs(|row| row.accounting)),
        (false, "1997: from displacement", theirs(|row| row.displacement)),
        (true, "measured", ours(|p| p.real)),
        (true, "from accounting", ours(|p| p.charged)),
        (true, "from displacement", ours(|p| p.displaced)),
    ]
}

fn rate_difference_lines(paper: &Paper, record: &Record) -> Vec<Line> {
    let theirs = |field| published_rate_points(paper, field);
    let ours = |field| predicted_points(paper, record, field);
    vec![
        (false, "1997: from ioctl", theirs(|row| row.accounting_percent)),
        (false, "1997: from displacement", theirs(|row| row.displacement_percent)),
        (true, "from accounting", ours(|p| to_percent(p.charged_off))),
        (true, "from displacement", ours(|p| to_percent(p.displaced_off))),
    ]
}

/// Curves of the means of both machines; for our machine by both estimators.
fn mean_lines(paper: &Paper, record: &Record) -> Vec<Line> {
    let ns = |us: Interval| us.map(|us| 1e3 * us);
    let theirs = |row: &Spread| Some(ns(Interval::around(row.mean, row.half)));
    vec![
        (false, "1997", points_of_rows(&paper.loops, |row| &row.id, theirs)),
        (true, "here", loops_points(paper, record, |o| o.gap)),
        (true, "here, by the paper's formula", loops_points(paper, record, |o| o.paper)),
    ]
}

/// The points of the fourth table in the record.
fn loops_points(paper: &Paper, record: &Record, field: fn(&Displaced) -> Option<Interval>) -> Vec<Point> {
    points_of_rows(
        &paper.loops,
        |row| &row.id,
        |row| find_displacement(record, &row.id).as_ref().and_then(field),
    )
}

fn deviation_lines(paper: &Paper, record: &Record) -> Vec<Line> {
    let theirs = |row: &Spread| Some(Interval::exactly(1e3 * row.deviation));
    vec![
        (false, "1997", points_of_rows(&paper.loops, |row| &row.id, theirs)),
        (true, "here", loops_points(paper, record, |o| Some(Interval::exactly(o.deviation)))),
    ]
}

#[cfg(test)]
mod tests {
    use super::super::fixture_paper::{measured_case, record_of_cases, ten_percent_interval};
    use super::*;
    use syscost_engine::record::Throughput;

    #[test]
    fn a_record_without_points_has_no_figure() {
        let paper = Paper::read().expect("four tables");
        assert!(figures(&paper, &record_of_cases(Vec::new())).is_empty());
    }

    #[test]
    fn ours_and_theirs_stand_on_one_axis_in_one_unit() {
        let paper = Paper::read().expect("four tables");
        let case = |name: &str, us: f64| {
            let displaced = Displaced {
                charged: ten_percent_interval(1e3 * us),
                gap: ten_percent_interval(1.1e3 * us),
                ..Displaced::default()
            };
            measured_case(name, displaced)
        };
        let record = record_of_cases(vec![case("compute/400us", 400.0), case("compute/800us", 800.0)]);
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
    fn rates_are_drawn_in_messages_a_second_and_their_predictions_in_percent() {
        let paper = Paper::read().expect("four tables");
        let sizes = ["1000B", "2000B"];
        let cost = |us: f64| {
            let gap = ten_percent_interval(1e3 * us);
            Displaced { gap, charged: gap, computed: 120_000, ..Displaced::default() }
        };
        let throughput = Throughput { real: Interval::exactly(8_000.0), ..Throughput::default() };
        let whole = Displaced { throughput: Some(throughput), ..cost(120.0) };
        let cases = sizes.iter().flat_map(|size| {
            let whole = measured_case(&format!("sender/{size}"), whole.clone());
            [whole, measured_case(&format!("nodes/{size}"), cost(20.0))]
        });
        let cases = cases.chain([measured_case("computation/120000", cost(80.0))]).collect();
        let figures = figures(&paper, &record_of_cases(cases));
        let of = |name: &str| {
            let figure = figures.iter().find(|figure| figure.name == name).expect(name);
            figure
                .curves
                .iter()
                .map(|curve| (&*curve.unit, curve.points[0].value.estimate))
                .collect::<Vec<_>>()
        };
        let rates = of("figure-5");
        assert_eq!((rates.len(), rates[0], rates[3]), (6, ("/s", 346.62), ("/s", 8_000.0)));
        assert!((rates[5].1 - 10_000.0).abs() < 0.1, "{rates:?}");
        let off = of("figure-5-difference");
        assert!(off.len() == 4 && off[3].0 == PERCENT && (off[3].1 - 25.0).abs() < 0.1, "{off:?}");
    }

    #[test]
    fn means_and_deviations_are_in_the_unit_of_the_paper() {
        let paper = Paper::read().expect("four tables");
        let displaced =
            Displaced { gap: ten_percent_interval(20e3), deviation: 150.0, ..Displaced::default() };
        let case = |loops: &str| measured_case(&format!("loops/{loops}"), displaced.clone());
        let figures = figures(&paper, &record_of_cases(vec![case("200"), case("1000")]));
        let of = |name: &str| {
            let figure = figures.iter().find(|figure| figure.name == name).expect(name);
            let first = |curve: &CurveRecord| (curve.unit.clone(), curve.points[0].value.estimate);
            figure.curves.iter().map(first).collect::<Vec<_>>()
        };
        let ns = |value: f64| (NANOSECONDS.to_owned(), value);
        let row = &paper.loops[0];
        assert_eq!(of("figure-6a"), [ns(1e3 * row.mean), ns(20e3)]);
        assert_eq!(of("figure-6b"), [ns(1e3 * row.deviation), ns(150.0)]);
    }
}

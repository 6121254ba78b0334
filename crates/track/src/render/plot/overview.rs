//! A whole run on one page: the operations of the first screen on one axis, the curve of the caches, and the predictions.

use super::axis::{Scale, time_label, trimmed_number};
use super::canvas::{Canvas, DARK, DARK_RIGHT, GRID, INK, Mark, PALE, SMALL, SMALL_CENTER};
use super::chart::{self, COLORS};
use syscost_engine::record::{CurveRecord, Headline, Interval, Record};
use syscost_engine::render::figure_line::HeadlineFigure;
use syscost_engine::study::standout::PredictedCase;

/// Width and height in points.
pub(super) const SIZE: (f64, f64) = (1480.0, 1000.0);
/// Height of a row, points.
const TALL: f64 = 22.0;
/// Where the axis of the rows begins and ends.
const LEFT: f64 = 268.0;
const RIGHT: f64 = 760.0;
/// Where the amounts end.
const AMOUNT: f64 = 856.0;

/// What is on the page.
pub(super) struct Overview<'a> {
    /// Rows that are durations, and those that are rates.
    pub(super) rows: [Vec<Row>; 2],
    /// A curve with levels, if the run has one.
    pub(super) curve: Option<&'a CurveRecord>,
    /// Every prediction, the farthest first.
    pub(super) predicted: Vec<PredictedCase<'a>>,
}

/// An operation.
pub(super) struct Row {
    words: &'static str,
    value: Interval,
    typical: Option<f64>,
    expected: Option<f64>,
    amount: String,
    place: u16,
}

/// The rows of the headlines that were measured, in the order of their places: durations, and rates.
pub(super) fn overview_rows(record: &Record, headlines: &[(String, Headline)]) -> [Vec<Row>; 2] {
    let row = |(id, headline): &(String, Headline)| {
        let (_, case) = record.cases().find(|(_, case)| case.id == *id)?;
        let measured = case.measured()?;
        let figure = HeadlineFigure::new(headline, measured, &record.unit)?;
        let (value, expected) = (figure.value, figure.expected_value(measured));
        let (amount, typical) = (figure.format_value(value.estimate), figure.typical);
        let row = Row { words: headline.words, value, typical, expected, amount, place: headline.place };
        (value.estimate > 0.0).then_some((figure.is_rate(), row))
    };
    let mut all: Vec<_> = headlines.iter().filter_map(row).collect();
    all.sort_by_key(|(_, row)| row.place);
    let (rates, times): (Vec<_>, Vec<_>) = all.into_iter().partition(|(is_rate, _)| *is_rate);
    [times, rates].map(|rows| rows.into_iter().map(|(_, row)| row).collect())
}

pub(super) fn draw_overview(canvas: &Canvas, overview: &Overview<'_>) {
    draw_mark_key(canvas);
    let [times, rates] = &overview.rows;
    let end = draw_row_block(canvas, times, 104.0, time_label);
    draw_row_block(canvas, rates, end + 34.0, |rate| format!("{} GB/s", trimmed_number(rate)));
    let (x, wide) = (AMOUNT + 24.0, canvas.size.0 - AMOUNT - 24.0);
    let mut top = 60.0;
    if let Some(curve) = overview.curve {
        let part = canvas.sub_canvas((x, top), (wide, 440.0));
        let title = format!("{}{} against {}", curve.prefix, curve.chart, curve.parameter);
        part.draw_text(&title.replace('/', " "), (24.0, 26.0), DARK);
        chart::draw_chart(&part, &[curve]);
        top += 440.0;
    }
    let part = canvas.sub_canvas((x, top), (wide, canvas.size.1 - top));
    let far = overview.predicted.iter().filter(|case| case.is_far()).count();
    let title = format!(
        "{} of {} cases within 3× of what was predicted",
        overview.predicted.len() - far,
        overview.predicted.len()
    );
    part.draw_text(&title, (24.0, 40.0), DARK);
    chart::draw_scatter(&part, &overview.predicted)
}

/// What the marks mean.
fn draw_mark_key(canvas: &Canvas) {
    let y = 76.0;
    canvas.draw_line(&[(LEFT, y), (LEFT + 24.0, y)], COLORS[0], 2.0);
    canvas.draw_mark(Mark::Circle, (LEFT + 12.0, y), 4.0, COLORS[0]);
    canvas.draw_text("quiet, and where the next run will lie", (LEFT + 32.0, y), SMALL);
    canvas.draw_line(&[(LEFT + 280.0, y - 6.0), (LEFT + 280.0, y + 6.0)], INK, 1.6);
    canvas.draw_text("typical", (LEFT + 288.0, y), SMALL);
    canvas.draw_ring((LEFT + 352.0, y), 4.5, COLORS[1]);
    canvas.draw_text("expected", (LEFT + 364.0, y), SMALL)
}

/// Rows on one axis from here down; returns where they end.
fn draw_row_block(canvas: &Canvas, rows: &[Row], top: f64, named: impl Fn(f64) -> String) -> f64 {
    if rows.is_empty() {
        return top;
    }
    let row_values = |row: &Row| [Some(row.value.estimate), Some(row.value.high), row.typical, row.expected];
    let all: Vec<f64> = rows.iter().flat_map(row_values).flatten().filter(|value| *value > 0.0).collect();
    let scale = Scale::logarithmic_axis(&all, named);
    let bottom = top + TALL * rows.len() as f64;
    for (value, name) in &scale.marks {
        let x = LEFT + scale.position_share(*value) * (RIGHT - LEFT);
        canvas.draw_line(&[(x, top), (x, bottom)], GRID, 1.0);
        canvas.draw_text(name, (x, bottom + 12.0), SMALL_CENTER);
    }
    for (at, row) in rows.iter().enumerate() {
        draw_row(canvas, &scale, row, top + TALL * (at as f64 + 0.5));
    }
    bottom
}

fn draw_row(canvas: &Canvas, scale: &Scale, row: &Row, y: f64) {
    let x = |value: f64| LEFT + scale.position_share(value).clamp(0.0, 1.0) * (RIGHT - LEFT);
    canvas.draw_text(row.words, (LEFT - 12.0, y), DARK_RIGHT);
    canvas.draw_text(&row.amount, (AMOUNT, y), DARK_RIGHT);
    canvas.draw_line(&[(LEFT, y), (RIGHT, y)], GRID, 1.0);
    if let Some(expected) = row.expected.filter(|expected| *expected > 0.0) {
        canvas.draw_line(&[(x(expected), y), (x(row.value.estimate), y)], PALE, 1.0);
        canvas.draw_ring((x(expected), y), 4.5, COLORS[1]);
    }
    canvas.draw_line(&[(x(row.value.low), y), (x(row.value.high), y)], COLORS[0], 2.0);
    canvas.draw_mark(Mark::Circle, (x(row.value.estimate), y), 4.0, COLORS[0]);
    if let Some(typical) = row.typical {
        canvas.draw_line(&[(x(typical), y - 6.0), (x(typical), y + 6.0)], INK, 1.6);
    }
}

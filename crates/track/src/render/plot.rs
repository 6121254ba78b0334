//! Curves and maps as pictures, in SVG.

mod axis;
mod canvas;
mod chart;

use axis::{Scale, time_label, trimmed_number};
use canvas::{Canvas, DARK, DARK_RIGHT, GRID, INK, Mark, PALE, SMALL, SMALL_CENTER, TITLE, svg_of};
use chart::COLORS;
use syscost_analysis::study::paper::Figure;
use syscost_engine::record::{CurveRecord, Headline, Interval, Matrix, Record};
use syscost_engine::render::figure_line::HeadlineFigure;
use syscost_engine::study::standout::{PredictedCase, find_standouts};

/// Width and height of every picture but the overview, points.
const SIZE: (f64, f64) = (960.0, 560.0);

/// A picture: curves, or a map.
pub struct Picture<'a> {
    /// Name of a file: `chase-latency`.
    pub name: String,
    title: String,
    subtitle: String,
    content: Content<'a>,
}

enum Content<'a> {
    Curves(Vec<&'a CurveRecord>),
    Map(&'a Matrix),
    Predictions(Vec<PredictedCase<'a>>),
    Overview(Box<Overview<'a>>),
}

/// The fewest measured operations for which a run has an overview.
const FEWEST: usize = 6;

/// The overview and the predictions of a whole run; empty if it has fewer than [`FEWEST`] measured operations.
pub fn run_pictures<'a>(record: &'a Record, headlines: &[(String, Headline)]) -> Vec<Picture<'a>> {
    let rows = overview_rows(record, headlines);
    if rows.iter().map(Vec::len).sum::<usize>() < FEWEST {
        return Vec::new();
    }
    let predicted = find_standouts(record).predicted;
    let curves = record.groups.iter().flat_map(|group| &group.curves);
    let curve = curves.into_iter().find(|curve| !curve.levels.is_empty());
    let page = Overview { rows, curve, predicted: predicted.clone() };
    let picture = |name: &str, title: &str, content| Picture {
        name: name.into(),
        title: title.into(),
        subtitle: subtitle(record),
        content,
    };
    vec![
        picture("overview", "What this machine charges", Content::Overview(Box::new(page))),
        picture("predictions", "What was measured over what was predicted", Content::Predictions(predicted)),
    ]
}

/// The pictures of a record: one for the curves of each chart, and one for each map.
pub fn record_pictures(record: &Record) -> Vec<Picture<'_>> {
    let subtitle = subtitle(record);
    let mut pictures: Vec<Picture<'_>> = Vec::new();
    for group in &record.groups {
        for curve in &group.curves {
            let name = format!("{}-{}", group.name, curve.chart.replace(' ', "-"));
            if let Some(Content::Curves(curves)) =
                pictures.iter_mut().find(|p| p.name == name).map(|p| &mut p.content)
            {
                curves.push(curve);
                continue;
            }
            // Charts of one group are distinguished by the words behind `by`, such as `bandwidth by file`.
            let drawn = curve.chart.split(" by ").next().unwrap_or_default();
            let title = format!("{}: {drawn} against {}", group.name, curve.parameter);
            let content = Content::Curves(vec![curve]);
            pictures.push(Picture { name, title, subtitle: subtitle.clone(), content });
        }
    }
    let maps = record.cases().filter_map(|(_, case)| {
        let content = Content::Map(case.measured()?.matrix.as_ref()?);
        let title = format!("{}: ns between every two CPUs", case.id);
        Some(Picture { name: case.id.replace('/', "-"), title, subtitle: subtitle.clone(), content })
    });
    pictures.extend(maps);
    pictures
}

/// The picture of a figure that was drawn from a record.
pub fn figure_picture<'a>(figure: &'a Figure, record: &Record) -> Picture<'a> {
    let content = Content::Curves(figure.curves.iter().collect());
    let (name, title) = (figure.name.to_owned(), figure.title.to_owned());
    Picture { name, title, subtitle: subtitle(record), content }
}

/// The machine and its kernel, as far as they are known.
fn subtitle(record: &Record) -> String {
    let fingerprint = &record.fingerprint;
    let kernel = fingerprint.kernel_release.as_ref().map(|release| format!("Linux {release}"));
    let cpus = fingerprint.cpu_count.map(|count| format!("{count} CPUs"));
    let guest = fingerprint.hypervisor.as_ref().map(|_| "a guest".to_owned());
    let parts = [fingerprint.cpu_model.clone(), cpus, guest, kernel, Some(record.run.clone())];
    parts.into_iter().flatten().collect::<Vec<_>>().join(" · ")
}

impl Picture<'_> {
    /// The picture as the text of an SVG file.
    pub fn to_svg(&self) -> String {
        let size = if matches!(self.content, Content::Overview(_)) { OVERVIEW_SIZE } else { SIZE };
        svg_of(size, |canvas| self.draw(canvas))
    }

    fn draw(&self, canvas: &Canvas<'_>) {
        canvas.draw_text(&self.title, (24.0, 26.0), TITLE);
        canvas.draw_text(&self.subtitle, (24.0, 48.0), SMALL);
        match &self.content {
            Content::Curves(curves) => chart::draw_chart(canvas, curves),
            Content::Map(matrix) => chart::draw_heat_map(canvas, matrix),
            Content::Predictions(cases) => chart::draw_scatter(canvas, cases),
            Content::Overview(page) => draw_overview(canvas, page),
        }
    }
}

// A whole run on one page: the headline operations on a common axis, the curve of the caches, and the predictions.

/// Width and height of the overview, points.
const OVERVIEW_SIZE: (f64, f64) = (1480.0, 1000.0);
/// Height of a row, points.
const TALL: f64 = 22.0;
/// The horizontal positions at which the axis of the rows begins and ends, points.
const LEFT: f64 = 268.0;
const RIGHT: f64 = 760.0;
/// The horizontal position of the right end of the amounts, points.
const AMOUNT: f64 = 856.0;

/// The content of the overview.
struct Overview<'a> {
    /// Rows that are durations, and those that are rates.
    rows: [Vec<Row>; 2],
    /// A curve with levels, if the run has one.
    curve: Option<&'a CurveRecord>,
    /// Every predicted case, the one farthest from its prediction first.
    predicted: Vec<PredictedCase<'a>>,
}

/// The row of an operation.
struct Row {
    words: &'static str,
    value: Interval,
    typical: Option<f64>,
    expected: Option<f64>,
    amount: String,
    place: u16,
}

/// The rows of the headlines that were measured, in the order of their places: durations, and rates.
fn overview_rows(record: &Record, headlines: &[(String, Headline)]) -> [Vec<Row>; 2] {
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

fn draw_overview(canvas: &Canvas, overview: &Overview<'_>) {
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

/// Draws the legend of the marks.
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

/// Draws rows on a common axis from `top` down, and returns the vertical position of their end.
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

#[cfg(test)]
mod tests;

//! The drawings of a picture: a chart of curves with their levels, a scatter plot of predictions, and a heat map of pairs of CPUs.

use super::axis::{Scale, time_label, trimmed_number};
use super::canvas::{
    Canvas, Color, DARK, DARK_CENTER, GRID, INK, Letters, Mark, PALE, Place, SMALL, SMALL_CENTER, SMALL_RIGHT,
};
use syscost_engine::record::quantity::{format_duration, format_size};
use syscost_engine::record::{CurveRecord, LevelRecord, Matrix, Point};
use syscost_engine::study::standout::{FAR, PredictedCase};

/// The palette of Okabe and Ito, which suits all kinds of colour vision, without its yellow, which is too pale.
pub(super) const COLORS: [Color; 7] = [
    Color(0, 114, 178),
    Color(213, 94, 0),
    Color(0, 158, 115),
    Color(204, 121, 167),
    Color(230, 159, 0),
    Color(86, 180, 233),
    Color(0, 0, 0),
];
const MARKS: [Mark; 4] = [Mark::Circle, Mark::Square, Mark::Diamond, Mark::Triangle];

/// The area of the curves on the canvas.
struct Frame {
    pub(super) left: f64,
    pub(super) right: f64,
    pub(super) top: f64,
    pub(super) bottom: f64,
    pub(super) across: Scale,
    pub(super) up: Scale,
}

impl Frame {
    fn x_of_parameter(&self, at: u64, curve: &CurveRecord) -> f64 {
        // Zero is drawn at half the smallest size, since a logarithmic axis has no zero.
        let least = curve.points.iter().map(|p| p.at).filter(|&at| at > 0).min().unwrap_or(1);
        self.x_of(if at == 0 { 0.5 * least as f64 } else { at as f64 })
    }

    fn x_of(&self, value: f64) -> f64 {
        self.left + self.across.position_share(value) * (self.right - self.left)
    }

    fn y_of(&self, value: f64) -> f64 {
        (self.bottom - self.up.position_share(value) * (self.bottom - self.top)).clamp(self.top, self.bottom)
    }

    fn place_of_point(&self, point: &Point, curve: &CurveRecord) -> Place {
        (self.x_of_parameter(point.at, curve), self.y_of(point.value.estimate))
    }
}

pub(super) fn draw_chart(canvas: &Canvas, curves: &[&CurveRecord]) {
    let legend = legend_width(canvas, curves);
    let (right, bottom) = (canvas.size.0 - 24.0 - legend, canvas.size.1 - 58.0);
    let (across, up) = (Scale::parameter_axis(curves), Scale::value_axis(curves));
    let frame = Frame { left: 84.0, right, top: 104.0, bottom, across, up };
    draw_axes(canvas, &frame, curves);
    // Only one curve shows its levels, since the levels of several curves would overlap.
    let first = curves.iter().position(|curve| !curve.levels.is_empty() || curve.fall.is_some());
    if let Some(at) = first {
        draw_steps(canvas, &frame, curves[at]);
        draw_level_bands(canvas, &frame, curves[at], COLORS[at % COLORS.len()]);
    }
    for (at, curve) in curves.iter().enumerate() {
        draw_curve(canvas, &frame, curve, COLORS[at % COLORS.len()], MARKS[at % MARKS.len()]);
    }
    if let Some(at) = first {
        draw_level_names(canvas, &frame, curves[at]);
    }
    draw_legend(canvas, &frame, curves);
}

/// Draws both axes with their marks, and a grid line at each mark.
fn draw_grid(canvas: &Canvas, frame: &Frame) {
    for (value, name) in &frame.across.marks {
        let x = frame.x_of(*value);
        canvas.draw_line(&[(x, frame.top), (x, frame.bottom)], GRID, 1.0);
        canvas.draw_text(name, (x, frame.bottom + 16.0), SMALL_CENTER);
    }
    for (value, name) in &frame.up.marks {
        let y = frame.y_of(*value);
        canvas.draw_line(&[(frame.left, y), (frame.right, y)], GRID, 1.0);
        canvas.draw_text(name, (frame.left - 8.0, y), SMALL_RIGHT);
    }
    let corner = (frame.left, frame.bottom);
    canvas.draw_line(&[(frame.left, frame.top), corner, (frame.right, frame.bottom)], INK, 1.2)
}

fn draw_axes(canvas: &Canvas, frame: &Frame, curves: &[&CurveRecord]) {
    draw_grid(canvas, frame);
    let Some(curve) = curves.first() else { return };
    let unit = if curve.unit == "ns" { String::new() } else { curve.unit.clone() };
    let kind = [curve.chart.clone(), unit].into_iter().filter(|part| !part.is_empty());
    let kind = kind.collect::<Vec<_>>().join(", ");
    canvas.draw_text(&kind, (24.0, frame.top - 26.0), DARK);
    let middle = (0.5 * (frame.left + frame.right), frame.bottom + 40.0);
    canvas.draw_text(&curve.parameter, middle, DARK_CENTER)
}

/// Draws the line of a curve, its points, and their intervals.
fn draw_curve(canvas: &Canvas, frame: &Frame, curve: &CurveRecord, color: Color, mark: Mark) {
    let places: Vec<Place> = curve.points.iter().map(|point| frame.place_of_point(point, curve)).collect();
    canvas.draw_line(&places, color, 1.5);
    for (point, place) in curve.points.iter().zip(&places) {
        let ends = [(place.0, frame.y_of(point.value.low)), (place.0, frame.y_of(point.value.high))];
        canvas.draw_line(&ends, color, 1.0);
        canvas.draw_mark(mark, *place, 2.8, color);
    }
}

/// Draws a pale band along each level.
fn draw_level_bands(canvas: &Canvas, frame: &Frame, curve: &CurveRecord, Color(red, green, blue): Color) {
    let pale = |part: u8| 255 - (255 - part) / 3;
    for level in &curve.levels {
        let y = frame.y_of(level.latency.estimate);
        let (from, to) = (frame.x_of_parameter(level.first, curve), frame.x_of_parameter(level.last, curve));
        canvas.fill_rectangle((from, y - 5.0), (to, y + 5.0), Color(pale(red), pale(green), pale(blue)));
    }
}

/// Writes the name of each level below it, because a rising curve leaves room there.
fn draw_level_names(canvas: &Canvas, frame: &Frame, curve: &CurveRecord) {
    const TALL: f64 = 18.0;
    let letters = Letters { is_opaque: true, ..DARK };
    let mut taken: Vec<(f64, f64, f64)> = Vec::new();
    for level in &curve.levels {
        let name = level.name.as_deref().unwrap_or("level");
        let words = format!("{name} {}", format_duration(level.latency.estimate));
        let wide = canvas.text_size(&words, letters).0;
        let left = frame.x_of_parameter(level.first, curve).min(frame.right - wide);
        // The name stands below the points and the ends of their intervals.
        let beside = |point: &&Point| (left..=left + wide).contains(&frame.x_of_parameter(point.at, curve));
        let lowest = curve.points.iter().filter(beside).map(|point| frame.y_of(point.value.low));
        let own = frame.y_of(level.latency.estimate) + 5.0;
        let near = lowest.filter(|y| *y < own + 24.0).fold(own, f64::max);
        let hides =
            |y: f64| taken.iter().any(|(l, r, t)| left < *r && *l < left + wide && (y - t).abs() < TALL);
        let mut y = near + 11.0;
        while hides(y) {
            y += TALL;
        }
        taken.push((left, left + wide, y));
        canvas.draw_text(&words, (left, y), letters);
    }
}

/// Draws a line at the measured end of each cache, and a paler one at the end that the kernel reports, if they disagree.
fn draw_steps(canvas: &Canvas, frame: &Frame, curve: &CurveRecord) {
    for level in curve.levels.iter().filter(|level| level.reported.is_some()) {
        draw_level_step(canvas, frame, level);
    }
    let Some(fall) = &curve.fall else { return };
    draw_step_line(canvas, frame, fall.step, &format!("falls at {}", format_size(fall.step.0)))
}

/// Draws the measured end of a cache, and the reported one if they disagree.
fn draw_level_step(canvas: &Canvas, frame: &Frame, level: &LevelRecord) {
    let (Some(step), Some(reported), Some(name)) = (level.step, level.reported, &level.name) else {
        return;
    };
    let x = frame.x_of(reported as f64);
    if level.agrees_with_kernel() == Some(false) && (frame.left..=frame.right).contains(&x) {
        canvas.draw_dashed_line((x, frame.top), (x, frame.bottom), PALE, 1.5);
        let words = format!("{name} reported {}", format_size(reported));
        canvas.draw_text(&words, (x, frame.top + 12.0), Letters { is_opaque: true, ..SMALL_CENTER });
    }
    draw_step_line(canvas, frame, step, &format!("{name} {}", format_size(step.0)))
}

/// Draws a line at the geometric mean of the sizes before and after a step, with these words above it.
fn draw_step_line(canvas: &Canvas, frame: &Frame, step: (u64, u64), words: &str) {
    let x = frame.x_of((step.0 as f64 * step.1 as f64).sqrt());
    canvas.draw_dashed_line((x, frame.top), (x, frame.bottom), INK, 4.0);
    canvas.draw_text(words, (x, frame.top - 8.0), DARK_CENTER)
}

fn legend_width(canvas: &Canvas, curves: &[&CurveRecord]) -> f64 {
    if curves.len() < 2 {
        return 0.0;
    }
    let width = |curve: &&CurveRecord| canvas.text_size(&curve.title, SMALL).0;
    curves.iter().map(width).fold(0.0, f64::max) + 44.0
}

/// Draws the legend to the right of the curves, if there are several curves.
fn draw_legend(canvas: &Canvas, frame: &Frame, curves: &[&CurveRecord]) {
    if curves.len() < 2 {
        return;
    }
    for (at, curve) in curves.iter().enumerate() {
        let (x, y) = (frame.right + 20.0, frame.top + 10.0 + 21.0 * at as f64);
        let color = COLORS[at % COLORS.len()];
        canvas.draw_line(&[(x, y), (x + 20.0, y)], color, 1.5);
        canvas.draw_mark(MARKS[at % MARKS.len()], (x + 10.0, y), 3.2, color);
        canvas.draw_text(&curve.title, (x + 26.0, y), DARK);
    }
}

// The scatter plot of predictions: a point for each case, and a band in which predictions are good.

const BAND: Color = Color(226, 240, 235);
/// The most ids that are written beside their points.
const NAMED: usize = 14;
/// The height of a written id, points.
const TALL: f64 = 15.0;

fn plot_frame(canvas: &Canvas, cases: &[PredictedCase<'_>]) -> Frame {
    let predicted: Vec<f64> = cases.iter().map(|case| case.predicted).collect();
    let ratios: Vec<f64> = cases.iter().map(|case| case.ratio).chain([2.0 * FAR, 0.5 / FAR]).collect();
    let (right, bottom) = (canvas.size.0 - 24.0, canvas.size.1 - 58.0);
    let across = Scale::logarithmic_axis(&predicted, time_label);
    let up = Scale::logarithmic_axis(&ratios, |ratio| format!("{}×", trimmed_number(ratio)));
    Frame { left: 84.0, right, top: 96.0, bottom, across, up }
}

fn place_of_case(frame: &Frame, case: &PredictedCase<'_>) -> Place {
    (frame.x_of(case.predicted), frame.y_of(case.ratio))
}

/// Draws the scatter plot of these cases, which are sorted: the one farthest from its prediction is first.
pub(super) fn draw_scatter(canvas: &Canvas, cases: &[PredictedCase<'_>]) {
    let frame = plot_frame(canvas, cases);
    draw_scatter_axes(canvas, &frame);
    for case in cases {
        let color = if case.is_far() { COLORS[1] } else { COLORS[0] };
        canvas.draw_ring(place_of_case(&frame, case), 2.6, color);
    }
    draw_case_names(canvas, &frame, cases)
}

fn draw_scatter_axes(canvas: &Canvas, frame: &Frame) {
    canvas.fill_rectangle((frame.left, frame.y_of(FAR)), (frame.right, frame.y_of(FAR.recip())), BAND);
    draw_grid(canvas, frame);
    canvas.draw_line(&[(frame.left, frame.y_of(1.0)), (frame.right, frame.y_of(1.0))], PALE, 1.2);
    canvas.draw_text("measured over predicted", (24.0, frame.top - 20.0), DARK);
    let middle = 0.5 * (frame.left + frame.right);
    canvas.draw_text("predicted", (middle, frame.bottom + 40.0), DARK_CENTER)
}

/// Writes the ids of the cases farthest from their predictions beside their points, if no other id or point is in the way.
fn draw_case_names(canvas: &Canvas, frame: &Frame, cases: &[PredictedCase<'_>]) {
    let points: Vec<Place> = cases.iter().map(|case| place_of_case(frame, case)).collect();
    let mut taken: Vec<Span> = Vec::new();
    for case in cases.iter().filter(|case| case.is_far()).take(NAMED) {
        let wide = canvas.text_size(case.id, DARK).0;
        let (x, y) = place_of_case(frame, case);
        let sides = [x + 8.0, x - 8.0 - wide].map(|left| Span { left, right: left + wide, y });
        let free = |side: &Span| {
            let is_inside = side.left > frame.left && side.right < frame.right;
            is_inside
                && !taken.iter().any(|other| side.is_overlapping(other))
                && !points.iter().any(|at| side.is_covering(*at))
        };
        if let Some(side) = sides.into_iter().find(free) {
            canvas.draw_text(case.id, (side.left, y), DARK);
            taken.push(side);
        }
    }
}

/// The area of a written id.
struct Span {
    left: f64,
    right: f64,
    y: f64,
}

impl Span {
    fn is_overlapping(&self, other: &Self) -> bool {
        self.left < other.right && other.left < self.right && (self.y - other.y).abs() < TALL
    }

    fn is_covering(&self, (x, y): Place) -> bool {
        (self.left - 3.0..self.right + 3.0).contains(&x) && (self.y - y).abs() < 0.6 * TALL
    }
}

// The heat map of all pairs of CPUs: the darker a square, the longer the time between two CPUs.

/// The colours of the smallest and of the largest value: a pale and a dark one of the same hue.
const NEAREST: (f64, f64, f64) = (236.0, 244.0, 250.0);
const FARTHEST: (f64, f64, f64) = (3.0, 60.0, 110.0);
/// The most CPUs for which the squares show figures.
const WITH_FIGURES: usize = 16;
/// The largest side of a square, points.
const LARGEST: f64 = 96.0;
/// The most names of CPUs along each side.
const NAMES: usize = 32;

pub(super) fn draw_heat_map(canvas: &Canvas, matrix: &Matrix) {
    let count = matrix.cpus.len();
    let all: Vec<f64> = matrix.rows.iter().flatten().copied().collect();
    let (low, high) = all.iter().fold((f64::MAX, f64::MIN), |(low, high), v| (low.min(*v), high.max(*v)));
    let side = ((canvas.size.1 - 140.0) / count.max(1) as f64).min(LARGEST);
    let corner = |row: usize, column: usize| (96.0 + side * column as f64, 84.0 + side * row as f64);
    let share = |ns: f64| if high > low { (ns - low) / (high - low) } else { 0.5 };
    for (row, figures) in matrix.rows.iter().enumerate() {
        for (column, &ns) in figures.iter().enumerate() {
            for (row, column) in [(row, column), (column, row)] {
                let (x, y) = corner(row, column);
                canvas.fill_rectangle((x, y), (x + side - 1.0, y + side - 1.0), heat_color(share(ns)));
                if count <= WITH_FIGURES {
                    let paper = if share(ns) > 0.5 { Color(255, 255, 255) } else { INK };
                    let letters = Letters { color: paper, ..SMALL_CENTER };
                    canvas.draw_text(&format!("{ns:.0}"), (x + 0.5 * side, y + 0.5 * side), letters);
                }
            }
        }
    }
    draw_cpu_names(canvas, matrix, side, corner);
    draw_color_key(canvas, low, high, 96.0 + side * count as f64 + 48.0)
}

fn draw_cpu_names(canvas: &Canvas, matrix: &Matrix, side: f64, corner: impl Fn(usize, usize) -> (f64, f64)) {
    let step = matrix.cpus.len().div_ceil(NAMES).max(1);
    for (at, cpu) in matrix.cpus.iter().enumerate().step_by(step) {
        let (x, y) = corner(at, at);
        let (left, bottom) = (corner(0, 0).0, corner(matrix.cpus.len(), 0).1);
        canvas.draw_text(&format!("CPU {cpu}"), (left - 8.0, y + 0.5 * side), SMALL_RIGHT);
        canvas.draw_text(&cpu.to_string(), (x + 0.5 * side, bottom + 14.0), SMALL_CENTER);
    }
}

/// Draws the legend of the colours.
fn draw_color_key(canvas: &Canvas, low: f64, high: f64, x: f64) {
    const STEPS: usize = 40;
    let (top, bottom) = (84.0, 284.0);
    let y = |share: f64| bottom - share * (bottom - top);
    if low >= high {
        return;
    }
    for step in 0..STEPS {
        let share = step as f64 / STEPS as f64;
        canvas.fill_rectangle((x, y(share + 1.0 / STEPS as f64)), (x + 18.0, y(share)), heat_color(share));
    }
    canvas.draw_text(&format!("{high:.1} ns"), (x + 26.0, top + 6.0), SMALL);
    canvas.draw_text(&format!("{low:.1} ns"), (x + 26.0, bottom - 6.0), SMALL)
}

/// The colour of a value at this share of the range from the smallest to the largest.
fn heat_color(share: f64) -> Color {
    let mix = |near: f64, far: f64| (near + (far - near) * share.clamp(0.0, 1.0)).round() as u8;
    Color(mix(NEAREST.0, FARTHEST.0), mix(NEAREST.1, FARTHEST.1), mix(NEAREST.2, FARTHEST.2))
}

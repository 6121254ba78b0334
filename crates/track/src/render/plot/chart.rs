//! Curves of one kind on two axes, with their levels.

use super::axis::Scale;
use super::canvas::{Anchor, Canvas, Color, GRID, INK, Letters, Mark, PALE, Place};
use syscost_engine::record::quantity::{format_duration, format_size};
use syscost_engine::record::{CurveRecord, LevelRecord, Point};

/// The palette of Okabe and Ito, for all kinds of colour vision; without its yellow, which is too pale.
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
pub(super) struct Frame {
    pub(super) left: f64,
    pub(super) right: f64,
    pub(super) top: f64,
    pub(super) bottom: f64,
    pub(super) across: Scale,
    pub(super) up: Scale,
}

impl Frame {
    fn x_of_parameter(&self, at: u64, curve: &CurveRecord) -> f64 {
        // Zero has its place a step before the smallest size.
        let least = curve.points.iter().map(|p| p.at).filter(|&at| at > 0).min().unwrap_or(1);
        self.x_of(if at == 0 { 0.5 * least as f64 } else { at as f64 })
    }

    pub(super) fn x_of(&self, value: f64) -> f64 {
        self.left + self.across.position_share(value) * (self.right - self.left)
    }

    pub(super) fn y_of(&self, value: f64) -> f64 {
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
    // The levels of one curve only: those of several would overlap.
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

/// Both axes with their marks, and a line of the grid at each.
pub(super) fn draw_grid(canvas: &Canvas, frame: &Frame) {
    for (value, name) in &frame.across.marks {
        let x = frame.x_of(*value);
        canvas.draw_line(&[(x, frame.top), (x, frame.bottom)], GRID, 1.0);
        canvas.draw_text(name, (x, frame.bottom + 16.0), &Letters::small_style().with_anchor(Anchor::Center));
    }
    for (value, name) in &frame.up.marks {
        let y = frame.y_of(*value);
        canvas.draw_line(&[(frame.left, y), (frame.right, y)], GRID, 1.0);
        canvas.draw_text(name, (frame.left - 8.0, y), &Letters::small_style().with_anchor(Anchor::Right));
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
    canvas.draw_text(&kind, (24.0, frame.top - 26.0), &Letters::small_style().with_color(INK));
    let middle = (0.5 * (frame.left + frame.right), frame.bottom + 40.0);
    canvas.draw_text(
        &curve.parameter,
        middle,
        &Letters::small_style().with_color(INK).with_anchor(Anchor::Center),
    )
}

/// The line, its points, and their intervals.
fn draw_curve(canvas: &Canvas, frame: &Frame, curve: &CurveRecord, color: Color, mark: Mark) {
    let places: Vec<Place> = curve.points.iter().map(|point| frame.place_of_point(point, curve)).collect();
    canvas.draw_line(&places, color, 1.5);
    for (point, place) in curve.points.iter().zip(&places) {
        let ends = [(place.0, frame.y_of(point.value.low)), (place.0, frame.y_of(point.value.high))];
        canvas.draw_line(&ends, color, 1.0);
        canvas.draw_mark(mark, *place, 2.8, color);
    }
}

/// A pale band along each level.
fn draw_level_bands(canvas: &Canvas, frame: &Frame, curve: &CurveRecord, Color(red, green, blue): Color) {
    let pale = |part: u8| 255 - (255 - part) / 3;
    for level in &curve.levels {
        let y = frame.y_of(level.latency.estimate);
        let (from, to) = (frame.x_of_parameter(level.first, curve), frame.x_of_parameter(level.last, curve));
        canvas.fill_rectangle((from, y - 5.0), (to, y + 5.0), Color(pale(red), pale(green), pale(blue)));
    }
}

/// The name of each level, below it, because a rising curve leaves room there.
fn draw_level_names(canvas: &Canvas, frame: &Frame, curve: &CurveRecord) {
    const TALL: f64 = 18.0;
    let letters = Letters::small_style().with_color(INK).with_background();
    let mut taken: Vec<(f64, f64, f64)> = Vec::new();
    for level in &curve.levels {
        let name = level.name.as_deref().unwrap_or("level");
        let words = format!("{name} {}", format_duration(level.latency.estimate));
        let wide = canvas.text_size(&words, &letters).0;
        let left = frame.x_of_parameter(level.first, curve).min(frame.right - wide);
        // Below whatever is drawn there, the ends of its intervals too.
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
        canvas.draw_text(&words, (left, y), &letters);
    }
}

/// A line where a cache ends as it was found, and a paler one where the kernel says that it does.
fn draw_steps(canvas: &Canvas, frame: &Frame, curve: &CurveRecord) {
    for level in curve.levels.iter().filter(|level| level.reported.is_some()) {
        draw_level_step(canvas, frame, level);
    }
    let Some(fall) = &curve.fall else { return };
    draw_step_line(canvas, frame, fall.step, &format!("falls at {}", format_size(fall.step.0)))
}

fn draw_level_step(canvas: &Canvas, frame: &Frame, level: &LevelRecord) {
    let (Some(step), Some(reported), Some(name)) = (level.step, level.reported, &level.name) else {
        return;
    };
    let x = frame.x_of(reported as f64);
    if level.agrees_with_kernel() == Some(false) && (frame.left..=frame.right).contains(&x) {
        canvas.draw_dashed_line((x, frame.top), (x, frame.bottom), PALE, 1.5);
        let words = format!("{name} reported {}", format_size(reported));
        canvas.draw_text(
            &words,
            (x, frame.top + 12.0),
            &Letters::small_style().with_anchor(Anchor::Center).with_background(),
        );
    }
    draw_step_line(canvas, frame, step, &format!("{name} {}", format_size(step.0)))
}

fn draw_step_line(canvas: &Canvas, frame: &Frame, step: (u64, u64), words: &str) {
    let x = frame.x_of((step.0 as f64 * step.1 as f64).sqrt());
    canvas.draw_dashed_line((x, frame.top), (x, frame.bottom), INK, 4.0);
    canvas.draw_text(
        words,
        (x, frame.top - 8.0),
        &Letters::small_style().with_color(INK).with_anchor(Anchor::Center),
    )
}

fn legend_width(canvas: &Canvas, curves: &[&CurveRecord]) -> f64 {
    if curves.len() < 2 {
        return 0.0;
    }
    let width = |curve: &&CurveRecord| canvas.text_size(&curve.title, &Letters::small_style()).0;
    curves.iter().map(width).fold(0.0, f64::max) + 44.0
}

/// The legend to the right of the curves, if there are several.
fn draw_legend(canvas: &Canvas, frame: &Frame, curves: &[&CurveRecord]) {
    if curves.len() < 2 {
        return;
    }
    for (at, curve) in curves.iter().enumerate() {
        let (x, y) = (frame.right + 20.0, frame.top + 10.0 + 21.0 * at as f64);
        let color = COLORS[at % COLORS.len()];
        canvas.draw_line(&[(x, y), (x + 20.0, y)], color, 1.5);
        canvas.draw_mark(MARKS[at % MARKS.len()], (x + 10.0, y), 3.2, color);
        canvas.draw_text(&curve.title, (x + 26.0, y), &Letters::small_style().with_color(INK));
    }
}

//! Predictions against what was measured: a point a case, and a band in which a prediction was a good one.

use super::axis::{Scale, short, time};
use super::canvas::{Canvas, Drawn, GRID, INK, Letters, PALE, Place};
use super::chart::COLORS;
use crate::study::standout::{FAR, Foretold};
use plotters::backend::DrawingBackend;
use plotters::style::RGBColor;
use plotters::style::text_anchor::HPos;

const BAND: RGBColor = RGBColor(226, 240, 235);
/// The most ids that are written beside their points.
const NAMED: usize = 14;
/// The height of a written id, points.
const TALL: f64 = 15.0;

/// The area of the points.
struct Field {
    left: f64,
    right: f64,
    top: f64,
    bottom: f64,
    across: Scale,
    up: Scale,
}

impl Field {
    fn of<B: DrawingBackend>(canvas: &Canvas<B>, cases: &[Foretold<'_>]) -> Self {
        let predicted: Vec<f64> = cases.iter().map(|case| case.predicted).collect();
        let ratios = cases.iter().map(|case| case.ratio).chain([2.0 * FAR, 0.5 / FAR]);
        let ratios: Vec<f64> = ratios.collect();
        let (right, bottom) = (canvas.size.0 - 24.0, canvas.size.1 - 58.0);
        let across = Scale::logarithmic(&predicted, time);
        let up = Scale::logarithmic(&ratios, |ratio| format!("{}×", short(ratio)));
        Self { left: 84.0, right, top: 96.0, bottom, across, up }
    }

    fn x(&self, predicted: f64) -> f64 {
        self.left + self.across.share(predicted) * (self.right - self.left)
    }

    fn y(&self, ratio: f64) -> f64 {
        self.bottom - self.up.share(ratio) * (self.bottom - self.top)
    }

    fn place(&self, case: &Foretold<'_>) -> Place {
        (self.x(case.predicted), self.y(case.ratio))
    }
}

/// Draws these cases, the farthest first.
pub(super) fn draw<B: DrawingBackend>(canvas: &Canvas<B>, cases: &[Foretold<'_>]) -> Drawn {
    let field = Field::of(canvas, cases);
    axes(canvas, &field)?;
    for case in cases {
        let color = if case.is_far() { COLORS[1] } else { COLORS[0] };
        let (x, y) = field.place(case);
        canvas.ring((x, y), 2.6, color)?;
    }
    names(canvas, &field, cases)
}

fn axes<B: DrawingBackend>(canvas: &Canvas<B>, field: &Field) -> Drawn {
    canvas.rectangle((field.left, field.y(FAR)), (field.right, field.y(FAR.recip())), BAND)?;
    for (value, name) in &field.across.marks {
        let x = field.x(*value);
        canvas.line(&[(x, field.top), (x, field.bottom)], GRID, 1.0)?;
        canvas.text(name, (x, field.bottom + 16.0), &Letters::small().anchor(HPos::Center))?;
    }
    for (value, name) in &field.up.marks {
        let y = field.y(*value);
        canvas.line(&[(field.left, y), (field.right, y)], GRID, 1.0)?;
        canvas.text(name, (field.left - 8.0, y), &Letters::small().anchor(HPos::Right))?;
    }
    canvas.line(&[(field.left, field.y(1.0)), (field.right, field.y(1.0))], PALE, 1.2)?;
    let corner = (field.left, field.bottom);
    canvas.line(&[(field.left, field.top), corner, (field.right, field.bottom)], INK, 1.2)?;
    let ink = Letters::small().color(INK);
    canvas.text("measured over predicted", (24.0, field.top - 20.0), &ink)?;
    let middle = 0.5 * (field.left + field.right);
    canvas.text("predicted", (middle, field.bottom + 40.0), &ink.anchor(HPos::Center))
}

/// The ids of the farthest, each beside its point where neither another id nor another point is in its way.
fn names<B: DrawingBackend>(canvas: &Canvas<B>, field: &Field, cases: &[Foretold<'_>]) -> Drawn {
    let letters = Letters::small().color(INK);
    let points: Vec<Place> = cases.iter().map(|case| field.place(case)).collect();
    let mut taken: Vec<Span> = Vec::new();
    for case in cases.iter().filter(|case| case.is_far()).take(NAMED) {
        let wide = canvas.extent(case.id, &letters)?.0;
        let (x, y) = field.place(case);
        let sides = [x + 8.0, x - 8.0 - wide].map(|left| Span { left, right: left + wide, y });
        let free = |side: &Span| {
            let is_inside = side.left > field.left && side.right < field.right;
            is_inside
                && !taken.iter().any(|other| side.meets(other))
                && !points.iter().any(|at| side.covers(*at))
        };
        if let Some(side) = sides.into_iter().find(free) {
            canvas.text(case.id, (side.left, y), &letters)?;
            taken.push(side);
        }
    }
    Ok(())
}

/// The place of a written id.
struct Span {
    left: f64,
    right: f64,
    y: f64,
}

impl Span {
    fn meets(&self, other: &Self) -> bool {
        self.left < other.right && other.left < self.right && (self.y - other.y).abs() < TALL
    }

    fn covers(&self, (x, y): Place) -> bool {
        (self.left - 3.0..self.right + 3.0).contains(&x) && (self.y - y).abs() < 0.6 * TALL
    }
}

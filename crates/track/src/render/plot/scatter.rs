//! Predictions against what was measured: a point a case, and a band in which a prediction was a good one.

use super::axis::{Scale, time_label, trimmed_number};
use super::canvas::{Anchor, Canvas, Color, INK, Letters, PALE, Place};
use super::chart::{COLORS, Frame, draw_grid};
use syscost_engine::study::standout::{FAR, PredictedCase};

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

/// Draws these cases, the farthest first.
pub(super) fn draw_scatter(canvas: &Canvas, cases: &[PredictedCase<'_>]) {
    let frame = plot_frame(canvas, cases);
    draw_axes(canvas, &frame);
    for case in cases {
        let color = if case.is_far() { COLORS[1] } else { COLORS[0] };
        canvas.draw_ring(place_of_case(&frame, case), 2.6, color);
    }
    draw_case_names(canvas, &frame, cases)
}

fn draw_axes(canvas: &Canvas, frame: &Frame) {
    canvas.fill_rectangle((frame.left, frame.y_of(FAR)), (frame.right, frame.y_of(FAR.recip())), BAND);
    draw_grid(canvas, frame);
    canvas.draw_line(&[(frame.left, frame.y_of(1.0)), (frame.right, frame.y_of(1.0))], PALE, 1.2);
    let ink = Letters::small_style().with_color(INK);
    canvas.draw_text("measured over predicted", (24.0, frame.top - 20.0), &ink);
    let middle = 0.5 * (frame.left + frame.right);
    canvas.draw_text("predicted", (middle, frame.bottom + 40.0), &ink.with_anchor(Anchor::Center))
}

/// The ids of the farthest, each beside its point where neither another id nor another point is in its way.
fn draw_case_names(canvas: &Canvas, frame: &Frame, cases: &[PredictedCase<'_>]) {
    let letters = Letters::small_style().with_color(INK);
    let points: Vec<Place> = cases.iter().map(|case| place_of_case(frame, case)).collect();
    let mut taken: Vec<Span> = Vec::new();
    for case in cases.iter().filter(|case| case.is_far()).take(NAMED) {
        let wide = canvas.text_size(case.id, &letters).0;
        let (x, y) = place_of_case(frame, case);
        let sides = [x + 8.0, x - 8.0 - wide].map(|left| Span { left, right: left + wide, y });
        let free = |side: &Span| {
            let is_inside = side.left > frame.left && side.right < frame.right;
            is_inside
                && !taken.iter().any(|other| side.is_overlapping(other))
                && !points.iter().any(|at| side.is_covering(*at))
        };
        if let Some(side) = sides.into_iter().find(free) {
            canvas.draw_text(case.id, (side.left, y), &letters);
            taken.push(side);
        }
    }
}

/// The place of a written id.
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

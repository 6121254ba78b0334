//! Panels below each other that share their horizontal axis, both axes from zero: an index over time, and the settings
//! that control it.

use super::axis::Scale;
use super::canvas::{Canvas, Drawn, GRID, INK, Letters, Place};
use super::chart::COLORS;
use plotters::backend::DrawingBackend;
use plotters::style::text_anchor::HPos;

/// One of the panels.
#[derive(Clone, Debug, Default)]
pub struct Panel {
    /// Label of its vertical axis, with the unit: "response, ms".
    pub axis: String,
    /// Its lines.
    pub lines: Vec<Line>,
    /// A value to be held, and its name.
    pub goal: Option<(f64, String)>,
}

/// A line of a panel. Lines of the same number in different panels have the same colour.
#[derive(Clone, Debug, Default)]
pub struct Line {
    /// Name in the legend; empty for none.
    pub title: String,
    /// Its points.
    pub points: Vec<(f64, f64)>,
    /// Whether it is drawn as steps, for a setting that keeps its value until the next point.
    pub keeps: bool,
}

/// Height of what lies above, between and below the panels.
const HEAD: f64 = 104.0;
const BETWEEN: f64 = 44.0;
const FOOT: f64 = 58.0;

struct Frame {
    left: f64,
    right: f64,
    top: f64,
    bottom: f64,
    across: Scale,
    up: Scale,
}

impl Frame {
    fn place(&self, (x, y): (f64, f64)) -> Place {
        let across = self.left + self.across.share(x) * (self.right - self.left);
        (across, self.bottom - self.up.share(y) * (self.bottom - self.top))
    }
}

pub(super) fn draw<B: DrawingBackend>(canvas: &Canvas<B>, panels: &[Panel], across: &str) -> Drawn {
    let legend = legend_width(canvas, panels)?;
    let tall = (canvas.size.1 - HEAD - FOOT - BETWEEN * panels.len().saturating_sub(1) as f64)
        / panels.len().max(1) as f64;
    for (number, panel) in panels.iter().enumerate() {
        let top = HEAD + (tall + BETWEEN) * number as f64;
        let places = || panels.iter().flat_map(|panel| &panel.lines).flat_map(|line| &line.points);
        let values = panel.lines.iter().flat_map(|line| &line.points).map(|place| place.1);
        let frame = Frame {
            left: 84.0,
            right: canvas.size.0 - 24.0 - legend,
            top,
            bottom: top + tall,
            across: Scale::from_zero(places().map(|place| place.0), 1.0),
            up: Scale::from_zero(values.chain(panel.goal.iter().map(|goal| goal.0)), 1.1),
        };
        axes(canvas, &frame, panel)?;
        lines(canvas, &frame, panel)?;
        if number + 1 == panels.len() {
            let middle = (0.5 * (frame.left + frame.right), frame.bottom + 40.0);
            canvas.text(across, middle, &Letters::small().color(INK).anchor(HPos::Center))?;
        }
    }
    legend_of(canvas, canvas.size.0 - 24.0 - legend, panels)
}

fn axes<B: DrawingBackend>(canvas: &Canvas<B>, frame: &Frame, panel: &Panel) -> Drawn {
    for (value, name) in &frame.across.marks {
        let (x, _) = frame.place((*value, 0.0));
        canvas.line(&[(x, frame.top), (x, frame.bottom)], GRID, 1.0)?;
        canvas.text(name, (x, frame.bottom + 14.0), &Letters::small().anchor(HPos::Center))?;
    }
    for (value, name) in &frame.up.marks {
        let (_, y) = frame.place((0.0, *value));
        canvas.line(&[(frame.left, y), (frame.right, y)], GRID, 1.0)?;
        canvas.text(name, (frame.left - 8.0, y), &Letters::small().anchor(HPos::Right))?;
    }
    let corner = (frame.left, frame.bottom);
    canvas.line(&[(frame.left, frame.top), corner, (frame.right, frame.bottom)], INK, 1.2)?;
    canvas.text(&panel.axis, (24.0, frame.top - 16.0), &Letters::small().color(INK))
}

fn lines<B: DrawingBackend>(canvas: &Canvas<B>, frame: &Frame, panel: &Panel) -> Drawn {
    for (number, line) in panel.lines.iter().enumerate() {
        let mut places: Vec<Place> = Vec::new();
        for point in &line.points {
            let (x, y) = frame.place(*point);
            places.extend(places.last().filter(|_| line.keeps).map(|before| (x, before.1)));
            places.push((x, y));
        }
        canvas.line(&places, COLORS[number % COLORS.len()], 1.5)?;
    }
    let Some((value, name)) = &panel.goal else { return Ok(()) };
    let (_, y) = frame.place((0.0, *value));
    canvas.dashed((frame.left, y), (frame.right, y), INK, 4.0)?;
    let letters = Letters::small().color(INK).anchor(HPos::Right).opaque();
    canvas.text(name, (frame.right - 4.0, y - 10.0), &letters)
}

/// The titles of the legend, from the panel that has the most.
fn titles(panels: &[Panel]) -> Vec<&str> {
    let named = |panel: &Panel| panel.lines.iter().filter(|line| !line.title.is_empty()).count();
    let fullest = panels.iter().max_by_key(|panel| named(panel));
    fullest.map_or_else(Vec::new, |panel| panel.lines.iter().map(|line| line.title.as_str()).collect())
}

fn legend_width<B: DrawingBackend>(canvas: &Canvas<B>, panels: &[Panel]) -> Drawn<f64> {
    let mut widest = 0.0_f64;
    for title in titles(panels) {
        widest = widest.max(canvas.extent(title, &Letters::small())?.0);
    }
    Ok(if widest == 0.0 { 0.0 } else { widest + 52.0 })
}

fn legend_of<B: DrawingBackend>(canvas: &Canvas<B>, right: f64, panels: &[Panel]) -> Drawn {
    for (number, title) in titles(panels).into_iter().enumerate().filter(|(_, title)| !title.is_empty()) {
        let (x, y) = (right + 20.0, HEAD + 10.0 + 21.0 * number as f64);
        canvas.line(&[(x, y), (x + 20.0, y)], COLORS[number % COLORS.len()], 1.5)?;
        canvas.text(title, (x + 26.0, y), &Letters::small().color(INK))?;
    }
    Ok(())
}

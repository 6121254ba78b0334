//! Figures of every two CPUs as a square: the darker the farther.

use super::canvas::{Anchor, Canvas, Color, INK, Letters};
use syscost_engine::record::Matrix;

/// From the smallest value to the largest: pale to dark in one hue.
const NEAR: (f64, f64, f64) = (236.0, 244.0, 250.0);
const FAR: (f64, f64, f64) = (3.0, 60.0, 110.0);
/// Up to this number of CPUs the squares show figures.
const WITH_FIGURES: usize = 16;
/// The largest side of a square, points.
const LARGEST: f64 = 96.0;
/// The most names along each side.
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
                    let letters = Letters::small_style().with_color(paper).with_anchor(Anchor::Center);
                    canvas.draw_text(&format!("{ns:.0}"), (x + 0.5 * side, y + 0.5 * side), &letters);
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
        canvas.draw_text(
            &format!("CPU {cpu}"),
            (left - 8.0, y + 0.5 * side),
            &Letters::small_style().with_anchor(Anchor::Right),
        );
        canvas.draw_text(
            &cpu.to_string(),
            (x + 0.5 * side, bottom + 14.0),
            &Letters::small_style().with_anchor(Anchor::Center),
        );
    }
}

/// The key of the colours.
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
    canvas.draw_text(&format!("{high:.1} ns"), (x + 26.0, top + 6.0), &Letters::small_style());
    canvas.draw_text(&format!("{low:.1} ns"), (x + 26.0, bottom - 6.0), &Letters::small_style())
}

fn heat_color(share: f64) -> Color {
    let mix = |near: f64, far: f64| (near + (far - near) * share.clamp(0.0, 1.0)).round() as u8;
    Color(mix(NEAR.0, FAR.0), mix(NEAR.1, FAR.1), mix(NEAR.2, FAR.2))
}

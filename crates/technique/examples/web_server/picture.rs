//! Four measures of two servers against time, as SVG.

use crate::Answer;
use crate::platforms::Row;
use plotters::backend::SVGBackend;
use plotters::chart::ChartBuilder;
use plotters::drawing::IntoDrawingArea;
use plotters::element::{PathElement, Text};
use plotters::style::{Color, IntoFont, RGBColor, WHITE};

pub const SIZE: (u32, u32) = (1600, 1000);
/// Colours that are distinguishable with colour blindness (Okabe and Ito).
pub const COLORS: [RGBColor; 4] =
    [RGBColor(0, 114, 178), RGBColor(213, 94, 0), RGBColor(0, 158, 115), RGBColor(204, 121, 167)];

/// A measure: its title, and its value in a row.
type Measure = (&'static str, fn(&Row) -> f64);

const MEASURES: [Measure; 4] = [
    ("network, MB/s", |row| row.network / 1e6),
    ("CPU of the server, % of one", |row| row.cpu),
    ("working set of the server, MiB", |row| row.resident / 1_048_576.0),
    ("page faults of the server, a second", |row| row.faults),
];

pub fn svg(servers: &[(&str, Vec<Row>)]) -> Answer<String> {
    drawn(|text| draw(text, servers))
}

/// A picture of this size, drawn on white.
pub fn drawn(draw: impl FnOnce(&mut String) -> Answer) -> Answer<String> {
    let mut text = String::new();
    draw(&mut text)?;
    Ok(text)
}

fn draw(text: &mut String, servers: &[(&str, Vec<Row>)]) -> Answer {
    let refused = |why: String| -> Box<dyn std::error::Error> { why.into() };
    let area = SVGBackend::with_string(text, SIZE).into_drawing_area();
    area.fill(&WHITE).map_err(|e| refused(e.to_string()))?;
    let rows = || servers.iter().flat_map(|(_, rows)| rows);
    let end = rows().map(|row| row.seconds).fold(1.0, f64::max);
    for (place, (title, value)) in area.split_evenly((2, 2)).iter().zip(MEASURES) {
        let top = 1.1 * rows().map(value).fold(1e-9, f64::max);
        let mut chart = ChartBuilder::on(place)
            .caption(title, ("sans-serif", 24))
            .margin(16)
            .x_label_area_size(44)
            .y_label_area_size(72)
            .build_cartesian_2d(0.0..end, 0.0..top)
            .map_err(|e| refused(e.to_string()))?;
        chart
            .configure_mesh()
            .light_line_style(WHITE)
            .label_style(("sans-serif", 18))
            .x_desc("seconds; ten clients more each second up to 250")
            .draw()
            .map_err(|e| refused(e.to_string()))?;
        for (at, ((name, rows), color)) in servers.iter().zip(COLORS).enumerate() {
            let points: Vec<_> = rows.iter().map(|row| (row.seconds, value(row))).collect();
            let line = PathElement::new(points, color.stroke_width(3));
            chart.draw_series([line]).map_err(|e| refused(e.to_string()))?;
            let style = ("sans-serif", 20).into_font().color(&color);
            let name = Text::new((*name).to_owned(), (0.03 * end, top * (0.95 - 0.08 * at as f64)), style);
            chart.draw_series([name]).map_err(|e| refused(e.to_string()))?;
        }
    }
    area.present().map_err(|e| refused(e.to_string()))
}

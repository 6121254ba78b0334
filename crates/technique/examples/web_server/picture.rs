//! Pictures as SVG: four measures of two servers over time; and response time over the probe's rate, with a line for each
//! rate of connections.

use crate::Answer;
use crate::platforms::Row;
use crate::rates::{AtRate, PROBES};
use plotters::backend::SVGBackend;
use plotters::chart::ChartBuilder;
use plotters::drawing::IntoDrawingArea;
use plotters::element::{Circle, PathElement, Text};
use plotters::style::{Color, IntoFont, RGBColor, WHITE};

const SIZE: (u32, u32) = (1600, 1000);
/// Colours that are distinguishable with colour blindness (Okabe and Ito).
const COLORS: [RGBColor; 4] =
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
fn drawn(draw: impl FnOnce(&mut String) -> Answer) -> Answer<String> {
    let mut text = String::new();
    draw(&mut text)?;
    Ok(text)
}

fn draw(text: &mut String, servers: &[(&str, Vec<Row>)]) -> Answer {
    let area = SVGBackend::with_string(text, SIZE).into_drawing_area();
    area.fill(&WHITE)?;
    let rows = || servers.iter().flat_map(|(_, rows)| rows);
    let end = rows().map(|row| row.seconds).fold(1.0, f64::max);
    for (place, (title, value)) in area.split_evenly((2, 2)).iter().zip(MEASURES) {
        let top = 1.1 * rows().map(value).fold(1e-9, f64::max);
        let mut chart = ChartBuilder::on(place)
            .caption(title, ("sans-serif", 24))
            .margin(16)
            .x_label_area_size(44)
            .y_label_area_size(72)
            .build_cartesian_2d(0.0..end, 0.0..top)?;
        chart
            .configure_mesh()
            .light_line_style(WHITE)
            .label_style(("sans-serif", 18))
            .x_desc("seconds; ten clients more each second up to 250")
            .draw()?;
        for (at, ((name, rows), color)) in servers.iter().zip(COLORS).enumerate() {
            let points: Vec<_> = rows.iter().map(|row| (row.seconds, value(row))).collect();
            let line = PathElement::new(points, color.stroke_width(3));
            chart.draw_series([line])?;
            let style = ("sans-serif", 20).into_font().color(&color);
            let name = Text::new((*name).to_owned(), (0.03 * end, top * (0.95 - 0.08 * at as f64)), style);
            chart.draw_series([name])?;
        }
    }
    Ok(area.present()?)
}

pub fn rates_svg(all: &[AtRate]) -> Answer<String> {
    drawn(|text| draw_rates(text, all))
}

fn draw_rates(text: &mut String, all: &[AtRate]) -> Answer {
    let area = SVGBackend::with_string(text, SIZE).into_drawing_area();
    area.fill(&WHITE)?;
    let ends = all.iter().flat_map(|at| (0..PROBES.len()).map(|probe| at.response(probe).high));
    let top = 1.3 * ends.fold(1e-3, f64::max);
    let right = PROBES.len() as f64 - 0.5;
    let mut chart = ChartBuilder::on(&area)
        .caption("mean response time of Apache prefork, ms, with its 95 % interval", ("sans-serif", 28))
        .margin(20)
        .x_label_area_size(56)
        .y_label_area_size(90)
        .build_cartesian_2d(-0.5..right, 0.0..top)?;
    let name = |x: &f64| match PROBES.get(x.round() as usize) {
        Some(0) if (x - x.round()).abs() < 0.01 => "no probe".to_owned(),
        Some(rate) if (x - x.round()).abs() < 0.01 => rate.to_string(),
        _ => String::new(),
    };
    chart
        .configure_mesh()
        .light_line_style(WHITE)
        .label_style(("sans-serif", 22))
        .x_labels(2 * PROBES.len() + 1)
        .x_label_formatter(&name)
        .x_desc("blocks a second of the probe")
        .draw()?;
    for (place, (at, color)) in all.iter().zip(COLORS.iter().cycle()).enumerate() {
        let found: Vec<_> = (0..PROBES.len()).map(|probe| (probe as f64, at.response(probe))).collect();
        let line = found.iter().map(|(x, within)| (*x, within.estimate)).collect::<Vec<_>>();
        chart.draw_series([PathElement::new(line.clone(), color.stroke_width(3))])?;
        let bars = found.iter().map(|(x, within)| {
            PathElement::new(vec![(*x, within.low), (*x, within.high)], color.stroke_width(2))
        });
        chart.draw_series(bars)?;
        let points = line.into_iter().map(|point| Circle::new(point, 6, color.filled()));
        chart.draw_series(points)?;
        let style = ("sans-serif", 24).into_font().color(color);
        let words = format!("{} connections a second", at.connections);
        let words = Text::new(words, (-0.4, top * (0.97 - 0.06 * place as f64)), style);
        chart.draw_series([words])?;
    }
    Ok(area.present()?)
}

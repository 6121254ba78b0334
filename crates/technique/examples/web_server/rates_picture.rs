//! Response time against the probe's rate, a line for each rate of connections, as SVG.

use crate::Answer;
use crate::picture::{COLORS, SIZE, drawn};
use crate::rates::{AtRate, PROBES};
use plotters::backend::SVGBackend;
use plotters::chart::ChartBuilder;
use plotters::drawing::IntoDrawingArea;
use plotters::element::{Circle, PathElement, Text};
use plotters::style::{Color, IntoFont, WHITE};

pub fn svg(all: &[AtRate]) -> Answer<String> {
    drawn(|text| draw(text, all))
}

fn draw(text: &mut String, all: &[AtRate]) -> Answer {
    let refused = |why: String| -> Box<dyn std::error::Error> { why.into() };
    let area = SVGBackend::with_string(text, SIZE).into_drawing_area();
    area.fill(&WHITE).map_err(|e| refused(e.to_string()))?;
    let ends = all.iter().flat_map(|at| (0..PROBES.len()).map(|probe| at.response(probe).high));
    let top = 1.3 * ends.fold(1e-3, f64::max);
    let right = PROBES.len() as f64 - 0.5;
    let mut chart = ChartBuilder::on(&area)
        .caption("mean response time of Apache prefork, ms, with its 95 % interval", ("sans-serif", 28))
        .margin(20)
        .x_label_area_size(56)
        .y_label_area_size(90)
        .build_cartesian_2d(-0.5..right, 0.0..top)
        .map_err(|e| refused(e.to_string()))?;
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
        .draw()
        .map_err(|e| refused(e.to_string()))?;
    for (place, (at, color)) in all.iter().zip(COLORS.iter().cycle()).enumerate() {
        let found: Vec<_> = (0..PROBES.len()).map(|probe| (probe as f64, at.response(probe))).collect();
        let line = found.iter().map(|(x, within)| (*x, within.estimate)).collect::<Vec<_>>();
        chart
            .draw_series([PathElement::new(line.clone(), color.stroke_width(3))])
            .map_err(|e| refused(e.to_string()))?;
        let bars = found.iter().map(|(x, within)| {
            PathElement::new(vec![(*x, within.low), (*x, within.high)], color.stroke_width(2))
        });
        chart.draw_series(bars).map_err(|e| refused(e.to_string()))?;
        let points = line.into_iter().map(|point| Circle::new(point, 6, color.filled()));
        chart.draw_series(points).map_err(|e| refused(e.to_string()))?;
        let style = ("sans-serif", 24).into_font().color(color);
        let words = format!("{} connections a second", at.connections);
        let words = Text::new(words, (-0.4, top * (0.97 - 0.06 * place as f64)), style);
        chart.draw_series([words]).map_err(|e| refused(e.to_string()))?;
    }
    area.present().map_err(|e| refused(e.to_string()))
}

//! Panels below each other with a common horizontal axis, both axes from zero, as SVG. They show an index over time, and the
//! settings that control it.

use plotters::backend::SVGBackend;
use plotters::chart::{ChartBuilder, SeriesLabelPosition};
use plotters::coord::Shift;
use plotters::drawing::{DrawingArea, IntoDrawingArea};
use plotters::element::{DashedPathElement, PathElement, Text};
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{BLACK, Color, IntoFont, RGBColor, TextStyle, WHITE};
use std::path::Path;
use syscost_technique::{Error, Result};

/// One of the panels.
pub struct Panel {
    /// Label of its vertical axis, with the unit: "response, ms".
    pub axis: String,
    /// Its lines.
    pub lines: Vec<Line>,
    /// A value that the controller must hold, and its name.
    pub goal: Option<(f64, String)>,
}

/// A line of a panel. Lines with the same index in different panels have the same colour.
#[derive(Default)]
pub struct Line {
    /// Name in the legend; empty for none.
    pub title: String,
    /// Its points.
    pub points: Vec<(f64, f64)>,
    /// Whether it is drawn as steps, for a setting that keeps its value until the next point.
    pub keeps: bool,
}

const SIZE: (u32, u32) = (960, 560);
/// Colours that are distinguishable with colour blindness (Okabe and Ito).
const COLORS: [RGBColor; 4] =
    [RGBColor(0, 114, 178), RGBColor(213, 94, 0), RGBColor(0, 158, 115), RGBColor(204, 121, 167)];
const FONT: &str = "sans-serif";

type Drawn = std::result::Result<(), String>;

/// Writes `NAME.svg` into a directory: a title, a line below it, and the panels over seconds.
///
/// # Errors
///
/// An error where the picture cannot be drawn or a file cannot be written.
pub fn write(directory: &str, name: &str, titles: [&str; 2], panels: &[Panel]) -> Result<()> {
    let refused = |why: String| Error::Missing(format!("the picture {name} could not be drawn: {why}"));
    let mut text = String::new();
    draw(&SVGBackend::with_string(&mut text, SIZE).into_drawing_area(), titles, panels).map_err(refused)?;
    let path = Path::new(directory).join(format!("{name}.svg"));
    std::fs::write(&path, text).map_err(|e| Error::file(path, "writing", e))
}

/// Draws the titles and all panels.
fn draw(area: &DrawingArea<SVGBackend<'_>, Shift>, [title, subtitle]: [&str; 2], panels: &[Panel]) -> Drawn {
    area.fill(&WHITE).map_err(|e| e.to_string())?;
    let head =
        area.margin(12, 0, 0, 0).titled(title, (FONT, 19)).and_then(|area| area.titled(subtitle, (FONT, 13)));
    let places = panels.iter().flat_map(|panel| &panel.lines).flat_map(|line| &line.points);
    let end = places.map(|place| place.0).fold(f64::MIN_POSITIVE, f64::max);
    for (number, place) in head.map_err(|e| e.to_string())?.split_evenly((panels.len(), 1)).iter().enumerate()
    {
        let across = if number + 1 == panels.len() { "seconds" } else { "" };
        draw_panel(place, &panels[number], end, across)?;
    }
    area.present().map_err(|e| e.to_string())
}

fn draw_panel(place: &DrawingArea<SVGBackend<'_>, Shift>, panel: &Panel, end: f64, across: &str) -> Drawn {
    let refused = |e: &dyn std::error::Error| e.to_string();
    let values = panel.lines.iter().flat_map(|line| &line.points).map(|place| place.1);
    let highest = values.chain(panel.goal.iter().map(|goal| goal.0)).fold(f64::MIN_POSITIVE, f64::max);
    let small = (FONT, 13).into_font();
    let mut chart = ChartBuilder::on(place)
        .margin(12)
        .x_label_area_size(if across.is_empty() { 20 } else { 40 })
        .y_label_area_size(72)
        .build_cartesian_2d(0.0..end, 0.0..1.1 * highest)
        .map_err(|e| refused(&e))?;
    chart
        .configure_mesh()
        .light_line_style(WHITE)
        .y_labels(6)
        .label_style(small.clone())
        .x_desc(across)
        .y_desc(&panel.axis)
        .draw()
        .map_err(|e| refused(&e))?;
    for (line, color) in panel.lines.iter().zip(COLORS.iter().cycle()) {
        let stroke = color.stroke_width(2);
        let drawn = chart.draw_series([PathElement::new(places(line), stroke)]).map_err(|e| refused(&e))?;
        if !line.title.is_empty() {
            let sign = move |(x, y)| PathElement::new(vec![(x, y), (x + 20, y)], stroke);
            drawn.label(&line.title).legend(sign);
        }
    }
    if let Some((value, name)) = &panel.goal {
        let (ends, ink) = ([(0.0, *value), (end, *value)], BLACK.stroke_width(1));
        let goal = DashedPathElement::new(ends, 4, 4, ink);
        chart.draw_series([goal]).map_err(|e| refused(&e))?;
        let style = TextStyle::from(small.clone()).pos(Pos::new(HPos::Right, VPos::Bottom));
        chart.draw_series([Text::new(name.clone(), (end, *value), style)]).map_err(|e| refused(&e))?;
    }
    let mut legend = chart.configure_series_labels();
    let legend = legend.position(SeriesLabelPosition::UpperRight).label_font(small);
    legend.background_style(WHITE.mix(0.8)).draw().map_err(|e| refused(&e))
}

/// The corners of a line. For a setting that keeps its value, a corner with the earlier value at the later time is added
/// between two points.
fn places(line: &Line) -> Vec<(f64, f64)> {
    let mut places: Vec<(f64, f64)> = Vec::new();
    for &(x, y) in &line.points {
        places.extend(places.last().filter(|_| line.keeps).map(|before| (x, before.1)));
        places.push((x, y));
    }
    places
}

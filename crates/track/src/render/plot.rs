//! Curves and maps as pictures: SVG for a page, PNG for everything else.
//!
//! `plotters` draws the shapes. The layout is computed here, because its axes have neither kibibytes nor gaps between
//! labels. The font comes with the crate, so that a machine without fonts draws the same picture.

mod axis;
mod canvas;
mod chart;
mod heat_map;
mod overview;
mod scatter;

use canvas::{Canvas, Drawn, Letters};
use overview::Overview;
use plotters::backend::{BitMapBackend, DrawingBackend, SVGBackend};
use plotters::coord::Shift;
use plotters::drawing::{DrawingArea, IntoDrawingArea};
use syscost_analysis::study::paper::Figure;
use syscost_engine::record::{CurveRecord, Headline, Matrix, Record};
use syscost_engine::study::standout::{PredictedCase, find_standouts};
use syscost_platform::error::{Error, Result};

/// Width and height in the points of an SVG, but for the overview.
const SIZE: (u32, u32) = (960, 560);
/// Pixels of a PNG for each point of [`SIZE`], so that it is sharp on a screen with a high resolution.
const PIXELS: u32 = 2;
/// A PNG is drawn this many times as large and averaged down, which gives smooth edges.
const FINER: u32 = 2;

/// A picture: curves, or a map.
pub struct Picture<'a> {
    /// Name of a file: `chase-latency`.
    pub name: String,
    title: String,
    subtitle: String,
    content: Content<'a>,
}

enum Content<'a> {
    Curves(Vec<&'a CurveRecord>),
    Map(&'a Matrix),
    Predictions(Vec<PredictedCase<'a>>),
    Overview(Box<Overview<'a>>),
}

/// A whole run, of which this many operations were measured at least, has an overview.
const FEWEST: usize = 6;

/// The pictures of a run as a whole: its overview, and its predictions; of parts of a run there is neither.
pub fn run_pictures<'a>(record: &'a Record, headlines: &[(String, Headline)]) -> Vec<Picture<'a>> {
    let rows = overview::overview_rows(record, headlines);
    if rows.iter().map(Vec::len).sum::<usize>() < FEWEST {
        return Vec::new();
    }
    let predicted = find_standouts(record).predicted;
    let curves = record.groups.iter().flat_map(|group| &group.curves);
    let curve = curves.into_iter().find(|curve| !curve.levels.is_empty());
    let page = Overview { rows, curve, predicted: predicted.clone() };
    let picture = |name: &str, title: &str, content| Picture {
        name: name.into(),
        title: title.into(),
        subtitle: subtitle(record),
        content,
    };
    vec![
        picture("overview", "What this machine charges", Content::Overview(Box::new(page))),
        picture("predictions", "What was measured over what was predicted", Content::Predictions(predicted)),
    ]
}

/// The pictures of a record: one for the curves of each chart, and one for each map.
pub fn record_pictures(record: &Record) -> Vec<Picture<'_>> {
    let subtitle = subtitle(record);
    let mut pictures: Vec<Picture<'_>> = Vec::new();
    for group in &record.groups {
        for curve in &group.curves {
            let name = format!("{}-{}", group.name, curve.chart.replace(' ', "-"));
            if let Some(Content::Curves(curves)) =
                pictures.iter_mut().find(|p| p.name == name).map(|p| &mut p.content)
            {
                curves.push(curve);
                continue;
            }
            // The name of a chart tells it from the others of its group: `bandwidth by file`.
            let drawn = curve.chart.split(" by ").next().unwrap_or_default();
            let title = format!("{}: {drawn} against {}", group.name, curve.parameter);
            let content = Content::Curves(vec![curve]);
            pictures.push(Picture { name, title, subtitle: subtitle.clone(), content });
        }
    }
    let maps = record.cases().filter_map(|(_, case)| {
        let content = Content::Map(case.measured()?.matrix.as_ref()?);
        let title = format!("{}: ns between every two CPUs", case.id);
        Some(Picture { name: case.id.replace('/', "-"), title, subtitle: subtitle.clone(), content })
    });
    pictures.extend(maps);
    pictures
}

/// The picture of a figure that was drawn from a record.
pub fn figure_picture<'a>(figure: &'a Figure, record: &Record) -> Picture<'a> {
    let content = Content::Curves(figure.curves.iter().collect());
    let (name, title) = (figure.name.to_owned(), figure.title.to_owned());
    Picture { name, title, subtitle: subtitle(record), content }
}

/// The machine and its kernel, as far as they are known.
fn subtitle(record: &Record) -> String {
    let fingerprint = &record.fingerprint;
    let kernel = fingerprint.kernel_release.as_ref().map(|release| format!("Linux {release}"));
    let cpus = fingerprint.cpu_count.map(|count| format!("{count} CPUs"));
    let guest = fingerprint.hypervisor.as_ref().map(|_| "a guest".to_owned());
    let parts = [fingerprint.cpu_model.clone(), cpus, guest, kernel, Some(record.run.clone())];
    parts.into_iter().flatten().collect::<Vec<_>>().join(" · ")
}

impl Picture<'_> {
    /// As SVG.
    ///
    /// # Errors
    /// It could not be drawn.
    pub fn to_svg(&self) -> Result<String> {
        let mut text = String::new();
        self.draw(SVGBackend::with_string(&mut text, self.size_in_points()).into_drawing_area(), 1)?;
        Ok(text)
    }

    /// As PNG.
    ///
    /// # Errors
    /// It could not be drawn.
    pub fn to_png(&self) -> Result<Vec<u8>> {
        let (wide, tall) =
            (self.size_in_points().0 * PIXELS * FINER, self.size_in_points().1 * PIXELS * FINER);
        let mut pixels = vec![255; (wide * tall * 3) as usize];
        let area = BitMapBackend::with_buffer(&mut pixels, (wide, tall)).into_drawing_area();
        self.draw(area, PIXELS * FINER)?;
        encode_png(&average_down(&pixels, wide as usize), wide / FINER, tall / FINER)
            .map_err(|e| self.drawing_error(&e.to_string()))
    }

    /// Width and height in the points of an SVG.
    fn size_in_points(&self) -> (u32, u32) {
        if matches!(self.content, Content::Overview(_)) { overview::SIZE } else { SIZE }
    }

    fn draw<B: DrawingBackend>(&self, area: DrawingArea<B, Shift>, times: u32) -> Result<()> {
        let size = (f64::from(self.size_in_points().0), f64::from(self.size_in_points().1));
        self.draw_on(&Canvas::new(area, size, f64::from(times))).map_err(|why| self.drawing_error(&why))
    }

    fn draw_on<B: DrawingBackend>(&self, canvas: &Canvas<B>) -> Drawn {
        canvas.prepare()?;
        canvas.draw_text(&self.title, (24.0, 26.0), &Letters::title_style())?;
        canvas.draw_text(&self.subtitle, (24.0, 48.0), &Letters::small_style())?;
        match &self.content {
            Content::Curves(curves) => chart::draw_chart(canvas, curves)?,
            Content::Map(matrix) => heat_map::draw_heat_map(canvas, matrix)?,
            Content::Predictions(cases) => scatter::draw_scatter(canvas, cases)?,
            Content::Overview(page) => overview::draw_overview(canvas, page)?,
        }
        canvas.finish()
    }

    fn drawing_error(&self, why: &str) -> Error {
        Error::Missing(format!("the picture {} could not be drawn: {why}", self.name))
    }
}

/// Scales down by [`FINER`]: each pixel is the mean of a square.
fn average_down(pixels: &[u8], wide: usize) -> Vec<u8> {
    let (finer, row) = (FINER as usize, wide * 3);
    let mut mean = Vec::with_capacity(pixels.len() / (finer * finer));
    for rows in pixels.chunks_exact(row * finer) {
        for x in 0..wide / finer {
            for color in 0..3 {
                let at = |i: usize| u32::from(rows[(i / finer) * row + (x * finer + i % finer) * 3 + color]);
                mean.push(((0..finer * finer).map(at).sum::<u32>() / (FINER * FINER)) as u8);
            }
        }
    }
    mean
}

fn encode_png(pixels: &[u8], width: u32, height: u32) -> std::result::Result<Vec<u8>, png::EncodingError> {
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, width, height);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_depth(png::BitDepth::Eight);
    let mut writer = encoder.write_header()?;
    writer.write_image_data(pixels)?;
    writer.finish()?;
    Ok(bytes)
}

#[cfg(test)]
mod tests;

//! Curves and maps as pictures, in SVG.

mod axis;
mod canvas;
mod chart;
mod overview;

use canvas::{Canvas, SMALL, TITLE, svg_of};
use overview::Overview;
use syscost_analysis::study::paper::Figure;
use syscost_engine::record::{CurveRecord, Headline, Matrix, Record};
use syscost_engine::study::standout::{PredictedCase, find_standouts};

/// Width and height in points, but for the overview.
const SIZE: (f64, f64) = (960.0, 560.0);

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
    pub fn to_svg(&self) -> String {
        let size = if matches!(self.content, Content::Overview(_)) { overview::SIZE } else { SIZE };
        svg_of(size, |canvas| self.draw(canvas))
    }

    fn draw(&self, canvas: &Canvas<'_>) {
        canvas.draw_text(&self.title, (24.0, 26.0), TITLE);
        canvas.draw_text(&self.subtitle, (24.0, 48.0), SMALL);
        match &self.content {
            Content::Curves(curves) => chart::draw_chart(canvas, curves),
            Content::Map(matrix) => chart::draw_heat_map(canvas, matrix),
            Content::Predictions(cases) => chart::draw_scatter(canvas, cases),
            Content::Overview(page) => overview::draw_overview(canvas, page),
        }
    }
}

#[cfg(test)]
mod tests;

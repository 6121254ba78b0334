//! Lines, marks and text at places in points of an SVG, drawn on any backend.

use plotters::backend::DrawingBackend;
use plotters::coord::Shift;
use plotters::drawing::DrawingArea;
use plotters::element::{PathElement, Polygon, Rectangle, Text};
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{Color, FontStyle, IntoFont, RGBColor, ShapeStyle, TextStyle, WHITE, register_font};
use std::fmt::Display;

pub(super) const INK: RGBColor = RGBColor(40, 40, 40);
pub(super) const PALE: RGBColor = RGBColor(105, 105, 105);
pub(super) const GRID: RGBColor = RGBColor(228, 228, 228);
const FONT: &str = "sans-serif";

/// The result of drawing; the error is a message of the backend.
pub(super) type Drawn<T = ()> = std::result::Result<T, String>;

/// Distance from the left and from the top.
pub(super) type Place = (f64, f64);

/// Size, colour and anchor of a text; vertically the anchor is its middle.
#[derive(Clone, Copy)]
pub(super) struct Letters {
    size: f64,
    color: RGBColor,
    anchor: HPos,
    /// Whether the background is filled, so that lines do not cross the text.
    is_opaque: bool,
}

impl Letters {
    pub(super) fn title_style() -> Self {
        Self { size: 19.0, color: INK, anchor: HPos::Left, is_opaque: false }
    }

    pub(super) fn small_style() -> Self {
        Self { size: 13.0, color: PALE, ..Self::title_style() }
    }

    pub(super) fn with_color(self, color: RGBColor) -> Self {
        Self { color, ..self }
    }

    pub(super) fn with_anchor(self, anchor: HPos) -> Self {
        Self { anchor, ..self }
    }

    pub(super) fn with_background(self) -> Self {
        Self { is_opaque: true, ..self }
    }
}

/// The shapes that tell curves apart where their colours do not.
#[derive(Clone, Copy)]
pub(super) enum Mark {
    Circle,
    Square,
    Diamond,
    Triangle,
}

pub(super) struct Canvas<B: DrawingBackend> {
    area: DrawingArea<B, Shift>,
    times: f64,
    /// Its upper left corner on the area.
    origin: Place,
    /// Width and height.
    pub(super) size: Place,
}

impl<B: DrawingBackend> Canvas<B> {
    /// A canvas of this size on an area that is `times` as large.
    pub(super) fn new(area: DrawingArea<B, Shift>, size: Place, times: f64) -> Self {
        Self { area, times, origin: (0.0, 0.0), size }
    }

    /// A part of this canvas, with places of its own.
    pub(super) fn sub_canvas(&self, (x, y): Place, size: Place) -> Self {
        let origin = (self.origin.0 + x, self.origin.1 + y);
        Self { area: self.area.clone(), times: self.times, origin, size }
    }

    pub(super) fn prepare(&self) -> Drawn {
        register_font(FONT, FontStyle::Normal, ttf_noto_sans::REGULAR)
            .map_err(|_| "the letters that come with the crate are no font".to_owned())?;
        self.area.fill(&WHITE).map_err(error_text)
    }

    pub(super) fn finish(&self) -> Drawn {
        self.area.present().map_err(error_text)
    }

    pub(super) fn draw_line(&self, places: &[Place], color: RGBColor, width: f64) -> Drawn {
        let path: Vec<_> = places.iter().map(|place| self.to_pixel(*place)).collect();
        self.area.draw(&PathElement::new(path, self.stroke_style(color, width))).map_err(error_text)
    }

    /// A straight line with gaps.
    pub(super) fn draw_dashed_line(&self, from: Place, to: Place, color: RGBColor, dash: f64) -> Drawn {
        let length = (to.0 - from.0).hypot(to.1 - from.1);
        let at = |along: f64| {
            let share = (along / length.max(f64::MIN_POSITIVE)).min(1.0);
            (from.0 + (to.0 - from.0) * share, from.1 + (to.1 - from.1) * share)
        };
        let dashes = (length / (2.0 * dash)).ceil() as usize;
        (0..dashes)
            .map(|i| 2.0 * dash * i as f64)
            .try_for_each(|along| self.draw_line(&[at(along), at(along + dash)], color, 1.2))
    }

    pub(super) fn fill_rectangle(&self, from: Place, to: Place, color: RGBColor) -> Drawn {
        let corners = [self.to_pixel(from), self.to_pixel(to)];
        self.area.draw(&Rectangle::new(corners, color.filled())).map_err(error_text)
    }

    /// A ring: a circle with nothing in it.
    pub(super) fn draw_ring(&self, (x, y): Place, radius: f64, color: RGBColor) -> Drawn {
        let turn = |i: u32| f64::from(i) / 24.0 * std::f64::consts::TAU;
        let round: Vec<Place> =
            (0..=24).map(|i| (x + radius * turn(i).cos(), y + radius * turn(i).sin())).collect();
        self.draw_line(&round, color, 1.4)
    }

    pub(super) fn draw_mark(&self, mark: Mark, (x, y): Place, radius: f64, color: RGBColor) -> Drawn {
        let corners = |count: usize, turned: f64, radius: f64| {
            let turn = move |i: usize| (turned + i as f64 / count as f64) * std::f64::consts::TAU;
            (0..count).map(move |i| (x + radius * turn(i).cos(), y + radius * turn(i).sin()))
        };
        let places: Vec<Place> = match mark {
            Mark::Circle => corners(24, 0.0, radius).collect(),
            Mark::Square => corners(4, 0.125, 1.25 * radius).collect(),
            Mark::Diamond => corners(4, 0.0, 1.35 * radius).collect(),
            Mark::Triangle => corners(3, 0.75, 1.4 * radius).collect(),
        };
        let pixels: Vec<_> = places.into_iter().map(|place| self.to_pixel(place)).collect();
        self.area.draw(&Polygon::new(pixels, color.filled())).map_err(error_text)
    }

    pub(super) fn draw_text(&self, words: &str, place: Place, letters: &Letters) -> Drawn {
        let style = self.text_style(letters);
        if letters.is_opaque {
            let (wide, tall) = self.text_size(words, letters)?;
            let left = match letters.anchor {
                HPos::Left => place.0,
                HPos::Center => place.0 - 0.5 * wide,
                HPos::Right => place.0 - wide,
            };
            let upper = (left - 2.0, place.1 - 0.5 * tall);
            self.fill_rectangle(upper, (left + wide + 2.0, place.1 + 0.5 * tall), WHITE)?;
        }
        self.area.draw(&Text::new(words.to_owned(), self.to_pixel(place), style)).map_err(error_text)
    }

    /// Width and height of a text.
    pub(super) fn text_size(&self, words: &str, letters: &Letters) -> Drawn<Place> {
        let size = self.area.estimate_text_size(words, &self.text_style(letters)).map_err(error_text)?;
        Ok((f64::from(size.0) / self.times, f64::from(size.1) / self.times))
    }

    fn text_style<'l>(&self, letters: &'l Letters) -> TextStyle<'l> {
        let font = (FONT, letters.size * self.times).into_font();
        TextStyle::from(font).color(&letters.color).pos(Pos::new(letters.anchor, VPos::Center))
    }

    fn stroke_style(&self, color: RGBColor, width: f64) -> ShapeStyle {
        color.stroke_width(((width * self.times).round() as u32).max(1))
    }

    fn to_pixel(&self, (x, y): Place) -> (i32, i32) {
        let pixels = |points: f64| (points * self.times).round() as i32;
        (pixels(self.origin.0 + x), pixels(self.origin.1 + y))
    }
}

fn error_text(error: impl Display) -> String {
    error.to_string()
}

//! A canvas that writes lines, marks and text as elements of an SVG.

use std::cell::RefCell;
use std::fmt::Write;
use syscost_analysis::render::foreign::escape_xml;

/// Red, green, blue.
#[derive(Clone, Copy)]
pub(super) struct Color(pub(super) u8, pub(super) u8, pub(super) u8);

pub(super) const INK: Color = Color(40, 40, 40);
pub(super) const PALE: Color = Color(105, 105, 105);
pub(super) const GRID: Color = Color(228, 228, 228);
const WHITE: Color = Color(255, 255, 255);
/// The mean width of a letter of a sans-serif font, as a share of the font's size. A browser may use another font.
const LETTER_WIDTH: f64 = 0.6;

/// A position: the distances from the left and from the top, points.
pub(super) type Place = (f64, f64);

/// The part of a text that lies at the text's position.
#[derive(Clone, Copy)]
pub(super) enum Anchor {
    Left,
    Center,
    Right,
}

/// Size, colour and anchor of a text. Vertically the middle of the text lies at its position.
#[derive(Clone, Copy)]
pub(super) struct Letters {
    pub(super) size: f64,
    pub(super) color: Color,
    pub(super) anchor: Anchor,
    /// Whether the background is filled, so that lines do not cross the text.
    pub(super) is_opaque: bool,
}

pub(super) const TITLE: Letters = Letters { size: 19.0, color: INK, anchor: Anchor::Left, is_opaque: false };
/// Small letters, pale or dark, of which the left end, the middle or the right end lies at their position.
pub(super) const SMALL: Letters = Letters { size: 12.0, color: PALE, ..TITLE };
pub(super) const SMALL_CENTER: Letters = Letters { anchor: Anchor::Center, ..SMALL };
pub(super) const SMALL_RIGHT: Letters = Letters { anchor: Anchor::Right, ..SMALL };
pub(super) const DARK: Letters = Letters { color: INK, ..SMALL };
pub(super) const DARK_CENTER: Letters = Letters { anchor: Anchor::Center, ..DARK };
pub(super) const DARK_RIGHT: Letters = Letters { anchor: Anchor::Right, ..DARK };

/// The shapes of points, which distinguish curves whose colours look alike.
#[derive(Clone, Copy)]
pub(super) enum Mark {
    Circle,
    Square,
    Diamond,
    Triangle,
}

pub(super) struct Canvas<'a> {
    elements: &'a RefCell<String>,
    /// Its upper left corner in the picture.
    origin: Place,
    /// Width and height.
    pub(super) size: Place,
}

/// The text of an SVG of this size, points, with the elements that `draw` adds.
pub(super) fn svg_of(size: Place, draw: impl FnOnce(&Canvas<'_>)) -> String {
    let elements = RefCell::new(String::new());
    let canvas = Canvas { elements: &elements, origin: (0.0, 0.0), size };
    canvas.fill_rectangle((0.0, 0.0), size, WHITE);
    draw(&canvas);
    let (wide, tall) = size;
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{wide}\" height=\"{tall}\" viewBox=\"0 0 {wide} {tall}\" \
         font-family=\"sans-serif\">\n{}</svg>\n",
        elements.into_inner()
    )
}

impl Canvas<'_> {
    /// A part of this canvas at `(x, y)`, with coordinates of its own.
    pub(super) fn sub_canvas(&self, (x, y): Place, size: Place) -> Self {
        Self { elements: self.elements, origin: (self.origin.0 + x, self.origin.1 + y), size }
    }

    fn add(&self, element: std::fmt::Arguments<'_>) {
        // Writing to a string does not fail.
        let _ = writeln!(self.elements.borrow_mut(), "{element}");
    }

    fn points(&self, places: &[Place]) -> String {
        let at = |(x, y): &Place| format!("{:.1},{:.1}", self.origin.0 + x, self.origin.1 + y);
        places.iter().map(at).collect::<Vec<_>>().join(" ")
    }

    pub(super) fn draw_line(&self, places: &[Place], color: Color, width: f64) {
        self.draw_path(places, color, width, "");
    }

    /// A straight line with gaps.
    pub(super) fn draw_dashed_line(&self, from: Place, to: Place, color: Color, dash: f64) {
        self.draw_path(&[from, to], color, 1.2, &format!(" stroke-dasharray=\"{dash}\""));
    }

    fn draw_path(&self, places: &[Place], color: Color, width: f64, more: &str) {
        let points = self.points(places);
        let color = hex(color);
        self.add(format_args!(
            "<polyline points=\"{points}\" fill=\"none\" stroke=\"{color}\" stroke-width=\"{width}\"{more}/>"
        ));
    }

    pub(super) fn fill_rectangle(&self, from: Place, to: Place, color: Color) {
        self.fill_polygon(&[from, (to.0, from.1), to, (from.0, to.1)], color);
    }

    fn fill_polygon(&self, places: &[Place], color: Color) {
        self.add(format_args!("<polygon points=\"{}\" fill=\"{}\"/>", self.points(places), hex(color)));
    }

    /// A circle that is not filled.
    pub(super) fn draw_ring(&self, (x, y): Place, radius: f64, color: Color) {
        let (x, y) = (self.origin.0 + x, self.origin.1 + y);
        let color = hex(color);
        self.add(format_args!(
            "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{radius}\" fill=\"none\" stroke=\"{color}\" stroke-width=\"1.4\"/>"
        ));
    }

    pub(super) fn draw_mark(&self, mark: Mark, (x, y): Place, radius: f64, color: Color) {
        let corners = |count: usize, turned: f64, radius: f64| -> Vec<Place> {
            let turn = move |i: usize| (turned + i as f64 / count as f64) * std::f64::consts::TAU;
            (0..count).map(move |i| (x + radius * turn(i).cos(), y + radius * turn(i).sin())).collect()
        };
        let places = match mark {
            Mark::Circle => corners(24, 0.0, radius),
            Mark::Square => corners(4, 0.125, 1.25 * radius),
            Mark::Diamond => corners(4, 0.0, 1.35 * radius),
            Mark::Triangle => corners(3, 0.75, 1.4 * radius),
        };
        self.fill_polygon(&places, color);
    }

    pub(super) fn draw_text(&self, words: &str, place: Place, letters: Letters) {
        let (wide, tall) = self.text_size(words, letters);
        let (anchor, left) = match letters.anchor {
            Anchor::Left => ("start", place.0),
            Anchor::Center => ("middle", place.0 - 0.5 * wide),
            Anchor::Right => ("end", place.0 - wide),
        };
        if letters.is_opaque {
            let upper = (left - 2.0, place.1 - 0.5 * tall);
            self.fill_rectangle(upper, (left + wide + 2.0, place.1 + 0.5 * tall), WHITE);
        }
        let (x, y) = (self.origin.0 + place.0, self.origin.1 + place.1);
        let (size, color, words) = (letters.size, hex(letters.color), escape_xml(words));
        self.add(format_args!(
            "<text x=\"{x:.1}\" y=\"{y:.1}\" font-size=\"{size}\" fill=\"{color}\" text-anchor=\"{anchor}\" \
             dominant-baseline=\"central\">{words}</text>"
        ));
    }

    /// The approximate width and height of a text.
    pub(super) fn text_size(&self, words: &str, letters: Letters) -> Place {
        (LETTER_WIDTH * letters.size * words.chars().count() as f64, 1.2 * letters.size)
    }
}

fn hex(Color(red, green, blue): Color) -> String {
    format!("#{red:02x}{green:02x}{blue:02x}")
}

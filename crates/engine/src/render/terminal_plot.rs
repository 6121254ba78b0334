//! Draws a curve in a terminal: as eight lines of dots with its levels marked, or as one line of blocks.

use crate::record::quantity::{format_amount, format_size};
use crate::record::{CurveRecord, Matrix, Point};

/// Lines of a plot, without its axis.
pub const ROWS: usize = 8;
/// The most columns of a plot.
pub const WIDEST: usize = 100;
/// Characters for a value on one line, from the lowest to the highest.
const BLOCKS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
/// [`BLOCKS`] for a terminal with ASCII only.
const PLAIN: [char; 8] = ['_', '.', '-', '=', '+', '*', '#', '@'];

/// The dots in one character of a plot: the number of their columns and rows.
pub struct Ink {
    pub across: usize,
    pub down: usize,
    is_ascii: bool,
}

pub const BRAILLE: Ink = Ink { across: 2, down: 4, is_ascii: false };
pub const STARS: Ink = Ink { across: 1, down: 1, is_ascii: true };

/// Formats a value in the unit of the curve.
fn format_value(curve: &CurveRecord, value: f64) -> String {
    let unit = if curve.unit == "ns" { "" } else { &curve.unit };
    format!("{} {unit}", format_amount(value, &curve.unit)).trim_end().to_owned()
}

/// Formats a parameter of the curve: a size or a number.
pub fn format_parameter(curve: &CurveRecord, at: u64) -> String {
    if curve.bytes { format_size(at) } else { at.to_string() }
}

/// The base-2 logarithms of parameters and values. Zero has no logarithm and is placed one step left of the smallest size.
pub fn logarithmic_points(points: &[Point]) -> Vec<(f64, f64)> {
    let least = points.iter().map(|p| p.at).filter(|&at| at > 0).min().unwrap_or(1) as f64;
    let x = |at: u64| if at == 0 { least.log2() - 1.0 } else { (at as f64).log2() };
    points.iter().map(|p| (x(p.at), p.value.estimate.max(f64::MIN_POSITIVE).log2())).collect()
}

/// The curve on one line: `random order ▁▁▂▂▅█ 1.090 ns at 1 KiB, 272.3 ns at 128 MiB`.
pub fn curve_line(curve: &CurveRecord, is_ascii: bool) -> String {
    let marks = if is_ascii { PLAIN } else { BLOCKS };
    let heights = logarithmic_points(&curve.points);
    let (low, high) = value_range(heights.iter().map(|p| p.1));
    let mark = |(_, y): &(f64, f64)| marks[(((y - low) / (high - low)) * 7.0).round() as usize];
    let shape: String = heights.iter().map(mark).collect();
    let point_text =
        |p: &Point| format!("{} at {}", format_value(curve, p.value.estimate), format_parameter(curve, p.at));
    let ends: Vec<String> =
        [curve.points.first(), curve.points.last()].into_iter().flatten().map(point_text).collect();
    format!("{} {shape} {}", curve.title, ends.join(", "))
}

/// The curve as several lines with two axes, at most as wide as the terminal.
pub fn plot_lines(curve: &CurveRecord, width: Option<u16>, is_ascii: bool) -> Vec<String> {
    let ink = if is_ascii { STARS } else { BRAILLE };
    let points = logarithmic_points(&curve.points);
    let (low, high) = value_range(points.iter().map(|p| p.1));
    let labels: Vec<String> = [high, 0.5 * (low + high), low].map(|y| format_value(curve, y.exp2())).into();
    let margin = labels.iter().map(|label| super::cell::display_width(label)).max().unwrap_or(0);
    let columns = width.map_or(WIDEST, usize::from).min(WIDEST).saturating_sub(margin + 2).max(8);
    let wall = if is_ascii { "|" } else { "┤" };
    let rows = dot_rows(&points, columns, &ink);
    let named = |row: usize| match row {
        0 => labels[0].as_str(),
        r if r == ROWS / 2 => &labels[1],
        r if r == ROWS - 1 => &labels[2],
        _ => "",
    };
    let mut lines = vec![format!("{} ({}):", curve.prefix, curve.title)];
    lines.extend(rows.iter().enumerate().map(|(row, text)| format!("{:>margin$} {wall}{text}", named(row))));
    lines.extend(axis_lines(curve, &points, columns, is_ascii).map(|text| format!("{:>margin$} {text}", "")));
    lines.iter().map(|line| line.trim_end().to_owned()).collect()
}

/// The least and the greatest value. If they are equal, the range is widened by 0.5 on each side.
pub fn value_range(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let (low, high) = values.fold((f64::MAX, f64::MIN), |(low, high), v| (low.min(v), high.max(v)));
    if high - low > 1e-9 { (low, high) } else { (low - 0.5, low + 0.5) }
}

/// The rows of the plot as characters, from the top.
fn dot_rows(points: &[(f64, f64)], columns: usize, ink: &Ink) -> Vec<String> {
    let (wide, tall) = (columns * ink.across, ROWS * ink.down);
    let (left, right) = value_range(points.iter().map(|p| p.0));
    let (low, high) = value_range(points.iter().map(|p| p.1));
    let height = |x: usize| {
        let at = left + (right - left) * x as f64 / (wide - 1) as f64;
        let share = (interpolate_at(points, at) - low) / (high - low);
        ((1.0 - share) * (tall - 1) as f64).round().clamp(0.0, (tall - 1) as f64) as usize
    };
    let mut cells = vec![vec![0u8; columns]; ROWS];
    let mut before = height(0);
    for x in 0..wide {
        let y = height(x);
        // In a steep part the dots between two heights are set, too, so that the line has no gaps.
        let reach = if before < y { before + 1..=y } else { y..=before.max(y + 1) - 1 };
        for y in reach.chain([y]) {
            cells[y / ink.down][x / ink.across] |= braille_bit(x % ink.across, y % ink.down);
        }
        before = y;
    }
    let text = |row: &Vec<u8>| row.iter().map(|&cell| cell_character(cell, ink)).collect();
    cells.iter().map(text).collect()
}

/// The value at `x` of the line through the points.
fn interpolate_at(points: &[(f64, f64)], x: f64) -> f64 {
    let at = points.partition_point(|p| p.0 < x).clamp(1, points.len() - 1);
    let (a, b) = (points[at - 1], points[at]);
    a.1 + (b.1 - a.1) * ((x - a.0) / (b.0 - a.0)).clamp(0.0, 1.0)
}

/// The bit of a dot in a Braille character (Unicode block U+2800).
pub fn braille_bit(x: usize, y: usize) -> u8 {
    [[0x01, 0x08], [0x02, 0x10], [0x04, 0x20], [0x40, 0x80]][y][x]
}

pub fn cell_character(cell: u8, ink: &Ink) -> char {
    match (cell, ink.is_ascii) {
        (0, _) => ' ',
        (_, true) => '*',
        (dots, false) => char::from_u32(0x2800 + u32::from(dots)).unwrap_or('*'),
    }
}

/// The axis with a mark where a level ends, and a line with the names below it that have room.
fn axis_lines(curve: &CurveRecord, points: &[(f64, f64)], columns: usize, is_ascii: bool) -> [String; 2] {
    let (corner, rule, mark) = if is_ascii { ('+', '-', '+') } else { ('└', '─', '┴') };
    let (left, right) = value_range(points.iter().map(|p| p.0));
    let place = |at: u64| {
        let share = ((at.max(1) as f64).log2() - left) / (right - left);
        (share.clamp(0.0, 1.0) * (columns - 1) as f64).round() as usize
    };
    let steps = curve.levels.iter().filter_map(|level| {
        let (held, _) = level.step?;
        level.reported?;
        Some((place(held), format!("{} {}", level.name.as_deref().unwrap_or(""), format_size(held))))
    });
    let fall =
        curve.fall.iter().map(|fall| (place(fall.step.0), format!("falls at {}", format_size(fall.step.0))));
    let marks: Vec<(usize, String)> = steps.chain(fall).collect();
    let mut line = vec![rule; columns];
    marks.iter().for_each(|(at, _)| line[*at] = mark);
    let mut names = vec![' '; columns];
    let ends = [curve.points.first(), curve.points.last()].into_iter().flatten();
    let ends = ends.map(|p| (if p.at == 0 { 0 } else { place(p.at) }, format_parameter(curve, p.at)));
    marks.iter().cloned().chain(ends).for_each(|(at, name)| write(&mut names, at, &name));
    [std::iter::once(corner).chain(line).collect(), format!(" {}", names.into_iter().collect::<String>())]
}

/// Writes a name centred at `at`, unless it would touch another name.
fn write(names: &mut [char], at: usize, name: &str) {
    let length = super::cell::display_width(name);
    let first = at.saturating_sub(length / 2).min(names.len().saturating_sub(length));
    let beside = first.saturating_sub(1)..(first + length + 1).min(names.len());
    if length <= names.len() && names[beside].iter().all(|c| *c == ' ') {
        name.chars().enumerate().for_each(|(i, c)| names[first + i] = c);
    }
}

// A matrix of CPUs in a terminal: a row and a column for each CPU. Larger values are darker.

/// Characters from the smallest to the largest value.
const SHADES: [char; 5] = [' ', '░', '▒', '▓', '█'];
/// The most CPUs for which the map shows figures; with more, it shows only shades.
const WITH_FIGURES: usize = 16;

/// The lines of the map, with a legend of the shades.
pub fn heat_map(matrix: &Matrix) -> Vec<String> {
    let all: Vec<f64> = matrix.rows.iter().flatten().copied().collect();
    let low = all.iter().copied().fold(f64::INFINITY, f64::min);
    let high = all.iter().copied().fold(0.0, f64::max);
    let shade = |ns: f64| {
        let share = (ns - low) / (high - low).max(f64::MIN_POSITIVE);
        SHADES[((share * SHADES.len() as f64) as usize).min(SHADES.len() - 1)]
    };
    let with_figures = matrix.cpus.len() <= WITH_FIGURES;
    let cell =
        |ns: &f64| if with_figures { format!("{ns:6.1}{}", shade(*ns)) } else { shade(*ns).to_string() };
    let row = |(cpu, row): (&usize, &Vec<f64>)| {
        let cells: String = row.iter().map(cell).collect();
        format!("CPU {cpu:>3} {cells}").trim_end().to_owned()
    };
    let mut lines: Vec<_> = matrix.cpus.iter().zip(&matrix.rows).map(row).collect();
    if with_figures {
        let heads: String =
            matrix.cpus.iter().take(lines.len().saturating_sub(1)).map(|cpu| format!("{cpu:>6} ")).collect();
        lines.insert(0, format!("        {heads}").trim_end().to_owned());
    }
    if low < high {
        lines.push(format!(
            "from `{}` {low:.1} ns to `{}` {high:.1} ns",
            SHADES[0],
            SHADES[SHADES.len() - 1]
        ));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{Interval, LevelRecord};

    fn curve(values: &[(u64, f64)]) -> CurveRecord {
        CurveRecord {
            prefix: "chase/random/".into(),
            title: "random".into(),
            bytes: true,
            unit: "ns".into(),
            points: values.iter().map(|&(at, v)| Point { at, value: Interval::exactly(v) }).collect(),
            levels: vec![LevelRecord {
                name: Some("L1".into()),
                step: Some((32 << 10, 38_912)),
                reported: Some(32 << 10),
                ..LevelRecord::default()
            }],
            ..CurveRecord::default()
        }
    }

    fn steps() -> CurveRecord {
        let level = |i| match i {
            0..6 => 1.0,
            6..11 => 4.0,
            _ => 64.0,
        };
        curve(&(0..15).map(|i| (1024 << i, level(i))).collect::<Vec<_>>())
    }

    #[test]
    fn plots_keep_the_width_of_the_terminal_and_have_all_lines() {
        for width in [20, 40, 80, 200] {
            for is_ascii in [false, true] {
                let lines = plot_lines(&steps(), Some(width), is_ascii);
                assert_eq!(lines.len(), 1 + ROWS + 2);
                let widest = lines[1..].iter().map(|line| line.chars().count()).max();
                assert!(widest <= Some(usize::from(width)), "{width}: {lines:#?}");
                assert_eq!(lines.iter().all(|line| line.is_ascii()), is_ascii);
            }
        }
    }

    #[test]
    fn a_curve_that_rises_ends_higher_than_it_begins() {
        let lines = plot_lines(&steps(), Some(60), true);
        let star = |line: &str| line.find('*');
        assert!(star(&lines[1]) > Some(40) && star(&lines[ROWS]) < Some(12), "{lines:#?}");
        assert!(lines[1].starts_with("64.00 ns |") && lines[ROWS].starts_with("1.000 ns |"), "{lines:#?}");
        assert!(lines[ROWS + 2].contains("L1 32 KiB") && lines[ROWS + 1].contains('+'), "{lines:#?}");
    }

    #[test]
    fn a_curve_on_one_line_has_one_mark_per_point() {
        let line = curve_line(&curve(&[(0, 1.0), (1 << 10, 1.0), (2 << 10, 64.0)]), false);
        assert_eq!(line, "random ▁▁█ 1.000 ns at 0 B, 64.00 ns at 2 KiB");
    }

    #[test]
    fn two_points_and_a_constant_curve_can_be_drawn() {
        for values in [&[(0, 1.0), (1 << 20, 1.0)][..], &[(1, 5.0), (2, 1.0)]] {
            assert_eq!(plot_lines(&curve(values), Some(80), false).len(), 1 + ROWS + 2);
            assert!(!curve_line(&curve(values), true).is_empty());
        }
    }

    #[test]
    fn larger_values_of_the_map_are_darker() {
        let matrix = Matrix { cpus: vec![0, 1, 4], rows: vec![vec![], vec![20.0], vec![100.0, 60.0]] };
        let lines = heat_map(&matrix);
        assert_eq!(lines[0], "             0      1");
        assert_eq!(lines[2], "CPU   1   20.0");
        assert_eq!(lines[3], "CPU   4  100.0█  60.0▒");
        assert!(lines[4].contains("20.0 ns") && lines[4].contains("100.0 ns"));
    }

    #[test]
    fn the_map_of_many_cpus_has_one_character_per_value() {
        let rows = (0..40).map(|i| (0..i).map(|j| f64::from(i + j)).collect()).collect();
        let lines = heat_map(&Matrix { cpus: (0..40).collect(), rows });
        assert!(lines.iter().all(|line| line.chars().count() <= 8 + 40), "{lines:?}");
    }

    #[test]
    fn two_cpus_make_a_map() {
        assert_eq!(heat_map(&Matrix { cpus: vec![0, 1], rows: vec![vec![], vec![50.0]] }).len(), 3);
    }
}

//! A plot of one case over the points of a history for a terminal: a dot for each point, and a vertical line at each change.

use syscost_engine::render::table::Layout;
use syscost_engine::render::terminal_plot::{
    BRAILLE, Ink, ROWS, STARS, WIDEST, braille_bit, cell_character, value_range,
};

/// The columns of a plot if the width of the terminal is unknown.
const USUAL: usize = 80;

/// The lines of a plot: these ratios from left to right, and a vertical line at each of `marks`, the indexes of changes in
/// `ratios`. The axis numbers the changes from 1 to 9; further ones have `*`.
pub fn plot_history(ratios: &[f64], marks: &[usize], layout: Layout) -> Vec<String> {
    let ink = if layout.ascii { STARS } else { BRAILLE };
    let (low, high) = value_range(ratios.iter().copied());
    let labels = [high, 0.5 * (low + high), low].map(|ratio| format!("{ratio:.4}"));
    let margin = labels.iter().map(String::len).max().unwrap_or(0);
    let columns = layout.width.map_or(USUAL, usize::from).min(WIDEST).saturating_sub(margin + 2).max(8);
    let column = |at: usize| position_among(at, ratios.len(), columns * ink.across) / ink.across;
    let mut rows = dot_rows(ratios, (low, high), columns, &ink);
    let (wall, corner, line, rule) =
        if layout.ascii { ('|', '+', ':', '-') } else { ('┤', '└', '┊', '─') };
    let mut axis = vec![rule; columns];
    for (number, at) in marks.iter().map(|at| column(*at)).enumerate() {
        rows.iter_mut().filter(|row| row[at] == ' ').for_each(|row| row[at] = line);
        axis[at] = char::from_digit(number as u32 + 1, 10).unwrap_or('*');
    }
    let named = |row: usize| match row {
        0 => labels[0].as_str(),
        row if row == ROWS / 2 => &labels[1],
        row if row == ROWS - 1 => &labels[2],
        _ => "",
    };
    let text = |row: &Vec<char>| row.iter().collect::<String>();
    let drawn =
        rows.iter().enumerate().map(|(at, row)| format!("{:>margin$} {wall}{}", named(at), text(row)));
    let foot = format!("{:>margin$} {corner}{}", "", text(&axis));
    drawn.chain([foot]).map(|line| line.trim_end().to_owned()).collect()
}

/// The position of the `at`-th of `count` points among `places`, from 0.
fn position_among(at: usize, count: usize, places: usize) -> usize {
    let share = at as f64 / count.saturating_sub(1).max(1) as f64;
    (share * (places - 1) as f64).round() as usize
}

/// The dots of these ratios as rows of characters, from the top.
fn dot_rows(ratios: &[f64], (low, high): (f64, f64), columns: usize, ink: &Ink) -> Vec<Vec<char>> {
    let mut cells = vec![vec![0u8; columns]; ROWS];
    for (at, ratio) in ratios.iter().enumerate() {
        let x = position_among(at, ratios.len(), columns * ink.across);
        let lowest = (ROWS * ink.down - 1) as f64;
        let y = ((high - ratio) / (high - low) * lowest).round().clamp(0.0, lowest) as usize;
        cells[y / ink.down][x / ink.across] |= braille_bit(x % ink.across, y % ink.down);
    }
    cells.iter().map(|row| row.iter().map(|cell| cell_character(*cell, ink)).collect()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plotted(ratios: &[f64], marks: &[usize], width: u16, ascii: bool) -> Vec<String> {
        plot_history(ratios, marks, Layout { width: Some(width), color: false, ascii })
    }

    #[test]
    fn no_line_is_wider_than_the_terminal() {
        let nights: Vec<f64> = (0..1000).map(|night| if night < 500 { 1.0 } else { 1.02 }).collect();
        for count in [1, 2, 30, 1000] {
            for width in [20, 40, 80, 200] {
                for ascii in [false, true] {
                    let lines = plotted(&nights[..count], &[count / 2], width, ascii);
                    let widest = lines.iter().map(|line| line.chars().count()).max();
                    assert!(lines.len() == ROWS + 1 && widest <= Some(usize::from(width)), "{lines:#?}");
                    assert_eq!(lines.iter().all(|line| line.is_ascii()), ascii);
                }
            }
        }
    }

    #[test]
    fn a_step_is_drawn_and_its_place_marked() {
        let nights = [1.0, 1.0, 1.0, 1.0, 1.02, 1.02, 1.02, 1.02];
        let lines = plotted(&nights, &[4], 40, true);
        let star = |line: &str| line.find('*');
        assert!(lines[0].starts_with("1.0200 |") && lines[ROWS - 1].starts_with("1.0000 |"), "{lines:#?}");
        assert!(star(&lines[0]) > star(&lines[ROWS - 1]), "{lines:#?}");
        assert_eq!(
            (lines[ROWS].find('1'), lines[3].find(':')),
            (star(&lines[0]), star(&lines[0])),
            "{lines:#?}"
        );
    }

    #[test]
    fn a_tenth_change_has_a_mark_without_a_number() {
        let nights: Vec<f64> = (0..20).map(f64::from).collect();
        let marks: Vec<usize> = (1..12).collect();
        let axis = plotted(&nights, &marks, 80, false).pop().unwrap_or_default();
        assert_eq!(axis.matches(|c: char| c.is_ascii_digit()).collect::<String>(), "123456789");
        assert_eq!(axis.matches('*').count(), 2, "{axis}");
    }
}

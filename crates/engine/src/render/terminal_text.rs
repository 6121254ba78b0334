//! Formats text for people (wrapped sentences, headings, columns) and rows for programs (cells between tabs).

use super::cell::Tone;
use super::table::Layout;
use super::{display_width, pad_right, rule_with_name, wrap_words};
use crate::platform::inert::neutralize_text;
use crate::record::quantity;

/// The longest line of prose, in columns: longer ones are hard to read, however wide the terminal is.
const WIDEST_PROSE: usize = 100;
/// The width in columns for a pipe, and for a terminal that does not report its width.
const USUAL: usize = 80;
/// The fewest columns for the last column of a table; with less room it is moved below its row.
const NARROWEST: usize = 24;
/// Spaces between two columns.
const GAP: usize = 2;

/// The width for tables, in columns.
pub fn table_width(layout: Layout) -> usize {
    layout.width.map_or(USUAL, usize::from)
}

/// The width for prose, in columns.
pub fn prose_width(layout: Layout) -> usize {
    table_width(layout).min(WIDEST_PROSE)
}

/// The text in this tone, if the layout has colours.
pub fn paint(tone: Tone, text: &str, layout: Layout) -> String {
    tone.paint(text, layout.color)
}

/// A heading: the name in a horizontal rule.
pub fn heading(name: &str, width: usize, layout: Layout) -> String {
    paint(Tone::Bold, &rule_with_name(name, width), layout)
}

/// Breaks text between words. The first line begins with `first`; the others are indented to its width.
pub fn wrap(first: &str, text: &str, width: usize) -> String {
    wrap_words(first, display_width(first), &neutralize_text(text), width)
}

/// Formats sentences for people, each on lines of its own.
pub fn wrap_sentences(sentences: impl IntoIterator<Item = impl AsRef<str>>, layout: Layout) -> String {
    sentences.into_iter().map(|sentence| wrap("", sentence.as_ref(), prose_width(layout)) + "\n").collect()
}

/// Formats rows in columns that are as wide as their widest cells. Only the last column is wrapped; if there is
/// no room for it, its text is placed below the row.
pub fn align_columns<const N: usize>(rows: &[[String; N]], width: usize) -> Vec<String> {
    let widest = |column: usize| rows.iter().map(|row| display_width(&row[column])).max().unwrap_or(0);
    let widths: [usize; N] = std::array::from_fn(widest);
    let before: usize = widths[..N - 1].iter().map(|width| width + GAP).sum();
    let beside = before + widths[N - 1].min(NARROWEST) <= width;
    let line = |row: &[String; N]| {
        let cells = row[..N - 1].iter().zip(widths);
        let first: String =
            cells.map(|(cell, width)| pad_right(&neutralize_text(cell), width + GAP)).collect();
        let last = &row[N - 1];
        let text = if beside { wrap(&first, last, width) } else { first + "\n" + &wrap("    ", last, width) };
        text.lines().map(str::trim_end).collect::<Vec<_>>().join("\n")
    };
    rows.iter().map(line).collect()
}

/// The lines of [`align_columns`] as one text.
pub fn columns_text<const N: usize>(rows: &[[String; N]], width: usize) -> String {
    align_columns(rows, width).into_iter().map(|line| line + "\n").collect()
}

/// A table: its head in bold, and below it each row in its tone.
pub fn table<const N: usize>(
    head: [impl Into<String>; N],
    rows: impl IntoIterator<Item = (Tone, [String; N])>,
    width: usize,
    layout: Layout,
) -> String {
    let head = (Tone::Bold, head.map(Into::into));
    let (tones, rows): (Vec<_>, Vec<_>) = std::iter::once(head).chain(rows).unzip();
    let lines = tones.into_iter().zip(align_columns(&rows, width));
    lines.map(|(tone, line)| paint(tone, &line, layout) + "\n").collect()
}

/// The row for a file, or a sentence on why the file cannot be read.
pub type Row<const N: usize> = std::result::Result<[String; N], String>;

/// The rows of the files that can be read, followed by the sentences on the others in red.
pub fn columns_and_damaged<const N: usize>(rows: &[Row<N>], layout: Layout) -> String {
    let sound: Vec<_> = rows.iter().filter_map(|row| row.clone().ok()).collect();
    let damaged = rows.iter().filter_map(|row| row.as_ref().err());
    let damaged = damaged.map(|sentence| wrap("damaged: ", sentence, prose_width(layout)));
    columns_text(&sound, table_width(layout))
        + &damaged.map(|text| paint(Tone::Red, &text, layout) + "\n").collect::<String>()
}

/// One row for a program, with tabs between cells. For a file that cannot be read, the cells are its name, `damaged` and
/// the reason.
pub fn tabbed_or_damaged<const N: usize>(name: String, row: Row<N>) -> String {
    match row {
        Ok(cells) => tabbed_rows(&[cells]),
        Err(sentence) => tabbed_rows(&[[name, "damaged".into(), sentence]]),
    }
}

/// Rows for a program: one a line, tabs between cells.
pub fn tabbed_rows(rows: impl IntoIterator<Item = impl AsRef<[String]>>) -> String {
    let cell = |text: &String| neutralize_text(text).replace(['\t', '\n'], " ");
    rows.into_iter().map(|row| row.as_ref().iter().map(cell).collect::<Vec<_>>().join("\t") + "\n").collect()
}

/// A moment for a person, in universal time: `2026-11-20 13:44`.
pub fn utc_moment(unix_seconds: u64) -> String {
    let utc = quantity::format_utc(unix_seconds);
    let part = |range| utc.get(range).unwrap_or_default();
    format!("{}-{}-{} {}:{}", part(0..4), part(4..6), part(6..8), part(9..11), part(11..13))
}

/// A count and its noun: `1 process`, `5 processes`.
pub fn count_with_noun(count: usize, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(cells: [&str; 2]) -> [String; 2] {
        cells.map(str::to_owned)
    }

    #[test]
    fn only_the_last_column_is_wrapped() {
        let rows = [row(["call/u64/3", "short"]), row(["a", "four words that are too many for one line"])];
        let lines = align_columns(&rows, 36);
        assert_eq!(lines[0], "call/u64/3  short");
        assert_eq!(lines[1], "a           four words that are too\n            many for one line");
    }

    #[test]
    fn a_last_column_without_room_is_placed_below_its_row() {
        let rows = [row(["a/long/id/of/a/case", "a title of several words"])];
        assert_eq!(align_columns(&rows, 30), ["a/long/id/of/a/case\n    a title of several words"]);
    }

    #[test]
    fn a_row_for_a_program_is_one_line() {
        assert_eq!(tabbed_rows(&[row(["a\tb", "c\nd"])]), "a b\tc d\n");
    }

    #[test]
    fn control_characters_in_a_text_are_replaced() {
        let row = row(["a\u{1b}[2J", "b\u{7}"]);
        assert_eq!(tabbed_rows(std::slice::from_ref(&row)), "a\u{fffd}[2J\tb\u{fffd}\n");
        assert_eq!(align_columns(&[row], 80), ["a\u{fffd}[2J  b\u{fffd}"]);
    }

    #[test]
    fn a_moment_is_formatted_as_date_and_time() {
        assert_eq!(utc_moment(1_795_182_245), "2026-11-20 13:44");
    }
}

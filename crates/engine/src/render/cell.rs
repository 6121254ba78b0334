//! Fits texts into columns of a terminal: cuts, shortens, pads, or breaks them into lines.

use crate::record::Verdict;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Columns that a text takes on a terminal: two for a wide character such as a Chinese one, none for a combining one.
pub fn display_width(text: &str) -> usize {
    text.width()
}

/// The text, padded with blanks at its end to this width.
pub fn pad_right(text: &str, columns: usize) -> String {
    text.to_owned() + &" ".repeat(columns.saturating_sub(display_width(text)))
}

/// The longest prefix of these characters that fits into this number of columns.
fn fitting_prefix(characters: impl Iterator<Item = char>, columns: usize) -> Vec<char> {
    let mut used = 0;
    let fits = |c: &char| {
        used += c.width().unwrap_or(0);
        used <= columns
    };
    characters.take_while(fits).collect()
}

/// The text on one line, with control characters replaced by blanks. If it is wider than `most`, it is cut and ends in `…`.
pub fn cut_to_width(text: &str, most: usize) -> String {
    let text: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    if display_width(&text) <= most {
        return text;
    }
    let kept = String::from_iter(fitting_prefix(text.chars(), most.saturating_sub(1)));
    kept.trim_end().to_owned() + "…"
}

/// As [`cut_to_width`], but the suffix `behind` stays whole if more than 20 columns are left for the text.
pub fn cut_before_suffix(text: &str, behind: &str, most: usize) -> String {
    match most.checked_sub(display_width(behind)).filter(|room| *room > 20) {
        Some(room) => cut_to_width(text, room) + behind,
        None => cut_to_width(text, most),
    }
}

/// Shortens a text in its middle, because ids and names often differ only at their ends.
pub fn shorten_middle(text: &str, longest: usize) -> String {
    if display_width(text) <= longest {
        return text.into();
    }
    let (head, tail) = (longest / 2, longest.saturating_sub(longest / 2 + 1));
    let before = fitting_prefix(text.chars(), head).into_iter();
    let behind = fitting_prefix(text.chars().rev(), tail).into_iter().rev();
    before.chain(std::iter::once('…')).chain(behind).collect()
}

/// Breaks a text between words. The first line begins with `first`; the others are indented by `indent` columns. A word that is
/// longer than a line (a path, a command) stays whole, so that it can be copied.
pub fn wrap_words(first: &str, indent: usize, text: &str, most: usize) -> String {
    let (mut wrapped, mut column, mut is_empty) = (first.to_owned(), display_width(first), true);
    for word in text.split_whitespace() {
        if !is_empty && column + 1 + display_width(word) > most {
            wrapped += &format!("\n{:indent$}", "");
            (column, is_empty) = (indent, true);
        }
        if !is_empty {
            wrapped.push(' ');
            column += 1;
        }
        wrapped.push_str(word);
        column += display_width(word);
        is_empty = false;
    }
    wrapped
}

/// Formats rows as lines with aligned columns. `column` says for each column whether it is text (aligned left) or numbers
/// (aligned right), and how many blanks follow it.
pub fn align_columns(rows: &[Vec<String>], column: impl Fn(usize) -> (bool, usize)) -> Vec<String> {
    let widest = |at: usize| rows.iter().map(|row| display_width(&row[at])).max().unwrap_or(0);
    let widths: Vec<usize> = (0..rows.first().map_or(0, Vec::len)).map(widest).collect();
    let padded = |(at, text): (usize, &String)| match (widths[at], column(at)) {
        (wide, (true, gap)) => pad_right(text, wide + gap),
        (wide, (false, gap)) => {
            " ".repeat(wide - display_width(text)) + &pad_right(text, display_width(text) + gap)
        }
    };
    let line = |row: &Vec<String>| row.iter().enumerate().map(padded).collect::<String>();
    rows.iter().map(|row| line(row).trim_end().to_owned()).collect()
}

/// A horizontal rule of `most` columns that contains this name.
pub fn rule_with_name(name: &str, most: usize) -> String {
    let head = format!("── {name} ");
    let rule = most.saturating_sub(display_width(&head));
    head + &"─".repeat(rule)
}

/// Up to three names as a list. Of more names, the first two, and the number of the others followed by `more`.
pub fn enumerate_names(names: &[&str], more: &str) -> String {
    match names {
        [first, second, others @ ..] if others.len() > 1 => {
            format!("{first}, {second} and {} {more}", others.len())
        }
        few => few.join(", "),
    }
}

// The colours of lines.

/// Emphasis of a line or a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    Plain,
    Bold,
    Green,
    Yellow,
    Red,
}

impl Tone {
    /// The tone of a row with this verdict; `Same` is plain.
    pub fn from_verdict(verdict: Verdict) -> Self {
        match verdict {
            Verdict::Slower => Self::Red,
            Verdict::Faster => Self::Bold,
            Verdict::Inconclusive | Verdict::Incomparable => Self::Yellow,
            Verdict::Same => Self::Plain,
        }
    }

    /// The text in this tone if `color` is true, else unchanged. Pass whole lines or cells that are already padded, because
    /// the escape codes take no columns.
    pub fn paint(self, text: &str, color: bool) -> String {
        let code = match self {
            Self::Plain => return text.to_owned(),
            _ if !color => return text.to_owned(),
            Self::Bold => 1,
            Self::Green => 32,
            Self::Yellow => 33,
            Self::Red => 31,
        };
        let painted: Vec<_> = text.split('\n').map(|line| format!("\u{1b}[{code}m{line}\u{1b}[0m")).collect();
        painted.join("\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_is_cut_with_an_ellipsis_and_its_suffix_stays_whole() {
        assert_eq!(cut_to_width("one two three", 9), "one two…");
        assert_eq!(cut_to_width("a\u{1b}b", 9), "a b");
        let line = cut_before_suffix("a sentence that is by far too long", " (do this)", 35);
        assert!(line.ends_with("… (do this)") && display_width(&line) <= 35, "{line}");
        assert_eq!(cut_before_suffix("short", " (do this)", 12), "short");
    }

    #[test]
    fn a_wide_character_takes_two_columns() {
        assert_eq!((display_width("測定"), display_width("µs ±2"), display_width("e\u{301}")), (4, 5, 1));
        assert_eq!(
            (cut_to_width("測定測定", 6).as_str(), shorten_middle("測定測定", 6).as_str()),
            ("測定…", "測…定")
        );
        let rows = [vec!["測定".to_owned(), "1".into()], vec!["a".into(), "22".into()]];
        assert_eq!(align_columns(&rows, |at| (at == 0, 2)), ["測定   1", "a     22"]);
    }

    #[test]
    fn a_shortened_id_keeps_both_ends() {
        assert_eq!(shorten_middle("chase/64MiB/random", 11), "chase…andom");
        assert_eq!(
            (shorten_middle("short", 5).as_str(), shorten_middle("short", 2).as_str()),
            ("short", "s…")
        );
    }

    #[test]
    fn lines_break_between_words_and_hang() {
        assert_eq!(wrap_words("- ", 2, "one two three", 9), "- one two\n  three");
        assert_eq!(wrap_words("", 2, "one two three four", 9), "one two\n  three\n  four");
        assert_eq!(wrap_words("", 0, "see /a/very/long/path now", 8), "see\n/a/very/long/path\nnow");
        assert_eq!(wrap_words("only", 4, "", 80), "only");
    }

    #[test]
    fn every_line_is_painted_by_itself() {
        assert_eq!(Tone::Bold.paint("a\nb", true), "\u{1b}[1ma\u{1b}[0m\n\u{1b}[1mb\u{1b}[0m");
        assert_eq!((Tone::Bold.paint("a", false), Tone::Plain.paint("a", true)), ("a".into(), "a".into()));
    }
}

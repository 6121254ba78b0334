//! Texts that must not be wider than they may.

/// Columns of a text. Every character that is printed is one column wide.
pub(super) fn width(text: &str) -> usize {
    text.chars().count()
}

/// The text on one line, without what a terminal would obey; a longer one ends in `…`.
pub(super) fn cut(text: &str, most: usize) -> String {
    let text: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    if width(&text) <= most {
        return text;
    }
    let kept: String = text.chars().take(most.saturating_sub(1)).collect();
    kept.trim_end().to_owned() + "…"
}

/// As [`cut`], but what stands behind it stays whole where there is room for it.
pub(super) fn cut_before(text: &str, behind: &str, most: usize) -> String {
    match most.checked_sub(width(behind)).filter(|room| *room > 20) {
        Some(room) => cut(text, room) + behind,
        None => cut(text, most),
    }
}

/// Three names, or two and how many more there are, in these words.
#[cfg(feature = "cli")]
pub fn enumerated(names: &[&str], more: &str) -> String {
    match names {
        [first, second, others @ ..] if others.len() > 1 => {
            format!("{first}, {second} and {} {more}", others.len())
        }
        few => few.join(", "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_too_long_ends_in_a_dot_and_the_command_stays() {
        assert_eq!(cut("one two three", 9), "one two…");
        assert_eq!(cut("a\u{1b}b", 9), "a b");
        let line = cut_before("a sentence that is by far too long", " (do this)", 35);
        assert!(line.ends_with("… (do this)") && width(&line) <= 35, "{line}");
        assert_eq!(cut_before("short", " (do this)", 12), "short");
    }
}

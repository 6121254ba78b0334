//! Sentences below the table, broken between words.

/// Breaks a text into lines of at most `width` characters; all but the first are indented. A word that is
/// longer than a line (a path, a command) is not broken, so that it can be copied.
pub(super) fn wrapped(text: &str, width: usize) -> Vec<String> {
    const INDENT: &str = "  ";
    let mut lines: Vec<String> = Vec::new();
    let mut line = String::new();
    for word in text.split_whitespace() {
        let needed = super::width(&line) + 1 + super::width(word);
        if !line.trim().is_empty() && needed > width {
            lines.push(std::mem::replace(&mut line, INDENT.into()));
        }
        if !line.trim().is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    lines.push(line);
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_break_between_words() {
        assert_eq!(wrapped("one two three four", 9), ["one two", "  three", "  four"]);
        assert_eq!(wrapped("one two", 80), ["one two"]);
    }

    #[test]
    fn a_long_word_stays_whole() {
        assert_eq!(wrapped("see /a/very/long/path now", 8), ["see", "  /a/very/long/path", "  now"]);
    }
}

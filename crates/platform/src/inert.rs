//! Replaces hostile characters in untrusted text (files, peers, names) by U+FFFD: terminal control sequences, and
//! characters that hide or reorder other text. Applied to records when read, and to all output when written.

use std::borrow::Cow;

/// The character that replaces a hostile one.
pub const TAKEN: char = char::REPLACEMENT_CHARACTER;

/// Whether a character is hostile: a terminal obeys it (control characters, escape), or it reorders or hides others (bidirectional
/// overrides and isolates, zero width), or it ends a line (separators). Line feeds and tabs are control characters, too.
pub fn is_hostile(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// Replaces the hostile characters of a text; ends of lines and tabs stay.
pub fn neutralize_text(text: &str) -> String {
    text.replace(|c| is_hostile(c) && c != '\n' && c != '\t', "\u{fffd}")
}

/// The text as one line of at most `most` characters. A longer text is cut and ends with an ellipsis.
pub fn neutralize_line(text: &str, most: usize) -> String {
    let plain = |c: char| match c {
        '\n' | '\t' | '\r' => ' ',
        c if is_hostile(c) => TAKEN,
        c => c,
    };
    let mut characters = text.chars();
    let mut line: String = characters.by_ref().take(most).map(plain).collect();
    if characters.next().is_some() {
        line.pop();
        line.push('…');
    }
    line
}

/// Replaces the hostile characters of an output. Ends of lines and tabs stay, and on a terminal our own colours
/// too.
pub fn neutralize_output(text: &str, is_terminal: bool) -> Cow<'_, str> {
    if !text.contains(|c| is_hostile(c) && c != '\n') {
        return Cow::Borrowed(text);
    }
    let mut clean = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(|c| is_hostile(c) && c != '\n' && c != '\t') {
        clean.push_str(&rest[..at]);
        rest = &rest[at..];
        let kept = allowed_prefix_bytes(rest, is_terminal);
        clean.push_str(&rest[..kept]);
        let taken = rest.chars().next().filter(|_| kept == 0).map_or(0, char::len_utf8);
        clean.extend((kept == 0).then_some(TAKEN));
        rest = &rest[kept + taken..];
    }
    clean.push_str(rest);
    Cow::Owned(clean)
}

/// The number of bytes at the beginning that are allowed: a line end of RFC 4180 (CR LF), or a colour (`ESC [ digits m`);
/// else 0.
fn allowed_prefix_bytes(text: &str, is_terminal: bool) -> usize {
    if text.starts_with("\r\n") {
        return 2;
    }
    let Some(code) = text.strip_prefix("\u{1b}[").filter(|_| is_terminal) else { return 0 };
    let digits = code.bytes().take_while(u8::is_ascii_digit).count();
    if digits <= 2 && code[digits..].starts_with('m') { 2 + digits + 1 } else { 0 }
}

/// Replaces the hostile characters in the strings of a JSON text, written directly or as escapes. An invalid
/// JSON text stays invalid.
pub fn neutralize_json(text: &str) -> Cow<'_, str> {
    let is_escaped =
        text.contains("\\u") || text.contains("\\b") || text.contains("\\f") || text.contains("\\r");
    // The test for ASCII comes first, because it is fast.
    if !is_escaped && (text.is_ascii() || !text.contains(|c| is_hostile(c) && !c.is_ascii())) {
        return Cow::Borrowed(text);
    }
    let mut clean = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(|c: char| c == '\\' || (is_hostile(c) && !c.is_ascii())) {
        clean.push_str(&rest[..at]);
        rest = &rest[at..];
        let (unit, inert) = first_json_unit(rest);
        clean.push_str(if inert { unit } else { "\u{fffd}" });
        rest = &rest[unit.len()..];
    }
    clean.push_str(rest);
    Cow::Owned(clean)
}

/// The escape or the character at the beginning, and whether it may stay.
fn first_json_unit(text: &str) -> (&str, bool) {
    let first = |count: usize| text.char_indices().nth(count).map_or(text, |(end, _)| &text[..end]);
    match text.as_bytes() {
        [b'\\', b'u', ..] => {
            let code = first(6)
                .get(2..)
                .filter(|digits| digits.len() == 4)
                .and_then(|digits| u32::from_str_radix(digits, 16).ok());
            match code {
                Some(0x0a | 0x09) => (first(6), true),
                // The first half of the surrogate pair of a tag. No other hostile character needs a pair.
                Some(0xdb40) if text[6..].starts_with("\\ud") => (first(12), false),
                Some(code) => (first(6), !char::from_u32(code).is_some_and(is_hostile)),
                None => (first(6), true),
            }
        }
        [b'\\', b'b' | b'f' | b'r', ..] => (first(2), false),
        [b'\\', ..] => (first(2), true),
        _ => (first(1), false),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOSTILE: &str = "a\u{1b}[2Jb\u{202e}c\u{200b}d\u{7}e\u{2028}f\u{9b}g\u{feff}h\u{e0041}";

    #[test]
    fn hostile_characters_of_a_text_are_replaced() {
        assert_eq!(neutralize_text(HOSTILE).chars().filter(|&c| c == TAKEN).count(), 8);
        assert_eq!(neutralize_text("two\nlines\tµ ─ …"), "two\nlines\tµ ─ …");
        assert_eq!(neutralize_line("two\nlines\u{1b}", 20), "two lines\u{fffd}");
        assert_eq!(neutralize_line("12345", 4), "123…");
        assert_eq!(neutralize_line("1234", 4), "1234");
    }

    #[test]
    fn only_our_own_colours_pass_and_only_to_a_terminal() {
        let painted = "\u{1b}[31mred\u{1b}[0m\r\nnext";
        assert_eq!(neutralize_output(painted, true), painted);
        assert_eq!(neutralize_output(painted, false), "\u{fffd}[31mred\u{fffd}[0m\r\nnext");
        for hostile in ["\u{1b}[2J", "\u{1b}]0;x\u{7}", "\u{1b}[38;5;1m", "\r", "\u{1b}", "\u{202e}"] {
            assert!(!neutralize_output(hostile, true).contains(is_hostile), "{hostile:?}");
        }
        assert_eq!(neutralize_output("a\tb\n", false), "a\tb\n");
    }

    #[test]
    fn a_string_of_json_is_inert_however_it_is_written() {
        let written = serde_json::to_string(HOSTILE).expect("a string");
        let escaped: String = HOSTILE.encode_utf16().map(|unit| format!("\\u{unit:04x}")).collect();
        for json_text in [written, format!("\"{escaped}\"")] {
            let clean = neutralize_json(&json_text).into_owned();
            let read: String = serde_json::from_str(&clean).unwrap_or_else(|e| panic!("{e}: {clean}"));
            assert!(!read.contains(is_hostile), "{clean}");
        }
        for plain in [
            r#""a\\u001b""#,
            r#""\"µ\n\t\\""#,
            r#""\u00e9""#,
            "\"é\"",
            r"\u",
            "\\",
            r"\u12",
            "\\u\u{e9}\u{e9}",
        ] {
            assert_eq!(neutralize_json(plain), plain);
        }
    }
}

//! The code of a Rust file: its text with comments, the contents of literals and tests replaced by spaces.
//!
//! Lines stay where they are, so that a position in the code is a position in the file. This is no parser: it
//! relies on text that `rustfmt` has formatted.

/// The text with comments blank and literals empty; the quotes of a string stay.
pub fn code(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let hidden = hidden_length(rest, out.chars().next_back());
        if hidden == 0 {
            out.push(first);
            rest = &rest[first.len_utf8()..];
        } else {
            let quoted = !rest.starts_with('/');
            out.push_str(&blank(&rest[..hidden], quoted));
            rest = &rest[hidden..];
        }
    }
    out
}

fn blank(text: &str, quoted: bool) -> String {
    let last = text.chars().count() - 1;
    let blanked = text.chars().enumerate().map(|(at, c)| match c {
        '\n' => '\n',
        _ if quoted && (at == 0 || at == last) => '"',
        _ => ' ',
    });
    blanked.collect()
}

/// The length of the comment or literal at the beginning of `rest`; zero where there is none.
fn hidden_length(rest: &str, before: Option<char>) -> usize {
    if rest.starts_with("//") {
        return rest.find('\n').unwrap_or(rest.len());
    }
    if rest.starts_with("/*") {
        return block_comment(rest);
    }
    if rest.starts_with('"') {
        return string(rest);
    }
    if rest.starts_with('\'') {
        return character(rest);
    }
    if before.is_some_and(is_of_a_word) { 0 } else { raw_string(rest) }
}

/// Comments of this kind may stand inside one another.
fn block_comment(rest: &str) -> usize {
    let (mut at, mut depth) = (0, 0);
    while at < rest.len() {
        let (length, change) = match &rest.as_bytes()[at..] {
            [b'/', b'*', ..] => (2, 1),
            [b'*', b'/', ..] => (2, -1),
            _ => (1, 0),
        };
        at += length;
        depth += change;
        if depth == 0 {
            return at;
        }
    }
    rest.len()
}

fn string(rest: &str) -> usize {
    let mut escaped = false;
    for (at, c) in rest.char_indices().skip(1) {
        match c {
            '"' if !escaped => return at + 1,
            _ => escaped = c == '\\' && !escaped,
        }
    }
    rest.len()
}

/// A quote begins a character, or a lifetime, which is code.
fn character(rest: &str) -> usize {
    let mut characters = rest.char_indices().skip(1);
    let first = characters.next();
    match (first, characters.next()) {
        (Some((_, '\\')), Some((at, escaped))) => {
            let after = at + escaped.len_utf8();
            rest[after..].find('\'').map_or(0, |end| after + end + 1)
        }
        (Some(_), Some((at, '\''))) => at + 1,
        _ => 0,
    }
}

fn raw_string(rest: &str) -> usize {
    let Some(after) = ["r", "br", "cr"].iter().find_map(|mark| rest.strip_prefix(mark)) else { return 0 };
    let hashes = after.len() - after.trim_start_matches('#').len();
    if !after[hashes..].starts_with('"') {
        return 0;
    }
    let opened = rest.len() - after.len() + hashes + 1;
    let close = format!("\"{}", "#".repeat(hashes));
    rest[opened..].find(&close).map_or(rest.len(), |end| opened + end + close.len())
}

/// The code without the items under `#[cfg(test)]`.
pub fn shipped(code: &str) -> String {
    let mut out = code.to_owned();
    while let Some(start) = ["#[cfg(test)]", "#[cfg(all(test", "#[cfg(any(test, feature = "]
        .iter()
        .find_map(|mark| out.find(mark))
    {
        let end = item_end(&out, start);
        let blanked: String = out[start..end].chars().map(|c| if c == '\n' { c } else { ' ' }).collect();
        out.replace_range(start..end, &blanked);
    }
    out
}

/// The end of the item that begins at `start`: the position behind its block or its semicolon.
pub fn item_end(code: &str, start: usize) -> usize {
    let (mut braces, mut brackets) = (0, 0);
    for (at, c) in code[start..].char_indices() {
        match c {
            '(' | '[' => brackets += 1,
            ')' | ']' => brackets -= 1,
            '{' => braces += 1,
            '}' => braces -= 1,
            _ => {}
        }
        if braces == 0 && (c == '}' || c == ';' && brackets == 0) {
            return start + at + 1;
        }
    }
    code.len()
}

/// The positions at which `word` stands as a whole word.
pub fn words<'a>(text: &'a str, word: &'a str) -> impl Iterator<Item = usize> + 'a {
    text.match_indices(word).map(|(at, _)| at).filter(move |&at| {
        let before = text[..at].chars().next_back();
        let after = text[at + word.len()..].chars().next();
        !before.is_some_and(is_of_a_word) && !after.is_some_and(is_of_a_word)
    })
}

/// Whether `word` stands somewhere with `next` as the next thing after it.
pub fn has_word_then(text: &str, word: &str, next: &str) -> bool {
    words(text, word).any(|at| text[at + word.len()..].trim_start().starts_with(next))
}

/// Whether the character may stand in the middle of a name.
pub fn is_of_a_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// The number of the line that contains this position, from 1 on.
pub fn line(text: &str, at: usize) -> usize {
    text[..at].matches('\n').count() + 1
}

/// The text of the `//!` lines at the head of a file, without their marks.
pub fn manual(text: &str) -> String {
    let lines = text.lines().map_while(|line| line.strip_prefix("//!"));
    lines.map(|line| format!("{}\n", line.trim())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_are_blank_and_lines_stay() {
        assert_eq!(code("a // b\n/* c /* d */\n e */ f"), "a     \n            \n      f");
    }

    #[test]
    fn literals_are_empty_whatever_their_kind() {
        assert_eq!(code(r#"f("unsafe", 'x', '\'', b"\"", "\\")"#), r#"f("      ", " ", "  ", b"  ", "  ")"#);
        assert_eq!(code("r#\"a \" b\"# c br\"d\\\" e"), "\"        \" c \"    \" e");
    }

    #[test]
    fn a_lifetime_is_code() {
        assert_eq!(code("fn f<'a>(x: &'a str, y: &'static str)"), "fn f<'a>(x: &'a str, y: &'static str)");
    }

    #[test]
    fn what_is_compiled_for_tests_only_is_not_shipped() {
        let text =
            "a();\n#[cfg(test)]\nmod tests {\n    fn b() { [0; 2]; }\n}\nc();\n#[cfg(test)]\nmod d;\ne();";
        let kept: Vec<_> = shipped(text).split_whitespace().map(str::to_owned).collect();
        assert_eq!(kept, ["a();", "c();", "e();"]);
    }

    #[test]
    fn a_word_is_no_part_of_a_longer_one() {
        assert_eq!(words("unsafe_code unsafe(unsafe)", "unsafe").collect::<Vec<_>>(), [12, 19]);
    }
}

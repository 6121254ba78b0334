//! Paths in code that begin at a given root, with the braces of `use` taken apart.

use crate::code::{is_of_a_word, line, words};

/// One path, without its root.
#[derive(Debug, PartialEq)]
pub struct Reference {
    /// The line on which its root stands.
    pub line: usize,
    /// `machine::cpu::pin` in three parts.
    pub parts: Vec<String>,
}

/// Every path of `code` that begins with `root::`, for example `crate` or `std`.
pub fn references(code: &str, root: &str) -> Vec<Reference> {
    let mut found = Vec::new();
    for at in words(code, root).filter(|&at| !code[..at].ends_with("::")) {
        let Some(rest) = code[at + root.len()..].strip_prefix("::") else { continue };
        let mut ends = Vec::new();
        tree(rest, &[], &mut ends);
        found.extend(ends.into_iter().map(|parts| Reference { line: line(code, at), parts }));
    }
    found
}

/// Adds the ends of the tree at the beginning of `text`, and returns what follows it.
fn tree<'a>(text: &'a str, above: &[String], ends: &mut Vec<Vec<String>>) -> &'a str {
    let text = text.trim_start();
    if let Some(inside) = text.strip_prefix('{') {
        return branches(inside, above, ends);
    }
    let length = text.find(|c| !is_of_a_word(c) && c != '*').unwrap_or(text.len());
    let (name, rest) = text.split_at(length);
    let path = [above, &[name.to_owned()]].concat();
    match rest.strip_prefix("::") {
        Some(below) if below.starts_with(|c| is_of_a_word(c) || c == '{' || c == '*') => {
            tree(below, &path, ends)
        }
        _ => {
            ends.push(path);
            rest
        }
    }
}

fn branches<'a>(inside: &'a str, above: &[String], ends: &mut Vec<Vec<String>>) -> &'a str {
    let mut rest = inside.trim_start();
    while !rest.is_empty() && !rest.starts_with('}') {
        rest = tree(rest, above, ends);
        // Skips `as another_name` and the comma.
        rest = rest.trim_start_matches(|c| c != ',' && c != '}').trim_start_matches(',').trim_start();
    }
    rest.strip_prefix('}').unwrap_or(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(code: &str, root: &str) -> Vec<String> {
        references(code, root).iter().map(|r| format!("{}:{}", r.line, r.parts.join("."))).collect()
    }

    #[test]
    fn braces_are_taken_apart() {
        let code = "\nuse crate::{Error, machine::{self, cpu as c}, record::*,};";
        assert_eq!(found(code, "crate"), ["2:Error", "2:machine.self", "2:machine.cpu", "2:record.*"]);
    }

    #[test]
    fn a_path_in_an_expression_ends_where_the_path_ends() {
        assert_eq!(
            found("crate::record::Interval { low }; crate::a::b::<T>()", "crate"),
            ["1:record.Interval", "1:a.b"]
        );
    }

    #[test]
    fn another_root_is_not_found() {
        assert_eq!(found("my_std::fs, a::std::fs, std::io", "std"), ["1:io"]);
    }
}

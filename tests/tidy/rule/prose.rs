//! Rule: comments, messages and the manual avoid certain words that hide the subject of a sentence.

use crate::code::{code, is_of_a_word, line};
use crate::house::{House, Source};

/// The words, and what to write instead.
const WORDS: [(&[&str], &str); 5] = [
    (&["told"], "say what the program shows, reports, receives or counts"),
    (&["nobody"], "name the task, the user or the process"),
    (&["somebody"], "name the task, the user or the process"),
    (&["whoever"], "name the task, the user or the process"),
    (&["so", "many"], "write `this number of`, or name the parameter"),
];

/// What to write instead of a clause that begins with `who`.
const SUBJECT: &str = "begin the clause with the task, the user or the process";

pub fn complaints(house: &House) -> Vec<String> {
    house
        .files()
        .filter(|(path, _)| is_prose(path))
        .flat_map(|(path, text)| file_complaints(path, text))
        .collect()
}

/// The sources of all packages, the manual, and the README.
fn is_prose(path: &str) -> bool {
    path == "README.md"
        || Source::from_path(path).is_some_and(|_| is_rust(path) || path.starts_with("src/manual/"))
}

fn is_rust(path: &str) -> bool {
    path.ends_with(".rs")
}

fn file_complaints(path: &str, text: &str) -> Vec<String> {
    let prose = if is_rust(path) { comments_and_literals(text) } else { text.to_owned() };
    let prose = without_names(&prose);
    let words = split(&prose);
    let refused = WORDS
        .iter()
        .flat_map(|(wanted, instead)| places(&words, wanted).map(move |at| (at, wanted.join(" "), *instead)));
    let subjects = clauses_with_who(&prose, &words).map(|at| (at, "who".to_owned(), SUBJECT));
    let mut said: Vec<_> =
        refused.chain(subjects).map(|(at, word, instead)| (line(&prose, at), word, instead)).collect();
    said.sort_unstable();
    said.into_iter().map(|(number, word, instead)| format!("{path}:{number}: `{word}`: {instead}")).collect()
}

/// The comments and literals of a Rust file, with its code as spaces. Lines stay where they are.
fn comments_and_literals(text: &str) -> String {
    let code = code(text);
    let pairs = code.chars().zip(text.chars());
    let prose: String =
        pairs.map(|(code, c)| if code == c && !['\n', '"'].contains(&c) { ' ' } else { c }).collect();
    prose.replace("\\n", "  ")
}

/// The text with names as spaces: what is between backticks on one line, and between braces in a literal.
fn without_names(text: &str) -> String {
    text.split_inclusive('\n').map(|line| blank_between(&blank_between(line, '`', '`'), '{', '}')).collect()
}

fn blank_between(line: &str, open: char, close: char) -> String {
    let mut out = String::with_capacity(line.len());
    let mut rest = line;
    while let Some((before, after)) = rest.split_once(open) {
        let Some((name, behind)) = after.split_once(close) else { break };
        out.push_str(before);
        out.extend(std::iter::repeat_n(' ', name.chars().count() + 2));
        rest = behind;
    }
    out + rest
}

/// The words in small letters with their positions. The marks of a comment and of a continued literal are not words.
fn split(text: &str) -> Vec<(usize, String)> {
    let mut words = Vec::new();
    let mut begun = None;
    for (at, c) in text.char_indices().chain([(text.len(), ' ')]) {
        match begun {
            None if is_of_a_word(c) => begun = Some(at),
            Some(start) if !is_of_a_word(c) => {
                words.push((start, text[start..at].to_lowercase()));
                begun = None;
            }
            _ => {}
        }
    }
    words
}

/// The positions at which these words follow each other.
fn places<'a>(words: &'a [(usize, String)], wanted: &'a [&str]) -> impl Iterator<Item = usize> + 'a {
    let runs = words.windows(wanted.len());
    runs.filter(move |run| run.iter().map(|(_, word)| word.as_str()).eq(wanted.iter().copied()))
        .map(|run| run[0].0)
}

/// The positions at which `who` begins a sentence or a clause, without a noun before it.
fn clauses_with_who<'a>(prose: &'a str, words: &'a [(usize, String)]) -> impl Iterator<Item = usize> + 'a {
    let begins = |before: Option<&(usize, String)>, at: usize| {
        before.is_none_or(|(start, word)| {
            let between = &prose[start + word.len()..at];
            between.contains(['.', ',', ';', ':', '!', '?', '*', '"']) || word == "and" || word == "or"
        })
    };
    let numbered = words.iter().enumerate().filter(|(_, (_, word))| word == "who");
    numbered
        .filter(move |(n, (at, _))| begins(n.checked_sub(1).map(|n| &words[n]), *at))
        .map(|(_, (at, _))| *at)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complaints_on(path: &str, text: &str) -> Vec<String> {
        complaints(&House::default().with(path, text))
    }

    #[test]
    fn a_word_is_found_in_comments_literals_and_manual() {
        for (words, _) in WORDS {
            let word = words.join(" ");
            for path in ["README.md", "src/manual/x.md"] {
                assert_eq!(complaints_on(path, &format!("a\nIt is {word}.")).len(), 1, "{path} {word}");
            }
            for text in
                [format!("//! {word}'s"), format!("f(\"({word})\");"), format!("// {}", word.to_uppercase())]
            {
                for path in ["src/x.rs", "crates/y/src/x.rs"] {
                    assert_eq!(complaints_on(path, &text).len(), 1, "{path} {text}");
                }
            }
        }
    }

    #[test]
    fn two_words_may_be_on_two_lines() {
        let said = complaints_on("src/x.rs", "/// takes so\n/// many steps\nf(\"so \\\n  many\");");
        let lines: Vec<_> = said.iter().map(|sentence| sentence.split(": ").next().unwrap()).collect();
        assert_eq!(lines, ["src/x.rs:1", "src/x.rs:3"]);
    }

    #[test]
    fn who_is_no_subject() {
        for text in
            ["Who asks?", "It is seen.\n* Who lies", "the owner, who pays", "who asks and who answers"]
        {
            assert!(!complaints_on("src/manual/x.md", text).is_empty(), "{text}");
        }
        assert_eq!(complaints_on("src/x.rs", "f(\"a\", \"who is it\"); // a user who waits").len(), 1);
    }

    #[test]
    fn code_names_and_other_files_are_free() {
        let text = "fn told(nobody: u8) { println!(\"{told} {told:?} `told`\"); } // the user `nobody` is untold, so as many";
        assert_eq!(complaints_on("src/x.rs", text), [""; 0]);
        for path in ["tests/x.rs", "crates/y/tests/x.rs", "CHANGELOG.md", "src/page.js"] {
            assert_eq!(complaints_on(path, "// nobody"), [""; 0], "{path}");
        }
    }
}

//! Rule: shipped code does not panic without a message. A function that can fail returns an error; an `expect` says why it cannot.

use crate::code::line;
use crate::house::House;

pub fn complaints(house: &House) -> Vec<String> {
    house.shipped().flat_map(|(path, code)| file_complaints(path, &code)).collect()
}

fn file_complaints(path: &str, code: &str) -> Vec<String> {
    let unwrapped = code.match_indices(".unwrap()").map(|(at, _)| at);
    let wordless = code.match_indices(".expect(").map(|(at, _)| at).filter(|at| is_wordless(&code[*at..]));
    let mut numbers: Vec<_> = unwrapped.chain(wordless).map(|at| line(code, at)).collect();
    numbers.sort_unstable();
    let sentence =
        |number| format!("{path}:{number}: a panic without a word; answer an error, or expect with a reason");
    numbers.into_iter().map(sentence).collect()
}

/// The contents of literals are spaces here, so a message is two quotes with spaces between.
fn is_wordless(code: &str) -> bool {
    let argument = code.trim_start_matches(".expect(").trim_start();
    argument.starts_with("\"\"") || argument.starts_with(')')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complaints_on(text: &str) -> Vec<String> {
        complaints(&House::default().with("src/x.rs", text))
    }

    #[test]
    fn a_panic_without_a_word_is_found() {
        assert_eq!(complaints_on("f()\n    .unwrap();\ng().expect(\"\");").len(), 2);
        assert_eq!(complaints_on("g().expect(\"a list is never empty\"); h().unwrap_or(0);"), [""; 0]);
    }

    #[test]
    fn an_example_and_a_test_may_unwrap() {
        assert_eq!(
            complaints_on(
                "/// f().unwrap()\nfn f() {}\n#[cfg(test)]\nmod tests { fn g() { f().unwrap(); } }"
            ),
            [""; 0]
        );
    }
}

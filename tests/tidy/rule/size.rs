//! Rule: files and functions have at most a certain number of lines.

use crate::code::{code, is_of_a_word, item_end, line, words};
use crate::house::{House, Source};

const FILE_LINES: usize = 400;
const FUNCTION_LINES: usize = 60;

pub fn complaints(house: &House) -> Vec<String> {
    let source = house.rust().filter(|(path, _)| Source::from_path(path).is_some());
    source
        .flat_map(|(path, text)| long_file(path, text).into_iter().chain(long_functions(path, text)))
        .collect()
}

fn long_file(path: &str, text: &str) -> Option<String> {
    let lines = text.lines().count();
    (lines > FILE_LINES)
        .then(|| format!("{path}: {lines} lines, and {FILE_LINES} is a lot; what is its second half about?"))
}

fn long_functions(path: &str, text: &str) -> Vec<String> {
    let code = code(text);
    let long = words(&code, "fn").filter(|at| code[at + 2..].starts_with(' ')).filter_map(|at| {
        let lines = code[at..item_end(&code, at)].lines().count();
        (lines > FUNCTION_LINES).then_some((at, lines))
    });
    let sentence = |(at, lines)| {
        let name: String = code[at + 3..].chars().take_while(|&c| is_of_a_word(c)).collect();
        format!("{path}:{}: {name} has {lines} lines, and {FUNCTION_LINES} is a screen", line(&code, at))
    };
    long.map(sentence).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complaints_on(text: &str) -> Vec<String> {
        complaints(&House::default().with("src/x.rs", text))
    }

    #[test]
    fn a_long_file_is_found() {
        assert_eq!(complaints_on(&"// a\n".repeat(400)), [""; 0]);
        assert_eq!(complaints_on(&"// a\n".repeat(401)).len(), 1);
    }

    #[test]
    fn a_long_function_is_found_by_its_name() {
        let function = |lines: usize| {
            format!("\nfn f(x: [u8; 2]) -> u8 {{\n{}}}\nfn g() {{}}\n", "    a();\n".repeat(lines))
        };
        assert_eq!(complaints_on(&function(58)), [""; 0]);
        assert_eq!(complaints_on(&function(59)), ["src/x.rs:2: f has 61 lines, and 60 is a screen"]);
    }

    #[test]
    fn a_function_without_a_body_ends_where_it_is_declared() {
        assert_eq!(
            complaints_on(&format!(
                "trait T {{\n    fn f(x: [u8; 2]);\n{}}}\n",
                "    const A: fn(u8) = a;\n".repeat(70)
            )),
            [""; 0]
        );
    }
}

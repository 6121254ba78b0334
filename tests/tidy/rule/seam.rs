//! Rule: only the harness, the bench targets and the crate with Criterion's interface name Criterion, so that its next version
//! affects one file.

use super::is_of_module;
use crate::code::{code, is_of_a_word, line, words};
use crate::house::House;

pub fn complaints(house: &House) -> Vec<String> {
    let others = house.rust().filter(|(path, _)| !may_name_criterion(path));
    others.flat_map(|(path, text)| file_complaints(path, &code(text))).collect()
}

fn may_name_criterion(path: &str) -> bool {
    is_of_module(path, "harness") || path.starts_with("benches/") || path.starts_with("crates/criterion/")
}

fn file_complaints(path: &str, code: &str) -> Vec<String> {
    let named = words(code, "criterion").filter(|&at| is_the_crate(code, at));
    named
        .map(|at| {
            format!("{path}:{}: only the engine's harness and benches name Criterion in code", line(code, at))
        })
        .collect()
}

/// A path that begins with the crate, and not with one of our own modules or variables of that name.
fn is_the_crate(code: &str, at: usize) -> bool {
    let before = code[..at].trim_end();
    let is_inner = before.strip_suffix("::").is_some_and(|outer| outer.ends_with(is_of_a_word));
    let is_used = before.ends_with("use") || before.ends_with("extern crate");
    !is_inner && (is_used || code[at..].starts_with("criterion::"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn criterion_is_named_in_the_harness_only() {
        for (path, count) in [
            ("src/harness.rs", 0),
            ("crates/engine/src/harness/x.rs", 0),
            ("benches/x.rs", 0),
            ("src/trial.rs", 1),
        ] {
            for text in [
                "use criterion::Criterion;",
                "use criterion;",
                "use ::criterion::X;",
                "fn f(_: &criterion::Bencher) {}",
            ] {
                let house = House::default().with(path, text);
                assert_eq!(complaints(&house).len(), count, "{path}: {text}");
            }
        }
    }

    #[test]
    fn a_comment_and_a_name_of_our_own_are_free() {
        let text = "//! criterion::Bencher\nuse crate::harness::criterion::Saved;\nlet criterion = 1;";
        assert_eq!(complaints(&House::default().with("src/command.rs", text)), [""; 0]);
    }
}

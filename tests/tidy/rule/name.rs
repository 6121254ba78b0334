//! Rule: the name of a module describes its content. A module whose name fits anything collects everything.

use crate::code::{code, has_word_then};
use crate::house::{House, Source};
use std::collections::BTreeMap;

const EMPTY: [&str; 7] = ["util", "utils", "common", "helper", "helpers", "manager", "misc"];

pub fn complaints(house: &House) -> Vec<String> {
    let files = house.rust().flat_map(|(path, text)| file_complaints(path, text));
    files.chain(twins(house)).collect()
}

/// Complaints about files with the same name in one package, which a reader confuses. Allowed are the tests of a module, the
/// operations of a group, files of each architecture, and files named after a group or a subcommand.
fn twins(house: &House) -> Vec<String> {
    let mut files: BTreeMap<(Option<&str>, &str), Vec<&str>> = BTreeMap::new();
    for (path, _) in house.rust().filter(|(path, _)| !is_by_design(path)) {
        let Some(source) = Source::from_path(path) else { continue };
        let name = path.rsplit('/').next().unwrap_or(path);
        files.entry((source.package, name)).or_default().push(path);
    }
    let twins = files.into_values().filter(|paths| paths.len() > 1);
    twins.map(|paths| format!("{}: one name for several files", paths.join(", "))).collect()
}

fn is_by_design(path: &str) -> bool {
    let parts: Vec<_> = path.trim_start_matches("src/").split('/').collect();
    let named_for_what_it_serves = matches!(parts[..], ["suite" | "command", _]);
    let file = parts.last().copied().unwrap_or_default();
    named_for_what_it_serves
        || file == "tests.rs"
        || file.starts_with("operation")
        || parts.iter().any(|part| part.starts_with("x86_64") || part.starts_with("aarch64"))
}

fn file_complaints(path: &str, text: &str) -> Vec<String> {
    let mut said = Vec::new();
    if path.ends_with("/mod.rs") {
        said.push(format!("{path}: a module is the file of its own name, not mod.rs"));
    }
    let code = code(text);
    let of_path =
        EMPTY.iter().filter(|name| path.trim_end_matches(".rs").split('/').any(|part| part == **name));
    let of_code = EMPTY.iter().filter(|name| has_word_then(&code, "mod", &format!("{name} {{")));
    let empty = of_path.chain(of_code);
    said.extend(
        empty.map(|name| format!("{path}: `{name}` does not say what is in it; name it for what it holds")),
    );
    said
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complaint_count(path: &str, text: &str) -> usize {
        complaints(&House::default().with(path, text)).len()
    }

    #[test]
    fn a_name_that_says_nothing_is_found() {
        assert_eq!(complaint_count("src/record/util.rs", ""), 1);
        assert_eq!(complaint_count("tests/common/clock.rs", ""), 1);
        assert_eq!(complaint_count("src/record.rs", "mod misc {\n}"), 1);
        assert_eq!(complaint_count("src/record/utility_bill.rs", "mod tests {\n}"), 0);
    }

    #[test]
    fn two_files_of_one_name_are_found_unless_they_are_twins_by_design() {
        let house = |a, b| complaints(&House::default().with(a, "").with(b, "")).len();
        assert_eq!(house("src/record/curve.rs", "src/study/curve.rs"), 1);
        assert_eq!(house("src/record/tests.rs", "src/study/tests.rs"), 0);
        assert_eq!(house("src/suite/signal.rs", "src/platform/signal.rs"), 0);
        assert_eq!(house("src/suite/a/operation.rs", "src/suite/b/operation.rs"), 0);
        assert_eq!(house("src/suite/a/walk.rs", "src/suite/b/walk.rs"), 1);
    }

    #[test]
    fn a_module_is_the_file_of_its_own_name() {
        assert_eq!(complaint_count("src/record/mod.rs", ""), 1);
    }
}

//! A module is named for what it holds. Names that fit anything hold everything.

use crate::code::{code, has_word_then};
use crate::house::House;

const EMPTY: [&str; 7] = ["util", "utils", "common", "helper", "helpers", "manager", "misc"];

pub fn complaints(house: &House) -> Vec<String> {
    house.rust().flat_map(|(path, text)| file_complaints(path, text)).collect()
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

    fn said(path: &str, text: &str) -> usize {
        complaints(&House::default().with(path, text)).len()
    }

    #[test]
    fn a_name_that_says_nothing_is_found() {
        assert_eq!(said("src/record/util.rs", ""), 1);
        assert_eq!(said("tests/common/clock.rs", ""), 1);
        assert_eq!(said("src/record.rs", "mod misc {\n}"), 1);
        assert_eq!(said("src/record/utility_bill.rs", "mod tests {\n}"), 0);
    }

    #[test]
    fn a_module_is_the_file_of_its_own_name() {
        assert_eq!(said("src/record/mod.rs", ""), 1);
    }
}

//! Rules: no group uses another one, so that deleting its folder deletes it whole; and builders make the boxes, so that a group
//! does not cast its subjects.

use crate::code::line;
use crate::house::House;
use crate::reference::references;

pub fn complaints(house: &House) -> Vec<String> {
    let groups: Vec<_> = super::group::groups(house).map(|(name, _)| name.to_owned()).collect();
    let files = house.shipped().filter_map(|(path, code)| Some((path, group_of(path)?.to_owned(), code)));
    files
        .flat_map(|(path, own, code)| {
            [sibling_complaints(path, &own, &code, &groups), cast_complaints(path, &code)].concat()
        })
        .collect()
}

/// The group to which a file of the suite belongs.
fn group_of(path: &str) -> Option<&str> {
    path.strip_prefix("src/suite/")?.trim_end_matches(".rs").split('/').next()
}

fn sibling_complaints(path: &str, own: &str, code: &str, groups: &[String]) -> Vec<String> {
    let depth = path.trim_start_matches("src/suite/").matches('/').count();
    let mut used = Vec::new();
    for reference in references(code, "crate") {
        if reference.parts.first().is_some_and(|part| part == "suite") {
            used.extend(reference.parts.get(1).map(|name| (name.clone(), reference.line)));
        }
    }
    for reference in references(code, "super") {
        // The first `super` of a group's own file is the suite; a file one folder below needs one more.
        let above = reference.parts.iter().take_while(|part| *part == "super").count();
        if above == depth {
            used.extend(reference.parts.get(above).map(|name| (name.clone(), reference.line)));
        }
    }
    let others = used.into_iter().filter(|(name, _)| name != own && groups.contains(name));
    others
        .map(|(name, line)| {
            format!("{path}:{line}: the group {own} uses the group {name}; what they share is kit")
        })
        .collect()
}

fn cast_complaints(path: &str, code: &str) -> Vec<String> {
    let casts = code.match_indices("as Box<dyn Subject>").map(|(at, _)| line(code, at));
    casts.map(|line| format!("{path}:{line}: `set_up` makes the box of a subject")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complaint_count(path: &str, text: &str) -> usize {
        let group = "pub const GROUP: Group = Group::new();";
        let house = House::default()
            .with("src/suite/a.rs", group)
            .with("src/suite/b.rs", group)
            .with(path, &format!("{group}\n{text}"));
        complaints(&house).len()
    }

    #[test]
    fn a_group_that_uses_another_one_is_found() {
        assert_eq!(complaint_count("src/suite/a.rs", "use super::b::f;"), 1);
        assert_eq!(complaint_count("src/suite/a.rs", "use crate::suite::b;"), 1);
        assert_eq!(complaint_count("src/suite/a/operation.rs", "use super::super::b::f;"), 1);
        assert_eq!(
            complaint_count("src/suite/a/operation.rs", "use super::b;"),
            0,
            "its own module of that name"
        );
        assert_eq!(complaint_count("src/suite/a/operation.rs", "use crate::suite::a::f;"), 0);
    }

    #[test]
    fn a_cast_to_a_box_is_found() {
        assert_eq!(complaint_count("src/suite/a.rs", "fn f() { Box::new(x) as Box<dyn Subject> }"), 1);
    }
}

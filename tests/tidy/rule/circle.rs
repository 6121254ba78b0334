//! No circle of files: two files that need each other are one idea in two places.
//!
//! A module and its children are one thing here: a child may use its parent.

use crate::house::House;
use crate::reference::references;
use std::collections::{BTreeMap, BTreeSet};

pub fn complaints(house: &House) -> Vec<String> {
    let graph = graph(house);
    let mut told = BTreeSet::new();
    for from in graph.keys() {
        if let Some(circle) = circle(from, &graph) {
            let mut files: Vec<_> = circle.clone();
            files.sort_unstable();
            told.insert(format!("{}: these files use each other in a circle", files.join(", ")));
        }
    }
    told.into_iter().collect()
}

/// Which file uses which, parents and children left out.
fn graph(house: &House) -> BTreeMap<String, BTreeSet<String>> {
    let files: BTreeSet<_> = house.shipped().map(|(path, _)| path.to_owned()).collect();
    let mut graph = BTreeMap::new();
    for (path, code) in house.shipped() {
        let own: Vec<_> = path.trim_start_matches("src/").trim_end_matches(".rs").split('/').collect();
        let mut used = BTreeSet::new();
        for root in ["crate", "super"] {
            for reference in references(&code, root) {
                let parts: Vec<_> = reference.parts.iter().map(String::as_str).collect();
                let above = parts.iter().take_while(|part| **part == "super").count();
                let base =
                    if root == "crate" { &[][..] } else { &own[..own.len().saturating_sub(above + 1)] };
                used.extend(file_of(&[base, &parts[above..]].concat(), &files));
            }
        }
        used.retain(|other| !is_family(path, other));
        graph.insert(path.to_owned(), used);
    }
    graph
}

/// The file of the longest module at the beginning of this path.
fn file_of(path: &[&str], files: &BTreeSet<String>) -> Option<String> {
    let named = (1..=path.len()).rev().map(|length| format!("src/{}.rs", path[..length].join("/")));
    named.into_iter().find(|file| files.contains(file))
}

fn is_family(a: &str, b: &str) -> bool {
    let folder = |path: &str| format!("{}/", path.trim_end_matches(".rs"));
    a == b || b.starts_with(&folder(a)) || a.starts_with(&folder(b))
}

/// A shortest way from a file back to itself.
fn circle(from: &str, graph: &BTreeMap<String, BTreeSet<String>>) -> Option<Vec<String>> {
    let mut open = vec![vec![from.to_owned()]];
    let mut seen = BTreeSet::new();
    while !open.is_empty() {
        let mut next = Vec::new();
        for way in open {
            for to in way.last().and_then(|last| graph.get(last)).into_iter().flatten() {
                if to == from {
                    return Some(way);
                }
                if seen.insert(to.clone()) {
                    next.push([way.as_slice(), std::slice::from_ref(to)].concat());
                }
            }
        }
        open = next;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_use_each_other_are_found_once() {
        let house = House::default()
            .with("src/a/x.rs", "use super::y::f;")
            .with("src/a/y.rs", "use super::z::f;")
            .with("src/a/z.rs", "fn f() { crate::a::x::g() }");
        assert_eq!(
            complaints(&house),
            ["src/a/x.rs, src/a/y.rs, src/a/z.rs: these files use each other in a circle"]
        );
        assert_eq!(complaints(&house.replacing("src/a/z.rs", "crate::a::x::g()", "g()")), [""; 0]);
    }

    #[test]
    fn a_child_may_use_its_parent() {
        let house = House::default()
            .with("src/a.rs", "mod x;\nuse crate::a::x::f;")
            .with("src/a/x.rs", "use super::g;");
        assert_eq!(complaints(&house), [""; 0]);
    }
}

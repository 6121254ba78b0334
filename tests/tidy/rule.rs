//! The rules, one in each file. A rule is a function that takes a house and returns its complaints as sentences.

mod arrow;
mod compiler;
mod danger;
mod group;
mod id;
mod name;
mod prose;
mod seam;
mod sibling;
mod size;
mod surface;
mod surprise;
mod voice;
mod word;

pub use compiler::newer_dependencies;
pub use group::{complaints as wiring_complaints, listed};

use crate::house::House;

/// A function that checks one rule.
type Rule = fn(&House) -> Vec<String>;

const RULES: &[Rule] = &[
    arrow::complaints,
    seam::complaints,
    danger::complaints,
    voice::complaints,
    group::complaints,
    id::complaints,
    sibling::complaints,
    surface::complaints,
    size::complaints,
    name::complaints,
    prose::complaints,
    surprise::complaints,
    word::complaints,
    compiler::complaints,
];

/// The complaints of all rules about this house.
pub fn complaints(house: &House) -> Vec<String> {
    RULES.iter().flat_map(|rule| rule(house)).collect()
}

/// Whether the path is the module `<name>.rs` of the root package, the engine or the analysis, or lies below it.
fn is_of_module(path: &str, name: &str) -> bool {
    ["crates/engine/", "crates/analysis/"]
        .iter()
        .find_map(|package| path.strip_prefix(package))
        .unwrap_or(path)
        .strip_prefix("src/")
        .and_then(|p| p.strip_prefix(name))
        .is_some_and(|p| p == ".rs" || p.starts_with('/'))
}

//! A set of cases that one process measures.

use super::Case;

/// A set of cases measured by one process.
#[derive(Clone, Copy)]
pub struct Group {
    /// Name: of the group, its source file, its bench target and its manual.
    pub name: &'static str,
    /// The manual: the source file itself, of which the `//!` lines are shown.
    pub manual: &'static str,
    /// Version of what is measured, decided by a person: numbers of another version belong to another series.
    pub version: u32,
    /// Its cases.
    pub cases: fn() -> Vec<Case>,
    /// Straight lines to draw through its cases.
    pub fits: &'static [Fit],
}

/// A line through the cases whose names begin with `prefix` and end in a number.
#[derive(Clone, Copy, Debug)]
pub struct Fit {
    /// What one step is: "a further u64 argument".
    pub step: &'static str,
    /// The ids' common beginning, with the group: `call/u64/`.
    pub prefix: &'static str,
}

impl Group {
    /// A group of a reader's own, version 1. `manual` is usually the source itself: `include_str!("mine.rs")`.
    pub const fn new(name: &'static str, manual: &'static str, cases: fn() -> Vec<Case>) -> Self {
        Self { name, manual, version: 1, cases, fits: &[] }
    }

    /// The full id of one of its cases.
    pub fn id(&self, case: &Case) -> String {
        format!("{}/{}", self.name, case.name)
    }

    /// The version as a record spells it.
    pub fn version_text(&self) -> String {
        self.version.to_string()
    }

    /// The manual's text: the `//!` lines of its source without their marks.
    pub fn manual_text(&self) -> String {
        let lines = self.manual.lines().map_while(|line| line.strip_prefix("//!"));
        lines.map(|line| format!("{}\n", line.strip_prefix(' ').unwrap_or(line))).collect()
    }
}

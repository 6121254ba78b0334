//! A group of cases: what one bench target measures.

use super::Case;
use crate::record::{Curve, Headline};

/// A group of cases, measured by one bench target and described by one manual.
///
/// ```
/// use syscost_engine::{Case, Claim, Group};
///
/// const GROUP: Group = Group::new("hash", "//! # What is timed\n//! A multiplication.\n", cases);
///
/// fn cases() -> Vec<Case> {
///     let hash = |n| (0..n).for_each(|i: u64| _ = std::hint::black_box(i.wrapping_mul(31)));
///     vec![Case::looped("word", "hash of a word", hash).claim(Claim::Linear)]
/// }
///
/// assert_eq!(GROUP.id(&cases()[0]), "hash/word");
/// ```
///
/// A bench target hands its groups to `syscost::harness::main`.
#[derive(Clone, Copy, Debug)]
pub struct Group {
    /// Name of the group, of its source file and of its bench target: the first part of its ids.
    pub name: &'static str,
    /// Text whose leading `//!` lines are the manual: usually the source file itself.
    pub manual: &'static str,
    /// Version of what is measured. A person raises it when the timed code changes its meaning; numbers of different
    /// versions are not compared.
    pub version: u32,
    /// Makes the cases.
    pub cases: fn() -> Vec<Case>,
    /// Straight lines that are fitted through its cases.
    pub fits: &'static [Fit],
    /// Curves that are drawn through its cases.
    pub curves: &'static [Curve],
    /// The cases that represent the group on the first screen of a run.
    #[doc(hidden)]
    pub headlines: &'static [Headline],
}

/// A straight line through the cases whose ids begin with `prefix` and end in a number. Its slope is the cost of one
/// step.
#[derive(Clone, Copy, Debug)]
pub struct Fit {
    /// One step, in words: "a further u64 argument".
    pub step: &'static str,
    /// Common beginning of the ids, with the group: `call/u64/`.
    pub prefix: &'static str,
}

impl Group {
    /// A group of version 1 without lines and curves. `manual` is usually the source itself: `include_str!("mine.rs")`.
    pub const fn new(name: &'static str, manual: &'static str, cases: fn() -> Vec<Case>) -> Self {
        Self { name, manual, version: 1, cases, fits: &[], curves: &[], headlines: &[] }
    }

    /// Sets the version.
    pub const fn version(self, version: u32) -> Self {
        Self { version, ..self }
    }

    /// Sets the straight lines.
    pub const fn fits(self, fits: &'static [Fit]) -> Self {
        Self { fits, ..self }
    }

    /// Sets the curves.
    pub const fn curves(self, curves: &'static [Curve]) -> Self {
        Self { curves, ..self }
    }

    /// Sets the cases that represent the group on the first screen of a run.
    #[doc(hidden)]
    pub const fn headlines(self, headlines: &'static [Headline]) -> Self {
        Self { headlines, ..self }
    }

    /// Full id of one of its cases: `group/name`.
    pub fn id(&self, case: &Case) -> String {
        format!("{}/{}", self.name, case.name)
    }

    /// The version as a record writes it.
    pub fn version_text(&self) -> String {
        self.version.to_string()
    }

    /// The version in a record of several copies. It includes the number of copies, because a different number is a different
    /// operation.
    pub(crate) fn version_of_copies(&self, copies: usize) -> String {
        let version = self.version_text();
        if copies > 1 { format!("{version} by {copies} copies") } else { version }
    }

    /// The manual's text: the leading `//!` lines without their marks.
    pub fn manual_text(&self) -> String {
        let lines = self.manual.lines().map_while(|line| line.strip_prefix("//!"));
        lines.map(|line| format!("{}\n", line.strip_prefix(' ').unwrap_or(line))).collect()
    }
}

//! A point of a history: what was compared with a reference at one time, case by case, as data.

use serde::{Deserialize, Serialize};
use syscost_engine::environment::Fingerprint;
use syscost_engine::record::guest_side::ClockKind;

/// The version of the layout of a point. 2: it has a clock, which is not that of the host; the others are still written as 1.
pub const LAYOUT: u32 = 2;

/// The layout version for a point of this clock: the oldest that can hold it, so that older versions of `syscost`
/// can read it.
pub fn layout_for_clock(clock: ClockKind) -> u32 {
    if clock == ClockKind::Host { 1 } else { LAYOUT }
}

/// A comparison by pairs with a reference, kept for good.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct HistoryPoint {
    /// Layout version, [`LAYOUT`].
    pub history: u32,
    /// Unique name of the comparison: its start and random characters.
    pub run: String,
    /// When it began, Unix seconds.
    pub started: u64,
    /// What was compared with the reference, in the user's words: a revision, a kernel.
    pub label: String,
    /// Name of the reference, which was side A.
    pub reference: String,
    /// Name of the new reference that side B was, if this point is the bridge to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bridge_to: Option<String>,
    /// What its costs are of. Ratios of two clocks are never in one series.
    #[serde(default, skip_serializing_if = "is_host")]
    pub clock: ClockKind,
    /// The machine.
    pub fingerprint: Fingerprint,
    /// The cases with a number.
    pub cases: Vec<CaseRatio>,
}

/// One case of a point.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CaseRatio {
    /// `group/variant/parameter`.
    pub id: String,
    /// Neither side can change it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub canary: bool,
    /// The version of the group, the same on both sides.
    pub version: String,
    /// ln(B/A): the pseudomedian over the pairs.
    pub log_ratio: f64,
    /// Its standard error.
    pub error: f64,
    /// Pairs that count.
    pub pairs: usize,
    /// An iteration of side B, ns.
    pub cost_ns: f64,
    /// Counted instructions: the functions that execute more or fewer in an iteration on side B, and by how many.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub functions: Vec<(String, f64)>,
}

fn is_host(clock: &ClockKind) -> bool {
    *clock == ClockKind::Host
}

impl HistoryPoint {
    /// The same point with these cases.
    pub fn with_cases(&self, cases: Vec<CaseRatio>) -> Self {
        Self { cases, ..self.clone() }
    }

    /// The run, its reference and the bridge's target: equal for two points of the same comparison.
    pub fn identity(&self) -> (&str, &str, Option<&str>) {
        (&self.run, &self.reference, self.bridge_to.as_deref())
    }
}

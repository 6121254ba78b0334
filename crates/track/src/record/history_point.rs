//! A point of a history: one comparison with a reference, case by case, as data.

use serde::{Deserialize, Serialize};
use syscost_engine::environment::Fingerprint;
use syscost_engine::record::guest_side::ClockKind;

/// The newest version of the layout of a point. Version 2 has a clock other than the host's; points of the host's clock are
/// still written as version 1.
pub const LAYOUT: u32 = 2;

/// The layout version for a point of this clock: the oldest that fits, so that older versions of `syscost` can read the
/// point.
pub fn layout_for_clock(clock: ClockKind) -> u32 {
    if clock == ClockKind::Host { 1 } else { LAYOUT }
}

/// A comparison with a reference, as a history keeps it.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct HistoryPoint {
    /// Layout version, [`LAYOUT`].
    pub history: u32,
    /// Unique name of the comparison: its start and random characters.
    pub run: String,
    /// When it began, Unix seconds.
    pub started: u64,
    /// The side that was compared with the reference, in the user's words: a revision, a kernel.
    pub label: String,
    /// Name of the reference, which was side A.
    pub reference: String,
    /// Name of the new reference that side B was, if this point is the bridge to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bridge_to: Option<String>,
    /// The clock of its costs. Ratios of different clocks are never in one series.
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
    /// Whether neither side can change its cost.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub canary: bool,
    /// The version of the group, the same on both sides.
    pub version: String,
    /// ln(B/A): the pseudomedian over the pairs.
    pub log_ratio: f64,
    /// The standard error of `log_ratio`.
    pub error: f64,
    /// The number of valid pairs.
    pub pairs: usize,
    /// The cost of an iteration of side B, ns, or instructions if those are counted.
    pub cost_ns: f64,
    /// With counted instructions: the functions whose instructions per iteration differ on side B, and the difference.
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

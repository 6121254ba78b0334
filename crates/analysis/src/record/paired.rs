//! The data of comparisons by pairs of processes, and of sampled processes. Verdicts are not stored. `Paired::judge`, defined
//! in [`study::sequential`](crate::study::sequential), derives them, so the same pairs always give the same verdicts.

use crate::error::Result;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;
use syscost_engine::environment::Fingerprint;
use syscost_engine::record::EventRate;
use syscost_engine::record::guest_side::{ClockKind, GuestSide};
use syscost_engine::record::store::{self, parse};

/// The version of the layout. In version 2 a case has `versions` in place of `bodies`. Since version 3 the sides can be
/// guests, whose clock is not this machine's.
pub const LAYOUT: u32 = 3;

/// The parameters of a verdict.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Rule {
    /// A change smaller than this share is not worth an alarm.
    pub threshold: f64,
    /// `same`: the change is within ± this share.
    pub margin: f64,
    /// The most looks (tests of the pairs so far): 1 to 4.
    pub looks: usize,
}

/// A whole comparison.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Paired {
    /// Layout version, [`LAYOUT`].
    pub paired: u32,
    /// `syscost` and its version.
    pub tool: String,
    /// Unique name: the start time and random characters.
    pub run: String,
    /// Start of the comparison, Unix seconds.
    pub started: u64,
    /// Seed of everything random.
    pub seed: u64,
    /// The parameters of the verdicts.
    pub rule: Rule,
    /// Whether the sides took turns, or ran one after the other in blocks.
    pub by_turns: bool,
    /// The way in which functions were reordered for every pair; `None` if each side ran one link.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub placement: Option<String>,
    /// A description of each side.
    pub sides: [String; 2],
    /// The identities of the sides if they were guests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guests: Option<PairedGuests>,
    /// The machine.
    pub fingerprint: Fingerprint,
    /// The CPU of the measurement.
    pub cpu: usize,
    /// Notes on the whole.
    pub notes: Vec<String>,
    /// The cases, in the order in which they ran.
    pub cases: Vec<CasePairs>,
}

impl Paired {
    /// Reads the file of a comparison.
    ///
    /// # Errors
    /// The file cannot be read, holds something else, or was written by a newer version.
    pub fn load(path: &Path) -> Result<Self> {
        Self::parse(path, &store::read(path)?)
    }

    fn parse(path: &Path, bytes: &[u8]) -> Result<Self> {
        parse::versioned(path, bytes, ("paired", LAYOUT), "the pairs of `syscost ab`")
    }

    /// Whether a case ended because a claim does not hold, or because a side could not run it.
    pub fn has_failed(&self) -> bool {
        self.cases.iter().filter_map(|case| case.ended.as_ref()).any(|ended| ended.why == Why::Failed)
    }

    /// Whether some case has a pair that counts. Canaries are considered only if there is no other case.
    pub fn has_pairs(&self) -> bool {
        let only_canaries = self.cases.iter().all(|case| case.canary);
        let asked = self.cases.iter().filter(|case| only_canaries || !case.canary);
        asked.into_iter().any(|case| !case.valid_log_ratios().is_empty())
    }

    /// The kind of clock that measured the times.
    pub fn clock_kind(&self) -> ClockKind {
        self.guests.as_ref().map_or(ClockKind::Host, |guests| guests.clock)
    }
}

/// Two kernels that took turns as guests.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PairedGuests {
    /// The kind of clock that measured the times.
    pub clock: ClockKind,
    /// The hypervisor or emulator that ran the guests.
    pub machine: String,
    /// The kernels: A, then B.
    pub sides: [GuestSide; 2],
    /// The differences between their configurations.
    pub differences: Vec<String>,
}

/// All pairs of one case.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct CasePairs {
    /// `group/variant/parameter`.
    pub id: String,
    /// Whether the case is a canary, which neither side can change: if it changes, the machine has changed.
    pub canary: bool,
    /// The evidence of each side from the first pair.
    pub evidence: [Vec<String>; 2],
    /// The version of the group on each side.
    pub versions: [String; 2],
    /// The events that each side counted in the first pair: allocations, if its allocator counts them.
    #[serde(default)]
    pub counts: [Vec<EventRate>; 2],
    /// Notes for the reader.
    pub notes: Vec<String>,
    /// The reason if the case ended without a verdict. Its pairs are then dropped, because an unproved case has no number.
    pub ended: Option<Ended>,
    /// The pairs, in order.
    pub pairs: Vec<PairRecord>,
    /// A pair of the builds as they were linked. It is not among `pairs`, whose functions are reordered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub as_built: Option<PairRecord>,
}

/// An end without a verdict.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ended {
    /// The kind of end.
    pub why: Why,
    /// The sentence that explains the end.
    pub sentence: String,
}

/// The kinds of an end without a verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Why {
    /// The machine lacks what the case needs, for both sides alike.
    Skipped,
    /// A claim does not hold, only one side can run it, or a side died, hung or gave an invalid answer.
    Failed,
    /// Only one of the two builds has the case.
    Lone,
}

/// One pair.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PairRecord {
    /// ln(B/A).
    pub difference: f64,
    /// The cost of an iteration on each side, ns: the lower quartile of its turns.
    pub cost_ns: [f64; 2],
    /// The reason if the pair does not count: an event on the machine, never the pair's value.
    pub rejected: Option<String>,
}

impl PairRecord {
    /// A pair that does not count and has no value.
    pub fn from_rejection(sentence: String) -> Self {
        Self { rejected: Some(sentence), ..Self::default() }
    }
}

impl CasePairs {
    /// Ends a case without a verdict and drops its pairs.
    pub fn end_without_verdict(&mut self, why: Why, sentence: String) {
        self.pairs.clear();
        self.ended = Some(Ended { why, sentence });
    }

    /// The log ratios of the pairs that count, in order.
    pub fn valid_log_ratios(&self) -> Vec<f64> {
        self.pairs.iter().filter(|pair| pair.rejected.is_none()).map(|pair| pair.difference).collect()
    }
}

// The time of an operation in one process, divided among the functions that were sampled.

/// Times of an operation in one process, ns.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ProcessTimes {
    /// The whole operation: the median of its batches.
    pub operation_ns: f64,
    /// Number of samples between the start and the stop of the clock.
    pub samples: u64,
    /// The times by function. Their own times sum up to the operation.
    pub functions: BTreeMap<String, FunctionTime>,
    /// The times by class (`entry`, `copy`, …). They sum up to the operation, too.
    pub classes: BTreeMap<String, f64>,
}

/// Times of a function in an operation, ns.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct FunctionTime {
    /// Time in the function itself.
    pub own_ns: f64,
    /// Time in the function and in the functions that it calls.
    pub with_callees_ns: f64,
}

/// The samples of a case.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SampledCase {
    /// Id of the case.
    pub id: String,
    /// The observations. Each is a pair of processes, one per side, or a single process.
    pub observations: Vec<Vec<ProcessTimes>>,
    /// `cpu-cycles` or `cpu-clock`.
    pub event: String,
    /// Remarks for the reader, and the reasons why observations are missing.
    pub notes: Vec<String>,
    /// The reason why there is no observation.
    pub failure: Option<String>,
}

#[cfg(test)]
mod load_tests {
    use super::*;

    #[test]
    fn pairs_are_read_and_a_newer_layout_is_reported() {
        let versions = ["1".into(), "1".into()];
        let case = CasePairs { id: "a/b".into(), versions, ..Default::default() };
        let pairs = Paired { paired: LAYOUT, cases: vec![case], ..Paired::default() };
        let read = |text: &str| Paired::parse(Path::new("pairs.json"), text.as_bytes());
        let written = serde_json::to_string(&pairs).unwrap();
        assert_eq!(read(&written).unwrap().cases[0].versions, ["1", "1"]);
        let newer = read(r#"{"paired": 99}"#).unwrap_err().to_string();
        assert!(newer.contains("written by a newer syscost"), "{newer}");
    }
}

//! A comparison of kernels by counted instructions, as data. Verdicts are not stored:
//! [`crate::counted_change`] derives them.

use crate::executed::function_table::MovedFunction;
use serde::{Deserialize, Serialize};
use std::path::Path;
use syscost_engine::record::guest_side::{ClockKind, GuestSide};
use syscost_engine::record::store;
use syscost_platform::error::{Error, Result};

/// The version of the layout.
pub const LAYOUT: u32 = 2;

/// How instructions were counted. Counts by different methods are never compared with each other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CountingMethod {
    /// By the emulator's clock: each repetition of a string instruction counts as one. Fast string instructions are hidden from
    /// the kernel.
    Clock,
    /// By the plugin: a string instruction with all its repetitions counts as one. Fast string instructions are hidden from the
    /// kernel.
    #[default]
    Executed,
}

impl CountingMethod {
    /// The suffix of a case's version in a history, so that points by different methods form separate series.
    pub fn version_suffix(self) -> &'static str {
        match self {
            Self::Clock => "+clock",
            Self::Executed => "+executed",
        }
    }
}

/// A whole comparison.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct InstructionCounts {
    /// Layout version, [`LAYOUT`].
    pub instruction_counts: u32,
    /// The clock of the numbers: [`ClockKind::Icount`].
    pub clock: ClockKind,
    /// How instructions were counted.
    pub method: CountingMethod,
    /// Why the plugin did not count, in a sentence; `None` if it did.
    #[serde(default)]
    pub refusal: Option<String>,
    /// `syscost` and its version.
    pub tool: String,
    /// Unique name: its start and random characters.
    pub run: String,
    /// When it began, Unix seconds.
    pub started: u64,
    /// Changes up to this share are no findings.
    pub threshold: f64,
    /// The processor that was emulated, and the emulator's version.
    pub machine: String,
    /// The kernels: A, then B.
    pub sides: [GuestSide; 2],
    /// The differences between the configurations of the kernels.
    pub notes: Vec<String>,
    /// The cases, in the order in which they were counted.
    pub cases: Vec<CaseCounts>,
}

/// One case on both kernels.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CaseCounts {
    /// `group/variant/parameter`.
    pub id: String,
    /// Whether no kernel can change its cost.
    pub canary: bool,
    /// For each side, the outcome of the case in each boot that reported one.
    pub sides: [Vec<CountOutcome>; 2],
    /// The functions whose instructions changed, the largest change first, from the first boot of each kernel.
    #[serde(default)]
    pub moved: Vec<MovedFunction>,
}

/// The count of a case in one boot, or why there is none.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CountOutcome {
    /// Its instructions were counted.
    Counted(Count),
    /// The case cannot run in this guest, for this reason.
    Skipped(String),
    /// The case failed or died, for this reason.
    Failed(String),
}

/// The instructions of a batch and of a batch with twice the iterations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Count {
    /// Iterations of the smaller batch.
    pub iterations: u64,
    /// Instructions of the two batches, each the median of several.
    pub batches: [u64; 2],
    /// Repetitions of string instructions in the two batches; 0 if they are in `batches`.
    #[serde(default)]
    pub repetitions: [u64; 2],
}

impl Count {
    /// Instructions per iteration: the larger batch less the smaller one, so that the reading of the clock cancels out.
    pub fn instructions(&self) -> f64 {
        (self.batches[1] as f64 - self.batches[0] as f64) / self.iterations as f64
    }

    /// Repetitions of string instructions per iteration.
    pub fn repetitions(&self) -> f64 {
        (self.repetitions[1] as f64 - self.repetitions[0] as f64) / self.iterations as f64
    }

    /// Whether the count is possible: the larger batch has more instructions than the smaller one.
    pub fn is_sound(&self) -> bool {
        self.iterations > 0 && self.batches[1] > self.batches[0]
    }

    /// Why the count is impossible, in a sentence; only for a count that is not sound.
    pub fn unsound_reason(&self) -> String {
        let Self { iterations, batches: [a, b], .. } = self;
        format!(
            "{iterations} iterations took {a} instructions and twice as many {b}: its cost does not grow with its work"
        )
    }
}

impl CountOutcome {
    /// The count, if there is one.
    pub fn count(&self) -> Option<&Count> {
        match self {
            Self::Counted(count) => Some(count),
            Self::Skipped(_) | Self::Failed(_) => None,
        }
    }

    /// Why there is no count; `None` if there is one.
    pub fn why(&self) -> Option<&str> {
        match self {
            Self::Counted(_) => None,
            Self::Skipped(why) | Self::Failed(why) => Some(why),
        }
    }
}

impl InstructionCounts {
    /// Reads a file of counts.
    ///
    /// # Errors
    /// The file cannot be read, is of another kind or layout, or its numbers are of another clock.
    pub fn load(path: &Path) -> Result<Self> {
        let bytes = store::read(path)?;
        let wrong = |field: &str, found: String| {
            let expected = format!(
                "a comparison that `syscost kernels ab` kept, of layout {LAYOUT} and of the clock icount"
            );
            let remedy = "times are judged by `syscost ab --judge` and `syscost compare`";
            Error::invalid_content(path, field, expected, found, remedy)
        };
        let counts: Self = serde_json::from_slice(&bytes)
            .map_err(|e| wrong(&format!("line {}", e.line()), e.to_string()))?;
        match counts.clock {
            ClockKind::Icount if counts.instruction_counts != LAYOUT => {
                Err(wrong("instruction_counts", counts.instruction_counts.to_string()))
            }
            ClockKind::Icount if !counts.is_sound() => Err(wrong("cases", "a count that cannot be".into())),
            ClockKind::Icount => Ok(counts),
            other => Err(wrong("clock", other.to_string())),
        }
    }

    fn is_sound(&self) -> bool {
        let outcomes = self.cases.iter().flat_map(|case| case.sides.iter().flatten());
        outcomes.filter_map(CountOutcome::count).all(Count::is_sound)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn loaded(counts: &serde_json::Value) -> Result<InstructionCounts> {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("counts.json");
        std::fs::write(&path, counts.to_string()).expect("written");
        InstructionCounts::load(&path)
    }

    fn some() -> serde_json::Value {
        let counts = InstructionCounts {
            instruction_counts: LAYOUT,
            clock: ClockKind::Icount,
            ..InstructionCounts::default()
        };
        serde_json::to_value(counts).expect("JSON")
    }

    #[test]
    fn a_figure_is_the_difference_of_the_two_batches() {
        let count = Count { iterations: 10, batches: [3400, 6690], repetitions: [40, 80] };
        assert_eq!((count.instructions(), count.repetitions()), (329.0, 4.0));
    }

    #[test]
    fn saved_counts_are_read_back_and_name_their_clock() {
        assert_eq!(some()["clock"], "icount");
        assert_eq!(serde_json::to_value(loaded(&some()).expect("read")).expect("JSON"), some());
    }

    #[test]
    fn times_of_a_machine_are_not_judged_as_instructions() {
        let mut counts = some();
        counts["clock"] = "host".into();
        let said = loaded(&counts).expect_err("another clock").to_string();
        assert!(said.contains("clock") && said.contains("syscost compare"), "{said}");
    }

    #[test]
    fn a_newer_layout_and_impossible_counts_are_refused() {
        let mut counts = some();
        counts["instruction_counts"] = (LAYOUT + 1).into();
        assert!(loaded(&counts).is_err());
        let mut counts = some();
        let count = serde_json::json!({ "counted": { "iterations": 0, "batches": [1, 2] } });
        counts["cases"] = serde_json::json!([{ "id": "a", "canary": false, "sides": [[count], []] }]);
        assert!(loaded(&counts).is_err());
    }
}

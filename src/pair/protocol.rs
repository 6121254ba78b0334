//! What a driver and the two sides of a pair say to each other: one JSON value a line, the driver on the
//! side's standard input, the side on its standard output. Whatever hands these two through can stand between
//! as a wrapper: `taskset`, `setarch`, a sandbox, a container.

use crate::case::Scale;
use crate::clock::ClockScale;
use crate::trial::Turn;
use serde::{Deserialize, Serialize};

/// The version of this conversation. A side of another version is told apart by its first line.
pub const VERSION: u32 = 1;

/// Set in the environment of a side, by the driver.
pub const VARIABLE: &str = "SYSCOST_SIDE";

/// Whether this process was started to be a side of a pair. A side has no arguments: a wrapper made of the same
/// binary, `syscost burden` for one, has.
pub fn is_side() -> bool {
    std::env::var_os(VARIABLE).is_some() && std::env::args_os().len() <= 1
}

/// What the driver asks.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ask {
    /// Name the cases that there are; the first and only question.
    Cases,
    /// Set a case up; the first question where a case is measured.
    Prepare(Prepare),
    /// Take a turn.
    Turn {
        /// Iterations of each batch.
        iterations: u64,
        /// Batches of the turn.
        batches: usize,
    },
}

/// How to set a case up.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Prepare {
    /// Its id.
    pub case: String,
    /// The CPU to measure on.
    pub cpu: usize,
    /// The clock, measured by the driver: both sides have the same.
    pub clock: ClockScale,
    /// How long a batch should take, ns.
    pub batch_ns: f64,
    /// Whether to call the witness and draw the line, as the first pair of a case does.
    pub prove: bool,
    /// Smoke, default or full: the size of the operation's surroundings.
    #[serde(with = "scale")]
    pub scale: Scale,
    /// Dependent additions to spin for after each iteration: a slowdown of known size. 0 in earnest.
    pub spin: f64,
}

/// What a side answers.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Answer {
    /// Its first line.
    Hello {
        /// Its [`VERSION`].
        version: u32,
    },
    /// The ids of its cases, in table order.
    Cases(Vec<String>),
    /// The case is set up.
    Ready(Ready),
    /// A turn was taken.
    Turn(Turn),
    /// The case ends here without a number.
    Ended {
        /// What kind of end.
        how: How,
        /// Why.
        sentence: String,
    },
}

/// What kind of end a case came to on a side.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum How {
    /// The machine lacks what the case needs.
    Skipped,
    /// A claim does not hold, or the operation was refused.
    Failed,
    /// The machine was not ours meanwhile: another pair may do better.
    Disturbed,
}

/// A case that is set up.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Ready {
    /// The version of its group. On the line it keeps its first name, so that an older driver understands it.
    #[serde(rename = "body", deserialize_with = "crate::record::version::read")]
    pub version: String,
    /// The CPU that the side stays on.
    pub cpu: usize,
    /// What one iteration takes, ns, with everything around the timed part.
    pub iteration_ns: f64,
    /// One sentence a claim that held.
    pub evidence: Vec<String>,
    /// What a reader should know.
    pub notes: Vec<String>,
}

/// A scale by its name.
mod scale {
    use crate::case::Scale;
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    pub(super) fn serialize<S: Serializer>(scale: &Scale, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(scale.name())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Scale, D::Error> {
        let name = String::deserialize(deserializer)?;
        Scale::named(&name).ok_or_else(|| D::Error::custom(format!("{name} is no scale")))
    }
}

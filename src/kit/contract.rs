//! The types that a measurement uses, in one import: the case and its parts, the most common needs, the clock, the error.
//!
//! ```ignore
//! use crate::kit::contract::*;
//! ```

pub use crate::case::need::{
    FOUR_KIB, FULL_SCALE, PINNED, TAKES_SECONDS, THREE_CPUS, TWO_CPUS, VDSO_CLOCK, VDSO_COARSE, VDSO_TIME,
};
pub use crate::case::{Case, Claim, Derived, Fit, Found, Group, Matrix, Need, OwnTasks, Place};
pub use crate::case::{Repetition, Report, Rule, Scale, SetUp, Subject, set_up};
pub use crate::clock::{Clock, ClockScale, Counts, Delta, Ticks};
pub use crate::error::{Error, Result, ensure};
pub use crate::record::{Axis, Curve, Headline, Study};

/// The verdict on a claim: `Ok` with a sentence on what was seen, or `Err` with a sentence on what is wrong.
pub type Judged = std::result::Result<String, String>;

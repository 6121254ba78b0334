//! What comes before anything is timed: the branch predictor forgets, and learns again from iterations that are not timed.
//!
//! A process can stay with what its predictor has learnt first, so that its executions agree with each other and not with those of
//! the next process: on Zen 5 a procedure call took four cycles in one process of six and five in the others.

use crate::case::Subject;
use crate::clock::Clock;
use crate::error::Result;
use crate::platform::cpu;

/// Forgets, and runs this many iterations untimed. The caches are warm again, too.
///
/// # Errors
/// The subject fails.
pub(super) fn retrain(subject: &mut dyn Subject, iterations: u64, clock: &Clock) -> Result<()> {
    // Where code cannot be written nothing is forgotten, and the rest is as useful.
    cpu::forget_branches();
    if iterations > 0 {
        subject.run(iterations, clock)?;
    }
    Ok(())
}

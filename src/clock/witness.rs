//! The witness: a few iterations of an operation watched from outside, instruction by instruction.
//!
//! Two runs, of n and of 2n iterations, in forked children; the difference belongs to the iterations
//! alone, because everything around them is the same in both. So a witness counts exactly what one
//! iteration executes, even where the machine has no PMU.

use crate::platform::ptrace::{self, Sighting};

/// Iterations of the shorter run. A multiple of the unrolled chains' block, so that their blocks are seen
/// and not their remainder.
const FEW: u64 = 64;
/// Iterations where every step would take too long.
const FEW_LONG: u64 = 2;
/// Instructions after which stepping gives up; some 4 µs each.
const LIMIT: u64 = 30_000;

/// What one iteration does.
#[derive(Clone, Debug, PartialEq)]
pub struct Testimony {
    /// Iterations by which the two runs differed.
    pub iterations: u64,
    /// User-space instructions an iteration; `None` if it was too long to step through.
    pub instructions: Option<f64>,
    /// Visits to the address asked about, in `iterations`; `None` likewise.
    pub visits: Option<u64>,
    /// System calls entered in `iterations`.
    pub entries: Vec<i64>,
}

/// The most iterations that a witness asks for.
pub const ITERATIONS: u64 = 2 * FEW;

/// Watches `run` (which takes a number of iterations) in forked children. Without `steps` only the entries
/// into the kernel are listed, which suits operations that are long or prepare each iteration at length.
///
/// # Errors
/// Where the kernel or a sandbox refuses `ptrace`, with its sentence.
pub fn testify(mut run: impl FnMut(u64), address: Option<usize>, steps: bool) -> crate::Result<Testimony> {
    // One closure for both, so that both run the same code.
    let mut step = |n| ptrace::step_through(|| run(n), address, LIMIT);
    let few = if steps { step(FEW)? } else { None };
    let many = if few.is_some() { step(2 * FEW)? } else { None };
    if let (Some(few), Some(many)) = (few, many) {
        return Ok(Testimony {
            iterations: FEW,
            instructions: Some((many.instructions as f64 - few.instructions as f64) / FEW as f64),
            visits: Some(many.visits.saturating_sub(few.visits)),
            entries: beyond(&few, &many),
        });
    }
    let mut list = |n| ptrace::list_entries(|| run(n));
    let (few, many) = (list(FEW_LONG)?, list(2 * FEW_LONG)?);
    let entries = beyond(&few, &many);
    Ok(Testimony { iterations: FEW_LONG, instructions: None, visits: None, entries })
}

/// The entries of the longer run that the shorter one does not have.
fn beyond(few: &Sighting, many: &Sighting) -> Vec<i64> {
    let mut rest = many.entries.clone();
    for number in &few.entries {
        if let Some(at) = rest.iter().position(|n| n == number) {
            rest.remove(at);
        }
    }
    rest
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::platform::arch;

    #[test]
    fn a_chain_is_one_instruction_a_link_and_its_loop() {
        let seen = testify(|n| _ = arch::add_chain(n), None, true).expect("traced");
        assert_eq!(seen.instructions, Some(66.0 / 64.0));
    }

    #[test]
    fn a_kernel_entry_is_seen_once_an_iteration() {
        let run = |n| (0..n).for_each(|_| _ = nix::unistd::getppid());
        let seen = testify(run, None, true).expect("traced");
        assert_eq!(seen.entries, vec![libc::SYS_getppid; 64]);
    }

    #[test]
    fn a_clock_of_the_vdso_enters_nothing() {
        let run = |n| (0..n).for_each(|_| _ = crate::platform::time::monotonic_raw_ns());
        assert_eq!(testify(run, None, true).expect("traced").entries, Vec::<i64>::new());
    }

    #[test]
    fn a_long_operation_falls_back_to_listing_its_entries() {
        let run = |n| {
            for _ in 0..n {
                arch::register_loop(100_000);
                _ = nix::unistd::getppid();
            }
        };
        let seen = testify(run, None, true).expect("traced");
        assert_eq!((seen.instructions, seen.entries), (None, vec![libc::SYS_getppid; 2]));
    }
}

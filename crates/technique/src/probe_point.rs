//! Probes that are put into a running program and taken out again.
//!
//! A program has *probe points*: places where a probe may be. Without one a point costs a call that returns at once.
//! [`ProbePoint::insert_probe`] patches the code of the point while the program runs, so that it jumps to a routine;
//! [`ProbePoint::remove_probe`] patches it back. Neither stops the program, and no thread tests a flag: the instruction
//! itself changes. Each pass hands a value to the probe, so that it measures type A (how often) and type B (which values).
//! Two points around a routine measure type C.
//!
//! ```
//! use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
//! use syscost_technique::probe_point::ProbePoint;
//!
//! # fn main() -> syscost_technique::Result<()> {
//! let (count, sum) = (AtomicU64::new(0), AtomicU64::new(0));
//! let point = match ProbePoint::new(|value| {
//!     count.fetch_add(1, Relaxed);
//!     sum.fetch_add(value, Relaxed);
//! }) {
//!     Ok(point) => point,
//!     Err(error) if error.is_machine_limitation() => return Ok(()), // code is not patched here
//!     Err(error) => return Err(error),
//! };
//! point.pass(1); // not seen
//! point.insert_probe()?;
//! (10..13).for_each(|value| point.pass(value));
//! point.remove_probe()?;
//! point.pass(1); // not seen
//! assert_eq!((count.load(Relaxed), sum.load(Relaxed)), (3, 33));
//! # Ok(())
//! # }
//! ```
//!
//! The kernel offers the same for code without such points (uprobes of perf_event_open(2)). A uprobe is a breakpoint: each
//! pass costs a trap, and setting it needs privileges. A [`ProbePoint`] needs neither.
//!
//! Source: slides 39 to 41 of the [module's](super) slides (hooks in the code, instrumentation added later).

use syscost_platform::error::Result;
use syscost_platform::patch::Patch;

/// A place in a program where a probe can be inserted.
pub struct ProbePoint<F>(Patch<F>);

impl<F: Fn(u64) + Sync> ProbePoint<F> {
    /// A point without a probe. After an insertion each thread that passes calls `routine`, the probe. A routine that panics
    /// ends the process.
    ///
    /// # Errors
    /// [`Error::Missing`](crate::Error::Missing) on a processor other than x86-64,
    /// [`Error::Kernel`](crate::Error::Kernel) where memory that is written and executed is forbidden.
    pub fn new(routine: F) -> Result<Self> {
        Patch::new(routine).map(Self)
    }

    /// Passes the point. If the probe is in, it is called with `value`.
    #[inline(always)]
    pub fn pass(&self, value: u64) {
        self.0.execute(value);
    }

    /// Inserts the probe. Each pass that begins after this call has returned calls it.
    ///
    /// # Errors
    /// [`Error::Kernel`](crate::Error::Kernel) where membarrier(2) is refused.
    pub fn insert_probe(&self) -> Result<()> {
        self.0.set_jumping(true)
    }

    /// Removes the probe. No pass that begins after this call has returned calls it.
    ///
    /// # Errors
    /// The errors of [`ProbePoint::insert_probe`].
    pub fn remove_probe(&self) -> Result<()> {
        self.0.set_jumping(false)
    }

    /// The routine of the probe.
    pub fn routine(&self) -> &F {
        self.0.routine()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};

    /// A point with this routine; `None` on a machine where code is not patched.
    fn point<F: Fn(u64) + Sync>(routine: F) -> Option<ProbePoint<F>> {
        syscost_platform::testing::value_or_skip(ProbePoint::new(routine))
    }

    #[test]
    fn only_passes_while_the_probe_is_in_are_seen() {
        let sum = AtomicU64::new(0);
        let Some(point) = point(|value| _ = sum.fetch_add(value, SeqCst)) else { return };
        for turn in 0..100 {
            point.pass(1 << 40);
            point.insert_probe().expect("patched");
            point.pass(turn);
            point.remove_probe().expect("patched");
        }
        assert_eq!(sum.load(SeqCst), 4950);
    }

    #[test]
    fn a_running_thread_is_seen_between_insertion_and_removal() {
        let (seen, passed, ended) = (AtomicU64::new(0), AtomicU64::new(0), AtomicBool::new(false));
        let Some(point) = point(|_| _ = seen.fetch_add(1, SeqCst)) else { return };
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !ended.load(SeqCst) {
                    point.pass(0);
                    passed.fetch_add(1, SeqCst);
                }
            });
            let further = |than: u64| {
                while passed.load(SeqCst) <= than {
                    std::thread::yield_now();
                }
                passed.load(SeqCst)
            };
            further(100);
            let before = passed.load(SeqCst);
            point.insert_probe().expect("patched");
            let first = passed.load(SeqCst);
            let last = further(first + 1000);
            point.remove_probe().expect("patched");
            let after = further(passed.load(SeqCst) + 1);
            ended.store(true, SeqCst);
            let seen = seen.load(SeqCst);
            // The pass that was under way at the first patch may be seen or not.
            assert!(
                (last - first - 1..=after - before).contains(&seen),
                "{before} {first} {last} {after} {seen}"
            );
        });
        assert!(passed.load(SeqCst) > seen.load(SeqCst));
    }
}

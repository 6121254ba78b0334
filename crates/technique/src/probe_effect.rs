//! What a probe does to its program besides the time that it takes: context switches and page faults, counted with and
//! without the probe, by turns.
//!
//! A probe that takes longer lets the program be preempted more often; one that waits gives up the CPU; one that records
//! touches memory. None of that is in the [cost of a probe](super::estimate) around nothing.
//!
//! ```
//! use syscost_technique::probe_effect::measure_probe_effect;
//!
//! # fn main() -> syscost_technique::Result<()> {
//! let effect = measure_probe_effect(3, |probed| {
//!     for _ in 0..10 {
//!         if probed {
//!             std::thread::sleep(std::time::Duration::from_micros(50));
//!         }
//!     }
//!     Ok(())
//! })?;
//! assert!(effect.added(|counts| counts.voluntary_switches) >= 10.0);
//! # Ok(())
//! # }
//! ```
//!
//! Source: Kraemer, slide 50.

use crate::by_turns::alternate;
use syscost_platform::error::Result;
use syscost_platform::process::thread_usage;
use syscost_statistic::median;

/// What the kernel counted of this thread during one run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RunCounts {
    /// Times it gave up the CPU, to wait.
    pub voluntary_switches: i64,
    /// Times it was preempted.
    pub involuntary_switches: i64,
    /// Page faults that needed no device.
    pub minor_faults: i64,
    /// Page faults that waited for a device.
    pub major_faults: i64,
}

/// The counts of several pairs of runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProbeEffect {
    /// Of the run of each pair without the probe.
    pub without: Vec<RunCounts>,
    /// Of the other run of each pair.
    pub with: Vec<RunCounts>,
}

impl ProbeEffect {
    /// The median over all pairs of what a run with the probe has more of one count.
    pub fn added(&self, count: fn(&RunCounts) -> i64) -> f64 {
        let pairs = self.with.iter().zip(&self.without);
        median(&pairs.map(|(with, without)| (count(with) - count(without)) as f64).collect::<Vec<_>>())
    }

    /// The median of one count over all runs with the probe, or without it.
    pub fn usual(&self, with_probe: bool, count: fn(&RunCounts) -> i64) -> f64 {
        let runs = if with_probe { &self.with } else { &self.without };
        median(&runs.iter().map(|run| count(run) as f64).collect::<Vec<_>>())
    }
}

/// Runs a program twice for each of `pairs`, with its probes (`true`) and without, and counts what the kernel charges to
/// the calling thread. The order of the two alternates.
///
/// # Errors
/// Those of `run`; the kernel refuses `getrusage`.
pub fn measure_probe_effect(pairs: usize, mut run: impl FnMut(bool) -> Result<()>) -> Result<ProbeEffect> {
    let [without, with] = alternate(pairs, |with| {
        let before = read_counts()?;
        run(with)?;
        let after = read_counts()?;
        let grown = |count: fn(&RunCounts) -> i64| count(&after) - count(&before);
        Ok(RunCounts {
            voluntary_switches: grown(|c| c.voluntary_switches),
            involuntary_switches: grown(|c| c.involuntary_switches),
            minor_faults: grown(|c| c.minor_faults),
            major_faults: grown(|c| c.major_faults),
        })
    })?;
    Ok(ProbeEffect { without, with })
}

fn read_counts() -> Result<RunCounts> {
    let usage = thread_usage()?;
    Ok(RunCounts {
        voluntary_switches: usage.voluntary_context_switches(),
        involuntary_switches: usage.involuntary_context_switches(),
        minor_faults: usage.minor_page_faults(),
        major_faults: usage.major_page_faults(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::hint::black_box;
    use std::time::Duration;
    use syscost_platform::process::page_size;
    use syscost_platform::region::Region;
    use syscost_platform::resident::Pages;

    const PAGES: i64 = 64;

    /// A probe that records into fresh memory.
    #[test]
    fn a_probe_that_touches_fresh_pages_adds_its_faults() {
        let effect = measure_probe_effect(5, |probed| {
            let region = Region::map_anonymous((PAGES as u64 * page_size()) as usize, Pages::Base)?;
            if probed {
                _ = black_box(region.read(0..region.page_count(), 1));
            }
            Ok(())
        });
        let effect = effect.expect("counted");
        assert_eq!(effect.added(|counts| counts.minor_faults), PAGES as f64, "{effect:?}");
        assert_eq!(effect.usual(true, |counts| counts.minor_faults) as i64 / PAGES, 1, "{effect:?}");
    }

    /// A probe that waits for a device.
    #[test]
    fn a_probe_that_sleeps_adds_its_switches_and_one_that_does_nothing_adds_none() {
        let added = |nap: Option<Duration>| {
            let run = |probed| {
                nap.filter(|_| probed)
                    .into_iter()
                    .for_each(|nap| (0..20).for_each(|_| std::thread::sleep(nap)));
                Ok(())
            };
            measure_probe_effect(5, run).expect("counted").added(|counts| counts.voluntary_switches)
        };
        // A sleep whose end comes before the switch has none.
        let switches = added(Some(Duration::from_micros(50)));
        assert!(switches >= 15.0, "{switches}");
        assert_eq!(added(None), 0.0);
    }
}

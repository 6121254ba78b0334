//! The effect of a probe on its program besides its time: context switches and page faults, counted in alternate runs with
//! and without the probe.
//!
//! A probe that takes longer lets the program be preempted more often; one that waits gives up the CPU; one that records
//! touches memory. The [cost of a probe](super::estimate) around an empty body contains none of these.
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

/// The counts that the kernel kept of this thread during one run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RunCounts {
    /// How often the thread gave up the CPU, to wait.
    pub voluntary_switches: i64,
    /// How often the thread was preempted.
    pub involuntary_switches: i64,
    /// Page faults that were served without a device.
    pub minor_faults: i64,
    /// Page faults that waited for a device.
    pub major_faults: i64,
}

/// The counts of several pairs of runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProbeEffect {
    /// The counts of each pair's run without the probe.
    pub without: Vec<RunCounts>,
    /// The counts of each pair's run with the probe.
    pub with: Vec<RunCounts>,
}

impl ProbeEffect {
    /// The median, over all pairs, of the difference in one count: the run with the probe minus the run without it.
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

/// Runs a program twice for each of `pairs`, with its probes (`true`) and without (`false`), and counts the events that the
/// kernel charges to the calling thread. The order of the two runs alternates.
///
/// # Errors
/// The errors of `run`; an error where the kernel refuses `getrusage`.
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

    /// The probe of this test records into fresh memory.
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

    /// The probe of this test waits for a device.
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
        // A sleep that expires before the thread has switched away adds no context switch.
        let switches = added(Some(Duration::from_micros(50)));
        assert!(switches >= 15.0, "{switches}");
        assert_eq!(added(None), 0.0);
    }
}

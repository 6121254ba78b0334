//! Finds the samples in which the measuring thread was held up: stopped by a signal, or frozen with its control group.
//!
//! The kernel counts neither as time of waiting for a CPU, and it counts the switch as voluntary. So the sign is a long time
//! in which the thread did not run, in a case that does not sleep by itself.

use super::super::Sample;
use crate::statistic;

/// Shortest time that counts, ns: a device may be slower than usual, and a timer late, by tens of milliseconds. No share of
/// the sample is asked for, since a sample beside busy tasks is long for other reasons, too.
const SHORTEST_NS: f64 = 50e6;
/// How many times as long as in the median sample the thread did not run, for each iteration.
const UNUSUAL: f64 = 10.0;

/// For each sample, whether the thread was held up in it.
pub(in crate::trial) fn held_up_samples(samples: &[Sample]) -> Vec<bool> {
    let each: Vec<_> = samples.iter().map(|s| idle_ns(s) / s.iterations.max(1) as f64).collect();
    let usual = if each.is_empty() { 0.0 } else { statistic::median(&each) };
    let is_held_up = |(s, each): (&Sample, &f64)| idle_ns(s) > SHORTEST_NS && *each > UNUSUAL * usual;
    samples.iter().zip(&each).map(is_held_up).collect()
}

/// Time in which the thread neither ran nor was ready, ns.
fn idle_ns(s: &Sample) -> f64 {
    (s.elapsed_ns - s.ran_ns as f64 - s.delta.counted.waited_ns.unwrap_or(0) as f64).max(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::{Delta, Reading};

    fn sample(elapsed_ms: f64, ran_ms: u64, waited_ms: u64) -> Sample {
        let counted = Reading { waited_ns: Some(waited_ms * 1_000_000), ..Reading::default() };
        let delta = Delta { counted, ..Delta::default() };
        Sample {
            iterations: 1,
            elapsed_ns: 1e6 * elapsed_ms,
            ran_ns: ran_ms * 1_000_000,
            delta,
            ..Sample::default()
        }
    }

    #[test]
    fn a_thread_that_did_not_run_was_held_up() {
        let samples = [sample(2.0, 2, 0), sample(302.0, 2, 0), sample(2.1, 2, 0)];
        assert_eq!(held_up_samples(&samples), [false, true, false]);
        let beside_busy_tasks = [sample(90.0, 30, 60), sample(330.0, 30, 150), sample(90.0, 30, 60)];
        assert_eq!(held_up_samples(&beside_busy_tasks), [false, true, false]);
    }

    #[test]
    fn a_thread_that_waits_for_a_cpu_or_always_was_not() {
        assert_eq!(held_up_samples(&[sample(2.0, 2, 0), sample(302.0, 2, 300)]), [false, false]);
        let sleeps = [sample(100.0, 1, 0), sample(110.0, 1, 0), sample(300.0, 1, 0)];
        assert_eq!(held_up_samples(&sleeps), [false; 3], "it always waits");
        assert_eq!(held_up_samples(&[]), [false; 0]);
    }
}

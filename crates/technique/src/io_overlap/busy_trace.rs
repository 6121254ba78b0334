//! The exact trace of a wire, and the overlap computed from several.

use super::Signals;
use syscost_platform::time::clock_gettime_ns;

/// A wire with its trace.
pub struct Busy<'a> {
    signals: &'a Signals,
    wire: usize,
    trace: Trace,
}

/// Begin and end of each time for which a wire was on, nanoseconds of the monotonic clock, in order.
pub type Trace = Vec<(u64, u64)>;

impl<'a> Busy<'a> {
    /// A wire that is off.
    pub fn new(signals: &'a Signals, wire: usize) -> Self {
        Self { signals, wire, trace: Vec::with_capacity(1 << 16) }
    }

    /// The wire is on while `f` runs.
    pub fn busy_while<T>(&mut self, f: impl FnOnce() -> T) -> T {
        self.signals.set_wire(self.wire, true);
        let from = clock_gettime_ns(libc::CLOCK_MONOTONIC);
        let value = f();
        let to = clock_gettime_ns(libc::CLOCK_MONOTONIC);
        self.signals.set_wire(self.wire, false);
        self.trace.push((from, to));
        value
    }

    /// Its trace.
    pub fn into_trace(self) -> Trace {
        self.trace
    }
}

/// The exact fraction of a window for which the CPU and at least `k` channels were busy, from their traces.
pub fn exact_overlap(cpu: &[(u64, u64)], channels: &[Trace], k: u32, window: (u64, u64)) -> f64 {
    let clipped = |t: u64| t.clamp(window.0, window.1);
    let edges = |trace: &[(u64, u64)], wire: usize| -> Vec<(u64, usize, i32)> {
        trace.iter().flat_map(|(from, to)| [(clipped(*from), wire, 1), (clipped(*to), wire, -1)]).collect()
    };
    let mut all = edges(cpu, Signals::CPU);
    all.extend(channels.iter().enumerate().flat_map(|(at, trace)| edges(trace, at + 1)));
    // The sums count between two edges only, so that a wire that goes off and on at once counts as on.
    all.sort_unstable();
    let (mut cpu_busy, mut channels_busy, mut since, mut sum) = (0, 0, window.0, 0);
    for (at, wire, change) in all {
        if cpu_busy > 0 && channels_busy >= k as i32 {
            sum += at - since;
        }
        since = at;
        let busy = if wire == Signals::CPU { &mut cpu_busy } else { &mut channels_busy };
        *busy += change;
    }
    sum as f64 / window.1.saturating_sub(window.0).max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_overlap_is_what_is_common_to_all() {
        let cpu = [(0, 40), (60, 100)];
        let channels = [vec![(20, 70)], vec![(30, 50), (50, 65), (90, 200)]];
        let shares = [0, 1, 2, 3].map(|k| exact_overlap(&cpu, &channels, k, (0, 100)));
        assert_eq!(shares, [0.8, 0.4, 0.15, 0.0]);
    }

    #[test]
    fn what_lies_outside_the_window_does_not_count() {
        assert_eq!(exact_overlap(&[(0, 50), (90, 1000)], &[], 0, (40, 100)), 20.0 / 60.0);
        assert_eq!(exact_overlap(&[(0, 50)], &[], 0, (60, 100)), 0.0);
        assert_eq!(exact_overlap(&[], &[], 0, (5, 5)), 0.0);
    }

    #[test]
    fn a_wire_is_on_while_something_lasts() {
        let signals = Signals::default();
        let mut busy = Busy::new(&signals, Signals::CPU);
        assert!(busy.busy_while(|| signals.is_overlapping(0)));
        assert!(!signals.is_overlapping(0));
        let trace = busy.into_trace();
        assert!(trace.len() == 1 && trace[0].0 <= trace[0].1);
    }
}

//! The fraction of time for which the CPU and at least k of n channels are busy at once: `IO_OVERLAP(k, X)` in the slides.
//!
//! A hardware monitor combines many signals into one: CPU busy *and* at least k channels busy. With k = 0 this is the
//! utilisation of the CPU. A clock samples the signal 2ᴺ times, and a [counter](super::pulse) of the samples that found it on
//! *is* the
//! fraction. [`Monitor::io_overlap`] is the call of the slides: it clears the counter, starts the monitor, and blocks
//! until the monitor has taken all samples.
//!
//! The result is near the truth if the signal has many transitions during the sampling, and if the clock is not synchronous
//! with it. A synchronous clock reads 0 or 1, whatever the true fraction. The time between two samples is therefore random
//! and exponentially distributed, so that samples see time averages (Wolff 1982).
//!
//! [`Signals`] are the wires: one bit for the CPU and one for each channel. [`Busy`] sets a bit during an operation and
//! keeps an exact_overlap trace, from which [`exact_overlap`] computes the true fraction.
//!
//! Source: slides 20 to 26 of the [module's](super) slides; R. W. Wolff, *Poisson Arrivals See Time Averages* (1982).

mod disk_load;

use crate::pulse::PulseCounter;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use syscost_platform::error::{Error, Result};
use syscost_platform::sleep::{Nanosleep, RealTime, Sleep};
use syscost_platform::time::clock_gettime_ns;
use syscost_statistic::{Interval, Random, proportion_of_series};

pub use disk_load::{Finished, Load};

/// The wires of a monitor, which reads all of them at once.
#[derive(Debug, Default)]
pub struct Signals(AtomicU64);

impl Signals {
    /// The maximum number of channels.
    pub const CHANNELS: usize = 63;
    /// The index of the CPU's wire. Channel c, counted from 0, has the wire c + 1.
    pub const CPU: usize = 0;

    fn set_wire(&self, wire: usize, busy: bool) {
        match busy {
            true => self.0.fetch_or(1 << wire, Ordering::SeqCst),
            false => self.0.fetch_and(!(1 << wire), Ordering::SeqCst),
        };
    }

    /// Whether the CPU and at least `k` channels are busy.
    pub fn is_overlapping(&self, k: u32) -> bool {
        let wires = self.0.load(Ordering::SeqCst);
        wires & 1 == 1 && (wires >> 1).count_ones() >= k
    }
}

/// A monitor that samples an overlap.
#[derive(Clone, Copy, Debug)]
pub struct Monitor {
    /// The mean time between two samples. Samples are independent if it is much longer than the signal stays on or off.
    pub period: Duration,
    /// The seed of the random times.
    pub seed: u64,
}

/// A sampled overlap.
#[derive(Clone, Debug, PartialEq)]
pub struct Overlap {
    /// The fraction of time with its interval of 95 %, which allows for correlated samples.
    pub fraction: Interval,
    /// Times of the sampling's begin and of the last sample, nanoseconds of the monotonic clock.
    pub window: (u64, u64),
    /// Whether the monitor ran in the real-time class. In the ordinary class it mostly gets a CPU when that CPU is idle, and
    /// thus finds it idle too often.
    pub real_time: bool,
    /// All samples, in order of time.
    pub samples: Vec<Sample>,
}

/// One sample of the wires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// The times just before and just after the sample, nanoseconds of the monotonic clock.
    pub between: (u64, u64),
    /// Whether the CPU and at least k channels were busy.
    pub on: bool,
}

impl Monitor {
    /// IO_OVERLAP(k, X): blocks until 2ᴺ samples are taken, and returns X. The monitor runs in the real-time class if the
    /// kernel allows that.
    ///
    /// # Errors
    /// [`Error::Kernel`] where the kernel refuses the thread of the monitor.
    #[doc(alias = "IO_OVERLAP")]
    pub fn io_overlap<const N: u32>(&self, k: u32, signals: &Signals) -> Result<Overlap> {
        let refused = |cause| Error::Kernel { call: "pthread_create of a monitor".into(), cause };
        std::thread::scope(|scope| {
            let monitor = std::thread::Builder::new().name("monitor".into());
            let sample = || self.sample_signal::<N>(|| Ok(signals.is_overlapping(k)));
            let monitor = monitor.spawn_scoped(scope, sample).map_err(refused)?;
            monitor.join().map_err(|_| Error::Died("the monitor panicked".into()))?
        })
    }

    /// Takes 2ᴺ samples of any signal in the calling thread, which sleeps between them. `is_on` reads the signal, which may
    /// be that of a running machine (`syscost monitor --overlap K`).
    ///
    /// # Errors
    /// The first error that `is_on` returns.
    pub fn sample_signal<const N: u32>(&self, mut is_on: impl FnMut() -> Result<bool>) -> Result<Overlap> {
        let class = RealTime::enter(1);
        let (mut gap, mut counter) = (exponential_gaps(self.period, self.seed), PulseCounter::<N>::default());
        let mut samples = Vec::with_capacity(PulseCounter::<N>::INTERVAL as usize);
        let now = || clock_gettime_ns(libc::CLOCK_MONOTONIC);
        let begun = now();
        let mut last = begun;
        loop {
            // The gap counts from the time of the last sample, not from its deadline. Otherwise all samples that were due
            // while the monitor waited for a CPU would be taken at once, as one sample that counts several times.
            Nanosleep.sleep_until(Duration::from_nanos(last + gap()));
            let before = now();
            let on = is_on()?;
            last = now();
            samples.push(Sample { between: (before, last), on });
            if let Some(fraction) = counter.count_pulse(on) {
                let series: Vec<bool> = samples.iter().map(|sample| sample.on).collect();
                let fraction = Interval { estimate: fraction.value(), ..proportion_of_series(&series) };
                return Ok(Overlap { fraction, window: (begun, last), real_time: class.is_ok(), samples });
            }
        }
    }
}

/// Returns a generator of exponentially distributed times between samples, nanoseconds.
pub(crate) fn exponential_gaps(mean: Duration, seed: u64) -> impl FnMut() -> u64 {
    let (mut random, mean) = (Random::new(seed), mean.as_nanos() as f64);
    move || (-mean * random.unit().ln()) as u64
}

/// One wire and the trace of its busy times.
pub struct Busy<'a> {
    signals: &'a Signals,
    wire: usize,
    trace: Trace,
}

/// Begin and end of each period in which a wire was on, nanoseconds of the monotonic clock, in order.
pub type Trace = Vec<(u64, u64)>;

impl<'a> Busy<'a> {
    /// A wire that is off.
    pub fn new(signals: &'a Signals, wire: usize) -> Self {
        Self { signals, wire, trace: Vec::with_capacity(1 << 16) }
    }

    /// Switches the wire on while `f` runs, and returns what `f` returns.
    pub fn busy_while<T>(&mut self, f: impl FnOnce() -> T) -> T {
        self.signals.set_wire(self.wire, true);
        let from = clock_gettime_ns(libc::CLOCK_MONOTONIC);
        let value = f();
        let to = clock_gettime_ns(libc::CLOCK_MONOTONIC);
        self.signals.set_wire(self.wire, false);
        self.trace.push((from, to));
        value
    }

    /// Returns the trace of the wire.
    pub fn into_trace(self) -> Trace {
        self.trace
    }
}

/// The exact fraction of `window` for which the CPU and at least `k` channels were busy, computed from their traces.
pub fn exact_overlap(cpu: &[(u64, u64)], channels: &[Trace], k: u32, window: (u64, u64)) -> f64 {
    let clipped = |t: u64| t.clamp(window.0, window.1);
    let edges = |trace: &[(u64, u64)], wire: usize| -> Vec<(u64, usize, i32)> {
        trace.iter().flat_map(|(from, to)| [(clipped(*from), wire, 1), (clipped(*to), wire, -1)]).collect()
    };
    let mut all = edges(cpu, Signals::CPU);
    all.extend(channels.iter().enumerate().flat_map(|(at, trace)| edges(trace, at + 1)));
    // The sums count between two edges only, so that a wire that is switched off and on at the same time counts as on.
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
    fn a_random_clock_reads_the_true_fraction() {
        const SAMPLES: u32 = 1 << 14;
        let (mut gap, mut at) = (exponential_gaps(Duration::from_nanos(1_000), 3), 0);
        // On for the first 480 ns of every microsecond.
        let mut is_on = |_: &u32| {
            at += gap();
            at % 1_000 < 480
        };
        let read = (0..SAMPLES).filter(&mut is_on).count() as f64 / f64::from(SAMPLES);
        assert!((read - 0.48).abs() < 0.02, "{read}");
    }

    #[test]
    fn an_overlap_requires_the_cpu_and_at_least_k_channels() {
        let signals = Signals::default();
        signals.set_wire(1, true);
        signals.set_wire(3, true);
        assert!(!signals.is_overlapping(0), "the CPU is idle");
        signals.set_wire(Signals::CPU, true);
        assert_eq!([0, 1, 2, 3].map(|k| signals.is_overlapping(k)), [true, true, true, false]);
        signals.set_wire(3, false);
        assert_eq!([0, 1, 2].map(|k| signals.is_overlapping(k)), [true, true, false]);
    }

    #[test]
    fn the_caller_is_blocked_until_all_samples_are_taken() {
        let signals = Signals::default();
        signals.set_wire(Signals::CPU, true);
        let monitor = Monitor { period: Duration::from_micros(50), seed: 1 };
        let overlap = monitor.io_overlap::<6>(0, &signals).expect("a thread");
        assert_eq!(overlap.fraction.estimate, 1.0);
        assert!(overlap.window.1 - overlap.window.0 > 500_000, "{overlap:?}");
        assert_eq!(monitor.io_overlap::<6>(1, &signals).expect("a thread").fraction.estimate, 0.0);
    }

    #[test]
    fn the_overlap_of_traces_is_their_intersection() {
        let cpu = [(0, 40), (60, 100)];
        let channels = [vec![(20, 70)], vec![(30, 50), (50, 65), (90, 200)]];
        let shares = [0, 1, 2, 3].map(|k| exact_overlap(&cpu, &channels, k, (0, 100)));
        assert_eq!(shares, [0.8, 0.4, 0.15, 0.0]);
    }

    #[test]
    fn times_outside_the_window_do_not_count() {
        assert_eq!(exact_overlap(&[(0, 50), (90, 1000)], &[], 0, (40, 100)), 20.0 / 60.0);
        assert_eq!(exact_overlap(&[(0, 50)], &[], 0, (60, 100)), 0.0);
        assert_eq!(exact_overlap(&[], &[], 0, (5, 5)), 0.0);
    }

    #[test]
    fn a_wire_is_on_while_its_function_runs() {
        let signals = Signals::default();
        let mut busy = Busy::new(&signals, Signals::CPU);
        assert!(busy.busy_while(|| signals.is_overlapping(0)));
        assert!(!signals.is_overlapping(0));
        let trace = busy.into_trace();
        assert!(trace.len() == 1 && trace[0].0 <= trace[0].1);
    }
}

//! A sampled monitor: a timer interrupts the thread and its handler records the current state.
//!
//! The share of samples in a state estimates the fraction of time spent in it (type C). The binomial interval holds if the
//! samples are independent of the state. Samples with a fixed period are not independent of a periodic program: if a load is
//! on for 48 % of a period of three samples, two of three samples find it on. Random periods avoid that.
//!
//! ```
//! use std::time::Duration;
//! use syscost_technique::sample::{Period, SampledMonitor};
//!
//! # fn main() -> syscost_technique::Result<()> {
//! const BUSY: u32 = 1;
//! let monitor = SampledMonitor::new(Period::random(Duration::from_micros(100), 7), 0..0)?;
//! monitor.start();
//! monitor.enter_state(BUSY);
//! (0..100_000).for_each(|turn| _ = std::hint::black_box(turn));
//! monitor.enter_state(0);
//! monitor.stop();
//! println!("{:?}", monitor.fraction_in_state(BUSY));
//! # Ok(())
//! # }
//! ```
//!
//! The timer also interrupts the sleep of a thread, so only threads that compute should be sampled.
//!
//! Source: Kraemer, slides 26, 31, 34 and 51 to 53; S. McCanne and C. Torek, *A Randomized Sampling Clock for CPU
//! Utilization Estimation and Code Profiling* (USENIX 1993).

use syscost_platform::error::Result;
pub use syscost_platform::sampler::Looks;

use std::ops::Range;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;
use syscost_platform::sampler::{Gaps, STATES, Sampler};
use syscost_statistic::{Interval, Random, proportion_interval};

/// The time between two samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Period {
    /// Constant.
    Fixed(Duration),
    /// Random, uniform between zero and twice the mean.
    Random {
        /// The mean time.
        mean: Duration,
        /// The seed of the random numbers.
        seed: u64,
    },
}

impl Period {
    /// A random period with this mean, which is at most two seconds.
    pub fn random(mean: Duration, seed: u64) -> Self {
        Self::Random { mean, seed }
    }

    /// A list of random gaps, which is repeated if a run has more samples.
    fn sampling_gaps(self) -> Gaps {
        const DRAWN: usize = 1 << 12;
        match self {
            Self::Fixed(period) => Gaps::Every(period),
            Self::Random { mean, seed } => {
                let twice = u32::try_from(2 * mean.as_nanos()).unwrap_or(u32::MAX);
                let mut random = Random::new(seed);
                Gaps::Drawn(
                    (0..DRAWN).map(|_| 1 + random.number_below(twice.max(1) as usize) as u32).collect(),
                )
            }
        }
    }
}

/// The maximum number of samples whose time is kept.
const MOMENTS: usize = 1 << 14;

/// A monitor that samples the thread that created it.
pub struct SampledMonitor(Sampler);

impl SampledMonitor {
    /// A monitor that also records whether the next instruction lies in a range of addresses ([`super::extent`]). The range
    /// may be empty.
    ///
    /// # Errors
    /// An error where the kernel refuses the timer.
    pub fn new(period: Period, range: Range<usize>) -> Result<Self> {
        Sampler::new(period.sampling_gaps(), range, MOMENTS).map(Self)
    }

    /// Starts sampling.
    pub fn start(&self) {
        self.0.start();
    }

    /// Stops sampling and keeps the samples.
    pub fn stop(&self) {
        self.0.stop();
    }

    /// Sets the current state of the thread, 0 to 7.
    #[inline(always)]
    pub fn enter_state(&self, state: u32) {
        self.0.state_word().store(state, Relaxed);
    }

    /// All samples so far.
    pub fn samples_so_far(&self) -> Looks {
        self.0.samples()
    }

    /// The fraction of time in a state, with its binomial interval of 95 %.
    pub fn fraction_in_state(&self, state: u32) -> Interval {
        let found = self.samples_so_far();
        proportion_interval(found.in_state[(state as usize).min(STATES - 1)], found.count)
    }

    /// The fraction of time in the range of addresses, with its binomial interval of 95 %.
    pub fn fraction_in_range(&self) -> Interval {
        let found = self.samples_so_far();
        proportion_interval(found.in_range, found.count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state_measure::FractionOfTime;
    use std::time::Instant;

    #[test]
    fn random_periods_have_the_requested_mean() {
        let Gaps::Drawn(gaps) = Period::random(Duration::from_micros(100), 3).sampling_gaps() else {
            panic!("they are drawn")
        };
        let mean = gaps.iter().map(|&gap| f64::from(gap)).sum::<f64>() / gaps.len() as f64;
        assert!((mean / 100_000.0 - 1.0).abs() < 0.05, "{mean}");
        assert!(gaps.iter().all(|gap| (1..=200_000).contains(gap)));
        assert!(
            matches!(Period::random(Duration::ZERO, 3).sampling_gaps(), Gaps::Drawn(gaps) if gaps[0] == 1)
        );
    }

    /// Every third turn is spent in the state, and the thread's CPU clock measures the true fraction. While a thread waits
    /// for its CPU it is sampled only once, however long it waits.
    #[test]
    fn the_estimate_is_near_the_fraction_measured_by_the_cpu_clock() {
        let monitor = SampledMonitor::new(Period::random(Duration::from_micros(200), 1), 0..0).expect("made");
        let begun = Instant::now();
        let ran = || Duration::from_nanos(syscost_platform::time::thread_cpu_ns());
        let mut truth = FractionOfTime::new(ran());
        monitor.start();
        for turn in 0.. {
            let inside = turn % 3 == 0;
            monitor.enter_state(u32::from(inside));
            truth.observe(inside, ran());
            syscost_platform::arch::register_loop(std::hint::black_box(2_000));
            if monitor.samples_so_far().count >= 1_000 || begun.elapsed() > Duration::from_secs(20) {
                break;
            }
        }
        monitor.stop();
        let (found, truth) = (monitor.fraction_in_state(1), truth.fraction(ran()).expect("time passed"));
        // 0.1 is some seven standard deviations.
        assert!((found.estimate - truth).abs() < 0.1, "{found:?} of {truth}");
        assert_eq!(monitor.fraction_in_state(9), monitor.fraction_in_state(7));
    }
}

//! A fraction of time without a division: after 2^N clock pulses the counter *is* the fraction.
//!
//! At each pulse of a clock, a counter is incremented if the signal is on. After 2^N pulses the counter, read with N binary
//! digits after the point, is the fraction of time for which the signal was on. A signal that was always on also needs the
//! digit before the point: N + 1 bits.
//!
//! The result is a sample of size 2^N. It is right only if the signal changes often in that time and is not synchronous with
//! the clock.
//!
//! Source: Kraemer, slides 19, 20 and 26.

/// A counter of the pulses at which a signal was on, in intervals of 2^`N` pulses; `N` is at most 63.
#[derive(Clone, Debug, Default)]
pub struct PulseCounter<const N: u32> {
    pulses: u64,
    counter: u64,
}

/// The counter at the end of an interval of 2^`N` pulses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BinaryFraction<const N: u32>(u64);

impl<const N: u32> PulseCounter<N> {
    /// The number of pulses in an interval.
    pub const INTERVAL: u64 = 1 << N;

    /// Takes the state of the signal at one pulse. At the last pulse of an interval it returns the fraction and begins the
    /// next interval; at other pulses it returns `None`.
    #[inline(always)]
    pub fn count_pulse(&mut self, signal: bool) -> Option<BinaryFraction<N>> {
        self.pulses += 1;
        self.counter += u64::from(signal);
        if self.pulses < Self::INTERVAL {
            return None;
        }
        self.pulses = 0;
        Some(BinaryFraction(std::mem::take(&mut self.counter)))
    }
}

impl<const N: u32> BinaryFraction<N> {
    /// The counter, in units of 2^-`N`.
    pub fn counter(self) -> u64 {
        self.0
    }

    /// The fraction as a floating-point number, exact for `N` up to 53.
    pub fn value(self) -> f64 {
        self.0 as f64 / PulseCounter::<N>::INTERVAL as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interval<const N: u32>(signal: impl Fn(u64) -> bool) -> BinaryFraction<N> {
        let mut counter = PulseCounter::<N>::default();
        let answers: Vec<_> = (0..1 << N).filter_map(|at| counter.count_pulse(signal(at))).collect();
        assert_eq!(answers.len(), 1, "one answer an interval");
        answers[0]
    }

    #[test]
    fn a_signal_that_is_always_on_reads_one_and_needs_n_plus_1_bits() {
        let always = interval::<10>(|_| true);
        assert_eq!((always.counter(), always.value()), (1 << 10, 1.0));
        assert_eq!(interval::<0>(|_| true).value(), 1.0);
        assert_eq!(interval::<10>(|_| false).value(), 0.0);
    }

    #[test]
    fn every_fraction_of_an_interval_is_exact() {
        for on in 0..=256u64 {
            let found = interval::<8>(|at| at < on);
            assert_eq!((found.counter(), found.value() * 256.0), (on, on as f64));
        }
    }

    #[test]
    fn a_signal_synchronous_with_the_clock_reads_zero_or_one() {
        // On in every even half-cycle; a clock with one pulse per cycle sees only one of the halves.
        let signal = |half: u64| half % 2 == 0;
        assert_eq!(interval::<6>(|pulse| signal(2 * pulse)).value(), 1.0);
        assert_eq!(interval::<6>(|pulse| signal(2 * pulse + 1)).value(), 0.0);
        assert_eq!(interval::<6>(|pulse| signal(3 * pulse)).value(), 0.5);
    }
}

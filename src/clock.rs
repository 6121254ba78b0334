//! The clock: an ordered pair of counter reads around what is timed, and the scale that turns its ticks
//! into nanoseconds.

mod calibration;
mod evidence;
mod fluid;
mod other_cpu;
mod partner_monitor;
mod unit;
pub mod witness;

pub use crate::platform::proc::USER_HZ;
pub use calibration::{Calibration, Pairing};
pub use evidence::{Counters, Delta, Reading};
pub use fluid::{Calibrating, Charge, FluidMeter};
pub use other_cpu::Beside;
pub use partner_monitor::{PartnerMonitor, PartnerReport};
pub use unit::{Nanoseconds, Ticks};

use crate::platform::arch::{self, Unfit};
use crate::platform::{cpu, time};
use serde::{Deserialize, Serialize};
use std::cell::RefCell;
use std::hint::black_box;

/// An ordered pair that costs more than this is answered by a hypervisor and not by the processor: a
/// trap costs thousands of ticks, the slowest known bracket about a hundred.
const TRAPPED_NS: f64 = 1_000.0;
/// CPUs compared at start-up. The doctor's patience ends here: 0.2 ms each.
const CPUS_COMPARED: usize = 8;

/// How a clock of this machine counts.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClockScale {
    /// Whether it reads the hardware's counter, or else the kernel's raw monotonic clock.
    pub counter: bool,
    /// Ticks a second.
    pub hz: f64,
    /// The step in which it moves, ticks.
    pub step: u64,
}

/// Counts ticks and knows how long one is.
///
/// ```
/// use syscost::clock::Clock;
/// let clock = Clock::start_up();
/// let ticks = clock.time(|| std::hint::black_box((1..100u64).sum::<u64>()));
/// println!("{ticks:?} = {}", clock.nanoseconds(ticks));
/// ```
pub struct Clock {
    counter: bool,
    calibration: Calibration,
    unfit: Option<Unfit>,
    singles: RefCell<Option<Vec<Ticks>>>,
}

/// Whether an operation of [`Clock::each`] is one of those that were asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counts {
    /// It is.
    Yes,
    /// Another operation happened, as it may by chance: its time is forgotten and it is done again.
    Again,
}

impl Clock {
    /// Room for single brackets: enough for a 99.9th percentile, small enough to stay out of the way.
    pub const SINGLES: usize = 16_384;

    /// The best clock of this machine: the hardware counter if it is fit, else `CLOCK_MONOTONIC_RAW`, with
    /// the reason. Takes about 40 ms. `SYSCOST_CLOCK=monotonic-raw` declines the counter.
    pub fn start_up() -> Self {
        let declined = std::env::var_os("SYSCOST_CLOCK").is_some_and(|v| v == "monotonic-raw");
        let refused = if declined { Some(Unfit::Declined) } else { arch::unfit() };
        match refused {
            Some(reason) => Self::fallback(reason),
            None => Self::calibrated(),
        }
    }

    fn calibrated() -> Self {
        let calibration = Calibration::measure();
        let clock = Self { counter: true, calibration, unfit: None, singles: RefCell::new(None) };
        match clock.trapped().or_else(|| clock.differs()) {
            Some(reason) => Self::fallback(reason),
            None => clock,
        }
    }

    /// A clock whose scale another process of this machine has measured: ready at once.
    pub fn with_scale(scale: ClockScale) -> Self {
        let first = Pairing::take();
        let ClockScale { counter, hz, step } = scale;
        let calibration = Calibration { hz, uncertainty_ppm: 0.0, published: None, step, first };
        Self { counter, calibration, unfit: None, singles: RefCell::new(None) }
    }

    /// What [`Clock::with_scale`] needs in another process.
    pub fn scale(&self) -> ClockScale {
        ClockScale { counter: self.counter, hz: self.calibration.hz, step: self.calibration.step }
    }

    /// The kernel's raw monotonic clock.
    pub fn fallback(reason: Unfit) -> Self {
        let calibration = Calibration::of_nanoseconds();
        Self { counter: false, calibration, unfit: Some(reason), singles: RefCell::new(None) }
    }

    fn trapped(&self) -> Option<Unfit> {
        let cheapest = (0..100).map(|_| self.time(|| ())).min().unwrap_or_default();
        let pair_ns = self.nanoseconds(cheapest).0;
        (pair_ns > TRAPPED_NS).then_some(Unfit::Trapped { pair_ns })
    }

    /// Whether another CPU's counter stands elsewhere than this scale predicts.
    fn differs(&self) -> Option<Unfit> {
        let offsets = cpu::allowed().into_iter().take(CPUS_COMPARED).filter_map(|cpu| {
            let pairing = cpu::while_on(cpu, Pairing::take).ok()?;
            let since = pairing.ticks.wrapping_sub(self.calibration.first.ticks) as i64;
            let kernel = pairing.ns as f64 - self.calibration.first.ns as f64;
            let widths = pairing.width + self.calibration.first.width;
            let slack = self.nanoseconds(Ticks(widths + 2 * self.calibration.step)).0;
            Some((cpu, since as f64 * 1e9 / self.calibration.hz - kernel, slack))
        });
        // 1 µs on top of the brackets: no counter that is off by less can spoil a case on one CPU.
        offsets
            .filter(|(_, by_ns, slack)| by_ns.abs() > slack + 1_000.0)
            .map(|(cpu, by_ns, _)| Unfit::DiffersBetweenCpus { cpu, by_ns })
            .next()
    }

    /// Times one execution. What stands in the closure is exactly what is timed; its value is kept from the
    /// optimiser and dropped afterwards, untimed.
    #[inline(always)]
    pub fn time<T>(&self, operation: impl FnOnce() -> T) -> Ticks {
        let start = self.start();
        let value = black_box(operation());
        let ticks = self.stop() - start;
        drop(value);
        self.note(ticks)
    }

    /// Times `iterations` operations one by one. `prepare` makes each ready and `check` looks at its value; neither is
    /// timed. What stands in `operation` is exactly what is timed. All three share `state`.
    ///
    /// # Errors
    /// The first of `prepare` or `check`; what was timed before it is lost.
    #[inline(always)]
    pub fn each<S, T>(
        &self,
        iterations: u64,
        state: &mut S,
        mut prepare: impl FnMut(&mut S) -> crate::Result<()>,
        mut operation: impl FnMut(&mut S) -> T,
        mut check: impl FnMut(&mut S, T) -> crate::Result<Counts>,
    ) -> crate::Result<Ticks> {
        let (mut sum, mut done) = (Ticks(0), 0);
        while done < iterations {
            prepare(state)?;
            let start = self.start();
            let value = black_box(operation(state));
            let ticks = self.stop() - start;
            if check(state, value)? == Counts::Yes {
                sum += self.note(ticks);
                done += 1;
            }
        }
        Ok(sum)
    }

    /// Keeps one bracket for the distribution, if that is asked for, and hands it back. [`Clock::time`] does
    /// so itself; who brackets by other means calls it. It never allocates: what exceeds the room is left out.
    #[inline(always)]
    pub fn note(&self, ticks: Ticks) -> Ticks {
        if let Some(singles) = &mut *self.singles.borrow_mut() {
            if singles.len() < singles.capacity() {
                singles.push(ticks);
            }
        }
        ticks
    }

    /// Opens a bracket.
    #[inline(always)]
    pub fn start(&self) -> Ticks {
        Ticks(if self.counter { arch::start() } else { time::monotonic_raw_ns() })
    }

    /// Closes a bracket.
    #[inline(always)]
    pub fn stop(&self) -> Ticks {
        Ticks(if self.counter { arch::stop() } else { time::monotonic_raw_ns() })
    }

    /// Converts by the calibrated scale.
    pub fn nanoseconds(&self, ticks: Ticks) -> Nanoseconds {
        Nanoseconds(ticks.0 as f64 * 1e9 / self.calibration.hz)
    }

    /// From now on every [`Clock::time`] is also kept by itself, for a distribution.
    pub fn keep_singles(&self) {
        *self.singles.borrow_mut() = Some(Vec::with_capacity(Self::SINGLES));
    }

    /// What was kept since, ns, and an end of the keeping.
    pub fn take_singles(&self) -> Vec<f64> {
        let singles = self.singles.borrow_mut().take().unwrap_or_default();
        singles.into_iter().map(|ticks| self.nanoseconds(ticks).0).collect()
    }

    /// Ticks a second.
    pub fn hz(&self) -> f64 {
        self.calibration.hz
    }

    /// The step in which the clock moves, ns: what lies below it cannot be told apart.
    pub fn step_ns(&self) -> f64 {
        self.nanoseconds(Ticks(self.calibration.step)).0
    }

    /// How much longer known work must be than with a fine clock for its length to be known as well: 1 up to
    /// steps of 10 ns (AMD's), 4 where AArch64 counts at 24 MHz.
    fn stretch(&self) -> u64 {
        const FINE_NS: f64 = 10.0;
        (self.step_ns() / FINE_NS).round().clamp(1.0, 100.0) as u64
    }

    /// How the scale was found.
    pub fn calibration(&self) -> &Calibration {
        &self.calibration
    }

    /// Why the hardware counter is not used.
    pub fn unfit(&self) -> Option<&Unfit> {
        self.unfit.as_ref()
    }

    /// `tsc`, `cntvct` or `monotonic-raw`.
    pub fn source(&self) -> &'static str {
        if self.counter { arch::COUNTER } else { "monotonic-raw" }
    }

    /// Frequency of the core just now, Hz, inferred from a chain of additions that costs one core cycle
    /// each. It is how a guest without a PMU sees its frequency move. Takes some 50 µs, and longer where
    /// the counter is coarse.
    pub fn core_hz(&self) -> f64 {
        const ADDITIONS: u64 = 16_384;
        const CHAINS: usize = 9;
        let additions = ADDITIONS * self.stretch();
        // Not by `time`, which would keep these among the single operations of a case.
        let chain = || {
            let start = self.start();
            black_box(arch::add_chain(additions));
            self.stop() - start
        };
        // A coarse clock may see no time pass at all: one tick keeps the answer finite.
        let ticks = (0..CHAINS).map(|_| chain()).min().unwrap_or_default().max(Ticks(1));
        additions as f64 * 1e9 / self.nanoseconds(ticks).0
    }

    /// The frequency over the whole life of the clock, Hz, or the reason why it can no longer be trusted.
    pub fn verify(&self) -> Result<f64, Unfit> {
        if !self.counter {
            return Ok(1e9);
        }
        let again = self.calibration.again();
        let by_ppm = (again / self.calibration.hz - 1.0) * 1e6;
        // Ten times the two uncertainties, and never less than what a second calibration may differ by.
        let allowed = (10.0 * self.calibration.uncertainty_ppm).max(100.0);
        if by_ppm.abs() > allowed { Err(Unfit::Migrates { by_ppm }) } else { Ok(again) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Minima of interleaved batches, ns: short enough to fit between two disturbances, and seen at the same
    /// frequency, since the fastest of each is kept.
    fn fastest<const N: usize>(clock: &Clock, work: [&dyn Fn(); N]) -> [f64; N] {
        let mut best = [f64::MAX; N];
        for _ in 0..400 {
            for (best, work) in best.iter_mut().zip(work) {
                *best = best.min(clock.nanoseconds(clock.time(work)).0);
            }
        }
        best
    }

    /// A claim about the clock is true if it holds on a machine at rest. Tests share the machine with other
    /// tests, so it is asked a few times.
    fn holds(claim: impl Fn() -> Result<(), String>) {
        let mut last = Ok(());
        for _ in 0..6 {
            last = claim();
            if last.is_ok() {
                return;
            }
        }
        panic!("six times: {last:?}");
    }

    fn within(value: f64, expected: f64, share: f64, what: &str) -> Result<(), String> {
        let off = (value / expected - 1.0).abs();
        if off <= share { Ok(()) } else { Err(format!("{what}: {value}, expected {expected} ± {share}")) }
    }

    #[test]
    fn known_work_lies_on_a_straight_line() {
        let clock = Clock::start_up();
        holds(|| {
            let adds = [16, 24, 32, 48, 64].map(|k| k * 1024 * clock.stretch());
            let runs = adds.map(|n| move || _ = arch::add_chain(n));
            let [a, b, c, d, e] = &runs;
            let times = fastest(&clock, [a, b, c, d, e]);
            let points: Vec<_> = adds.iter().map(|&n| n as f64).zip(times).collect();
            let line = crate::statistic::fit_line(&points).expect("five points");
            within(1.0 + line.worst_residual, 1.0, 0.005, "distance from a straight line")
        });
    }

    #[test]
    fn a_multiplication_costs_three_additions() {
        if cfg!(not(target_arch = "x86_64")) {
            return; // AArch64 cores differ: three to five
        }
        let clock = Clock::start_up();
        holds(|| {
            let add = || _ = arch::add_chain(30_720);
            let multiply = || _ = arch::multiply_chain(10_240);
            let [add, multiply] = fastest(&clock, [&add, &multiply]);
            within(3.0 * multiply / add, 3.0, 0.01, "additions in a multiplication")
        });
    }

    #[test]
    fn a_fallback_measures_the_same_work() {
        let (counter, raw) = (Clock::start_up(), Clock::fallback(Unfit::Declined));
        let turns = 30_720 * counter.stretch();
        let work = || _ = arch::multiply_chain(turns);
        holds(|| {
            let ([counter], [raw]) = (fastest(&counter, [&work]), fastest(&raw, [&work]));
            within(counter / raw, 1.0, 0.01, "the two clocks' ratio")
        });
    }

    #[test]
    fn the_clock_costs_little_more_than_its_two_reads() {
        if cfg!(debug_assertions) {
            return; // what an unoptimised build costs is no one's claim
        }
        let clock = Clock::start_up();
        holds(|| {
            let own = || (0..500).for_each(|_| _ = black_box(clock.stop() - clock.start()));
            let bare = || (0..500).for_each(|_| _ = black_box(arch::start() ^ arch::stop()));
            let [own, bare] = fastest(&clock, [&own, &bare]);
            if own <= 1.1 * bare { Ok(()) } else { Err(format!("{own} against {bare}")) }
        });
    }

    #[test]
    fn singles_add_up() {
        let clock = Clock::start_up();
        clock.keep_singles();
        let sum = (0..10).map(|_| clock.time(|| arch::add_chain(100)).0).sum();
        let singles = clock.take_singles();
        assert_eq!(singles.len(), 10);
        assert!((singles.iter().sum::<f64>() - clock.nanoseconds(Ticks(sum)).0).abs() < 1e-6);
    }
}

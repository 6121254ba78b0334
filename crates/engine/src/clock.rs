//! The clock: an ordered pair of counter reads around what is timed, and the scale that turns its ticks
//! into nanoseconds.

mod agreement;
mod calibration;
mod counting_clock;
mod evidence;
mod fluid_meter;
mod partner_monitor;
#[cfg(test)]
mod tests;
mod unit;
pub mod witness;

pub use crate::platform::arch::Unfit;
pub use crate::platform::proc::USER_HZ;
pub use crate::statistic::fluid_cost::{Covered, Window};
pub use agreement::{Dispute, check_clocks};
pub use calibration::{Calibration, PairedReading};
pub use evidence::{Counters, Delta, OtherCpus, Reading};
pub use fluid_meter::{CalibrationPlan, Charge, FluidMeter};
pub use partner_monitor::{PartnerMonitor, PartnerReport};
pub use unit::{Nanoseconds, Ticks};

use crate::platform::emulator_mark::{self, Mark};
use crate::platform::{arch, cpu, time};
use serde::{Deserialize, Serialize};
use std::cell::RefCell;
use std::hint::black_box;

/// An ordered pair of reads that takes longer than this is emulated by a hypervisor: a trap costs thousands of ticks,
/// the slowest known bracket about a hundred.
const TRAPPED_NS: f64 = 1_000.0;
/// CPUs compared at start-up, at 0.2 ms each.
const CPUS_COMPARED: usize = 8;

/// The scale of a clock, so that another process of this machine can use it without a calibration.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClockScale {
    /// Whether it reads the hardware's counter, otherwise the kernel's raw monotonic clock.
    pub counter: bool,
    /// Ticks a second.
    pub hz: f64,
    /// The smallest step by which the counter moves, ticks.
    pub step: u64,
    /// Half-width of the interval of `hz`, parts per million.
    #[serde(default)]
    pub uncertainty_ppm: f64,
}

/// The source that a clock reads.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Source {
    /// The hardware's counter.
    Counter,
    /// The kernel's raw monotonic clock.
    Kernel,
    /// Nothing.
    Still,
    /// Nothing. Allocations inside brackets are counted.
    Allocations,
    /// Nothing. Brackets are marked for a process that traces this one step by step.
    Steps,
    /// Nothing. Brackets are marked for callgrind.
    Callgrind,
    /// The hardware's counter, between marks for an emulator that counts the instructions inside brackets.
    Marked,
    /// The hardware's counter, or the kernel's clock, with brackets that are marked for a [`StackSampler`].
    ///
    /// [`StackSampler`]: crate::platform::stack_sampler::StackSampler
    Sampled { counter: bool },
}

/// Times operations in ticks, and converts ticks to nanoseconds.
///
/// ```
/// use syscost_engine::clock::Clock;
/// let clock = Clock::start_up();
/// let ticks = clock.time(|| std::hint::black_box((1..100u64).sum::<u64>()));
/// println!("{ticks:?} = {}", clock.nanoseconds(ticks));
/// ```
pub struct Clock {
    source: Source,
    calibration: Calibration,
    unfit: Option<Unfit>,
    singles: RefCell<Option<Vec<Ticks>>>,
}

/// Whether an execution in [`Clock::time_each`] counts as an iteration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counts {
    /// It counts.
    Yes,
    /// Another operation happened by chance. Its time is discarded, and the iteration is repeated.
    Again,
}

impl Clock {
    /// Most single brackets that are kept: enough for a 99.9th percentile, and few enough to disturb no cache.
    pub const SINGLES: usize = 16_384;

    /// The best clock of this machine: the hardware counter if it is fit, otherwise `CLOCK_MONOTONIC_RAW` with
    /// the reason ([`Clock::unfit_reason`]). Takes about 40 ms. `SYSCOST_CLOCK=monotonic-raw` declines the counter.
    pub fn start_up() -> Self {
        let refused = if calibration::is_counter_declined() { Some(Unfit::Declined) } else { arch::unfit() };
        match refused {
            Some(reason) => Self::fallback(reason),
            None => Self::calibrate_or_fall_back(),
        }
    }

    fn calibrate_or_fall_back() -> Self {
        let calibration = Calibration::measure();
        let clock = Self { source: Source::Counter, calibration, unfit: None, singles: RefCell::new(None) };
        match clock.find_trapped_reads().or_else(|| clock.find_cpu_difference()) {
            Some(reason) => Self::fallback(reason),
            None => clock,
        }
    }

    /// A clock with a scale that another process of this machine has measured. It needs no calibration.
    pub fn with_scale(scale: ClockScale) -> Self {
        let ClockScale { counter, hz, step, uncertainty_ppm } = scale;
        let nanoseconds = Calibration::for_nanosecond_counter();
        // Without `counter` the hardware's counter is not read, since this processor may have none.
        let first = if counter { PairedReading::take() } else { nanoseconds.first };
        let calibration = Calibration { hz, step, uncertainty_ppm, first, ..nanoseconds };
        let source = if counter { Source::Counter } else { Source::Kernel };
        Self { source, calibration, unfit: None, singles: RefCell::new(None) }
    }

    /// The scale that [`Clock::with_scale`] needs in another process.
    pub fn scale(&self) -> ClockScale {
        ClockScale {
            counter: self.reads_counter(),
            hz: self.calibration.hz,
            step: self.calibration.step,
            uncertainty_ppm: self.calibration.uncertainty_ppm,
        }
    }

    /// A clock with a scale for a guest whose emulator counts instructions: each bracket is marked for it
    /// ([`Mark`]). Only batches that stand between [`Mark::BeginBatch`] and [`Mark::EndBatch`] are counted.
    pub fn with_marked_brackets(scale: ClockScale) -> Self {
        Self { source: Source::Marked, ..Self::with_scale(scale) }
    }

    /// A clock that reads the kernel's raw monotonic clock, for this reason.
    pub fn fallback(reason: Unfit) -> Self {
        let calibration = Calibration::for_nanosecond_counter();
        Self { source: Source::Kernel, calibration, unfit: Some(reason), singles: RefCell::new(None) }
    }

    fn reads_counter(&self) -> bool {
        matches!(self.source, Source::Counter | Source::Marked | Source::Sampled { counter: true })
    }

    fn find_trapped_reads(&self) -> Option<Unfit> {
        let cheapest = (0..100).map(|_| self.time(|| ())).min().unwrap_or_default();
        let pair_ns = self.nanoseconds(cheapest).0;
        (pair_ns > TRAPPED_NS).then_some(Unfit::Trapped { pair_ns })
    }

    /// Returns the first CPU whose counter differs from what this scale predicts, if there is one.
    fn find_cpu_difference(&self) -> Option<Unfit> {
        let offsets = cpu::allowed_cpus().into_iter().take(CPUS_COMPARED).filter_map(|cpu| {
            let other = cpu::run_on_cpu(cpu, PairedReading::take).ok()?;
            let since = other.ticks.wrapping_sub(self.calibration.first.ticks) as i64;
            let kernel = other.ns as f64 - self.calibration.first.ns as f64;
            let widths = other.width + self.calibration.first.width;
            let kernels_ns = if self.kernel_step_ns() > 1 { 2.0 * self.kernel_step_ns() as f64 } else { 0.0 };
            let slack = self.nanoseconds(Ticks(widths + 2 * self.calibration.step)).0 + kernels_ns;
            Some((cpu, since as f64 * 1e9 / self.calibration.hz - kernel, slack))
        });
        // Allows 1 µs on top of the brackets: a smaller difference cannot spoil a case on one CPU.
        offsets
            .filter(|(_, by_ns, slack)| by_ns.abs() > slack + 1_000.0)
            .map(|(cpu, by_ns, _)| Unfit::DiffersBetweenCpus { cpu, by_ns })
            .next()
    }

    /// Times one execution. Exactly the closure is timed. Its value is hidden from the optimiser and dropped
    /// afterwards, untimed.
    #[inline(always)]
    pub fn time<T>(&self, operation: impl FnOnce() -> T) -> Ticks {
        let start = self.start();
        let value = black_box(operation());
        let ticks = self.stop() - start;
        drop(value);
        self.record_bracket(ticks)
    }

    /// Times `iterations` executions one by one. Exactly `operation` is timed: `prepare` runs before it and `check`,
    /// which is given its value, after it. All three share `state`.
    ///
    /// # Errors
    /// The first error of `prepare` or `check`. The times before it are lost.
    #[inline(always)]
    pub fn time_each<S, T>(
        &self,
        iterations: u64,
        state: &mut S,
        mut prepare: impl FnMut(&mut S) -> crate::error::Result<()>,
        mut operation: impl FnMut(&mut S) -> T,
        mut check: impl FnMut(&mut S, T) -> crate::error::Result<Counts>,
    ) -> crate::error::Result<Ticks> {
        let (mut sum, mut done) = (Ticks(0), 0);
        while done < iterations {
            prepare(state)?;
            let start = self.start();
            let value = black_box(operation(state));
            let ticks = self.stop() - start;
            if check(state, value)? == Counts::Yes {
                sum += self.record_bracket(ticks);
                done += 1;
            }
        }
        Ok(sum)
    }

    /// Keeps one bracket for the distribution, if [`Clock::keep_single_times`] was called, and returns it. [`Clock::time`] and
    /// [`Clock::time_each`] do so themselves. It never allocates: brackets beyond [`Clock::SINGLES`] are left out.
    #[inline(always)]
    pub fn record_bracket(&self, ticks: Ticks) -> Ticks {
        if let Some(singles) = &mut *self.singles.borrow_mut() {
            if singles.len() < singles.capacity() {
                singles.push(ticks);
            }
        }
        ticks
    }

    /// Opens a bracket: reads the counter after all earlier instructions have finished.
    #[inline(always)]
    pub fn start(&self) -> Ticks {
        Ticks(match self.source {
            Source::Counter => arch::start(),
            Source::Kernel => time::monotonic_raw_ns(),
            _ => self.start_apart(),
        })
    }

    /// Closes a bracket: reads the counter after what is timed, and before any later instruction begins.
    #[inline(always)]
    pub fn stop(&self) -> Ticks {
        Ticks(match self.source {
            Source::Counter => arch::stop(),
            Source::Kernel => time::monotonic_raw_ns(),
            _ => self.stop_apart(),
        })
    }

    /// Whether brackets are marked for an emulator, which counts instructions and has no predictor and no caches.
    pub(crate) fn is_marked(&self) -> bool {
        self.source == Source::Marked
    }

    /// Marks the beginning or end of a batch or turn for the emulator, if brackets are marked.
    pub(crate) fn mark(&self, mark: Mark) {
        if self.is_marked() {
            emulator_mark::execute(mark);
        }
    }

    /// Converts by the calibrated scale.
    pub fn nanoseconds(&self, ticks: Ticks) -> Nanoseconds {
        Nanoseconds(ticks.0 as f64 * 1e9 / self.calibration.hz)
    }

    /// From now on every bracket is also kept by itself, for a distribution.
    pub fn keep_single_times(&self) {
        *self.singles.borrow_mut() = Some(Vec::with_capacity(Self::SINGLES));
    }

    /// Number of single brackets kept so far; `None` if none are kept, or if some may have been left out.
    pub fn count_single_times(&self) -> Option<usize> {
        let singles = self.singles.borrow();
        singles.as_ref().filter(|kept| kept.len() < kept.capacity()).map(Vec::len)
    }

    /// Discards all single brackets after the first `kept`, if they are counted.
    pub(crate) fn shorten_single_times(&self, kept: Option<usize>) {
        if let (Some(singles), Some(kept)) = (&mut *self.singles.borrow_mut(), kept) {
            singles.truncate(kept);
        }
    }

    /// Stops keeping single brackets, and returns those that were kept, ns.
    pub fn take_single_times(&self) -> Vec<f64> {
        let singles = self.singles.borrow_mut().take().unwrap_or_default();
        singles.into_iter().map(|ticks| self.nanoseconds(ticks).0).collect()
    }

    /// Ticks a second.
    pub fn hz(&self) -> f64 {
        self.calibration.hz
    }

    /// The smallest step by which the clock moves, ns. Shorter differences cannot be seen.
    pub fn step_ns(&self) -> f64 {
        self.nanoseconds(Ticks(self.calibration.step)).0
    }

    /// The smallest step of the kernel's clock, against which the counter is calibrated, ns; 1 if the step is too small to be
    /// seen.
    pub fn kernel_step_ns(&self) -> u64 {
        calibration::kernel_step_ns()
    }

    /// The factor by which work must be longer than with a fine clock to be timed as precisely: 1 up to steps of 10 ns (AMD's),
    /// and 4 where AArch64 counts at 24 MHz. Where a kernel's clock moves in steps of 0.1 ms, work must take 100 steps.
    fn work_multiplier(&self) -> u64 {
        const FINE_NS: f64 = 10.0;
        (self.step_ns() / FINE_NS).round().clamp(1.0, 2_000.0) as u64
    }

    /// The measured scale.
    pub fn calibration(&self) -> &Calibration {
        &self.calibration
    }

    /// Why the hardware counter is not used; `None` where it is.
    pub fn unfit_reason(&self) -> Option<&Unfit> {
        self.unfit.as_ref()
    }

    /// `tsc`, `cntvct` or `monotonic-raw`.
    pub fn source(&self) -> &'static str {
        if self.reads_counter() { arch::COUNTER } else { "monotonic-raw" }
    }

    /// The core's present frequency, Hz, inferred from a chain of additions that cost one core cycle
    /// each. It shows a guest without a PMU that its frequency changes. Takes some 50 µs, and longer where
    /// the counter is coarse.
    pub fn core_hz(&self) -> f64 {
        const ADDITIONS: u64 = 16_384;
        const CHAINS: usize = 9;
        // With such a coarse clock one chain is longer than any interrupt, and nine would take a tenth of a second.
        const LONG_STRETCH: u64 = 100;
        let additions = ADDITIONS * self.work_multiplier();
        // Not by `time`, which would keep these among the single brackets of a case.
        let chain = || {
            let start = self.start();
            black_box(arch::add_chain(additions));
            self.stop() - start
        };
        // A coarse clock may see no time pass at all: one tick keeps the result finite.
        let chains = if self.work_multiplier() > LONG_STRETCH { 1 } else { CHAINS };
        let ticks = (0..chains).map(|_| chain()).min().unwrap_or_default().max(Ticks(1));
        additions as f64 * 1e9 / self.nanoseconds(ticks).0
    }

    /// Measures the frequency over the whole life of the clock, Hz.
    ///
    /// # Errors
    /// The reason why the counter can no longer be trusted.
    pub fn verify_frequency(&self) -> Result<f64, Unfit> {
        if !self.reads_counter() {
            return Ok(1e9);
        }
        let again = self.calibration.frequency_since_start();
        let by_ppm = (again / self.calibration.hz - 1.0) * 1e6;
        // Ten times the two uncertainties, and never less than what a second calibration may differ by.
        let allowed = (10.0 * self.calibration.uncertainty_ppm).max(100.0);
        if by_ppm.abs() > allowed { Err(Unfit::Migrates { by_ppm }) } else { Ok(again) }
    }
}

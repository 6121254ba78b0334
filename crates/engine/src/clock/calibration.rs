//! The frequency of the counter and its uncertainty.
//!
//! A [`PairedReading`] reads the kernel's clock between two ordered reads of the counter: the kernel's instant lies somewhere
//! between the two, so half of their distance is the error. The tightest of many such readings is kept. Two of them some
//! milliseconds apart give the frequency, and their errors over the distance give its uncertainty: about 1 ppm after 40 ms.

use crate::platform::{arch, perf_event, time};
use std::sync::OnceLock;
use std::time::Duration;

/// Readings tried at each end. One reading in a few dozen is disturbed; the tightest never is.
const TRIES: usize = 200;
/// Time between the two ends. The uncertainty falls with it: 40 ms give about 1 ppm for 40 ns of width.
const APART: Duration = Duration::from_millis(40);

/// A kernel's clock with longer steps than this, ns, is read at the instant at which it moves: hpet and Hyper-V's page have 100
/// ns.
const COARSE_NS: u64 = 100;

/// A clock with steps of this length or longer, ns, hardly moves during a few microseconds of readings.
const LONG_STEP_NS: u64 = 10_000;

/// One instant on both clocks: the counter and the kernel's.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PairedReading {
    /// The counter, in the middle of the bracket.
    pub ticks: u64,
    /// `CLOCK_MONOTONIC_RAW` inside the bracket, ns.
    pub ns: u64,
    /// Length of the bracket, ticks: the instant is known to ± half of it.
    pub width: u64,
}

/// The measured frequency of the counter.
#[derive(Clone, Debug, PartialEq)]
pub struct Calibration {
    /// Ticks a second.
    pub hz: f64,
    /// Half-width of its interval, parts per million.
    pub uncertainty_ppm: f64,
    /// The frequency that the kernel, the processor or the hypervisor states, Hz, and which of them does.
    pub published: Option<(f64, String)>,
    /// The smallest step by which the counter moves, ticks.
    pub step: u64,
    /// The first end, kept so that the end of the run can be compared with it.
    pub first: PairedReading,
}

impl PairedReading {
    /// Reads both clocks many times and keeps the tightest reading. If the kernel's clock moves in long steps, the readings
    /// are taken at the instants at which it moves.
    pub fn take() -> Self {
        if kernel_step_ns() > COARSE_NS {
            if let Some(move_seen) = Self::tightest_move(time::monotonic_raw_ns, arch::start) {
                return move_seen;
            }
        }
        let one = || {
            let before = arch::start();
            let ns = time::monotonic_raw_ns();
            let after = arch::stop();
            let width = after.saturating_sub(before);
            Self { ticks: before + width / 2, ns, width }
        };
        (1..TRIES).map(|_| one()).fold(one(), |best, next| if next.width < best.width { next } else { best })
    }

    /// Ticks a second between this instant and a later one, and its uncertainty in parts per million.
    pub fn frequency_until(&self, later: &Self) -> (f64, f64) {
        let ticks = later.ticks.wrapping_sub(self.ticks) as f64;
        let seconds = later.ns.saturating_sub(self.ns) as f64 / 1e9;
        let error = (self.width + later.width) as f64 / 2.0;
        (ticks / seconds, error / ticks * 1e6)
    }
}

impl Calibration {
    /// Measures the counter against `CLOCK_MONOTONIC_RAW` for 40 ms.
    pub fn measure() -> Self {
        let first = PairedReading::take();
        std::thread::sleep(APART);
        let last = PairedReading::take();
        let (hz, width_ppm) = first.frequency_until(&last);
        let step = counter_step();
        // A bracket of width 0 is not exact, but shorter than the counter's step (42 ns at AArch64's usual 24 MHz): at each end
        // the counter may be off by half a step.
        let own_ppm = step as f64 / last.ticks.wrapping_sub(first.ticks) as f64 * 1e6;
        // The same holds for the kernel's clock, whose steps are longer where it counts in microseconds or in ticks.
        let kernels_ppm = kernel_step_ns() as f64 / last.ns.wrapping_sub(first.ns) as f64 * 1e6;
        let uncertainty_ppm = width_ppm + own_ppm + kernels_ppm;
        Self {
            hz,
            uncertainty_ppm,
            published: published_frequency().or_else(delay_loop_frequency),
            step,
            first,
        }
    }

    /// The calibration of a counter that counts nanoseconds: exact by definition.
    pub fn for_nanosecond_counter() -> Self {
        let ns = time::monotonic_raw_ns();
        let first = PairedReading { ticks: ns, ns, width: 0 };
        Self { hz: 1e9, uncertainty_ppm: 0.0, published: None, step: kernel_step_ns(), first }
    }

    /// The frequency over the whole time since calibration, Hz.
    pub fn frequency_since_start(&self) -> f64 {
        self.first.frequency_until(&PairedReading::take()).0
    }

    /// How far the published frequency is from the measured one, parts per million.
    pub fn published_error_ppm(&self) -> Option<f64> {
        self.published.as_ref().map(|(hz, _)| (hz / self.hz - 1.0) * 1e6)
    }
}

/// The counter's frequency as the kernel, the processor or the hypervisor states it, Hz, and which of them does.
pub(super) fn published_frequency() -> Option<(f64, String)> {
    // The perf page belongs to the time-stamp counter on x86-64 and to the virtual counter on AArch64.
    let kernel = perf_event::published_frequency().map(|hz| (hz, "the kernel's perf page".to_owned()));
    let processor = || arch::frequency().map(|(hz, source)| (hz, source.to_owned()));
    kernel.or_else(processor)
}

/// Whether the hardware's counter can be the clock: the user does not decline it, and the processor calls it fit.
pub(super) fn is_counter_fit() -> bool {
    !is_counter_declined() && arch::unfit().is_none()
}

/// Whether the user declines the counter.
pub(super) fn is_counter_declined() -> bool {
    std::env::var_os("SYSCOST_CLOCK").is_some_and(|value| value == "monotonic-raw")
}

/// The smallest step by which `CLOCK_MONOTONIC_RAW` moves, ns; 1 where it is too small to be seen. Found once a process.
pub(super) fn kernel_step_ns() -> u64 {
    static STEP: OnceLock<u64> = OnceLock::new();
    *STEP.get_or_init(|| {
        let step = smallest_step(time::monotonic_raw_ns, 1_000);
        // A clock that hardly moved in these readings needs a longer wait.
        if (1..LONG_STEP_NS).contains(&step) { step } else { long_step_ns().unwrap_or(u64::MAX) }
    })
}

/// The least distance between two moves of a clock that moves rarely, ns; `None` if it stands still. A thread that is not
/// running sees several moves as one.
fn long_step_ns() -> Option<u64> {
    const MOVES: usize = 10;
    const LONG: Duration = Duration::from_millis(10);
    let next = || Some(PairedReading::next_move(time::monotonic_raw_ns, time::monotonic_raw_ns)?.ns);
    let first = next()?;
    let (mut last, mut least) = (first, u64::MAX);
    for at in 0..MOVES {
        let now = next()?;
        least = least.min(now.saturating_sub(last));
        last = now;
        let is_long = u128::from(now.saturating_sub(first)) > LONG.as_nanos();
        if is_long && at > 0 {
            break;
        }
    }
    Some(least)
}

/// The frequency by which the kernel's delay loop counts.
fn delay_loop_frequency() -> Option<(f64, String)> {
    let text = std::fs::read_to_string("/proc/cpuinfo").ok()?;
    let hz = crate::platform::proc::bogomips(&text).filter(|_| cfg!(target_arch = "x86_64"))? / 2.0 * 1e6;
    Some((hz, "half of /proc/cpuinfo's bogomips".into()))
}

/// The smallest step by which the counter moves, ticks, from readings at many small distances, so that every multiple
/// of the step occurs.
fn counter_step() -> u64 {
    smallest_step(arch::read, 4_000).max(1)
}

/// The smallest step by which this clock moves in this number of readings; 0 if it did not move.
fn smallest_step(read: fn() -> u64, readings: u64) -> u64 {
    let distance = |i| {
        let before = read();
        std::hint::black_box(arch::add_chain(i % 256));
        read().wrapping_sub(before)
    };
    let distances: Vec<u64> = (0..readings).map(distance).collect();
    if distances.iter().all(|&distance| distance == 0) { 0 } else { step_from_distances(distances) }
}

/// The step of a counter, from distances between its readings. Some counters move by more than one: AMD's moves at 100 MHz and
/// counts in nominal core cycles, so by 25 or 26 at 2.6 GHz. The distances between readings then lie in clusters, and the step
/// is the distance between clusters. A counter that moves by one leaves no gaps.
fn step_from_distances(mut distances: Vec<u64>) -> u64 {
    const ROUNDING: u64 = 2;
    // If the step is longer than the time between two readings, few distances contain a step, and those contain exactly one. An
    // emulator that counts microseconds is such a counter.
    let moved: Vec<u64> = distances.iter().copied().filter(|&distance| distance > 0).collect();
    if moved.len() <= distances.len() / 10 {
        return moved.into_iter().min().unwrap_or(1);
    }
    // Disturbed readings are outliers.
    distances.sort_unstable();
    distances.truncate(distances.len() * 9 / 10);
    distances.dedup();
    let mut starts = distances.clone();
    starts.dedup_by(|next, start| *next - *start <= ROUNDING);
    let mut apart: Vec<u64> = starts.windows(2).map(|w| w[1] - w[0]).collect();
    apart.sort_unstable();
    // Where distances are dense, the rounding itself cuts them into clusters, which are no steps.
    match apart.get(apart.len() / 2) {
        Some(&step) if step > 2 * ROUNDING && distances.len() <= 3 * starts.len() => step,
        _ => 1,
    }
}

/// Steps of the base clock that pass while another clock advances by 1 ns, and their relative error.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    pub(super) per_ns: f64,
    pub(super) error: f64,
}

/// Instants at which a kernel's clock moves, located by another clock, the base, whose readings are the `ticks`.
impl PairedReading {
    /// Readings without a move after which a clock is said to stand still: 10 ms of the cheapest readings, and longer by system
    /// calls.
    const PATIENCE: u32 = 1_000_000;
    /// Moves of which the one with the tightest readings around it is kept …
    const MOVES: usize = 20;
    /// … if they all happen within this time, ns.
    const LONG_NS: u64 = 1_000_000;

    /// The tightest of some moves; `None` if the clock stands still.
    pub(super) fn tightest_move(read: fn() -> u64, base: fn() -> u64) -> Option<Self> {
        let first = Self::next_move(read, base)?;
        let mut best = first;
        for _ in 1..Self::MOVES {
            let next = Self::next_move(read, base)?;
            if next.width < best.width {
                best = next;
            }
            if next.ns.saturating_sub(first.ns) > Self::LONG_NS {
                break;
            }
        }
        Some(best)
    }

    /// Waits for the next move: two readings of the clock that differ, each with a reading of the base before it.
    pub(super) fn next_move(read: fn() -> u64, base: fn() -> u64) -> Option<Self> {
        let (mut before, last) = (base(), read());
        for _ in 0..Self::PATIENCE {
            let middle = base();
            let ns = read();
            if ns != last {
                let width = base().wrapping_sub(before);
                return Some(Self { ticks: before.wrapping_add(width / 2), ns, width });
            }
            before = middle;
        }
        None
    }

    /// The pace between this move and a later one.
    pub(super) fn pace_until(&self, later: &Self) -> Pace {
        let passed = later.ticks.wrapping_sub(self.ticks) as f64;
        let error = (self.width + later.width) as f64 / 2.0 / passed.max(1.0);
        Pace { per_ns: passed / (later.ns.wrapping_sub(self.ns) as i64 as f64), error }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_error_is_that_of_both_ends() {
        let first = PairedReading { ticks: 1_000, ns: 0, width: 40 };
        let later = PairedReading { ticks: 101_000, ns: 50_000, width: 60 };
        let (hz, ppm) = first.frequency_until(&later);
        assert_eq!(hz, 2e9);
        assert_eq!(ppm, 500.0);
    }

    #[test]
    fn a_coarse_counter_shows_its_step() {
        let coarse = (0..1_000u64).map(|i| (i % 9 * 2_596 + i % 2 * 50) / 100).collect();
        assert_eq!(step_from_distances(coarse), 26);
        let fine = (0..1_000u64).map(|i| 20 + i % 97).collect();
        assert_eq!(step_from_distances(fine), 1);
        assert_eq!(step_from_distances((0..1_000).map(|i| i % 3).collect()), 1);
        assert_eq!(
            step_from_distances((0..1_000).map(|i| if i % 20 == 0 { 62 + i % 40 / 20 } else { 0 }).collect()),
            62
        );
        assert_eq!(step_from_distances(Vec::new()), 1);
    }

    #[test]
    fn the_counter_of_this_machine_has_a_step() {
        let step = counter_step();
        assert!((1..1_000).contains(&step), "{step}");
    }

    #[test]
    fn the_frequency_repeats_from_start_to_start() {
        // Ten starts agree within 10 ppm, or within twice the largest uncertainty where the counter is coarse. No absolute
        // frequency is expected: any machine may run this.
        let starts: Vec<_> = (0..10).map(|_| Calibration::measure()).collect();
        let (low, high) = starts.iter().fold((f64::MAX, 0f64), |(l, h), c| (l.min(c.hz), h.max(c.hz)));
        let spread = (high / low - 1.0) * 1e6;
        let allowed = starts.iter().map(|c| 2.0 * c.uncertainty_ppm).fold(10.0, f64::max);
        assert!(
            spread < allowed,
            "ten calibrations differ by {spread:.2} ppm, {allowed:.2} allowed: {starts:?}"
        );
    }

    #[test]
    fn it_agrees_with_a_whole_second_of_the_kernels_clock() {
        let calibration = Calibration::measure();
        let first = PairedReading::take();
        std::thread::sleep(Duration::from_secs(1));
        let (hz, _) = first.frequency_until(&PairedReading::take());
        let error = (calibration.hz / hz - 1.0) * 1e6;
        assert!(error.abs() < calibration.uncertainty_ppm.max(20.0), "off by {error:.2} ppm over one second");
    }
}

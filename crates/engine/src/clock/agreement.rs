//! Checks that the machine's clocks agree on the length of an interval: the kernel's clocks by the C library and by a system
//! call, and the counter by its published frequency.
//!
//! A preloaded library, a guest that was moved, or a broken clock source makes one of them run at another rate. The run cannot
//! know which of them is right, so every time is in doubt by their difference.

use super::calibration::{self, Pace, PairedReading, is_counter_fit, kernel_step_ns};
use crate::error::{Error, Result};
use crate::platform::{arch, cpu, time};
use std::time::Duration;

/// Time between the two readings of each clock: a reading is good to 0.1 µs, which is 20 ppm of it.
const APART: Duration = Duration::from_millis(5);
/// Observations before a dispute is believed: a guest may be stopped in the middle of one.
const OBSERVATIONS: usize = 3;
/// Clocks that differ by more than this share mark every figure. The kernel slews a clock by 0.05 % at most.
const MARKED_DIFFERENCE: f64 = 0.01;
/// Clocks that differ by more than this share end the run.
const REFUSED_DIFFERENCE: f64 = 0.1;
/// Longest step of a kernel's clock that has no counter beside it, ns: a batch needs a few hundred steps.
const COARSEST_NS: u64 = 250_000;

/// A clock of the kernel's.
struct Source {
    name: &'static str,
    read: fn() -> u64,
}

/// The clocks that are compared. The first is the one by which the counter is calibrated. `CLOCK_REALTIME` is left out, because
/// it may be set.
const SOURCES: [Source; 4] = [
    Source { name: "CLOCK_MONOTONIC_RAW", read: time::monotonic_raw_ns },
    Source {
        name: "CLOCK_MONOTONIC_RAW by a system call",
        read: || time::clock_gettime_entry_ns(libc::CLOCK_MONOTONIC_RAW),
    },
    Source { name: "CLOCK_MONOTONIC", read: || time::clock_gettime_ns(libc::CLOCK_MONOTONIC) },
    Source { name: "CLOCK_BOOTTIME", read: || time::clock_gettime_ns(libc::CLOCK_BOOTTIME) },
];

/// A clock that runs at another rate than the clock that measures.
#[derive(Clone, Debug, PartialEq)]
pub struct Dispute {
    /// The clock, or the source of the counter's frequency.
    pub other: String,
    /// How much more time passes by this clock, as a share; 1 if it is twice as fast.
    pub by: f64,
}

impl Dispute {
    /// The ratio of the faster clock's rate to the slower one's, minus 1: 9 for a factor of ten.
    fn distance(&self) -> f64 {
        let ratio = (1.0 + self.by).max(f64::MIN_POSITIVE);
        ratio.max(ratio.recip()) - 1.0
    }
}

impl std::fmt::Display for Dispute {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { other, by } = self;
        let measures = SOURCES[0].name;
        write!(
            f,
            "the clocks contradict each other: while 1 s passes by {measures}, {:.3} s pass by {other}",
            1.0 + by
        )
    }
}

/// Compares the clocks that a measurement here would use, for some 5 ms. Returns a dispute that marks every figure, if there is
/// one.
///
/// # Errors
/// [`Error::Missing`]: they differ so far, or move so rarely, that no time can be trusted.
pub fn check_clocks() -> Result<Option<Dispute>> {
    let has_counter = is_counter_fit();
    let step_ns = kernel_step_ns();
    if !has_counter && step_ns > COARSEST_NS {
        return Err(Error::Missing(format!(
            "the only clock here moves in steps of {step_ns} ns, so that nothing can be timed to better than some seconds: \
             choose another clock source (/sys/devices/system/clocksource/clocksource0/available_clocksource)"
        )));
    }
    match persistent_dispute(has_counter) {
        Some(dispute) if dispute.distance() > REFUSED_DIFFERENCE => Err(Error::Missing(format!(
            "{dispute}; no time that is measured here would mean anything: look for a preloaded library that replaces \
             clock_gettime (LD_PRELOAD, libfaketime); SYSCOST_CLOCK=monotonic-raw does without the counter"
        ))),
        dispute => Ok(dispute.filter(|dispute| dispute.distance() > MARKED_DIFFERENCE)),
    }
}

/// The smallest of the disputes, if every observation found one.
fn persistent_dispute(has_counter: bool) -> Option<Dispute> {
    let mut least: Option<Dispute> = None;
    for _ in 0..OBSERVATIONS {
        let found =
            observe_clocks(has_counter, APART).filter(|dispute| dispute.distance() > MARKED_DIFFERENCE)?;
        if least.as_ref().is_none_or(|least| found.distance() < least.distance()) {
            least = Some(found);
        }
    }
    least
}

/// Reads each clock twice, and returns the clock that differs most.
fn observe_clocks(has_counter: bool, apart: Duration) -> Option<Dispute> {
    let base: fn() -> u64 = if has_counter { arch::start } else { time::monotonic_raw_ns };
    let begins_on = cpu::current_cpu();
    let ends = || SOURCES.each_ref().map(|source| PairedReading::tightest_move(source.read, base));
    let first = ends();
    std::thread::sleep(apart);
    let last = ends();
    let pace = |at: usize| first[at].zip(last[at]).map(|(first, last)| first.pace_until(&last));
    // The counters of two CPUs may differ.
    let published =
        calibration::published_frequency().filter(|_| has_counter && cpu::current_cpu() == begins_on);
    let published = published.map(|(hz, name)| (name, Some(Pace { per_ns: hz / 1e9, error: 0.0 })));
    let kernels = (1..SOURCES.len()).map(|at| (SOURCES[at].name.to_owned(), pace(at)));
    largest_dispute(pace(0), kernels.chain(published))
}

/// The clock that differs most from the one that measures, beyond the errors of the readings.
fn largest_dispute(
    measures: Option<Pace>,
    others: impl Iterator<Item = (String, Option<Pace>)>,
) -> Option<Dispute> {
    let Some(measures) = measures else {
        return Some(Dispute { other: "any other clock".into(), by: f64::MAX });
    };
    let against = |(other, pace): (String, Option<Pace>)| {
        let Some(pace) = pace else { return Dispute { other, by: -1.0 } };
        let by = measures.per_ns / pace.per_ns - 1.0;
        // A difference within the errors of the readings is no dispute.
        let sure = (by.abs() - measures.error - pace.error).max(0.0);
        Dispute { other, by: sure.copysign(by) }
    };
    others.map(against).max_by(|a, b| a.distance().total_cmp(&b.distance()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(others: &[(&str, f64, f64)]) -> Option<Dispute> {
        let pace = |per_ns, error| Some(Pace { per_ns, error });
        let others = others.iter().map(|(name, per_ns, error)| ((*name).to_owned(), pace(*per_ns, *error)));
        largest_dispute(pace(2.5, 1e-5), others)
    }

    #[test]
    fn the_clock_that_differs_most_is_named_whether_fast_or_slow() {
        let fast = found(&[("slewed", 2.501, 0.0), ("ten times", 0.25, 0.0)]).expect("a dispute");
        assert_eq!(fast.other, "ten times");
        assert!((fast.by - 9.0).abs() < 1e-3 && (fast.distance() - 9.0).abs() < 1e-3, "{fast:?}");
        let slow = found(&[("a tenth", 25.0, 0.0)]).expect("a dispute");
        assert!((slow.by + 0.9).abs() < 1e-3 && (slow.distance() - 9.0).abs() < 1e-2, "{slow:?}");
        assert!(fast.to_string().contains("10.000 s pass by ten times"), "{fast}");
    }

    #[test]
    fn a_difference_within_the_error_of_the_readings_is_no_dispute() {
        assert!(found(&[("coarse", 2.6, 0.05)]).expect("compared").distance() < MARKED_DIFFERENCE);
        assert!(found(&[("exact", 2.6, 0.0)]).expect("compared").distance() > MARKED_DIFFERENCE);
    }

    #[test]
    fn a_clock_that_stands_still_is_a_dispute() {
        let moving = Some(Pace { per_ns: 2.5, error: 0.0 });
        let still = largest_dispute(moving, std::iter::once(("still".to_owned(), None))).expect("a dispute");
        assert!(still.distance() > REFUSED_DIFFERENCE);
        let none = largest_dispute(None, std::iter::once(("other".to_owned(), moving))).expect("a dispute");
        assert!(none.distance() > REFUSED_DIFFERENCE);
    }

    #[test]
    fn the_clocks_of_this_machine_agree_and_are_compared_quickly() {
        let begun = std::time::Instant::now();
        let mut quickest = Duration::MAX;
        for _ in 0..5 {
            let begun = std::time::Instant::now();
            assert_eq!(check_clocks().expect("they agree"), None);
            quickest = quickest.min(begun.elapsed());
        }
        // On a busy machine one of five attempts is undisturbed.
        if kernel_step_ns() < 1_000 {
            assert!(quickest < Duration::from_millis(10), "{quickest:?}, {:?} in all", begun.elapsed());
        }
    }
}

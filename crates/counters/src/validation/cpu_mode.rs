//! Tests all functions of CPU time with a load that is in one mode only. An error of 1 % fails these rows of C1.
//!
//! A kernel without exact accounting divides a process's time by what its tick finds, so that a mixed load leaves the
//! division to chance. A load in one mode does not: it never enters the kernel, or hardly ever leaves it. Its user time, or
//! its kernel time, is its CPU time, which its clock measures in nanoseconds by another path in the kernel. Time that other
//! tasks take from the load is not in its clock either.
//!
//! The remaining errors are known. The step of 10 ms at either end of the window is 0.25 % of the window. A tick that finds
//! the load inside of an interrupt counts as kernel time, so user time may lack the time that the CPU spent in interrupts.
//!
//! Also tests user and kernel time separately, with a load whose split is known: rows of C1 and C2.
//!
//! Kernels without exact accounting divide a process's time by what the tick finds it doing, in some hundred samples per
//! second. The tolerance is wide on purpose: some ten standard deviations of the share, for that number of samples at 250 per
//! second. A reader that confuses the two kinds of time, or reports all time as one kind, is off by more.

use super::cpu_load::{Load, Mode};
use super::finding::{Finding, mean_and_half_width};
use super::{Functions, Setting};
use crate::{Fault, Percent, Process, Processors, Reading, time_shares};
use std::time::{Duration, Instant};
use syscost_platform::cpu;
use syscost_platform::error::Result;

/// A window of 400 steps of 10 ms.
const WINDOW: Duration = Duration::from_secs(4);
const SLICE: Duration = Duration::from_millis(100);
/// The time after which a load has begun. Its start is kernel time, and would enter the kernel's division as a share.
const SETTLING: Duration = Duration::from_secs(1);
/// The tolerance, percent of a CPU.
const TOLERANCE: f64 = 0.5;
/// The smallest share of the CPU, percent, with which a load can show an error of 1 %.
const LEAST: f64 = 80.0;

/// The readings of a load and its CPU over the same time, percent.
#[derive(Clone, Copy, Debug)]
struct Seen {
    total: f64,
    user: f64,
    kernel: f64,
    cpu: f64,
    /// The load's share by its CPU clock.
    truth: f64,
    /// The share of the CPU in interrupts.
    interrupts: f64,
}

/// Runs the load in user space and then the one in the kernel. Returns fewer rows if a signal interrupts it.
pub(super) fn run(setting: &Setting) -> Result<Vec<Finding>> {
    let mut findings = Vec::new();
    for mode in [Mode::User, Mode::Kernel] {
        let Some(seen) = watch_load(mode, setting)? else { break };
        findings.extend(seen.findings(mode));
    }
    Ok(findings)
}

fn watch_load(mode: Mode, setting: &Setting) -> Result<Option<Seen>> {
    let claimed = cpu::claim_cpu();
    let cpu = claimed.as_ref().map_or_else(cpu::current_cpu, |claimed| claimed.cpu);
    let _aside = cpu::Aside::keep_off(cpu)?;
    let load = Load::in_one_mode(mode, cpu)?;
    std::thread::sleep(SETTLING);
    let pid = load.pid().as_raw();
    let (process, mut processors) = (Process::open(pid)?, Processors::open()?);
    let mut both =
        || -> std::result::Result<_, Fault> { Ok((process.cpu_time()?, processors.time_spent(Some(cpu))?)) };
    let before = both()?;
    let Some(read) = read_all_shares(pid, cpu, &setting.functions, setting.tick) else { return Ok(None) };
    let after = both()?;
    let [total, user, kernel, busy] = read?.map(|share| share.value);
    let truth = cpu_clock_share(&before.0, &after.0);
    let its = time_shares(&before.1, &after.1)?;
    let interrupts = its.interrupts.value + its.soft_interrupts.value;
    Ok(Some(Seen { total, user, kernel, cpu: busy, truth, interrupts }))
}

/// The share of the elapsed time by the CPU clock, percent.
fn cpu_clock_share(before: &Reading<Duration>, after: &Reading<Duration>) -> f64 {
    let used = after.value.saturating_sub(before.value).as_secs_f64();
    100.0 * used / after.at.saturating_duration_since(before.at).as_secs_f64().max(1e-9)
}

/// Reads all four shares over the same time: total, user time, kernel time, and the CPU's. `None` if it was interrupted.
fn read_all_shares(
    pid: i32,
    cpu: usize,
    by: &Functions,
    tick: &dyn Fn() -> bool,
) -> Option<std::result::Result<[Percent; 4], Fault>> {
    let Functions { percent_processor_time, cpu_time_total, cpu_time_user, cpu_time_kernel, .. } = *by;
    std::thread::scope(|scope| {
        let of_process = [cpu_time_total, cpu_time_user, cpu_time_kernel];
        let shares = of_process.map(|function| scope.spawn(move || function(pid, WINDOW)));
        let of_cpu = scope.spawn(move || percent_processor_time(Some(cpu), WINDOW));
        let begun = Instant::now();
        let mut goes_on = true;
        while goes_on && begun.elapsed() < WINDOW {
            std::thread::sleep(SLICE);
            goes_on = tick();
        }
        let read = shares.into_iter().chain([of_cpu]).map(|thread| match thread.join() {
            Ok(read) => read,
            Err(panic) => std::panic::resume_unwind(panic),
        });
        let read: std::result::Result<Vec<Percent>, Fault> = read.collect();
        // Four threads return four shares.
        goes_on.then(|| read.map(|read| [read[0], read[1], read[2], read[3]]))
    })
}

impl Seen {
    fn findings(&self, mode: Mode) -> Vec<Finding> {
        let (name, user, kernel) = match mode {
            Mode::User => ("full, in user space", self.truth, 0.0),
            Mode::Kernel => ("full, in the kernel", 0.0, self.truth),
        };
        // The CPU is never idle while a load wants all of it.
        let rows = [
            ("process", self.truth, self.total),
            ("user time", user, self.user),
            ("kernel time", kernel, self.kernel),
            ("CPU", 100.0, self.cpu),
        ];
        rows.map(|(what, expected, found)| {
            let row = Finding::share_near(&format!("{name}, {what}"), "", expected, found, TOLERANCE);
            let (crowd, off) = (100.0 - self.truth, (expected - found).abs());
            // A tick in an interrupt counts as kernel time.
            let is_moved = mode == Mode::User && (found < expected) == (what == "user time");
            if self.truth < LEAST {
                row.excuse_failure(format!(
                    "others had {crowd:.1} % of this CPU: try again when it is at rest"
                ))
            } else if what.ends_with("time") && is_moved && off <= TOLERANCE + self.interrupts {
                row.excuse_failure(format!("interrupts had {:.1} % of this CPU", self.interrupts))
            } else {
                row
            }
        })
        .into()
    }
}

/// A window of several steps of 10 ms, in which the kernel counts these times.
const SPLIT_WINDOW: Duration = Duration::from_millis(500);
/// The number of windows of a usual experiment for each kind of time, and the lowest number that allows a verdict.
const SPLIT_WINDOWS: u32 = 10;
const FEWEST: usize = 5;
/// The tolerance, percent of a CPU.
const SPLIT_TOLERANCE: f64 = 9.0;

/// Shares of a CPU in the two modes, percent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Split {
    pub(super) user: f64,
    pub(super) kernel: f64,
}

/// The readings of a process, window by window.
#[derive(Debug, Default)]
pub(super) struct Modes {
    user: Vec<f64>,
    kernel: Vec<f64>,
}

impl Modes {
    /// Reads both kinds of time in turn; `None` if it was interrupted.
    pub(super) fn read(pid: i32, setting: &Setting) -> Result<Option<Self>> {
        let Functions { cpu_time_user, cpu_time_kernel, .. } = setting.functions;
        let mut modes = Self::default();
        for _ in 0..SPLIT_WINDOWS * setting.samples / 200 + 1 {
            let value = |percent: Percent| percent.value;
            modes.user.push(value(cpu_time_user(pid, SPLIT_WINDOW)?));
            modes.kernel.push(value(cpu_time_kernel(pid, SPLIT_WINDOW)?));
            if !(setting.tick)() {
                return Ok(None);
            }
        }
        Ok(Some(modes))
    }

    /// Compares the measured times with the split; `others` is other processes' share of the CPU, percent.
    pub(super) fn findings(&self, name: &str, split: Split, others: f64) -> Vec<Finding> {
        let rows = [("user", "", split.user, &self.user), ("kernel", "", split.kernel, &self.kernel)];
        rows.map(|(mode, published, expected, samples)| {
            let row = Finding::mean_share(
                &format!("{name}, {mode} time"),
                published,
                expected,
                samples,
                SPLIT_TOLERANCE,
            );
            if samples.len() < FEWEST {
                return row.without_verdict(format!(
                    "{} windows are too few: give it more --samples",
                    samples.len()
                ));
            }
            let short = expected - mean_and_half_width(samples).0;
            // A load may lack the time that other processes took.
            if others > SPLIT_TOLERANCE && (0.0..=others + SPLIT_TOLERANCE).contains(&short) {
                row.excuse_failure(format!(
                    "others had {others:.1} % of this CPU: try again when it is at rest"
                ))
            } else {
                row
            }
        })
        .into()
    }
}

#[cfg(test)]
mod tests {
    use super::super::Verdict;
    use super::super::tests::LIES;
    use super::*;
    use crate::Fault;

    /// The rows that fail if a reading of a load is changed by `bend`.
    fn failing(mode: Mode, bend: impl Fn(&mut Seen)) -> Vec<usize> {
        let (user, kernel) = if mode == Mode::User { (99.0, 0.0) } else { (0.25, 98.8) };
        let mut seen = Seen { total: 99.1, user, kernel, cpu: 100.0, truth: 99.1, interrupts: 0.0 };
        bend(&mut seen);
        let rows = seen.findings(mode).into_iter().enumerate();
        rows.filter(|(_, row)| row.verdict == Verdict::Failed).map(|(at, _)| at).collect()
    }

    #[test]
    fn an_error_of_one_percent_fails_its_row_and_no_other() {
        for mode in [Mode::User, Mode::Kernel] {
            assert!(failing(mode, |_| ()).is_empty());
            assert_eq!(failing(mode, |seen| seen.total *= 1.01), [0]);
            assert_eq!(failing(mode, |seen| seen.cpu *= 0.99), [3]);
        }
        assert_eq!(failing(Mode::User, |seen| seen.user *= 1.01), [1]);
        assert_eq!(failing(Mode::User, |seen| seen.user *= 0.99), [1]);
        assert_eq!(failing(Mode::Kernel, |seen| seen.kernel *= 1.015), [2]);
        assert_eq!(failing(Mode::User, |seen| std::mem::swap(&mut seen.user, &mut seen.kernel)), [1, 2]);
        assert!(failing(Mode::User, |seen| (seen.truth, seen.user) = (70.0, 60.0)).is_empty(), "a crowd");
    }

    /// Wrong readers read a real load. Each must fail, unless other processes use the machine so much that there is no
    /// verdict.
    #[test]
    fn wrong_readers_of_a_real_load_fail() {
        let place = tempfile::tempdir().expect("made");
        for lie in LIES.iter().filter(|lie| lie.name.ends_with("user-less") || lie.name == "cpu-time-user") {
            let functions = lie.bent_functions();
            let setting = Setting {
                samples: 10,
                interval: Duration::ZERO,
                scratch: place.path(),
                functions,
                tick: &|| true,
            };
            let seen = watch_load(Mode::User, &setting).expect("a load").expect("not interrupted");
            let verdict = seen.findings(Mode::User)[1].verdict.clone();
            assert!(matches!(verdict, Verdict::Failed | Verdict::Inconclusive(_)), "{}: {seen:?}", lie.name);
        }
    }

    const SPLIT: Split = Split { user: 40.0, kernel: 10.0 };

    fn share(value: f64) -> std::result::Result<Percent, Fault> {
        Ok(Percent { value, low: value, high: value, window: WINDOW })
    }

    /// A load with that split, and readers that do not wait.
    const SYNTHETIC: Functions = Functions {
        cpu_time_user: |_, _| share(40.3),
        cpu_time_kernel: |_, _| share(9.8),
        ..Functions::OURS
    };

    fn verdicts(functions: Functions, samples: u32, others: f64) -> Vec<Verdict> {
        let place = tempfile::tempdir().expect("made");
        let setting =
            Setting { samples, interval: Duration::ZERO, scratch: place.path(), functions, tick: &|| true };
        let modes = Modes::read(1, &setting).expect("read").expect("not interrupted");
        modes.findings("it", SPLIT, others).into_iter().map(|row| row.verdict).collect()
    }

    #[test]
    fn a_reader_that_swaps_user_and_kernel_time_fails_both_rows() {
        assert_eq!(verdicts(SYNTHETIC, 200, 0.0), [Verdict::Passed, Verdict::Passed]);
        let swapped = Functions {
            cpu_time_user: SYNTHETIC.cpu_time_kernel,
            cpu_time_kernel: SYNTHETIC.cpu_time_user,
            ..SYNTHETIC
        };
        assert_eq!(verdicts(swapped, 200, 0.0), [Verdict::Failed, Verdict::Failed]);
        // Other processes can have taken time from the load, but cannot have added any.
        assert!(matches!(verdicts(swapped, 200, 30.0)[..], [Verdict::Inconclusive(_), Verdict::Failed]));
    }

    #[test]
    fn all_time_as_user_time_fails_and_few_windows_give_no_verdict() {
        let all =
            Functions { cpu_time_user: |_, _| share(50.0), cpu_time_kernel: |_, _| share(0.0), ..SYNTHETIC };
        assert_eq!(verdicts(all, 200, 0.0), [Verdict::Failed, Verdict::Failed]);
        assert!(matches!(verdicts(all, 10, 0.0)[..], [Verdict::NotJudged(_), Verdict::NotJudged(_)]));
    }
}

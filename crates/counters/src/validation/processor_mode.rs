//! User and kernel time apart, of a load whose split is known: rows of C1 and C2.
//!
//! Kernels without exact accounting divide a process's time by what the tick finds it doing, some hundred looks a
//! second. The tolerance is meant to be wide, some ten standard deviations of the share of that number of looks at
//! 250 a second: a reader that takes one kind of time for the other, or all time for one kind, is off by more.

use super::finding::{Finding, mean_and_half_width};
use super::{Functions, Setting};
use crate::Percent;
use std::time::Duration;
use syscost_platform::error::Result;

/// Several steps of 10 ms, in which the kernel tells these times.
const WINDOW: Duration = Duration::from_millis(500);
/// Windows of a usual experiment, for each kind of time, and the fewest that say something.
const WINDOWS: u32 = 10;
const FEWEST: usize = 5;
/// Percent of a CPU.
const TOLERANCE: f64 = 9.0;

/// Shares of a CPU in the two modes, percent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Split {
    pub(super) user: f64,
    pub(super) kernel: f64,
}

/// What was read of a process, window by window.
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
        for _ in 0..WINDOWS * setting.samples / 200 + 1 {
            let value = |percent: Percent| percent.value;
            modes.user.push(value(cpu_time_user(pid, WINDOW)?));
            modes.kernel.push(value(cpu_time_kernel(pid, WINDOW)?));
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
            let row =
                Finding::mean_share(&format!("{name}, {mode} time"), published, expected, samples, TOLERANCE);
            if samples.len() < FEWEST {
                return row.without_verdict(format!(
                    "{} windows are too few: give it more --samples",
                    samples.len()
                ));
            }
            let short = expected - mean_and_half_width(samples).0;
            // What others take, a load may lack.
            if others > TOLERANCE && (0.0..=others + TOLERANCE).contains(&short) {
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
    use super::*;
    use crate::Fault;

    const SPLIT: Split = Split { user: 40.0, kernel: 10.0 };

    fn share(value: f64) -> std::result::Result<Percent, Fault> {
        Ok(Percent { value, low: value, high: value, window: WINDOW })
    }

    /// A load of that split, by readers that do not wait.
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
    fn a_reader_that_takes_one_time_for_the_other_fails_both_rows() {
        assert_eq!(verdicts(SYNTHETIC, 200, 0.0), [Verdict::Passed, Verdict::Passed]);
        let swapped = Functions {
            cpu_time_user: SYNTHETIC.cpu_time_kernel,
            cpu_time_kernel: SYNTHETIC.cpu_time_user,
            ..SYNTHETIC
        };
        assert_eq!(verdicts(swapped, 200, 0.0), [Verdict::Failed, Verdict::Failed]);
        // Others can have taken time, and have given none.
        assert!(matches!(verdicts(swapped, 200, 30.0)[..], [Verdict::Inconclusive(_), Verdict::Failed]));
    }

    #[test]
    fn all_time_as_user_time_fails_and_few_windows_say_nothing() {
        let all =
            Functions { cpu_time_user: |_, _| share(50.0), cpu_time_kernel: |_, _| share(0.0), ..SYNTHETIC };
        assert_eq!(verdicts(all, 200, 0.0), [Verdict::Failed, Verdict::Failed]);
        assert!(matches!(verdicts(all, 10, 0.0)[..], [Verdict::NotJudged(_), Verdict::NotJudged(_)]));
    }
}

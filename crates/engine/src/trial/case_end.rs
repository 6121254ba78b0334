//! How a case ends without a number, and which of these ends deserve another attempt.

use crate::case::{Case, Place};
use crate::clock::Clock;
use crate::error::Error;
use crate::platform::kernel_files::KernelFiles;
use crate::platform::proc;
use crate::platform::ptrace::{self, Call};
use crate::platform::time::clock_source;
use nix::errno::Errno;
use serde::{Deserialize, Serialize};

/// Why a case ended without a number, in one process of a run or on a side of a pair. It is sent to the driver as a kind and a
/// sentence, `{"how": "failed", "sentence": "…"}`. These names must not change, because a side may be an older build.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "how", content = "sentence", rename_all = "kebab-case")]
pub enum CaseEnd {
    /// A need is not met.
    Skipped(String),
    /// A claim does not hold, or the operation was refused.
    Failed(String),
    /// The process ended, hung or sent no valid answer in the middle of the case, or the case's file system or device failed.
    /// That disproves no claim, and the results of other executions stay valid.
    CutShort(String),
    /// A claim about time, or about a count that others can change, does not hold in these batches. A busy machine can cause that
    /// in an honest case, so the case fails only if every execution contradicts the claim.
    Contradicted(String),
    /// Other tasks had the CPU, or its speed changed between two parts of the case. Another attempt may succeed.
    Disturbed(String),
    /// A signal ends the whole run.
    Interrupted,
}

impl From<Error> for CaseEnd {
    fn from(error: Error) -> Self {
        Self::from_error(error, false)
    }
}

impl CaseEnd {
    /// The reason.
    pub fn into_sentence(self) -> String {
        match self {
            Self::Skipped(sentence)
            | Self::Failed(sentence)
            | Self::CutShort(sentence)
            | Self::Contradicted(sentence)
            | Self::Disturbed(sentence) => sentence,
            Self::Interrupted => "a signal ended it".into(),
        }
    }

    /// The same end, but disturbed instead of failed or contradicted if this process is traced: a tracer such as proot answers
    /// system calls in the kernel's place, and stops the process at each.
    pub fn excuse_traced(self) -> Self {
        let status = KernelFiles::live().read_text("proc/self/status").unwrap_or_default();
        self.excuse_by(proc::tracer(&status))
    }

    fn excuse_by(self, tracer: Option<u32>) -> Self {
        match (self, tracer) {
            (Self::Failed(why) | Self::Contradicted(why), Some(tracer)) => Self::Disturbed(format!(
                "{why}; process {tracer} traces this one, and may change what its calls do: run it without strace, gdb or proot"
            )),
            (end, _) => end,
        }
    }

    /// The end of a case whose set-up failed: skipped if the machine lacks something, else failed.
    pub(super) fn from_set_up_error(error: Error) -> Self {
        Self::from_error(error, true)
    }

    /// Converts an error. A refusal by the environment is an unmet need at any time, and never disproves a claim.
    fn from_error(error: Error, setting_up: bool) -> Self {
        if let Some(sentence) = error.unmet_need(setting_up) {
            return Self::Skipped(sentence);
        }
        let words = if setting_up { "could not be set up: " } else { "" };
        match error {
            Error::Disturbed(sentence) => Self::Disturbed(sentence),
            Error::Contradicted(sentence) => Self::Contradicted(format!("{words}{sentence}")),
            error if error.is_device_failure() => Self::CutShort(format!("{words}{error}")),
            error => Self::Failed(format!("{words}{error}")),
        }
    }
}

/// Most attempts at a case that is disturbed or contradicted.
const ATTEMPTS: u32 = 4;

/// Repeats an attempt while it ends as [`CaseEnd::Disturbed`] or [`CaseEnd::Contradicted`], up to four times, and returns the
/// last result. Under a tracer no claim is disproved.
///
/// # Errors
/// The end of the last attempt.
pub fn repeat_while_disturbed<T>(mut attempt: impl FnMut() -> Result<T, CaseEnd>) -> Result<T, CaseEnd> {
    let mut outcome = attempt();
    for _ in 1..ATTEMPTS {
        if !matches!(outcome, Err(CaseEnd::Disturbed(_) | CaseEnd::Contradicted(_))) {
            break;
        }
        outcome = attempt();
    }
    outcome.map_err(CaseEnd::excuse_traced)
}

/// Makes one attempt, which is disturbed if the kernel replaced its clock source meanwhile: readings of its clocks may then
/// begin or cease to enter the kernel, and half of the samples have another cost.
///
/// # Errors
/// The end of the attempt, or [`CaseEnd::Disturbed`].
pub fn under_one_clock_source<T>(attempt: impl FnOnce() -> Result<T, CaseEnd>) -> Result<T, CaseEnd> {
    let files = KernelFiles::live();
    let before = clock_source(&files);
    let ended = attempt();
    disturbed_if_replaced(before, ended, clock_source(&files))
}

fn disturbed_if_replaced<T>(
    before: Option<String>,
    ended: Result<T, CaseEnd>,
    after: Option<String>,
) -> Result<T, CaseEnd> {
    match (before, after, &ended) {
        (Some(before), Some(after), Ok(_) | Err(CaseEnd::Failed(_) | CaseEnd::Contradicted(_)))
            if before != after =>
        {
            Err(CaseEnd::Disturbed(format!(
                "the kernel replaced its clock source {before} by {after} in the middle of the case (why: `dmesg | grep clocksource`)"
            )))
        }
        _ => ended,
    }
}

// A further check before a case fails: whether a sandbox refuses a system call whose result the case does not check.

/// Most system calls that are examined, of the set-up and of one iteration.
const MOST_CALLS: usize = 200_000;

/// Whether a filter of system calls is in force on this process (proc_pid_status(5)).
fn is_seccomp_filtered() -> bool {
    let status = KernelFiles::live().read_text("/proc/self/status").unwrap_or_default();
    status.lines().any(|line| line.strip_prefix("Seccomp:").is_some_and(|mode| mode.trim() == "2"))
}

/// A sentence on a call that a filter refuses to this case; `None` without a filter, or if every call is granted.
pub fn refused_call_sentence(case: &Case, place: &Place, clock: &Clock) -> Option<String> {
    if !is_seccomp_filtered() {
        return None;
    }
    let body = || {
        if let Ok(mut subject) = (case.set_up)(place) {
            let _ = subject.run(1, clock);
        }
    };
    let seen = ptrace::list_syscalls(body, MOST_CALLS, |_| true).ok()?;
    first_refused_call(&seen.entries).map(|(call, errno)| {
        format!(
            "the sandbox refuses a system call that the case makes (number {}: {}): allow it in its filter of system calls",
            call.number,
            errno.desc()
        )
    })
}

fn first_refused_call(calls: &[Call]) -> Option<(Call, Errno)> {
    let refusals = [Errno::EPERM, Errno::ENOSYS];
    let refused = |call: &Call| refusals.into_iter().find(|errno| call.answer == -i64::from(*errno as i32));
    calls.iter().find_map(|call| refused(call).map(|errno| (*call, errno)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn under_a_tracer_no_claim_is_disproved() {
        let failed = || CaseEnd::Failed("no such file".into());
        assert_eq!(failed().excuse_by(None), failed());
        assert!(
            matches!(failed().excuse_by(Some(7)), CaseEnd::Disturbed(why) if why.starts_with("no such file; process 7 traces"))
        );
        assert_eq!(CaseEnd::Skipped("no".into()).excuse_by(Some(7)), CaseEnd::Skipped("no".into()));
    }

    #[test]
    fn an_attempt_under_two_clock_sources_is_disturbed() {
        let ended = |before: &str, ended: Result<u8, CaseEnd>, after: &str| {
            let source = |name: &str| (!name.is_empty()).then(|| name.to_owned());
            disturbed_if_replaced(source(before), ended, source(after))
        };
        let failed = || Err(CaseEnd::Failed("the kernel was entered".into()));
        for measured in [Ok(1), failed(), Err(CaseEnd::Contradicted("flat".into()))] {
            let Err(CaseEnd::Disturbed(sentence)) = ended("tsc", measured, "hpet") else {
                panic!("believed")
            };
            assert!(sentence.contains("clock source tsc by hpet"), "{sentence}");
        }
        assert_eq!(ended("tsc", failed(), "tsc"), failed());
        assert_eq!(ended("", Ok(1), "tsc"), Ok(1), "without /sys nothing is known");
        assert_eq!(ended("tsc", Err(CaseEnd::Interrupted), "hpet"), Err(CaseEnd::Interrupted));
    }

    #[test]
    fn a_contradiction_error_contradicts_the_case_and_does_not_fail_it() {
        let end = |error: Error| CaseEnd::from(error);
        assert_eq!(end(Error::Contradicted("3 of 4".into())), CaseEnd::Contradicted("3 of 4".into()));
        assert_eq!(end(Error::Disproved("3 of 4".into())), CaseEnd::Failed("3 of 4".into()));
    }

    #[test]
    fn an_end_is_sent_by_the_names_that_older_sides_use() {
        let end = CaseEnd::Failed("why".into());
        let sent = serde_json::to_string(&end).expect("JSON");
        assert_eq!(sent, r#"{"how":"failed","sentence":"why"}"#);
        for end in [end, CaseEnd::Interrupted] {
            let sent = serde_json::to_string(&end).expect("JSON");
            assert_eq!(serde_json::from_str::<CaseEnd>(&sent).expect("its own text"), end);
        }
    }

    #[test]
    fn only_disturbed_or_contradicted_attempts_are_repeated_up_to_four_times() {
        let ends = |end: CaseEnd| {
            let mut attempts = 0;
            let ended = repeat_while_disturbed(|| {
                attempts += 1;
                Err::<(), _>(end.clone())
            });
            assert_eq!(ended, Err(end));
            attempts
        };
        assert_eq!(ends(CaseEnd::Failed("no".into())), 1);
        assert_eq!(ends(CaseEnd::Disturbed("busy".into())), 4);
        assert_eq!(ends(CaseEnd::Contradicted("flat".into())), 4);
    }

    #[test]
    fn a_call_that_returns_eperm_is_refused_and_one_that_returns_ebadf_is_not() {
        let call = |number, answer| Call { number, argument: 0, answer };
        let bad = -i64::from(libc::EBADF);
        assert_eq!(first_refused_call(&[call(1, 5), call(2, bad)]), None);
        let refused = first_refused_call(&[call(1, 5), call(28, -i64::from(libc::EPERM))]);
        assert_eq!(refused.map(|(call, errno)| (call.number, errno)), Some((28, Errno::EPERM)));
    }
}

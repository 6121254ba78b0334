//! A second look before a case is condemned: whether a sandbox refuses a system call that the case makes and does not check.

use crate::case::{Case, Place};
use crate::clock::Clock;
use crate::platform::kernel_files::KernelFiles;
use crate::platform::ptrace::{self, Call};
use nix::errno::Errno;

/// Calls that are looked at, at most: of the set-up and of one iteration.
const MOST: usize = 200_000;

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
    let seen = ptrace::list_syscalls(body, MOST, |_| true).ok()?;
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
    fn only_what_a_filter_answers_is_a_refused_call() {
        let call = |number, answer| Call { number, argument: 0, answer };
        let bad = -i64::from(libc::EBADF);
        assert_eq!(first_refused_call(&[call(1, 5), call(2, bad)]), None);
        let refused = first_refused_call(&[call(1, 5), call(28, -i64::from(libc::EPERM))]);
        assert_eq!(refused.map(|(call, errno)| (call.number, errno)), Some((28, Errno::EPERM)));
    }
}

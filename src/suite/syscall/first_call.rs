//! The only system call of a process: a fresh child makes the call and times it itself.

use crate::kit::contract::*;
use crate::kit::kernel_call::check_granted;
use crate::kit::start_order::tasks_were_created;
use crate::kit::task;
use crate::platform::child::describe_raw_status;
use crate::platform::shared::Words;
use crate::platform::{ptrace, syscall};
use std::sync::atomic::Ordering::SeqCst;

/// The claim that is checked on every child.
const ONCE: &str = "every child called getppid once, and was answered the number of this process";

// Indices into the page that a child shares with its parent.
/// Ticks of the call.
const TICKS: usize = 0;
/// The number that the kernel returned.
const ANSWER: usize = 1;
/// Calls that the child has made.
const CALLS: usize = 2;

/// The case of `getppid` in a process that calls it only once.
pub(super) fn first_call_case() -> Case {
    let start = set_up(|_| Ok(FirstCall { page: Words::new()?, is_traced: false, evidence: None }));
    let why = "entry and exit, a field of the task, and some of their code and data from farther caches";
    Case::new("getppid/once", "getppid, the only call of a fresh process", start)
        .one_by_one()
        .own_tasks(OwnTasks::SameCpu)
        .claim(Claim::Checked(ONCE))
        .claim(Claim::Counted(tasks_were_created))
        .predict(700.0, 700.0, why)
}

/// The subject: children, each of which makes one call.
struct FirstCall {
    page: Words,
    /// Whether tracing a child was tried.
    is_traced: bool,
    /// The sentence on the calls of the traced child, if one was traced.
    evidence: Option<String>,
}

impl FirstCall {
    /// The work of a child: times one getppid, and writes the ticks, the answer and the count into the page.
    #[inline(never)]
    fn call_once(page: &Words, clock: &Clock) {
        let start = clock.start();
        let answer = syscall::getppid();
        let ticks = clock.stop() - start;
        page[TICKS].value.store(u32::try_from(ticks.0).unwrap_or(u32::MAX), SeqCst);
        page[ANSWER].value.store(answer as u32, SeqCst);
        page[CALLS].value.fetch_add(1, SeqCst);
    }

    /// Traces a child that does the same as the others, and counts its calls. `None` if tracing is not possible.
    ///
    /// # Errors
    /// [`Error::Disproved`] unless there is exactly one call.
    fn trace_child(&self, clock: &Clock) -> Result<Option<String>> {
        let is_getppid = |call: &ptrace::Call| call.number == libc::SYS_getppid;
        let seen = ptrace::list_syscalls(|| Self::call_once(&self.page, clock), usize::MAX, is_getppid);
        match seen.map(|seen| seen.entries.len()) {
            Ok(1) => Ok(Some("a traced child called getppid once".into())),
            Ok(times) => {
                Err(Error::Disproved(format!("a traced child called getppid {times} times, and not once")))
            }
            // Each child counts its call itself, too.
            Err(_) => Ok(None),
        }
    }

    /// Starts a child, and returns the time of its call.
    fn time_in_child(&self, clock: &Clock) -> Result<Ticks> {
        self.page[CALLS].value.store(0, SeqCst);
        let child = task::fork_do_exit(|| Self::call_once(&self.page, clock));
        task::check_created("fork", child)?;
        let mut status = -1;
        check_granted("waitpid", task::reap(child as i32, &mut status))?;
        if let Some(how) = describe_raw_status(status) {
            return Err(Error::Child(how));
        }
        let [ticks, answer, calls] = [TICKS, ANSWER, CALLS].map(|at| self.page[at].value.load(SeqCst));
        check_granted("getppid", i64::from(answer as i32))?;
        if (answer, calls) != (std::process::id(), 1) {
            return Err(Error::Disproved(format!(
                "a child called getppid {calls} times and was answered {answer}, and this process is {}",
                std::process::id()
            )));
        }
        Ok(Ticks(u64::from(ticks)))
    }
}

impl Subject for FirstCall {
    fn run(&mut self, iterations: u64, clock: &Clock) -> Result<Ticks> {
        if !std::mem::replace(&mut self.is_traced, true) {
            self.evidence = self.trace_child(clock)?;
        }
        (0..iterations).map(|_| Ok(clock.record_bracket(self.time_in_child(clock)?))).sum()
    }

    fn report(&self) -> Report {
        Report { evidence: self.evidence.iter().cloned().collect(), ..Report::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn first_call() -> FirstCall {
        FirstCall { page: Words::new().expect("mapped"), is_traced: false, evidence: None }
    }

    #[test]
    fn every_child_calls_once_and_is_timed() {
        let mut subject = first_call();
        let clock = Clock::start_up();
        assert!(subject.run(20, &clock).expect("called").0 > 0);
        assert_eq!(subject.report().evidence, ["a traced child called getppid once"]);
    }

    #[test]
    fn the_time_of_each_child_is_kept_by_itself() {
        let clock = Clock::start_up();
        clock.keep_single_times();
        let sum = first_call().run(5, &clock).expect("called");
        let each = clock.take_single_times();
        assert_eq!(each.len(), 5);
        assert!((each.iter().sum::<f64>() / clock.nanoseconds(sum).0 - 1.0).abs() < 1e-6, "{each:?}");
    }
}

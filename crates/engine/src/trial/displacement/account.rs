//! The CPU time of a case by the kernel's accounts: of the measuring process, of the children that it has waited for,
//! and of its partners on the same CPU. The time of a partner on another CPU is not displaced here.

use crate::clock::Charge;
use crate::error::Result;
use crate::platform::partner::{Role, Task};
use crate::platform::proc;
use crate::platform::{process, time};
use std::fs::File;
use std::os::unix::fs::FileExt;

/// The accounts of a case: open files.
pub(super) struct Account {
    /// Partners on the measuring CPU that are processes of their own.
    beside: Vec<File>,
    /// Threads of this process on other CPUs.
    elsewhere: Vec<File>,
    buffer: [u8; 256],
}

impl Account {
    /// A partner without an account in `/proc` is not counted.
    pub(super) fn open(partners: &[Task], here: usize) -> Self {
        let own = nix::unistd::getpid();
        let open =
            |task: &&Task| File::open(format!("/proc/{}/task/{}/schedstat", task.process, task.thread)).ok();
        let answering = partners.iter().filter(|task| task.role == Role::Answers);
        let beside = answering.filter(|task| task.cpu == here && task.process != own);
        let elsewhere = partners.iter().filter(|task| task.cpu != here && task.process == own);
        Self {
            beside: beside.filter_map(|task| open(&task)).collect(),
            elsewhere: elsewhere.filter_map(|task| open(&task)).collect(),
            buffer: [0; 256],
        }
    }

    /// The sum of all accounts so far.
    ///
    /// # Errors
    /// getrusage(2) fails.
    pub(super) fn total_charge(&mut self) -> Result<Charge> {
        let partners = self.sum_run_time(true) - self.sum_run_time(false);
        let usages = process::process_usage()?;
        let micros = |t: nix::sys::time::TimeVal| t.tv_sec() as f64 * 1e6 + t.tv_usec() as f64;
        let [own, children] = usages.map(|u| 1e3 * (micros(u.user_time()) + micros(u.system_time())));
        let waits = usages.map(|u| u.voluntary_context_switches() as f64).iter().sum();
        let clock = time::clock_gettime_ns(libc::CLOCK_PROCESS_CPUTIME_ID) as f64;
        Ok(Charge { clock: clock + children + partners, rusage: own + children + partners, waits })
    }

    fn sum_run_time(&mut self, beside: bool) -> f64 {
        let buffer = &mut self.buffer;
        let files = if beside { &self.beside } else { &self.elsewhere };
        let read = |file: &File| {
            let length = file.read_at(buffer, 0).ok()?;
            proc::parse_schedstat(std::str::from_utf8(&buffer[..length]).ok()?).map(|read| read.ran_ns as f64)
        };
        files.iter().filter_map(read).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::platform::cpu;
    use crate::platform::partner::{Class, start_spinner};

    #[test]
    fn computation_and_children_are_charged_and_a_spinner_is_not() {
        let here = cpu::allowed_cpus().into_iter().max().expect("a CPU");
        let burner = start_spinner(here, Class::Ordinary).expect("started");
        let mut account = Account::open(&[burner.task()], here);
        assert!(account.beside.is_empty() && account.elsewhere.is_empty());
        let before = account.total_charge().expect("an account");
        crate::platform::arch::multiply_chain(10_000_000);
        std::process::Command::new("true").status().expect("a child");
        let after = account.total_charge().expect("an account");
        assert!(after.clock > before.clock + 1e6 && after.rusage >= before.rusage, "{before:?} {after:?}");
    }
}

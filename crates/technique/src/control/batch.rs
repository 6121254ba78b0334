//! Batch jobs of users, of which a controller may suspend some.

use super::Background;
use syscost_platform::child::Child;
use syscost_platform::cpu;
use syscost_platform::error::Result;

/// Jobs that users submit. The controller sets how many may run: beyond that number jobs are suspended, and no other is
/// accepted.
#[derive(Debug)]
pub struct Batch {
    jobs: Background,
    on: usize,
    allowed: usize,
}

impl Batch {
    /// No jobs yet; at most `allowed` may run, on the CPU `on`.
    pub fn new(on: usize, allowed: usize) -> Self {
        cpu::initial_cpus(); // initialised here: a forked child must not wait for a lock
        Self { jobs: Background::new(Vec::new()), on, allowed }
    }

    /// Starts a job that runs `work` in a process of its own; returns whether it was accepted.
    ///
    /// # Errors
    /// [`Error::Kernel`](crate::Error::Kernel) where the kernel refuses a process.
    pub fn submit(&mut self, work: impl FnOnce()) -> Result<bool> {
        self.jobs.forget_ended();
        if self.jobs.process_count() >= self.allowed {
            return Ok(false);
        }
        let on = self.on;
        self.jobs.add_running(Child::start(move || {
            if cpu::pin_thread(on).is_ok() {
                work();
            }
        })?);
        Ok(true)
    }

    /// Jobs that run.
    pub fn running_count(&self) -> usize {
        self.jobs.running_count()
    }

    /// Lets at most `allowed` jobs run, the oldest first, and suspends the others.
    ///
    /// # Errors
    /// [`Error::Kernel`](crate::Error::Kernel) where a signal is refused.
    pub fn allow(&mut self, allowed: usize) -> Result<()> {
        self.jobs.forget_ended();
        self.allowed = allowed;
        self.jobs.run_first(allowed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};
    use syscost_platform::arch;

    fn compute() {
        loop {
            arch::register_loop(1 << 20);
        }
    }

    #[test]
    fn while_jobs_are_suspended_no_other_is_accepted() {
        let mut batch = Batch::new(cpu::allowed_cpus()[0], 2);
        let accepted = [(); 3].map(|()| batch.submit(compute).expect("a process"));
        assert_eq!((accepted, batch.running_count()), ([true, true, false], 2));
        batch.allow(1).expect("ours");
        assert_eq!((batch.submit(compute).expect("ours"), batch.running_count()), (false, 1));
        batch.allow(3).expect("ours");
        assert_eq!((batch.submit(compute).expect("ours"), batch.running_count()), (true, 3));
    }

    #[test]
    fn a_job_that_has_ended_leaves_its_place() {
        let mut batch = Batch::new(cpu::allowed_cpus()[0], 1);
        assert!(batch.submit(|| ()).expect("a process"));
        let begun = Instant::now();
        while !batch.submit(compute).expect("a process") {
            assert!(begun.elapsed() < Duration::from_secs(20), "its place stays taken");
            std::thread::sleep(Duration::from_millis(1));
        }
        assert_eq!(batch.running_count(), 1);
    }
}

//! Background processes that a controller may suspend, and batch jobs of users, of which it may suspend some.

use nix::sys::signal::{Signal, kill};
use syscost_platform::child::Child;
use syscost_platform::error::{Error, Result};
use syscost_platform::{arch, cpu};

/// Processes of which the first few run and the others are suspended (SIGSTOP, SIGCONT). As children of this process
/// they can be suspended without privileges. They end with this value, or with the thread that started them.
#[derive(Debug)]
pub struct Background {
    processes: Vec<Child>,
    running: usize,
}

impl Background {
    /// Starts `count` processes that compute on the CPU `on`.
    ///
    /// # Errors
    /// [`Error::Kernel`] where the kernel refuses a process.
    pub fn start_computing(count: usize, on: usize) -> Result<Self> {
        cpu::initial_cpus(); // initialised here: a forked child must not wait for a lock
        let start = |_| {
            Child::start(|| {
                if cpu::pin_thread(on).is_ok() {
                    loop {
                        arch::register_loop(1 << 20);
                    }
                }
            })
        };
        Ok(Self::new((0..count).map(start).collect::<Result<_>>()?))
    }

    /// Processes that all run.
    pub(crate) fn new(processes: Vec<Child>) -> Self {
        let running = processes.len();
        Self { processes, running }
    }

    /// Adds a process that runs, before those that are suspended.
    pub(crate) fn add_running(&mut self, process: Child) {
        self.processes.insert(self.running, process);
        self.running += 1;
    }

    /// Removes processes that have ended. One that is suspended cannot end.
    pub(crate) fn forget_ended(&mut self) {
        let before = self.process_count();
        self.processes.retain(|process| !process.has_ended());
        self.running -= before - self.process_count();
    }

    /// All processes.
    pub fn process_count(&self) -> usize {
        self.processes.len()
    }

    /// Processes that run.
    pub fn running_count(&self) -> usize {
        self.running
    }

    /// Lets the first `count` processes run (all, if there are fewer) and suspends the others.
    ///
    /// # Errors
    /// [`Error::Kernel`] where one has ended.
    pub fn run_first(&mut self, count: usize) -> Result<()> {
        let count = count.min(self.process_count());
        let (signal, changed) = match self.running {
            before if before < count => (Signal::SIGCONT, before..count),
            before => (Signal::SIGSTOP, count..before),
        };
        for process in &self.processes[changed] {
            let refused = |errno| Error::from_errno(format!("{signal} to process {}", process.pid()), errno);
            kill(process.pid(), signal).map_err(refused)?;
        }
        self.running = count;
        Ok(())
    }
}

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
    /// [`Error::Kernel`] where the kernel refuses a process.
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
    /// [`Error::Kernel`] where a signal is refused.
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
    use syscost_platform::process::process_cpu_ns;

    fn spent(background: &Background) -> Vec<u64> {
        background.processes.iter().map(|p| process_cpu_ns(p.pid().as_raw() as u32)).collect()
    }

    /// Which processes get CPU time, once as many do as should.
    fn which_run(background: &Background) -> Vec<bool> {
        let (before, begun) = (spent(background), Instant::now());
        loop {
            std::thread::sleep(Duration::from_millis(20));
            let runs: Vec<bool> =
                spent(background).iter().zip(&before).map(|(now, then)| now > then).collect();
            if runs.iter().filter(|runs| **runs).count() >= background.running_count()
                || begun.elapsed() > Duration::from_secs(20)
            {
                return runs;
            }
        }
    }

    #[test]
    fn who_is_suspended_gets_no_time() {
        let mut background = Background::start_computing(3, cpu::allowed_cpus()[0]).expect("started");
        background.run_first(1).expect("ours");
        // A signal takes a moment to reach a process on another CPU.
        std::thread::sleep(Duration::from_millis(50));
        assert_eq!(which_run(&background), [true, false, false]);
        background.run_first(3).expect("ours");
        assert_eq!(which_run(&background), [true; 3]);
        let all: Vec<_> = background.processes.iter().map(Child::pid).collect();
        background.run_first(0).expect("ours");
        drop(background);
        assert!(all.iter().all(|pid| kill(*pid, None).is_err()), "suspended or not, they are gone");
    }

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

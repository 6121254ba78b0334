//! Background processes that a controller may suspend, and batch jobs of users, of which it may suspend some.

use crate::index::Transaction;
use nix::sys::signal::{Signal, kill};
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};
use syscost_counters::Process;
use syscost_platform::child::Child;
use syscost_platform::error::{Error, Result};
use syscost_platform::{arch, cpu, time};

/// Processes of which the first few run and the others are suspended (SIGSTOP, SIGCONT). They are children of this process,
/// so it can suspend them without privileges. They end when this value is dropped, or with the thread that started them.
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

    /// A value that holds these processes, all of them running.
    pub(crate) fn new(processes: Vec<Child>) -> Self {
        let running = processes.len();
        Self { processes, running }
    }

    /// Adds a running process, in the order before the suspended ones.
    pub(crate) fn add_running(&mut self, process: Child) {
        self.processes.insert(self.running, process);
        self.running += 1;
    }

    /// Removes the processes that have ended. A suspended process cannot end.
    pub(crate) fn forget_ended(&mut self) {
        let before = self.process_count();
        self.processes.retain(|process| !process.has_ended());
        self.running -= before - self.process_count();
    }

    /// The number of all processes.
    pub fn process_count(&self) -> usize {
        self.processes.len()
    }

    /// The number of running processes.
    pub fn running_count(&self) -> usize {
        self.running
    }

    /// Lets the first `count` processes run (all, if there are fewer) and suspends the others.
    ///
    /// # Errors
    /// [`Error::Kernel`] where one of the processes has ended.
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

/// Jobs that users submit. The controller sets how many may run. Jobs beyond that number are suspended, and no new job is
/// accepted meanwhile.
#[derive(Debug)]
pub struct Batch {
    jobs: Background,
    on: usize,
    allowed: usize,
}

impl Batch {
    /// A batch without jobs, of which at most `allowed` may run on the CPU `on`.
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

    /// The number of running jobs.
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

// A server whose commands need a known amount of CPU time, so that their response times show the load of its CPU.

/// The longest wait for a response.
const PATIENCE: Duration = Duration::from_secs(10);

/// A server process behind a stream socket, and its only user.
#[derive(Debug)]
pub struct Interactive {
    user: UnixStream,
    /// The time of the last answer; before the first answer, the time of the start.
    answered: Instant,
    counters: Process,
    _server: Child,
}

impl Interactive {
    /// Starts a server on the CPU `on`. Each command computes for `demand`, by the server's virtual clock; with k other
    /// processes that compute on this CPU the response takes 1 + k times as long.
    ///
    /// # Errors
    /// [`Error::Kernel`] where there is no socket or no process.
    pub fn start(on: usize, demand: Duration) -> Result<Self> {
        let refused = |cause| Error::Kernel { call: "socketpair of a server".into(), cause };
        let (user, server) = UnixStream::pair().map_err(refused)?;
        user.set_read_timeout(Some(PATIENCE)).map_err(refused)?;
        cpu::initial_cpus(); // initialised here: a forked child must not wait for a lock
        let child = Child::start(|| {
            if cpu::pin_thread(on).is_ok() {
                serve(&server, demand);
            }
        })?;
        Ok(Self {
            user,
            answered: Instant::now(),
            counters: Process::open(child.pid().as_raw())?,
            _server: child,
        })
    }

    /// Sends a command, waits for its answer, and returns the response time.
    ///
    /// # Errors
    /// [`Error::Kernel`] where the server has ended, or does not answer within ten seconds.
    pub fn time_command(&mut self) -> Result<Duration> {
        let begun = Instant::now();
        let answered = self.user.write_all(&[1]).and_then(|()| self.user.read_exact(&mut [0]));
        answered.map_err(|cause| Error::Kernel { call: "a command to the server".into(), cause })?;
        Ok(begun.elapsed())
    }

    /// Like [`time_command`](Self::time_command), but returns every quantity that an index may use.
    ///
    /// # Errors
    /// The errors of [`time_command`](Self::time_command).
    pub fn measure_transaction(&mut self) -> Result<Transaction> {
        let response = self.time_command()?;
        let now = Instant::now();
        let since_last = now - std::mem::replace(&mut self.answered, now);
        Ok(Transaction { response, since_last, resident: self.counters.resident()?.value })
    }
}

/// Runs the server until its user closes the socket.
fn serve(mut socket: &UnixStream, demand: Duration) {
    let demand = demand.as_nanos() as u64;
    let mut command = [0];
    while socket.read_exact(&mut command).is_ok() {
        let begun = time::thread_cpu_ns();
        while time::thread_cpu_ns() - begun < demand {}
        if socket.write_all(&command).is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::Background;
    use std::time::{Duration, Instant};
    use syscost_platform::arch;
    use syscost_platform::process::process_cpu_ns;
    use syscost_statistic::median;

    fn cpu_times(background: &Background) -> Vec<u64> {
        background.processes.iter().map(|p| process_cpu_ns(p.pid().as_raw() as u32)).collect()
    }

    /// Which processes get CPU time, sampled once the expected number of them does.
    fn running_processes(background: &Background) -> Vec<bool> {
        let (before, begun) = (cpu_times(background), Instant::now());
        loop {
            std::thread::sleep(Duration::from_millis(20));
            let runs: Vec<bool> =
                cpu_times(background).iter().zip(&before).map(|(now, then)| now > then).collect();
            if runs.iter().filter(|runs| **runs).count() >= background.running_count()
                || begun.elapsed() > Duration::from_secs(20)
            {
                return runs;
            }
        }
    }

    #[test]
    fn a_suspended_process_gets_no_cpu_time() {
        let mut background = Background::start_computing(3, cpu::allowed_cpus()[0]).expect("started");
        background.run_first(1).expect("ours");
        // A signal takes a moment to reach a process on another CPU.
        std::thread::sleep(Duration::from_millis(50));
        assert_eq!(running_processes(&background), [true, false, false]);
        background.run_first(3).expect("ours");
        assert_eq!(running_processes(&background), [true; 3]);
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
    fn no_job_is_accepted_while_jobs_are_suspended() {
        let mut batch = Batch::new(cpu::allowed_cpus()[0], 2);
        let accepted = [(); 3].map(|()| batch.submit(compute).expect("a process"));
        assert_eq!((accepted, batch.running_count()), ([true, true, false], 2));
        batch.allow(1).expect("ours");
        assert_eq!((batch.submit(compute).expect("ours"), batch.running_count()), (false, 1));
        batch.allow(3).expect("ours");
        assert_eq!((batch.submit(compute).expect("ours"), batch.running_count()), (true, 3));
    }

    #[test]
    fn a_job_that_has_ended_frees_its_place() {
        let mut batch = Batch::new(cpu::allowed_cpus()[0], 1);
        assert!(batch.submit(|| ()).expect("a process"));
        let begun = Instant::now();
        while !batch.submit(compute).expect("a process") {
            assert!(begun.elapsed() < Duration::from_secs(20), "its place stays taken");
            std::thread::sleep(Duration::from_millis(1));
        }
        assert_eq!(batch.running_count(), 1);
    }

    #[test]
    fn a_command_takes_its_cpu_time_and_longer_beside_other_processes() {
        let (on, demand) = (cpu::allowed_cpus()[0], Duration::from_millis(2));
        let mut server = Interactive::start(on, demand).expect("started");
        let mut usual = || {
            let all: Vec<f64> =
                (0..15).map(|_| server.time_command().expect("answered").as_secs_f64()).collect();
            assert!(all.iter().all(|response| *response >= demand.as_secs_f64()));
            median(&all)
        };
        let alone = usual();
        let partners = Background::start_computing(6, on).expect("started");
        let crowded = usual();
        drop(partners);
        assert!(crowded > 1.3 * alone, "{alone} s alone, {crowded} s beside six");
    }

    #[test]
    fn a_transaction_takes_no_longer_than_the_time_since_the_last() {
        let mut server =
            Interactive::start(cpu::allowed_cpus()[0], Duration::from_millis(1)).expect("started");
        for _ in 0..3 {
            let Transaction { response, since_last, resident } =
                server.measure_transaction().expect("answered");
            assert!(
                Duration::from_millis(1) <= response && response <= since_last,
                "{response:?} {since_last:?}"
            );
            assert!(resident > 0);
        }
    }
}

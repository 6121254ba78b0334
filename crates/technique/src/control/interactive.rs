//! A server whose commands need a known amount of CPU time, so that their response times show the load of its CPU.

use crate::index::Transaction;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};
use syscost_counters::Process;
use syscost_platform::child::Child;
use syscost_platform::error::{Error, Result};
use syscost_platform::{cpu, time};

/// The longest response time that is waited for.
const PATIENCE: Duration = Duration::from_secs(10);

/// A server process behind a stream socket, and its only user.
#[derive(Debug)]
pub struct Interactive {
    user: UnixStream,
    /// The last answer, or the start.
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
    /// [`Error::Kernel`] where the server has gone, or does not answer within ten seconds.
    pub fn time_command(&mut self) -> Result<Duration> {
        let begun = Instant::now();
        let answered = self.user.write_all(&[1]).and_then(|()| self.user.read_exact(&mut [0]));
        answered.map_err(|cause| Error::Kernel { call: "a command to the server".into(), cause })?;
        Ok(begun.elapsed())
    }

    /// As [`time_command`](Self::time_command), with all that an index may be of.
    ///
    /// # Errors
    /// As of [`time_command`](Self::time_command).
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
    use syscost_statistic::median;

    #[test]
    fn a_command_takes_as_long_as_it_computes_and_longer_in_company() {
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

//! A child process that uses a resource step by step, each step on request.

use crate::Process;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;
use syscost_platform::child::Child;
use syscost_platform::error::{Error, Result};

/// The time after which a worker that does not answer counts as hung.
const PATIENCE: Duration = Duration::from_secs(20);

/// The child and the socket to it. The child ends when this value is dropped.
pub(super) struct Worker {
    child: Child,
    socket: UnixStream,
}

/// The child's end of the socket.
pub(super) struct Turn(UnixStream);

impl Turn {
    /// Reports the result of a finished step and waits for the request of the next.
    ///
    /// # Panics
    /// If the parent has closed its end; the child then ends.
    pub(super) fn report_and_wait(&mut self, answer: u64) {
        let written = self.0.write_all(&answer.to_ne_bytes());
        written.and_then(|()| self.0.read_exact(&mut [0])).expect("the parent is at the other end");
    }
}

impl Worker {
    /// Starts a child that runs `body`, and waits for its first step.
    ///
    /// # Errors
    /// An error where the kernel refuses the child or its socket, or where the child ends or hangs in its first step.
    pub(super) fn start(body: impl FnOnce(&mut Turn)) -> Result<Self> {
        let pair = UnixStream::pair().map_err(|e| Error::file("a pair of sockets", "making", e))?;
        let (socket, theirs) = pair;
        let child = Child::start(|| body(&mut Turn(theirs)))?;
        socket.set_read_timeout(Some(PATIENCE)).map_err(|e| Error::file("a socket", "setting up", e))?;
        let mut worker = Self { child, socket };
        worker.read_answer()?;
        Ok(worker)
    }

    /// Requests the next step and waits for its result.
    ///
    /// # Errors
    /// An error where the child has ended, or does not finish within 20 seconds.
    pub(super) fn run_step(&mut self) -> Result<u64> {
        self.socket.write_all(&[1]).map_err(|e| Error::Child(format!("it does not listen: {e}")))?;
        self.read_answer()
    }

    fn read_answer(&mut self) -> Result<u64> {
        let mut bytes = [0; 8];
        let read = self.socket.read_exact(&mut bytes);
        read.map_err(|e| Error::Child(format!("it ended, or did not do its step within {PATIENCE:?}: {e}")))?;
        Ok(u64::from_ne_bytes(bytes))
    }

    /// The child as a process whose counters can be read.
    ///
    /// # Errors
    /// The errors of [`Process::open`].
    pub(super) fn process(&self) -> Result<Process> {
        Ok(Process::open(self.pid())?)
    }

    pub(super) fn pid(&self) -> i32 {
        self.child.pid().as_raw()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worker_runs_a_step_on_request() {
        let mut worker = Worker::start(|turn| (0..3).for_each(|n| turn.report_and_wait(n))).expect("started");
        assert_eq!((worker.run_step().expect("done"), worker.run_step().expect("done")), (1, 2));
        worker.run_step().expect_err("its body has returned");
    }

    #[test]
    fn a_worker_that_panics_is_an_error() {
        let mut worker = Worker::start(|turn| {
            turn.report_and_wait(0);
            std::panic::resume_unwind(Box::new("in the child"));
        })
        .expect("started");
        assert!(worker.run_step().is_err());
    }
}

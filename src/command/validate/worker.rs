//! A child that uses a resource step by step, when it is told to.

use crate::counters::Process;
use crate::platform::child::Child;
use crate::{Error, Result};
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// Whoever answers nothing for so long hangs.
const PATIENCE: Duration = Duration::from_secs(20);

/// The child, and the line to it. It goes with this value.
pub(super) struct Worker {
    child: Child,
    line: UnixStream,
}

/// The child's end of the line.
pub(super) struct Turn(UnixStream);

impl Turn {
    /// Says that a step is done and what came of it, and waits for the word to go on.
    ///
    /// # Panics
    /// Where nobody is at the other end: the child then ends.
    pub(super) fn done(&mut self, answer: u64) {
        let mut word = [0];
        let went = self.0.write_all(&answer.to_ne_bytes()).and_then(|()| self.0.read_exact(&mut word));
        went.expect("the parent is at the other end");
    }
}

impl Worker {
    /// Starts a child that runs `body`. Its first step is to be ready.
    pub(super) fn start(body: impl FnOnce(&mut Turn)) -> Result<Self> {
        let pair = UnixStream::pair().map_err(|e| Error::file("a pair of sockets", "making", e))?;
        let (line, its) = pair;
        let child = Child::start(|| body(&mut Turn(its)))?;
        line.set_read_timeout(Some(PATIENCE)).map_err(|e| Error::file("a socket", "setting up", e))?;
        let mut worker = Self { child, line };
        worker.answer()?;
        Ok(worker)
    }

    /// Lets it do its next step and waits until that is done.
    pub(super) fn step(&mut self) -> Result<u64> {
        self.go()?;
        self.answer()
    }

    /// Lets it do its next step.
    pub(super) fn go(&mut self) -> Result<()> {
        self.line.write_all(&[1]).map_err(|e| Error::Child(format!("it does not listen: {e}")))
    }

    fn answer(&mut self) -> Result<u64> {
        let mut bytes = [0; 8];
        let read = self.line.read_exact(&mut bytes);
        read.map_err(|e| Error::Child(format!("it ended, or did not do its step within {PATIENCE:?}: {e}")))?;
        Ok(u64::from_ne_bytes(bytes))
    }

    /// It, as the counters see it.
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
    fn a_worker_does_a_step_when_it_is_told() {
        let mut worker = Worker::start(|turn| (0..3).for_each(|n| turn.done(n))).expect("started");
        assert_eq!((worker.step().expect("done"), worker.step().expect("done")), (1, 2));
        worker.go().expect("told");
        assert!(worker.step().is_err(), "there is no step more");
    }

    #[test]
    fn one_that_panics_is_an_error() {
        let mut worker = Worker::start(|turn| {
            turn.done(0);
            std::panic::resume_unwind(Box::new("in the child"));
        })
        .expect("started");
        assert!(worker.step().is_err());
    }
}

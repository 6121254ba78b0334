//! The lines that a measuring process writes to its pipe. The wait for a line ends at a time limit or at a signal.

use crate::error::{Error, Result};
use crate::platform::signal;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use std::fs::File;
use std::io::Read;
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

/// What came first.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Arrival {
    /// A line, without its end.
    Line(String),
    /// No process holds the pipe's other end any more.
    Closed,
    /// The time limit.
    Silence,
    /// A signal to this process.
    Signal,
}

/// The reading end of a pipe.
pub(super) struct Lines {
    pipe: File,
    /// Bytes read and not yet returned.
    held: Vec<u8>,
    is_closed: bool,
}

impl Lines {
    pub(super) fn new(pipe: OwnedFd) -> Self {
        Self { pipe: pipe.into(), held: Vec::new(), is_closed: false }
    }

    /// Waits for the next line, until the timeout.
    ///
    /// # Errors
    /// The kernel refuses to wait, or to read.
    pub(super) fn next(&mut self, limit: Duration) -> Result<Arrival> {
        let until = Instant::now() + limit;
        loop {
            if let Some(line) = self.take_line() {
                return Ok(Arrival::Line(line));
            }
            if self.is_closed {
                return Ok(Arrival::Closed);
            }
            match self.wait_for_input(until.saturating_duration_since(Instant::now()))? {
                Woken::Pipe => self.read()?,
                Woken::Signal => return Ok(Arrival::Signal),
                Woken::Timeout if Instant::now() >= until => return Ok(Arrival::Silence),
                Woken::Timeout => {}
            }
        }
    }

    /// The first whole line that was read; at the end of the stream, what is left.
    fn take_line(&mut self) -> Option<String> {
        let end = self.held.iter().position(|&byte| byte == b'\n').map(|at| at + 1);
        let end = end.or((self.is_closed && !self.held.is_empty()).then_some(self.held.len()))?;
        let rest = self.held.split_off(end);
        let line = std::mem::replace(&mut self.held, rest);
        Some(String::from_utf8_lossy(&line).trim_end_matches('\n').to_owned())
    }

    fn wait_for_input(&self, limit: Duration) -> Result<Woken> {
        let bell = signal::bell_descriptor();
        let mut sources = vec![PollFd::new(self.pipe.as_fd(), PollFlags::POLLIN)];
        sources.extend(bell.map(|bell| PollFd::new(bell, PollFlags::POLLIN)));
        // Rounded up: what is waited for in less than a millisecond would be asked for again and again.
        let timeout = PollTimeout::try_from(limit + Duration::from_millis(1)).unwrap_or(PollTimeout::MAX);
        match poll(&mut sources, timeout) {
            Ok(_) | Err(Errno::EINTR) => {}
            Err(errno) => return Err(Error::from_errno("poll of a measuring process's pipe", errno)),
        }
        let has_come = |at: usize| sources.get(at).is_some_and(|source| source.any() == Some(true));
        if has_come(1) {
            signal::silence_bell();
            return Ok(Woken::Signal);
        }
        Ok(if has_come(0) { Woken::Pipe } else { Woken::Timeout })
    }

    fn read(&mut self) -> Result<()> {
        let mut buffer = [0; 16 << 10];
        match self.pipe.read(&mut buffer) {
            Ok(0) => self.is_closed = true,
            Ok(length) => self.held.extend_from_slice(&buffer[..length]),
            Err(cause) if cause.kind() == std::io::ErrorKind::Interrupted => {}
            Err(cause) => return Err(Error::Kernel { call: "read from a measuring process".into(), cause }),
        }
        Ok(())
    }
}

enum Woken {
    Pipe,
    Signal,
    Timeout,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::platform::child::run_in_child_process;
    use std::io::Write;

    const LONG: Duration = Duration::from_secs(60);

    fn stream() -> (Lines, File) {
        let (read, write) = nix::unistd::pipe().expect("a pipe");
        (Lines::new(read), write.into())
    }

    #[test]
    fn lines_come_whole_and_one_by_one() {
        let (mut lines, mut write) = stream();
        write.write_all(b"one\ntw").expect("written");
        assert_eq!(lines.next(LONG).expect("read"), Arrival::Line("one".into()));
        assert_eq!(lines.next(Duration::ZERO).expect("read"), Arrival::Silence);
        write.write_all(b"o\n\nlast").expect("written");
        drop(write);
        for line in ["two", "", "last"] {
            assert_eq!(lines.next(LONG).expect("read"), Arrival::Line(line.into()));
        }
        assert_eq!(lines.next(LONG).expect("read"), Arrival::Closed);
    }

    #[test]
    fn a_signal_ends_a_wait_that_would_be_long() {
        run_in_child_process(|| {
            signal::watch_signals().expect("handlers");
            let (mut lines, _write) = stream();
            signal::bell_descriptor().expect("a descriptor");
            nix::sys::signal::raise(nix::sys::signal::Signal::SIGTERM).expect("raised");
            assert_eq!(lines.next(LONG).expect("waited"), Arrival::Signal);
            assert_eq!(lines.next(Duration::ZERO).expect("waited"), Arrival::Silence, "it is heard once");
        });
    }
}

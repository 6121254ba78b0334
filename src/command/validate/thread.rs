//! C5: a thread more (the paper's Table 3).

use super::Setting;
use super::finding::Finding;
use super::worker::{Turn, Worker};
use crate::Result;
use nix::errno::Errno;
use nix::sys::signal::kill;
use nix::unistd::{Pid, gettid};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

/// A thread that has ended and is not gone after so long is a finding.
const PATIENCE: Duration = Duration::from_secs(5);

/// Java's own and one, before the test began.
const BEFORE: usize = 9;

pub(super) fn run(_: &Setting) -> Result<Vec<Finding>> {
    let mut worker = Worker::start(threads)?;
    let process = worker.process()?;
    let before = process.threads()?.value;
    let started = worker.step()?;
    let after = process.threads()?.value;
    worker.step()?;
    let ended = process.threads()?.value;
    Ok(vec![
        Finding::exact("before", "9", BEFORE as u64, before),
        Finding::exact("after", "10", started, after),
        Finding::exact("after its end", "", BEFORE as u64, ended),
    ])
}

fn threads(turn: &mut Turn) {
    let (sender, receiver) = channel::<()>();
    let waiting: Vec<_> = (1..BEFORE)
        .map(|_| {
            std::thread::spawn(|| {
                loop {
                    std::thread::park()
                }
            })
        })
        .collect();
    turn.done(waiting.len() as u64 + 1);
    let (tell, number) = channel();
    let one_more = std::thread::spawn(move || {
        let _ = tell.send(gettid());
        receiver.recv()
    });
    turn.done(waiting.len() as u64 + 2);
    drop(sender);
    let _ = one_more.join();
    if let Ok(number) = number.recv() {
        until_gone(number);
    }
    turn.done(waiting.len() as u64 + 1);
}

/// Who has joined a thread knows that it runs no more. The kernel has it on its books for some microseconds longer, and
/// says by a signal that is none when it has not.
fn until_gone(thread: Pid) {
    let begun = Instant::now();
    while kill(thread, None) != Err(Errno::ESRCH) && begun.elapsed() < PATIENCE {
        std::thread::yield_now();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_was_joined_is_waited_for_until_the_kernel_has_it_no_more() {
        let mut worker = Worker::start(threads).expect("started");
        let process = worker.process().expect("a child");
        let started = worker.step().expect("one more");
        assert_eq!(process.threads().expect("read").value, started);
        worker.step().expect("and it ended");
        assert_eq!(process.threads().expect("read").value, BEFORE as u64);
    }
}

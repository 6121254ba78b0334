//! C5: a process that starts one thread more and ends it (the paper's Table 3).

use super::Setting;
use super::finding::Finding;
use super::worker::{Turn, Worker};
use nix::errno::Errno;
use nix::sys::signal::kill;
use nix::unistd::{Pid, gettid};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};
use syscost_platform::error::Result;

/// A thread that has ended and is still counted after this time is a finding.
const PATIENCE: Duration = Duration::from_secs(5);

/// Threads before the test, as of the paper's Java process.
const BEFORE: usize = 9;

pub(super) fn run(setting: &Setting) -> Result<Vec<Finding>> {
    let mut worker = Worker::start(start_and_end_thread)?;
    let (pid, count) = (worker.pid(), setting.functions.thread_count);
    let before = count(pid)?.value;
    let started = worker.run_step()?;
    let after = count(pid)?.value;
    worker.run_step()?;
    let ended = count(pid)?.value;
    Ok(vec![
        Finding::exact_count("before", "9", BEFORE as u64, before),
        Finding::exact_count("after", "10", started, after),
        Finding::exact_count("after its end", "", BEFORE as u64, ended),
    ])
}

fn start_and_end_thread(turn: &mut Turn) {
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
    turn.report_and_wait(waiting.len() as u64 + 1);
    let (tell, number) = channel();
    let one_more = std::thread::spawn(move || {
        let _ = tell.send(gettid());
        receiver.recv()
    });
    turn.report_and_wait(waiting.len() as u64 + 2);
    drop(sender);
    let _ = one_more.join();
    if let Ok(number) = number.recv() {
        wait_until_gone(number);
    }
    turn.report_and_wait(waiting.len() as u64 + 1);
}

/// Waits until the kernel no longer knows a thread that was joined, which takes some microseconds more. The signal 0
/// asks without sending anything.
fn wait_until_gone(thread: Pid) {
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
        let mut worker = Worker::start(start_and_end_thread).expect("started");
        let process = worker.process().expect("a child");
        let started = worker.run_step().expect("one more");
        assert_eq!(process.threads().expect("read").value, started);
        worker.run_step().expect("and it ended");
        assert_eq!(process.threads().expect("read").value, BEFORE as u64);
    }
}

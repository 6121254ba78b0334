//! C5: a thread more (the paper's Table 3).

use super::Setting;
use super::finding::Finding;
use super::worker::{Turn, Worker};
use crate::Result;
use std::sync::mpsc::channel;

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
    let one_more = std::thread::spawn(move || receiver.recv());
    turn.done(waiting.len() as u64 + 2);
    drop(sender);
    let _ = one_more.join();
    turn.done(waiting.len() as u64 + 1);
}

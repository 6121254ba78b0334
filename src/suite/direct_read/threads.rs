//! Several reads in flight by as many threads on the measuring CPU, all of them busy while it is timed.
//!
//! The threads take numbers. Between the completion of number `depth` and of number `depth + n` each of them has had
//! a read in flight at every moment, and that is what is timed.

use super::queue::{at_least, share};
use super::{BLOCK, large};
use crate::case::{SetUp, Subject};
use crate::clock::{Clock, ClockScale, Ticks};
use crate::kit::blocks::{Blocks, Pattern};
use crate::kit::pattern_file;
use crate::{Error, Result};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread::JoinHandle;

/// What the threads share for one batch.
struct Batch {
    scale: ClockScale,
    offsets: Vec<u64>,
    /// Completions before the clock starts.
    turned: u64,
    timed: u64,
    /// The next number that nobody has taken.
    next: AtomicU64,
    done: AtomicU64,
    /// When the clock started and stopped.
    bracket: [AtomicU64; 2],
    /// What each block took, or the first failure: the block's place and what came.
    found: Mutex<Found>,
}

#[derive(Default)]
struct Found {
    ticks: Vec<Ticks>,
    wrong: Option<(std::io::Result<usize>, Vec<u8>, u64)>,
}

struct Worker {
    batches: Option<mpsc::Sender<Arc<Batch>>>,
    ended: mpsc::Receiver<()>,
    thread: Option<JoinHandle<()>>,
}

struct Threads {
    blocks: Blocks,
    workers: Vec<Worker>,
}

pub(super) fn set_up(depth: usize) -> SetUp {
    Box::new(move |place| {
        let blocks = large(place, Pattern::Random, BLOCK)?;
        let workers = (0..depth).map(|_| Worker::start(blocks.stamped.file())).collect::<Result<_>>()?;
        Ok(Box::new(Threads { blocks, workers }) as Box<dyn Subject>)
    })
}

impl Worker {
    fn start(file: &File) -> Result<Self> {
        let refused = |call: &'static str| move |cause| Error::Kernel { call: call.into(), cause };
        let file = file.try_clone().map_err(refused("dup of a file"))?;
        let mut buffer = pattern_file::buffer(BLOCK)?;
        let (batches, handed) = mpsc::channel::<Arc<Batch>>();
        let (end, ended) = mpsc::channel();
        let life = move || {
            for batch in handed {
                work(&batch, &file, &mut buffer);
                drop(batch);
                let _ = end.send(());
            }
        };
        // It inherits the CPU of the measuring thread.
        let builder = std::thread::Builder::new().stack_size(256 << 10);
        let thread = builder.spawn(life).map_err(refused("clone of a thread that reads (`ulimit -u`)"))?;
        Ok(Self { batches: Some(batches), ended, thread: Some(thread) })
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        drop(self.batches.take());
        if let Some(thread) = self.thread.take() {
            // A panic of its ended the batch.
            let _ = thread.join();
        }
    }
}

/// Reads blocks until none is left.
fn work(batch: &Batch, file: &File, buffer: &mut [u8]) {
    let clock = Clock::with_scale(batch.scale);
    let mut own = Vec::with_capacity(batch.timed as usize);
    loop {
        let number = batch.next.fetch_add(1, Relaxed);
        let Some(&offset) = batch.offsets.get(number as usize) else { break };
        let asked = clock.start();
        let got = file.read_at(buffer, offset);
        let now = clock.stop();
        let done = batch.done.fetch_add(1, SeqCst) + 1;
        if done == batch.turned {
            batch.bracket[0].store(now.0, SeqCst);
        } else if done == batch.turned + batch.timed {
            batch.bracket[1].store(now.0, SeqCst);
        }
        if done > batch.turned && done <= batch.turned + batch.timed {
            own.push(now - asked);
        }
        if !matches!(got, Ok(BLOCK)) || !pattern_file::is_of(buffer, offset) {
            let mut found = batch.found.lock().unwrap_or_else(PoisonError::into_inner);
            found.wrong = Some((got, buffer.to_vec(), offset));
            break;
        }
    }
    batch.found.lock().unwrap_or_else(PoisonError::into_inner).ticks.append(&mut own);
}

impl Threads {
    fn batch(&mut self, timed: u64, clock: &Clock) -> Batch {
        let depth = self.workers.len() as u64;
        let all = depth + timed + depth - 1;
        Batch {
            scale: clock.scale(),
            offsets: (0..all).map(|_| self.blocks.order.next()).collect(),
            turned: depth,
            timed,
            next: AtomicU64::new(0),
            done: AtomicU64::new(0),
            bracket: [AtomicU64::new(0), AtomicU64::new(0)],
            found: Mutex::default(),
        }
    }
}

impl Subject for Threads {
    fn run(&mut self, iterations: u64, clock: &Clock) -> Result<Ticks> {
        let batch = Arc::new(self.batch(at_least(iterations, self.workers.len()), clock));
        self.blocks.proof.begin()?;
        for worker in &self.workers {
            let handed = worker.batches.as_ref().map(|batches| batches.send(Arc::clone(&batch)));
            handed.and_then(std::result::Result::ok).ok_or_else(gone)?;
        }
        for worker in &self.workers {
            worker.ended.recv().map_err(|_| gone())?;
        }
        let found = std::mem::take(&mut *batch.found.lock().unwrap_or_else(PoisonError::into_inner));
        if let Some((got, read, offset)) = found.wrong {
            self.blocks.check(got, &read, offset)?;
        }
        found.ticks.into_iter().for_each(|ticks| _ = clock.note(ticks));
        let last = batch.offsets.last().copied().unwrap_or_default();
        self.blocks.prove(batch.offsets.len() as u64, last)?;
        let [began, ended] = [0, 1].map(|i| Ticks(batch.bracket[i].load(SeqCst)));
        Ok(share(ended - began, iterations, batch.timed))
    }
}

fn gone() -> Error {
    Error::Usage("a thread that reads has ended: it panicked".into())
}

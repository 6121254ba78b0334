//! Several reads in flight by as many threads on the measuring CPU, all of which are reading while it is timed.
//!
//! The threads take numbers. Between the completions of number `depth` and number `depth + n` each of them has a read
//! in flight at every moment: that interval is timed.

use super::{BLOCK, blocks_for_batch, blocks_of_file, share_of_time};
use crate::case::{SetUp, Subject, set_up};
use crate::clock::{Clock, ClockScale, Ticks};
use crate::error::{Error, Result};
use crate::kit::blocks::{Blocks, Pattern};
use crate::kit::in_flight::Moment;
use crate::platform::pattern_file;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, mpsc};
use std::thread::JoinHandle;

/// The state that the threads share for one batch.
struct Batch {
    scale: ClockScale,
    offsets: Vec<u64>,
    /// Completions before the clock starts.
    turned: u64,
    /// Completions while it runs.
    timed: u64,
    /// The next number to be taken.
    next: AtomicU64,
    done: AtomicU64,
    began: OnceLock<Moment>,
    ended: OnceLock<Moment>,
    outcome: Mutex<Outcome>,
}

#[derive(Default)]
struct Outcome {
    /// The time of each block.
    ticks: Vec<Ticks>,
    /// The first wrong read: the answer of the call, the buffer, and the offset.
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

/// The set-up with `depth` threads.
pub(super) fn set_up_for_depth(depth: usize) -> SetUp {
    set_up(move |place| {
        let blocks = blocks_of_file(place, Pattern::Random, BLOCK)?;
        let workers = (0..depth).map(|_| Worker::start(blocks.file.file())).collect::<Result<_>>()?;
        Ok(Threads { blocks, workers })
    })
}

impl Worker {
    fn start(file: &File) -> Result<Self> {
        let refused = |call: &'static str| move |cause| Error::Kernel { call: call.into(), cause };
        let file = file.try_clone().map_err(refused("dup of a file"))?;
        let mut buffer = pattern_file::map_buffer(BLOCK)?;
        let (batches, received) = mpsc::channel::<Arc<Batch>>();
        let (end, ended) = mpsc::channel();
        let life = move || {
            for batch in received {
                read_batch(&batch, &file, &mut buffer);
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
            // If it panicked, the batch has failed already.
            let _ = thread.join();
        }
    }
}

/// Reads blocks until none is left.
fn read_batch(batch: &Batch, file: &File, buffer: &mut [u8]) {
    let clock = Clock::with_scale(batch.scale);
    let mut own = Vec::with_capacity(batch.timed as usize);
    loop {
        let number = batch.next.fetch_add(1, Relaxed);
        let Some(&offset) = batch.offsets.get(number as usize) else { break };
        let submitted = Moment::read_before_submission(&clock);
        let got = file.read_at(buffer, offset);
        let now = Moment::read_after_completion(&clock);
        let done = batch.done.fetch_add(1, SeqCst) + 1;
        // Each of the two numbers is drawn once, so neither cell is set twice.
        if done == batch.turned {
            let _ = batch.began.set(now);
        } else if done == batch.turned + batch.timed {
            let _ = batch.ended.set(now);
        }
        if done > batch.turned && done <= batch.turned + batch.timed {
            own.push(now.since(submitted));
        }
        if !matches!(got, Ok(BLOCK)) || !pattern_file::is_pattern_at(buffer, offset) {
            let mut outcome = batch.outcome.lock().unwrap_or_else(PoisonError::into_inner);
            outcome.wrong = Some((got, buffer.to_vec(), offset));
            break;
        }
    }
    batch.outcome.lock().unwrap_or_else(PoisonError::into_inner).ticks.append(&mut own);
}

impl Threads {
    fn new_batch(&mut self, timed: u64, clock: &Clock) -> Batch {
        let depth = self.workers.len() as u64;
        let all = depth + timed + depth - 1;
        Batch {
            scale: clock.scale(),
            offsets: (0..all).map(|_| self.blocks.order.next_offset()).collect(),
            turned: depth,
            timed,
            next: AtomicU64::new(0),
            done: AtomicU64::new(0),
            began: OnceLock::new(),
            ended: OnceLock::new(),
            outcome: Mutex::default(),
        }
    }
}

impl Subject for Threads {
    fn run(&mut self, iterations: u64, clock: &Clock) -> Result<Ticks> {
        let batch = Arc::new(self.new_batch(blocks_for_batch(iterations, self.workers.len()), clock));
        self.blocks.proof.begin_batch()?;
        for worker in &self.workers {
            let sent = worker.batches.as_ref().map(|batches| batches.send(Arc::clone(&batch)));
            sent.and_then(std::result::Result::ok).ok_or_else(thread_ended_error)?;
        }
        for worker in &self.workers {
            worker.ended.recv().map_err(|_| thread_ended_error())?;
        }
        let outcome = std::mem::take(&mut *batch.outcome.lock().unwrap_or_else(PoisonError::into_inner));
        if let Some((got, read, offset)) = outcome.wrong {
            self.blocks.file.check_block(got, &read, offset)?;
        }
        outcome.ticks.into_iter().for_each(|ticks| _ = clock.record_bracket(ticks));
        let last = batch.offsets.last().copied().unwrap_or_default();
        self.blocks.prove_batch(batch.offsets.len() as u64, last)?;
        let (began, ended) = batch.began.get().zip(batch.ended.get()).ok_or_else(thread_ended_error)?;
        Ok(share_of_time(ended.since(*began), iterations, batch.timed))
    }
}

fn thread_ended_error() -> Error {
    Error::Disproved("a thread that reads has ended: it panicked".into())
}

//! Several reads in flight, in a queue that is full while it is timed: that of one io_uring or io_submit(2), or as many threads on
//! the measuring CPU, all of which are reading.
//!
//! The threads draw the numbers of their reads from one counter. Between the completions of number `depth` and
//! number `depth + n` each thread has a read in flight at every moment: this interval is timed.
//!
//! With several operations in flight, one begins while others have not ended, and its end is seen elsewhere in the
//! program than its beginning: a closure of [`Clock::time`] or [`Clock::time_each`] cannot enclose it. Only such
//! operations open and close brackets by hand: they read [`Clock::start`] just before an operation is submitted, and
//! [`Clock::stop`] just after it was found complete.

use super::{BLOCK, blocks_for_batch, blocks_of_file, share_of_time};
use crate::kit::blocks::{Blocks, Pattern};
use crate::kit::contract::*;
use crate::platform::pattern_file;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, mpsc};
use std::thread::JoinHandle;

/// Reads in flight, each into a slot of its own.
pub(super) trait ReadQueue {
    /// Queues a read and returns its slot; `None` if all slots are in use.
    fn read(&mut self, offset: u64) -> Option<usize>;
    /// Submits the queued reads and waits until at least one has completed.
    fn submit_and_wait(&mut self) -> Result<()>;
    /// A completed read: its slot, and the bytes that were read or a negative error number.
    fn next_completion(&mut self) -> Option<(usize, i32)>;
    /// The bytes that were read into a slot, until the slot is used again.
    fn slot_block(&self, slot: usize) -> &[u8];
    /// The number of reads in flight.
    fn in_flight(&self) -> usize;
}

struct Queue<R> {
    blocks: Blocks,
    ring: R,
    depth: usize,
    /// The offset of each slot's read, and when it was submitted.
    submitted: Vec<(u64, Ticks)>,
    /// The number of all reads until now.
    reads: u64,
}

/// The set-up with `depth` reads in flight in the queue that `open` makes.
pub(super) fn set_up_for_depth<R: ReadQueue + 'static>(
    depth: usize,
    open: impl Fn(&File, usize, usize) -> Result<R> + 'static,
) -> SetUp {
    set_up(move |place| {
        let blocks = blocks_of_file(place, Pattern::Random, BLOCK)?;
        let ring = open(blocks.file.file(), BLOCK, depth)?;
        Ok(Queue { blocks, ring, depth, submitted: vec![Default::default(); depth], reads: 0 })
    })
}

impl<R: ReadQueue> Queue<R> {
    /// Fills the queue as far as there are reads left.
    #[inline(always)]
    fn fill_queue(&mut self, left: &mut u64, clock: &Clock) {
        while *left > 0 {
            let offset = self.blocks.order.next_offset();
            let Some(slot) = self.ring.read(offset) else { return self.blocks.order.undo_next_offset() };
            self.submitted[slot] = (offset, clock.start());
            *left -= 1;
            self.reads += 1;
        }
    }

    /// Replaces every read in the queue once, untimed, then reads at least `timed` blocks, and drains the queue.
    /// Returns the number of blocks that were read while the clock ran, and their time. The clock starts and stops
    /// at a completion.
    fn time_reads(&mut self, timed: u64, clock: &Clock) -> Result<(u64, Ticks)> {
        let depth = self.depth as u64;
        let turned = if depth == 1 { 0 } else { depth };
        let (mut left, mut done) = (turned + timed + 2 * (depth - 1), 0);
        let mut began = (turned == 0).then(|| (0, clock.start()));
        let mut ended = None;
        while left > 0 || self.ring.in_flight() > 0 {
            self.fill_queue(&mut left, clock);
            self.ring.submit_and_wait()?;
            let now = clock.stop();
            // Completions are taken one at a time, each replaced by a new read: in a bunch the first would wait for the last.
            if let Some((slot, answer)) = self.ring.next_completion() {
                let (offset, submitted) = self.submitted[slot];
                let got = usize::try_from(answer).map_err(|_| std::io::Error::from_raw_os_error(-answer));
                self.blocks.file.check_block(got, self.ring.slot_block(slot), offset)?;
                done += 1;
                if began.is_some() && ended.is_none() {
                    clock.record_bracket(now - submitted);
                }
            }
            match (began, ended) {
                (None, _) if done >= turned => began = Some((done, now)),
                (Some((before, _)), None) if done >= before + timed => ended = Some((done, now)),
                _ => {}
            }
        }
        // Enough reads were submitted that the clock has started and stopped.
        let ((before, began), (done, ended)) = began.zip(ended).unwrap_or_default();
        Ok((done - before, ended - began))
    }
}

impl<R: ReadQueue> Subject for Queue<R> {
    fn run(&mut self, iterations: u64, clock: &Clock) -> Result<Ticks> {
        let before = self.reads;
        self.blocks.proof.begin_batch()?;
        let (read, ticks) = self.time_reads(blocks_for_batch(iterations, self.depth), clock)?;
        let (last, _) = self.submitted[0];
        self.blocks.prove_batch(self.reads - before, last)?;
        Ok(share_of_time(ticks, iterations, read))
    }
}

/// The state that the threads share for one batch.
struct Batch {
    scale: ClockScale,
    offsets: Vec<u64>,
    /// Completions before the clock starts.
    turned: u64,
    /// Completions while the clock runs.
    timed: u64,
    /// The next number to be taken.
    next: AtomicU64,
    done: AtomicU64,
    began: OnceLock<Ticks>,
    ended: OnceLock<Ticks>,
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
pub(super) fn threads_set_up(depth: usize) -> SetUp {
    set_up(move |place| {
        let blocks = blocks_of_file(place, Pattern::Random, BLOCK)?;
        let workers = (0..depth).map(|_| Worker::start(blocks.file.file())).collect::<Result<_>>()?;
        Ok(Threads { blocks, workers })
    })
}

impl Worker {
    /// Starts a thread that reads the blocks of each batch that it is sent.
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
        // The thread inherits the CPU of the measuring thread.
        let builder = std::thread::Builder::new().stack_size(256 << 10);
        let thread = builder.spawn(life).map_err(refused("clone of a thread that reads (`ulimit -u`)"))?;
        Ok(Self { batches: Some(batches), ended, thread: Some(thread) })
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        drop(self.batches.take());
        if let Some(thread) = self.thread.take() {
            // If the thread panicked, its batch has failed already.
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
        let submitted = clock.start();
        let got = file.read_at(buffer, offset);
        let now = clock.stop();
        let done = batch.done.fetch_add(1, SeqCst) + 1;
        // Each number of completions occurs once, so neither cell is set twice.
        if done == batch.turned {
            let _ = batch.began.set(now);
        } else if done == batch.turned + batch.timed {
            let _ = batch.ended.set(now);
        }
        if done > batch.turned && done <= batch.turned + batch.timed {
            own.push(now - submitted);
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
    /// A batch of `depth` reads before the timed ones, `timed` reads, and `depth` - 1 after them, where `depth` is the number of threads.
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
        Ok(share_of_time(*ended - *began, iterations, batch.timed))
    }
}

fn thread_ended_error() -> Error {
    Error::Disproved("a thread that reads has ended: it panicked".into())
}

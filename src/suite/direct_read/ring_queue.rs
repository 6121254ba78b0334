//! Several reads in flight with one io_uring or io_submit(2), whose queue is full while it is timed.

use super::{BLOCK, blocks_for_batch, blocks_of_file, share_of_time};
use crate::case::{SetUp, Subject, set_up};
use crate::clock::{Clock, Ticks};
use crate::error::Result;
use crate::kit::blocks::{Blocks, Pattern};
use crate::kit::in_flight::Moment;
use std::fs::File;

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
    submitted: Vec<(u64, Moment)>,
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
            self.submitted[slot] = (offset, Moment::read_before_submission(clock));
            *left -= 1;
            self.reads += 1;
        }
    }

    /// Replaces every read in the queue once untimed, reads at least `timed` blocks, then drains the queue.
    /// Returns the number of blocks that were read while the clock ran, and their time. The clock starts and stops
    /// at a completion.
    fn time_reads(&mut self, timed: u64, clock: &Clock) -> Result<(u64, Ticks)> {
        let depth = self.depth as u64;
        let turned = if depth == 1 { 0 } else { depth };
        let (mut left, mut done) = (turned + timed + 2 * (depth - 1), 0);
        let mut began = (turned == 0).then(|| (0, Moment::read_before_submission(clock)));
        let mut ended = None;
        while left > 0 || self.ring.in_flight() > 0 {
            self.fill_queue(&mut left, clock);
            self.ring.submit_and_wait()?;
            let now = Moment::read_after_completion(clock);
            // One at a time, so that a new read is submitted for each: of a bunch the first would wait for the last.
            if let Some((slot, answer)) = self.ring.next_completion() {
                let (offset, submitted) = self.submitted[slot];
                let got = usize::try_from(answer).map_err(|_| std::io::Error::from_raw_os_error(-answer));
                self.blocks.file.check_block(got, self.ring.slot_block(slot), offset)?;
                done += 1;
                if began.is_some() && ended.is_none() {
                    clock.record_bracket(now.since(submitted));
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
        Ok((done - before, ended.since(began)))
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

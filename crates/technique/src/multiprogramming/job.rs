//! A job that pages: it reads random pages of a file of its own, computes, waits, and times its page-ins.

use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::Duration;
use syscost_platform::error::Result;
use syscost_platform::evictable::Evictable;
use syscost_platform::region::Order;
use syscost_platform::shared::Words;
use syscost_platform::{arch, cpu, process, time};
use syscost_statistic::Random;

/// The parameters of a job.
#[derive(Clone, Copy, Debug)]
pub struct Job {
    /// Size of its file, whose pages are read with equal probability, bytes.
    pub bytes: usize,
    /// Page reads in a transaction.
    pub touches: u32,
    /// Iterations of a register loop after each read.
    pub turns: u64,
    /// Mean wait after a transaction, as for a terminal or a device other than the paging one.
    pub wait: Duration,
}

/// A read that took longer may have been a page-in, and the count of major faults decides. An ordinary read takes a
/// hundredth of this.
const SLOW_NS: u64 = 4_000;
/// A read that took longer was interrupted by a suspension.
const SUSPENDED_NS: u64 = 100_000_000;

/// The counts of a job in shared memory. They wrap around.
#[derive(Clone, Copy)]
pub(super) struct Account<'a> {
    /// 0 until the job may begin.
    pub(super) may_begin: &'a AtomicU32,
    pub(super) touches: &'a AtomicU32,
    /// Page-ins, and their time in nanoseconds.
    pub(super) page_ins: &'a AtomicU32,
    pub(super) nanoseconds: &'a AtomicU32,
}

impl<'a> Account<'a> {
    /// The most jobs, by the size of the shared page.
    pub(super) const MOST: usize = syscost_platform::shared::COUNT / 4;

    pub(super) fn new(words: &'a Words, job: usize) -> Self {
        let word = |at: usize| &words[4 * job + at].value;
        Self { may_begin: word(0), touches: word(1), page_ins: word(2), nanoseconds: word(3) }
    }
}

/// Makes the file of a job and evicts it from the page cache: its pages are charged to the first process that reads
/// them.
///
/// # Errors
/// [`Error::Missing`](crate::Error::Missing) where the file cannot be evicted.
pub(super) fn make_job_file(directory: &Path, job: &Job) -> Result<Evictable> {
    let mut file = Evictable::new(directory, job.bytes)?;
    file.evict()?;
    // No read-ahead.
    file.region().advise_order(Order::Random)?;
    Ok(file)
}

/// Runs a job for ever, in a process of its own.
pub(super) fn run_job(job: &Job, file: &Evictable, account: Account<'_>, on: usize, seed: u64) {
    while account.may_begin.load(Relaxed) == 0 {
        std::thread::sleep(Duration::from_millis(1));
    }
    if cpu::pin_thread(on).is_err() {
        return;
    }
    let (region, mut random) = (file.region(), Random::new(seed));
    let mut faults = major_faults();
    loop {
        for _ in 0..job.touches {
            let page = random.number_below(region.page_count());
            let begun = time::clock_gettime_ns(libc::CLOCK_MONOTONIC);
            std::hint::black_box(region.read_first_byte(page));
            let took = time::clock_gettime_ns(libc::CLOCK_MONOTONIC) - begun;
            if took > SLOW_NS {
                let now = major_faults();
                if now > faults && took < SUSPENDED_NS {
                    account.page_ins.fetch_add(1, Relaxed);
                    account.nanoseconds.fetch_add(took as u32, Relaxed);
                }
                faults = now;
            }
            arch::register_loop(job.turns);
        }
        account.touches.fetch_add(job.touches, Relaxed);
        if !job.wait.is_zero() {
            std::thread::sleep(job.wait.mul_f64(2.0 * random.number_below(1000) as f64 / 1000.0));
        }
    }
}

fn major_faults() -> i64 {
    process::thread_usage().map_or(0, |usage| usage.major_page_faults())
}

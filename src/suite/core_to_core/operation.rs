//! One thread on each CPU. Two at a time send a cache line to each other and back, and time it themselves.

use crate::error::{Error, Result};
use crate::kit::ipc::{Channel, PolledWord};
use crate::platform::futex::{Reach, wait, wait_until, wake};
use crate::platform::partner::{Class, Kind, Partner, Task};
use crate::platform::shared::Words;
use crate::platform::time;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

/// Indices into the threads' shared page.
mod word {
    /// The number of the batch. Threads without work sleep on this word.
    pub const TURN: usize = 0;
    /// The thread that sends first and times, plus one.
    pub const FIRST: usize = 1;
    /// The thread that answers, plus one.
    pub const SECOND: usize = 2;
    pub const ROUND_TRIPS: usize = 3;
    /// The duration, ns.
    pub const TOOK: usize = 4;
    /// Threads of the pair that have finished.
    pub const DONE: usize = 5;
}

/// Round trips of a batch at most: their time in nanoseconds fits into a word.
const MOST: u64 = 1 << 20;
/// A batch that takes longer hangs.
const PATIENCE: Duration = Duration::from_secs(5);

/// The threads and their shared memory.
pub struct LineThreads {
    partners: Vec<Partner>,
    cpus: Vec<usize>,
    page: Arc<Words>,
}

/// At most `most` of these CPUs, evenly spread.
pub fn spread(mut cpus: Vec<usize>, most: usize) -> Vec<usize> {
    cpus.sort_unstable();
    let (all, most) = (cpus.len(), most.min(cpus.len()));
    (0..most).map(|i| cpus[i * (all - 1) / (most - 1).max(1)]).collect()
}

impl LineThreads {
    /// Starts a sleeping thread on each of these CPUs.
    ///
    /// # Errors
    /// The kernel refuses a thread or the shared page.
    pub fn start(cpus: &[usize]) -> Result<Self> {
        let page = Arc::new(Words::new()?);
        let channels = Arc::new(PolledWord::pair(Path::new(""))?);
        let start = |(index, &cpu): (usize, &usize)| {
            let (page, channels, nudged) = (Arc::clone(&page), Arc::clone(&channels), Arc::clone(&page));
            let mut seen = 0;
            let step = move || {
                wait(&page[word::TURN].value, seen, Reach::Private);
                let turn = page[word::TURN].value.load(SeqCst);
                if turn != seen {
                    seen = turn;
                    work(&page, &channels, index as u32 + 1);
                }
                0
            };
            let nudge = move || {
                nudged[word::FIRST].value.store(0, SeqCst);
                nudged[word::SECOND].value.store(0, SeqCst);
                begin(&nudged);
            };
            Partner::start(Kind::Thread, (cpu, Class::Ordinary), step, nudge)
        };
        let partners = cpus.iter().enumerate().map(start).collect::<Result<_>>()?;
        Ok(Self { partners, cpus: cpus.to_vec(), page })
    }

    /// Their CPUs.
    pub fn cpus(&self) -> &[usize] {
        &self.cpus
    }

    /// The threads, for reports.
    pub fn tasks(&self) -> Vec<Task> {
        self.partners.iter().map(Partner::task).collect()
    }

    /// Every two of them, by their indices.
    pub fn pairs(&self) -> Vec<(usize, usize)> {
        let count = self.cpus.len();
        (0..count).flat_map(|a| (a + 1..count).map(move |b| (a, b))).collect()
    }

    /// Round trips between two of the threads; returns their duration, ns.
    ///
    /// # Errors
    /// [`Error::Disturbed`] where the line does not come back.
    pub fn round_trips(&mut self, pair: (usize, usize), round_trips: u64) -> Result<u64> {
        let mut sum = 0;
        let mut left = round_trips;
        while left > 0 {
            let batch = left.min(MOST);
            sum += self.batch(pair, batch)?;
            left -= batch;
        }
        Ok(sum)
    }

    fn batch(&mut self, (first, second): (usize, usize), round_trips: u64) -> Result<u64> {
        let orders = [(word::FIRST, first as u32 + 1), (word::SECOND, second as u32 + 1)];
        let orders = orders.into_iter().chain([(word::DONE, 0), (word::ROUND_TRIPS, round_trips as u32)]);
        orders.for_each(|(at, value)| self.page[at].value.store(value, SeqCst));
        begin(&self.page);
        let deadline = Duration::from_nanos(time::clock_gettime_ns(libc::CLOCK_MONOTONIC)) + PATIENCE;
        loop {
            let done = self.page[word::DONE].value.load(SeqCst);
            if done == 2 {
                return Ok(u64::from(self.page[word::TOOK].value.load(SeqCst)));
            }
            // It sleeps until both have finished: one of them may need this CPU all the time.
            if wait_until(&self.page[word::DONE].value, done, deadline) == -i64::from(libc::ETIMEDOUT) {
                let cpus = [self.cpus[first], self.cpus[second]];
                return Err(Error::Disturbed(format!("CPUs {cpus:?}: the line has not come back for 5 s")));
            }
        }
    }
}

fn begin(page: &Words) {
    page[word::TURN].value.fetch_add(1, SeqCst);
    // Each call wakes one sleeper; a thread that is not asleep yet will see the new number.
    while wake(&page[word::TURN].value, Reach::Private) > 0 {}
}

fn work(page: &Words, channels: &[PolledWord; 2], own: u32) {
    let round_trips = page[word::ROUND_TRIPS].value.load(SeqCst);
    let [there, back] = channels;
    if page[word::FIRST].value.load(SeqCst) == own {
        // The first round trip shows that the other is awake, and is not counted.
        let mut lowest = there.send().min(back.receive());
        let start = time::monotonic_raw_ns();
        for _ in 0..round_trips {
            lowest = lowest.min(there.send()).min(back.receive());
        }
        let took = time::monotonic_raw_ns() - start;
        page[word::TOOK].value.store(took.min(u64::from(u32::MAX)) as u32, SeqCst);
        finish(page, lowest);
    } else if page[word::SECOND].value.load(SeqCst) == own {
        let trip = || there.receive().min(back.send());
        let lowest = (0..=round_trips).map(|_| trip()).min().unwrap_or(0);
        finish(page, lowest);
    }
}

/// Counts a thread that has finished; the second of the two wakes who waits for both.
fn finish(page: &Words, lowest: i64) {
    let done = &page[word::DONE].value;
    if lowest == 0 && done.fetch_add(1, SeqCst) == 1 {
        wake(done, Reach::Private);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::platform::cpu;

    #[test]
    fn a_few_of_many_cpus_are_spread_over_all() {
        assert_eq!(spread((0..64).collect(), 4), [0, 21, 42, 63]);
        assert_eq!(spread(vec![3, 1], 4), [1, 3]);
        assert_eq!(spread(vec![7], 4), [7]);
    }

    #[test]
    fn every_pair_comes_back() {
        let cpus = spread(cpu::allowed(), 3);
        if cpus.len() < 2 {
            println!("skipped: one CPU");
            return;
        }
        let mut threads = LineThreads::start(&cpus).expect("started");
        for pair in threads.pairs() {
            assert!(threads.round_trips(pair, 100).expect("came back") > 0);
        }
    }
}

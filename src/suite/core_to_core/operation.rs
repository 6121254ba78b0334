//! Threads, one a CPU, of which two at a time send a cache line to and fro and time it themselves.

use crate::kit::ipc::{Line, Toggle};
use crate::platform::futex::{Reach, wait, wake};
use crate::platform::partner::{Class, Kind, Partner, Task};
use crate::platform::shared::Words;
use crate::platform::time;
use crate::{Error, Result};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::time::{Duration, Instant};

/// The threads' common page.
mod word {
    /// Whoever is not asked sleeps on this one; it counts the pairs that were sent to work.
    pub const TURN: usize = 0;
    /// Who sends first and times, plus one …
    pub const FIRST: usize = 1;
    /// … and who answers, plus one.
    pub const SECOND: usize = 2;
    pub const ROUND_TRIPS: usize = 3;
    /// Nanoseconds that they took.
    pub const TOOK: usize = 4;
    /// How many of the two have finished.
    pub const DONE: usize = 5;
}

/// Round trips of one sending out: their time in nanoseconds fits into a word.
const MOST: u64 = 1 << 20;
/// A pair that takes longer hangs.
const PATIENCE: Duration = Duration::from_secs(5);

/// The threads.
pub struct Bouncers {
    partners: Vec<Partner>,
    cpus: Vec<usize>,
    page: Arc<Words>,
}

/// At most so many of these, evenly spread.
pub fn spread(mut cpus: Vec<usize>, most: usize) -> Vec<usize> {
    cpus.sort_unstable();
    let (all, most) = (cpus.len(), most.min(cpus.len()));
    (0..most).map(|i| cpus[i * (all - 1) / (most - 1).max(1)]).collect()
}

impl Bouncers {
    /// Starts one on each of these CPUs; they sleep until two of them are sent to work.
    pub fn start(cpus: &[usize]) -> Result<Self> {
        let page = Arc::new(Words::new()?);
        let lines = Arc::new(Toggle::both(Path::new(""))?);
        let start = |(index, &cpu): (usize, &usize)| {
            let (page, lines, nudged) = (Arc::clone(&page), Arc::clone(&lines), Arc::clone(&page));
            let mut seen = 0;
            let step = move || {
                wait(&page[word::TURN].value, seen, Reach::Private);
                let turn = page[word::TURN].value.load(SeqCst);
                if turn != seen {
                    seen = turn;
                    work(&page, &lines, index as u32 + 1);
                }
                0
            };
            let nudge = move || {
                nudged[word::FIRST].value.store(0, SeqCst);
                nudged[word::SECOND].value.store(0, SeqCst);
                send_out(&nudged);
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

    /// What others must know to watch them.
    pub fn tasks(&self) -> Vec<Task> {
        self.partners.iter().map(Partner::task).collect()
    }

    /// Every two of them, by their place in the list.
    pub fn pairs(&self) -> Vec<(usize, usize)> {
        let count = self.cpus.len();
        (0..count).flat_map(|a| (a + 1..count).map(move |b| (a, b))).collect()
    }

    /// Sends two of them to work; answers the nanoseconds that their round trips took.
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
        send_out(&self.page);
        let begun = Instant::now();
        loop {
            let done = self.page[word::DONE].value.load(SeqCst);
            if done == 2 {
                return Ok(u64::from(self.page[word::TOOK].value.load(SeqCst)));
            }
            if begun.elapsed() > PATIENCE {
                let cpus = [self.cpus[first], self.cpus[second]];
                return Err(Error::Usage(format!("CPUs {cpus:?}: the line has not come back for 5 s")));
            }
            // One of the two may need this very CPU.
            std::thread::sleep(Duration::from_micros(20));
        }
    }
}

fn send_out(page: &Words) {
    page[word::TURN].value.fetch_add(1, SeqCst);
    // Each wake is one sleeper; whoever did not sleep yet will not.
    while wake(&page[word::TURN].value, Reach::Private) > 0 {}
}

fn work(page: &Words, lines: &[Toggle; 2], own: u32) {
    let round_trips = page[word::ROUND_TRIPS].value.load(SeqCst);
    let [there, back] = lines;
    if page[word::FIRST].value.load(SeqCst) == own {
        // The first one shows that the other is awake, and is not counted.
        let mut lowest = there.send().min(back.receive());
        let start = time::monotonic_raw_ns();
        for _ in 0..round_trips {
            lowest = lowest.min(there.send()).min(back.receive());
        }
        let took = time::monotonic_raw_ns() - start;
        page[word::TOOK].value.store(took.min(u64::from(u32::MAX)) as u32, SeqCst);
        page[word::DONE].value.fetch_add(u32::from(lowest == 0), SeqCst);
    } else if page[word::SECOND].value.load(SeqCst) == own {
        let trip = || there.receive().min(back.send());
        let lowest = (0..=round_trips).map(|_| trip()).min().unwrap_or(0);
        page[word::DONE].value.fetch_add(u32::from(lowest == 0), SeqCst);
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
        let mut bouncers = Bouncers::start(&cpus).expect("started");
        for pair in bouncers.pairs() {
            assert!(bouncers.round_trips(pair, 100).expect("came back") > 0);
        }
    }
}

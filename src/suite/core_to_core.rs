//! # What is timed
//! A cache line that moves from one core to another and back: two threads poll one word, and each waits for the value
//! that the other writes. `neighbour` is the measuring CPU and the highest other. In `every-pair` all pairs of CPUs do
//! that in turn, each at least 64 times a batch; fewer iterations are charged their share of the time. The figure is the
//! mean of all pairs, and the matrix below the table shows each pair.
//!
//! # What is not
//! The start of the threads. In `every-pair`, the distribution of the work: each pair is timed by one of its own
//! threads.
//!
//! # How we know
//! Every thread is pinned and must have been seen on its CPU only. Every round trip is counted by both ends, and a line
//! that does not come back within seconds ends the case. Time must grow in proportion to the number of round trips.
//!
//! # What fools it
//! Two hyperthreads of one core share its first-level cache: their line does not move, and the matrix shows that. In a
//! guest CPU numbers say nothing about cores unless the host pins them, and may change during the run. At default scale
//! the matrix has at most four CPUs, spread over those allowed; at full scale all.
//!
//! # Reading the number
//! `journey` below the table, and each figure of the matrix, is half a round trip. It is some 20 ns within a core, 40 to
//! 60 on a mesh, and above 100 from socket to socket.
//!
//! # Source
//! multichase's `pingpong` and N. Viennot's core-to-core-latency; the `line ping-pong` row of the development machine's
//! own probe, 107 to 118 ns for a round trip.

use crate::kit::contract::*;
use crate::kit::ipc::{Channel, PolledWord};
use crate::kit::parallel::all_partners_stayed;
use crate::kit::placement::Placement;
use crate::kit::round_trip::round_trip_set_up;
use crate::platform::futex::{Reach, wait, wait_until, wake, wake_all};
use crate::platform::partner::{Class, Kind, Partner, Task};
use crate::platform::shared::Words;
use crate::platform::time;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

pub const GROUP: Group = Group::new("core_to_core", include_str!("core_to_core.rs"), cases)
    .version(3)
    .headlines(&[Headline::new(118, "neighbour", "a cache line there and back")]);

fn cases() -> Vec<Case> {
    let trip = round_trip_set_up("polling", Kind::Thread, PolledWord::pair, Placement::Cross);
    let pair = Case::new("neighbour", "a cache line to another CPU and back", trip);
    let title = "a cache line to another CPU and back, the mean of all pairs";
    // The measuring thread only distributes the work, and waits while one of the pair has its CPU.
    let every = Case::new("every-pair", title, set_up(EveryPair::start)).own_tasks(OwnTasks::Elsewhere);
    // The mean is reported, and there may be thousands of pairs, each of which does [`FEWEST`] round trips.
    let cases = [pair.derived_figure("journey", Rule::OfCost(0.5)), every.timed_share(0.0)];
    let claimed = |case: Case| {
        case.need(PINNED)
            .need(TWO_CPUS)
            .claim(Claim::Linear)
            .claim(Claim::Counted(all_partners_stayed))
            .predict(330.0, 10.0, "a line fetched from another core's cache, twice")
    };
    cases.map(claimed).into()
}

/// The least round trips of a pair, so that the two clock readings of its thread add little.
const FEWEST: u64 = 64;

/// One thread on each CPU, two of which work at a time.
struct EveryPair {
    threads: LineThreads,
    /// For each pair, half the round trip of each batch, ns.
    figures: Vec<Vec<f64>>,
}

impl EveryPair {
    /// Starts the threads, on at most 2 CPUs at smoke scale and 4 at default scale.
    fn start(place: &Place) -> Result<Self> {
        let most = match place.scale {
            Scale::Smoke => 2,
            Scale::Default => 4,
            Scale::Full => usize::MAX,
        };
        let cpus: Vec<_> = place.cpus.here.into_iter().chain(place.cpus.others.iter().copied()).collect();
        let threads = LineThreads::start(&spread_evenly(cpus, most))?;
        let figures = vec![Vec::new(); threads.pairs().len()];
        Ok(Self { threads, figures })
    }
}

impl Subject for EveryPair {
    fn run(&mut self, iterations: u64, clock: &Clock) -> Result<Ticks> {
        let pairs = self.threads.pairs();
        let each = iterations.div_ceil(pairs.len() as u64).max(FEWEST);
        let mut sum = 0;
        for (&pair, figures) in pairs.iter().zip(&mut self.figures) {
            let ns = self.threads.time_round_trips(pair, each)?;
            figures.push(ns as f64 / each as f64 / 2.0);
            sum += ns;
        }
        let mean_ns = sum as f64 / (each * pairs.len() as u64) as f64;
        Ok(Ticks((mean_ns * iterations as f64 * clock.hz() / 1e9) as u64))
    }

    fn report(&self) -> Report {
        let pairs = self.threads.pairs().into_iter().zip(self.figures.clone());
        let matrix = Matrix { cpus: self.threads.cpus().to_vec(), figures: pairs.collect() };
        Report { partners: self.threads.tasks(), matrix: Some(matrix), ..Report::default() }
    }
}

/// Indices into the threads' shared page.
mod word {
    /// The [`Order`](super::Order) of the batch. Threads without work sleep on this word.
    pub const ORDER: usize = 0;
    /// Round trips of the batch. It changes only after both threads of the last pair have finished.
    pub const ROUND_TRIPS: usize = 1;
    /// The duration, ns.
    pub const TOOK: usize = 2;
    /// Threads of the pair that have finished.
    pub const DONE: usize = 3;
}

/// The two threads of a batch, in one word: the low bits of the batch's number, the thread that sends first and times, the one that
/// answers. Were these separate words, a thread that wakes late for a batch in which it has no part could read the next
/// batch's pair before its number, do the work, and do it again when the number changes.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Order(u32);

impl Order {
    /// Bits of a thread's index.
    const BITS: u32 = 10;
    /// The first index that is no thread's.
    const NO_THREAD: usize = (1 << Self::BITS) - 1;

    /// The order that follows this one.
    fn next(self, (first, second): (usize, usize)) -> Self {
        let batch = (self.0 >> (2 * Self::BITS)) + 1;
        Self(batch << (2 * Self::BITS) | (first as u32) << Self::BITS | second as u32)
    }

    /// The indices of the two threads.
    fn pair(self) -> (usize, usize) {
        ((self.0 >> Self::BITS) as usize & Self::NO_THREAD, self.0 as usize & Self::NO_THREAD)
    }
}

/// The most round trips of a batch: their time in nanoseconds must fit into a word.
const MOST_ROUND_TRIPS: u64 = 1 << 20;
/// Time after which a batch counts as hung.
const PATIENCE: Duration = Duration::from_secs(5);

/// The threads and their shared memory.
pub struct LineThreads {
    partners: Vec<Partner>,
    cpus: Vec<usize>,
    page: Arc<Words>,
}

/// At most `most` of these CPUs, evenly spread, and no more than an order can name.
pub fn spread_evenly(mut cpus: Vec<usize>, most: usize) -> Vec<usize> {
    cpus.sort_unstable();
    let (all, most) = (cpus.len(), most.min(cpus.len()).min(Order::NO_THREAD));
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
            let mut seen = Order(0);
            let step = move || {
                wait(&page[word::ORDER].value, seen.0, Reach::Private);
                let order = Order(page[word::ORDER].value.load(SeqCst));
                if order != seen {
                    seen = order;
                    run_own_part(&page, &channels, order.pair(), index);
                }
                0
            };
            let nudge = move || publish_order(&nudged, (Order::NO_THREAD, Order::NO_THREAD));
            Partner::start(Kind::Thread, (cpu, Class::Ordinary), step, nudge)
        };
        let partners = cpus.iter().enumerate().map(start).collect::<Result<_>>()?;
        Ok(Self { partners, cpus: cpus.to_vec(), page })
    }

    /// The CPUs of the threads.
    pub fn cpus(&self) -> &[usize] {
        &self.cpus
    }

    /// The threads, for reports.
    pub fn tasks(&self) -> Vec<Task> {
        self.partners.iter().map(Partner::task).collect()
    }

    /// All pairs of threads, by their indices.
    pub fn pairs(&self) -> Vec<(usize, usize)> {
        let count = self.cpus.len();
        (0..count).flat_map(|a| (a + 1..count).map(move |b| (a, b))).collect()
    }

    /// Makes round trips between two of the threads and returns their duration, ns.
    ///
    /// # Errors
    /// [`Error::Disturbed`] where the line does not come back.
    pub fn time_round_trips(&mut self, pair: (usize, usize), round_trips: u64) -> Result<u64> {
        let mut sum = 0;
        let mut left = round_trips;
        while left > 0 {
            let batch = left.min(MOST_ROUND_TRIPS);
            sum += self.time_batch(pair, batch)?;
            left -= batch;
        }
        Ok(sum)
    }

    /// Makes at most [`MOST_ROUND_TRIPS`] round trips, and returns their duration, ns.
    fn time_batch(&mut self, (first, second): (usize, usize), round_trips: u64) -> Result<u64> {
        self.page[word::DONE].value.store(0, SeqCst);
        self.page[word::ROUND_TRIPS].value.store(round_trips as u32, SeqCst);
        publish_order(&self.page, (first, second));
        let deadline = Duration::from_nanos(time::clock_gettime_ns(libc::CLOCK_MONOTONIC)) + PATIENCE;
        loop {
            let done = self.page[word::DONE].value.load(SeqCst);
            if done == 2 {
                return Ok(u64::from(self.page[word::TOOK].value.load(SeqCst)));
            }
            // This thread sleeps until both have finished, since one of them may need this CPU all the time.
            if wait_until(&self.page[word::DONE].value, done, deadline) == -i64::from(libc::ETIMEDOUT) {
                let cpus = [self.cpus[first], self.cpus[second]];
                return Err(Error::Disturbed(format!("CPUs {cpus:?}: the line has not come back for 5 s")));
            }
        }
    }
}

/// Stores the next order, for this pair, and wakes the threads.
fn publish_order(page: &Words, pair: (usize, usize)) {
    let word = &page[word::ORDER].value;
    // Only the measuring thread writes this word.
    word.store(Order(word.load(SeqCst)).next(pair).0, SeqCst);
    // A thread that is not asleep yet will see the new order.
    wake_all(word, Reach::Private);
}

/// Does the part of thread `own` in a batch, if the thread belongs to the pair.
fn run_own_part(page: &Words, channels: &[PolledWord; 2], (first, second): (usize, usize), own: usize) {
    let round_trips = page[word::ROUND_TRIPS].value.load(SeqCst);
    let [there, back] = channels;
    if first == own {
        let trip = || there.send().min(back.receive()) == 0;
        // The first round trip shows that the other is awake, and is not counted.
        if !trip() {
            return;
        }
        let start = time::monotonic_raw_ns();
        let all = (0..round_trips).all(|_| trip());
        let took = time::monotonic_raw_ns() - start;
        page[word::TOOK].value.store(took.min(u64::from(u32::MAX)) as u32, SeqCst);
        count_finished(page, all);
    } else if second == own {
        let trip = || there.receive().min(back.send()) == 0;
        count_finished(page, (0..=round_trips).all(|_| trip()));
    }
}

/// Counts a thread that has done `all` round trips; the second of the two wakes the thread that waits for both.
fn count_finished(page: &Words, all: bool) {
    let done = &page[word::DONE].value;
    if all && done.fetch_add(1, SeqCst) == 1 {
        wake(done, Reach::Private);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kit::runnable::test_clock;
    use crate::platform::cpu;
    use crate::platform::testing::print_skipped;

    #[test]
    fn every_pair_has_its_round_trips_and_the_figure_is_their_mean() {
        let cpus = cpu::allowed_cpus();
        let [first, second, ..] = cpus[..] else {
            print_skipped("one CPU");
            return;
        };
        // Two threads that share a CPU need a time slice for each trip: their pair is slower than the two others.
        let threads = LineThreads::start(&[first, second, second]).expect("started");
        let mut every = EveryPair { figures: vec![Vec::new(); 3], threads };
        let clock = test_clock();
        for (batch, iterations) in [1, 200].into_iter().enumerate() {
            let batch_ns = clock.nanoseconds(every.run(iterations, &clock).expect("came back")).0;
            let each: Vec<_> = every.figures.iter().map(|figures| 2.0 * figures[batch]).collect();
            let mean_ns = each.iter().sum::<f64>() / 3.0;
            assert!((batch_ns / (mean_ns * iterations as f64) - 1.0).abs() < 0.01, "{batch_ns} {each:?}");
        }
    }

    #[test]
    fn a_few_of_many_cpus_are_spread_over_all() {
        assert_eq!(spread_evenly((0..64).collect(), 4), [0, 21, 42, 63]);
        assert_eq!(spread_evenly(vec![3, 1], 4), [1, 3]);
        assert_eq!(spread_evenly(vec![7], 4), [7]);
    }

    #[test]
    fn an_order_names_its_pair_and_differs_from_the_one_before() {
        let pairs = [(0, 1), (0, 1), (Order::NO_THREAD - 1, 0), (Order::NO_THREAD, Order::NO_THREAD), (5, 9)];
        let mut last = Order(0);
        // More batches than their number has bits for.
        for pair in pairs.into_iter().cycle().take(10_000) {
            let order = last.next(pair);
            assert_eq!(order.pair(), pair);
            assert_ne!(order, last);
            last = order;
        }
    }

    #[test]
    fn every_pair_comes_back() {
        let cpus = spread_evenly(cpu::allowed_cpus(), 4);
        if cpus.len() < 2 {
            print_skipped("one CPU");
            return;
        }
        let mut threads = LineThreads::start(&cpus).expect("started");
        // Repeated, since a thread may wake late for a batch in which it has no part.
        for pair in threads.pairs().into_iter().cycle().take(1_000) {
            assert!(threads.time_round_trips(pair, 1).expect("came back") > 0);
        }
    }
}

//! Events beside the time: batches of their own, behind the timed ones, in which perf events are counted.
//!
//! A counter slows the event that it counts: a fault, or a switch, calls it. So no counter is open while anything is timed, and
//! the counted batches are not timed. A count is of the measuring thread, of the partners of the case, and of the
//! children that either makes, over a whole batch, with what prepares and checks its operations.

use super::{CaseEnd, Trial};
use crate::clock::Clock;
use crate::error;
use crate::platform::allocation::{self, Counts};
use crate::platform::perf_event::{Counter, Event};
use crate::record::{ALLOCATED_BYTES, ALLOCATIONS, EventRate, Interval, PEAK_BYTES};
use crate::statistic::median_interval;

/// Batches for each event of an execution.
const BATCHES: usize = 3;

/// Why a count leaves something out.
const USER_SPACE: &str = "counted in user space only: perf_event_paranoid keeps the kernel's";

/// The counters of one event: of this thread, and of each partner.
struct Count {
    counters: Vec<Counter>,
}

impl Count {
    fn open(event: Event, partners: &[i32]) -> error::Result<Self> {
        let threads = std::iter::once(0).chain(partners.iter().copied());
        let counters =
            threads.map(|thread| Counter::open_with_children(event, thread)).collect::<error::Result<_>>()?;
        Ok(Self { counters })
    }

    fn read(&self) -> error::Result<Vec<u64>> {
        self.counters.iter().map(Counter::read).collect()
    }

    /// What all of them have counted since then.
    fn count_since(&self, before: &[u64]) -> error::Result<u64> {
        self.counters.iter().zip(before).map(|(counter, before)| counter.count_since(*before)).sum()
    }
}

impl Trial<'_> {
    /// Counts these events, each over batches as long as the last timed one. For an event that this machine does
    /// not have, the result is a sentence in place of a count.
    ///
    /// # Errors
    /// The subject fails.
    pub fn count_events(&mut self, events: &[Event]) -> Result<(), CaseEnd> {
        let iterations = self.samples.last().map_or(1, |sample| sample.iterations);
        // Single times of these batches are dropped.
        let unrecorded = Clock::with_scale(self.clock.scale());
        let partners: Vec<i32> =
            self.subject.report().partners.iter().map(|task| task.thread.as_raw()).collect();
        for event in events {
            let counted = match Count::open(*event, &partners) {
                Ok(count) => self.event_rate(&count, iterations, &unrecorded)?,
                Err(error) => (None, Some(event.refusal_message(&error))),
            };
            let (rate, remark) = counted;
            self.rates.push(EventRate { name: event.name.into(), rate, remark });
        }
        Ok(())
    }

    fn event_rate(
        &mut self,
        count: &Count,
        iterations: u64,
        clock: &Clock,
    ) -> Result<(Option<Interval>, Option<String>), CaseEnd> {
        let mut rates = [0.0; BATCHES];
        for rate in &mut rates {
            let before = match count.read() {
                Ok(before) => before,
                Err(error) => return Ok((None, Some(error.to_string()))),
            };
            self.subject.run(iterations, clock)?;
            match count.count_since(&before) {
                Ok(events) => *rate = events as f64 / iterations.max(1) as f64,
                // A counter that cannot be believed is no fault of the case.
                Err(error) => return Ok((None, Some(error.to_string()))),
            }
        }
        let is_partial = count.counters.iter().any(|counter| counter.user_space_only);
        Ok((Some(median_interval(&rates)), is_partial.then(|| USER_SPACE.into())))
    }
}

// Allocations an iteration, where the program declares an allocator that counts ([`syscost::alloc`](crate::alloc)): in
// batches of their own, behind the timed ones, of what stands in the clock's brackets.

/// Pairs of batches. All agree, unless the operation allocates at random or once in a while.
const PAIRS: usize = 3;
/// Iterations of the shorter batch of a pair; the longer one has twice as many. What a batch allocates whatever its length
/// cancels out. A fixed number, since the lengths of the samples differ from run to run.
const FEW: u64 = 16;

impl Trial<'_> {
    /// Counts the allocations of an iteration. Nothing is counted in a program without such an allocator.
    ///
    /// # Errors
    /// The subject fails.
    pub fn count_allocations(&mut self) -> Result<(), CaseEnd> {
        if !allocation::is_declared() {
            return Ok(());
        }
        let clock = self.clock.for_allocation_counting();
        let few = self.samples.last().map_or(FEW, |sample| sample.iterations.clamp(1, FEW));
        let mut counts = |iterations| -> Result<Counts, CaseEnd> {
            allocation::take_counts();
            self.subject.run(iterations, &clock)?;
            Ok(allocation::take_counts())
        };
        let one = counts(1)?;
        let (mut blocks, mut bytes) = ([0.0; PAIRS], [0.0; PAIRS]);
        for pair in 0..PAIRS {
            let (short, long) = (counts(few)?, counts(2 * few)?);
            let each = |more: u64, less: u64| more.saturating_sub(less) as f64 / few as f64;
            blocks[pair] = each(long.allocations, short.allocations);
            bytes[pair] = each(long.bytes, short.bytes);
        }
        self.rates.extend(match one.brackets {
            0 => vec![EventRate {
                name: ALLOCATIONS.into(),
                rate: None,
                remark: Some("allocations of an operation that measures its own time".into()),
            }],
            _ => {
                rates([median_interval(&blocks), median_interval(&bytes), Interval::exactly(one.peak as f64)])
            }
        });
        Ok(())
    }
}

fn rates(found: [Interval; 3]) -> Vec<EventRate> {
    let names = [ALLOCATIONS, ALLOCATED_BYTES, PEAK_BYTES].into_iter().zip(found);
    names.map(|(name, rate)| EventRate { name: name.into(), rate: Some(rate), remark: None }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use memmap2::MmapMut;

    #[test]
    fn faults_of_this_thread_and_of_its_children_are_counted() {
        let event = Event::from_name("minor-faults").expect("in the table");
        let Ok(count) = Count::open(event, &[]) else {
            println!("skipped: this kernel or sandbox refuses perf_event_open");
            return;
        };
        let touch = || {
            let mut memory = MmapMut::map_anon(64 * 4096).expect("mapped");
            memory.iter_mut().step_by(4096).for_each(|byte| *byte = 1);
        };
        let before = count.read().expect("read");
        touch();
        let own = count.count_since(&before).expect("read");
        let child = crate::platform::child::Child::start(touch).expect("forked");
        child.wait_for_success(std::time::Duration::from_secs(20)).expect("ended");
        let both = count.count_since(&before).expect("read");
        assert!(own >= 1 && both > own, "{own} {both}");
    }

    #[test]
    fn an_event_that_is_not_there_has_a_sentence() {
        let cycles = Event::from_name("cpu-cycles").expect("in the table");
        for (errno, words) in [
            (libc::ENOENT, "processor's PMU"),
            (libc::EACCES, "perf_event_paranoid"),
            (libc::EMFILE, "ulimit -n"),
        ] {
            let cause = std::io::Error::from_raw_os_error(errno);
            let sentence = cycles
                .refusal_message(&crate::error::Error::Kernel { call: "perf_event_open".into(), cause });
            assert!(sentence.contains(words), "{sentence}");
            assert_eq!(sentence.contains("PMU"), errno == libc::ENOENT, "{sentence}");
        }
    }
}

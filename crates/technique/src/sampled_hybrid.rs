//! A sampled hybrid monitor: the measured program keeps its state in interface registers, and another CPU reads them at
//! random times. Neither waits for the other.
//!
//! There are two sets of registers in shared memory. The program writes each new state into the older set, and then marks
//! this set as the latest. The monitor therefore nearly always reads a set that is not being written; both sets change during
//! a read only if the program writes two states meanwhile. Each set has a sequence number, which is odd during a write. The
//! monitor rejects a read if the number was odd or has changed, and reads again. The monitor writes nothing into the
//! registers, so that the program costs the same with a monitor and without one.
//!
//! ```
//! use syscost_technique::sampled_hybrid::InterfaceRegisters;
//!
//! # fn main() -> syscost_technique::Result<()> {
//! let registers = InterfaceRegisters::<2>::new()?;
//! registers.put([7, 8]);
//! assert_eq!(registers.read(), Some([7, 8]));
//! # Ok(())
//! # }
//! ```
//!
//! The share of samples in a state estimates the fraction of time in it (type C). States that are shorter than the time
//! between two samples are missed, and events are not counted; the tracing interfaces of [`super::hybrid`] count them.
//!
//! Source: Kraemer, slide 71; the pair of sets with numbers is the kernel's `seqcount_latch` (Documentation/locking/seqlock.rst).

use crate::io_overlap::exponential_gaps;
use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicU32, fence};
use std::time::Duration;
use syscost_platform::error::Result;
use syscost_platform::partner::{Class, Kind, Partner};
use syscost_platform::shared::{COUNT, Words};
use syscost_platform::sleep::{Nanosleep, RealTime, Sleep};
use syscost_platform::time::clock_gettime_ns;
use syscost_statistic::{Interval, proportion_interval};

/// Two sets of N registers of 32 bits each, in memory that forked children share. One thread may write, and any thread may
/// read.
pub struct InterfaceRegisters<const N: usize>(Words);

/// The word that holds the index of the latest set, 0 or 1.
const LATEST: usize = 0;
/// The number of reads after which a monitor gives up, because the program writes faster than the monitor reads.
const TRIES: u32 = 64;

impl<const N: usize> InterfaceRegisters<N> {
    /// Registers that all hold zero.
    ///
    /// # Errors
    /// An error where the kernel refuses the mapping.
    pub fn new() -> Result<Self> {
        const { assert!(2 * (1 + N) < COUNT, "both sets fit into a page of words") };
        Words::new().map(Self)
    }

    fn latest(&self) -> &AtomicU32 {
        &self.0[LATEST].value
    }

    /// The sequence number of a set. The registers of the set follow it.
    fn set_number(&self, set: usize) -> &AtomicU32 {
        &self.0[1 + set * (1 + N)].value
    }

    fn register(&self, set: usize, at: usize) -> &AtomicU32 {
        &self.0[2 + set * (1 + N) + at].value
    }

    /// Writes new values into the older set, and marks it as the latest. It never waits.
    #[inline]
    pub fn put(&self, values: [u32; N]) {
        let set = 1 - (self.latest().load(Relaxed) as usize & 1);
        let number = self.set_number(set);
        let before = number.load(Relaxed);
        number.store(before.wrapping_add(1), Relaxed);
        // A reader that sees one of the new values also sees the odd sequence number.
        fence(Release);
        for (at, value) in values.into_iter().enumerate() {
            self.register(set, at).store(value, Relaxed);
        }
        number.store(before.wrapping_add(2), Release);
        self.latest().store(set as u32, Release);
    }

    /// The values of one write: the latest at the time of the call, or a newer one. `None` if the sets changed during each of
    /// 64 reads.
    #[inline]
    pub fn read(&self) -> Option<[u32; N]> {
        (0..TRIES).find_map(|_| self.read_once())
    }

    /// One try to read; `None` if the set was written meanwhile.
    fn read_once(&self) -> Option<[u32; N]> {
        let set = self.latest().load(Acquire) as usize & 1;
        let number = self.set_number(set);
        let before = number.load(Acquire);
        let values = std::array::from_fn(|at| self.register(set, at).load(Relaxed));
        // The values are read before the sequence number is read again.
        fence(Acquire);
        (before % 2 == 0 && number.load(Relaxed) == before).then_some(values)
    }
}

/// The number of states that a monitor counts.
pub const STATES: usize = 8;

/// Words of the monitor's page, behind its counts of samples in each state. Only the monitor's thread writes them.
const REJECTED: usize = STATES;
const MISSED_US: usize = STATES + 1;

/// The delay after which a sample counts as late, ns. It is twice the time in which a thread that gets a CPU wakes up.
const LATE_NS: u64 = 200_000;

/// A monitor on another CPU, which reads the registers at random times. It ends when this value is dropped.
pub struct SampledObserver {
    partner: Partner,
    counts: Arc<Words>,
}

/// The samples so far. Each count wraps around after 2³² samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StateSamples {
    /// The number of all samples.
    pub count: u64,
    /// The number of samples that found each state.
    pub in_state: [u64; STATES],
    /// The number of reads that were rejected, because the registers changed during each of 64 tries.
    pub rejected: u64,
    /// The total delay of late samples, caused by other tasks on the monitor's CPU. The estimate misses the program's states
    /// during that time.
    pub missed: Duration,
}

impl StateSamples {
    /// The fraction of time in a state, with its binomial interval of 95 %.
    pub fn fraction_in_state(&self, state: usize) -> Interval {
        proportion_interval(self.in_state.get(state).copied().unwrap_or(0), self.count)
    }
}

impl SampledObserver {
    /// Starts a monitor on a CPU, in the real-time class if that is allowed. It reads the first register, modulo 8, as the
    /// current state, at exponentially distributed times with the mean `period`.
    ///
    /// # Errors
    /// An error where the kernel refuses the thread or the CPU.
    pub fn start<const N: usize>(
        cpu: usize,
        registers: Arc<InterfaceRegisters<N>>,
        period: Duration,
        seed: u64,
    ) -> Result<Self> {
        let counts = Arc::new(Words::new()?);
        let theirs = Arc::clone(&counts);
        let mut gap = exponential_gaps(period, seed);
        let mut class = None;
        let add = |word: &AtomicU32, count: u32| word.store(word.load(Relaxed).wrapping_add(count), Release);
        let look = move || {
            // Without the privilege for the real-time class, the missed time shows the effect.
            class.get_or_insert_with(|| RealTime::enter(1).ok());
            let due = clock_gettime_ns(libc::CLOCK_MONOTONIC) + gap();
            Nanosleep.sleep_until(Duration::from_nanos(due));
            let late = clock_gettime_ns(libc::CLOCK_MONOTONIC).saturating_sub(due);
            if late > LATE_NS {
                add(&theirs[MISSED_US].value, (late / 1000) as u32);
            }
            match registers.read() {
                Some(values) => add(&theirs[values[0] as usize % STATES].value, 1),
                None => add(&theirs[REJECTED].value, 1),
            }
            0
        };
        let partner = Partner::start(Kind::Thread, (cpu, Class::Ordinary), look, || ())?;
        Ok(Self { partner, counts })
    }

    /// The samples so far.
    ///
    /// # Errors
    /// [`Error::Disproved`](crate::Error::Disproved) if the monitor has ended.
    pub fn samples(&mut self) -> Result<StateSamples> {
        if let Some(fate) = self.partner.fate() {
            return Err(fate.into_error(""));
        }
        let count = |at: usize| u64::from(self.counts[at].value.load(Acquire));
        let in_state: [u64; STATES] = std::array::from_fn(count);
        Ok(StateSamples {
            count: in_state.iter().sum(),
            in_state,
            rejected: count(REJECTED),
            missed: Duration::from_micros(count(MISSED_US)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state_measure::FractionOfTime;
    use std::sync::atomic::AtomicBool;
    use std::time::Instant;
    use syscost_platform::testing::print_skipped;
    use syscost_platform::{arch, cpu};

    const REGISTERS: usize = 8;

    /// Registers whose values belong together: a number and its multiples.
    fn values_of(number: u32) -> [u32; REGISTERS] {
        std::array::from_fn(|at| number.wrapping_mul(2 * at as u32 + 1))
    }

    /// Reads while another thread writes as fast as it can. Returns the number of accepted reads, and the number of those
    /// with values of different writes.
    fn read_beside_a_writer(
        read: impl Fn(&InterfaceRegisters<REGISTERS>) -> Option<[u32; REGISTERS]>,
    ) -> [u64; 2] {
        let (registers, ended) = (InterfaceRegisters::new().expect("a page"), AtomicBool::new(false));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                (0..).take_while(|_| !ended.load(Relaxed)).for_each(|n| registers.put(values_of(n)))
            });
            let (begun, mut counts) = (Instant::now(), [0; 2]);
            while begun.elapsed() < Duration::from_millis(300) {
                for values in (0..1000).filter_map(|_| read(&registers)) {
                    counts[0] += 1;
                    counts[1] += u64::from(values != values_of(values[0]));
                }
            }
            ended.store(true, Relaxed);
            counts
        })
    }

    #[test]
    fn no_torn_value_is_ever_read() {
        let [accepted, torn] = read_beside_a_writer(InterfaceRegisters::read);
        assert!(accepted > 0 && torn == 0, "{torn} of {accepted} are torn");
    }

    /// A reader that ignores the sequence numbers reads torn values, so the test above can fail.
    #[test]
    fn a_reader_that_ignores_the_sequence_numbers_reads_torn_values() {
        if cpu::allowed_cpus().len() < 2 {
            return print_skipped("one CPU, and values are torn by a program on another");
        }
        let unguarded = |registers: &InterfaceRegisters<REGISTERS>| {
            let set = registers.latest().load(Acquire) as usize;
            Some(std::array::from_fn(|at| registers.register(set, at).load(Relaxed)))
        };
        let begun = Instant::now();
        while read_beside_a_writer(unguarded)[1] == 0 {
            assert!(begun.elapsed() < Duration::from_secs(30), "no value is torn");
        }
    }

    #[test]
    fn a_write_in_progress_does_not_change_the_set_that_is_read() {
        let registers = InterfaceRegisters::<2>::new().expect("a page");
        registers.put([1, 2]);
        let other = 1 - registers.latest().load(Relaxed) as usize;
        registers.set_number(other).fetch_add(1, Relaxed);
        registers.register(other, 0).store(9, Relaxed);
        assert_eq!(registers.read(), Some([1, 2]), "a write that does not end delays no reader");
        registers.set_number(1 - other).fetch_add(1, Relaxed);
        assert_eq!(registers.read(), None, "both sets are being written");
    }

    /// A program is in state 1 in every third turn and traces itself. The estimate approaches the fraction of the trace.
    #[test]
    fn the_estimate_converges_to_the_traced_truth() {
        let Some(other) = cpu::find_other_cpu(cpu::current_cpu()) else {
            return print_skipped("one CPU, and the measuring machine needs another");
        };
        let registers = Arc::new(InterfaceRegisters::<1>::new().expect("a page"));
        let period = Duration::from_micros(100);
        let started = SampledObserver::start(other, Arc::clone(&registers), period, 5);
        let mut observer = started.expect("a thread");
        let (begun, mut truth) = (Instant::now(), FractionOfTime::new(Duration::ZERO));
        let mut widths = Vec::new();
        for samples in [250, 4_000] {
            let mut turn = 0;
            let found = loop {
                let inside = turn % 3 == 0;
                turn += 1;
                truth.observe(inside, begun.elapsed());
                registers.put([u32::from(inside)]);
                arch::register_loop(std::hint::black_box(20_000));
                let found = observer.samples().expect("it runs");
                if found.count >= samples || begun.elapsed() > Duration::from_secs(40) {
                    break found;
                }
            };
            let (estimate, truth) =
                (found.fraction_in_state(1), truth.fraction(begun.elapsed()).expect("time passed"));
            if found.missed > begun.elapsed() / 100 {
                return print_skipped(
                    "other tasks have the CPU of the monitor, which may not be in the real-time class",
                );
            }
            // More than three standard deviations. The state takes one third of the time, so an estimate that is always 0 or
            // 1 fails.
            let width = estimate.high - estimate.low;
            assert!((estimate.estimate - truth).abs() < width, "{found:?}: {estimate:?} of {truth}");
            assert!(found.rejected <= found.count / 10, "{found:?}");
            widths.push(width);
        }
        assert!(widths[1] < widths[0] / 2.0, "{widths:?}");
    }
}

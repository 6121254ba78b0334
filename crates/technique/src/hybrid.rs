//! A hybrid monitor: the measured program writes events into interface registers, and another machine, here another
//! CPU, reads and counts them.
//!
//! There are three interfaces. With one slot and one flag ([`OneWay`]) the sender never waits, and overwrites an event that
//! was not yet received; that is acceptable if the receiver is fast. With a second flag ([`TwoWay`]) the sender waits until
//! the slot is free: no event is lost, and the wait perturbs the program. A [`Ring`] of slots corresponds to DMA into the
//! monitor's memory: no event is lost, and the sender waits only if the ring is full.
//!
//! An event has 32 bits. The lower eight are its [`event_kind`]; the others number the events, so that a repeated event is
//! recognised.
//!
//! Source: Kraemer, slides 10, 57, 58 and 62 to 71.

use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize};
use std::time::{Duration, Instant};
use syscost_platform::arch::register_loop;
use syscost_platform::error::{Error, Result};
use syscost_platform::partner::{Class, Kind, Partner, Task};

/// The event with this kind and this number, of which the lower 24 bits are kept.
#[inline(always)]
pub fn encode_event(number: u64, kind: u8) -> u32 {
    (number as u32) << 8 | u32::from(kind)
}

/// The kind of an event.
#[inline(always)]
pub fn event_kind(event: u32) -> u8 {
    event as u8
}

/// The interface between the two machines, with one sender and one receiver.
pub trait Interface: Default + Send + Sync + 'static {
    /// Sends an event; returns `false` if the receiver takes no event for several seconds.
    fn send(&self, event: u32) -> bool;

    /// Receives an event, if there is one, and passes it to `process`. Returns whether there was one.
    fn receive(&self, process: impl FnOnce(u32)) -> bool;
}

/// The number of polls, which take several seconds, after which the other side counts as dead.
const PATIENCE: u32 = 1 << 28;

#[inline(always)]
fn poll_until_ready(mut ready: impl FnMut() -> bool) -> bool {
    for _ in 0..PATIENCE {
        if ready() {
            return true;
        }
        std::hint::spin_loop();
    }
    false
}

/// A register R and a flag F1, which is set while R is full.
#[derive(Default)]
#[repr(align(128))]
pub struct OneWay {
    r: AtomicU32,
    f1: AtomicBool,
}

impl Interface for OneWay {
    #[inline(always)]
    fn send(&self, event: u32) -> bool {
        self.r.store(event, Relaxed);
        self.f1.store(true, Release);
        true
    }

    #[inline(always)]
    fn receive(&self, process: impl FnOnce(u32)) -> bool {
        // A plain load leaves the cache line with the sender.
        if !self.f1.load(Relaxed) {
            return false;
        }
        // If the sender overwrites the event between these two lines, the new event is received twice, and this one is lost.
        self.f1.swap(false, Acquire);
        process(self.r.load(Relaxed));
        true
    }
}

/// A register R, a flag F1, which is set while R is full, and a flag F2, which is set while R is free.
#[repr(align(128))]
pub struct TwoWay {
    r: AtomicU32,
    f1: AtomicBool,
    f2: AtomicBool,
}

impl Default for TwoWay {
    fn default() -> Self {
        Self { r: AtomicU32::new(0), f1: AtomicBool::new(false), f2: AtomicBool::new(true) }
    }
}

impl Interface for TwoWay {
    #[inline(always)]
    fn send(&self, event: u32) -> bool {
        if !poll_until_ready(|| self.f2.load(Acquire)) {
            return false;
        }
        self.f2.store(false, Relaxed);
        self.r.store(event, Relaxed);
        self.f1.store(true, Release);
        true
    }

    #[inline(always)]
    fn receive(&self, process: impl FnOnce(u32)) -> bool {
        if !self.f1.load(Acquire) {
            return false;
        }
        self.f1.store(false, Relaxed);
        process(self.r.load(Relaxed));
        self.f2.store(true, Release);
        true
    }
}

/// The number of slots of a [`Ring`].
const SLOTS: usize = 1 << 12;

/// The position of one side, on a cache line of its own.
#[derive(Default)]
#[repr(align(128))]
struct Side {
    /// The number of events that this side has sent or received.
    place: AtomicUsize,
    /// The position of the other side when it was last read.
    seen: AtomicUsize,
}

/// A ring of slots for one sender and one receiver (L. Lamport, *Specifying Concurrent Program Modules*, 1983).
pub struct Ring {
    slots: Box<[AtomicU32]>,
    sent: Side,
    taken: Side,
}

impl Default for Ring {
    fn default() -> Self {
        let slots = (0..SLOTS).map(|_| AtomicU32::new(0)).collect();
        Self { slots, sent: Side::default(), taken: Side::default() }
    }
}

impl Interface for Ring {
    #[inline(always)]
    fn send(&self, event: u32) -> bool {
        let at = self.sent.place.load(Relaxed);
        if at - self.sent.seen.load(Relaxed) == SLOTS {
            let free = || {
                self.sent.seen.store(self.taken.place.load(Acquire), Relaxed);
                at - self.sent.seen.load(Relaxed) < SLOTS
            };
            if !poll_until_ready(free) {
                return false;
            }
        }
        self.slots[at % SLOTS].store(event, Relaxed);
        self.sent.place.store(at + 1, Release);
        true
    }

    #[inline(always)]
    fn receive(&self, process: impl FnOnce(u32)) -> bool {
        let at = self.taken.place.load(Relaxed);
        if at == self.taken.seen.load(Relaxed) {
            self.taken.seen.store(self.sent.place.load(Acquire), Relaxed);
            if at == self.taken.seen.load(Relaxed) {
                return false;
            }
        }
        process(self.slots[at % SLOTS].load(Relaxed));
        self.taken.place.store(at + 1, Release);
        true
    }
}

/// The counts of the monitor; only its thread writes them.
struct Board {
    counts: [AtomicU64; 256],
    received: AtomicU64,
    repeated: AtomicU64,
    sum: AtomicU64,
    /// The last event, or [`NONE`].
    last: AtomicU64,
}

/// A value that no event has.
const NONE: u64 = u64::MAX;

impl Board {
    fn new() -> Self {
        Self {
            counts: std::array::from_fn(|_| AtomicU64::new(0)),
            received: AtomicU64::new(0),
            repeated: AtomicU64::new(0),
            sum: AtomicU64::new(0),
            last: AtomicU64::new(NONE),
        }
    }

    #[inline(always)]
    fn count_event(&self, event: u32) {
        let add = |count: &AtomicU64, more| count.store(count.load(Relaxed).wrapping_add(more), Relaxed);
        add(&self.counts[usize::from(event_kind(event))], 1);
        add(&self.received, 1);
        add(&self.repeated, u64::from(self.last.load(Relaxed) == u64::from(event)));
        add(&self.sum, u64::from(event));
        self.last.store(u64::from(event), Release);
    }
}

/// The events that the monitor has received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tally {
    /// Received events.
    pub received: u64,
    /// Received events that repeat the event before.
    pub repeated: u64,
    /// The sum of the received events, modulo 2⁶⁴, to be compared with the sum of the sent events.
    pub sum: u64,
    /// The number of received events of each kind.
    pub counts: [u64; 256],
}

impl Tally {
    /// The number of different events that were received.
    pub fn distinct_events(&self) -> u64 {
        self.received - self.repeated
    }
}

/// The measuring machine: a thread on another CPU.
pub struct Observer<I> {
    partner: Partner,
    interface: Arc<I>,
    board: Arc<Board>,
}

impl<I: Interface> Observer<I> {
    /// Starts the monitor on a CPU. For each event it also executes a loop of `turns` iterations, which simulates a slower
    /// monitor.
    ///
    /// # Errors
    /// An error where the kernel refuses the thread or the CPU.
    pub fn start(cpu: usize, turns: u64) -> Result<Self> {
        const POLLS: u32 = 1 << 10;
        let (interface, board) = (Arc::new(I::default()), Arc::new(Board::new()));
        let (theirs, counts) = (Arc::clone(&interface), Arc::clone(&board));
        let step = move || {
            for _ in 0..POLLS {
                let process = |event| {
                    register_loop(turns);
                    counts.count_event(event);
                };
                if !theirs.receive(process) {
                    std::hint::spin_loop();
                }
            }
            0
        };
        let partner = Partner::start(Kind::Thread, (cpu, Class::Ordinary), step, || ())?;
        Ok(Self { partner, interface, board })
    }

    /// The interface into which the measured program sends.
    #[inline(always)]
    pub fn interface(&self) -> &I {
        &self.interface
    }

    /// The thread of the monitor.
    #[doc(hidden)]
    pub fn task(&self) -> Task {
        self.partner.task()
    }

    /// Waits until the monitor has received `event`, the last one sent, and returns what it has received.
    ///
    /// # Errors
    /// The errors of [`wait_for`](Self::wait_for).
    pub fn tally_after(&mut self, event: u32) -> Result<Tally> {
        self.wait_for(event)?;
        Ok(self.tally())
    }

    /// Waits until the monitor has received `event`, the last one sent.
    ///
    /// # Errors
    /// [`Error::Disproved`] if the monitor has ended; [`Error::Disturbed`] if it does not receive the event within 5 s.
    pub fn wait_for(&mut self, event: u32) -> Result<()> {
        const LONGEST: Duration = Duration::from_secs(5);
        let begun = Instant::now();
        while self.board.last.load(Acquire) != u64::from(event) {
            if let Some(fate) = self.partner.fate() {
                return Err(fate.into_error(""));
            }
            if begun.elapsed() > LONGEST {
                let cpu = self.task().cpu;
                return Err(Error::Disturbed(format!(
                    "the monitor on CPU {cpu} has not taken the last event for 5 s: that CPU is too busy"
                )));
            }
            std::hint::spin_loop();
        }
        Ok(())
    }

    /// What the monitor has received so far.
    pub fn tally(&self) -> Tally {
        let board = &self.board;
        Tally {
            received: board.received.load(Relaxed),
            repeated: board.repeated.load(Relaxed),
            sum: board.sum.load(Relaxed),
            counts: std::array::from_fn(|kind| board.counts[kind].load(Relaxed)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use syscost_platform::cpu;
    use syscost_platform::testing::print_skipped;

    /// Sends events of four kinds to another CPU; prints why and returns `None` if there is no other CPU.
    fn send<I: Interface>(events: u64, turns: u64) -> Option<Tally> {
        let Some(other) = cpu::find_other_cpu(cpu::current_cpu()) else {
            print_skipped("one CPU, and the measuring machine needs another");
            return None;
        };
        let mut observer = Observer::<I>::start(other, turns).expect("started");
        let event = |number| encode_event(number, (number % 4) as u8);
        (0..events)
            .for_each(|number| assert!(observer.interface().send(event(number)), "no interface takes it"));
        Some(observer.tally_after(event(events - 1)).expect("the last one arrives"))
    }

    fn sum(events: u64) -> u64 {
        (0..events).map(|number| u64::from(encode_event(number, (number % 4) as u8))).sum()
    }

    fn assert_no_event_is_lost<I: Interface>(events: u64, turns: u64) {
        let Some(tally) = send::<I>(events, turns) else { return };
        assert_eq!((tally.received, tally.repeated, tally.sum), (events, 0, sum(events)));
        assert_eq!(tally.counts[..5], [events / 4, events / 4, events / 4, events / 4, 0]);
    }

    #[test]
    fn two_flags_lose_no_event() {
        assert_no_event_is_lost::<TwoWay>(2_000, 0);
        assert_no_event_is_lost::<TwoWay>(200, 1_000);
    }

    #[test]
    fn a_ring_loses_no_event_even_when_it_is_full() {
        assert_no_event_is_lost::<Ring>(3 * SLOTS as u64, 0);
        assert_no_event_is_lost::<Ring>(2 * SLOTS as u64, 100);
    }

    #[test]
    fn one_flag_loses_events_that_a_slow_monitor_does_not_take_in_time() {
        let Some(tally) = send::<OneWay>(100_000, 10_000) else { return };
        assert!(
            tally.distinct_events() >= 1 && tally.distinct_events() < 100_000,
            "{} captured",
            tally.distinct_events()
        );
    }

    #[test]
    fn a_slot_holds_the_last_event() {
        let slot = OneWay::default();
        assert!(!slot.receive(|_| unreachable!("nothing was sent")));
        slot.send(1);
        slot.send(2);
        let mut seen = Vec::new();
        while slot.receive(|event| seen.push(event)) {}
        assert_eq!(seen, [2]);
    }

    #[test]
    fn events_keep_their_order_in_a_ring() {
        let ring = Ring::default();
        let mut seen = Vec::new();
        for event in 0..10 {
            ring.send(event);
        }
        while ring.receive(|event| seen.push(event)) {}
        assert_eq!(seen, (0..10).collect::<Vec<_>>());
    }
}

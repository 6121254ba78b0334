//! The fluid: a process that uses the CPU time that other tasks leave on a CPU, and counts it in turns of a loop.
//!
//! Each turn is a chain of multiplications, a read of the counter and a load of one shared word. A turn that took
//! longer than others was interrupted, by a task, by an interrupt or by a hypervisor. The fluid thus sees by itself
//! when it was displaced, and for how long.
//!
//! The fluid counts in windows. [`Fluid::next_window`] ends the open window and begins the next one. It returns when
//! the fluid has done both, so that everything between two calls lies inside one window.

use super::partner::{Class, Kind, Partner, Task};
use super::shared::Words;
use super::{arch, process, time};
use crate::error::{Error, Result};
use nix::sys::signal::{Signal, kill};
use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::time::{Duration, Instant};

/// Multiplications of one turn, three or four core cycles each: about 0.1 µs. Longer turns would hide short
/// interrupts, shorter ones would be mostly the read of the counter.
const CHAIN: u64 = 96;
/// A turn that takes more than this many times the quickest was interrupted. With a busy thread on the same core, all
/// but one in 10 000 turns took at most 4 times the quickest; interrupted ones took 20 times and more.
const INTERRUPTED_RATIO: u64 = 4;
/// Number of turns that are tried to find the quickest.
const TRIED_TURNS: u64 = 5_000;
/// How far the nice value of the fluid is above that of the process under test. If that process never waits, the fluid
/// gets a thirtieth of the CPU, enough to see interrupts. The idle class will not do: a CPU that runs nothing else
/// counts as idle, and the kernel sends it work from other CPUs (`sched_idle_cpu()`).
pub const NICER: i32 = 15;
/// The largest nice value.
const NICEST: i32 = 19;
/// Time after which a fluid that has not answered is reported to get no CPU.
const PATIENCE: Duration = Duration::from_secs(10);
/// Time between two checks for the fluid's answer. On a single CPU the fluid runs only while we sleep.
const POLL_INTERVAL: Duration = Duration::from_micros(20);

// Words of the shared page; a number of 64 bits takes two.
const ASK: usize = 0;
const OPENED: usize = 1;
const CLOSED: usize = 2;
const LIMIT: usize = 3;
/// The first number of a [`Flow`].
const COUNTS: usize = 5;

/// The counts of one window. Times are ticks of the counter, except `own_ns`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flow {
    /// Time from the first read of the counter to the last.
    pub ticks: u64,
    /// Turns of the loop.
    pub loops: u64,
    /// CPU time that the kernel charged to the fluid, ns.
    pub own_ns: u64,
    /// Turns that were interrupted.
    pub gaps: u64,
    /// Time of the interrupted turns.
    pub gapped: u64,
    /// The longest interrupted turn.
    pub longest: u64,
    /// Time of the turns that followed an interrupted one and were not interrupted themselves. Their excess over other
    /// turns is the cost of refilling caches.
    pub after: u64,
    /// Number of the turns in `after`: fewer than `gaps` if interrupted turns followed each other.
    pub afters: u64,
    /// How often the fluid was preempted.
    pub preempted: u64,
}

impl Flow {
    fn from_numbers(numbers: [u64; 9]) -> Self {
        let [ticks, loops, own_ns, gaps, gapped, longest, after, afters, preempted] = numbers;
        Self { ticks, loops, own_ns, gaps, gapped, longest, after, afters, preempted }
    }

    fn numbers(&self) -> [u64; 9] {
        let Self { ticks, loops, own_ns, gaps, gapped, longest, after, afters, preempted } = *self;
        [ticks, loops, own_ns, gaps, gapped, longest, after, afters, preempted]
    }
}

/// The fluid process. It is killed when this value is dropped, and by the kernel when its parent dies.
pub struct Fluid {
    partner: Partner,
    page: Arc<Words>,
}

/// Reads the counter at the end of a turn, or the kernel's clock if the counter is unfit. The read must wait for the
/// chain: otherwise the reads run ahead of it, further with each turn until an interruption.
type Read = fn() -> u64;

impl Fluid {
    /// Starts a fluid on a CPU, with a priority below that of the process `beside`; 0 is the calling process. With
    /// `counter` it reads the processor's counter, otherwise `CLOCK_MONOTONIC_RAW`.
    ///
    /// # Errors
    /// The kernel refuses the process, the CPU or the priority.
    pub fn start(cpu: usize, counter: bool, beside: u32) -> Result<Self> {
        let page = Arc::new(Words::new()?);
        store_number(&page, LIMIT, u64::MAX);
        let theirs = Arc::clone(&page);
        let read: Read = if counter { arch::start } else { time::monotonic_raw_ns };
        // The nice value may not be lowered without a privilege.
        let nice = (process::niceness(beside) + NICER).max(process::niceness(0)).min(NICEST);
        let mut quickest = 0;
        let step = move || {
            if quickest == 0 {
                if let Err(errno) = process::set_niceness(nice) {
                    return -i64::from(errno);
                }
                quickest = quickest_turn(read);
            }
            run_window(&theirs, read, INTERRUPTED_RATIO * quickest);
            0
        };
        let partner = Partner::start(Kind::Process, (cpu, Class::Ordinary), step, || ())?;
        let mut fluid = Self { partner, page };
        fluid.next_window(u64::MAX)?;
        Ok(fluid)
    }

    /// The fluid as a task that can be watched.
    pub fn task(&self) -> Task {
        self.partner.task()
    }

    /// Ends the open window, begins one that ends at the next call or by itself after `limit` ticks, and
    /// returns the counts of the window that has ended.
    ///
    /// # Errors
    /// The fluid has ended, or gets no CPU ([`Error::Disturbed`]).
    pub fn next_window(&mut self, limit: u64) -> Result<Flow> {
        store_number(&self.page, LIMIT, limit);
        let asked = word_at(&self.page, ASK).load(Relaxed) + 1;
        word_at(&self.page, ASK).store(asked, Release);
        self.wait_for_word(OPENED, asked)?;
        Ok(self.read_flow())
    }

    /// Waits until a window that ends by itself has ended, and returns its counts.
    ///
    /// # Errors
    /// As of [`Fluid::next_window`].
    pub fn wait_for_window_end(&mut self) -> Result<Flow> {
        let asked = word_at(&self.page, ASK).load(Relaxed);
        self.wait_for_word(CLOSED, asked)?;
        Ok(self.read_flow())
    }

    /// Stops the fluid until [`Fluid::resume`], so that another task has the CPU alone.
    ///
    /// # Errors
    /// The fluid has ended.
    pub fn pause(&self) -> Result<()> {
        self.send_signal(Signal::SIGSTOP)
    }

    /// Lets the fluid continue. The pause is part of the open window.
    ///
    /// # Errors
    /// The fluid has ended.
    pub fn resume(&self) -> Result<()> {
        self.send_signal(Signal::SIGCONT)
    }

    fn send_signal(&self, signal: Signal) -> Result<()> {
        kill(self.task().process, signal).map_err(|e| Error::from_errno(format!("{signal} to the fluid"), e))
    }

    fn wait_for_word(&mut self, which: usize, asked: u32) -> Result<()> {
        let begun = Instant::now();
        while word_at(&self.page, which).load(Acquire) != asked {
            if let Some(fate) = self.partner.fate() {
                return Err(Error::Child(format!("the fluid: {fate}")));
            }
            if begun.elapsed() > PATIENCE {
                return Err(Error::Disturbed(format!(
                    "the fluid on CPU {} has not come to run for {} s: other tasks have that CPU",
                    self.task().cpu,
                    PATIENCE.as_secs()
                )));
            }
            std::thread::sleep(POLL_INTERVAL);
        }
        Ok(())
    }

    fn read_flow(&self) -> Flow {
        Flow::from_numbers(std::array::from_fn(|at| load_number(&self.page, COUNTS + 2 * at)))
    }
}

fn word_at(page: &Words, at: usize) -> &AtomicU32 {
    &page[at].value
}

/// Writes both halves of a number. Another word, stored afterwards with release order, publishes it.
fn store_number(page: &Words, at: usize, number: u64) {
    word_at(page, at).store(number as u32, Relaxed);
    word_at(page, at + 1).store((number >> 32) as u32, Relaxed);
}

fn load_number(page: &Words, at: usize) -> u64 {
    u64::from(word_at(page, at).load(Relaxed)) | u64::from(word_at(page, at + 1).load(Relaxed)) << 32
}

/// The quickest of many turns.
fn quickest_turn(read: Read) -> u64 {
    let mut last = read();
    let mut quickest = u64::MAX;
    for _ in 0..TRIED_TURNS {
        std::hint::black_box(arch::multiply_chain(CHAIN));
        let now = read();
        quickest = quickest.min(now.saturating_sub(last));
        last = now;
    }
    quickest.max(1)
}

/// Runs one window, from its request in the word `ASK` to the next request or to the limit. After the limit the fluid
/// runs uncounted.
fn run_window(page: &Words, read: Read, threshold: u64) {
    let asked = word_at(page, ASK).load(Acquire);
    let limit = load_number(page, LIMIT);
    let preempted = process::preemption_count();
    let before = time::thread_cpu_ns();
    let start = read();
    // The window opens before the parent learns of it, because we may be preempted from here on. The counts of the
    // former window stay in the page until this one ends.
    word_at(page, OPENED).store(asked, Release);
    let mut flow = count_turns(start, (word_at(page, ASK), asked), read, threshold, limit);
    flow.own_ns = time::thread_cpu_ns().saturating_sub(before);
    flow.preempted = process::preemption_count().saturating_sub(preempted);
    for (at, number) in flow.numbers().into_iter().enumerate() {
        store_number(page, COUNTS + 2 * at, number);
    }
    word_at(page, CLOSED).store(asked, Release);
    while word_at(page, ASK).load(Relaxed) == asked {
        std::hint::black_box(arch::multiply_chain(CHAIN));
    }
}

/// Runs turns until the word changes or the limit is reached, and one turn more: the turn before may have been
/// preempted after it read the counter and before the word changed.
#[inline(never)]
fn count_turns(start: u64, (ask, asked): (&AtomicU32, u32), read: Read, threshold: u64, limit: u64) -> Flow {
    let mut flow = Flow::default();
    let (mut last, mut interrupted, mut open) = (start, false, true);
    while open {
        open = ask.load(Relaxed) == asked && last.wrapping_sub(start) < limit;
        std::hint::black_box(arch::multiply_chain(CHAIN));
        let now = read();
        // A hypervisor may set the counter back.
        let took = now.saturating_sub(last);
        last = now;
        flow.loops += 1;
        if took > threshold {
            flow.gaps += 1;
            flow.gapped += took;
            flow.longest = flow.longest.max(took);
            interrupted = true;
        } else if interrupted {
            flow.after += took;
            flow.afters += 1;
            interrupted = false;
        }
    }
    flow.ticks = last.wrapping_sub(start);
    flow
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu;

    fn started() -> Fluid {
        let cpu = cpu::allowed_cpus().into_iter().max().expect("a CPU");
        Fluid::start(cpu, arch::unfit().is_none(), 0).expect("a fluid")
    }

    #[test]
    fn everything_between_two_calls_lies_in_one_window() {
        let mut fluid = started();
        fluid.next_window(u64::MAX).expect("a window");
        let begun = arch::read();
        std::thread::sleep(Duration::from_millis(20));
        let least = arch::read() - begun;
        let flow = fluid.next_window(u64::MAX).expect("the window's count");
        assert!(arch::unfit().is_some() || flow.ticks >= least, "{flow:?}, {least}");
        assert!(flow.loops > 0 && flow.gapped <= flow.ticks && flow.gaps <= flow.loops, "{flow:?}");
        assert!(flow.afters <= flow.gaps && flow.after <= flow.ticks - flow.gapped, "{flow:?}");
    }

    #[test]
    fn a_window_with_a_limit_ends_by_itself() {
        let mut fluid = started();
        let limit = 5_000_000;
        fluid.next_window(limit).expect("a window");
        let flow = fluid.wait_for_window_end().expect("the window's count");
        // One turn more than the limit, and whatever interrupted that turn.
        assert!(flow.ticks >= limit && flow.ticks - limit <= flow.longest.max(limit), "{flow:?}");
        assert_eq!(fluid.wait_for_window_end().expect("the same again"), flow);
    }

    #[test]
    fn a_killed_fluid_is_an_error_instead_of_an_endless_wait() {
        let mut fluid = started();
        kill(fluid.task().process, Signal::SIGKILL).expect("sent");
        let error = fluid.next_window(u64::MAX).expect_err("it is dead").to_string();
        assert!(error.contains("SIGKILL"), "{error}");
    }

    #[test]
    fn a_paused_fluid_counts_nothing() {
        let mut fluid = started();
        fluid.pause().expect("stopped");
        std::thread::sleep(Duration::from_millis(30));
        fluid.resume().expect("continued");
        let flow = fluid.next_window(u64::MAX).expect("the window's count");
        assert!(flow.gapped >= flow.longest && flow.longest > 0, "{flow:?}");
    }

    #[test]
    fn a_fluid_ends_when_its_value_is_dropped() {
        let fluid = started();
        let process = fluid.task().process;
        drop(fluid);
        assert_eq!(kill(process, None), Err(nix::errno::Errno::ESRCH));
    }
}

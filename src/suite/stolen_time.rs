//! # What is timed
//! A thread that does nothing but read the clock. An iteration is one reading. A time between two readings of more than
//! 1 µs is a gap: the thread did not get the CPU. `ordinary` is a thread of the ordinary scheduling class, `fifo` one
//! of the real-time class `SCHED_FIFO`, and `beside-hog` shares its CPU with a task that uses all it can get.
//!
//! # What is not
//! Gaps shorter than 1 µs: a cache miss, a short interrupt. Gaps between two batches.
//!
//! # How we know
//! A witness counts one call of `clock_gettime` an iteration. The kernel counts the time that a thread is ready while another
//! task runs (`/proc/thread-self/schedstat`). In each batch the gaps, and the time outside of the readings, must cover at least
//! nine tenths of it. `beside-hog` tests the method: its gaps must be the time slices of the hog, and the case waits for
//! the first of them before the samples.
//!
//! # What fools it
//! The samples of a default run are milliseconds long: an event that comes once a second is rarely seen. Use the full scale for
//! bounds. The kernel stops a real-time task for a twentieth of each second if it wants the whole second
//! (`kernel.sched_rt_runtime_us`). In a guest the gaps of the host and those of the guest look alike; `hypervisor` is
//! only what the host reports, in steps of 10 ms. A task that slept between two batches is not preempted at once, so `beside-hog`
//! loses less than half in short batches. Interrupts are counted for the life of the case, gaps in the loop only.
//!
//! # Reading the number
//! The cost is the time of one reading, gaps included. Below the table, `stolen` is the share of time in gaps. `gaps` is the
//! number of gaps a second; further rows count those of at least 10 µs, 100 µs and 1 ms. `longest-gap` is the longest one, and
//! `p99-gap` the 99th percentile of 100 gaps or more. By source: `interrupts` and `softirqs` of this CPU, and `preemptions` of
//! the thread, a second. `unexplained` are the gaps a second that neither an interrupt nor a preemption explains, a lower bound:
//! the hardware (SMI) or the hypervisor took the CPU.
//!
//! # Source
//! rt-tests' `oslat` and `hwlatdetect`; the kernel's `Documentation/trace/osnoise-tracer.rst`; proc_interrupts(5).

use crate::clock::USER_HZ;
use crate::kit::contract::*;
use crate::kit::placement::Placement;
use crate::kit::scheduling_policy::{PRIORITY, REAL_TIME};
use crate::platform::partner::{Class, Partner, start_spinner};
use crate::platform::proc::{parse_schedstat, stolen_ticks, sum_of_cpu_column};
use crate::platform::process::thread_usage;
use crate::platform::sleep::RealTime;
use crate::platform::time::{clock_gettime_address, clock_gettime_ns, monotonic_raw_ns};
use crate::statistic::percentile;
use std::fs::{File, read_to_string};
use std::os::unix::fs::FileExt;

pub const GROUP: Group = Group::new("stolen_time", include_str!("stolen_time.rs"), cases);

/// Shortest gap, ns: some thirty readings of the clock. oslat begins at the same length.
const GAP_NS: u64 = 1_000;
/// The most gaps that are kept for the percentile.
const KEPT: usize = 1 << 16;
/// Lengths from which gaps are counted, ns.
const SIZES: [(&str, f64); 4] = [("gaps", 0.0), ("gaps-10us", 1e4), ("gaps-100us", 1e5), ("gaps-1ms", 1e6)];

fn cases() -> Vec<Case> {
    vec![
        spin_case("ordinary", "reading the clock without a pause", spin_set_up(false, false, spin)),
        spin_case("fifo", "reading the clock, as a real-time task", spin_set_up(true, false, spin))
            .need(REAL_TIME)
            .need(FULL_SCALE),
        spin_case("beside-hog", "reading the clock beside a CPU hog", spin_set_up(false, true, spin)),
    ]
}

fn spin_case(name: &str, title: &str, set_up: SetUp) -> Case {
    Case::new(format!("spin/{name}"), title, set_up)
        .need(PINNED)
        .need(VDSO_CLOCK)
        .claim(Claim::Calls(clock_gettime_address))
        .claim(Claim::Checked(
            "the gaps hold the time that the thread waited for the CPU, by the kernel's count",
        ))
        .predict(45.0, 45.0, "a counter read, the arithmetic of the vDSO, a comparison")
}

/// Reads the clock the given number of times and appends gaps, ns, while the vector has room. Returns the first and the last
/// reading, ns. Never allocates.
pub type Spin = fn(u64, &mut Vec<f64>) -> [u64; 2];

#[inline(never)]
fn spin(readings: u64, gaps: &mut Vec<f64>) -> [u64; 2] {
    let first = monotonic_raw_ns();
    let mut last = first;
    for _ in 1..readings {
        let now = monotonic_raw_ns();
        if now.saturating_sub(last) > GAP_NS && gaps.len() < gaps.capacity() {
            gaps.push((now - last) as f64);
        }
        last = now;
    }
    [first, last]
}

/// The set-up of a case whose gaps `spin` finds, optionally as a real-time task or beside a hog.
pub fn spin_set_up(is_real_time: bool, has_hog: bool, spin: Spin) -> SetUp {
    set_up(move |place| Spinning::start(is_real_time, has_hog, spin, place))
}

struct Spinning {
    spin: Spin,
    hog: Option<Partner>,
    _class: Option<RealTime>,
    /// Gaps of all batches, ns.
    gaps: Vec<f64>,
    /// Time of all batches, ns.
    spun_ns: f64,
    schedstat: Option<File>,
    preemptions: u64,
    cpu: usize,
    start: Sources,
}

impl Spinning {
    fn start(is_real_time: bool, has_hog: bool, spin: Spin, place: &Place) -> Result<Self> {
        let cpu = Placement::Same.partner_cpu(place)?;
        // The hog starts before this thread enters the class, so it stays an ordinary task.
        let hog = has_hog.then(|| start_spinner(cpu, Class::Ordinary)).transpose()?;
        let _class = is_real_time.then(|| RealTime::enter(PRIORITY)).transpose()?;
        let mut spinning = Self {
            spin,
            hog,
            _class,
            gaps: Vec::with_capacity(KEPT),
            spun_ns: 0.0,
            schedstat: File::open("/proc/thread-self/schedstat").ok(),
            preemptions: 0,
            cpu,
            start: Sources::read(cpu),
        };
        // Short samples may hold no wait at all. Here the thread spins until one happens.
        if has_hog {
            spinning.watch_until_wait().check()?;
        }
        Ok(spinning)
    }

    /// The time so far for which the thread was ready while another task ran, ns; `None` if the kernel does not count it.
    fn waited_ns(&self) -> Option<f64> {
        let mut text = [0; 128];
        let length = self.schedstat.as_ref()?.read_at(&mut text, 0).ok()?;
        let times = parse_schedstat(std::str::from_utf8(&text[..length]).ok()?)?;
        Some(times.waited_ns as f64)
    }

    /// Runs `spin` and returns how long the thread waited for its CPU meanwhile, by the gaps and by the kernel's count. The new
    /// gaps are appended to `self.gaps`.
    fn watch(&mut self, spin: impl FnOnce(Spin, &mut Vec<f64>) -> [u64; 2]) -> Waits {
        let (began, waited, known) = (monotonic_raw_ns(), self.waited_ns(), self.gaps.len());
        let [first, last] = spin(self.spin, &mut self.gaps);
        let waited_ns = self.waited_ns().zip(waited).map_or(0.0, |(after, before)| after - before);
        // The time before the first reading and after the last, where a preemption leaves no gap.
        let outside_ns = (monotonic_raw_ns() - began - (last - first)) as f64;
        Waits { seen_ns: self.gaps[known..].iter().sum::<f64>() + outside_ns, waited_ns }
    }

    /// Spins until the thread has waited for its CPU, at most 0.2 s. Beside a hog this happens soon. The batches are long, so
    /// that a wait rarely falls outside of the readings.
    fn watch_until_wait(&mut self) -> Waits {
        const LONG: u64 = 100_000;
        const PATIENCE_NS: u64 = 200_000_000;
        let gaps = std::mem::replace(&mut self.gaps, Vec::with_capacity(KEPT));
        let (until, mut next) = (monotonic_raw_ns() + PATIENCE_NS, Waits::default());
        while !next.is_long() && monotonic_raw_ns() < until {
            self.gaps.clear();
            next = self.watch(|spin, gaps| spin(LONG, gaps));
        }
        self.gaps = gaps;
        next
    }
}

impl Subject for Spinning {
    fn run(&mut self, iterations: u64, clock: &Clock) -> Result<Ticks> {
        let preempted = || thread_usage().map(|usage| usage.involuntary_context_switches() as u64);
        let (known, preemptions, mut ticks) = (self.gaps.len(), preempted()?, Ticks(0));
        let waits = self.watch(|spin, gaps| {
            let mut readings = [0; 2];
            ticks = clock.time(|| readings = spin(iterations, gaps));
            readings
        });
        let preemptions = preempted()? - preemptions;
        if self.gaps.len() == self.gaps.capacity() {
            // Gaps of this batch may be missing, so the figures leave it out.
            self.gaps.truncate(known);
            return Ok(ticks);
        }
        waits.check()?;
        self.spun_ns += clock.nanoseconds(ticks).0;
        self.preemptions += preemptions;
        Ok(ticks)
    }

    fn report(&self) -> Report {
        let partners = self.hog.iter().map(Partner::task).collect();
        Report { partners, found: self.figures(), ..Report::default() }
    }
}

/// Two counts of the time for which the thread did not have the CPU, over the same interval.
#[derive(Default)]
struct Waits {
    /// Gaps, and time outside of the first and the last reading, ns.
    seen_ns: f64,
    /// The time that the thread was ready while another task ran, by the kernel's count, ns.
    waited_ns: f64,
}

impl Waits {
    /// The least share of the kernel's count that the gaps must cover; the kernel counts by another clock, and in steps.
    const LEAST: f64 = 0.9;
    const SLACK_NS: f64 = 20_000.0;

    /// Whether the thread waited so long, by the kernel's count, that the gaps must show it.
    fn is_long(&self) -> bool {
        Self::LEAST * self.waited_ns > Self::SLACK_NS
    }

    /// An error if the gaps do not cover the kernel's count. One batch contradicts and does not disprove: the clocks differ.
    fn check(&self) -> Result<()> {
        if self.seen_ns + Self::SLACK_NS >= Self::LEAST * self.waited_ns {
            return Ok(());
        }
        Err(Error::Contradicted(format!(
            "the thread waited {:.0} ns for the CPU by the kernel's count, and the gaps and the time outside of the loop hold \
             {:.0} ns",
            self.waited_ns, self.seen_ns
        )))
    }
}

/// The kernel's counts for one CPU since boot.
struct Sources {
    at_ns: u64,
    interrupts: Option<u64>,
    softirqs: Option<u64>,
    hypervisor_ticks: Option<u64>,
}

impl Sources {
    fn read(cpu: usize) -> Self {
        let count =
            |path: &str, parse: fn(&str, usize) -> Option<u64>| parse(&read_to_string(path).ok()?, cpu);
        Self {
            at_ns: clock_gettime_ns(libc::CLOCK_MONOTONIC_RAW),
            interrupts: count("/proc/interrupts", sum_of_cpu_column),
            softirqs: count("/proc/softirqs", sum_of_cpu_column),
            hypervisor_ticks: count("/proc/stat", stolen_ticks),
        }
    }
}

impl Spinning {
    fn figures(&self) -> Vec<Found> {
        if self.spun_ns <= 0.0 {
            return Vec::new();
        }
        let one = |name, unit, value: f64| Found::new(name, unit, vec![value]);
        let rate = |count: f64| count * 1e9 / self.spun_ns;
        let of_size = |least: f64| self.gaps.iter().filter(|gap| **gap >= least).count() as f64;
        let mut found =
            vec![one("stolen", "", self.gaps.iter().fold(0.0, |sum, gap| sum + gap) / self.spun_ns)];
        found.extend(SIZES.map(|(name, least)| one(name, "/s", rate(of_size(least)))));
        if !self.gaps.is_empty() {
            found.push(one("longest-gap", "ns", percentile(&self.gaps, 100.0)));
        }
        if self.gaps.len() >= 100 {
            found.push(one("p99-gap", "ns", percentile(&self.gaps, 99.0)));
        }
        let preemptions = rate(self.preemptions as f64);
        found.push(one("preemptions", "/s", preemptions));
        found.extend(self.figures_by_source(rate(of_size(0.0)) - preemptions));
        found
    }

    /// The growth a second of the kernel's counts since the start, and the unexplained ones of `gaps`, the gaps a second that are
    /// no preemptions.
    fn figures_by_source(&self, gaps: f64) -> Vec<Found> {
        let now = Sources::read(self.cpu);
        let seconds = (now.at_ns - self.start.at_ns) as f64 / 1e9;
        let grown =
            |before: Option<u64>, after: Option<u64>| Some(after?.checked_sub(before?)? as f64 / seconds);
        let interrupts = grown(self.start.interrupts, now.interrupts);
        let stolen = grown(self.start.hypervisor_ticks, now.hypervisor_ticks);
        let figures = [
            ("interrupts", "/s", interrupts),
            ("softirqs", "/s", grown(self.start.softirqs, now.softirqs)),
            ("unexplained", "/s", interrupts.map(|count| (gaps - count).max(0.0))),
            ("hypervisor", "", stolen.map(|ticks| ticks / USER_HZ)),
        ];
        figures
            .into_iter()
            .filter_map(|(name, unit, value)| Some(Found::new(name, unit, vec![value?])))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kit::runnable::test_place;
    use crate::platform::cpu;

    #[test]
    fn a_thread_beside_a_hog_sees_stolen_time() {
        let share = beside_hog(spin, |spinning, clock| {
            (0..20).for_each(|_| _ = spinning.run(100_000, clock).unwrap());
            spinning.figures()[0].values[0]
        });
        assert!((0.02..0.98).contains(&share), "{share}");
    }

    /// A case beside a hog, on the CPU of the test.
    fn beside_hog<T>(spin: Spin, body: impl FnOnce(&mut Spinning, &Clock) -> T) -> T {
        let place = test_place(&std::env::temp_dir(), Scale::Smoke);
        let clock = Clock::start_up();
        let here = place.cpus.here.unwrap();
        cpu::run_on_cpu(here, || body(&mut Spinning::start(false, true, spin, &place).unwrap(), &clock))
            .unwrap()
    }

    #[test]
    fn waiting_time_missing_from_the_gaps_is_a_contradiction() {
        let check = |seen_ns, waited_ns| Waits { seen_ns, waited_ns }.check();
        assert!(check(3e6, 3e6).is_ok() && check(1e5, 0.0).is_ok());
        let contradicted = check(1e5, 3e6).unwrap_err();
        assert!(contradicted.to_string().contains("3000000 ns"));
        assert!(matches!(contradicted, Error::Contradicted(_)), "one batch disproves nothing");
    }

    #[test]
    fn gaps_that_are_never_reported_are_caught_at_the_first_wait_and_in_a_batch() {
        let forgets: Spin = |readings, _| spin(readings, &mut Vec::new());
        // The set-up waits for a gap, so it uses the honest `spin`; the forgetful one replaces it afterwards.
        let (first, batches) = beside_hog(spin, |spinning, clock| {
            spinning.spin = forgets;
            let first = spinning.watch_until_wait().check();
            (first, (0..20).try_for_each(|_| spinning.run(100_000, clock).map(drop)))
        });
        assert!(
            matches!(first, Err(Error::Contradicted(_))) && matches!(batches, Err(Error::Contradicted(_)))
        );
    }

    #[test]
    fn preemptions_at_the_ends_of_short_batches_are_in_both_accounts() {
        // In batches this short, most time slices of the hog begin or end outside of the readings.
        let waits = beside_hog(spin, |spinning, _| {
            (0..30_000).map(|_| spinning.watch(|spin, gaps| spin(3, gaps))).collect::<Vec<_>>()
        });
        assert!(waits.iter().any(Waits::is_long) && waits.iter().all(|waits| waits.check().is_ok()));
    }
}

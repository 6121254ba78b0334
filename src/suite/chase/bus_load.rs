//! A walk while other CPUs load the memory bus: each reads memory of its own, without a pause.

use super::walker::{Chase, Plan};
use crate::kit::contract::*;
use crate::kit::parallel::all_partners_stayed;
use crate::kit::stream::{Arrays, Means, Operation, Stream};
use crate::platform::limit;
use crate::platform::partner::{Class, Kind, Partner};
use crate::platform::resident::{Pages, ResidentMemory};
use crate::platform::shared::Word;
use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// Memory that each loading CPU reads, bytes: more than the caches hold.
const EACH: usize = 64 << 20;
/// Bytes that a loading CPU reads before it increments its count.
const CHUNK: usize = 256 << 10;
/// The longest timed interval in which a loading CPU may read no chunk, ns.
const SILENT_NS: f64 = 50e6;

/// The claim about the loading CPUs.
pub(super) const LOADED: &str = "every CPU that loads the bus read on while the ring was walked";

/// The number of CPUs that load the bus.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Loaders {
    Exactly(usize),
    /// All except the measuring one.
    All,
}

impl Loaders {
    pub(super) fn name(self) -> String {
        match self {
            Self::Exactly(count) => count.to_string(),
            Self::All => "all".into(),
        }
    }

    fn title_phrase(self) -> String {
        match self {
            Self::Exactly(0) => "while no other CPU loads the bus".into(),
            Self::Exactly(1) => "while another CPU loads the bus".into(),
            Self::Exactly(count) => format!("while {count} other CPUs load the bus"),
            Self::All => "while all other CPUs load the bus".into(),
        }
    }

    /// The loading CPUs.
    fn loading_cpus(self, place: &Place) -> Result<&[usize]> {
        let others = &place.cpus.others;
        match self {
            Self::All => Ok(others),
            Self::Exactly(count) => others.get(..count).ok_or_else(|| {
                Error::Missing(format!(
                    "{count} CPUs are to load the bus beside the measuring one, and this process is allowed {}",
                    others.len()
                ))
            }),
        }
    }

    /// Adds the needs and the claims of this number of loading CPUs.
    fn with_needs(self, case: Case) -> Case {
        match self {
            Self::Exactly(0) => case,
            Self::Exactly(1) => require_cpus(case, TWO_CPUS),
            _ => require_cpus(case, THREE_CPUS),
        }
    }
}

/// Adds the need `cpus`, and the claims about loading CPUs.
fn require_cpus(case: Case, cpus: Need) -> Case {
    case.need(PINNED).need(cpus).claim(Claim::Counted(all_partners_stayed)).claim(Claim::Checked(LOADED))
}

/// The case of a ring that is walked while these CPUs load the bus.
pub(super) fn loaded_walk_case(name: String, plan: Plan, loaders: Loaders) -> Case {
    let set_up = set_up(move |place| {
        let cpus = loaders.loading_cpus(place)?;
        limit::check_half_of_memory((plan.bytes + cpus.len() * EACH) as u64).map_err(Error::Missing)?;
        let chase = plan.start_walkers(plan.allocate_memory()?)?;
        let load = cpus.iter().map(|&cpu| Load::start(cpu)).collect::<Result<_>>()?;
        Ok(Loaded { chase, load, silent_ns: 0.0 })
    });
    let title = format!("a load that needs the one before, {}", loaders.title_phrase());
    let mut case = loaders.with_needs(Case::new(name, title, set_up));
    case.derived
        .push(Derived { name: "bandwidth", rule: Rule::Bandwidth(plan.spread.bytes_per_slot() as u64) });
    case
}

/// A thread that loads the bus.
struct Load {
    partner: Partner,
    chunks: Arc<Word>,
    /// The count at the last check.
    seen: u32,
}

impl Load {
    /// Starts a thread on this CPU that reads memory of its own without a pause.
    fn start(cpu: usize) -> Result<Self> {
        // Huge pages, so that it is limited by the bus and not by page walks.
        let mut memory = ResidentMemory::new(EACH, Pages::Huge)?;
        let Some(stream) = Stream::new(Operation::Read, Means::widest()) else {
            return Err(Error::Missing("no loop here loads the memory bus of this processor".into()));
        };
        let chunks: Arc<Word> = Arc::default();
        let theirs = Arc::clone(&chunks);
        let mut at = 0;
        let step = move || {
            let x = &memory.bytes()[at..at + CHUNK];
            black_box(stream.run(&mut Arrays { to: &mut [], x, y: &[] }, 1, 0));
            at = (at + CHUNK) % EACH;
            theirs.value.fetch_add(1, Relaxed);
            0
        };
        let partner = Partner::start(Kind::Thread, (cpu, Class::Ordinary), step, || ())?;
        Ok(Self { partner, chunks, seen: 0 })
    }

    /// Whether it has read a chunk since the last check.
    fn has_read_since_check(&mut self) -> bool {
        let now = self.chunks.value.load(Relaxed);
        std::mem::replace(&mut self.seen, now) != now
    }
}

/// A walk and the threads that load the bus.
struct Loaded {
    chase: Chase<1>,
    load: Vec<Load>,
    /// Length of the timed interval in which a loader made no progress, ns.
    silent_ns: f64,
}

impl Subject for Loaded {
    fn run(&mut self, iterations: u64, clock: &Clock) -> Result<Ticks> {
        let ticks = self.chase.run(iterations, clock)?;
        let silent = self
            .load
            .iter_mut()
            .filter_map(|load| (!load.has_read_since_check()).then(|| load.partner.task().cpu));
        let silent: Vec<_> = silent.collect();
        self.silent_ns = update_silent_time(self.silent_ns, clock.nanoseconds(ticks).0, &silent)?;
        Ok(ticks)
    }

    fn report(&self) -> Report {
        Report { partners: self.load.iter().map(|load| load.partner.task()).collect(), ..Report::default() }
    }
}

/// The time, ns, for which some loading CPU has read nothing, after a batch of `ns` in which the CPUs `silent` read nothing.
fn update_silent_time(before: f64, ns: f64, silent: &[usize]) -> Result<f64> {
    let now = if silent.is_empty() { 0.0 } else { before + ns };
    match silent.first() {
        Some(cpu) if now > SILENT_NS => Err(Error::Disturbed(format!(
            "CPU {cpu} was to load the bus and read nothing in {:.0} ms: others have it",
            now / 1e6
        ))),
        _ => Ok(now),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bus_that_is_not_loaded_is_noticed() {
        assert_eq!(update_silent_time(40e6, 5e6, &[]).expect("moved"), 0.0);
        let silent = update_silent_time(40e6, 5e6, &[3]).expect("not for long");
        let error = update_silent_time(silent, 10e6, &[3]).expect_err("too long").to_string();
        assert!(error.contains("CPU 3 was to load the bus"), "{error}");
    }

    #[test]
    fn a_thread_loads_the_bus_until_it_is_dropped() {
        let started = Load::start(crate::platform::cpu::current_cpu());
        let Some(mut load) = crate::platform::testing::value_or_skip(started) else { return };
        let begun = std::time::Instant::now();
        while !load.has_read_since_check() && begun.elapsed().as_secs() < 10 {
            std::thread::yield_now();
        }
        assert!(load.seen > 0);
    }
}

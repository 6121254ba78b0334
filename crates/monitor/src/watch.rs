//! Successive views of this machine: its counters, its busiest processes, and the hit rate of the last-level cache by the
//! processor's counters on all CPUs. A view can be written as a JSON object on one line.

use crate::view::View;
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use syscost_counters::snapshot::{Missing, Snapshot};
use syscost_counters::{Process, enumeration};
use syscost_platform::error::{Error, Result};
use syscost_platform::perf_event::{Counter, Event};
use syscost_platform::process::process_cpu_ns;

/// The maximum number of processes that are shown on a tall terminal.
const MOST_PROCESSES: usize = 40;

/// The state between two views.
pub struct Watch {
    before: Snapshot,
    processes: Ranking,
    own: Process,
    own_cpu: Duration,
    /// The cache counters, or the reason why there are none.
    cache: std::result::Result<CacheHits, String>,
}

impl Watch {
    /// Begins with a first reading.
    ///
    /// # Errors
    /// An error where `/proc` cannot be read.
    pub fn begin() -> Result<Self> {
        let own = Process::open(std::process::id() as i32)?;
        let own_cpu = own.cpu_time()?.value;
        let before = Snapshot::take()?;
        let cache = CacheHits::open(before.cpus.iter().map(|(cpu, _)| *cpu));
        Ok(Self { before, processes: Ranking::begin()?, own, own_cpu, cache })
    }

    /// Reads the machine and compares it with the last reading.
    ///
    /// # Errors
    /// An error where `/proc` cannot be read.
    pub fn observe(&mut self) -> Result<Seen> {
        let after = Snapshot::take()?;
        let mut view = View::between(&self.before, &after);
        let hits = self.cache.as_mut().map_err(|why| why.clone()).and_then(CacheHits::hit_percent);
        let cache_hit_percent = hits.unwrap_or_else(|why| {
            view.missing.push(Missing { what: "cache hit rate".into(), why });
            None
        });
        let cpu = self.own.cpu_time()?.value;
        let ran = cpu.saturating_sub(std::mem::replace(&mut self.own_cpu, cpu));
        let own = 100.0 * ran.as_secs_f64() / view.window.as_secs_f64().max(1e-9);
        let booted = after.booted;
        self.before = after;
        let processes = self.processes.busiest(MOST_PROCESSES)?;
        Ok(Seen { view, processes, own, booted, cache_hit_percent })
    }
}

/// One view of the machine.
pub struct Seen {
    /// The machine between this reading and the previous one.
    pub view: View,
    /// The busiest processes, the busiest first.
    pub processes: Vec<Busy>,
    /// Share of a CPU that this monitor uses, percent.
    pub own: f64,
    /// The time at which the kernel was started, Unix seconds.
    pub booted: u64,
    /// Hits in the last-level cache, percent of the references of all CPUs; `None` without references or without counters.
    pub cache_hit_percent: Option<f64>,
}

/// Counters of each CPU: references to the last-level cache, and misses there.
pub struct CacheHits {
    counters: Vec<[Counter; 2]>,
    before: [u64; 2],
}

impl CacheHits {
    /// Opens the counters of these CPUs.
    ///
    /// # Errors
    /// A sentence with the reason why the processor or the kernel offers no counters.
    pub fn open(cpus: impl Iterator<Item = usize>) -> std::result::Result<Self, String> {
        let events = [Event::from_name("cache-references")?, Event::from_name("cache-misses")?];
        let open = |cpu| {
            let [references, misses] = events
                .map(|event| Counter::open_on_cpu(event, cpu).map_err(|error| event.refusal_message(&error)));
            Ok([references?, misses?])
        };
        let counters = cpus.map(open).collect::<std::result::Result<_, String>>()?;
        let mut hits = Self { counters, before: [0; 2] };
        hits.hit_percent()?;
        Ok(hits)
    }

    /// Hits since the last call, percent of all references; `None` if there was no reference.
    ///
    /// # Errors
    /// A sentence with the reason why the counters have no valid value.
    pub fn hit_percent(&mut self) -> std::result::Result<Option<f64>, String> {
        let mut now = [0; 2];
        for counters in &self.counters {
            for (sum, counter) in now.iter_mut().zip(counters) {
                *sum += counter.read().map_err(|error: Error| error.to_string())?;
            }
        }
        let before = std::mem::replace(&mut self.before, now);
        let [references, misses] = [0, 1].map(|at: usize| now[at].saturating_sub(before[at]));
        Ok(percent_of_hits(references, misses))
    }
}

/// The share of hits, percent. Prefetches can miss without a reference, so misses may exceed references.
fn percent_of_hits(references: u64, misses: u64) -> Option<f64> {
    (references > 0).then(|| 100.0 * references.saturating_sub(misses) as f64 / references as f64)
}

/// The JSON object of a view.
pub fn seen_to_json(seen: &Seen) -> Value {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let view = &seen.view;
    let pressure: Vec<_> = view.pressure.iter().map(|(of, stall)| (of.name(), stall)).collect();
    json!({
        "time": now.as_secs_f64(),
        "seconds": view.window.as_secs_f64(),
        "all_cpus": view.all,
        "cpus": named_objects("cpu", &view.cpus),
        "interrupts_per_second": view.interrupts,
        "context_switches_per_second": view.context_switches,
        "tasks_created_per_second": view.created,
        "page_faults_per_second": view.page_faults,
        "major_page_faults_per_second": view.major_faults,
        "pressure": named_objects("resource", &pressure),
        "memory": {
            "total_bytes": view.memory.total,
            "free_bytes": view.memory.free,
            "truly_free_bytes": view.memory.truly_free,
            "available_bytes": view.memory.available,
        },
        "interfaces": named_objects("name", &view.links),
        "disks": named_objects("name", &view.disks),
        "cache_hit_percent": seen.cache_hit_percent,
        "processes": seen.processes,
        "missing": view.missing.iter().map(|missing| json!({"what": missing.what, "why": missing.why})).collect::<Vec<_>>(),
        "own_cpu_percent": seen.own,
    })
}

/// The JSON object of each item, with its name added under `key`.
fn named_objects<N: Serialize, T: Serialize>(key: &str, named: &[(N, T)]) -> Vec<Value> {
    let one = |(name, thing): &(N, T)| {
        let mut object = json!(thing);
        object[key] = json!(name);
        object
    };
    named.iter().map(one).collect()
}

// The processes with most CPU time since the last view.

/// One of the busiest processes.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Busy {
    /// The number of the process.
    pub pid: i32,
    /// The process's own name.
    pub name: String,
    /// Its command line; empty for a kernel thread.
    #[serde(skip)]
    pub command: String,
    /// Share of one CPU, percent.
    pub cpu_percent: f64,
    /// Resident set, bytes.
    pub resident_bytes: u64,
    /// The number of threads.
    pub threads: u64,
}

/// The CPU time of each process at the last view.
#[derive(Debug)]
pub struct Ranking {
    at: Instant,
    /// CPU time by process number, ns.
    seen: HashMap<i32, u64>,
}

impl Ranking {
    /// Begins with a first reading of all processes.
    ///
    /// # Errors
    /// An error where `/proc` is not mounted.
    pub fn begin() -> Result<Self> {
        Ok(Self { at: Instant::now(), seen: read_cpu_times()? })
    }

    /// The `most` busiest processes since the last view, the busiest first. For all other processes only the CPU clock is
    /// read, which takes a fifth of a microsecond each.
    ///
    /// # Errors
    /// An error where `/proc` is not mounted.
    pub fn busiest(&mut self, most: usize) -> Result<Vec<Busy>> {
        let (at, seen) = (Instant::now(), read_cpu_times()?);
        let window = (at - self.at).as_secs_f64().max(1e-9);
        // A smaller time than before belongs to a new process with this number, all of whose time is since the last view.
        let grown = |(pid, now): (&i32, &u64)| {
            let before = self.seen.get(pid).copied().unwrap_or(0);
            (*pid, now.checked_sub(before).unwrap_or(*now))
        };
        let mut grown: Vec<_> = seen.iter().map(grown).filter(|(_, ns)| *ns > 0).collect();
        grown.sort_unstable_by_key(|(pid, ns)| (std::cmp::Reverse(*ns), *pid));
        let busy = grown
            .into_iter()
            .filter_map(|(pid, ns)| describe_process(pid, ns as f64 / 1e7 / window))
            .take(most);
        let busy = busy.collect();
        (self.at, self.seen) = (at, seen);
        Ok(busy)
    }
}

fn read_cpu_times() -> Result<HashMap<i32, u64>> {
    let pids = enumeration::pids()?.into_iter();
    Ok(pids.map(|pid| (pid, process_cpu_ns(pid.unsigned_abs()))).collect())
}

/// The description of a process; `None` if it has ended.
fn describe_process(pid: i32, cpu: f64) -> Option<Busy> {
    let process = Process::open(pid).ok()?;
    let text = |name: &str| std::fs::read(format!("/proc/{pid}/{name}")).unwrap_or_default();
    let words = |bytes: &[u8]| String::from_utf8_lossy(bytes).replace('\0', " ").trim().to_owned();
    Some(Busy {
        pid,
        name: words(&text("comm")),
        command: words(&text("cmdline")),
        cpu_percent: cpu,
        resident_bytes: process.resident().ok()?.value,
        threads: process.threads().ok()?.value,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use syscost_platform::testing::print_skipped;

    #[test]
    fn hits_are_references_minus_misses() {
        assert_eq!(percent_of_hits(200, 50), Some(75.0));
        assert_eq!(percent_of_hits(200, 0), Some(100.0));
        assert_eq!(percent_of_hits(200, 300), Some(0.0));
        assert_eq!(percent_of_hits(0, 0), None);
    }

    /// Reads memory in which each line is far from the last one, and then one word repeatedly.
    #[test]
    fn a_walk_over_much_memory_misses_more_than_reading_one_word() {
        let mut hits = match CacheHits::open(syscost_platform::cpu::allowed_cpus().into_iter()) {
            Ok(hits) => hits,
            Err(why) => return print_skipped(&why),
        };
        let memory = vec![1u8; 256 << 20];
        let mut percent = |stride: usize| {
            let sum: u64 = (0..1 << 22)
                .map(|n: usize| u64::from(std::hint::black_box(&memory)[n * stride % memory.len()]))
                .sum();
            assert_eq!(sum, 1 << 22);
            hits.hit_percent().expect("they count")
        };
        let (near, far) = (percent(0), percent(8 * 4096 + 64));
        assert!(near.is_none_or(|near| far.expect("it referred") < near), "{near:?} {far:?}");
    }

    #[test]
    fn a_computing_process_is_among_the_busiest() {
        let mut processes = Ranking::begin().expect("/proc");
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_millis(80) {
            std::hint::black_box(begun);
        }
        let busy = processes.busiest(1000).expect("/proc");
        let own = busy.iter().find(|busy| busy.pid == std::process::id() as i32).expect("ourselves");
        assert!(own.cpu_percent > 5.0 && own.threads >= 1 && own.resident_bytes > 0, "{own:?}");
        assert!(busy.is_sorted_by(|a, b| a.cpu_percent >= b.cpu_percent));
    }
}

//! Looks at this machine and its processes, one after the other.

use crate::cache_hits::CacheHits;
use crate::top_process::{Busy, Ranking};
use crate::view::View;
use std::time::Duration;
use syscost_counters::Process;
use syscost_counters::snapshot::{Missing, Snapshot};
use syscost_platform::error::Result;

/// The most processes that are shown on a tall terminal.
const MOST_PROCESSES: usize = 40;

/// State between two looks.
pub struct Watch {
    before: Snapshot,
    processes: Ranking,
    own: Process,
    own_cpu: Duration,
    /// Or why there is none.
    cache: std::result::Result<CacheHits, String>,
}

impl Watch {
    /// Begins with a first look.
    ///
    /// # Errors
    /// `/proc` cannot be read.
    pub fn begin() -> Result<Self> {
        let own = Process::open(std::process::id() as i32)?;
        let own_cpu = own.cpu_time()?.value;
        let before = Snapshot::take()?;
        let cache = CacheHits::open(before.cpus.iter().map(|(cpu, _)| *cpu));
        Ok(Self { before, processes: Ranking::begin()?, own, own_cpu, cache })
    }

    /// Reads the machine and compares it with the last look.
    ///
    /// # Errors
    /// `/proc` cannot be read.
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

/// One look.
pub struct Seen {
    /// The machine between this look and the one before.
    pub view: View,
    /// The busiest processes, the busiest first.
    pub processes: Vec<Busy>,
    /// Share of a CPU that this monitor uses, percent.
    pub own: f64,
    /// When the kernel was started, Unix seconds.
    pub booted: u64,
    /// Hits in the last-level cache, percent of the references of all CPUs; `None` without references or counters.
    pub cache_hit_percent: Option<f64>,
}

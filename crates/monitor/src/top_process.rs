//! The processes with most CPU time since the last look.

use serde::Serialize;
use std::collections::HashMap;
use std::time::Instant;
use syscost_counters::{Fault, Process, enumeration};
use syscost_platform::process::process_cpu_ns;

/// One of these processes.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Busy {
    /// Its number.
    pub pid: i32,
    /// Its own name.
    pub name: String,
    /// Its command line; empty for a kernel thread.
    #[serde(skip)]
    pub command: String,
    /// Share of one CPU, percent.
    pub cpu_percent: f64,
    /// Its resident set, bytes.
    pub resident_bytes: u64,
    /// Its threads.
    pub threads: u64,
}

/// The CPU time of each process at the last look.
#[derive(Debug)]
pub struct Ranking {
    at: Instant,
    /// CPU time by process number, ns.
    seen: HashMap<i32, u64>,
}

impl Ranking {
    /// The first look.
    ///
    /// # Errors
    /// [`Fault::Denied`] where `/proc` is not mounted.
    pub fn begin() -> Result<Self, Fault> {
        Ok(Self { at: Instant::now(), seen: read_cpu_times()? })
    }

    /// The `most` busiest processes since the last look, the busiest first. Of the others only the clock is read, in a
    /// fifth of a microsecond each.
    ///
    /// # Errors
    /// [`Fault::Denied`] where `/proc` is not mounted.
    pub fn busiest(&mut self, most: usize) -> Result<Vec<Busy>, Fault> {
        let (at, seen) = (Instant::now(), read_cpu_times()?);
        let window = (at - self.at).as_secs_f64().max(1e-9);
        // Less than before means a new process with this number, all of whose time is since the last look.
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

fn read_cpu_times() -> Result<HashMap<i32, u64>, Fault> {
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

    #[test]
    fn who_works_is_among_the_busiest() {
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

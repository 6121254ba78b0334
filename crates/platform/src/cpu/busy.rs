//! Which CPUs other tasks use at this moment, by `/proc`, which shows the whole machine in a container too.

use super::super::kernel_files::KernelFiles;
use super::super::proc::busy_and_idle_ticks;
use std::time::Duration;

/// Between two readings: two of the kernel's clock ticks, of which a CPU that is used throughout has no idle one.
const LOOK: Duration = Duration::from_millis(20);

/// Returns the CPUs that were busy throughout two samples of 20 ms. If no other task runs, it returns at once. If
/// the first CPU is free in the first sample, the result is empty: a daemon's few milliseconds are no reason to
/// avoid it.
pub fn cpus_in_use(cpus: &[usize]) -> Vec<usize> {
    let files = KernelFiles::live();
    if files.read_text("/proc/loadavg").and_then(|text| running_tasks(&text)).is_some_and(|tasks| tasks <= 1)
    {
        return Vec::new();
    }
    let first = sample_cpus_in_use(&files, cpus);
    if cpus.first().is_none_or(|cpu| !first.contains(cpu)) {
        return Vec::new();
    }
    let second = sample_cpus_in_use(&files, cpus);
    first.into_iter().filter(|cpu| second.contains(cpu)).collect()
}

/// Tasks of the whole machine that run or are ready at this moment, by `/proc/loadavg` (proc_loadavg(5)).
fn running_tasks(text: &str) -> Option<usize> {
    text.split_ascii_whitespace().nth(3)?.split('/').next()?.parse().ok()
}

fn sample_cpus_in_use(files: &KernelFiles, cpus: &[usize]) -> Vec<usize> {
    let Some(before) = files.read_text("/proc/stat") else { return Vec::new() };
    std::thread::sleep(LOOK);
    let after = files.read_text("/proc/stat").unwrap_or_default();
    cpus.iter().copied().filter(|&cpu| is_in_use(&before, &after, cpu)).collect()
}

/// Whether a CPU was busy and never idle between two readings of `/proc/stat`. False if the CPU is not listed, as
/// in some sandboxes.
fn is_in_use(before: &str, after: &str, cpu: usize) -> bool {
    let ticks = |text| busy_and_idle_ticks(text, cpu);
    let (Some((busy_before, idle_before)), Some((busy, idle))) = (ticks(before), ticks(after)) else {
        return false;
    };
    busy > busy_before && idle == idle_before
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::{allowed_cpus, run_on_cpu};

    #[test]
    fn a_cpu_without_an_idle_tick_is_in_use() {
        let stat = |busy: u64, idle: u64| format!("cpu  9 9 9 9\ncpu3 {busy} 0 0 {idle} 0 0 0 0 0 0\n");
        assert!(is_in_use(&stat(10, 50), &stat(12, 50), 3));
        assert!(!is_in_use(&stat(10, 50), &stat(11, 51), 3), "now and then");
        assert!(!is_in_use(&stat(10, 50), &stat(10, 52), 3), "idle");
        assert!(!is_in_use(&stat(0, 0), &stat(0, 0), 3), "a kernel that tells nothing");
        assert!(!is_in_use(&stat(10, 50), &stat(12, 50), 4), "no such CPU");
    }

    #[test]
    fn the_running_tasks_are_the_fourth_number() {
        assert_eq!(running_tasks("6.43 4.52 2.20 7/140 4997\n"), Some(7));
        assert_eq!(running_tasks(""), None);
    }

    #[test]
    fn a_look_takes_less_than_the_fifty_milliseconds_that_a_start_may() {
        let begun = std::time::Instant::now();
        let cpus = allowed_cpus();
        run_on_cpu(cpus[0], || cpus_in_use(&cpus)).expect("pinned");
        // On a machine that is overloaded a sleep is late; ten looks would be a mistake.
        assert!(begun.elapsed() < 10 * LOOK, "{:?}", begun.elapsed());
    }
}

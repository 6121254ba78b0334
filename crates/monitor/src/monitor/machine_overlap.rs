//! `syscost monitor --overlap K`: IO_OVERLAP(K, X) of the running machine, the share of time for which a CPU and at least K disks
//! are busy at once.
//!
//! The kernel counts the tasks that run or wait for a CPU, and the requests in flight of each disk. The monitor reads both at
//! random times, and does not count itself. The idle time of `/proc/stat` checks the result. With K = 0 the share has two
//! bounds: the mean share of the CPUs, if all are busy at the same times, and the sum of their shares.

use super::Args;
use crate::view::View;
use serde_json::json;
use std::time::Duration;
use syscost_command_line::page;
use syscost_counters::snapshot::Snapshot;
use syscost_counters::{Disk, Fault, enumeration};
use syscost_platform::error::{Error, Result};
use syscost_platform::kernel_files::KernelFiles;
use syscost_platform::signal;
use syscost_technique::io_overlap::Monitor;

/// The binary logarithm of the number of samples: half of a 95 % interval is then at most 0.03.
const POWER: u32 = 10;
/// The mean time between two samples without `--for`. The monitor then takes less than 1 % of a CPU.
const PERIOD: Duration = Duration::from_millis(5);

/// Measures and prints the share, unless a signal arrives.
pub(super) fn measure_overlap(k: u32, args: &Args) -> Result<()> {
    let disks = enumeration::disks().unwrap_or_default();
    let disks = disks.iter().map(|name| Disk::open(name)).collect::<std::result::Result<Vec<_>, _>>()?;
    let names = disks.iter().map(Disk::name).collect::<Vec<_>>().join(", ");
    if k as usize > disks.len() {
        let (count, names) = (disks.len(), page::inert(&names));
        return Err(Error::Usage(format!(
            "--overlap {k}: expected at most {count}, the disks here: [{names}]"
        )));
    }
    let samples = 1u32 << POWER;
    let period = args.seconds.map_or(PERIOD, |seconds| Duration::from_secs_f64(seconds) / samples);
    let monitor = Monitor { period, seed: u64::from(std::process::id()) };
    let before = Snapshot::take()?;
    let overlap = monitor.sample_signal::<POWER>(|| {
        if let Some(signal) = signal::pending() {
            return Err(Error::Disturbed(format!("ended by {signal}")));
        }
        Ok(is_a_cpu_busy()? && busy_disk_count(&disks)? >= k)
    });
    if signal::pending().is_some() {
        return Ok(());
    }
    let (overlap, view) = (overlap?, View::between(&before, &Snapshot::take()?));
    if !overlap.real_time {
        page::warn(
            &"the monitor may not run in the real-time class: where all CPUs are busy it samples late (`ulimit -r`)",
        );
    }
    let (x, busy) = (overlap.fraction, view.all.map(|all| all.busy_percent));
    let value = json!({
        "k": k, "x": x.estimate, "low": x.low, "high": x.high, "samples": samples, "seconds": view.window.as_secs_f64(),
        "disks": names, "cpus": view.cpus.len(), "cpus_busy_percent": busy, "real_time": overlap.real_time,
    });
    page::write_json_or(args.json, &value, || {
        let number = |value: f64| format!("{value:.4}");
        let cpus = busy.map_or("–".into(), |busy| format!("{:.4}", busy / 100.0));
        let row = [
            format!("IO_OVERLAP({k}, X)"),
            number(x.estimate),
            number(x.low),
            number(x.high),
            cpus,
            names.clone(),
        ];
        let heading = ["", "X", "from", "to", "mean of the CPUs", "disks"].map(str::to_owned);
        if page::is_piped() {
            page::tabbed_rows([row])
        } else {
            page::columns_text(&[heading, row], usize::MAX)
        }
    })
}

/// Whether a task besides this monitor runs or waits for a CPU.
fn is_a_cpu_busy() -> Result<bool> {
    let line = KernelFiles::live().read_first_line("proc/loadavg").unwrap_or_default();
    match running_task_count(&line) {
        // The monitor itself runs while it reads.
        Some(count @ 1..) => Ok(count > 1),
        _ => Err(Error::Missing(
            "/proc/loadavg does not count the tasks that run: is /proc mounted whole?".into(),
        )),
    }
}

/// The number of tasks that run or wait for a CPU, from a line of `/proc/loadavg`: `0.20 0.18 0.12 1/80 11206`.
fn running_task_count(line: &str) -> Option<u64> {
    line.split(' ').nth(3)?.split_once('/')?.0.parse().ok()
}

fn busy_disk_count(disks: &[Disk]) -> std::result::Result<u32, Fault> {
    disks.iter().try_fold(0, |sum, disk| Ok(sum + u32::from(disk.traffic()?.value.in_flight > 0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn running_tasks_are_the_first_of_two_numbers() {
        assert_eq!(running_task_count("0.20 0.18 0.12 3/80 11206"), Some(3));
        assert_eq!(running_task_count("0.20 0.18 0.12"), None);
        assert_eq!(running_task_count("0.20 0.18 0.12 x/80 1"), None);
        assert!(is_a_cpu_busy().is_ok());
    }
}

//! Others that take time from this process: processes, guests, a tracer, and the limits of a control group.

use super::{Finding, Patient};
use crate::platform::proc::{stolen_share, tracer};

/// Load per CPU above which the scheduler often has another task to run. An idle system with a desktop
/// stays below.
const BUSY_LOAD_PER_CPU: f64 = 0.3;

/// Share of stolen time above which a guest is disturbed: 0.5 % is 50 µs in every 10 ms.
const STOLEN_SHARE: f64 = 0.005;

pub(super) fn other_work_runs(patient: &Patient) -> Option<Finding> {
    let load = one_minute_load(&patient.files.read_first_line("proc/loadavg")?)?;
    let cpus = patient.online_cpu_count();
    (load / cpus > BUSY_LOAD_PER_CPU).then(|| {
        Finding::new(
            format!("the load of the last minute is {load:.2} on {cpus} CPUs"),
            "other work shares the caches and the memory, and takes the CPU away",
            "find the process with `top`, stop it, and wait a minute",
        )
    })
}

pub(super) fn hypervisor_is_present(patient: &Patient) -> Option<Finding> {
    let hypervisor = patient.fingerprint.hypervisor.as_deref()?;
    Some(Finding::new(
        format!("a hypervisor runs below this kernel ({hypervisor})"),
        "page faults, timers and interrupts may leave the guest, CPUID always does, counters may be missing, \
         and time can be stolen",
        "read the numbers as those of a guest, or measure on bare metal",
    ))
}

pub(super) fn time_was_stolen(patient: &Patient) -> Option<Finding> {
    let share = stolen_share(&patient.files.read_text("proc/stat")?)?;
    (share > STOLEN_SHARE).then(|| {
        Finding::new(
            format!("{:.1} % of the time since boot was stolen by the hypervisor", share * 100.0),
            "a guest that is not run still sees its clock advance, and the operation is charged for it",
            "measure on a host with fewer guests, on dedicated CPUs, or at another hour",
        )
    })
}

pub(super) fn cpu_quota_is_set(patient: &Patient) -> Option<Finding> {
    let quota = patient.fingerprint.cpu_quota?;
    Some(Finding::new(
        format!("a control group limits this process to {quota:.2} CPUs"),
        "once the quota of a period is spent the process stands still until the next, in mid-sample",
        "lift it: docker run without --cpus, no CPU limit on the pod, or \
         `sudo systemctl set-property --runtime UNIT CPUQuota=`",
    ))
}

pub(super) fn io_limit_is_set(patient: &Patient) -> Option<Finding> {
    let limits = patient.fingerprint.surroundings.io_limit.as_deref().filter(|limits| *limits != "none")?;
    Some(Finding::new(
        format!("a control group limits the use of devices ({limits})"),
        "once the limit of a moment is spent, reads and writes wait for the kernel and not for the device",
        "lift it: docker run without --device-read-bps and the like, or \
         `sudo systemctl set-property --runtime UNIT IOReadBandwidthMax= IOWriteBandwidthMax= IOReadIOPSMax= IOWriteIOPSMax=`",
    ))
}

pub(super) fn process_is_traced(patient: &Patient) -> Option<Finding> {
    let tracer = tracer(&patient.read_process_status())?;
    Some(Finding::new(
        format!("process {tracer} traces this one"),
        "a tracer may stop the process at system calls, signals and forks, and no case can call a witness of its own",
        "run it without strace, gdb, rr, proot or another tracer",
    ))
}

/// The first number of `/proc/loadavg`.
fn one_minute_load(loadavg: &str) -> Option<f64> {
    loadavg.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_load_is_that_of_one_minute() {
        assert_eq!(one_minute_load("0.13 0.04 0.03 1/81 3558"), Some(0.13));
        assert_eq!(one_minute_load(""), None);
    }
}

//! Others that take time from this process: processes, guests, a tracer, and the limits of a control group.

use super::{Finding, Patient, finding_if};
use crate::platform::kernel_files::meminfo_bytes;
use crate::platform::limit;
use crate::platform::proc::{CAP_IPC_LOCK, has_capability, locked_memory_limit, stolen_share, tracer};

/// Load per CPU above which the scheduler often has another task to run. An idle system with a desktop
/// stays below.
const BUSY_LOAD_PER_CPU: f64 = 0.3;

/// Share of stolen time above which a guest is disturbed: 0.5 % is 50 µs in every 10 ms.
const STOLEN_SHARE: f64 = 0.005;

pub(super) fn other_work_runs(patient: &Patient) -> Option<Finding> {
    let load = one_minute_load(&patient.files.read_first_line("proc/loadavg")?)?;
    let cpus = patient.online_cpu_count();
    finding_if(
        load / cpus > BUSY_LOAD_PER_CPU,
        format!("the load of the last minute is {load:.2} on {cpus} CPUs"),
        "other work shares the caches and the memory, and takes the CPU away",
        "find the process with `top`, stop it, and wait a minute",
    )
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
    finding_if(
        share > STOLEN_SHARE,
        format!("{:.1} % of the time since boot was stolen by the hypervisor", share * 100.0),
        "a guest that is not run still sees its clock advance, and the operation is charged for it",
        "measure on a host with fewer guests, on dedicated CPUs, or at another hour",
    )
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

// Settings and shortages that make the cost of memory vary.

const MIB: u64 = 1 << 20;

/// Bytes. The largest cases map some hundred MiB, and the kernel begins to reclaim well before nothing is left.
const AVAILABLE_WANTED: u64 = 1024 * MIB;

/// Bytes of a bench process with its arena and its samples, all of which are to be locked.
const LOCKED_WANTED: u64 = 64 * MIB;

pub(super) fn huge_pages_are_always(patient: &Patient) -> Option<Finding> {
    patient.fingerprint.huge_pages.as_deref().filter(|&setting| setting == "always")?;
    Some(Finding::new(
        "transparent huge pages are set to always",
        "whether memory gets a huge page depends on how fragmented it is just then, so faults and misses \
         cost one thing or another by luck",
        "scripts/quiet COMMAND, or: echo madvise | sudo tee /sys/kernel/mm/transparent_hugepage/enabled",
    ))
}

pub(super) fn little_memory_is_available(patient: &Patient) -> Option<Finding> {
    let group = limit::cgroup_memory_left(patient.files).unwrap_or(u64::MAX);
    let available = read_meminfo(patient, "MemAvailable")?.min(group);
    finding_if(
        available < AVAILABLE_WANTED,
        format!("{} MiB of memory are available", available / MIB),
        "the kernel reclaims memory while it is measured, and large cases are skipped",
        format!(
            "stop what uses memory, or give the guest or the control group more, until {} MiB are",
            AVAILABLE_WANTED / MIB
        ),
    )
}

pub(super) fn swap_is_in_use(patient: &Patient) -> Option<Finding> {
    let used = read_meminfo(patient, "SwapTotal")?.saturating_sub(read_meminfo(patient, "SwapFree")?);
    finding_if(
        used > 0,
        format!("{} MiB are swapped out", used.div_ceil(MIB)),
        "a touch of memory may wait for a disk",
        "sudo swapoff -a (and `sudo swapon -a` afterwards)",
    )
}

pub(super) fn memory_locking_is_limited(patient: &Patient) -> Option<Finding> {
    let limit = locked_memory_limit(&patient.files.read_text("proc/self/limits")?)?;
    let exempt = has_capability(&patient.read_process_status(), CAP_IPC_LOCK);
    finding_if(
        limit < LOCKED_WANTED && !exempt,
        format!("at most {} MiB may be locked in memory", limit / MIB),
        "the bench process cannot be kept from page faults of its own",
        "sudo prlimit --pid $$ --memlock=unlimited, in the shell that measures",
    )
}

fn read_meminfo(patient: &Patient, key: &str) -> Option<u64> {
    meminfo_bytes(&patient.files.read_text("proc/meminfo")?, key)
}

// The file system of the scratch directory.

/// File systems without a disk of their own, and what a case with files would measure there.
const UNBACKED: [(&str, &str); 4] = [
    ("tmpfs", "its files are memory: nothing can be evicted, and cases that must reach a disk are skipped"),
    ("ramfs", "its files are memory: nothing can be evicted, and cases that must reach a disk are skipped"),
    ("rootfs", "its files are memory: nothing can be evicted, and cases that must reach a disk are skipped"),
    ("overlay", "a file operation passes through two file systems, and opening a file may copy it"),
];

pub(super) fn scratch_has_no_disk(patient: &Patient) -> Option<Finding> {
    let filesystem = patient.fingerprint.scratch_filesystem.as_deref()?;
    let (_, why) = UNBACKED.iter().find(|(name, _)| *name == filesystem)?;
    Some(Finding::new(
        format!("the scratch directory {} is on {filesystem}", patient.scratch.display()),
        *why,
        "put it on a disk: TMPDIR=/directory/on/ext4/xfs/or/btrfs COMMAND",
    ))
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

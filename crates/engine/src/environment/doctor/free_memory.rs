//! Settings and shortages that make the cost of memory vary.

use super::{Finding, Patient};
use crate::platform::kernel_files::meminfo_bytes;
use crate::platform::limit;
use crate::platform::proc::{CAP_IPC_LOCK, has_capability, locked_memory_limit};

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
    (available < AVAILABLE_WANTED).then(|| {
        Finding::new(
            format!("{} MiB of memory are available", available / MIB),
            "the kernel reclaims memory while it is measured, and large cases are skipped",
            format!(
                "stop what uses memory, or give the guest or the control group more, until {} MiB are",
                AVAILABLE_WANTED / MIB
            ),
        )
    })
}

pub(super) fn swap_is_in_use(patient: &Patient) -> Option<Finding> {
    let used = read_meminfo(patient, "SwapTotal")?.saturating_sub(read_meminfo(patient, "SwapFree")?);
    (used > 0).then(|| {
        Finding::new(
            format!("{} MiB are swapped out", used.div_ceil(MIB)),
            "a touch of memory may wait for a disk",
            "sudo swapoff -a (and `sudo swapon -a` afterwards)",
        )
    })
}

pub(super) fn memory_locking_is_limited(patient: &Patient) -> Option<Finding> {
    let limit = locked_memory_limit(&patient.files.read_text("proc/self/limits")?)?;
    let exempt = has_capability(&patient.read_process_status(), CAP_IPC_LOCK);
    (limit < LOCKED_WANTED && !exempt).then(|| {
        Finding::new(
            format!("at most {} MiB may be locked in memory", limit / MIB),
            "the bench process cannot be kept from page faults of its own",
            "sudo prlimit --pid $$ --memlock=unlimited, in the shell that measures",
        )
    })
}

fn read_meminfo(patient: &Patient, key: &str) -> Option<u64> {
    meminfo_bytes(&patient.files.read_text("proc/meminfo")?, key)
}

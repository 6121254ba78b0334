//! The findings of the doctor, a function for each: first those of the processor, its clock and its counters.

use super::{Finding, Patient, finding_if};
use crate::environment::{Smt, cpu_list, cpuinfo};
use crate::platform::cpu::cpu_class::cpu_classes;
use crate::platform::kernel_files::meminfo_bytes;
use crate::platform::limit;
use crate::platform::proc::{
    CAP_IPC_LOCK, CAP_PERFMON, CAP_SYS_ADMIN, has_capability, locked_memory_limit, stolen_share, tracer,
};

pub(super) fn smt_is_active(patient: &Patient) -> Option<Finding> {
    finding_if(
        patient.fingerprint.smt == Smt::Active,
        "cores run two or more threads (SMT)",
        "whatever runs on the sibling shares the core's units and its first caches",
        "echo off | sudo tee /sys/devices/system/cpu/smt/control (and `on` afterwards)",
    )
}

pub(super) fn cpus_are_of_several_classes(patient: &Patient) -> Option<Finding> {
    let measured = patient.fingerprint.cpu_class.as_deref()?;
    let online = cpu_list::parse(patient.fingerprint.cpus_online.as_deref()?);
    let classes = cpu_classes(patient.files, &online);
    let texts: Vec<_> =
        classes.iter().map(|class| format!("{} ({})", class.name, cpu_list::format(&class.cpus))).collect();
    finding_if(
        classes.len() > 1,
        format!("the CPUs are of {} classes: {}", classes.len(), texts.join(", ")),
        format!("a figure holds for one class, here {measured}, and a task beside it may run on another"),
        "--cpu (or SYSCOST_CPU) names another class, or a CPU by its number; compare runs of one class",
    )
}

pub(super) fn one_cpu_is_allowed(patient: &Patient) -> Option<Finding> {
    let allowed = patient.fingerprint.cpus_allowed.as_deref()?;
    finding_if(
        cpu_list::parse(allowed).len() == 1,
        format!("this process may use one CPU only ({allowed})"),
        "cases between two CPUs are skipped, and everything else on the machine shares that one",
        "widen the affinity (taskset, docker --cpuset-cpus), or give the guest another CPU",
    )
}

/// Clock sources that user space reads without a system call.
const FAST_SOURCES: [&str; 2] = ["tsc", "arch_sys_counter"];

pub(super) fn clock_source_is_slow(patient: &Patient) -> Option<Finding> {
    let known = patient.is_x86() || patient.fingerprint.architecture.as_deref() == Some("aarch64");
    let source = patient.fingerprint.clock_source.as_deref().filter(|s| !FAST_SOURCES.contains(s))?;
    finding_if(
        known,
        format!("the kernel's clock source is {source}"),
        "it rejected the hardware counter, by itself or by a setting; reading the time may then be a system call",
        clock_source_remedy(patient),
    )
}

fn clock_source_remedy(patient: &Patient) -> &'static str {
    let available = patient.fingerprint.clock_sources.as_deref().unwrap_or_default();
    if available.split_whitespace().any(|s| s == "tsc") {
        "echo tsc | sudo tee /sys/devices/system/clocksource/clocksource0/current_clocksource"
    } else {
        "see why with `sudo dmesg | grep -i -e tsc -e clocksource`"
    }
}

pub(super) fn tsc_is_not_constant(patient: &Patient) -> Option<Finding> {
    let cpuinfo = patient.files.read_text("proc/cpuinfo").filter(|_| patient.is_x86())?;
    let lacks = |flag: &&str| cpuinfo::has_flag(&cpuinfo, flag) == Some(false);
    let missing: Vec<_> = ["constant_tsc", "nonstop_tsc"].into_iter().filter(lacks).collect();
    finding_if(
        !missing.is_empty(),
        format!("the CPU does not promise {}", missing.join(" and ")),
        "the time-stamp counter may change its rate or stand still, so its ticks are no time",
        "in a guest ask the host for an invariant TSC (QEMU: -cpu host,+invtsc)",
    )
}

/// Single mitigations are part of what is measured. With all of them off the machine is of another kind.
pub(super) fn mitigations_are_off(patient: &Patient) -> Option<Finding> {
    let line = patient.fingerprint.kernel_command_line.as_deref()?;
    finding_if(
        line.split_whitespace().any(|word| word == "mitigations=off"),
        "the kernel was booted with mitigations=off",
        "entering the kernel is cheaper here than on any machine that must be safe",
        "boot without it, unless this is what you compare",
    )
}

/// Above this level an ordinary user may not count events of its own processes.
const PARANOID_LIMIT: i64 = 2;

pub(super) fn perf_is_forbidden(patient: &Patient) -> Option<Finding> {
    let level = patient.fingerprint.perf_event_paranoid.filter(|&level| level > PARANOID_LIMIT)?;
    let status = patient.read_process_status();
    let exempt = has_capability(&status, CAP_PERFMON) || has_capability(&status, CAP_SYS_ADMIN);
    finding_if(
        !exempt,
        format!("perf_event_paranoid is {level}"),
        "the kernel refuses to count events, and cases that count in events are skipped",
        format!("sudo sysctl kernel.perf_event_paranoid={PARANOID_LIMIT}"),
    )
}

pub(super) fn core_counters_are_missing(patient: &Patient) -> Option<Finding> {
    let sources = patient.files.entry_names("sys/bus/event_source/devices");
    finding_if(
        !sources.iter().any(|name| counts_core_events(name)),
        "the kernel has no performance counters for the CPU",
        "core cycles, instructions and cache misses cannot be counted; ticks and software events can",
        "in a guest ask the host for a virtual PMU; otherwise look for `PMU` in `sudo dmesg`",
    )
}

/// `cpu` in general, `cpu_core` and `cpu_atom` on hybrid x86, a name of the core on ARM.
fn counts_core_events(source: &str) -> bool {
    ["cpu", "cpu_core", "cpu_atom"].contains(&source)
        || ["armv", "apple_"].iter().any(|prefix| source.starts_with(prefix))
}

// Settings that let the core's frequency change during a measurement.

pub(super) fn governor_is_not_performance(patient: &Patient) -> Option<Finding> {
    let governor = patient.fingerprint.governor.as_deref().filter(|&g| g != "performance")?;
    Some(Finding::new(
        format!("the frequency governor is {governor}"),
        "the core speeds up while it is measured, so the first samples cost more than the last",
        "scripts/quiet COMMAND, or: sudo cpupower frequency-set -g performance",
    ))
}

pub(super) fn turbo_is_on(patient: &Patient) -> Option<Finding> {
    patient.fingerprint.turbo.filter(|&on| on)?;
    Some(Finding::new(
        "turbo (boost) is on",
        "the frequency then depends on the temperature and on what the other cores do",
        format!("scripts/quiet COMMAND, or: {}", turbo_command(patient)),
    ))
}

fn turbo_command(patient: &Patient) -> &'static str {
    if patient.files.has("sys/devices/system/cpu/intel_pstate/no_turbo") {
        "echo 1 | sudo tee /sys/devices/system/cpu/intel_pstate/no_turbo"
    } else {
        "echo 0 | sudo tee /sys/devices/system/cpu/cpufreq/boost"
    }
}

/// A mouse has a battery too; the kernel gives it the scope `Device`.
pub(super) fn battery_discharges(patient: &Patient) -> Option<Finding> {
    let directory = "sys/class/power_supply";
    let says = |supply: &str, file: &str, word: &str| {
        patient
            .files
            .read_first_line(&format!("{directory}/{supply}/{file}"))
            .is_some_and(|line| line == word)
    };
    let supplies = patient.files.entry_names(directory);
    let supply = supplies
        .iter()
        .filter(|s| says(s, "type", "Battery") && !says(s, "scope", "Device"))
        .find(|s| says(s, "status", "Discharging"))?;
    Some(Finding::new(
        format!("the machine runs on its battery ({supply})"),
        "firmware lowers the power limit as the charge falls",
        "connect the power supply",
    ))
}

// How this binary was compiled.

const REMEDY: &str = "measure with `cargo bench`, or build with `cargo build --release`";

pub(super) fn is_unoptimized(patient: &Patient) -> Option<Finding> {
    let level = patient.fingerprint.opt_level.as_deref().filter(|&level| level == "0")?;
    Some(Finding::new(
        format!("this binary was built with opt-level {level}"),
        "the loop around an operation then costs more than many of the operations",
        REMEDY,
    ))
}

pub(super) fn has_debug_assertions(patient: &Patient) -> Option<Finding> {
    finding_if(
        patient.fingerprint.debug_assertions,
        "this binary checks debug assertions",
        "overflow and bounds checks run inside what is timed",
        REMEDY,
    )
}

// Others that take time from this process: processes, guests, a tracer, and the limits of a control group.

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

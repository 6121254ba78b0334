//! The doctor's checks, one table row each, and the functions for facts that need more than a line.

use super::Patient;
use crate::environment::{Smt, cpu_list, cpuinfo};
use crate::platform::cpu::cpu_class::cpu_classes;
use crate::platform::kernel_files::meminfo_bytes;
use crate::platform::limit;
use crate::platform::proc::{
    CAP_IPC_LOCK, CAP_PERFMON, CAP_SYS_ADMIN, has_capability, locked_memory_limit, stolen_share, tracer,
};

/// One check of a machine.
pub(super) struct Check {
    /// The fact that the check finds, as text; `None` if the machine is fine.
    pub(super) fact: fn(&Patient) -> Option<String>,
    /// The effect on a measurement; `{class}` is replaced by the class of the CPU on which cases are measured.
    pub(super) why: &'static str,
    pub(super) remedy: &'static str,
}

/// All checks: first those of the binary, then the others, ordered by how much their finding disturbs.
pub(super) const CHECKS: &[Check] = &[
    Check {
        fact: |p| {
            fact_if(p.fingerprint.opt_level.as_deref() == Some("0"), "this binary was built with opt-level 0")
        },
        why: "the loop around an operation then costs more than many of the operations",
        remedy: BUILD_REMEDY,
    },
    Check {
        fact: |p| fact_if(p.fingerprint.debug_assertions, "this binary checks debug assertions"),
        why: "overflow and bounds checks run inside what is timed",
        remedy: BUILD_REMEDY,
    },
    // What takes time from this process: other processes, other guests, a tracer, and limits of a control group.
    Check {
        fact: other_work,
        why: "other work shares the caches and the memory, and takes the CPU away",
        remedy: "find the process with `top`, stop it, and wait a minute",
    },
    Check {
        fact: |p| {
            let hypervisor = p.fingerprint.hypervisor.as_deref()?;
            Some(format!("a hypervisor runs below this kernel ({hypervisor})"))
        },
        why: "page faults, timers and interrupts may leave the guest, CPUID always does, counters may be missing, \
              and time can be stolen",
        remedy: "read the numbers as those of a guest, or measure on bare metal",
    },
    Check {
        fact: stolen_time,
        why: "a guest that is not run still sees its clock advance, and the operation is charged for it",
        remedy: "measure on a host with fewer guests, on dedicated CPUs, or at another hour",
    },
    Check {
        fact: |p| {
            Some(format!("a control group limits this process to {:.2} CPUs", p.fingerprint.cpu_quota?))
        },
        why: "once the quota of a period is spent the process stands still until the next, in mid-sample",
        remedy: "lift it: docker run without --cpus, no CPU limit on the pod, or \
                 `sudo systemctl set-property --runtime UNIT CPUQuota=`",
    },
    Check {
        fact: |p| {
            let limits = p.fingerprint.surroundings.io_limit.as_deref()?;
            fact_if(limits != "none", format!("a control group limits the use of devices ({limits})"))
        },
        why: "once the limit of a moment is spent, reads and writes wait for the kernel and not for the device",
        remedy: "lift it: docker run without --device-read-bps and the like, or \
                 `sudo systemctl set-property --runtime UNIT IOReadBandwidthMax= IOWriteBandwidthMax= IOReadIOPSMax= IOWriteIOPSMax=`",
    },
    Check {
        fact: |p| Some(format!("process {} traces this one", tracer(&p.read_process_status())?)),
        why: "a tracer may stop the process at system calls, signals and forks, and no case can call a witness of its own",
        remedy: "run it without strace, gdb, rr, proot or another tracer",
    },
    // Settings that let the core's frequency change during a measurement.
    Check {
        fact: |p| {
            let governor = p.fingerprint.governor.as_deref()?;
            fact_if(governor != "performance", format!("the frequency governor is {governor}"))
        },
        why: "the core speeds up while it is measured, so the first samples cost more than the last",
        remedy: "scripts/quiet COMMAND, or: sudo cpupower frequency-set -g performance",
    },
    Check {
        fact: |p| turbo(p, true),
        why: TURBO,
        remedy: "scripts/quiet COMMAND, or: echo 1 | sudo tee /sys/devices/system/cpu/intel_pstate/no_turbo",
    },
    Check {
        fact: |p| turbo(p, false),
        why: TURBO,
        remedy: "scripts/quiet COMMAND, or: echo 0 | sudo tee /sys/devices/system/cpu/cpufreq/boost",
    },
    Check {
        fact: discharging_battery,
        why: "firmware lowers the power limit as the charge falls",
        remedy: "connect the power supply",
    },
    // The processor, its clock and its counters.
    Check {
        fact: several_classes,
        why: "a figure holds for one class, here {class}, and a task beside it may run on another",
        remedy: "--cpu (or SYSCOST_CPU) names another class, or a CPU by its number; compare runs of one class",
    },
    Check {
        fact: |p| fact_if(p.fingerprint.smt == Smt::Active, "cores run two or more threads (SMT)"),
        why: "whatever runs on the sibling shares the core's units and its first caches",
        remedy: "echo off | sudo tee /sys/devices/system/cpu/smt/control (and `on` afterwards)",
    },
    Check {
        fact: |p| {
            let allowed = p.fingerprint.cpus_allowed.as_deref()?;
            let is_one = cpu_list::parse(allowed).len() == 1;
            fact_if(is_one, format!("this process may use one CPU only ({allowed})"))
        },
        why: "cases between two CPUs are skipped, and everything else on the machine shares that one",
        remedy: "widen the affinity (taskset, docker --cpuset-cpus), or give the guest another CPU",
    },
    Check {
        fact: |p| slow_clock_source(p, true),
        why: SLOW_CLOCK,
        remedy: "echo tsc | sudo tee /sys/devices/system/clocksource/clocksource0/current_clocksource",
    },
    Check {
        fact: |p| slow_clock_source(p, false),
        why: SLOW_CLOCK,
        remedy: "see why with `sudo dmesg | grep -i -e tsc -e clocksource`",
    },
    Check {
        fact: inconstant_counter,
        why: "the time-stamp counter may change its rate or stand still, so its ticks are no time",
        remedy: "in a guest ask the host for an invariant TSC (QEMU: -cpu host,+invtsc)",
    },
    // Single mitigations are part of what is measured. With all of them off, numbers are of another kind of machine.
    Check {
        fact: |p| {
            let line = p.fingerprint.kernel_command_line.as_deref()?;
            let is_off = line.split_whitespace().any(|word| word == "mitigations=off");
            fact_if(is_off, "the kernel was booted with mitigations=off")
        },
        why: "entering the kernel is cheaper here than on any machine that must be safe",
        remedy: "boot without it, unless this is what you compare",
    },
    Check {
        fact: forbidden_events,
        why: "the kernel refuses to count events, and cases that count in events are skipped",
        remedy: "sudo sysctl kernel.perf_event_paranoid=2",
    },
    Check {
        fact: |p| {
            let mut sources = p.files.entry_names("sys/bus/event_source/devices").into_iter();
            let has_counters = sources.any(|name| counts_core_events(&name));
            fact_if(!has_counters, "the kernel has no performance counters for the CPU")
        },
        why: "core cycles, instructions and cache misses cannot be counted; ticks and software events can",
        remedy: "in a guest ask the host for a virtual PMU; otherwise look for `PMU` in `sudo dmesg`",
    },
    // Settings and shortages that make the cost of memory vary.
    Check {
        fact: |p| {
            let is_always = p.fingerprint.huge_pages.as_deref() == Some("always");
            fact_if(is_always, "transparent huge pages are set to always")
        },
        why: "whether memory gets a huge page depends on how fragmented it is just then, so faults and misses \
              cost one thing or another by luck",
        remedy: "scripts/quiet COMMAND, or: echo madvise | sudo tee /sys/kernel/mm/transparent_hugepage/enabled",
    },
    Check {
        fact: little_memory,
        why: "the kernel reclaims memory while it is measured, and large cases are skipped",
        remedy: "stop what uses memory, or give the guest or the control group more, until 1024 MiB are",
    },
    Check {
        fact: |p| {
            let used = read_meminfo(p, "SwapTotal")?.saturating_sub(read_meminfo(p, "SwapFree")?);
            fact_if(used > 0, format!("{} MiB are swapped out", used.div_ceil(MIB)))
        },
        why: "a touch of memory may wait for a disk",
        remedy: "sudo swapoff -a (and `sudo swapon -a` afterwards)",
    },
    Check {
        fact: limited_locking,
        why: "the bench process cannot be kept from page faults of its own",
        remedy: "sudo prlimit --pid $$ --memlock=unlimited, in the shell that measures",
    },
    // File systems without a disk of their own, and what a case with files would measure there.
    Check {
        fact: |p| scratch_without_disk(p, &["tmpfs", "ramfs", "rootfs"]),
        why: "its files are memory: nothing can be evicted, and cases that must reach a disk are skipped",
        remedy: DISK_REMEDY,
    },
    Check {
        fact: |p| scratch_without_disk(p, &["overlay"]),
        why: "a file operation passes through two file systems, and opening a file may copy it",
        remedy: DISK_REMEDY,
    },
];

const BUILD_REMEDY: &str = "measure with `cargo bench`, or build with `cargo build --release`";
const DISK_REMEDY: &str = "put it on a disk: TMPDIR=/directory/on/ext4/xfs/or/btrfs COMMAND";
const TURBO: &str = "the frequency then depends on the temperature and on what the other cores do";
const SLOW_CLOCK: &str =
    "it rejected the hardware counter, by itself or by a setting; reading the time may then be a system call";

fn fact_if(is_found: bool, fact: impl Into<String>) -> Option<String> {
    is_found.then(|| fact.into())
}

fn other_work(patient: &Patient) -> Option<String> {
    /// Load per CPU above which the scheduler often has another task to run. An idle system with a desktop
    /// stays below.
    const BUSY_LOAD_PER_CPU: f64 = 0.3;
    let load = one_minute_load(&patient.files.read_first_line("proc/loadavg")?)?;
    let cpus = patient.fingerprint.cpu_count.unwrap_or(1).max(1);
    let fact = format!("the load of the last minute is {load:.2} on {cpus} CPUs");
    fact_if(load / cpus as f64 > BUSY_LOAD_PER_CPU, fact)
}

/// The first number of `/proc/loadavg`.
fn one_minute_load(loadavg: &str) -> Option<f64> {
    loadavg.split_whitespace().next()?.parse().ok()
}

fn stolen_time(patient: &Patient) -> Option<String> {
    /// Share of stolen time above which a guest is disturbed: 0.5 % is 50 µs in every 10 ms.
    const STOLEN_SHARE: f64 = 0.005;
    let share = stolen_share(&patient.files.read_text("proc/stat")?)?;
    let fact = format!("{:.1} % of the time since boot was stolen by the hypervisor", share * 100.0);
    fact_if(share > STOLEN_SHARE, fact)
}

/// The fact that turbo is on. With `by_intel`, only if intel_pstate switches turbo; without it, only if another driver does.
fn turbo(patient: &Patient, by_intel: bool) -> Option<String> {
    let is_intel = patient.files.has("sys/devices/system/cpu/intel_pstate/no_turbo");
    fact_if(patient.fingerprint.turbo == Some(true) && is_intel == by_intel, "turbo (boost) is on")
}

/// The fact that the machine runs on its battery. Batteries with the scope `Device` are ignored: they belong to a mouse or the like.
fn discharging_battery(patient: &Patient) -> Option<String> {
    let directory = "sys/class/power_supply";
    let says = |supply: &str, file: &str, word: &str| {
        let line = patient.files.read_first_line(&format!("{directory}/{supply}/{file}"));
        line.is_some_and(|line| line == word)
    };
    let mut supplies = patient.files.entry_names(directory).into_iter();
    let discharges = |s: &String| says(s, "type", "Battery") && says(s, "status", "Discharging");
    let supply = supplies.find(|s| discharges(s) && !says(s, "scope", "Device"))?;
    Some(format!("the machine runs on its battery ({supply})"))
}

fn several_classes(patient: &Patient) -> Option<String> {
    patient.fingerprint.cpu_class.as_deref()?;
    let online = cpu_list::parse(patient.fingerprint.cpus_online.as_deref()?);
    let classes = cpu_classes(patient.files, &online);
    let texts: Vec<_> =
        classes.iter().map(|class| format!("{} ({})", class.name, cpu_list::format(&class.cpus))).collect();
    let fact = format!("the CPUs are of {} classes: {}", classes.len(), texts.join(", "));
    fact_if(classes.len() > 1, fact)
}

/// The fact that the clock source is a slow one. `has_tsc` selects machines whose kernel could use the time-stamp counter.
fn slow_clock_source(patient: &Patient, has_tsc: bool) -> Option<String> {
    /// Clock sources that user space reads without a system call.
    const FAST_SOURCES: [&str; 2] = ["tsc", "arch_sys_counter"];
    let known = patient.is_x86() || patient.fingerprint.architecture.as_deref() == Some("aarch64");
    let source = patient.fingerprint.clock_source.as_deref().filter(|s| !FAST_SOURCES.contains(s))?;
    let available = patient.fingerprint.clock_sources.as_deref().unwrap_or_default();
    let is_offered = available.split_whitespace().any(|s| s == "tsc");
    fact_if(known && is_offered == has_tsc, format!("the kernel's clock source is {source}"))
}

fn inconstant_counter(patient: &Patient) -> Option<String> {
    let cpuinfo = patient.files.read_text("proc/cpuinfo").filter(|_| patient.is_x86())?;
    let lacks = |flag: &&str| cpuinfo::has_flag(&cpuinfo, flag) == Some(false);
    let missing: Vec<_> = ["constant_tsc", "nonstop_tsc"].into_iter().filter(lacks).collect();
    fact_if(!missing.is_empty(), format!("the CPU does not promise {}", missing.join(" and ")))
}

fn forbidden_events(patient: &Patient) -> Option<String> {
    /// Above this level an ordinary user may not count events of its own processes.
    const PARANOID_LIMIT: i64 = 2;
    let level = patient.fingerprint.perf_event_paranoid?;
    let status = patient.read_process_status();
    let exempt = has_capability(&status, CAP_PERFMON) || has_capability(&status, CAP_SYS_ADMIN);
    fact_if(level > PARANOID_LIMIT && !exempt, format!("perf_event_paranoid is {level}"))
}

/// Whether this event source counts events of cores: `cpu`, on hybrid x86 `cpu_core` and `cpu_atom`, on ARM a core's name.
fn counts_core_events(source: &str) -> bool {
    ["cpu", "cpu_core", "cpu_atom"].contains(&source)
        || ["armv", "apple_"].iter().any(|prefix| source.starts_with(prefix))
}

const MIB: u64 = 1 << 20;

fn little_memory(patient: &Patient) -> Option<String> {
    /// Bytes. The largest cases map some hundred MiB, and the kernel begins to reclaim well before memory is used up.
    const AVAILABLE_WANTED: u64 = 1024 * MIB;
    let group = limit::cgroup_memory_left(patient.files).unwrap_or(u64::MAX);
    let available = read_meminfo(patient, "MemAvailable")?.min(group);
    fact_if(available < AVAILABLE_WANTED, format!("{} MiB of memory are available", available / MIB))
}

fn limited_locking(patient: &Patient) -> Option<String> {
    /// Bytes of a bench process, its arena and its samples, all of which should be locked.
    const LOCKED_WANTED: u64 = 64 * MIB;
    let limit = locked_memory_limit(&patient.files.read_text("proc/self/limits")?)?;
    let exempt = has_capability(&patient.read_process_status(), CAP_IPC_LOCK);
    let fact = format!("at most {} MiB may be locked in memory", limit / MIB);
    fact_if(limit < LOCKED_WANTED && !exempt, fact)
}

fn read_meminfo(patient: &Patient, key: &str) -> Option<u64> {
    meminfo_bytes(&patient.files.read_text("proc/meminfo")?, key)
}

fn scratch_without_disk(patient: &Patient, kinds: &[&str]) -> Option<String> {
    let filesystem = patient.fingerprint.scratch_filesystem.as_deref().filter(|name| kinds.contains(name))?;
    Some(format!("the scratch directory {} is on {filesystem}", patient.scratch.display()))
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

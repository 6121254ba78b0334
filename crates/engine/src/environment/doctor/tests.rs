//! Each check on a machine with nothing else to find.

use super::*;
use crate::platform::kernel_files::fixture::Machine;

/// A machine without findings.
const WELL: &[(&str, &str)] = &[
    ("proc/cpuinfo", include_str!("../../../../../fixtures/captured/cpuinfo-intel-laptop.txt")),
    ("proc/meminfo", include_str!("../../../../../fixtures/captured/meminfo.txt")),
    ("proc/self/mountinfo", include_str!("../../../../../fixtures/captured/mountinfo.txt")),
    ("proc/self/status", include_str!("../../../../../fixtures/captured/status.txt")),
    ("proc/self/limits", "Max locked memory  unlimited  unlimited  bytes\n"),
    ("proc/self/cgroup", "0::/\n"),
    ("proc/stat", "cpu  1484 0 2950 171212 605 0 74 0 0 0\n"),
    ("proc/loadavg", "0.13 0.04 0.03 1/81 3558\n"),
    ("proc/cmdline", "quiet mitigations=auto\n"),
    ("proc/sys/kernel/arch", "x86_64\n"),
    ("proc/sys/kernel/perf_event_paranoid", "2\n"),
    ("proc/sys/kernel/randomize_va_space", "2\n"),
    ("sys/devices/system/cpu/online", "0-3\n"),
    ("sys/devices/system/cpu/smt/active", "0\n"),
    ("sys/devices/system/cpu/vulnerabilities/spectre_v2", "Vulnerable\n"),
    ("sys/devices/system/cpu/cpufreq/policy0/scaling_governor", "performance\n"),
    ("sys/devices/system/cpu/intel_pstate/no_turbo", "1\n"),
    ("sys/devices/system/clocksource/clocksource0/current_clocksource", "tsc\n"),
    ("sys/devices/system/clocksource/clocksource0/available_clocksource", "tsc hpet \n"),
    ("sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n"),
    ("sys/bus/event_source/devices/cpu/type", "4\n"),
];

const WELL_SCRATCH: &str = "/absent/scratch";

fn well() -> Machine {
    Machine::with_files(WELL)
}

fn examined(machine: &Machine, scratch: &str) -> Vec<Finding> {
    let taken = Fingerprint::take(&machine.files, Path::new(scratch));
    // The tests themselves are a debug build.
    let built = Fingerprint { opt_level: Some("3".to_owned()), debug_assertions: false, ..taken };
    examine(&machine.files, &built, Path::new(scratch))
}

/// The one fact that is found when one file of the well machine is replaced.
fn fact_with(file: &str, text: &str) -> String {
    let machine = well();
    machine.write_file(file, text);
    only_fact(&examined(&machine, WELL_SCRATCH))
}

fn only_fact(findings: &[Finding]) -> String {
    assert_eq!(findings.len(), 1, "{findings:#?}");
    findings[0].fact.clone()
}

#[test]
fn a_quiet_machine_has_no_findings() {
    assert_eq!(examined(&well(), WELL_SCRATCH), []);
}

#[test]
fn a_machine_that_shows_nothing_lacks_only_its_counters() {
    let fact = only_fact(&examined(&Machine::with_files(&[]), WELL_SCRATCH));
    assert!(fact.contains("no performance counters"), "{fact}");
}

#[test]
fn each_replaced_file_leads_to_exactly_one_finding() {
    let cases = [
        ("sys/devices/system/cpu/cpufreq/policy0/scaling_governor", "powersave\n", "governor is powersave"),
        ("sys/devices/system/cpu/intel_pstate/no_turbo", "0\n", "turbo"),
        ("sys/devices/system/cpu/smt/active", "1\n", "SMT"),
        ("proc/self/status", "Cpus_allowed_list:\t2\n", "one CPU only (2)"),
        ("proc/loadavg", "1.30 0.04 0.03 1/81 3558\n", "1.30 on 4 CPUs"),
        ("sys/hypervisor/type", "xen\n", "hypervisor runs below this kernel (xen)"),
        ("proc/stat", include_str!("../../../../../fixtures/captured/stat.txt"), "1.3 % of the time"),
        ("sys/devices/system/clocksource/clocksource0/current_clocksource", "hpet\n", "clock source is hpet"),
        ("proc/cpuinfo", "flags\t: fpu tsc constant_tsc\n", "does not promise nonstop_tsc"),
        ("sys/fs/cgroup/unified/cpu.max", "150000 100000\n", "1.50 CPUs"),
        (
            "sys/fs/cgroup/unified/io.max",
            "8:0 rbps=1048576 wbps=max\n",
            "devices (8:0 rbps=1048576 wbps=max)",
        ),
        ("proc/self/status", "TracerPid:\t4711\n", "process 4711 traces this one"),
        ("sys/kernel/mm/transparent_hugepage/enabled", "[always] madvise never\n", "always"),
        ("proc/sys/kernel/perf_event_paranoid", "4\n", "perf_event_paranoid is 4"),
        ("proc/cmdline", "quiet mitigations=off\n", "mitigations=off"),
        ("proc/meminfo", "MemAvailable: 524288 kB\n", "512 MiB of memory"),
        ("proc/meminfo", "SwapTotal: 2048 kB\nSwapFree: 1023 kB\n", "2 MiB are swapped out"),
        ("proc/self/limits", include_str!("../../../../../fixtures/captured/limits.txt"), "at most 8 MiB"),
    ];
    for (file, text, expected) in cases {
        let fact = fact_with(file, text);
        assert!(fact.contains(expected), "{file}: {fact}");
    }
}

#[test]
fn a_process_with_the_capability_gets_no_finding_about_it() {
    let machine = well();
    machine.write_file("proc/self/status", "CapEff:\t000001ffffffffff\n");
    machine.write_file("proc/sys/kernel/perf_event_paranoid", "4\n");
    machine.write_file("proc/self/limits", include_str!("../../../../../fixtures/captured/limits.txt"));
    assert_eq!(examined(&machine, WELL_SCRATCH), []);
}

#[test]
fn classes_of_cpus_are_found_with_the_one_that_is_measured_on() {
    let machine = well();
    machine.write_file("sys/devices/system/cpu/online", "0-3\n");
    machine.write_file("proc/self/status", "Cpus_allowed_list:\t0-3\n");
    machine.write_file("sys/devices/cpu_core/cpus", "0-1\n");
    machine.write_file("sys/devices/cpu_atom/cpus", "2-3\n");
    let found = examined(&machine, WELL_SCRATCH);
    assert_eq!(only_fact(&found), "the CPUs are of 2 classes: core (0-1), atom (2-3)");
    assert!(found[0].why.contains("here core"), "{found:?}");
    machine.write_file("proc/self/status", "Cpus_allowed_list:\t2-3\n");
    assert!(examined(&machine, WELL_SCRATCH)[0].why.contains("here atom"), "by `taskset`");
}

#[test]
fn missing_counters_are_found_and_counters_of_every_architecture_are_known() {
    let machine = well();
    machine.remove_path("sys/bus/event_source/devices/cpu");
    machine.write_file("sys/bus/event_source/devices/software/type", "1\n");
    assert!(only_fact(&examined(&machine, WELL_SCRATCH)).contains("no performance counters"));
    machine.write_file("sys/bus/event_source/devices/armv8_pmuv3_0/type", "8\n");
    assert_eq!(examined(&machine, WELL_SCRATCH), []);
}

#[test]
fn a_file_system_without_a_disk_is_found() {
    for filesystem in ["tmpfs", "ramfs", "overlay"] {
        let root = format!("27 1 0:1 / / rw - {filesystem} none rw\n");
        assert!(fact_with("proc/self/mountinfo", &root).ends_with(&format!("is on {filesystem}")));
    }
}

#[test]
fn a_laptop_on_its_battery_is_found_but_not_its_mouse() {
    let machine = well();
    machine.write_file("sys/class/power_supply/mouse/type", "Battery\n");
    machine.write_file("sys/class/power_supply/mouse/scope", "Device\n");
    machine.write_file("sys/class/power_supply/mouse/status", "Discharging\n");
    assert_eq!(examined(&machine, WELL_SCRATCH), []);
    machine.write_file("sys/class/power_supply/BAT0/type", "Battery\n");
    machine.write_file("sys/class/power_supply/BAT0/status", "Discharging\n");
    assert!(only_fact(&examined(&machine, WELL_SCRATCH)).contains("BAT0"));
}

#[test]
fn a_debug_build_is_found_first() {
    let machine = well();
    let taken = Fingerprint::take(&machine.files, Path::new(WELL_SCRATCH));
    let debug = Fingerprint { opt_level: Some("0".to_owned()), debug_assertions: true, ..taken };
    let facts: Vec<_> =
        examine(&machine.files, &debug, Path::new(WELL_SCRATCH)).into_iter().map(|f| f.fact).collect();
    assert_eq!(facts, ["this binary was built with opt-level 0", "this binary checks debug assertions"]);
}

#[test]
fn the_clock_is_not_judged_where_its_sources_are_unknown() {
    let machine = well();
    machine.write_file("proc/sys/kernel/arch", "riscv64\n");
    machine
        .write_file("sys/devices/system/clocksource/clocksource0/current_clocksource", "riscv_clocksource\n");
    assert_eq!(examined(&machine, WELL_SCRATCH), []);
}

#[test]
fn every_finding_says_what_why_and_what_to_do() {
    let machine = Machine::with_files(&[]);
    for finding in examine(&machine.files, &Fingerprint::take(&machine.files, Path::new("/")), Path::new("/"))
    {
        assert!(!finding.fact.is_empty() && !finding.why.is_empty() && !finding.remedy.is_empty());
    }
}

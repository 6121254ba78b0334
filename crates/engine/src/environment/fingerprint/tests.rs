//! Fingerprints of faked machines, and the weight of their differences.

use super::*;
use crate::platform::kernel_files::fixture::Machine;

fn take(files: &[(&str, &str)]) -> Fingerprint {
    Fingerprint::take(&Machine::with_files(files).files, Path::new("/dev/shm/absent"))
}

const GUEST: &[(&str, &str)] = &[
    ("proc/cpuinfo", include_str!("../../../../../fixtures/captured/cpuinfo-amd-guest.txt")),
    ("proc/meminfo", include_str!("../../../../../fixtures/captured/meminfo.txt")),
    ("proc/self/mountinfo", include_str!("../../../../../fixtures/captured/mountinfo.txt")),
    ("proc/self/status", include_str!("../../../../../fixtures/captured/status.txt")),
    ("proc/self/cgroup", include_str!("../../../../../fixtures/captured/cgroup-hybrid.txt")),
    ("proc/sys/kernel/osrelease", "6.18.1\n"),
    ("proc/sys/kernel/perf_event_paranoid", "-1\n"),
    ("proc/cmdline", "root=UUID=0123 quiet\n"),
    ("sys/devices/system/cpu/online", "0-1\n"),
    ("sys/devices/system/cpu/smt/active", "0\n"),
    ("sys/devices/system/cpu/vulnerabilities/meltdown", "Not affected\n"),
    ("sys/devices/system/cpu/vulnerabilities/spectre_v2", "Mitigation: Retpolines\n"),
    ("sys/devices/system/cpu/cpufreq/policy0/scaling_governor", "performance\n"),
    ("sys/devices/system/cpu/cpufreq/policy1/scaling_governor", "powersave\n"),
    ("sys/devices/system/cpu/cpufreq/boost", "1\n"),
    ("sys/devices/system/node/online", "0\n"),
    ("sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n"),
    ("sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages", "16\n"),
];

#[test]
fn a_guest_is_described_without_being_named() {
    let guest = take(GUEST);
    assert_eq!(guest.kernel_release.as_deref(), Some("6.18.1"));
    assert_eq!(guest.kernel_command_line.as_deref(), Some("root=… quiet"));
    assert_eq!(guest.cpu_model.as_deref(), Some("AMD EPYC"));
    assert_eq!(guest.hypervisor.as_deref(), Some("unnamed"));
    assert_eq!((guest.cpu_count, guest.numa_nodes), (Some(2), Some(1)));
    assert_eq!(guest.cpus_allowed.as_deref(), Some("0-3"));
    assert_eq!(guest.perf_event_paranoid, Some(-1));
}

#[test]
fn the_settings_in_force_are_read() {
    let guest = take(GUEST);
    assert_eq!(guest.smt, Smt::Off);
    assert_eq!(guest.turbo, Some(true));
    assert_eq!(guest.governor.as_deref(), Some("performance, powersave"));
    assert_eq!(guest.huge_pages.as_deref(), Some("madvise"));
    assert_eq!(guest.huge_pages_reserved.get("2048kB"), Some(&16));
    assert_eq!(guest.mitigations.len(), 2);
    assert_eq!(guest.cpu_quota, None);
}

#[test]
fn turbo_is_off_where_no_turbo_is_one() {
    let file = "sys/devices/system/cpu/intel_pstate/no_turbo";
    assert_eq!(take(&[(file, "1\n")]).turbo, Some(false));
    assert_eq!(take(&[(file, "0\n")]).turbo, Some(true));
}

#[test]
fn a_hypervisor_is_known_by_its_product_name() {
    let product = |name| take(&[("sys/class/dmi/id/product_name", name)]).hypervisor;
    assert_eq!(product("KVM Virtual Machine").as_deref(), Some("KVM Virtual Machine"));
    assert_eq!(product("ThinkPad X1"), None);
}

#[test]
fn no_hypervisor_is_told_only_where_the_kernel_describes_the_processor() {
    let hypervisor_text = |machine: &Fingerprint| {
        machine.field_values().find(|(field, _)| *field == "hypervisor").and_then(|(_, value)| value)
    };
    // `/proc` with `subset=pid` has no cpuinfo.
    assert_eq!(hypervisor_text(&take(&[])), None);
    assert_eq!(
        hypervisor_text(&take(&[("proc/cpuinfo", "vendor_id : GenuineIntel\nflags : fpu\n")])).as_deref(),
        Some("none")
    );
    assert_eq!(hypervisor_text(&take(GUEST)).as_deref(), Some("unnamed"));
}

#[test]
fn a_machine_that_shows_nothing_still_has_a_fingerprint() {
    let blank = take(&[]);
    let build = Fingerprint::from_this_build();
    assert_eq!(blank, Fingerprint { architecture: blank.architecture.clone(), ..build });
    assert_eq!(blank.crate_version.as_deref(), Some(env!("CARGO_PKG_VERSION")));
}

#[test]
fn the_live_machine_can_be_taken() {
    let live = Fingerprint::take(&KernelFiles::live(), &std::env::temp_dir());
    assert!(live.kernel_release.is_some() && live.page_bytes.is_some_and(|b| b.is_power_of_two()));
    assert!(live.differences(&live).is_empty());
}

#[test]
fn every_field_is_compared() {
    let json = serde_json::to_value(Fingerprint::default()).expect("plain data");
    let fields: std::collections::BTreeSet<_> =
        json.as_object().expect("an object").keys().cloned().collect();
    let compared = Fingerprint::default().field_values().map(|(name, _)| name.to_owned()).collect();
    assert_eq!(fields, compared);
}

#[test]
fn newer_code_reads_a_record_that_lacks_fields() {
    let old: Fingerprint = serde_json::from_str(r#"{"cpu_model":"x"}"#).expect("defaults fill in");
    assert_eq!(old, Fingerprint { cpu_model: Some("x".to_owned()), ..Fingerprint::default() });
}

#[test]
fn a_fingerprint_is_read_as_it_was_written() {
    let guest = Fingerprint { cpu_quota: Some(1.5), ..take(GUEST) };
    let text = serde_json::to_string(&guest).expect("plain data");
    assert_eq!(serde_json::from_str::<Fingerprint>(&text).expect("its own text"), guest);
}

#[test]
fn another_cpu_is_incomparable_and_stands_first() {
    let ours = take(GUEST);
    let theirs = Fingerprint {
        kernel_release: Some("6.19.0".to_owned()),
        cpu_model: Some("another".to_owned()),
        microcode: Some("0x2".to_owned()),
        ..ours.clone()
    };
    let found: Vec<_> = ours.differences(&theirs).into_iter().map(|d| (d.field, d.weight)).collect();
    let expected = [
        ("cpu_model", Weight::Incomparable),
        ("microcode", Weight::Warning),
        ("kernel_release", Weight::Fact),
    ];
    assert_eq!(found, expected);
}

#[test]
fn an_unknown_cpu_is_a_warning_and_no_verdict() {
    let ours = take(GUEST);
    let theirs = Fingerprint { cpu_model: None, ..ours.clone() };
    let found = ours.differences(&theirs);
    assert_eq!((found[0].weight, found[0].theirs.as_str()), (Weight::Warning, "unknown"));
}

#[test]
fn only_the_mitigations_that_differ_are_shown() {
    let ours = take(GUEST);
    let mut theirs = ours.clone();
    theirs.mitigations.insert("spectre_v2".to_owned(), "Vulnerable".to_owned());
    let found = ours.differences(&theirs);
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].ours, "spectre_v2: Mitigation: Retpolines");
    assert_eq!(found[0].theirs, "spectre_v2: Vulnerable");
}

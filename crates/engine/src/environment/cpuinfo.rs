//! Parser of `/proc/cpuinfo`, whose keys differ between architectures.

use super::Fingerprint;
use crate::platform::kernel_files::{field, fields, join_distinct};

/// Fills in the identity of the CPUs. If the CPUs of a machine differ, each field lists all values. The model is
/// the marketing name, or the implementer and part number where the architecture has no such name.
pub fn fill_cpu_identity(found: &mut Fingerprint, cpuinfo: &str) {
    let first = |keys: &[&str]| keys.iter().find_map(|key| distinct_values(cpuinfo, key));
    let vendor = first(&["vendor_id", "CPU implementer", "mvendorid"]);
    let model = first(&["model", "CPU part", "marchid"]);
    // `cpu` is POWER, `uarch` is RISC-V. ARM has numbers only.
    let named = first(&["model name", "Model Name", "cpu", "uarch"]);
    let numbered = || Some(format!("implementer {} part {}", vendor.as_ref()?, model.as_ref()?));
    found.cpu_model = named.or_else(numbered);
    found.cpu_family = first(&["cpu family", "CPU architecture"]);
    found.cpu_stepping = first(&["stepping", "CPU revision", "mimpid"]);
    found.microcode = first(&["microcode"]);
    (found.cpu_vendor, found.cpu_model_number) = (vendor, model);
}

fn distinct_values(cpuinfo: &str, key: &str) -> Option<String> {
    join_distinct(fields(cpuinfo, key).filter(|v| !v.is_empty()).map(String::from))
}

/// Whether the first CPU has a feature (`flags` on x86, `Features` on ARM); `None` when neither is listed.
pub fn has_flag(cpuinfo: &str, flag: &str) -> Option<bool> {
    let flags = field(cpuinfo, "flags").or_else(|| field(cpuinfo, "Features"))?;
    Some(flags.split_whitespace().any(|f| f == flag))
}

/// Whether a core runs more than one thread, from the counts of the first package: for kernels older than
/// 4.19, which have no `smt` directory.
pub fn has_sibling_threads(cpuinfo: &str) -> Option<bool> {
    let count = |key| field(cpuinfo, key)?.parse::<usize>().ok();
    Some(count("siblings")? > count("cpu cores")?)
}

// The microarchitecture of a processor, by the numbers that CPUID gives it.

impl Fingerprint {
    /// Machines that this one is like: `Zen 3 guest`, `Ice Lake server`. `None` if the microarchitecture is not known.
    pub fn machine_kind(&self) -> Option<String> {
        let number = |text: &Option<String>| text.as_ref()?.trim().parse::<u32>().ok();
        let numbers = number(&self.cpu_family).zip(number(&self.cpu_model_number));
        let known = match (self.cpu_vendor.as_deref(), numbers) {
            (Some("AuthenticAMD"), Some((family, model))) => zen_name(family, model),
            (Some("GenuineIntel"), Some((6, model))) => intel_name(model),
            _ => None,
        };
        let place = if self.hypervisor.is_some() { "guest" } else { "machine" };
        Some(format!("{} {place}", known?))
    }
}

/// AMD's names by family and model (*Processor Programming References*).
fn zen_name(family: u32, model: u32) -> Option<&'static str> {
    Some(match (family, model) {
        (0x17, 0x00..=0x2f) => "Zen",
        (0x17, _) => "Zen 2",
        (0x19, 0x00..=0x0f | 0x20..=0x5f) => "Zen 3",
        (0x19, _) => "Zen 4",
        (0x1a, _) => "Zen 5",
        _ => return None,
    })
}

/// Intel's names by the model of family 6 (*Software Developer's Manual*, volume 4, table 2-1).
fn intel_name(model: u32) -> Option<&'static str> {
    Some(match model {
        0x2a | 0x2d => "Sandy Bridge",
        0x3a | 0x3e => "Ivy Bridge",
        0x3c | 0x3f | 0x45 | 0x46 => "Haswell",
        0x3d | 0x47 | 0x4f | 0x56 => "Broadwell",
        0x4e | 0x5e | 0x55 | 0x8e | 0x9e | 0xa5 | 0xa6 => "Skylake",
        0x6a | 0x6c | 0x7d | 0x7e => "Ice Lake",
        0x8c | 0x8d => "Tiger Lake",
        0x97 | 0x9a => "Alder Lake",
        0xb7 | 0xba | 0xbf => "Raptor Lake",
        0x8f => "Sapphire Rapids",
        0xcf => "Emerald Rapids",
        0xad | 0xae => "Granite Rapids",
        0xaf => "Sierra Forest",
        0xaa | 0xac => "Meteor Lake",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const AMD_GUEST: &str = include_str!("../../../../fixtures/captured/cpuinfo-amd-guest.txt");
    const INTEL_LAPTOP: &str = include_str!("../../../../fixtures/captured/cpuinfo-intel-laptop.txt");
    const ARM_BIG_LITTLE: &str = include_str!("../../../../fixtures/captured/cpuinfo-arm-big-little.txt");

    fn identity(cpuinfo: &str) -> Fingerprint {
        let mut found = Fingerprint::default();
        fill_cpu_identity(&mut found, cpuinfo);
        found
    }

    #[test]
    fn an_amd_guest_is_known_by_its_numbers_where_its_name_is_masked() {
        let identity = identity(AMD_GUEST);
        assert_eq!(identity.cpu_model.as_deref(), Some("AMD EPYC"));
        assert_eq!(identity.cpu_vendor.as_deref(), Some("AuthenticAMD"));
        assert_eq!(identity.cpu_family.as_deref(), Some("25"));
        assert_eq!(identity.cpu_model_number.as_deref(), Some("17"));
        assert_eq!(identity.cpu_stepping.as_deref(), Some("1"));
        assert_eq!(identity.microcode.as_deref(), Some("0x1000065"));
    }

    #[test]
    fn a_laptop_is_no_guest_and_has_two_threads_a_core() {
        assert_eq!(has_flag(INTEL_LAPTOP, "hypervisor"), Some(false));
        assert_eq!(has_flag(AMD_GUEST, "hypervisor"), Some(true));
        assert_eq!(has_sibling_threads(INTEL_LAPTOP), Some(true));
        assert_eq!(has_sibling_threads(AMD_GUEST), Some(false));
    }

    #[test]
    fn a_flag_is_a_whole_word() {
        assert_eq!(has_flag(AMD_GUEST, "constant_tsc"), Some(true));
        assert_eq!(has_flag(AMD_GUEST, "constant"), Some(false));
    }

    #[test]
    fn arm_cores_of_two_kinds_are_both_named() {
        let identity = identity(ARM_BIG_LITTLE);
        assert_eq!(identity.cpu_model.as_deref(), Some("implementer 0x41 part 0xd05, 0xd0a"));
        assert_eq!(identity.cpu_family.as_deref(), Some("8"));
        assert_eq!(identity.microcode, None);
        assert_eq!(has_flag(ARM_BIG_LITTLE, "atomics"), Some(true));
    }

    #[test]
    fn an_empty_file_tells_nothing() {
        assert_eq!(identity(""), Fingerprint::default());
        assert_eq!(has_flag("", "hypervisor"), None);
        assert_eq!(has_sibling_threads(""), None);
    }

    fn kind(vendor: &str, [family, model]: [u32; 2], hypervisor: Option<&str>) -> Option<String> {
        let known = Fingerprint {
            cpu_vendor: Some(vendor.into()),
            cpu_family: Some(family.to_string()),
            cpu_model_number: Some(model.to_string()),
            hypervisor: hypervisor.map(str::to_owned),
            ..Fingerprint::default()
        };
        known.machine_kind()
    }

    #[test]
    fn a_known_processor_has_its_name_and_another_has_none() {
        assert_eq!(kind("AuthenticAMD", [25, 1], Some("KVM")).as_deref(), Some("Zen 3 guest"));
        assert_eq!(kind("AuthenticAMD", [25, 17], None).as_deref(), Some("Zen 4 machine"));
        assert_eq!(kind("GenuineIntel", [6, 173], Some("KVM")).as_deref(), Some("Granite Rapids guest"));
        assert_eq!(kind("GenuineIntel", [6, 1], None), None);
        assert_eq!(kind("another", [25, 1], None), None);
        assert_eq!(Fingerprint::default().machine_kind(), None);
    }
}

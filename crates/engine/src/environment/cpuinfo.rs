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
}

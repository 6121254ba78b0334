//! The processors as the kernel describes them: `/proc/cpuinfo`, whose keys differ between architectures, the
//! microarchitecture, and the caches.

use super::{Fingerprint, cpu_list};
use crate::platform::kernel_files::{KernelFiles, field, fields, join_distinct};
use serde::{Deserialize, Serialize};
use std::fmt::{Display, Formatter};

/// Fills in the identity of the CPUs. If the CPUs of a machine differ, each field lists all values. The model is
/// the marketing name, or the implementer and part number where the architecture has no such name.
pub fn fill_cpu_identity(found: &mut Fingerprint, cpuinfo: &str) {
    let values = |key: &str| join_distinct(fields(cpuinfo, key).filter(|v| !v.is_empty()).map(String::from));
    let first = |keys: &[&str]| keys.iter().find_map(|key| values(key));
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
    /// Microarchitecture and place of this machine: `Zen 3 guest`, `Ice Lake machine`. `None` if the microarchitecture is unknown.
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

// The caches that the kernel reports in `/sys/devices/system/cpu/cpu*/cache`. A guest sees what its
// hypervisor reports, which may be the host's caches or invented ones.

const CPUS: &str = "sys/devices/system/cpu";

/// Caches of one kind, and the CPUs that have one.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(default)]
pub struct Cache {
    /// Level; 1 is the nearest to the core.
    pub level: u8,
    /// `Data`, `Instruction` or `Unified`, as the kernel writes it.
    pub kind: String,
    /// Size of each cache, in bytes.
    pub bytes: u64,
    /// Number of CPUs that share one cache.
    pub shared_by: usize,
    /// The CPUs that have such a cache, such as `0-7`.
    pub cpus: String,
}

/// The caches of all CPUs, with equal ones in one entry, the nearest to the core first. Empty if the kernel shows none.
pub fn read_caches(files: &KernelFiles) -> Vec<Cache> {
    let mut found: Vec<(Cache, Vec<usize>)> = Vec::new();
    for cpu in read_online_cpus(files) {
        for cache in read_cpu_caches(files, cpu) {
            match found.iter_mut().find(|(known, _)| *known == cache) {
                Some((_, cpus)) => cpus.push(cpu),
                None => found.push((cache, vec![cpu])),
            }
        }
    }
    let mut caches: Vec<Cache> =
        found.into_iter().map(|(cache, cpus)| Cache { cpus: cpu_list::format(&cpus), ..cache }).collect();
    caches.sort();
    caches
}

pub(super) fn read_online_cpus(files: &KernelFiles) -> Vec<usize> {
    files.read_first_line(&format!("{CPUS}/online")).map(|list| cpu_list::parse(&list)).unwrap_or_default()
}

fn read_cpu_caches(files: &KernelFiles, cpu: usize) -> Vec<Cache> {
    let read = |(level, kind, directory): (u8, String, String)| {
        let line = |file: &str| files.read_first_line(&format!("{directory}/{file}"));
        let bytes = parse_size(&line("size")?)?;
        let shared_by = line("shared_cpu_list").map_or(1, |list| cpu_list::parse(&list).len());
        Some(Cache { level, kind, bytes, shared_by, cpus: String::new() })
    };
    find_cpu_caches(files, cpu).filter_map(read).collect()
}

/// Level, kind and directory of each cache of this CPU.
pub(super) fn find_cpu_caches(files: &KernelFiles, cpu: usize) -> impl Iterator<Item = (u8, String, String)> {
    let directory = format!("{CPUS}/cpu{cpu}/cache");
    files.entry_names(&directory).into_iter().filter(|name| name.starts_with("index")).filter_map(
        move |index| {
            let directory = format!("{directory}/{index}");
            let line = |file: &str| files.read_first_line(&format!("{directory}/{file}"));
            let (level, kind) = (line("level")?.parse().ok()?, line("type")?);
            Some((level, kind, directory))
        },
    )
}

/// Parses a size such as `32K`, `260M` or `1G` to bytes; the suffixes are binary multiples.
fn parse_size(text: &str) -> Option<u64> {
    let shift = match text.chars().last()? {
        'K' => 10,
        'M' => 20,
        'G' => 30,
        _ => 0,
    };
    let number: u64 = text.trim_end_matches(['K', 'M', 'G']).parse().ok()?;
    number.checked_mul(1 << shift)
}

impl Cache {
    /// Whether data accesses of this CPU (with `None`: of any CPU) go through this cache.
    pub fn serves_data_of(&self, cpu: Option<usize>) -> bool {
        let here = cpu.is_none_or(|cpu| cpu_list::parse(&self.cpus).contains(&cpu));
        self.kind != "Instruction" && here
    }
}

impl Display for Cache {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        let Self { level, kind, bytes, shared_by, cpus } = self;
        write!(f, "L{level} {kind} {} KiB shared by {shared_by} on CPUs {cpus}", bytes >> 10)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::platform::kernel_files::fixture::Machine;

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
    fn an_empty_cpuinfo_leaves_everything_unknown() {
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

    /// Level, kind, size, and the CPUs that share it.
    type Described<'a> = (&'a str, &'a str, &'a str, &'a str);

    fn machine(cpus: &[(usize, &[Described<'_>])]) -> Machine {
        let machine = Machine::with_files(&[(
            "sys/devices/system/cpu/online",
            cpus.iter().map(|(cpu, _)| cpu.to_string()).collect::<Vec<_>>().join(",").as_str(),
        )]);
        for (cpu, caches) in cpus {
            for (index, (level, kind, size, shared)) in caches.iter().enumerate() {
                let file = |name: &str| format!("{CPUS}/cpu{cpu}/cache/index{index}/{name}");
                machine.write_file(&file("level"), level);
                machine.write_file(&file("type"), kind);
                machine.write_file(&file("size"), size);
                machine.write_file(&file("shared_cpu_list"), shared);
            }
        }
        machine
    }

    #[test]
    fn equal_caches_are_one_entry() {
        let machine = machine(&[
            (0, &[("1", "Data", "32K", "0"), ("3", "Unified", "260M", "0-1")]),
            (1, &[("1", "Data", "32K", "1"), ("3", "Unified", "260M", "0-1")]),
        ]);
        let found = read_caches(&machine.files);
        let rows: Vec<_> = found.iter().map(|c| (c.level, c.bytes, c.shared_by, c.cpus.as_str())).collect();
        assert_eq!(rows, [(1, 32 << 10, 1, "0-1"), (3, 260 << 20, 2, "0-1")]);
        assert_eq!(found[0].to_string(), "L1 Data 32 KiB shared by 1 on CPUs 0-1");
    }

    #[test]
    fn different_caches_of_two_core_kinds_are_separate_entries() {
        let machine = machine(&[(0, &[("1", "Data", "32K", "0")]), (4, &[("1", "Data", "64K", "4")])]);
        let found = read_caches(&machine.files);
        assert_eq!(found.len(), 2);
        let bytes_of_cpu =
            |cpu| found.iter().find(|cache| cache.serves_data_of(Some(cpu))).map(|cache| cache.bytes);
        assert_eq!(
            (bytes_of_cpu(0), bytes_of_cpu(4), bytes_of_cpu(9)),
            (Some(32 << 10), Some(64 << 10), None)
        );
    }

    #[test]
    fn an_instruction_cache_serves_no_data_and_a_cache_without_a_size_is_left_out() {
        let machine = machine(&[(0, &[("1", "Instruction", "32K", "0"), ("2", "Unified", "?", "0")])]);
        let found = read_caches(&machine.files);
        assert_eq!(found.len(), 1);
        assert!(!found[0].serves_data_of(Some(0)));
        assert!(read_caches(&Machine::with_files(&[]).files).is_empty());
    }
}

//! The fingerprint of a machine: the properties on which its numbers depend.
//!
//! A record is meant to be published, so nothing here identifies the machine or its owner: no host name,
//! no serial number, no address. The kernel command line is kept without the values that name something.

mod field_table;
mod hardware;
mod surroundings;

pub use field_table::{Difference, Series, Weight};
pub use hardware::{Hardware, unknown_reason};
pub use surroundings::Surroundings;

use super::{Cache, cpu_list, cpuinfo};
use crate::platform::cpu::cpu_class::{choose_cpus, fixed_choice};
use crate::platform::kernel_files::{KernelFiles, bracketed_choice, field, meminfo_bytes};
use crate::platform::time::clock_source;
use crate::platform::{control_group, mount, proc};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;

const AVAILABLE_CLOCK_SOURCES: &str = "sys/devices/system/clocksource/clocksource0/available_clocksource";

/// Properties of a machine, its kernel and this build. Unknown ones are `None` or empty.
///
/// Take the fingerprint before pinning the process, because [`cpus_allowed`](Self::cpus_allowed) reads the affinity mask.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Fingerprint {
    /// Kernel release, as `uname -r` prints it.
    pub kernel_release: Option<String>,
    /// Build number, configuration and date of the kernel, as `uname -v` prints it.
    pub kernel_version: Option<String>,
    /// Kernel command line, without the values that name a disk, a host or an address.
    pub kernel_command_line: Option<String>,
    /// Architecture of the kernel, as `uname -m` prints it; on kernels before 6.1, that of this binary.
    pub architecture: Option<String>,
    /// CPU model name. If the CPUs differ, all names are listed.
    pub cpu_model: Option<String>,
    /// Manufacturer of the CPU.
    pub cpu_vendor: Option<String>,
    /// CPU family. It tells CPUs apart even if a hypervisor masks their names.
    pub cpu_family: Option<String>,
    /// CPU model number, or part number on ARM.
    pub cpu_model_number: Option<String>,
    /// CPU stepping or revision.
    pub cpu_stepping: Option<String>,
    /// Microcode revision. A guest sees what the hypervisor shows.
    pub microcode: Option<String>,
    /// CPUs that are online, such as `0-7`.
    pub cpus_online: Option<String>,
    /// Number of CPUs that are online.
    pub cpu_count: Option<usize>,
    /// CPUs that this process may use, such as `0-3`.
    pub cpus_allowed: Option<String>,
    /// On a hybrid processor, the class of the CPUs that run the cases: `core`, `atom`, `capacity-1024`; `None` if all CPUs are alike.
    pub cpu_class: Option<String>,
    /// Whether cores run more than one thread.
    pub smt: Smt,
    /// The caches that the kernel reports. A guest sees what the hypervisor shows.
    pub caches: Vec<Cache>,
    /// Further hardware that a description of the machine lists.
    #[serde(flatten)]
    pub hardware: Hardware,
    /// What the kernel does about each hardware vulnerability.
    pub mitigations: BTreeMap<String, String>,
    /// Frequency governors in force.
    pub governor: Option<String>,
    /// Driver that sets the frequency.
    pub frequency_driver: Option<String>,
    /// Whether the CPU may exceed its nominal frequency.
    pub turbo: Option<bool>,
    /// When anonymous memory gets huge pages: `always`, `madvise` or `never`.
    pub huge_pages: Option<String>,
    /// How hard the kernel tries to free a huge page at a page fault.
    pub huge_page_defrag: Option<String>,
    /// Reserved huge pages, counted by size, such as `2048kB`.
    pub huge_pages_reserved: BTreeMap<String, u64>,
    /// Clock source of the kernel.
    pub clock_source: Option<String>,
    /// Clock sources that the kernel could use.
    pub clock_sources: Option<String>,
    /// Hypervisor below the kernel; `None` where none is visible.
    pub hypervisor: Option<String>,
    /// Product name in the firmware's tables: a laptop's model, or a cloud's name.
    pub product: Option<String>,
    /// CPUs that the quota of a control group allows; `None` without a quota.
    pub cpu_quota: Option<f64>,
    /// Memory that the kernel manages, in bytes.
    pub memory_bytes: Option<u64>,
    /// NUMA nodes.
    pub numa_nodes: Option<usize>,
    /// Type of the file system that holds the scratch directory.
    pub scratch_filesystem: Option<String>,
    /// What this process inherits, what limits it, and where its files lie.
    #[serde(flatten)]
    pub surroundings: Surroundings,
    /// Size of a page in bytes.
    pub page_bytes: Option<u64>,
    /// How far the kernel forbids perf events to users; at 2 they may count those of their own processes.
    pub perf_event_paranoid: Option<i64>,
    /// Level of address space randomization; 2 is full.
    pub randomize_va_space: Option<u64>,
    /// Compiler that built this binary.
    pub compiler: Option<String>,
    /// Cargo profile of this binary.
    pub profile: Option<String>,
    /// Optimization level.
    pub opt_level: Option<String>,
    /// Target triple.
    pub target: Option<String>,
    /// Version of this crate.
    pub crate_version: Option<String>,
    /// Whether debug assertions are compiled in.
    pub debug_assertions: bool,
}

/// Whether cores run more than one thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Smt {
    /// Some core has two or more threads online.
    Active,
    /// No core has more than one thread online.
    Off,
    /// The kernel does not report it.
    #[default]
    Unknown,
}

impl Fingerprint {
    /// Reads the properties of a machine, and of this build. Never fails: properties that the kernel does not show stay unknown.
    pub fn take(files: &KernelFiles, scratch: &Path) -> Self {
        let mut fingerprint = Self::from_this_build();
        fingerprint.read_kernel(files);
        fingerprint.read_processor(files);
        fingerprint.read_frequency(files);
        fingerprint.read_memory(files);
        fingerprint.read_surroundings(files, scratch);
        fingerprint
    }

    /// Compiler and flags of this build as a sentence; `None` if the compiler is unknown.
    pub fn build_sentence() -> Option<String> {
        let Self { compiler, opt_level, target, debug_assertions, .. } = Self::from_this_build();
        let checks = if debug_assertions { " with debug assertions" } else { "" };
        Some(format!("{} at opt-level {} for {}{checks}", compiler?, opt_level?, target?))
    }

    fn from_this_build() -> Self {
        let known = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        Self {
            compiler: known(env!("SYSCOST_RUSTC")),
            profile: known(env!("SYSCOST_PROFILE")),
            opt_level: known(env!("SYSCOST_OPT_LEVEL")),
            target: known(env!("SYSCOST_TARGET")),
            crate_version: known(env!("CARGO_PKG_VERSION")),
            debug_assertions: cfg!(debug_assertions),
            ..Self::default()
        }
    }

    fn read_kernel(&mut self, files: &KernelFiles) {
        self.kernel_release = files.kernel_release();
        self.kernel_version = files.read_first_line("proc/sys/kernel/version");
        self.kernel_command_line = files.read_first_line("proc/cmdline").map(|l| hide_naming_values(&l));
        self.architecture =
            files.read_first_line("proc/sys/kernel/arch").or_else(|| Some(std::env::consts::ARCH.to_owned()));
        self.clock_source = clock_source(files);
        self.clock_sources = files.read_first_line(AVAILABLE_CLOCK_SOURCES);
        self.mitigations = files.first_lines_in("sys/devices/system/cpu/vulnerabilities").collect();
        self.perf_event_paranoid = files.read_number("proc/sys/kernel/perf_event_paranoid");
        self.randomize_va_space = files.read_number("proc/sys/kernel/randomize_va_space");
    }

    fn read_processor(&mut self, files: &KernelFiles) {
        let cpuinfo = files.read_text("proc/cpuinfo").unwrap_or_default();
        cpuinfo::fill_cpu_identity(self, &cpuinfo);
        self.cpus_online = files.read_first_line("sys/devices/system/cpu/online");
        self.cpu_count = self.cpus_online.as_deref().map(|list| cpu_list::parse(list).len());
        let status = files.read_text("proc/self/status").unwrap_or_default();
        self.cpus_allowed = field(&status, "Cpus_allowed_list").map(String::from);
        let allowed = self.cpus_allowed.as_deref().map(cpu_list::parse).unwrap_or_default();
        self.cpu_class = choose_cpus(files, &allowed, fixed_choice()).ok().and_then(|(_, class)| class);
        self.smt = read_smt(files, &cpuinfo);
        self.caches = cpuinfo::read_caches(files);
        self.hardware = Hardware::read(files, self.cpu_model.as_deref());
        self.product = files.read_first_line("sys/class/dmi/id/product_name");
        self.hypervisor = hypervisor_name(files, &cpuinfo, self.product.as_deref());
    }

    fn read_frequency(&mut self, files: &KernelFiles) {
        let policies = "sys/devices/system/cpu/cpufreq";
        self.governor = files.distinct_first_lines(policies, "scaling_governor");
        self.frequency_driver = files.distinct_first_lines(policies, "scaling_driver");
        // The file of intel_pstate is 1 if turbo is forbidden; that of other drivers is 1 if turbo is allowed.
        let forbidden: Option<u8> = files.read_number("sys/devices/system/cpu/intel_pstate/no_turbo");
        let allowed: Option<u8> = files.read_number("sys/devices/system/cpu/cpufreq/boost");
        self.turbo = forbidden.map(|n| n == 0).or(allowed.map(|n| n != 0));
    }

    fn read_memory(&mut self, files: &KernelFiles) {
        let choice = |file: &str| {
            let line = files.read_first_line(&format!("sys/kernel/mm/transparent_hugepage/{file}"))?;
            bracketed_choice(&line).map(String::from)
        };
        self.huge_pages = choice("enabled");
        self.huge_page_defrag = choice("defrag");
        self.huge_pages_reserved = reserved_huge_pages(files);
        self.memory_bytes = files.read_text("proc/meminfo").and_then(|t| meminfo_bytes(&t, "MemTotal"));
        self.numa_nodes =
            files.read_first_line("sys/devices/system/node/online").map(|l| cpu_list::parse(&l).len());
        self.page_bytes = files.read_bytes("proc/self/auxv").and_then(|b| proc::page_size(&b));
    }

    fn read_surroundings(&mut self, files: &KernelFiles, scratch: &Path) {
        self.cpu_quota = control_group::smallest_cpu_quota(files);
        let mounts = files.read_text("proc/self/mountinfo").unwrap_or_default();
        self.scratch_filesystem =
            mount::filesystem_type(&mounts, &mount::resolve_path(scratch)).map(String::from);
        self.surroundings = Surroundings::read(files, scratch);
    }
}

fn read_smt(files: &KernelFiles, cpuinfo: &str) -> Smt {
    let reported = files.read_number::<u8>("sys/devices/system/cpu/smt/active").map(|n| n != 0);
    match reported.or_else(|| cpuinfo::has_sibling_threads(cpuinfo)) {
        Some(true) => Smt::Active,
        Some(false) => Smt::Off,
        None => Smt::Unknown,
    }
}

/// The name of the hypervisor: the one it states itself, as Xen does; otherwise the product name in the firmware's tables;
/// otherwise `unnamed`, if only a CPU flag shows it. `None` if no hypervisor is visible.
fn hypervisor_name(files: &KernelFiles, cpuinfo: &str, product: Option<&str>) -> Option<String> {
    const PRODUCTS: [&str; 8] =
        ["KVM", "QEMU", "Virtual", "VMware", "Standard PC", "Google Compute", "OpenStack", "HVM"];
    let flagged = cpuinfo::has_flag(cpuinfo, "hypervisor") == Some(true);
    let named = product.filter(|p| flagged || PRODUCTS.iter().any(|known| p.contains(known)));
    files
        .read_first_line("sys/hypervisor/type")
        .or_else(|| files.read_first_line("proc/device-tree/hypervisor/compatible"))
        .or_else(|| named.map(String::from))
        .or_else(|| flagged.then(|| "unnamed".to_owned()))
}

fn reserved_huge_pages(files: &KernelFiles) -> BTreeMap<String, u64> {
    let directory = "sys/kernel/mm/hugepages";
    let count = |name: &String| files.read_number(&format!("{directory}/{name}/nr_hugepages"));
    let sizes = files.entry_names(directory);
    sizes.iter().filter_map(|n| Some((n.trim_start_matches("hugepages-").to_owned(), count(n)?))).collect()
}

#[cfg(test)]
mod tests;

// The kernel command line without values that identify a machine.

/// Parameters whose values name a disk, a host, an address or a key. These values change no cost.
const NAMING: [&str; 15] = [
    "root",
    "resume",
    "BOOT_IMAGE",
    "initrd",
    "ip",
    "nfsroot",
    "nfsaddrs",
    "netconsole",
    "cryptdevice",
    "cryptkey",
    "ds",
    "hostname",
    "init",
    "rdinit",
    "mac",
];
/// Prefixes of further such parameters.
const NAMING_PREFIXES: [&str; 5] = ["rd.", "systemd.", "iscsi", "luks", "cloud-"];

/// Replaces values that name something by `…`, and drops everything after ` -- `, which is meant for the first
/// program (init) and not for the kernel.
fn hide_naming_values(line: &str) -> String {
    let words = line.split_whitespace().take_while(|&word| word != "--");
    let is_naming =
        |key: &str| NAMING.contains(&key) || NAMING_PREFIXES.iter().any(|prefix| key.starts_with(prefix));
    let hide = |word: &str| match word.split_once('=') {
        Some((key, _)) if is_naming(key) => format!("{key}=…"),
        _ => word.to_owned(),
    };
    words.map(hide).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod command_line_tests {
    use super::*;

    #[test]
    fn disks_and_addresses_are_left_out() {
        let line = "BOOT_IMAGE=/vmlinuz root=UUID=0123-4567 ip=192.0.2.7::: rd.luks.uuid=x quiet";
        assert_eq!(hide_naming_values(line), "BOOT_IMAGE=… root=… ip=… rd.luks.uuid=… quiet");
    }

    #[test]
    fn parameters_that_change_a_cost_stay() {
        let line = "mitigations=off isolcpus=3 nohz_full=3 intel_pstate=disable";
        assert_eq!(hide_naming_values(line), line);
    }

    #[test]
    fn the_words_for_init_are_dropped() {
        assert_eq!(hide_naming_values("quiet -- --listen 192.0.2.7"), "quiet");
    }
}

//! The hardware, beside the processor's name, that a paper lists to describe a machine.
//!
//! Nothing here identifies a machine: no serial number, no address, and no interface name, which may contain an address.

use super::field_table::BETWEEN;
use crate::environment::cpuinfo::{find_cpu_caches, read_online_cpus};
use crate::environment::memory_module;
use crate::platform::inert;
use crate::platform::kernel_files::{KernelFiles, join_distinct};
use serde::{Deserialize, Serialize};

const CPUS: &str = "sys/devices/system/cpu";

/// Hardware as text. A field is `None` if the machine does not show it, and in records older than the field.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Hardware {
    /// Ways of associativity of each kind of cache. A guest sees what the hypervisor shows.
    pub cache_ways: Option<String>,
    /// The frequency that the manufacturer states, without turbo.
    pub nominal_clock: Option<String>,
    /// Memory modules, from the firmware's tables, which usually only root may read.
    pub memory_modules: Option<String>,
    /// Disks with a device behind them: model, size, whether they rotate, and the speed of an NVMe disk's bus.
    pub disks: Option<String>,
    /// Network cards of this network namespace: driver and speed.
    pub network_cards: Option<String>,
}

/// Why a field of the hardware is unknown, as a sentence; `None` for fields whose reason cannot be determined.
pub fn unknown_reason(field: &str) -> Option<String> {
    match field {
        "memory_modules" => memory_module::bandwidth_limit().err(),
        "disks" => Some("no disk with a device behind it is visible (/sys/block/*/device)".into()),
        "nominal_clock" => Some(
            "neither intel_pstate, nor the firmware's CPPC tables, nor the name of the processor tell it"
                .into(),
        ),
        "cache_ways" => {
            Some("the kernel shows no caches, or no ways of them (/sys/devices/system/cpu)".into())
        }
        "network_cards" => Some("no interface of this network namespace has a device behind it".into()),
        _ => None,
    }
}

impl Hardware {
    pub(super) fn read(files: &KernelFiles, cpu_model: Option<&str>) -> Self {
        Self {
            cache_ways: read_cache_ways(files),
            nominal_clock: read_nominal_clock(files).or_else(|| clock_in_model_name(cpu_model?)),
            memory_modules: files
                .read_bytes(memory_module::TABLE)
                .and_then(|table| join_counted(memory_module::describe_modules(&table))),
            disks: describe_disks(files),
            network_cards: describe_network_cards(files),
        }
    }
}

/// Joins entries to one text, equal ones as one with their number, in order of appearance; `None` if there are none.
fn join_counted(entries: impl Iterator<Item = String>) -> Option<String> {
    let mut counted: Vec<(String, usize)> = Vec::new();
    for entry in entries {
        match counted.iter_mut().find(|(known, _)| *known == entry) {
            Some((_, count)) => *count += 1,
            None => counted.push((entry, 1)),
        }
    }
    let text = |(entry, count): &(String, usize)| match count {
        1 => entry.clone(),
        _ => format!("{count} × {entry}"),
    };
    (!counted.is_empty()).then(|| counted.iter().map(text).collect::<Vec<_>>().join(BETWEEN))
}

/// Ways per kind of cache, such as `L1 Data 8 | L2 Unified 16`. If CPUs differ, all their values are listed.
fn read_cache_ways(files: &KernelFiles) -> Option<String> {
    let caches = read_online_cpus(files).into_iter().flat_map(|cpu| find_cpu_caches(files, cpu));
    let ways = |(level, kind, directory): (u8, String, String)| {
        let ways: u32 = files.read_number(&format!("{directory}/ways_of_associativity"))?;
        (ways > 0).then(|| format!("L{level} {kind} {ways}"))
    };
    let mut found: Vec<_> = caches.filter_map(ways).collect();
    found.sort();
    found.dedup();
    (!found.is_empty()).then(|| found.join(BETWEEN))
}

/// The nominal clock, such as `2600 MHz`, from intel_pstate (kHz) or the firmware's CPPC tables (MHz). If cores differ, all are listed.
fn read_nominal_clock(files: &KernelFiles) -> Option<String> {
    let each = |file: &str, per_mhz: u32| {
        let cpus = files.entry_names(CPUS).into_iter();
        let numbers = cpus.filter_map(|cpu| files.read_number::<u32>(&format!("{CPUS}/{cpu}/{file}")));
        join_distinct(numbers.filter(|number| *number > 0).map(|number| format!("{} MHz", number / per_mhz)))
    };
    each("cpufreq/base_frequency", 1000).or_else(|| each("acpi_cppc/nominal_freq", 1))
}

/// The frequency at the end of a name such as `Intel(R) Xeon(R) CPU @ 2.60GHz`, as `2600 MHz`.
fn clock_in_model_name(model: &str) -> Option<String> {
    let (_, clock) = model.rsplit_once('@')?;
    let ghz: f64 = clock.trim().strip_suffix("GHz")?.trim().parse().ok()?;
    Some(format!("{:.0} MHz", 1000.0 * ghz))
}

// Disks and network cards, read from `/sys`.

/// Bytes of a sector in `/sys/block/*/size`, for every disk.
const SECTOR: u64 = 512;
/// The longest model that is shown, characters: NVMe has 40.
const LONGEST: usize = 48;

/// The disks, such as `nvme0n1 (Samsung SSD 990), 1000 GB, not rotating, 16.0 GT/s PCIe × 4` or `vda, 20 GB, rotating, bus virtio`.
/// Loop devices, compressed memory and the like are left out.
fn describe_disks(files: &KernelFiles) -> Option<String> {
    let names = files.entry_names("sys/block").into_iter();
    let names = names.filter(|name| files.has(&format!("sys/block/{name}/device")));
    let disks: Vec<String> = names.map(|name| describe_disk(files, &name)).collect();
    (!disks.is_empty()).then(|| disks.join(BETWEEN))
}

fn describe_disk(files: &KernelFiles, name: &str) -> String {
    let line = |file: &str| files.read_first_line(&format!("sys/block/{name}/{file}"));
    // The model is text from the device's firmware, so hostile characters are replaced.
    let model = line("device/model").map(|model| format!(" ({})", inert::neutralize_line(&model, LONGEST)));
    let sectors = line("size").and_then(|sectors| sectors.parse::<u64>().ok());
    let rotates = line("queue/rotational").and_then(|word| match word.as_str() {
        "1" => Some("rotating".to_owned()),
        "0" => Some("not rotating".to_owned()),
        _ => None,
    });
    let link = line("device/device/current_link_speed").zip(line("device/device/current_link_width"));
    let bus = || {
        let bus = std::fs::read_link(files.path(&format!("sys/block/{name}/device/subsystem"))).ok()?;
        Some(format!("bus {}", bus.file_name()?.to_string_lossy()))
    };
    let parts = [
        sectors.map(|sectors| format!("{:.0} GB", sectors.saturating_mul(SECTOR) as f64 / 1e9)),
        rotates,
        link.map(|(speed, width)| format!("{speed} × {width}")).or_else(bus),
    ];
    let head = format!("{name}{}", model.unwrap_or_default());
    std::iter::once(head).chain(parts.into_iter().flatten()).collect::<Vec<_>>().join(", ")
}

/// The network cards, such as `igc, 1000 Mb/s`. Interfaces without a device, such as `lo` and bridges, are left out.
fn describe_network_cards(files: &KernelFiles) -> Option<String> {
    let class = "sys/class/net";
    let cards = files.entry_names(class).into_iter().filter_map(|name| {
        let link = std::fs::read_link(files.path(&format!("{class}/{name}/device/driver"))).ok()?;
        let driver = link.file_name()?.to_string_lossy().into_owned();
        // If there is no link or the card has no fixed speed, the kernel refuses the reading or reports -1.
        let speed = files.read_number::<i64>(&format!("{class}/{name}/speed")).filter(|speed| *speed > 0);
        Some(speed.map_or(driver.clone(), |speed| format!("{driver}, {speed} Mb/s")))
    });
    join_counted(cards)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::platform::kernel_files::fixture::Machine;
    use std::os::unix::fs::symlink;

    #[test]
    fn a_machine_that_shows_nothing_has_unknown_hardware() {
        assert_eq!(Hardware::read(&Machine::with_files(&[]).files, None), Hardware::default());
        assert_eq!(Hardware::read(&Machine::with_files(&[]).files, Some("AMD EPYC")), Hardware::default());
    }

    #[test]
    fn cache_ways_are_listed_once_per_kind_and_zero_is_left_out() {
        let machine = Machine::with_files(&[("sys/devices/system/cpu/online", "0-1")]);
        for (cpu, index, file, text) in [
            (0, 0, "level", "1"),
            (0, 0, "type", "Data"),
            (0, 0, "ways_of_associativity", "8"),
            (1, 0, "level", "1"),
            (1, 0, "type", "Data"),
            (1, 0, "ways_of_associativity", "8"),
            (1, 3, "level", "3"),
            (1, 3, "type", "Unified"),
            (1, 3, "ways_of_associativity", "0"),
        ] {
            machine.write_file(&format!("{CPUS}/cpu{cpu}/cache/index{index}/{file}"), text);
        }
        assert_eq!(read_cache_ways(&machine.files).as_deref(), Some("L1 Data 8"));
        machine.write_file(&format!("{CPUS}/cpu1/cache/index3/ways_of_associativity"), "16");
        assert_eq!(read_cache_ways(&machine.files).as_deref(), Some("L1 Data 8 | L3 Unified 16"));
    }

    #[test]
    fn the_nominal_clock_is_read_from_the_kernel_else_from_the_model_name() {
        let clock = |files: &[(&str, &str)]| {
            let named = Some("Intel(R) Xeon(R) CPU E5-2690 @ 2.90GHz");
            Hardware::read(&Machine::with_files(files).files, named).nominal_clock
        };
        let base = |cpu: usize| format!("{CPUS}/cpu{cpu}/cpufreq/base_frequency");
        let cppc = format!("{CPUS}/cpu0/acpi_cppc/nominal_freq");
        assert_eq!(clock(&[]).as_deref(), Some("2900 MHz"));
        assert_eq!(clock(&[(&cppc, "2450\n")]).as_deref(), Some("2450 MHz"));
        let hybrid = [(&*base(0), "2600000\n"), (&*base(1), "1900000\n"), (&*cppc, "2450\n")];
        assert_eq!(clock(&hybrid).as_deref(), Some("2600 MHz, 1900 MHz"));
    }

    #[test]
    fn a_disk_is_described_by_the_properties_that_it_shows() {
        let machine = Machine::with_files(&[
            ("sys/block/nvme0n1/device/model", "Fast Disk 990   \n"),
            ("sys/block/nvme0n1/device/device/current_link_speed", "16.0 GT/s PCIe\n"),
            ("sys/block/nvme0n1/device/device/current_link_width", "4\n"),
            ("sys/block/nvme0n1/size", "1953525168\n"),
            ("sys/block/nvme0n1/queue/rotational", "0\n"),
            ("sys/block/sda/device/type", "0\n"),
            ("sys/block/sda/queue/rotational", "1\n"),
            ("sys/block/zram0/size", "8\n"),
        ]);
        assert_eq!(
            describe_disks(&machine.files).as_deref(),
            Some("nvme0n1 (Fast Disk 990), 1000 GB, not rotating, 16.0 GT/s PCIe × 4 | sda, rotating")
        );
        assert_eq!(describe_disks(&Machine::with_files(&[]).files), None);
    }

    #[test]
    fn a_disk_without_a_link_speed_is_described_by_its_bus() {
        let machine = Machine::with_files(&[("sys/block/vda/queue/rotational", "1\n")]);
        machine.write_file("sys/block/vda/device/vendor", "0x1af4");
        symlink("../../../../bus/virtio", machine.files.path("sys/block/vda/device/subsystem"))
            .expect("linked");
        assert_eq!(describe_disks(&machine.files).as_deref(), Some("vda, rotating, bus virtio"));
    }

    #[test]
    fn a_disk_model_cannot_send_escape_codes_to_a_terminal() {
        let machine = Machine::with_files(&[("sys/block/sda/device/model", "\u{1b}[31mred\u{202e}")]);
        let disks = describe_disks(&machine.files).expect("a disk");
        assert!(!disks.contains(inert::is_hostile) && disks.contains("red"), "{disks:?}");
        machine.write_file("sys/block/sda/device/model", &"x".repeat(500));
        assert!(describe_disks(&machine.files).expect("a disk").chars().count() < 100);
    }

    #[test]
    fn network_cards_are_described_by_driver_and_speed_without_their_names() {
        let machine = Machine::with_files(&[
            ("sys/class/net/enx001122334455/speed", "1000\n"),
            ("sys/class/net/eth1/speed", "-1\n"),
            ("sys/class/net/lo/mtu", "65536\n"),
        ]);
        for (name, driver) in [("enx001122334455", "igc"), ("eth0", "igc"), ("eth1", "virtio_net")] {
            machine.write_file(&format!("sys/class/net/{name}/device/vendor"), "0x8086");
            let link = machine.files.path(&format!("sys/class/net/{name}/device/driver"));
            symlink(format!("../../bus/pci/drivers/{driver}"), link).expect("linked");
        }
        machine.write_file("sys/class/net/eth0/speed", "1000\n");
        assert_eq!(
            describe_network_cards(&machine.files).as_deref(),
            Some("2 × igc, 1000 Mb/s | virtio_net")
        );
    }
}

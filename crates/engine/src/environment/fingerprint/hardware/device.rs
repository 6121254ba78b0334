//! Disks and network cards, by `/sys`.

use super::{BETWEEN, join_counted};
use crate::platform::inert;
use crate::platform::kernel_files::KernelFiles;

/// Bytes of a sector in `/sys/block/*/size`, for every disk.
const SECTOR: u64 = 512;
/// The longest model that is shown, characters: NVMe has 40.
const LONGEST: usize = 48;

/// `nvme0n1 (Samsung SSD 990), 1000 GB, not rotating, 16.0 GT/s PCIe × 4`; loop devices, compressed memory and the like are
/// left out.
pub(super) fn describe_disks(files: &KernelFiles) -> Option<String> {
    let names = files.entry_names("sys/block").into_iter();
    let names = names.filter(|name| files.has(&format!("sys/block/{name}/device")));
    let disks: Vec<String> = names.map(|name| describe_disk(files, &name)).collect();
    (!disks.is_empty()).then(|| disks.join(BETWEEN))
}

fn describe_disk(files: &KernelFiles, name: &str) -> String {
    let line = |file: &str| files.read_first_line(&format!("sys/block/{name}/{file}"));
    // The model is a text of the device's firmware.
    let model = line("device/model").map(|model| format!(" ({})", inert::neutralize_line(&model, LONGEST)));
    let sectors = line("size").and_then(|sectors| sectors.parse::<u64>().ok());
    let rotates = line("queue/rotational").and_then(|word| match word.as_str() {
        "1" => Some("rotating".to_owned()),
        "0" => Some("not rotating".to_owned()),
        _ => None,
    });
    let bus = line("device/device/current_link_speed").zip(line("device/device/current_link_width"));
    let parts = [
        sectors.map(|sectors| format!("{:.0} GB", sectors.saturating_mul(SECTOR) as f64 / 1e9)),
        rotates,
        bus.map(|(speed, width)| format!("{speed} × {width}")),
    ];
    let head = format!("{name}{}", model.unwrap_or_default());
    std::iter::once(head).chain(parts.into_iter().flatten()).collect::<Vec<_>>().join(", ")
}

/// `igc, 1000 Mb/s`; interfaces without a device, such as `lo` and bridges, are left out.
pub(super) fn describe_network_cards(files: &KernelFiles) -> Option<String> {
    let class = "sys/class/net";
    let cards = files.entry_names(class).into_iter().filter_map(|name| {
        let link = std::fs::read_link(files.path(&format!("{class}/{name}/device/driver"))).ok()?;
        let driver = link.file_name()?.to_string_lossy().into_owned();
        // Without a link, and for a card that has no fixed speed, the kernel refuses or says -1.
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
    fn a_disk_is_told_with_what_its_kind_shows() {
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
    fn a_model_gives_a_terminal_no_order() {
        let machine = Machine::with_files(&[("sys/block/sda/device/model", "\u{1b}[31mred\u{202e}")]);
        let disks = describe_disks(&machine.files).expect("a disk");
        assert!(!disks.contains(inert::is_hostile) && disks.contains("red"), "{disks:?}");
        machine.write_file("sys/block/sda/device/model", &"x".repeat(500));
        assert!(describe_disks(&machine.files).expect("a disk").chars().count() < 100);
    }

    #[test]
    fn cards_are_told_by_driver_and_speed_and_by_no_name() {
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

//! The file system and the device below the scratch directory, without names of servers, users and directories.

use crate::platform::kernel_files::KernelFiles;
use crate::platform::mount;
use crate::platform::volume;
use std::path::Path;

/// Options whose values name a directory, a server or a user, or change with every mount.
#[rustfmt::skip]
const NAMING: [&str; 19] = [
    "addr", "clientaddr", "mountaddr", "mountport", "port", "ip", "username", "user", "domain", "uid", "gid", "cruid",
    "lowerdir", "upperdir", "workdir", "subvol", "subvolid", "fd", "uuid",
];

/// Options of the mount and of its file system, each once, sorted.
pub(super) fn mount_option_text(files: &KernelFiles, scratch: &Path) -> Option<String> {
    let text = files.read_text("proc/self/mountinfo")?;
    let mount = mount::find_mount(&text, &mount::resolve_path(scratch))?;
    let mut known: Vec<String> =
        mount.point_options().chain(mount.options()).filter(|option| is_anonymous_option(option)).collect();
    known.sort();
    known.dedup();
    Some(known.join(","))
}

fn is_anonymous_option(option: &str) -> bool {
    let Some((name, value)) = option.split_once('=') else { return !option.is_empty() };
    !NAMING.contains(&name) && !value.contains(['/', '\\', '@', ':'])
}

/// The block device, with the model of its disk; the type of the file system where there is none.
pub(super) fn block_device_name(files: &KernelFiles, scratch: &Path) -> Option<String> {
    let text = files.read_text("proc/self/mountinfo")?;
    let mount = mount::find_mount(&text, &mount::resolve_path(scratch))?;
    match volume::block_device_number(&text, &mount) {
        Some(number) => device_with_model(files, &number),
        None => Some(format!("none ({})", mount.kind)),
    }
}

/// `vda`, `nvme0n1p2 (Samsung SSD 990)`. Loop devices are numbered by chance.
fn device_with_model(files: &KernelFiles, number: &str) -> Option<String> {
    let entry = format!("sys/dev/block/{number}");
    let name = files.path(&entry).canonicalize().ok()?.file_name()?.to_string_lossy().into_owned();
    let name = if name.starts_with("loop") { "loop".to_owned() } else { name };
    // The directory of a partition lies in that of its disk.
    let above = if files.has(&format!("{entry}/partition")) { "/.." } else { "" };
    let model = files.read_first_line(&format!("{entry}{above}/device/model"));
    Some(model.map_or(name.clone(), |model| format!("{name} ({model})")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::platform::kernel_files::fixture::Machine;
    use std::os::unix::fs::symlink;

    /// A machine whose root is mounted so.
    fn machine(mount: &str) -> Machine {
        Machine::with_files(&[("proc/self/mountinfo", &format!("{mount}\n"))])
    }

    fn mount_options(mount: &str) -> String {
        mount_option_text(&machine(mount).files, Path::new("/")).expect("mounted")
    }

    #[test]
    fn options_of_the_mount_and_of_the_file_system_are_told_together() {
        let line = "27 1 254:0 / / rw,noatime shared:1 - ext4 /dev/vda rw,discard,data=journal";
        assert_eq!(mount_options(line), "data=journal,discard,noatime,rw");
    }

    #[test]
    fn servers_users_and_directories_are_left_out() {
        let nfs =
            "40 25 0:50 / / rw - nfs4 198.18.47.2:/ rw,vers=4.2,addr=198.18.47.2,clientaddr=198.18.47.3";
        assert_eq!(mount_options(nfs), "rw,vers=4.2");
        let overlay = "36 28 0:50 / / rw - overlay none rw,lowerdir=/home/me/l,upperdir=/u,index=off";
        assert_eq!(mount_options(overlay), "index=off,rw");
    }

    #[test]
    fn a_disk_is_told_by_its_name_and_model_and_a_loop_device_by_no_number() {
        let machine = machine("27 1 254:1 / / rw - ext4 /dev/vda1 rw");
        for (number, place) in [("254:1", "vda/vda1"), ("7:3", "loop3")] {
            machine.write_file(&format!("sys/devices/{place}/dev"), number);
            std::fs::create_dir_all(machine.files.path("sys/dev/block")).expect("made");
            let (target, link) = (format!("sys/devices/{place}"), format!("sys/dev/block/{number}"));
            symlink(machine.files.path(&target), machine.files.path(&link)).expect("linked");
        }
        machine.write_file("sys/devices/vda/vda1/partition", "1");
        assert_eq!(block_device_name(&machine.files, Path::new("/")).as_deref(), Some("vda1"));
        machine.write_file("sys/devices/vda/device/model", "Fast Disk  \n");
        assert_eq!(block_device_name(&machine.files, Path::new("/")).as_deref(), Some("vda1 (Fast Disk)"));
        assert_eq!(device_with_model(&machine.files, "7:3").as_deref(), Some("loop"));
    }

    #[test]
    fn a_file_system_without_a_device_says_so() {
        let memory = machine("25 24 0:23 / / rw - tmpfs tmpfs rw,size=100k");
        assert_eq!(block_device_name(&memory.files, Path::new("/")).as_deref(), Some("none (tmpfs)"));
        assert_eq!(block_device_name(&Machine::with_files(&[]).files, Path::new("/")), None);
    }
}

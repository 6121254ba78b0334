//! The limits of memory and of devices that hold for this process, as texts that can be compared.

use super::{Group, Version, own_groups_and_ancestors};
use crate::kernel_files::KernelFiles;

/// Version 1 says "no limit" by the largest number of pages, which is more than any machine has.
const NO_LIMIT: u64 = 1 << 60;
/// Files of version 1 that limit a device, a line for each.
const THROTTLES: [&str; 4] = ["read_bps", "write_bps", "read_iops", "write_iops"];

/// The smallest limits of memory of the groups of this process and of those above them, such as `512 MiB, slowed above 256 MiB`,
/// or `none`. `None` where no group can be seen.
pub fn memory_limits(files: &KernelFiles) -> Option<String> {
    let groups = || own_groups_and_ancestors(files, "memory");
    groups().next()?;
    let least = |name: fn(Version) -> Option<&'static str>| {
        let limit = |group: Group| read_limit(files, &group, name(group.version)?);
        groups().filter_map(limit).min()
    };
    let most = least(|version| Some(version.limit_file()));
    let slow = least(|version| (version == Version::Two).then_some("memory.high"));
    Some(match (most, slow) {
        (None, None) => "none".into(),
        (Some(most), None) => mib_text(most),
        (None, Some(slow)) => format!("slowed above {}", mib_text(slow)),
        (Some(most), Some(slow)) => format!("{}, slowed above {}", mib_text(most), mib_text(slow)),
    })
}

/// The limits of all devices, such as `8:0 rbps=1048576 wbps=max`, or `none`. `None` where no group can be seen.
pub fn io_limits(files: &KernelFiles) -> Option<String> {
    let groups: Vec<Group> = own_groups_and_ancestors(files, "blkio").collect();
    groups.first()?;
    let lines: Vec<String> = groups.iter().flat_map(|group| device_limit_lines(files, group)).collect();
    Some(if lines.is_empty() { "none".into() } else { lines.join(" | ") })
}

fn read_limit(files: &KernelFiles, group: &Group, name: &str) -> Option<u64> {
    files.read_number(&format!("{}/{name}", group.directory())).filter(|limit| *limit < NO_LIMIT)
}

fn mib_text(bytes: u64) -> String {
    format!("{} MiB", bytes >> 20)
}

fn device_limit_lines(files: &KernelFiles, group: &Group) -> Vec<String> {
    let lines = |name: &str| {
        let text = files.read_text(&format!("{}/{name}", group.directory())).unwrap_or_default();
        text.lines().map(str::trim).filter(|line| !line.is_empty()).map(String::from).collect::<Vec<_>>()
    };
    if group.version == Version::Two {
        return lines("io.max");
    }
    let throttle_lines = |kind: &&str| {
        let found = lines(&format!("blkio.throttle.{kind}_device"));
        found.into_iter().map(|line| format!("{kind} {line}")).collect::<Vec<_>>()
    };
    THROTTLES.iter().flat_map(throttle_lines).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel_files::fixture::Machine;

    const UNIFIED: (&str, &str) =
        ("proc/self/mountinfo", "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
    const INNER: (&str, &str) = ("proc/self/cgroup", "0::/outer/inner\n");

    #[test]
    fn the_smallest_limit_on_the_way_up_is_the_one_that_holds() {
        let machine = Machine::with_files(&[
            UNIFIED,
            INNER,
            ("sys/fs/cgroup/outer/memory.max", "536870912\n"),
            ("sys/fs/cgroup/outer/inner/memory.max", "max\n"),
            ("sys/fs/cgroup/outer/inner/memory.high", "268435456\n"),
            ("sys/fs/cgroup/outer/io.max", "8:0 rbps=1048576 wbps=max riops=max wiops=max\n"),
        ]);
        let told = memory_limits(&machine.files);
        assert_eq!(told.as_deref(), Some("512 MiB, slowed above 256 MiB"));
        let told = io_limits(&machine.files);
        assert_eq!(told.as_deref(), Some("8:0 rbps=1048576 wbps=max riops=max wiops=max"));
    }

    #[test]
    fn version_1_has_files_of_its_own_and_a_large_number_for_no_limit() {
        let machine = Machine::with_files(&[
            (
                "proc/self/mountinfo",
                "31 25 0:27 / /c/memory rw - cgroup c rw,memory\n32 25 0:28 / /c/blkio rw - cgroup c rw,blkio\n",
            ),
            ("proc/self/cgroup", "4:memory:/a\n5:blkio:/a\n"),
            ("c/memory/a/memory.limit_in_bytes", "9223372036854771712\n"),
            ("c/blkio/a/blkio.throttle.read_bps_device", "254:0 1048576\n"),
        ]);
        assert_eq!(memory_limits(&machine.files).as_deref(), Some("none"));
        assert_eq!(io_limits(&machine.files).as_deref(), Some("read_bps 254:0 1048576"));
        machine.write_file("c/memory/a/memory.limit_in_bytes", "1073741824\n");
        assert_eq!(memory_limits(&machine.files).as_deref(), Some("1024 MiB"));
    }

    #[test]
    fn without_groups_nothing_is_known() {
        let machine = Machine::with_files(&[]);
        assert_eq!((memory_limits(&machine.files), io_limits(&machine.files)), (None, None));
    }
}

//! Finding groups on captured text: both versions, hybrid systems, and containers.

use super::*;
use crate::kernel_files::fixture::Machine;

const V1: &str = include_str!("../../../../fixtures/captured/cgroup-v1.txt");
const V2: &str = include_str!("../../../../fixtures/captured/cgroup-v2.txt");
const HYBRID: &str = include_str!("../../../../fixtures/captured/cgroup-hybrid.txt");
/// Mounts of a hybrid system.
const MOUNTINFO: &str = include_str!("../../../../fixtures/captured/mountinfo.txt");

const UNIFIED: &str = "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n";
const CPU: &str = "33 31 0:30 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n";
/// The same mount in a container, with the path that the group has outside.
const CPU_OF_CONTAINER: &str =
    "33 31 0:30 /docker/0123abcd /sys/fs/cgroup/cpu,cpuacct ro - cgroup cgroup rw,cpu,cpuacct\n";

/// Directories of the groups that may have the CPU controller.
fn directories(files: &[(&str, &str)]) -> Vec<String> {
    own_groups(&Machine::with_files(files).files, "cpu").iter().map(Group::directory).collect()
}

#[test]
fn paths_of_both_versions_are_found() {
    assert_eq!(group_path(V2, None), Some("/user.slice/user-1000.slice/session-1.scope"));
    assert_eq!((group_path(V2, Some("cpu")), group_path(V1, None)), (None, None));
    assert_eq!(group_path(V1, Some("cpu")), Some("/docker/0123abcd"));
    assert_eq!((group_path(HYBRID, None), group_path(HYBRID, Some("cpu"))), (Some("/"), Some("/")));
    assert_eq!(group_path("3:cpuset:/a\n", Some("cpu")), None, "a name that only begins so");
}

#[test]
fn a_group_of_version_2_lies_below_the_mount() {
    let directory = "/sys/fs/cgroup/user.slice/user-1000.slice/session-1.scope";
    let file = format!("{directory}/cgroup.procs");
    let files = [("proc/self/mountinfo", UNIFIED), ("proc/self/cgroup", V2), (&file[1..], "")];
    assert_eq!(directories(&files), [directory]);
}

#[test]
fn a_group_of_version_1_lies_below_the_mount_of_its_controllers() {
    let file = "sys/fs/cgroup/cpu,cpuacct/docker/0123abcd/cgroup.procs";
    let files = [("proc/self/mountinfo", CPU), ("proc/self/cgroup", V1), (file, "")];
    assert_eq!(directories(&files), ["/sys/fs/cgroup/cpu,cpuacct/docker/0123abcd"]);
}

#[test]
fn a_hybrid_system_has_groups_in_both() {
    let files = [("proc/self/mountinfo", MOUNTINFO), ("proc/self/cgroup", HYBRID)];
    assert_eq!(directories(&files), ["/sys/fs/cgroup/cpu", "/sys/fs/cgroup/unified"]);
}

#[test]
fn a_container_whose_group_is_the_root_of_the_mount_finds_it_there() {
    let version_1 = [("proc/self/mountinfo", CPU_OF_CONTAINER), ("proc/self/cgroup", V1)];
    assert_eq!(directories(&version_1), ["/sys/fs/cgroup/cpu,cpuacct"]);
    let mounts = UNIFIED.replace(" / ", " /user.slice/user-1000.slice ");
    let inner = "sys/fs/cgroup/session-1.scope/cgroup.procs";
    let version_2 = [("proc/self/mountinfo", mounts.as_str()), ("proc/self/cgroup", V2), (inner, "")];
    assert_eq!(directories(&version_2), ["/sys/fs/cgroup/session-1.scope"]);
}

#[test]
fn a_container_that_sees_its_path_outside_uses_the_mount_point() {
    // A path with the same beginning by chance is that of another group.
    let other = ("sys/fs/cgroup/user.slice/cpu.max", "100000 100000\n");
    let own = ("sys/fs/cgroup/cpu.max", "50000 100000\n");
    let files = [("proc/self/mountinfo", UNIFIED), ("proc/self/cgroup", V2), other, own];
    assert_eq!(directories(&files), ["/sys/fs/cgroup"]);
    assert_eq!(smallest_cpu_quota(&Machine::with_files(&files).files), Some(0.5));
}

#[test]
fn a_group_outside_of_the_mount_is_seen_from_the_mount_point() {
    let hierarchy =
        mounted_hierarchies(&Machine::with_files(&[("proc/self/mountinfo", CPU_OF_CONTAINER)]).files)
            .remove(0);
    assert_eq!(
        hierarchy.group_directory("/docker/0123abcd/b").as_deref(),
        Some("/sys/fs/cgroup/cpu,cpuacct/b")
    );
    assert_eq!(hierarchy.group_directory("/docker/0123abcde"), None);
    assert_eq!(hierarchy.group_directory("/"), None);
    assert!(hierarchy.matches_controller(Some("cpu")) && hierarchy.matches_controller(Some("cpuacct")));
    assert!(!hierarchy.matches_controller(Some("memory")) && !hierarchy.matches_controller(None));
}

#[test]
fn escapes_and_mounts_that_hide_others_are_understood() {
    let text = "30 23 0:26 / /my\\040groups rw - cgroup2 cgroup2 rw\n31 23 0:27 / /a rw - cgroup cgroup rw,cpu\n\
                32 23 0:28 / /a rw - tmpfs tmpfs rw\n";
    let found = mounted_hierarchies(&Machine::with_files(&[("proc/self/mountinfo", text)]).files);
    assert_eq!(found.iter().map(|hierarchy| hierarchy.point.as_str()).collect::<Vec<_>>(), ["/my groups"]);
}

#[test]
fn a_quota_is_counted_in_cpus() {
    assert_eq!((parse_cpu_max("150000 100000"), parse_cfs_quota("50000", "100000")), (Some(1.5), Some(0.5)));
    assert_eq!((parse_cpu_max("max 100000"), parse_cfs_quota("-1", "100000")), (None, None));
}

#[test]
fn the_smallest_quota_of_a_group_and_its_ancestors_decides_and_counts_the_stops() {
    let stat = "nr_periods 1\nnr_throttled 0\nthrottled_usec 0\n";
    let machine = Machine::with_files(&[
        ("proc/self/mountinfo", UNIFIED),
        ("proc/self/cgroup", V2),
        ("sys/fs/cgroup/user.slice/cpu.max", "200000 100000\n"),
        ("sys/fs/cgroup/user.slice/cpu.stat", stat),
        ("sys/fs/cgroup/user.slice/user-1000.slice/cpu.max", "400000 100000\n"),
        ("sys/fs/cgroup/user.slice/user-1000.slice/cpu.stat", stat),
        ("sys/fs/cgroup/user.slice/user-1000.slice/session-1.scope/cpu.stat", "usage_usec 1\n"),
    ]);
    assert_eq!(smallest_cpu_quota(&machine.files), Some(2.0));
    let found = throttling_file(&machine.files);
    assert_eq!(found, Some(machine.files.path("sys/fs/cgroup/user.slice/cpu.stat")));
}

#[test]
fn throttling_is_seen_in_a_container_of_version_1() {
    let machine = Machine::with_files(&[
        ("proc/self/mountinfo", CPU_OF_CONTAINER),
        ("proc/self/cgroup", V1),
        ("sys/fs/cgroup/cpu,cpuacct/cpu.stat", "nr_periods 10\nnr_throttled 3\nthrottled_time 99\n"),
        ("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "50000\n"),
        ("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n"),
    ]);
    assert_eq!(smallest_cpu_quota(&machine.files), Some(0.5));
    let found = throttling_file(&machine.files);
    assert_eq!(found, Some(machine.files.path("sys/fs/cgroup/cpu,cpuacct/cpu.stat")));
}

#[test]
fn without_files_there_is_no_quota_and_no_count() {
    let machine = Machine::with_files(&[("proc/self/cgroup", HYBRID), ("proc/self/mountinfo", MOUNTINFO)]);
    assert_eq!(smallest_cpu_quota(&machine.files), None);
    assert_eq!(throttling_file(&machine.files), None);
}

#[test]
fn the_smallest_limit_of_a_group_and_its_ancestors_holds() {
    let machine = Machine::with_files(&[
        ("proc/self/mountinfo", UNIFIED),
        ("proc/self/cgroup", "0::/outer/inner\n"),
        ("sys/fs/cgroup/outer/memory.max", "536870912\n"),
        ("sys/fs/cgroup/outer/inner/memory.max", "max\n"),
        ("sys/fs/cgroup/outer/inner/memory.high", "268435456\n"),
        ("sys/fs/cgroup/outer/io.max", "8:0 rbps=1048576 wbps=max riops=max wiops=max\n"),
    ]);
    let limits = memory_limits(&machine.files);
    assert_eq!(limits.as_deref(), Some("512 MiB, slowed above 256 MiB"));
    let limits = io_limits(&machine.files);
    assert_eq!(limits.as_deref(), Some("8:0 rbps=1048576 wbps=max riops=max wiops=max"));
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
fn without_groups_the_limits_are_unknown() {
    let machine = Machine::with_files(&[]);
    assert_eq!((memory_limits(&machine.files), io_limits(&machine.files)), (None, None));
}

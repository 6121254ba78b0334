//! The share of the CPUs that the control groups of this process grant, in CPUs.
//!
//! A quota does not slow a process down evenly: it runs at full speed until the quota of the period is
//! spent and then stands still until the next. That makes a tail, so it must be known.

use crate::platform::kernel_files::KernelFiles;

/// The smallest quota of the process's group and of those above it; `None` when nothing limits.
///
/// A container often sees its own group as the root of the mount while `/proc/self/cgroup` names the path
/// outside. Walking upwards to the root of the mount meets the right file in either case.
pub fn cpu_quota(files: &KernelFiles) -> Option<f64> {
    let membership = files.text("proc/self/cgroup")?;
    let unified = unified_path(&membership).map(|path| quota_v2(files, path));
    let legacy = cpu_controller_path(&membership).map(|path| quota_v1(files, path));
    [unified, legacy].into_iter().flatten().flatten().reduce(f64::min)
}

fn quota_v2(files: &KernelFiles, path: &str) -> Option<f64> {
    // `unified` is where a hybrid system mounts it.
    ["sys/fs/cgroup", "sys/fs/cgroup/unified"]
        .iter()
        .flat_map(|mount| upwards(mount, path))
        .filter_map(|group| cpu_max(&files.line(&format!("{group}/cpu.max"))?))
        .reduce(f64::min)
}

fn quota_v1(files: &KernelFiles, path: &str) -> Option<f64> {
    // Both names are in use; where the controllers are mounted together one links to the other.
    ["sys/fs/cgroup/cpu", "sys/fs/cgroup/cpu,cpuacct"]
        .iter()
        .flat_map(|mount| upwards(mount, path))
        .filter_map(|group| {
            let quota = files.line(&format!("{group}/cpu.cfs_quota_us"))?;
            cfs_quota(&quota, &files.line(&format!("{group}/cpu.cfs_period_us"))?)
        })
        .reduce(f64::min)
}

/// The group's directory and all above it, up to the mount.
fn upwards(mount: &str, path: &str) -> Vec<String> {
    let mut groups = vec![mount.to_owned()];
    for part in path.split('/').filter(|p| !p.is_empty()) {
        groups.push(format!("{}/{part}", groups[groups.len() - 1]));
    }
    groups.reverse();
    groups
}

/// The path in the unified hierarchy (v2): the line `0::/path` of `/proc/self/cgroup`.
pub fn unified_path(membership: &str) -> Option<&str> {
    membership.lines().find_map(|line| line.strip_prefix("0::"))
}

/// The path in the hierarchy that has the `cpu` controller (v1), as in `4:cpu,cpuacct:/path`.
pub fn cpu_controller_path(membership: &str) -> Option<&str> {
    membership.lines().find_map(|line| {
        let (_, rest) = line.split_once(':')?;
        let (controllers, path) = rest.split_once(':')?;
        controllers.split(',').any(|c| c == "cpu").then_some(path)
    })
}

/// `cpu.max` of v2, in CPUs: `max 100000` is no limit.
pub fn cpu_max(line: &str) -> Option<f64> {
    let (quota, period) = line.split_once(' ')?;
    ratio(quota, period)
}

/// `cpu.cfs_quota_us` and `cpu.cfs_period_us` of v1, in CPUs: a quota of -1 is no limit.
pub fn cfs_quota(quota: &str, period: &str) -> Option<f64> {
    ratio(quota, period)
}

fn ratio(quota: &str, period: &str) -> Option<f64> {
    let quota: f64 = quota.trim().parse().ok()?;
    let period: f64 = period.trim().parse().ok()?;
    (quota > 0.0 && period > 0.0).then(|| quota / period)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::environment::invented::Machine;

    const V1: &str = include_str!("../../fixtures/captured/cgroup-v1.txt");
    const V2: &str = include_str!("../../fixtures/captured/cgroup-v2.txt");
    const HYBRID: &str = include_str!("../../fixtures/captured/cgroup-hybrid.txt");

    #[test]
    fn paths_of_both_versions_are_found() {
        assert_eq!(unified_path(V2), Some("/user.slice/user-1000.slice/session-1.scope"));
        assert_eq!(cpu_controller_path(V2), None);
        assert_eq!(cpu_controller_path(V1), Some("/docker/0123abcd"));
        assert_eq!(unified_path(V1), None);
        assert_eq!(unified_path(HYBRID), Some("/"));
        assert_eq!(cpu_controller_path(HYBRID), Some("/"));
    }

    #[test]
    fn cpuset_is_not_the_cpu_controller() {
        assert_eq!(cpu_controller_path("3:cpuset:/a\n"), None);
    }

    #[test]
    fn a_quota_is_counted_in_cpus() {
        assert_eq!(cpu_max("150000 100000"), Some(1.5));
        assert_eq!(cfs_quota("50000", "100000"), Some(0.5));
    }

    #[test]
    fn no_limit_is_no_quota() {
        assert_eq!(cpu_max("max 100000"), None);
        assert_eq!(cfs_quota("-1", "100000"), None);
    }

    #[test]
    fn the_tightest_group_on_the_way_up_decides() {
        let machine = Machine::with(&[
            ("proc/self/cgroup", V2),
            ("sys/fs/cgroup/user.slice/cpu.max", "200000 100000\n"),
            ("sys/fs/cgroup/user.slice/user-1000.slice/cpu.max", "400000 100000\n"),
            ("sys/fs/cgroup/user.slice/user-1000.slice/session-1.scope/cpu.max", "max 100000\n"),
        ]);
        assert_eq!(cpu_quota(&machine.files), Some(2.0));
    }

    #[test]
    fn a_container_sees_its_group_as_the_root_of_the_mount() {
        let machine = Machine::with(&[
            ("proc/self/cgroup", V1),
            ("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "50000\n"),
            ("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n"),
        ]);
        assert_eq!(cpu_quota(&machine.files), Some(0.5));
    }

    #[test]
    fn without_files_there_is_no_quota() {
        let machine = Machine::with(&[("proc/self/cgroup", HYBRID)]);
        assert_eq!(cpu_quota(&machine.files), None);
    }
}

//! Control groups (cgroups(7)) of this process: where their files are, and their limits of CPU time, memory and devices.
//! Limits of memory and devices are texts that can be compared.
//!
//! Version 1 has a hierarchy for each controller or set of controllers, version 2 one for all of them, and a hybrid
//! system mounts both. `/proc/PID/cgroup` names the group of a process by its path from the root of the hierarchy. A
//! mount may show a part of the hierarchy only: a container often has its own group at the mount point, and the path
//! in `/proc` does not exist below it.

pub mod own_group;

use super::mount::{Mount, parse_mounts};
use super::proc;
use crate::kernel_files::KernelFiles;
use std::path::PathBuf;

/// Version of the interface. It decides which files a group has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// A hierarchy for each set of controllers.
    One,
    /// The unified hierarchy.
    Two,
}

/// Selects a hierarchy: the one of version 1 that has the named controller, or with `None` the unified one.
pub type Controller<'a> = Option<&'a str>;

/// A mounted hierarchy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hierarchy {
    /// Its version.
    pub version: Version,
    /// The group that is at the mount point: `/`, or another in a container.
    pub root: String,
    /// The mount point.
    pub point: String,
    /// Options of the mount: the controllers of version 1 are among them.
    options: Vec<String>,
}

impl Hierarchy {
    fn from_mount(mount: &Mount<'_>) -> Option<Self> {
        let version = match mount.kind {
            "cgroup" => Version::One,
            "cgroup2" => Version::Two,
            _ => return None,
        };
        let (root, point) = (mount.root.clone(), mount.point.clone());
        Some(Self { version, root, point, options: mount.options().collect() })
    }

    /// Whether `meant` selects this hierarchy.
    pub fn matches_controller(&self, meant: Controller<'_>) -> bool {
        match meant {
            None => self.version == Version::Two,
            Some(name) => self.version == Version::One && self.options.iter().any(|option| option == name),
        }
    }

    /// The directory of a group, unless it lies outside of what is mounted.
    pub fn group_directory(&self, group: &str) -> Option<String> {
        Some(format!("{}{}", self.point, self.relative_path(group)?))
    }

    /// The path from the mount point to a group: empty, or beginning with a slash.
    fn relative_path<'a>(&self, group: &'a str) -> Option<&'a str> {
        let below = match self.root.as_str() {
            "/" => group,
            root => group.strip_prefix(root).filter(|rest| rest.is_empty() || rest.starts_with('/'))?,
        };
        Some(below.trim_end_matches('/'))
    }
}

/// All hierarchies that are mounted and not hidden by a later mount on the same point.
pub fn mounted_hierarchies(files: &KernelFiles) -> Vec<Hierarchy> {
    let mut found: Vec<Hierarchy> = Vec::new();
    let text = files.read_text("proc/self/mountinfo").unwrap_or_default();
    for mount in parse_mounts(&text) {
        found.retain(|hidden| hidden.point != mount.point);
        found.extend(Hierarchy::from_mount(&mount));
    }
    found
}

/// A file of the group at the mount point of a hierarchy: the root group, or a container's own.
pub fn root_group_file(files: &KernelFiles, meant: Controller<'_>, name: &str) -> Option<String> {
    let hierarchy =
        mounted_hierarchies(files).into_iter().find(|hierarchy| hierarchy.matches_controller(meant))?;
    Some(format!("{}/{name}", hierarchy.point)).filter(|file| files.has(file))
}

/// The path of a group in one hierarchy, by the text of `/proc/PID/cgroup`, as in `4:cpu,cpuacct:/path` or `0::/path`.
pub fn group_path<'a>(membership: &'a str, meant: Controller<'_>) -> Option<&'a str> {
    membership.lines().find_map(|line| {
        let (_, rest) = line.split_once(':')?;
        let (controllers, path) = rest.split_once(':')?;
        controllers.split(',').any(|name| name == meant.unwrap_or_default()).then_some(path)
    })
}

/// The group of a process in one hierarchy, or the nearest above it that a mount shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// Version of its hierarchy.
    pub version: Version,
    /// Mount point of the hierarchy.
    point: String,
    /// Path from there: empty, or beginning with a slash.
    below: String,
}

impl Group {
    /// Finds the group of the process whose `/proc/PID/cgroup` is given. `None` where the hierarchy is not mounted.
    pub fn find(
        files: &KernelFiles,
        mounted: &[Hierarchy],
        membership: &str,
        meant: Controller<'_>,
    ) -> Option<Self> {
        let path = group_path(membership, meant)?;
        let mut mounted = mounted.iter().filter(|hierarchy| hierarchy.matches_controller(meant));
        let shown =
            |hierarchy: &&Hierarchy| hierarchy.group_directory(path).is_some_and(|group| files.has(&group));
        let first = mounted.clone().next()?;
        let (hierarchy, below) = match mounted.find(shown) {
            Some(hierarchy) => (hierarchy, hierarchy.relative_path(path).unwrap_or_default()),
            // No directory of this path: the mount point is the nearest above the group that can be seen.
            None => (first, ""),
        };
        Some(Self { version: hierarchy.version, point: hierarchy.point.clone(), below: below.to_owned() })
    }

    /// Its directory.
    pub fn directory(&self) -> String {
        format!("{}{}", self.point, self.below)
    }

    /// The path as seen from the mount point, `/` for the mount point itself.
    pub fn name(&self) -> &str {
        if self.below.is_empty() { "/" } else { &self.below }
    }

    /// The group, and those above it up to the mount point.
    pub fn with_ancestors(&self) -> impl Iterator<Item = Self> + use<> {
        std::iter::successors(Some(self.clone()), |group| {
            let end = group.below.rfind('/')?;
            Some(Self { below: group.below[..end].to_owned(), ..group.clone() })
        })
    }

    /// Its quota of CPU time, in CPUs. `None` where it has no quota of its own.
    fn cpu_quota(&self, files: &KernelFiles) -> Option<f64> {
        let line = |name: &str| files.read_first_line(&format!("{}/{name}", self.directory()));
        match self.version {
            Version::One => parse_cfs_quota(&line("cpu.cfs_quota_us")?, &line("cpu.cfs_period_us")?),
            Version::Two => parse_cpu_max(&line("cpu.max")?),
        }
    }
}

/// The groups of this process that may have a controller: in version 1, and in the unified hierarchy.
pub fn own_groups(files: &KernelFiles, controller: &str) -> Vec<Group> {
    let membership = files.read_text("proc/self/cgroup").unwrap_or_default();
    let mounted = mounted_hierarchies(files);
    let find = |meant| Group::find(files, &mounted, &membership, meant);
    [Some(controller), None].into_iter().filter_map(find).collect()
}

/// The groups of [`own_groups`], each followed by those above it.
pub fn own_groups_and_ancestors(
    files: &KernelFiles,
    controller: &str,
) -> impl DoubleEndedIterator<Item = Group> + use<> {
    let groups: Vec<_> = own_groups(files, controller).iter().flat_map(Group::with_ancestors).collect();
    groups.into_iter()
}

/// The smallest quota of CPU time of the groups of this process and of those above them, in CPUs; `None` without a
/// limit.
///
/// A quota does not slow a process down evenly: the process runs at full speed until the quota of the period is
/// spent, then stops until the next period. The stops make a tail in the times, so the quota must be known.
pub fn smallest_cpu_quota(files: &KernelFiles) -> Option<f64> {
    own_groups_and_ancestors(files, "cpu").filter_map(|group| group.cpu_quota(files)).reduce(f64::min)
}

/// The file that counts how often a quota stopped this process ([`proc::throttled_periods`]). It is that of the group with the
/// smallest quota, or, if there is no quota, that of the nearest group that counts. The unified hierarchy comes first.
pub fn throttling_file(files: &KernelFiles) -> Option<PathBuf> {
    let file = |group: &Group| format!("{}/cpu.stat", group.directory());
    let counts = |group: &Group| {
        files.read_text(&file(group)).is_some_and(|text| proc::throttled_periods(&text).is_some())
    };
    let mut groups: Vec<_> = own_groups_and_ancestors(files, "cpu").filter(counts).collect();
    groups.sort_by_key(|group| group.version == Version::One);
    let quota = |group: &Group| group.cpu_quota(files).unwrap_or(f64::INFINITY);
    let found = groups.iter().min_by(|a, b| quota(a).total_cmp(&quota(b)))?;
    Some(files.path(&file(found)))
}

/// The quota in `cpu.max` of version 2, in CPUs; `None` for `max 100000`, which is no limit.
pub fn parse_cpu_max(line: &str) -> Option<f64> {
    let (quota, period) = line.split_once(' ')?;
    parse_cfs_quota(quota, period)
}

/// The quota in `cpu.cfs_quota_us` and `cpu.cfs_period_us` of version 1, in CPUs; `None` for -1, which is no limit.
pub fn parse_cfs_quota(quota: &str, period: &str) -> Option<f64> {
    let quota: f64 = quota.trim().parse().ok()?;
    let period: f64 = period.trim().parse().ok()?;
    (quota > 0.0 && period > 0.0).then(|| quota / period)
}

/// Limits of at least this size, bytes, mean "no limit": version 1 writes the largest number of pages, more than any machine has.
const NO_LIMIT: u64 = 1 << 60;
/// Kinds of limits of version 1. Each has a file `blkio.throttle.…_device` with a line for each device.
const THROTTLES: [&str; 4] = ["read_bps", "write_bps", "read_iops", "write_iops"];

/// The smallest memory limits of the groups of this process and of those above them, such as `512 MiB, slowed above 256 MiB`,
/// or `none`. Returns `None` if no group is visible.
pub fn memory_limits(files: &KernelFiles) -> Option<String> {
    let groups = || own_groups_and_ancestors(files, "memory");
    groups().next()?;
    let least = |name: fn(Version) -> Option<&'static str>| {
        let limit = |group: Group| {
            let limit = files.read_number(&format!("{}/{}", group.directory(), name(group.version)?));
            limit.filter(|limit| *limit < NO_LIMIT)
        };
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

/// The limits of all devices, such as `8:0 rbps=1048576 wbps=max`, or `none`. Returns `None` if no group is visible.
pub fn io_limits(files: &KernelFiles) -> Option<String> {
    let groups: Vec<Group> = own_groups_and_ancestors(files, "blkio").collect();
    groups.first()?;
    let lines: Vec<String> = groups.iter().flat_map(|group| device_limit_lines(files, group)).collect();
    Some(if lines.is_empty() { "none".into() } else { lines.join(" | ") })
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
mod tests;

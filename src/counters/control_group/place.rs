//! Where the hierarchies are mounted, and where in each a group is.

use crate::counters::Fault;
use crate::counters::text::number;
use std::fs;
use std::path::Path;

/// Of control groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Version {
    One,
    Two,
}

/// The directories of one group, by the controllers that are asked for.
#[derive(Debug, Default)]
pub(super) struct Place {
    pub(super) unified: Option<String>,
    pub(super) cpuacct: Option<String>,
    pub(super) cpu: Option<String>,
    pub(super) memory: Option<String>,
}

/// A hierarchy that is mounted (proc_pid_mountinfo(5)).
#[derive(Clone, Debug, PartialEq, Eq)]
struct Mount {
    version_two: bool,
    /// The group that is at the mount point: another than `/` within a container.
    root: String,
    point: String,
    /// Options of the file system: the controllers of the first version are among them.
    options: String,
}

impl Mount {
    fn has(&self, controller: &str) -> bool {
        match controller {
            UNIFIED => self.version_two,
            _ => !self.version_two && self.options.split(',').any(|option| option == controller),
        }
    }

    /// The directory of a group, unless it lies outside of what is mounted.
    fn directory(&self, group: &str) -> Option<String> {
        let below = match self.root.as_str() {
            "/" => group,
            root => group.strip_prefix(root).filter(|rest| rest.is_empty() || rest.starts_with('/'))?,
        };
        Some(format!("{}{}", self.point, below.trim_end_matches('/')))
    }
}

/// What stands for the one hierarchy of the second version, which has no name.
const UNIFIED: &str = "";

impl Place {
    /// Where a group of this name is, in whichever hierarchies have it.
    pub(super) fn named(name: &str) -> Result<Self, Fault> {
        let is_path = name.starts_with('/') && name.split('/').all(|part| part != ".." && part != ".");
        if !is_path || name.contains('\0') {
            return Err(Fault::Gone(format!("control group {name:?}")));
        }
        let mounts = mounts()?;
        let there = |controller: &str| {
            let mount = mounts.iter().find(|mount| mount.has(controller))?;
            // A container's own group is `/` to it, wherever it is mounted from.
            let directory = if name == "/" { mount.point.clone() } else { mount.directory(name)? };
            Path::new(&directory).is_dir().then_some(directory)
        };
        let place = Self::by(there);
        if place.is_there() { Ok(place) } else { Err(Fault::Gone(format!("control group {name}"))) }
    }

    /// Where the group of a process is.
    pub(super) fn of(pid: i32) -> Result<Self, Fault> {
        let path = format!("/proc/{pid}/cgroup");
        let membership = fs::read_to_string(&path)
            .map_err(|e| Fault::of(crate::counters::process_handle::named(pid), &e))?;
        let mounts = mounts()?;
        Ok(Self::by(|controller| {
            let group = group_in(&membership, controller)?;
            let mount = mounts.iter().find(|mount| mount.has(controller))?;
            let directory = mount.directory(group).filter(|directory| Path::new(directory).is_dir());
            // Of a group outside of what is mounted the mount point is the nearest that we see above it.
            Some(directory.unwrap_or_else(|| mount.point.clone()))
        }))
    }

    fn by(directory: impl Fn(&str) -> Option<String>) -> Self {
        Self {
            unified: directory(UNIFIED),
            cpuacct: directory("cpuacct"),
            cpu: directory("cpu"),
            memory: directory("memory"),
        }
    }

    /// Whether any of its directories is there.
    pub(super) fn is_there(&self) -> bool {
        let all = [&self.unified, &self.cpuacct, &self.cpu, &self.memory];
        all.into_iter().flatten().any(|directory| Path::new(directory).is_dir())
    }

    pub(super) fn memory_limit(&self) -> Result<Option<u64>, Fault> {
        if let Some(directory) = &self.memory {
            let bytes = value(directory, "memory.limit_in_bytes")?;
            // What stands for no limit is the largest number of whole pages.
            return Ok(Some(bytes).filter(|bytes| *bytes < i64::MAX as u64 - (1 << 20)));
        }
        let text = self.unified("memory.max")?;
        match text.trim_end() {
            "max" => Ok(None),
            bytes => {
                Ok(Some(bytes.parse().map_err(|_| Fault::parse("memory.max", "bytes", bytes.as_bytes()))?))
            }
        }
    }

    pub(super) fn cpu_limit(&self) -> Result<Option<f64>, Fault> {
        let (quota, period) = match &self.cpu {
            Some(directory) => (line(directory, "cpu.cfs_quota_us")?, line(directory, "cpu.cfs_period_us")?),
            None => {
                let text = self.unified("cpu.max")?;
                let parts = text
                    .trim_end()
                    .split_once(' ')
                    .map(|(quota, period)| (quota.to_owned(), period.to_owned()));
                parts.ok_or_else(|| Fault::parse("cpu.max", "a quota and a period", text.as_bytes()))?
            }
        };
        if matches!(quota.as_str(), "max" | "-1") {
            return Ok(None);
        }
        match (quota.parse::<f64>(), period.parse::<f64>()) {
            (Ok(quota), Ok(period)) if period > 0.0 => Ok(Some(quota / period)),
            _ => Err(Fault::parse(
                "a quota",
                "microseconds in a period",
                format!("{quota} {period}").as_bytes(),
            )),
        }
    }

    fn unified(&self, name: &str) -> Result<String, Fault> {
        let directory = self.unified.as_ref().ok_or_else(|| Fault::Unsupported(name.into()))?;
        line(directory, name)
    }
}

/// The number in a file of a group.
pub(super) fn value(directory: &str, name: &str) -> Result<u64, Fault> {
    let text = line(directory, name)?;
    let value = number(text.as_bytes()).map(|(value, _)| value);
    value.ok_or_else(|| Fault::parse(format!("{directory}/{name}"), "a number", text.as_bytes()))
}

fn line(directory: &str, name: &str) -> Result<String, Fault> {
    let path = format!("{directory}/{name}");
    let text = fs::read_to_string(&path).map_err(|e| Fault::of(path, &e))?;
    Ok(text.trim_end().to_owned())
}

/// The group of a process in the hierarchy with this controller, as in `4:cpu,cpuacct:/path`.
fn group_in<'a>(membership: &'a str, controller: &str) -> Option<&'a str> {
    membership.lines().find_map(|line| {
        let (_, rest) = line.split_once(':')?;
        let (controllers, group) = rest.split_once(':')?;
        controllers.split(',').any(|its| its == controller).then_some(group)
    })
}

fn mounts() -> Result<Vec<Mount>, Fault> {
    const PATH: &str = "/proc/self/mountinfo";
    let text = fs::read_to_string(PATH).map_err(|e| Fault::of(PATH, &e))?;
    let mounts: Vec<_> = text.lines().filter_map(mount).collect();
    if mounts.is_empty() {
        Err(Fault::Unsupported("control groups, of which no hierarchy is mounted,".into()))
    } else {
        Ok(mounts)
    }
}

fn mount(line: &str) -> Option<Mount> {
    let (before, after) = line.split_once(" - ")?;
    let mut after = after.split(' ');
    let version_two = match after.next()? {
        "cgroup2" => true,
        "cgroup" => false,
        _ => return None,
    };
    let mut before = before.split(' ').skip(3);
    let (root, point) = (before.next()?.to_owned(), before.next()?.to_owned());
    Some(Mount { version_two, root, point, options: after.nth(1)?.to_owned() })
}

/// Names of all groups below all mount points, each once.
pub(super) fn names() -> Result<Vec<String>, Fault> {
    let mut names = Vec::new();
    for mount in mounts()? {
        let prefix = if mount.root == "/" { "" } else { mount.root.as_str() };
        collect(Path::new(&mount.point), prefix, &mut names);
    }
    names.push("/".into());
    names.sort_unstable();
    names.dedup();
    Ok(names)
}

fn collect(directory: &Path, name: &str, names: &mut Vec<String>) {
    // One that was removed meanwhile has nothing below it.
    let Ok(entries) = fs::read_dir(directory) else { return };
    for entry in entries.flatten().filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())) {
        let Ok(part) = entry.file_name().into_string() else { continue };
        let name = format!("{name}/{part}");
        collect(&entry.path(), &name, names);
        names.push(name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hierarchies_of_both_versions_are_told_apart() {
        let one = mount("33 31 0:30 / /sys/fs/cgroup/cpuacct rw - cgroup cgroup rw,cpu,cpuacct")
            .expect("a hierarchy");
        assert!(one.has("cpuacct") && one.has("cpu") && !one.has("memory") && !one.has(UNIFIED));
        let two = mount("41 31 0:38 / /sys/fs/cgroup rw,relatime - cgroup2 cgroup2 rw").expect("a hierarchy");
        assert!(two.has(UNIFIED) && !two.has("cpu"));
        assert_eq!(mount("31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw"), None);
    }

    #[test]
    fn a_container_sees_its_group_at_the_mount_point() {
        let mount =
            mount("33 31 0:30 /docker/a /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu").expect("a hierarchy");
        assert_eq!(mount.directory("/docker/a").as_deref(), Some("/sys/fs/cgroup/cpu"));
        assert_eq!(mount.directory("/docker/a/b").as_deref(), Some("/sys/fs/cgroup/cpu/b"));
        assert_eq!(mount.directory("/docker/ab"), None);
        assert_eq!(mount.directory("/"), None);
    }

    #[test]
    fn a_process_has_a_group_in_each_hierarchy() {
        let membership = "4:cpu,cpuacct:/a\n3:memory:/b\n0::/c\n";
        let groups = ["cpuacct", "cpu", "memory", UNIFIED, "pids"].map(|name| group_in(membership, name));
        assert_eq!(groups, [Some("/a"), Some("/a"), Some("/b"), Some("/c"), None]);
    }
}

//! The directories of a group in the mounted hierarchies, and its limits.

use crate::Fault;
use crate::text::parse_number;
use std::fs;
use std::path::Path;
use syscost_platform::control_group::{self, Controller, Group, Hierarchy, parse_cfs_quota};
use syscost_platform::kernel_files::KernelFiles;

/// The directories of one group, one for each controller that is read.
#[derive(Debug, Default)]
pub(super) struct Place {
    pub(super) unified: Option<String>,
    pub(super) cpuacct: Option<String>,
    pub(super) cpu: Option<String>,
    pub(super) memory: Option<String>,
}

impl Place {
    /// The group of this name, in all hierarchies that have it.
    ///
    /// # Errors
    /// [`Fault::Gone`] where no hierarchy has the group; [`Fault::Unsupported`] where no hierarchy is mounted.
    pub(super) fn find_by_name(name: &str) -> Result<Self, Fault> {
        let is_path = name.starts_with('/') && name.split('/').all(|part| part != ".." && part != ".");
        if !is_path || name.contains('\0') {
            return Err(Fault::Gone(format!("control group {name:?}")));
        }
        let mounted = mounted_hierarchies()?;
        let place = Self::from_controllers(|meant| {
            let hierarchy = mounted.iter().find(|hierarchy| hierarchy.matches_controller(meant))?;
            // In a container `/` is the container's own group, whatever its name outside.
            let directory =
                if name == "/" { hierarchy.point.clone() } else { hierarchy.group_directory(name)? };
            Path::new(&directory).is_dir().then_some(directory)
        });
        if place.is_there() { Ok(place) } else { Err(Fault::Gone(format!("control group {name}"))) }
    }

    /// The group of a process, in each mounted hierarchy.
    ///
    /// # Errors
    /// [`Fault::Gone`] or [`Fault::Denied`] in the cases of a process; [`Fault::Unsupported`] where no hierarchy is mounted.
    pub(super) fn from_pid(pid: i32) -> Result<Self, Fault> {
        let path = format!("/proc/{pid}/cgroup");
        let membership = fs::read_to_string(&path)
            .map_err(|e| Fault::from_error(crate::process_handle::process_label(pid), &e))?;
        let (files, mounted) = (KernelFiles::live(), mounted_hierarchies()?);
        Ok(Self::from_controllers(|meant| {
            Some(Group::find(&files, &mounted, &membership, meant)?.directory())
        }))
    }

    fn from_controllers(directory: impl Fn(Controller<'_>) -> Option<String>) -> Self {
        Self {
            unified: directory(None),
            cpuacct: directory(Some("cpuacct")),
            cpu: directory(Some("cpu")),
            memory: directory(Some("memory")),
        }
    }

    /// Whether at least one of its directories exists.
    pub(super) fn is_there(&self) -> bool {
        let all = [&self.unified, &self.cpuacct, &self.cpu, &self.memory];
        all.into_iter().flatten().any(|directory| Path::new(directory).is_dir())
    }

    pub(super) fn memory_limit(&self) -> Result<Option<u64>, Fault> {
        if let Some(directory) = &self.memory {
            let bytes = read_number(directory, "memory.limit_in_bytes")?;
            // The kernel writes "no limit" as the largest number of whole pages.
            return Ok(Some(bytes).filter(|bytes| *bytes < i64::MAX as u64 - (1 << 20)));
        }
        let text = self.read_unified("memory.max")?;
        match text.trim_end() {
            "max" => Ok(None),
            bytes => Ok(Some(
                bytes.parse().map_err(|_| Fault::parse_error("memory.max", "bytes", bytes.as_bytes()))?,
            )),
        }
    }

    pub(super) fn cpu_limit(&self) -> Result<Option<f64>, Fault> {
        let (quota, period) = match &self.cpu {
            Some(directory) => {
                (read_trimmed(directory, "cpu.cfs_quota_us")?, read_trimmed(directory, "cpu.cfs_period_us")?)
            }
            None => {
                let text = self.read_unified("cpu.max")?;
                let parts = text.split_once(' ').map(|(quota, period)| (quota.to_owned(), period.to_owned()));
                parts.ok_or_else(|| Fault::parse_error("cpu.max", "a quota and a period", text.as_bytes()))?
            }
        };
        if matches!(quota.as_str(), "max" | "-1") {
            return Ok(None);
        }
        let limit = parse_cfs_quota(&quota, &period).map(Some);
        let text = format!("{quota} {period}");
        limit.ok_or_else(|| Fault::parse_error("a quota", "microseconds in a period", text.as_bytes()))
    }

    fn read_unified(&self, name: &str) -> Result<String, Fault> {
        let directory = self.unified.as_ref().ok_or_else(|| Fault::Unsupported(name.into()))?;
        read_trimmed(directory, name)
    }
}

/// Reads the number in a file of a group.
pub(super) fn read_number(directory: &str, name: &str) -> Result<u64, Fault> {
    let text = read_trimmed(directory, name)?;
    let value = parse_number(text.as_bytes()).map(|(value, _)| value);
    value.ok_or_else(|| Fault::parse_error(format!("{directory}/{name}"), "a number", text.as_bytes()))
}

fn read_trimmed(directory: &str, name: &str) -> Result<String, Fault> {
    let path = format!("{directory}/{name}");
    let text = fs::read_to_string(&path).map_err(|e| Fault::from_error(path, &e))?;
    Ok(text.trim_end().to_owned())
}

fn mounted_hierarchies() -> Result<Vec<Hierarchy>, Fault> {
    let mounted = control_group::mounted_hierarchies(&KernelFiles::live());
    if mounted.is_empty() {
        return Err(Fault::Unsupported("control groups, of which no hierarchy is mounted,".into()));
    }
    Ok(mounted)
}

/// Names of all control groups in all mounted hierarchies, without duplicates.
///
/// # Errors
/// [`Fault::Unsupported`] where no hierarchy is mounted.
pub(crate) fn group_names() -> Result<Vec<String>, Fault> {
    let mut names = vec!["/".to_owned()];
    for mounted in mounted_hierarchies()? {
        let prefix = if mounted.root == "/" { "" } else { mounted.root.as_str() };
        collect_group_names(Path::new(&mounted.point), prefix, &mut names);
    }
    names.sort_unstable();
    names.dedup();
    Ok(names)
}

fn collect_group_names(directory: &Path, name: &str, names: &mut Vec<String>) {
    // A group that was removed meanwhile has no groups below it.
    let Ok(entries) = fs::read_dir(directory) else { return };
    for entry in entries.flatten().filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())) {
        let Ok(part) = entry.file_name().into_string() else { continue };
        let name = format!("{name}/{part}");
        collect_group_names(&entry.path(), &name, names);
        names.push(name);
    }
}

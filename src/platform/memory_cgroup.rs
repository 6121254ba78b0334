//! A control group of our own that limits memory, page cache included: a file cache of a known size, on a machine that
//! has more memory than anybody wants to read.
//!
//! The process goes in and comes back. What it leaves when it is killed is an empty group, which the next run removes.

use super::{limit, process};
use crate::{Error, Result};
use std::path::{Path, PathBuf};

const PREFIX: &str = "syscost-confined-";

/// A hierarchy of control groups that can limit memory: where it is mounted, the group of this process, and what its
/// files are called.
struct Hierarchy {
    /// The group that this process is in.
    own: PathBuf,
    /// The group below which another may be made.
    parent: PathBuf,
    limit: &'static str,
    /// The line of `memory.stat` that counts the page cache.
    cache: &'static str,
}

/// While it lives, this process may have so much memory.
pub struct MemoryCgroup {
    /// The group that was made; none where one of about this size was there.
    made: Option<PathBuf>,
    own: PathBuf,
    cache: &'static str,
}

impl MemoryCgroup {
    /// Makes a group and goes there; where that is forbidden, a limit that holds already will do, if it is not above
    /// this and not below its half.
    ///
    /// # Errors
    /// [`Error::Missing`] where there is neither.
    pub fn to(bytes: u64) -> Result<Self> {
        let hierarchies = hierarchies(Path::new("/"));
        let mut why = "no hierarchy with the memory controller is mounted".to_owned();
        for hierarchy in &hierarchies {
            match enter(hierarchy, bytes) {
                Ok(made) => {
                    let (own, cache) = (hierarchy.own.clone(), hierarchy.cache);
                    return Ok(Self { made: Some(made), own, cache });
                }
                Err(cause) => why = format!("{}: {cause}", hierarchy.parent.display()),
            }
        }
        let limit = limit::memory_limit().filter(|limit| (bytes / 2..=bytes).contains(limit));
        match (limit, hierarchies.into_iter().next()) {
            (Some(_), Some(Hierarchy { own, cache, .. })) => Ok(Self { made: None, own, cache }),
            _ => Err(Error::Missing(format!(
                "a control group of {} MiB is needed, so that a file cache can be filled in seconds, and cannot be made \
                 ({why}): run as root, or in a group with that limit",
                bytes >> 20
            ))),
        }
    }

    /// How many bytes of page cache are charged to the group, by its own account.
    pub fn cached(&self) -> Result<u64> {
        let path = self.made.as_ref().unwrap_or(&self.own).join("memory.stat");
        let text = std::fs::read_to_string(&path).map_err(|e| Error::file(&path, "reading", e))?;
        let told = text.lines().find_map(|line| line.strip_prefix(self.cache)?.trim().parse().ok());
        told.ok_or_else(|| Error::Content {
            path,
            field: self.cache.trim().into(),
            expected: "a number of bytes".into(),
            found: "nothing".into(),
            remedy: "this kernel counts it elsewhere".into(),
        })
    }
}

impl Drop for MemoryCgroup {
    fn drop(&mut self) {
        if let Some(made) = &self.made {
            // Where it cannot go back it stays, and the next run finds a group that is not empty until it has ended.
            let _ = std::fs::write(self.own.join("cgroup.procs"), std::process::id().to_string());
            let _ = std::fs::remove_dir(made);
        }
    }
}

fn enter(hierarchy: &Hierarchy, bytes: u64) -> std::io::Result<PathBuf> {
    let group = hierarchy.parent.join(format!("{PREFIX}{}", std::process::id()));
    std::fs::create_dir(&group)?;
    let enter = || {
        std::fs::write(group.join(hierarchy.limit), bytes.to_string())?;
        std::fs::write(group.join("cgroup.procs"), std::process::id().to_string())
    };
    enter().inspect_err(|_| _ = std::fs::remove_dir(&group))?;
    Ok(group)
}

/// Those that this process is in, version 1's first: where both are mounted, the controller is there.
fn hierarchies(root: &Path) -> Vec<Hierarchy> {
    let membership = std::fs::read_to_string(root.join("proc/self/cgroup")).unwrap_or_default();
    let groups = membership.lines().filter_map(|line| line.split_once(':')?.1.split_once(':'));
    let mut found: Vec<_> = groups
        .filter_map(|(names, path)| match names {
            "" => second(root, path),
            _ if names.split(',').any(|name| name == "memory") => first(root, path),
            _ => None,
        })
        .collect();
    found.sort_by_key(|hierarchy| hierarchy.limit != FIRST.0);
    found
}

/// What version 1 calls a limit, and the page cache.
const FIRST: (&str, &str) = ("memory.limit_in_bytes", "cache ");
/// The same of version 2.
const SECOND: (&str, &str) = ("memory.max", "file ");

fn first(root: &Path, path: &str) -> Option<Hierarchy> {
    let own = present(&root.join("sys/fs/cgroup/memory"), path)?;
    own.join(FIRST.0).exists().then(|| Hierarchy { parent: own.clone(), own, limit: FIRST.0, cache: FIRST.1 })
}

/// In version 2 a group that has processes cannot lend the controller to groups below it, so a new one stands beside
/// ours.
fn second(root: &Path, path: &str) -> Option<Hierarchy> {
    let mounts = ["sys/fs/cgroup", "sys/fs/cgroup/unified"].map(|mount| root.join(mount));
    let mount = mounts.into_iter().find(|mount| mount.join("cgroup.controllers").exists())?;
    let own = present(&mount, path)?;
    let parent = if own == mount { mount } else { own.parent()?.to_path_buf() };
    let lent = std::fs::read_to_string(parent.join("cgroup.subtree_control")).unwrap_or_default();
    let lends = lent.split_whitespace().any(|controller| controller == "memory");
    lends.then_some(Hierarchy { own, parent, limit: SECOND.0, cache: SECOND.1 })
}

/// The directory of a group. A container may see its own as the root of the mount.
fn present(mount: &Path, path: &str) -> Option<PathBuf> {
    let inner = mount.join(path.trim_start_matches('/'));
    [inner, mount.to_path_buf()].into_iter().find(|group| group.join("cgroup.procs").exists())
}

/// Removes the groups of processes that are no more. Those that are not empty stay.
pub fn sweep_up() {
    for hierarchy in hierarchies(Path::new("/")) {
        for entry in std::fs::read_dir(&hierarchy.parent).into_iter().flatten().flatten() {
            let name = entry.file_name();
            let owner = name.to_str().and_then(|name| name.strip_prefix(PREFIX)?.parse().ok());
            if owner.is_some_and(|pid| process::began(pid).is_none()) {
                let _ = std::fs::remove_dir(entry.path());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::platform::child::Child;
    use crate::platform::fixture::machine;
    use std::time::Duration;

    const PATIENCE: Duration = Duration::from_secs(60);

    #[test]
    fn the_first_version_limits_below_our_own_group() {
        let root = machine(&[
            ("proc/self/cgroup", "4:memory:/a/b\n0::/\n"),
            ("sys/fs/cgroup/memory/a/b/cgroup.procs", ""),
            ("sys/fs/cgroup/memory/a/b/memory.limit_in_bytes", ""),
        ]);
        let found = hierarchies(root.path());
        assert_eq!(found.len(), 1);
        assert!(found[0].parent.ends_with("memory/a/b") && found[0].own == found[0].parent);
    }

    #[test]
    fn the_second_version_limits_beside_it_where_the_controller_is_lent() {
        let files = |lent| {
            [
                ("proc/self/cgroup", "0::/user/session\n"),
                ("sys/fs/cgroup/cgroup.controllers", "memory"),
                ("sys/fs/cgroup/user/cgroup.subtree_control", lent),
                ("sys/fs/cgroup/user/session/cgroup.procs", ""),
            ]
        };
        let found = machine(&files("cpu memory\n"));
        let found = hierarchies(found.path());
        assert!(found[0].parent.ends_with("cgroup/user") && found[0].own.ends_with("user/session"));
        assert!(hierarchies(machine(&files("cpu\n")).path()).is_empty());
    }

    /// In a process of its own: what the other tests of this one fork meanwhile would stay in the group.
    #[test]
    fn who_goes_in_comes_back_and_nothing_is_left() {
        let child = Child::start(|| {
            let Ok(confined) = MemoryCgroup::to(256 << 20) else { return };
            let membership = || std::fs::read_to_string("/proc/self/cgroup").expect("a membership");
            if let Some(made) = confined.made.clone() {
                assert!(membership().contains(PREFIX));
                confined.cached().expect("told");
                drop(confined);
                assert!(!membership().contains(PREFIX) && !made.exists());
            }
        });
        child.expect("forked").end_within(PATIENCE).expect("all of it holds");
    }
}

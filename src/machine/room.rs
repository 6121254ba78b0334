//! How many more tasks there may be, and how much more memory: what limits them, in words.

use nix::sys::resource::{Resource, getrlimit};
use std::path::Path;

/// A controller of control groups, and the files that hold its limit and its use. Version 1 mounts each controller
/// by itself, version 2 all of them together.
struct Controller {
    name: &'static str,
    first: [&'static str; 2],
    second: [&'static str; 2],
}

const TASKS: Controller =
    Controller { name: "pids", first: ["pids.max", "pids.current"], second: ["pids.max", "pids.current"] };
const MEMORY: Controller = Controller {
    name: "memory",
    first: ["memory.limit_in_bytes", "memory.usage_in_bytes"],
    second: ["memory.max", "memory.current"],
};

/// A control group that has a limit.
struct Limited {
    group: String,
    most: u64,
    now: u64,
}

impl Limited {
    fn left(&self) -> u64 {
        self.most.saturating_sub(self.now)
    }
}

/// A sentence for who wanted another task and was answered `EAGAIN`, which several limits answer alike: all that
/// hold are named.
pub fn no_task(doing: &str, cause: std::io::Error) -> String {
    format!("{doing}: {cause}; {}", limits_of_tasks())
}

fn limits_of_tasks() -> String {
    let group = nearest(Path::new("/"), &TASKS).map(|limited| {
        let Limited { group, most, now } = limited;
        format!("the control group {group} may have {most} tasks and has {now} (pids.max): raise it")
    });
    let mut sentences = Vec::from_iter(group);
    match getrlimit(Resource::RLIMIT_NPROC) {
        Ok((limit, _)) if limit != libc::RLIM_INFINITY => {
            sentences.push(format!("this user may have {limit} tasks (RLIMIT_NPROC, `ulimit -u`)"));
        }
        _ => {}
    }
    sentences.join("; ")
}

/// Why `bytes` more of memory cannot be had, if they cannot.
pub fn for_memory(bytes: u64) -> Result<(), String> {
    memory(Path::new("/"), bytes)
}

fn memory(root: &Path, bytes: u64) -> Result<(), String> {
    let mib = |bytes: u64| bytes >> 20;
    let text = std::fs::read_to_string(root.join("proc/meminfo")).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    let kib = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok());
    if let Some(available) = kib.map(|kib| kib << 10).filter(|available| *available < bytes) {
        let (wanted, available) = (mib(bytes), mib(available));
        return Err(format!("{wanted} MiB of memory are needed and {available} are available: free some"));
    }
    match nearest(root, &MEMORY) {
        Some(limited) if limited.left() < bytes => Err(format!(
            "{} MiB of memory are needed and the control group {} has {} left of its {}: raise its limit",
            mib(bytes),
            limited.group,
            mib(limited.left()),
            mib(limited.most)
        )),
        _ => Ok(()),
    }
}

/// The least limit of memory of the group of this process and those above it.
pub fn memory_limit() -> Option<u64> {
    nearest(Path::new("/"), &MEMORY).map(|limited| limited.most)
}

/// Of the group of this process and those above it, the one that is nearest to its limit.
fn nearest(root: &Path, controller: &Controller) -> Option<Limited> {
    let membership = std::fs::read_to_string(root.join("proc/self/cgroup")).ok()?;
    let groups = membership.lines().filter_map(|line| {
        let (names, path) = line.split_once(':')?.1.split_once(':')?;
        match names {
            "" => Some(("sys/fs/cgroup".to_owned(), controller.second, path)),
            _ if names.split(',').any(|name| name == controller.name) => {
                Some((format!("sys/fs/cgroup/{}", controller.name), controller.first, path))
            }
            _ => None,
        }
    });
    let limits = groups.flat_map(|(mount, files, path)| {
        upwards(path).filter_map(move |path| limited(&root.join(&mount), files, path))
    });
    limits.min_by_key(Limited::left)
}

/// The path, and what lies above it.
fn upwards(path: &str) -> impl Iterator<Item = &str> {
    std::iter::successors(Some(path.trim_end_matches('/')), |path| Some(&path[..path.rfind('/')?]))
}

fn limited(mount: &Path, files: [&str; 2], path: &str) -> Option<Limited> {
    let directory = mount.join(path.trim_start_matches('/'));
    let number = |name: &str| std::fs::read_to_string(directory.join(name)).ok()?.trim().parse().ok();
    let (most, now) = (number(files[0])?, number(files[1])?);
    Some(Limited { group: if path.is_empty() { "/".into() } else { path.into() }, most, now })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(files: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().expect("a directory");
        for (path, text) in files {
            let path = root.path().join(path);
            std::fs::create_dir_all(path.parent().expect("a parent")).expect("made");
            std::fs::write(path, text).expect("written");
        }
        root
    }

    #[test]
    fn the_group_nearest_to_its_limit_is_named() {
        let root = machine(&[
            ("proc/self/cgroup", "8:pids:/outer/inner\n3:cpuset:/\n0::/elsewhere\n"),
            ("sys/fs/cgroup/pids/outer/inner/pids.max", "max\n"),
            ("sys/fs/cgroup/pids/outer/inner/pids.current", "3\n"),
            ("sys/fs/cgroup/pids/outer/pids.max", "4\n"),
            ("sys/fs/cgroup/pids/outer/pids.current", "4\n"),
        ]);
        let limited = nearest(root.path(), &TASKS).expect("a limit");
        assert_eq!((limited.group.as_str(), limited.most, limited.left()), ("/outer", 4, 0));
        assert!(nearest(root.path(), &MEMORY).is_none());
    }

    #[test]
    fn a_container_that_is_its_own_root_is_read() {
        let root = machine(&[
            ("proc/self/cgroup", "0::/\n"),
            ("sys/fs/cgroup/memory.max", "200000000\n"),
            ("sys/fs/cgroup/memory.current", "100000000\n"),
        ]);
        assert_eq!(memory(root.path(), 50 << 20), Ok(()));
        let sentence = memory(root.path(), 100 << 20).expect_err("too much");
        assert!(sentence.contains("the control group / has 95 left of its 190"), "{sentence}");
    }

    #[test]
    fn memory_that_is_not_available_is_said() {
        let root = machine(&[("proc/meminfo", "MemTotal: 99999999 kB\nMemAvailable:    2048 kB\n")]);
        assert_eq!(memory(root.path(), 2 << 20), Ok(()));
        assert!(memory(root.path(), 3 << 20).expect_err("too much").contains("3 MiB of memory are needed"));
    }

    #[test]
    fn without_a_limit_there_is_no_sentence() {
        assert!(nearest(machine(&[("proc/self/cgroup", "8:pids:/\n")]).path(), &TASKS).is_none());
    }
}

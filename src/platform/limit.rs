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

/// A sentence for who wanted `bytes` of addresses and was answered `ENOMEM`.
pub fn no_mapping(bytes: u64, cause: std::io::Error) -> String {
    let limit =
        |resource| getrlimit(resource).ok().map(|(limit, _)| limit).filter(|l| *l != libc::RLIM_INFINITY);
    let named = [
        (Resource::RLIMIT_AS, "RLIMIT_AS, `ulimit -v`"),
        (Resource::RLIMIT_DATA, "RLIMIT_DATA, `ulimit -d`"),
    ];
    let limits = named.into_iter().filter_map(|(resource, name)| {
        Some(format!("this process may map {} MiB ({name}): raise it", limit(resource)? >> 20))
    });
    let limits: Vec<_> = limits.collect();
    let limits = if limits.is_empty() {
        "free some memory, or let vm.overcommit_memory be 0".into()
    } else {
        limits.join("; ")
    };
    let size = if bytes < 1 << 20 { format!("{} KiB", bytes >> 10) } else { format!("{} MiB", bytes >> 20) };
    format!("mmap of {size}: {cause}; {limits}")
}

/// Why `bytes` more of memory cannot be had, if they cannot.
pub fn for_memory(bytes: u64) -> Result<(), String> {
    memory(Path::new("/"), bytes, "")
}

/// Why `bytes` more of memory should not be taken, if they should not: they are more than half of what is left, and
/// the other half is for everybody else.
pub fn for_half(bytes: u64) -> Result<(), String> {
    memory(Path::new("/"), 2 * bytes, ", half of them for everybody else,")
}

/// So many bytes can still be had, and why not more and what to do.
struct Bound {
    left: u64,
    sentence: String,
}

fn memory(root: &Path, bytes: u64, of_them: &str) -> Result<(), String> {
    let bounds = [available(root), granted(root), addressable(root)];
    match bounds.into_iter().flatten().min_by_key(|bound| bound.left) {
        Some(Bound { left, sentence }) if left < bytes => {
            Err(format!("{} MiB of memory are needed{of_them} and {sentence}", mib(bytes)))
        }
        _ => Ok(()),
    }
}

fn mib(bytes: u64) -> u64 {
    bytes >> 20
}

fn available(root: &Path) -> Option<Bound> {
    let text = std::fs::read_to_string(root.join("proc/meminfo")).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let left = line.trim().trim_end_matches(" kB").parse::<u64>().ok()? << 10;
    Some(Bound { left, sentence: format!("{} are available: free some", mib(left)) })
}

fn granted(root: &Path) -> Option<Bound> {
    let limited = nearest(root, &MEMORY)?;
    let (left, most) = (mib(limited.left()), mib(limited.most));
    let sentence =
        format!("the control group {} has {left} left of its {most}: raise its limit", limited.group);
    Some(Bound { left: limited.left(), sentence })
}

/// What this process may still map. The first number of `statm` is what it has mapped, in pages (proc_pid_statm(5)).
fn addressable(root: &Path) -> Option<Bound> {
    let (limit, _) =
        getrlimit(Resource::RLIMIT_AS).ok().filter(|(limit, _)| *limit != libc::RLIM_INFINITY)?;
    let statm = std::fs::read_to_string(root.join("proc/self/statm")).ok()?;
    let pages: u64 = statm.split(' ').next()?.parse().ok()?;
    let left = limit.saturating_sub(pages * super::process::page_size());
    let sentence = format!("RLIMIT_AS leaves {} of its {}: raise it (`ulimit -v`)", mib(left), mib(limit));
    Some(Bound { left, sentence })
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
    use crate::platform::fixture::machine;

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
        assert_eq!(memory(root.path(), 50 << 20, ""), Ok(()));
        let sentence = memory(root.path(), 100 << 20, "").expect_err("too much");
        assert!(sentence.contains("the control group / has 95 left of its 190"), "{sentence}");
    }

    #[test]
    fn memory_that_is_not_available_is_said() {
        let root = machine(&[("proc/meminfo", "MemTotal: 99999999 kB\nMemAvailable:    2048 kB\n")]);
        assert_eq!(memory(root.path(), 2 << 20, ""), Ok(()));
        assert!(
            memory(root.path(), 3 << 20, "").expect_err("too much").contains("3 MiB of memory are needed")
        );
    }

    #[test]
    fn the_tightest_bound_is_the_one_that_is_said() {
        let root = machine(&[
            ("proc/meminfo", "MemAvailable:    200000 kB\n"),
            ("proc/self/cgroup", "0::/\n"),
            ("sys/fs/cgroup/memory.max", "100000000\n"),
            ("sys/fs/cgroup/memory.current", "0\n"),
        ]);
        let sentence =
            memory(root.path(), 300 << 20, ", half of them for everybody else,").expect_err("too much");
        assert!(sentence.contains("everybody else, and the control group / has 95 left"), "{sentence}");
    }

    #[test]
    fn without_a_limit_there_is_no_sentence() {
        assert!(nearest(machine(&[("proc/self/cgroup", "8:pids:/\n")]).path(), &TASKS).is_none());
    }
}

//! A memory control group of our own: version 1 or 2, whichever this machine has.

use crate::platform::cleanup::CleanupProcess;
use crate::{Error, Result};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// Between two tries to remove a group that still has tasks, and how many: those that were killed take a moment.
const AGAIN: (Duration, u32) = (Duration::from_millis(10), 1000);

/// Which files a group has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Version {
    One,
    Two,
}

impl Version {
    fn limit(self) -> &'static str {
        match self {
            Self::One => "memory.limit_in_bytes",
            Self::Two => "memory.max",
        }
    }
}

/// A group with a limit. It is removed with this value, or when its process ends however it may.
#[derive(Debug)]
pub struct MemoryGroup {
    directory: PathBuf,
    _heir: CleanupProcess,
}

impl MemoryGroup {
    /// Makes one below the group of this process, or below one above it.
    ///
    /// # Errors
    /// [`Error::Missing`] where there is no memory controller, or we may make no group.
    pub fn with_limit(bytes: u64) -> Result<Self> {
        let text = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let places = places(&text("/proc/self/mountinfo"), &text("/proc/self/cgroup"));
        let missing = |why: String| {
            Error::Missing(format!(
                "a memory control group is needed: {why}; run as root, or in a group that was delegated (`systemd-run \
                 --user --scope -p Delegate=yes`)"
            ))
        };
        if places.is_empty() {
            return Err(missing("no memory controller is mounted here".into()));
        }
        let mut refused = String::new();
        for (version, parent) in &places {
            match Self::below(parent, *version, bytes) {
                Ok(group) => return Ok(group),
                Err(error) => refused = error.to_string(),
            }
        }
        Err(missing(refused))
    }

    fn below(parent: &Path, version: Version, bytes: u64) -> Result<Self> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let directory = parent.join(format!("syscost-{}-{number}", std::process::id()));
        fs::create_dir(&directory).map_err(|e| Error::file(&directory, "making a group", e))?;
        let theirs = directory.clone();
        let heir = match CleanupProcess::named(move || remove(&theirs)) {
            Ok(heir) => heir,
            Err(error) => {
                remove(&directory);
                return Err(error);
            }
        };
        let group = Self { directory, _heir: heir };
        group.write(version.limit(), bytes)?;
        if version == Version::Two {
            // Jobs that are paged, not swapped. Without swap there is no such file.
            let _ = group.write("memory.swap.max", 0);
        }
        Ok(group)
    }

    /// Moves a process in, with its threads. What it has touched before is charged where it was.
    ///
    /// # Errors
    /// [`Error::File`] where the kernel refuses.
    pub fn take_in(&self, pid: i32) -> Result<()> {
        self.write("cgroup.procs", u64::from(pid.unsigned_abs()))
    }

    fn write(&self, name: &str, value: u64) -> Result<()> {
        let path = self.directory.join(name);
        fs::write(&path, value.to_string()).map_err(|e| Error::file(path, "writing", e))
    }

    /// Where it is.
    #[cfg(test)]
    pub fn directory(&self) -> &Path {
        &self.directory
    }
}

fn remove(directory: &Path) {
    for _ in 0..AGAIN.1 {
        match fs::remove_dir(directory) {
            Err(error) if error.raw_os_error() == Some(libc::EBUSY) => std::thread::sleep(AGAIN.0),
            _ => return,
        }
    }
}

/// Where a group may be made: below our own, then below those above it. In version 2 one with processes has no children
/// with controllers, so that it will be one above us; which controllers those have is left as it is.
fn places(mountinfo: &str, membership: &str) -> Vec<(Version, PathBuf)> {
    let mut places = Vec::new();
    for line in mountinfo.lines() {
        let Some((version, mount)) = hierarchy(line) else { continue };
        let own = membership.lines().find_map(|line| own_path(line, version)).unwrap_or("/");
        let own = mount.join(own.trim_start_matches('/'));
        let upwards = own.ancestors().take_while(|place| place.starts_with(&mount));
        places
            .extend(upwards.filter(|place| offers(version, place)).map(|place| (version, place.to_owned())));
    }
    places
}

/// The version and the place of a mounted hierarchy that may have the memory controller (proc_pid_mountinfo(5)).
fn hierarchy(line: &str) -> Option<(Version, PathBuf)> {
    let (before, after) = line.split_once(" - ")?;
    let mount = PathBuf::from(before.split(' ').nth(4)?);
    let mut after = after.split(' ');
    match after.next()? {
        "cgroup2" => Some((Version::Two, mount)),
        "cgroup" => {
            after.nth(1)?.split(',').any(|option| option == "memory").then_some((Version::One, mount))
        }
        _ => None,
    }
}

/// Our group in a hierarchy of this version, of a line of `/proc/self/cgroup`.
fn own_path(line: &str, version: Version) -> Option<&str> {
    let mut parts = line.splitn(3, ':');
    let (number, controllers, path) = (parts.next()?, parts.next()?, parts.next()?);
    let is_ours = match version {
        Version::One => controllers.split(',').any(|name| name == "memory"),
        Version::Two => number == "0" && controllers.is_empty(),
    };
    is_ours.then_some(path)
}

/// Whether a child of this group would have a limit of memory.
fn offers(version: Version, place: &Path) -> bool {
    match version {
        Version::One => place.join(version.limit()).exists(),
        Version::Two => fs::read_to_string(place.join("cgroup.subtree_control"))
            .is_ok_and(|all| all.split_whitespace().any(|name| name == "memory")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEGACY: &str = "31 25 0:27 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n";

    #[test]
    fn hierarchies_of_both_versions_are_known() {
        let legacy = LEGACY.trim_end();
        assert_eq!(hierarchy(legacy), Some((Version::One, "/sys/fs/cgroup/memory".into())));
        assert_eq!(hierarchy(&legacy.replace("rw,memory", "rw,cpu")), None);
        let unified = "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate";
        assert_eq!(hierarchy(unified), Some((Version::Two, "/sys/fs/cgroup".into())));
        assert_eq!(hierarchy("22 1 254:0 / / rw - ext4 /dev/vda rw"), None);
    }

    #[test]
    fn the_own_group_is_found_in_both() {
        assert_eq!(own_path("4:memory:/a/b", Version::One), Some("/a/b"));
        assert_eq!(own_path("4:cpu,cpuacct:/a", Version::One), None);
        assert_eq!(own_path("0::/user.slice/x.scope", Version::Two), Some("/user.slice/x.scope"));
    }

    /// A tree as the kernel would show it, on an ordinary disk.
    fn tree(controllers: &str) -> tempfile::TempDir {
        let mount = tempfile::tempdir().expect("a directory");
        fs::create_dir_all(mount.path().join("a/b")).expect("made");
        fs::write(mount.path().join("cgroup.subtree_control"), "cpu memory\n").expect("written");
        fs::write(mount.path().join("a/cgroup.subtree_control"), controllers).expect("written");
        fs::write(mount.path().join("a/b/cgroup.subtree_control"), "").expect("written");
        fs::write(mount.path().join("a/memory.limit_in_bytes"), "").expect("written");
        mount
    }

    #[test]
    fn in_version_2_the_nearest_that_hands_the_controller_on_comes_first() {
        for (controllers, nearest) in [("memory pids", "a"), ("pids", "")] {
            let mount = tree(controllers);
            let line = format!("30 23 0:26 / {} rw - cgroup2 none rw", mount.path().display());
            let places = places(&line, "0::/a/b\n");
            let expected = mount.path().join(nearest);
            assert_eq!(places[0], (Version::Two, expected.components().collect()), "{controllers}");
        }
    }

    #[test]
    fn in_version_1_it_is_the_own_group_or_one_above() {
        let mount = tree("");
        let line = LEGACY.replace("/sys/fs/cgroup/memory", &mount.path().display().to_string());
        assert_eq!(places(&line, "4:memory:/a/b\n"), [(Version::One, mount.path().join("a"))]);
    }

    #[test]
    fn each_version_has_its_files() {
        for (version, name) in [(Version::One, "memory.limit_in_bytes"), (Version::Two, "memory.max")] {
            let parent = tempfile::tempdir().expect("a directory");
            let group = MemoryGroup::below(parent.path(), version, 1 << 20).expect("made");
            group.take_in(17).expect("written");
            let read = |name: &str| fs::read_to_string(group.directory().join(name)).expect("written");
            assert_eq!((read(name), read("cgroup.procs")), ("1048576".into(), "17".into()));
        }
    }

    #[test]
    fn a_real_group_goes_with_its_value() {
        match MemoryGroup::with_limit(32 << 20) {
            Ok(group) => {
                let directory = group.directory().to_owned();
                assert!(directory.join("cgroup.procs").exists());
                drop(group);
                assert!(!directory.exists());
            }
            Err(error) => {
                assert!(error.to_string().contains("a memory control group is needed"), "{error}");
                println!("skipped: {error}");
            }
        }
    }
}

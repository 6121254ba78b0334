//! Control groups that this program makes, such as one that limits memory, page cache included. A process that is killed
//! leaves its group empty, and the next run removes it.

use super::{Group, Version, own_groups, own_groups_and_ancestors};
use crate::error::{Error, Result};
use crate::kernel_files::KernelFiles;
use crate::plain_file::{self, random_word};
use crate::{limit, process};
use nix::fcntl::{Flock, FlockArg};
use std::fs::{self, File};
use std::path::{Path, PathBuf};

/// Names of groups begin so; the number of the process that made them follows, and random characters.
const PREFIX: &str = "syscost-";
/// The controllers in whose hierarchies of version 1 groups are made.
const CONTROLLERS: [&str; 2] = ["memory", "pids"];

/// A group below another one. It stays until it is removed.
#[derive(Debug)]
pub struct OwnGroup {
    directory: PathBuf,
    /// Keeps a run in a container from removing the group: it shares the hierarchy, but does not see our process.
    _lock: Option<Flock<File>>,
}

impl OwnGroup {
    /// Makes a group below the one in this directory.
    ///
    /// # Errors
    /// [`Error::File`] where the kernel refuses.
    pub fn create_in(parent: &Path) -> Result<Self> {
        let directory = parent.join(format!("{PREFIX}{}-{}", std::process::id(), random_word(8)));
        fs::create_dir(&directory).map_err(|e| Error::file(&directory, "making a group", e))?;
        let _lock = lock_group(&directory);
        Ok(Self { directory, _lock })
    }

    /// Its directory.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Removes the group if it is empty. Otherwise a later run removes it, after this process has ended.
    pub fn remove(&self) {
        let _ = fs::remove_dir(&self.directory);
    }
}

/// Removes the groups of processes that have ended. Groups that are not empty stay.
pub fn remove_stale_groups() {
    let files = KernelFiles::live();
    for group in CONTROLLERS.iter().flat_map(|controller| own_groups_and_ancestors(&files, controller)) {
        for entry in fs::read_dir(files.path(&group.directory())).into_iter().flatten().flatten() {
            let maker = entry.file_name().to_str().and_then(maker_pid);
            let is_stale = maker.is_some_and(|pid| process::process_start_ticks(pid).is_none());
            if let Some(_lock) = is_stale.then(|| lock_group(&entry.path())).flatten() {
                let _ = fs::remove_dir(entry.path());
            }
        }
    }
}

/// Locks a group; `None` if it cannot be opened, or another process holds the lock.
fn lock_group(group: &Path) -> Option<Flock<File>> {
    Flock::lock(plain_file::open_directory(group).ok()?, FlockArg::LockExclusiveNonblock).ok()
}

/// The process that made a group of this name.
fn maker_pid(name: &str) -> Option<u32> {
    name.strip_prefix(PREFIX)?.split_once('-')?.0.parse().ok()
}

impl Version {
    /// The file that holds the limit of memory, bytes.
    pub(super) fn limit_file(self) -> &'static str {
        match self {
            Self::One => "memory.limit_in_bytes",
            Self::Two => "memory.max",
        }
    }

    /// The beginning of the line in `memory.stat` that states the size of the page cache, bytes.
    fn cache_key(self) -> &'static str {
        match self {
            Self::One => "cache ",
            Self::Two => "file ",
        }
    }
}

/// A group with a memory limit. It stays until it is removed.
#[derive(Debug)]
pub struct MemoryCgroup {
    version: Version,
    group: OwnGroup,
}

impl MemoryCgroup {
    /// Makes a group with a limit of `bytes` below that of this process, or below one above it.
    ///
    /// # Errors
    /// Why no group can be made, as a part of a sentence.
    pub fn with_limit(bytes: u64) -> std::result::Result<Self, String> {
        Self::first_usable(bytes, Ok)
    }

    /// Returns the result of `use_it` for the first group that can be made and used. If either is refused, tries the next parent.
    fn first_usable<T>(
        bytes: u64,
        use_it: impl Fn(Self) -> std::result::Result<T, String>,
    ) -> std::result::Result<T, String> {
        let mut refused = "no hierarchy with the memory controller is mounted here".to_owned();
        for (version, parent) in possible_parents(&KernelFiles::live()) {
            let made = Self::create_in(&parent, version, bytes).map_err(|error| error.to_string());
            match made.and_then(&use_it) {
                Ok(usable) => return Ok(usable),
                Err(why) => refused = why,
            }
        }
        Err(refused)
    }

    fn create_in(parent: &Path, version: Version, bytes: u64) -> Result<Self> {
        let group = Self { version, group: OwnGroup::create_in(parent)? };
        group.set_limit(bytes).inspect_err(|_| group.group.remove())?;
        Ok(group)
    }

    /// Sets another limit, bytes.
    ///
    /// # Errors
    /// [`Error::File`] where the kernel refuses.
    pub fn set_limit(&self, bytes: u64) -> Result<()> {
        self.write(self.version.limit_file(), bytes)
    }

    /// Moves a process and its threads into the group. Memory that it has touched before stays charged to its former group.
    ///
    /// # Errors
    /// [`Error::File`] where the kernel refuses.
    pub fn add_process(&self, pid: i32) -> Result<()> {
        self.write("cgroup.procs", u64::from(pid.unsigned_abs()))
    }

    /// Keeps the memory of the group from being swapped out. The file is absent without swap, and in version 1.
    pub fn forbid_swap(&self) {
        if self.version == Version::Two {
            let _ = self.write("memory.swap.max", 0);
        }
    }

    fn write(&self, name: &str, value: u64) -> Result<()> {
        let path = self.directory().join(name);
        fs::write(&path, value.to_string()).map_err(|e| Error::file(path, "writing", e))
    }

    /// Its directory.
    pub fn directory(&self) -> &Path {
        self.group.directory()
    }
}

/// While this value lives, this process has a limited amount of memory.
pub struct LimitedMemory {
    /// `None` where a limit of about this size was in force already.
    made: Option<MemoryCgroup>,
    /// Directory of the former group of this process, to which it returns.
    own: PathBuf,
    version: Version,
}

impl LimitedMemory {
    /// Makes a group and enters it. Where that is forbidden, a limit in force is accepted if it is between half of
    /// this size and this size.
    ///
    /// # Errors
    /// [`Error::Missing`] if neither is possible.
    pub fn enter(bytes: u64) -> Result<Self> {
        let files = KernelFiles::live();
        let groups = own_groups(&files, "memory");
        let directory = |group: &Group| files.path(&group.directory());
        let entered = MemoryCgroup::first_usable(bytes, |made| Self::enter_group(made, &groups, &files));
        let why = match entered {
            Ok(entered) => return Ok(entered),
            Err(why) => why,
        };
        let limit = limit::cgroup_memory_limit().filter(|limit| (bytes / 2..=bytes).contains(limit));
        match (limit, groups.first()) {
            (Some(_), Some(group)) => Ok(Self { made: None, own: directory(group), version: group.version }),
            _ => Err(Error::Missing(format!(
                "a control group of {} MiB is needed, so that a file cache can be filled in seconds, and cannot be made \
                 ({why}): run as root, or in a group with that limit",
                bytes >> 20
            ))),
        }
    }

    fn enter_group(
        made: MemoryCgroup,
        groups: &[Group],
        files: &KernelFiles,
    ) -> std::result::Result<Self, String> {
        let former = groups.iter().find(|group| group.version == made.version);
        let own = former.map(|group| files.path(&group.directory())).ok_or("this process is in no group")?;
        let added = made.add_process(std::process::id() as i32);
        added.inspect_err(|_| made.group.remove()).map_err(|error| error.to_string())?;
        Ok(Self { version: made.version, own, made: Some(made) })
    }

    /// Bytes of page cache that are charged to the group, by its own `memory.stat`.
    ///
    /// # Errors
    /// The file cannot be read, or lacks this number.
    pub fn cached_bytes(&self) -> Result<u64> {
        let group = self.made.as_ref().map_or(self.own.as_path(), MemoryCgroup::directory);
        let (path, key) = (group.join("memory.stat"), self.version.cache_key());
        let text = fs::read_to_string(&path).map_err(|e| Error::file(&path, "reading", e))?;
        let bytes = text.lines().find_map(|line| line.strip_prefix(key)?.trim().parse().ok());
        let remedy = "this kernel counts it elsewhere";
        bytes.ok_or_else(|| Error::invalid_content(path, key.trim(), "a number of bytes", "nothing", remedy))
    }
}

impl Drop for LimitedMemory {
    fn drop(&mut self) {
        if let Some(made) = &self.made {
            // If this process cannot return, the group stays. A run after its end removes the group.
            let _ = fs::write(self.own.join("cgroup.procs"), std::process::id().to_string());
            made.group.remove();
        }
    }
}

/// Groups below which a group with a memory limit may be made: that of this process, then those above it; version 1 first.
/// In version 2 a group that has processes cannot delegate the controller, so the parent is usually one above.
fn possible_parents(files: &KernelFiles) -> Vec<(Version, PathBuf)> {
    let groups = own_groups_and_ancestors(files, "memory")
        .map(|group| (group.version, files.path(&group.directory())));
    groups.filter(|(version, directory)| delegates_memory(*version, directory)).collect()
}

/// Whether a child of this group would have a limit of memory.
fn delegates_memory(version: Version, group: &Path) -> bool {
    match version {
        Version::One => group.join(version.limit_file()).exists(),
        Version::Two => fs::read_to_string(group.join("cgroup.subtree_control"))
            .is_ok_and(|controllers| controllers.split_whitespace().any(|name| name == "memory")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control_group::own_groups;
    use crate::kernel_files::fixture::Machine;
    use crate::testing::print_skipped;
    use crate::testing::run_in_child_process;

    #[test]
    fn the_process_that_made_a_group_is_read_from_its_name() {
        assert_eq!(maker_pid("syscost-17-0k3x9q"), Some(17));
        assert_eq!((maker_pid("syscost-test-17-0"), maker_pid("docker-17-0")), (None, None));
    }

    #[test]
    fn only_groups_of_processes_that_have_ended_are_removed() {
        for controller in CONTROLLERS {
            for parent in own_groups(&KernelFiles::live(), controller) {
                let parent = PathBuf::from(parent.directory());
                let Ok(living) = OwnGroup::create_in(&parent) else {
                    print_skipped(&format!("no control group can be made in {}", parent.display()));
                    continue;
                };
                // No process has a number above the largest that the kernel gives, 2^22.
                let stale = parent.join(format!("{PREFIX}4194305-{}", random_word(8)));
                fs::create_dir(&stale).expect("made");
                remove_stale_groups();
                assert_eq!((living.directory().exists(), stale.exists()), (true, false));
                living.remove();
                assert!(!living.directory().exists());
            }
        }
    }

    #[test]
    fn version_1_limits_below_our_own_group_or_one_above() {
        let machine = Machine::with_files(&[
            ("proc/self/mountinfo", "31 25 0:27 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"),
            ("proc/self/cgroup", "4:memory:/a/b\n0::/\n"),
            ("sys/fs/cgroup/memory/a/b/memory.limit_in_bytes", ""),
            ("sys/fs/cgroup/memory/memory.limit_in_bytes", ""),
        ]);
        let expected = ["sys/fs/cgroup/memory/a/b", "sys/fs/cgroup/memory"];
        let expected = expected.map(|directory| (Version::One, machine.files.path(directory)));
        assert_eq!(possible_parents(&machine.files), expected);
    }

    #[test]
    fn version_2_limits_below_the_nearest_group_that_delegates_the_controller() {
        let nearest = |controllers| {
            let machine = Machine::with_files(&[
                ("proc/self/mountinfo", "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 none rw\n"),
                ("proc/self/cgroup", "0::/user/session\n"),
                ("sys/fs/cgroup/cgroup.subtree_control", "cpu memory\n"),
                ("sys/fs/cgroup/user/cgroup.subtree_control", controllers),
                ("sys/fs/cgroup/user/session/cgroup.subtree_control", ""),
            ]);
            let (_, directory) = possible_parents(&machine.files).remove(0);
            directory.strip_prefix(machine.files.path("sys/fs/cgroup")).expect("below").to_owned()
        };
        assert_eq!(nearest("cpu memory\n"), Path::new("user"));
        assert_eq!(nearest("cpu\n"), Path::new(""));
    }

    #[test]
    fn each_version_has_its_files() {
        for version in [Version::One, Version::Two] {
            let parent = tempfile::tempdir().expect("a directory");
            let group = MemoryCgroup::create_in(parent.path(), version, 1 << 20).expect("made");
            group.add_process(17).expect("written");
            let read = |name: &str| fs::read_to_string(group.directory().join(name)).expect("written");
            assert_eq!((read(version.limit_file()), read("cgroup.procs")), ("1048576".into(), "17".into()));
        }
    }

    /// It runs in its own process: children that other tests fork meanwhile would stay in the group.
    #[test]
    fn a_process_returns_from_a_limited_group_which_is_removed() {
        run_in_child_process(|| {
            let Ok(limited) = LimitedMemory::enter(256 << 20) else { return };
            let is_inside =
                || fs::read_to_string("/proc/self/cgroup").expect("a membership").contains("/syscost-");
            if let Some(made) = limited.made.as_ref().map(|made| made.directory().to_owned()) {
                assert!(is_inside());
                limited.cached_bytes().expect("counted");
                drop(limited);
                assert!(!is_inside() && !made.exists());
            }
        });
    }
}

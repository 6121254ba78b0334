//! A control group for tests, of cgroup version 1 or 2.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use syscost_platform::testing::print_skipped;

/// A control group with a limit. Dropping this value removes it.
pub struct Group(PathBuf);

impl Group {
    /// A group with a limit of memory, bytes.
    pub fn of_memory(bytes: u64) -> Option<Self> {
        let files = [("/sys/fs/cgroup/memory", "memory.limit_in_bytes"), ("/sys/fs/cgroup", "memory.max")];
        Self::new(&files, bytes).or_else(|| skipped("memory"))
    }

    /// A group with a limit of tasks.
    pub fn of_tasks(tasks: u64) -> Option<Self> {
        let files = [("/sys/fs/cgroup/pids", "pids.max"), ("/sys/fs/cgroup", "pids.max")];
        Self::new(&files, tasks).or_else(|| skipped("tasks"))
    }

    /// A group with a quota of CPU time, microseconds in each tenth of a second.
    pub fn of_cpu(microseconds: u64) -> Option<Self> {
        let files = [("/sys/fs/cgroup/cpu", "cpu.cfs_quota_us"), ("/sys/fs/cgroup", "cpu.max")];
        Self::new(&files, microseconds).or_else(|| skipped("CPU time"))
    }

    /// A group whose tasks can be frozen.
    pub fn to_freeze() -> Option<Self> {
        let group = Self::new(&[("/sys/fs/cgroup", "cgroup.freeze")], 0);
        group
            .or_else(|| Self::made("/sys/fs/cgroup/freezer", "freezer.state"))
            .or_else(|| skipped("running time"))
    }

    /// Freezes or thaws the group, by the file of either version. Returns whether that worked.
    pub fn freeze(&self, frozen: bool) -> bool {
        let files = [("cgroup.freeze", ["0", "1"]), ("freezer.state", ["THAWED", "FROZEN"])];
        let mut known = files.iter().filter(|(file, _)| self.0.join(file).exists());
        known.any(|(file, words)| std::fs::write(self.0.join(file), words[usize::from(frozen)]).is_ok())
    }

    fn new(files: &[(&str, &str)], limit: u64) -> Option<Self> {
        files.iter().find_map(|(mount, file)| {
            let group = Self::made(mount, file)?;
            group.limit(file, limit).then_some(group)
        })
    }

    /// A new group below this mount, if it has this control file. A plain directory would accept a file of any name.
    fn made(mount: &str, file: &str) -> Option<Self> {
        static MADE: AtomicU32 = AtomicU32::new(0);
        let name = format!("syscost-test-{}-{}", std::process::id(), MADE.fetch_add(1, Relaxed));
        let group = Path::new(mount).join(name);
        std::fs::create_dir(&group).ok()?;
        let group = Self(group);
        group.0.join(file).exists().then_some(group)
    }

    /// Sets another limit.
    pub fn limit(&self, file: &str, limit: u64) -> bool {
        std::fs::write(self.0.join(file), limit.to_string()).is_ok()
    }

    /// The words of a command that enters the group and then executes the words behind them.
    pub fn enter(&self) -> [String; 4] {
        let script = format!("echo $$ >{}/cgroup.procs && exec \"$@\"", self.0.display());
        ["sh".into(), "-c".into(), script, "sh".into()]
    }

    /// The number of processes of the group that were killed for want of memory, by the file of either version.
    pub fn killed(&self) -> u64 {
        let files = ["memory.events", "memory.oom_control"];
        let text = files.into_iter().find_map(|name| std::fs::read_to_string(self.0.join(name)).ok());
        let text = text.unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix("oom_kill "));
        line.map_or(0, |count| count.parse().unwrap())
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir(&self.0);
    }
}

fn skipped<T>(what: &str) -> Option<T> {
    print_skipped(&format!("no control group with a limit of {what} may be made here"));
    None
}

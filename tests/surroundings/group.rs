//! A control group of the tests' own, of either version.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// A control group with a limit. It is gone with this value.
pub struct Group(PathBuf);

impl Group {
    /// With a limit of memory, bytes.
    pub fn of_memory(bytes: u64) -> Option<Self> {
        let files = [("/sys/fs/cgroup/memory", "memory.limit_in_bytes"), ("/sys/fs/cgroup", "memory.max")];
        Self::new(&files, bytes).or_else(|| skipped("memory"))
    }

    /// With a limit of tasks.
    pub fn of_tasks(tasks: u64) -> Option<Self> {
        let files = [("/sys/fs/cgroup/pids", "pids.max"), ("/sys/fs/cgroup", "pids.max")];
        Self::new(&files, tasks).or_else(|| skipped("tasks"))
    }

    fn new(files: &[(&str, &str)], limit: u64) -> Option<Self> {
        static MADE: AtomicU32 = AtomicU32::new(0);
        let name = format!("syscost-test-{}-{}", std::process::id(), MADE.fetch_add(1, Relaxed));
        files.iter().find_map(|(mount, file)| {
            let group = Path::new(mount).join(&name);
            std::fs::create_dir(&group).ok()?;
            let group = Self(group);
            // Asked before it is written: a plain directory would take a file of any name.
            let is_limited = group.0.join(file).exists() && group.limit(file, limit);
            is_limited.then_some(group)
        })
    }

    /// Sets another limit.
    pub fn limit(&self, file: &str, limit: u64) -> bool {
        std::fs::write(self.0.join(file), limit.to_string()).is_ok()
    }

    /// What enters it and goes on as what follows.
    pub fn enter(&self) -> [String; 4] {
        let script = format!("echo $$ >{}/cgroup.procs && exec \"$@\"", self.0.display());
        ["sh".into(), "-c".into(), script, "sh".into()]
    }

    /// How many of its processes were killed for want of memory, by either version's file.
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
    println!("skipped: no control group with a limit of {what} may be made here");
    None
}

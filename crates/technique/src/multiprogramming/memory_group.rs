//! A control group that limits the memory of several jobs and goes with the process that made it.

use std::fs;
use std::path::Path;
use std::time::Duration;
use syscost_platform::cleanup::CleanupProcess;
use syscost_platform::control_group::memory_cgroup::MemoryCgroup;
use syscost_platform::error::{Error, Result};

/// Between two tries to remove a group that still has tasks, and how many: those that were killed take a moment.
const AGAIN: (Duration, u32) = (Duration::from_millis(10), 1000);

/// A group with a limit. It is removed with this value, or when its process ends, even if it is killed.
#[derive(Debug)]
pub struct MemoryGroup {
    group: MemoryCgroup,
    _cleanup: CleanupProcess,
}

impl MemoryGroup {
    /// Makes one below the group of this process, or below one above it.
    ///
    /// # Errors
    /// [`Error::Missing`] where there is no memory controller, or no group may be made.
    pub fn with_limit(bytes: u64) -> Result<Self> {
        let group = MemoryCgroup::with_limit(bytes).map_err(|why| {
            Error::Missing(format!(
                "a memory control group is needed: {why}; run as root, or in a group that was delegated (`systemd-run \
                 --user --scope -p Delegate=yes`)"
            ))
        })?;
        let directory = group.directory().to_owned();
        let cleanup = CleanupProcess::start(move || remove_group(&directory));
        let cleanup = cleanup.inspect_err(|_| remove_group(group.directory()))?;
        // Jobs are to be paged, not swapped.
        group.forbid_swap();
        Ok(Self { group, _cleanup: cleanup })
    }

    /// Moves a process in, with its threads. Memory that it has touched before stays charged to its former group.
    ///
    /// # Errors
    /// [`Error::File`] where the kernel refuses.
    pub fn add_process(&self, pid: i32) -> Result<()> {
        self.group.add_process(pid)
    }

    /// Sets another limit. The kernel takes the pages away that are beyond it.
    ///
    /// # Errors
    /// [`Error::File`] where the kernel refuses, as for a limit below what it cannot take away.
    pub fn set_limit(&mut self, bytes: u64) -> Result<()> {
        self.group.set_limit(bytes)
    }

    /// Its directory.
    #[cfg(test)]
    pub(super) fn directory(&self) -> &Path {
        self.group.directory()
    }
}

fn remove_group(directory: &Path) {
    for _ in 0..AGAIN.1 {
        match fs::remove_dir(directory) {
            Err(error) if error.raw_os_error() == Some(libc::EBUSY) => std::thread::sleep(AGAIN.0),
            _ => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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

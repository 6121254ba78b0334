//! Too little memory: rings that are too large are skipped with a sentence, smaller ones are measured, and nobody is
//! killed.

use crate::place::{Ended, Place};
use std::path::{Path, PathBuf};
use std::process::Command;

/// A ring that always fits, and one of main memory.
const RINGS: &str = "^chase/random/(16KiB|256MiB)$";

/// What default scale says of them, as smoke scale would decline the large one whatever the limit.
fn measured(place: &Place, starter: &[&str]) -> Option<Ended> {
    let run = || -> Command {
        let mut command = place.run_by(starter, &[RINGS]);
        command.env("SYSCOST_SCALE", "default");
        command
    };
    place.succeeds(run)
}

#[test]
fn a_limit_of_the_address_space_shrinks_the_rings() {
    let place = Place::new();
    let limited = "ulimit -v 450000 && exec \"$@\"";
    let Some(ended) = measured(&place, &["sh", "-c", limited, "sh"]) else { return };
    ended.says(0, &["1 measured, 1 skipped", "RLIMIT_AS leaves", "half of them for everybody else"]);
    place.is_tidy();
}

#[test]
fn a_limit_of_the_control_group_shrinks_the_rings_and_nobody_is_killed() {
    let Some(group) = Group::of(256 << 20) else {
        println!("skipped: no control group with a limit of memory may be made here");
        return;
    };
    let place = Place::new();
    let enter = format!("echo $$ >{}/cgroup.procs && exec \"$@\"", group.0.display());
    let Some(ended) = measured(&place, &["sh", "-c", &enter, "sh"]) else { return };
    ended.says(0, &["1 measured, 1 skipped", "the control group", "left of its 256"]);
    assert_eq!(group.killed(), 0, "{ended:?}");
    place.is_tidy();
}

/// A control group that limits memory. It is gone with this value.
struct Group(PathBuf);

impl Group {
    fn of(bytes: u64) -> Option<Self> {
        let name = format!("syscost-memory-{}", std::process::id());
        let kinds = [("/sys/fs/cgroup/memory", "memory.limit_in_bytes"), ("/sys/fs/cgroup", "memory.max")];
        kinds.into_iter().find_map(|(mount, limit)| {
            let group = Path::new(mount).join(&name);
            std::fs::create_dir(&group).ok()?;
            let group = Self(group);
            // Asked before it is written: a plain directory would take a file of any name.
            let is_limited = group.0.join(limit).exists()
                && std::fs::write(group.0.join(limit), bytes.to_string()).is_ok();
            is_limited.then_some(group)
        })
    }

    /// How many of its processes were killed for want of memory, by either version's file.
    fn killed(&self) -> u64 {
        let text =
            ["memory.events", "memory.oom_control"].map(|name| std::fs::read_to_string(self.0.join(name)));
        let text = text.into_iter().find_map(Result::ok).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix("oom_kill "));
        line.map_or(0, |count| count.parse().unwrap())
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir(&self.0);
    }
}

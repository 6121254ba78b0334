//! Too little memory, or too few addresses: a case that does not fit is skipped with a sentence, and nothing is killed.

use crate::place::Place;
use std::path::PathBuf;

/// What maps and touches most.
const MAPPED: &str =
    "^(mapping/(map/1GiB|.*/(16|64)MiB)|page_fault/(anonymous|cached-seq|major-random/first))";

#[test]
fn addresses_that_are_limited_skip_what_does_not_fit() {
    let place = Place::new();
    let Some(ended) = place.at_rest(|| place.run_under("-v 600000", &[MAPPED])) else { return };
    ended.says(0, &[" 0 failed", "skipped mapping/map/1GiB", "RLIMIT_AS, `ulimit -v`"]);
    place.is_tidy();
}

/// A control group with a limit of memory. It is gone with this value.
struct Group(PathBuf);

impl Group {
    fn new(bytes: u64) -> Option<Self> {
        let name = format!("syscost-memory-{}", std::process::id());
        let ways = [("/sys/fs/cgroup/memory", "memory.limit_in_bytes"), ("/sys/fs/cgroup", "memory.max")];
        let made = ways.iter().find_map(|(mount, file)| {
            let group = std::path::Path::new(mount).join(&name);
            std::fs::create_dir(&group).ok()?;
            let limited = std::fs::write(group.join(file), bytes.to_string());
            if limited.is_err() {
                let _ = std::fs::remove_dir(&group);
            }
            limited.ok().map(|()| group)
        });
        made.map(Self)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir(&self.0);
    }
}

#[test]
fn a_small_control_group_kills_nobody() {
    for mib in [256, 96] {
        let Some(group) = Group::new(mib << 20) else {
            println!("skipped: no control group with a limit of memory may be made here");
            return;
        };
        let place = Place::new();
        let enter = format!("echo $$ >{}/cgroup.procs && exec \"$@\"", group.0.display());
        let Some(ended) = place.at_rest(|| place.run_by(&["sh", "-c", &enter, "sh"], &[MAPPED])) else {
            return;
        };
        ended.says(0, &[" 0 failed"]);
        if mib < 128 {
            ended.says(0, &["skipped mapping/first-touch/64MiB", "raise its limit"]);
        }
        place.is_tidy();
    }
}

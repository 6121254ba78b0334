//! # What is timed
//! The start of a container, as a runtime does it. `start`: a process enters new namespaces for users, mounts, processes, the
//! network, IPC and the host's name; maps its user; makes the first process, which makes a directory its root (`pivot_root`),
//! installs a filter of system calls of 16 instructions, and executes a program of 129 bytes, which exits; until that process is reaped.
//! The other cases are the steps of it, in this order: `namespaces`, `user-map`, `first-process`, `root`, `filter`, `exec`.
//! `cgroup-move`: a process moves itself into a control group.
//!
//! # What is not
//! The process that does all this, a child for each iteration; the directory and the program; making the control group. No
//! file system is made, no network device, no limit, and no `/proc` is mounted, which real runtimes do, too.
//!
//! # How we know
//! After each start the links of /proc/self/ns must have changed, the first process must have been answered the number 1, there
//! must be no `/proc` in its root, the filter must have answered a call that does not exist, and the program must have ended with code 0. A
//! step that is left out is none of these. The group's file names the process that has moved.
//!
//! # What fools it
//! The kernel takes namespaces apart later, in its own threads: that costs CPU time after the end of the case, and a start waits
//! for the lock of the network namespaces while others are taken apart. `first-process` contains a fork, whose cost grows with
//! the parent's memory. A case that may not make user namespaces is skipped: as in most containers, and where
//! `kernel.apparmor_restrict_unprivileged_userns` is 1.
//!
//! # Reading the number
//! The steps add up to `start`. What a runtime takes above it is its own: it reads files, parses, and starts helpers.
//!
//! # Source
//! The OCI runtime specification; runc and crun; unshare(2), user_namespaces(7), pivot_root(2), cgroups(7).

pub(super) mod start_step;

use crate::case::{Case, Group, OwnTasks};
use crate::kit::operation_table::table_cases;

pub const GROUP: Group = Group::new("container", include_str!("container.rs"), cases);

fn cases() -> Vec<Case> {
    // The kernel takes namespaces apart in its own threads, on any CPU.
    table_cases(start_step::ROWS, &["start"])
        .into_iter()
        .map(|case| case.own_tasks(OwnTasks::Elsewhere))
        .collect()
}

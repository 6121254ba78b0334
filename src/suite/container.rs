//! # What is timed
//! The start of a container, as a runtime does it. `start`: a process enters new namespaces for users, mounts, processes, the
//! network, IPC and the host's name; maps its user; makes the first process, which makes a directory its root (`pivot_root`),
//! installs a filter of system calls of 16 instructions, and executes a program of 129 bytes, which exits. The time ends when that
//! process is reaped. The other cases are the steps of `start`, in this order: `namespaces`, `user-map`, `first-process`, `root`,
//! `filter`, `exec`.
//! `cgroup-move`: a process moves itself into a control group.
//!
//! # What is not
//! The process that does all this, a child for each iteration; the directory and the program; making the control group. Real
//! runtimes also make file systems and network devices, set limits and mount `/proc`; none of this is done here.
//!
//! # How we know
//! After each start the links of /proc/self/ns must have changed, the first process must have the process id 1, there
//! must be no `/proc` in its root, the filter must have answered a call that does not exist, and the program must have ended
//! with code 0. If a step is left out, one of these checks fails. The file of the control group must name the moved process.
//!
//! # What fools it
//! The kernel takes namespaces apart later, in its own threads: that costs CPU time after the end of the case, and a start waits
//! for the lock of the network namespaces while others are taken apart. `first-process` contains a fork, whose cost grows with
//! the parent's memory. A case is skipped where it may not make user namespaces: in most containers, and where
//! `kernel.apparmor_restrict_unprivileged_userns` is 1.
//!
//! # Reading the number
//! The steps add up to `start`. The time that a runtime takes beyond that is its own: it reads files, parses, and starts helpers.
//!
//! # Source
//! The OCI runtime specification; runc and crun; unshare(2), user_namespaces(7), pivot_root(2), cgroups(7).

use crate::kit::contract::*;
use crate::kit::kernel_call::{check_granted, errno_of};
use crate::kit::operation_table::{Omit, Proof, Row, each_in_child, operation_rows, table_cases};
use crate::kit::smallest_program::write_runnable_elf;
use crate::kit::task;
use crate::platform::control_group::own_group::OwnGroup;
use crate::platform::control_group::own_groups;
use crate::platform::kernel_files::KernelFiles;
use crate::platform::mount::filesystem_type;
use crate::platform::process::die_with_parent;
use crate::platform::seccomp::{self, MARK, NUMBER};
use crate::platform::shared::Words;
use crate::platform::syscall::RawCall;
use nix::errno::Errno;
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sched::{CloneFlags, unshare};
use nix::unistd::{Gid, Pid, Uid, chdir, execve, pivot_root};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering::SeqCst;

pub const GROUP: Group = Group::new("container", include_str!("container.rs"), cases);

fn cases() -> Vec<Case> {
    // The kernel takes namespaces apart in its own threads, on any CPU.
    table_cases(ROWS, &["start"]).into_iter().map(|case| case.own_tasks(OwnTasks::Elsewhere)).collect()
}

const STARTED: Proof = Proof::Each(
    "the namespaces are others, the first process had the number 1 and another root, its filter answered, and its program \
     ended with code 0",
);

/// The steps, by the index of the time at which they begin.
const NAMESPACES: usize = 0;
const USER_MAP: usize = 1;
const FIRST_PROCESS: usize = 2;
const ROOT: usize = 3;
const FILTER: usize = 4;
/// After the filter the process checks that it is confined, in 2 µs that belong to no step.
const CHECK: usize = 5;
const EXEC: usize = 6;
const END: usize = 7;
/// Words of the shared page after those of the times: the error number of a refusal, and whether no program was executed.
const REFUSED: usize = 20;
const NOT_EXECUTED: usize = 21;

pub(super) const ROWS: &[Row] = operation_rows! {
    "start", "a container started, from its namespaces to the end of its program", STARTED, 200_000.0, 1_500_000.0, "the sum of its steps", |place, omit| steps(place, NAMESPACES, END, omit);
    "namespaces", "six new namespaces entered (unshare)", STARTED, 50_000.0, 500_000.0, "mounts copied, a network with its tables made", |place, omit| steps(place, NAMESPACES, USER_MAP, omit);
    "user-map", "the user mapped to root in the namespace, by three files", STARTED, 10_000.0, 60_000.0, "three files opened, written and closed", |place, omit| steps(place, USER_MAP, FIRST_PROCESS, omit);
    "first-process", "the first process of the namespace made, until it runs", STARTED, 30_000.0, 150_000.0, "a fork with a new number, a switch", |place, omit| steps(place, FIRST_PROCESS, ROOT, omit);
    "root", "a directory made the root (mount, pivot_root, umount)", STARTED, 30_000.0, 200_000.0, "four calls that change the tree of mounts, under its lock", |place, omit| steps(place, ROOT, FILTER, omit);
    "filter", "a filter of system calls installed", STARTED, 10_000.0, 60_000.0, "the program checked, compiled, and asked about each number", |place, omit| steps(place, FILTER, CHECK, omit);
    "exec", "the smallest program executed, until its process is reaped", STARTED, 30_000.0, 400_000.0, "memory replaced, a process and a namespace ended, a switch", |place, omit| steps(place, EXEC, END, omit);
    "cgroup-move", "a process moved into a control group", Proof::Each("the file of the group named the process"), 10_000.0, 60_000.0, "a file opened and written, a lock that waits for all CPUs", move_to_group;
};

/// Times from the beginning of step `from` to the beginning of step `to`. A liar leaves out step `from`.
fn steps(place: &Place, from: usize, to: usize, omit: Omit) -> Result<Box<dyn Subject>> {
    let left_out = (omit == Omit::Operation).then_some(from);
    check_all_named(&namespaces())?;
    check_root_can_be_replaced(&KernelFiles::live())?;
    let root = place.scratch.join("container-root");
    std::fs::create_dir_all(&root).map_err(|e| Error::file(&root, "making", e))?;
    write_runnable_elf(&root)?;
    each_in_child(move |clock| {
        let start = Start { times: Words::new()?, clock, left_out };
        start.run(&root)?;
        Ok(Ticks(start.time(to).wrapping_sub(start.time(from))))
    })
}

/// The start of a container while it is in progress.
struct Start<'a> {
    times: Words,
    clock: &'a Clock,
    left_out: Option<usize>,
}

impl Start<'_> {
    /// Stores the time as the beginning of this step.
    fn note(&self, step: usize) {
        let Ticks(now) = self.clock.stop();
        self.times[2 * step].value.store(now as u32, SeqCst);
        self.times[2 * step + 1].value.store((now >> 32) as u32, SeqCst);
    }

    /// The time at which this step began, ticks.
    fn time(&self, step: usize) -> u64 {
        let [low, high] = [2 * step, 2 * step + 1].map(|at| u64::from(self.times[at].value.load(SeqCst)));
        low | high << 32
    }

    /// Stores the time, and does the step unless it is left out.
    fn step(&self, step: usize, operate: impl FnOnce() -> nix::Result<()>) -> nix::Result<()> {
        self.note(step);
        if self.left_out == Some(step) { Ok(()) } else { operate() }
    }

    /// Runs all steps, and verifies that the namespaces are new and that the program ran.
    fn run(&self, root: &Path) -> Result<()> {
        let refused = |call: &'static str| move |errno| Error::from_case_errno(call, errno);
        let (user, group, before) = (Uid::effective(), Gid::effective(), namespaces());
        self.step(NAMESPACES, || unshare(all_namespaces())).map_err(namespace_refusal)?;
        let mut status = -1;
        // Without namespaces of its own the process must not do what follows.
        if self.left_out != Some(NAMESPACES) {
            status = self.run_in_namespaces(root, (user, group))?;
        }
        self.note(END);
        let [refused_by, not_executed] = [REFUSED, NOT_EXECUTED].map(|at| self.times[at].value.load(SeqCst));
        if refused_by != 0 {
            return Err(refused("mount, pivot_root, seccomp or execve")(Errno::from_raw(refused_by as i32)));
        }
        let shared = before.iter().zip(namespaces()).filter(|(before, now)| *before == now).count();
        if not_executed == 0 && status == 0 && shared == 0 && Uid::effective().as_raw() == 0 {
            return Ok(());
        }
        Err(Error::Disproved(format!(
            "{shared} namespaces are as before, the user is {}, and the first process ended with status {status}{}",
            Uid::effective(),
            if not_executed == 0 { "" } else { " without a program: it was not alone, or not confined" }
        )))
    }

    /// Maps the user and runs the first process. Returns the status with which that process ended.
    fn run_in_namespaces(&self, root: &Path, (user, group): (Uid, Gid)) -> Result<i32> {
        let map_user = || {
            write("/proc/self/setgroups", "deny")?;
            write("/proc/self/uid_map", &format!("0 {user} 1"))?;
            write("/proc/self/gid_map", &format!("0 {group} 1"))
        };
        self.step(USER_MAP, map_user)
            .map_err(|errno| Error::from_case_errno("writing /proc/self/uid_map", errno))?;
        self.note(FIRST_PROCESS);
        let mut status = -1;
        if self.left_out != Some(FIRST_PROCESS) {
            let first = task::fork_do_exit(|| {
                // This is written only if no program was executed.
                let refused = self.run_first_process(root).err().map_or(0, |errno| errno as u32);
                self.times[REFUSED].value.store(refused, SeqCst);
                self.times[NOT_EXECUTED].value.store(1, SeqCst);
            });
            task::check_created("fork", first)?;
            check_granted("waitpid", task::reap(first as i32, &mut status))?;
        }
        Ok(status)
    }

    /// Does the steps of the first process. It executes the program only if it is confined.
    fn run_first_process(&self, root: &Path) -> nix::Result<()> {
        let _ = die_with_parent();
        let none = None::<&str>;
        self.step(ROOT, || {
            mount(none, "/", none, MsFlags::MS_REC | MsFlags::MS_PRIVATE, none)?;
            mount(Some(root), root, none, MsFlags::MS_BIND, none)?;
            chdir(root)?;
            pivot_root(".", ".")?;
            umount2(".", MntFlags::MNT_DETACH)
        })?;
        let filter = seccomp::marked_filter(16, NUMBER);
        self.step(FILTER, || seccomp::install(&filter).map_err(|_| Errno::EPERM))?;
        self.note(CHECK);
        let answered = RawCall::nonexistent_call().repeat(1).lowest == -MARK;
        let is_confined = Pid::this().as_raw() == 1 && !Path::new("/proc").exists() && answered;
        if !is_confined {
            return Ok(());
        }
        self.step(EXEC, || {
            execve(c"/exit-0", &[c"/exit-0"], &[] as &[&std::ffi::CStr]).map(|never| match never {})
        })
    }
}

fn all_namespaces() -> CloneFlags {
    CloneFlags::CLONE_NEWUSER
        | CloneFlags::CLONE_NEWNS
        | CloneFlags::CLONE_NEWPID
        | CloneFlags::CLONE_NEWNET
        | CloneFlags::CLONE_NEWIPC
        | CloneFlags::CLONE_NEWUTS
}

/// The error of a refused unshare(2). ENOSPC means that a limit is reached, which may be 0 (namespaces(7)).
fn namespace_refusal(errno: Errno) -> Error {
    match errno {
        Errno::ENOSPC => {
            Error::Missing("/proc/sys/user/max_*_namespaces allow no more namespaces: raise them".into())
        }
        _ => Error::from_case_errno("unshare", errno),
    }
}

/// Checks that /proc names every namespace: users are mapped by its files, and a namespace without a name is unknown here.
fn check_all_named(namespaces: &[Option<PathBuf>]) -> Result<()> {
    ensure(namespaces.iter().all(Option::is_some), || {
        Error::Missing(
            "/proc/self/ns does not name all six namespaces: mount /proc, or take a kernel that has them"
                .into(),
        )
    })
}

/// Checks that the root is not the kernel's first one, which holds an initramfs: `pivot_root` returns EINVAL there (pivot_root(2)).
fn check_root_can_be_replaced(files: &KernelFiles) -> Result<()> {
    let mounts = files.read_text("proc/self/mountinfo").unwrap_or_default();
    match filesystem_type(&mounts, Path::new("/")) {
        Some("rootfs") => Err(Error::Missing(
            "the root is the kernel's first one (rootfs), as in an initramfs, and cannot be replaced: start the system from a disk"
                .into(),
        )),
        _ => Ok(()),
    }
}

/// The namespaces of this process; for process ids, the namespace of its children. `None` for one that /proc does not name.
fn namespaces() -> [Option<PathBuf>; 6] {
    ["user", "mnt", "pid_for_children", "net", "ipc", "uts"]
        .map(|name| std::fs::read_link(format!("/proc/self/ns/{name}")).ok())
}

fn write(path: impl AsRef<Path>, text: &str) -> nix::Result<()> {
    std::fs::write(path, text).map_err(errno_of)
}

/// Times the move of a child into a control group that it makes below its own. The child then moves back.
fn move_to_group(_: &Place, omit: Omit) -> Result<Box<dyn Subject>> {
    each_in_child(move |clock| {
        let own = own_groups(&KernelFiles::live(), "pids").pop();
        let own = own.ok_or_else(|| Error::Missing("no control groups are mounted: mount cgroup2".into()))?;
        let above = own.directory();
        let below = OwnGroup::create_in(Path::new(&above))
            .map_err(|e| Error::Missing(format!("no control group can be made: {e}")))?;
        let (file, pid) = (below.directory().join("cgroup.procs"), Pid::this().to_string());
        let mut moved = Ok(());
        let ticks = clock.time(|| {
            if omit == Omit::Nothing {
                moved = write(&file, &pid);
            }
        });
        let names_it = std::fs::read_to_string(&file).is_ok_and(|text| text.lines().any(|line| line == pid));
        let back = write(format!("{above}/cgroup.procs"), &pid)
            .and_then(|()| std::fs::remove_dir(below.directory()).map_err(errno_of));
        moved.and(back).map_err(|e| Error::from_case_errno("moving to a control group", e))?;
        if names_it { Ok(ticks) } else { Err(Error::Disproved("the group does not name the process".into())) }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::platform::kernel_files::fixture::Machine;

    #[test]
    fn a_machine_without_proc_or_a_free_namespace_skips_a_start() {
        let mut names = namespaces();
        names[3] = None;
        assert!(check_all_named(&names).expect_err("one is missing").is_machine_limitation());
        assert!(namespace_refusal(Errno::ENOSPC).is_machine_limitation());
    }

    #[test]
    fn the_root_of_an_initramfs_is_not_replaced() {
        let check = |kind: &str| {
            let mounts = format!("1 1 0:2 / / rw - {kind} {kind} rw\n20 1 0:20 / /proc rw - proc proc rw\n");
            check_root_can_be_replaced(&Machine::with_files(&[("proc/self/mountinfo", &mounts)]).files)
        };
        assert!(check("rootfs").is_err_and(|error| error.is_machine_limitation()));
        check("ext4").expect("a root that can be replaced");
    }
}

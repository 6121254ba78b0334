//! The limits on the number of tasks, on memory and on CPU time, in sentences that say what to do.

use super::control_group::{Group, Version, own_groups_and_ancestors};
use super::kernel_files::{KernelFiles, meminfo_bytes};
use crate::error::Error;
use nix::errno::Errno;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::unistd::geteuid;
use std::time::Duration;

/// Controllers of control groups.
const TASKS: &str = "pids";
const MEMORY: &str = "memory";

/// The files that hold the limit of a controller and its use.
fn limit_files(controller: &str, version: Version) -> [&'static str; 2] {
    match (controller, version) {
        (MEMORY, Version::One) => ["memory.limit_in_bytes", "memory.usage_in_bytes"],
        (MEMORY, Version::Two) => ["memory.max", "memory.current"],
        _ => ["pids.max", "pids.current"],
    }
}

/// Lines of `memory.stat` that count memory that the kernel frees before it refuses more: page cache that no process holds on
/// to, and objects of the kernel's own caches. In version 1 they begin with `total_`, as `usage_in_bytes` counts lower groups too.
const RECLAIMABLE: [&str; 3] = ["inactive_file", "active_file", "slab_reclaimable"];
/// Lines, in version 1 and 2, that count the part that must be written to a device first, which may take longer than a case.
const UNWRITTEN: [[&str; 2]; 2] = [["dirty", "writeback"], ["file_dirty", "file_writeback"]];

/// A control group that has a limit.
struct Limited {
    group: String,
    most: u64,
    now: u64,
}

impl Limited {
    fn remaining(&self) -> u64 {
        self.most.saturating_sub(self.now)
    }
}

/// A sentence for a task that was refused with `EAGAIN`. Several limits give this error, so the sentence names all that are in
/// force.
pub fn refused_task_message(doing: &str, cause: std::io::Error) -> String {
    format!("{doing}: {cause}; {}", task_limits_message())
}

/// A sentence on the limits on tasks that are in force for this thread.
pub fn task_limits_message() -> String {
    if let Some(sentence) = deadline_class_message() {
        return sentence;
    }
    let group = tightest_group_limit(&KernelFiles::live(), TASKS).map(|limited| {
        let Limited { group, most, now } = limited;
        format!("the control group {group} may have {most} tasks and has {now} (pids.max): raise it")
    });
    let mut sentences = Vec::from_iter(group);
    match getrlimit(Resource::RLIMIT_NPROC) {
        Ok((limit, _)) if limit != libc::RLIM_INFINITY && !is_exempt_from_task_limit() => {
            sentences.push(format!("this user may have {limit} tasks (RLIMIT_NPROC, `ulimit -u`)"));
        }
        _ => {}
    }
    if sentences.is_empty() {
        return "no limit of the user or of the control group is in force: look at kernel.threads-max and kernel.pid_max".into();
    }
    sentences.join("; ")
}

/// Whether the kernel exempts this user from the limit on tasks, as it does root outside of user namespaces.
fn is_exempt_from_task_limit() -> bool {
    let map = KernelFiles::live().read_text("proc/self/uid_map").unwrap_or_default();
    geteuid().is_root() && map.split_whitespace().eq(["0", "0", "4294967295"])
}

/// A sentence if this thread is of the deadline class, which may start no other (sched(7)) and is refused as by a limit.
fn deadline_class_message() -> Option<String> {
    const DEADLINE: &str = "6";
    let stat = KernelFiles::live().read_text("proc/thread-self/stat")?;
    // The 41st field, and so the 39th behind the name, is the class (proc_pid_stat(5)).
    let class = stat.rsplit_once(')')?.1.split_whitespace().nth(38)?;
    (class == DEADLINE).then(|| {
        "this thread is of the deadline class, which may start no other: run it without `chrt -d`".into()
    })
}

/// The error for a timer that was refused: `EAGAIN` means that the user has as many timers and queued signals as are allowed.
pub fn timer_error(call: &str, errno: Errno) -> Error {
    match getrlimit(Resource::RLIMIT_SIGPENDING) {
        Ok((limit, _)) if errno == Errno::EAGAIN => Error::Missing(format!(
            "{call}: this user may have {limit} timers and queued signals (RLIMIT_SIGPENDING): raise it (`ulimit -i`)"
        )),
        _ => Error::from_case_errno(call, errno),
    }
}

/// A sentence for a mapping of `bytes` that was refused with `ENOMEM`.
pub fn refused_mapping_message(bytes: u64, cause: std::io::Error) -> String {
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

/// Checks that `bytes` more of memory can be allocated.
///
/// # Errors
/// Why they cannot, as a sentence.
pub fn check_memory(bytes: u64) -> Result<(), String> {
    check_memory_bounds(&KernelFiles::live(), bytes, "")
}

/// Checks that `bytes` are at most half of the memory that is left, so that the other half remains for other
/// processes.
///
/// # Errors
/// Why they are not, as a sentence.
pub fn check_half_of_memory(bytes: u64) -> Result<(), String> {
    check_memory_bounds(&KernelFiles::live(), 2 * bytes, ", half of them for everybody else,")
}

/// Bytes that can still be allocated, and a sentence that says what limits them and what to do.
struct Bound {
    left: u64,
    sentence: String,
}

fn check_memory_bounds(files: &KernelFiles, bytes: u64, insertion: &str) -> Result<(), String> {
    let bounds =
        [available_memory_bound(files), cgroup_memory_bound(files, bytes), address_space_bound(files, bytes)];
    match bounds.into_iter().flatten().min_by_key(|bound| bound.left) {
        Some(Bound { left, sentence }) if left < bytes => {
            Err(format!("{} MiB of memory are needed{insertion} and {sentence}", mib(bytes)))
        }
        _ => Ok(()),
    }
}

fn mib(bytes: u64) -> u64 {
    bytes >> 20
}

fn available_memory_bound(files: &KernelFiles) -> Option<Bound> {
    let left = meminfo_bytes(&files.read_text("proc/meminfo")?, "MemAvailable")?;
    Some(Bound { left, sentence: format!("{} are available: free some", mib(left)) })
}

/// A text with what is left of a limit, MiB, or with the whole limit if that is smaller than `wanted`. The whole limit
/// does not change from case to case, so cases skipped for this reason share one line.
fn remaining_text(left: u64, most: u64, wanted: u64) -> String {
    if most < wanted {
        format!("{} in all", mib(most))
    } else {
        format!("{} left of its {}", mib(left), mib(most))
    }
}

fn cgroup_memory_bound(files: &KernelFiles, wanted: u64) -> Option<Bound> {
    let limited = tightest_group_limit(files, MEMORY)?;
    let has = remaining_text(limited.remaining(), limited.most, wanted);
    let sentence = format!("the control group {} has {has}: raise its limit", limited.group);
    Some(Bound { left: limited.remaining(), sentence })
}

/// The bytes that this process may still map. The first number of `statm` is the mapped size, pages (proc_pid_statm(5)).
fn address_space_bound(files: &KernelFiles, wanted: u64) -> Option<Bound> {
    let (limit, _) =
        getrlimit(Resource::RLIMIT_AS).ok().filter(|(limit, _)| *limit != libc::RLIM_INFINITY)?;
    let pages: u64 = files.read_text("proc/self/statm")?.split(' ').next()?.parse().ok()?;
    let left = limit.saturating_sub(pages * super::process::page_size());
    let sentence = format!("RLIMIT_AS has {}: raise it (`ulimit -v`)", remaining_text(left, limit, wanted));
    Some(Bound { left, sentence })
}

/// The memory limit, bytes, of the group that is nearest to its limit among that of this process and those above it.
pub fn cgroup_memory_limit() -> Option<u64> {
    tightest_group_limit(&KernelFiles::live(), MEMORY).map(|limited| limited.most)
}

/// The bytes that are left in the group of [`cgroup_memory_limit`]; `None` without a limit.
pub fn cgroup_memory_left(files: &KernelFiles) -> Option<u64> {
    tightest_group_limit(files, MEMORY).map(|limited| limited.remaining())
}

/// Seconds of CPU time that each process of ours may use; `None` without a limit.
pub fn cpu_time_limit_seconds() -> Option<u64> {
    let (soft, hard) = getrlimit(Resource::RLIMIT_CPU).ok()?;
    // A limit that `lower_soft_cpu_limit` has lowered counts with its former value.
    let limit = if soft.checked_add(1) == Some(hard) { hard } else { soft };
    (limit != libc::RLIM_INFINITY).then_some(limit)
}

/// Lowers the soft limit of CPU time to a second below the hard one, so that SIGXCPU comes before SIGKILL. `ulimit
/// -t` sets both limits to one value, which leaves no time for a warning.
pub fn lower_soft_cpu_limit() {
    if let Ok((soft, hard)) = getrlimit(Resource::RLIMIT_CPU) {
        if hard != libc::RLIM_INFINITY && soft >= hard && hard > 1 {
            // A lower limit needs no privilege.
            let _ = setrlimit(Resource::RLIMIT_CPU, hard - 1, hard);
        }
    }
}

/// Undoes [`lower_soft_cpu_limit`] in a measuring process, which inherits the lowered limit and has no results to
/// save.
pub fn restore_soft_cpu_limit() {
    if let Ok((soft, hard)) = getrlimit(Resource::RLIMIT_CPU) {
        if soft != libc::RLIM_INFINITY && soft.checked_add(1) == Some(hard) {
            let _ = setrlimit(Resource::RLIMIT_CPU, hard, hard);
        }
    }
}

/// A sentence for a process that this signal ended, if it came from the limit of CPU time. `used` is the process's CPU time.
pub fn cpu_limit_message(signal: Option<i32>, used: Duration) -> Option<String> {
    let (limit, (_, hard)) = (cpu_time_limit_seconds()?, getrlimit(Resource::RLIMIT_CPU).ok()?);
    let is_over = match signal? {
        libc::SIGXCPU => true,
        // A tolerance of 0.1 s: the kernel checks the limit at each tick, and counts a child's time in ticks.
        libc::SIGKILL => hard != libc::RLIM_INFINITY && used.as_secs_f64() > hard as f64 - 0.1,
        _ => false,
    };
    is_over.then(|| {
        format!("the measuring process had used up its {limit} s of CPU time (RLIMIT_CPU): raise the limit (`ulimit -t`)")
    })
}

/// The group that is nearest to its limit, among that of this process and those above it.
fn tightest_group_limit(files: &KernelFiles, controller: &str) -> Option<Limited> {
    let groups = own_groups_and_ancestors(files, controller);
    groups.filter_map(|group| read_group_limit(files, controller, &group)).min_by_key(Limited::remaining)
}

fn read_group_limit(files: &KernelFiles, controller: &str, group: &Group) -> Option<Limited> {
    let [limit, usage] = limit_files(controller, group.version);
    let number = |name: &str| files.read_number::<u64>(&format!("{}/{name}", group.directory()));
    let freed = if controller == MEMORY { reclaimable_bytes(files, group) } else { 0 };
    let now = number(usage)?.saturating_sub(freed);
    Some(Limited { group: group.name().to_owned(), most: number(limit)?, now })
}

/// Bytes charged to a group that the kernel frees when the group needs more, such as the page cache of a file that
/// was just read.
fn reclaimable_bytes(files: &KernelFiles, group: &Group) -> u64 {
    let text = files.read_text(&format!("{}/memory.stat", group.directory())).unwrap_or_default();
    let (prefix, unwritten) = match group.version {
        Version::One => ("total_", UNWRITTEN[0]),
        Version::Two => ("", UNWRITTEN[1]),
    };
    let bytes = |name: &str| {
        let line =
            text.lines().find_map(|line| line.strip_prefix(prefix)?.strip_prefix(name)?.strip_prefix(' '));
        line.and_then(|number| number.trim().parse::<u64>().ok()).unwrap_or(0)
    };
    let sum = |names: &[&str]| names.iter().map(|name| bytes(name)).sum::<u64>();
    sum(&RECLAIMABLE).saturating_sub(sum(&unwritten))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel_files::fixture::Machine;

    const UNIFIED: (&str, &str) =
        ("proc/self/mountinfo", "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
    const PIDS: (&str, &str) =
        ("proc/self/mountinfo", "30 23 0:26 / /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids\n");

    #[test]
    fn the_group_nearest_to_its_limit_is_named() {
        let machine = Machine::with_files(&[
            PIDS,
            ("proc/self/cgroup", "8:pids:/outer/inner\n3:cpuset:/\n0::/elsewhere\n"),
            ("sys/fs/cgroup/pids/outer/inner/pids.max", "max\n"),
            ("sys/fs/cgroup/pids/outer/inner/pids.current", "3\n"),
            ("sys/fs/cgroup/pids/outer/pids.max", "4\n"),
            ("sys/fs/cgroup/pids/outer/pids.current", "4\n"),
        ]);
        let limited = tightest_group_limit(&machine.files, TASKS).expect("a limit");
        assert_eq!((limited.group.as_str(), limited.most, limited.remaining()), ("/outer", 4, 0));
        assert!(tightest_group_limit(&machine.files, MEMORY).is_none());
    }

    #[test]
    fn a_container_that_is_its_own_root_is_read() {
        let machine = Machine::with_files(&[
            UNIFIED,
            ("proc/self/cgroup", "0::/\n"),
            ("sys/fs/cgroup/memory.max", "200000000\n"),
            ("sys/fs/cgroup/memory.current", "100000000\n"),
        ]);
        assert_eq!(check_memory_bounds(&machine.files, 50 << 20, ""), Ok(()));
        let sentence = check_memory_bounds(&machine.files, 100 << 20, "").expect_err("too much");
        assert!(sentence.contains("the control group / has 95 left of its 190"), "{sentence}");
        let sentence = check_memory_bounds(&machine.files, 200 << 20, "").expect_err("more than there is");
        assert!(sentence.contains("the control group / has 190 in all"), "{sentence}");
    }

    #[test]
    fn reclaimable_page_cache_does_not_reduce_what_a_group_has_left() {
        let usage = "100000000\n";
        let machine = Machine::with_files(&[
            UNIFIED,
            ("proc/self/cgroup", "0::/\n"),
            ("sys/fs/cgroup/memory.max", usage),
            ("sys/fs/cgroup/memory.current", usage),
            (
                "sys/fs/cgroup/memory.stat",
                "anon 9\nfile 90000000\nfile_dirty 1000000\nfile_writeback 0\ninactive_file 60000000\nactive_file 20000000\n\
                 slab_reclaimable 1000000\nslab 2000000\n",
            ),
        ]);
        assert_eq!(cgroup_memory_left(&machine.files), Some(80_000_000), "less what is yet to be written");
        machine.remove_path("sys/fs/cgroup/memory.stat");
        assert_eq!(cgroup_memory_left(&machine.files), Some(0));
    }

    #[test]
    fn version_1_counts_the_page_cache_of_lower_groups_too() {
        let machine = Machine::with_files(&[
            ("proc/self/mountinfo", "30 23 0:26 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"),
            ("proc/self/cgroup", "8:memory:/a\n"),
            ("sys/fs/cgroup/memory/a/memory.limit_in_bytes", "1000\n"),
            ("sys/fs/cgroup/memory/a/memory.usage_in_bytes", "1000\n"),
            (
                "sys/fs/cgroup/memory/a/memory.stat",
                "inactive_file 1\ntotal_inactive_file 500\ntotal_active_file 200\ntotal_dirty 40\ntotal_writeback 10\n",
            ),
        ]);
        assert_eq!(cgroup_memory_left(&machine.files), Some(650));
    }

    #[test]
    fn too_little_available_memory_is_reported() {
        let machine =
            Machine::with_files(&[("proc/meminfo", "MemTotal: 99999999 kB\nMemAvailable:    2048 kB\n")]);
        assert_eq!(check_memory_bounds(&machine.files, 2 << 20, ""), Ok(()));
        assert!(
            check_memory_bounds(&machine.files, 3 << 20, "")
                .expect_err("too much")
                .contains("3 MiB of memory are needed")
        );
    }

    #[test]
    fn the_tightest_bound_is_reported() {
        let machine = Machine::with_files(&[
            UNIFIED,
            ("proc/meminfo", "MemAvailable:    200000 kB\n"),
            ("proc/self/cgroup", "0::/\n"),
            ("sys/fs/cgroup/memory.max", "100000000\n"),
            ("sys/fs/cgroup/memory.current", "0\n"),
        ]);
        let sentence = check_memory_bounds(&machine.files, 300 << 20, ", half of them for everybody else,")
            .expect_err("too much");
        assert!(sentence.contains("everybody else, and the control group / has 95 in all"), "{sentence}");
    }

    #[test]
    fn without_a_limit_there_is_no_sentence() {
        assert!(
            tightest_group_limit(
                &Machine::with_files(&[PIDS, ("proc/self/cgroup", "8:pids:/\n")]).files,
                TASKS
            )
            .is_none()
        );
    }
}

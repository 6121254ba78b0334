//! Less than a whole Linux: a sandbox, a container, or another kernel that answers Linux's calls. What can be measured is measured,
//! every other case is skipped with its sentence, and none is condemned. `scripts/less-than-linux` does the same with more cases.

use crate::limit::ordinary;
use crate::place::{Ended, Place};
use crate::sandbox::refusing_all;
use libc::{ENOSYS, EPERM};
use std::ops::RangeInclusive;
use std::process::Command;
use syscost_platform::testing::print_skipped;

type Refused = (i32, RangeInclusive<i64>);

/// Cases that children, threads, pipes, memory, files, sockets and timers carry, and one that needs nothing.
const OF_MANY_KINDS: &str = "^(known_work/add|syscall/(getppid|nonexistent|stat)|fork/vfork|thread/same-cpu/std|\
    ping_pong/(pipe-processes|semaphore-posix|shared-words)/|page_fault/anonymous|signal/caught|wait/epoll-pipe/10|wake_up/timerfd|\
    socket_round_trip/unix-(datagram-same|seqpacket-same|stream-(same|cross|epoll-same|io-uring-same|spin-cross|each-cross))-cpu/56B|\
    cached_read/read/4KiB|direct_read/random/4KiB|file_ops/create/1$|counters/net-bytes/(kept|stateless))";

fn refused_call(errno: i32, number: i64) -> Refused {
    (errno, number..=number)
}

fn no_ptrace() -> Vec<Refused> {
    [libc::SYS_ptrace, libc::SYS_process_vm_readv].map(|number| refused_call(EPERM, number)).into()
}

fn no_shared_memory() -> Vec<Refused> {
    let calls = [libc::SYS_shmget, libc::SYS_semget, libc::SYS_mq_open, libc::SYS_memfd_create];
    calls.map(|number| refused_call(ENOSYS, number)).into()
}

fn no_affinity() -> Vec<Refused> {
    let calls = [libc::SYS_sched_setaffinity, libc::SYS_sched_getaffinity, libc::SYS_sched_setscheduler];
    calls.map(|number| refused_call(EPERM, number)).into()
}

/// The calls that a kernel before 5.1 lacks, such as `clone3`.
fn no_newer_call() -> Vec<Refused> {
    vec![(ENOSYS, libc::SYS_pidfd_send_signal..=100_000)]
}

/// `/proc` shows the processes of the namespace.
const OWN_PROC: &str = "mount -t proc none /proc";
/// Shell words that make the home of the run visible at a second path, which stays unchanged.
const OWN_HOME: &str = "mount --bind . /mnt && cd /mnt && export CRITERION_HOME=/mnt/criterion";
/// The temporary directory may only be read.
const NO_TMP: &str = "unset TMPDIR && mount --bind /tmp /tmp && mount -o remount,ro,bind /tmp";

/// A command that starts another one in its own mount namespace with these mounts, as this user.
fn mounted(mounts: &str, user: &[&str]) -> Option<Vec<String>> {
    let within = format!("{mounts} && exec {} \"$@\"", user.join(" "));
    let starter = ["unshare", "-mpf", "sh", "-c", within.as_str(), "sh"].map(str::to_owned).to_vec();
    let works = Command::new(&starter[0]).args(&starter[1..]).arg("true").output();
    if works.is_ok_and(|output| output.status.success()) {
        return Some(starter);
    }
    print_skipped("no mount namespace may be made here, as root may");
    None
}

/// Asserts that a run that this command starts measures some cases and fails none.
fn assert_measures(starter: Option<Vec<String>>) -> Option<(Place, Ended)> {
    let (starter, place) = (starter?, Place::new());
    let starter: Vec<_> = starter.iter().map(String::as_str).collect();
    let ended = place.end(place.run_by(&starter, &[OF_MANY_KINDS]));
    ended.says(0, &[" 0 failed"]);
    assert!(!ended.output.contains("FAILED") && !ended.output.contains("\n0 measured"), "{ended:?}");
    place.is_tidy();
    Some((place, ended))
}

#[test]
fn without_ptrace_what_no_witness_saw_is_unwitnessed() {
    let Some((place, ended)) = assert_measures(refusing_all(&no_ptrace())) else { return };
    assert!(ended.output.contains("unwitnessed:"), "{ended:?}");
    assert!(place.record().to_string().contains("no witness could be called"));
}

#[test]
fn without_perf_io_uring_and_clone3() {
    assert_measures(refusing_all(&[
        refused_call(EPERM, libc::SYS_perf_event_open),
        (ENOSYS, libc::SYS_io_uring_setup..=libc::SYS_io_uring_register),
        refused_call(ENOSYS, libc::SYS_clone3),
    ]));
}

#[test]
fn without_the_calls_of_newer_kernels() {
    assert_measures(refusing_all(&no_newer_call()));
}

#[test]
fn without_shared_memory() {
    let mounts = mounted(&format!("{OWN_PROC} && mount -t tmpfs -o ro none /dev/shm"), &[]);
    assert_measures(mounts.and_then(|mounts| Some([mounts, refusing_all(&no_shared_memory())?].concat())));
}

#[test]
fn without_calls_of_affinity() {
    let Some((place, _)) = assert_measures(refusing_all(&no_affinity())) else { return };
    assert!(place.record().to_string().contains("not pinned to a CPU"));
}

#[test]
fn with_one_cpu() {
    assert_measures(Some(["taskset", "-c", "0"].map(str::to_owned).into()));
}

/// There a process number in `/proc` belongs to another process.
#[test]
fn with_the_proc_of_another_pid_namespace() {
    let Some((_, ended)) = assert_measures(mounted("true", &[])) else { return };
    assert!(ended.output.contains("unwitnessed"), "{ended:?}");
}

#[test]
fn without_proc_or_with_that_of_processes_alone() {
    assert_measures(mounted("mount -t tmpfs none /proc", &[]));
    assert_measures(mounted("mount -t proc -o subset=pid none /proc", &[]));
}

#[test]
fn with_the_processes_of_others_hidden() {
    assert_measures(ordinary().and_then(|user| mounted("mount -t proc -o hidepid=2 none /proc", &user)));
}

#[test]
fn without_sys() {
    assert_measures(mounted(&format!("{OWN_PROC} && mount -t tmpfs none /sys"), &[]));
}

#[test]
fn without_a_temporary_directory() {
    assert_measures(mounted(&format!("{OWN_PROC} && {OWN_HOME} && {NO_TMP}"), &[]));
}

#[test]
fn on_a_root_that_may_only_be_read() {
    let rest = "mount -o remount,ro,bind / && export TMPDIR=/mnt/temporary";
    assert_measures(mounted(&format!("{OWN_PROC} && {OWN_HOME} && {rest}"), &[]));
}

#[test]
fn without_all_of_it_at_once() {
    let refused = [no_ptrace(), no_shared_memory(), no_affinity(), no_newer_call()].concat();
    let refused = refusing_all(&[refused, vec![refused_call(EPERM, libc::SYS_perf_event_open)]].concat());
    let rest = "mount -t tmpfs none /proc && mount -t tmpfs none /sys && mount -t tmpfs -o ro none /dev/shm";
    let starter = mounted(&format!("{OWN_HOME} && {NO_TMP} && {rest}"), &[])
        .and_then(|mounts| Some([mounts, refused?].concat()));
    let Some((_, ended)) = assert_measures(starter) else { return };
    assert!(ended.output.contains("unwitnessed"), "{ended:?}");
}

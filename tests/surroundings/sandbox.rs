//! Forbidden system calls, and instruments that are declined.

use crate::limit::ordinary;
use crate::place::{Place, SYSCOST, TWO_GROUPS};
use std::ops::RangeInclusive;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use syscost_platform::testing::print_skipped;

/// A program that starts a command with forbidden system calls. Its arguments are, for each range of calls, the error number,
/// the first and the last number, and then the command.
const FORBID: &str = r#"
import ctypes, os, struct, sys
rules, command = sys.argv[1].split(), sys.argv[2:]
# Load the call's number; if it is in a range, answer the error; else allow.
code = [(0x20, 0, 0, 0)]
for errno, first, last in (map(int, rule.split(":")) for rule in rules):
    code += [(0x35, 0, 2, first), (0x25, 1, 0, last), (0x06, 0, 0, 0x00050000 | errno)]
code += [(0x06, 0, 0, 0x7fff0000)]
filters = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *one) for one in code))
program = ctypes.create_string_buffer(struct.pack("HxxxxxxP", len(code), ctypes.addressof(filters)))
libc = ctypes.CDLL(None, use_errno=True)
if libc.prctl(38, 1, 0, 0, 0) or libc.prctl(22, 2, program):
    sys.exit(99)
os.execvp(command[0], command)
"#;

/// A command that starts another one, to which this system call is forbidden.
pub fn forbidding(number: i64) -> Option<Vec<String>> {
    refusing(number, libc::EPERM)
}

fn refusing(number: i64, errno: i32) -> Option<Vec<String>> {
    refusing_all(&[(errno, number..=number)])
}

/// A command that starts another one, to which the system calls of these ranges are refused with their error number.
pub fn refusing_all(calls: &[(i32, RangeInclusive<i64>)]) -> Option<Vec<String>> {
    let rules: Vec<_> =
        calls.iter().map(|(errno, range)| format!("{errno}:{}:{}", range.start(), range.end())).collect();
    let starter = ["python3", "-c", FORBID, &rules.join(" ")];
    let starter = starter.map(str::to_owned).to_vec();
    let works = Command::new(&starter[0]).args(&starter[1..]).arg("true").output();
    if works.is_ok_and(|output| output.status.success()) {
        return Some(starter);
    }
    print_skipped("no python3, or it may not install a filter of system calls");
    None
}

fn forbidden(number: i64) -> Option<(Place, Vec<String>)> {
    Some((Place::new(), forbidding(number)?))
}

fn measures_without(number: i64, sentence: &str) {
    let Some((place, starter)) = forbidden(number) else { return };
    let starter: Vec<_> = starter.iter().map(String::as_str).collect();
    let Some(_) = place.succeeds(|| place.run_by(&starter, &[TWO_GROUPS])) else { return };
    let record = place.record().to_string();
    assert!(record.contains(sentence), "{record}");
    place.is_tidy();
}

#[test]
fn without_ptrace_the_other_claims_carry_the_case() {
    measures_without(libc::SYS_ptrace, "no witness could be called");
}

#[test]
fn without_mlockall_and_affinity_it_is_a_note() {
    measures_without(libc::SYS_mlockall, "not locked in memory");
    measures_without(libc::SYS_sched_setaffinity, "not pinned to a CPU");
}

/// Cases that use children, pipes, files and sockets, and one that needs none of these.
const OF_MANY_KINDS: &str = "^(known_work/add|syscall/getppid|syscall/pipe|fork/vfork|ping_pong/pipe-processes/same-cpu|\
    socket_round_trip/unix-(datagram-same|seqpacket-same|stream-(same|cross|epoll-same|io-uring-same|spin-cross|each-cross))-cpu/56B$)";

/// A refused call disproves no claim: the case is skipped, or measured without the call. Sandboxes answer EPERM or ENOSYS. The
/// program treats both as a refusal of any call, so the test tries one of the two for each call.
#[test]
fn a_refused_call_condemns_no_case() {
    for (number, errno) in [
        (libc::SYS_getppid, libc::ENOSYS),
        (libc::SYS_getrusage, libc::EPERM),
        (libc::SYS_ptrace, libc::ENOSYS),
        (libc::SYS_timer_create, libc::EPERM),
        (libc::SYS_prlimit64, libc::ENOSYS),
        (libc::SYS_dup, libc::EPERM),
        (libc::SYS_fcntl, libc::ENOSYS),
        (libc::SYS_socket, libc::EPERM),
        (libc::SYS_socketpair, libc::ENOSYS),
        (libc::SYS_wait4, libc::EPERM),
        (libc::SYS_madvise, libc::ENOSYS),
    ] {
        let Some(starter) = refusing(number, errno) else { return };
        let (place, starter) = (Place::new(), starter.iter().map(String::as_str).collect::<Vec<_>>());
        let ended = place.end(place.run_by(&starter, &[OF_MANY_KINDS]));
        let tally = ended.output.lines().rev().find(|line| line.contains(" measured, "));
        assert!(tally.is_none_or(|tally| tally.contains(" 0 failed")), "call {number}, {errno}: {ended:?}");
        assert!(matches!(ended.code, Some(0 | 1)), "call {number}, {errno}: {ended:?}");
        place.is_tidy();
    }
}

/// A filter that forbids one call skips the cases that consist of this call, with a sentence that names it.
#[test]
fn a_forbidden_call_skips_its_cases_and_is_named() {
    for (number, case, name) in [
        (libc::SYS_signalfd4, "signal/signalfd", "signalfd4"),
        (libc::SYS_timerfd_create, "signal/timerfd", "timerfd_create"),
        (libc::SYS_kill, "signal/caught", "signal/caught"),
        (libc::SYS_epoll_create1, "wait/epoll-pipe/10", "epoll_create1"),
        (libc::SYS_userfaultfd, "page_fault/userfaultfd/copy", "userfaultfd"),
        (libc::SYS_epoll_ctl, "wait/epoll-tcp/10", "epoll_ctl"),
        (libc::SYS_getppid, "syscall/getppid", "getppid"),
    ] {
        let Some((place, starter)) = forbidden(number) else { return };
        let starter: Vec<_> = starter.iter().map(String::as_str).collect();
        let ended = place.end(place.run_by(&starter, &[case, "--exact"]));
        ended.says(1, &["0 measured, 1 skipped, 0 failed", "forbidden here", name, "nothing was measured"]);
        place.is_tidy();
    }
}

/// Without `clone` no measuring process can be started.
#[test]
fn a_forbidden_clone_skips_every_case_and_is_named() {
    let Some((place, starter)) = forbidden(libc::SYS_clone) else { return };
    let starter: Vec<_> = starter.iter().map(String::as_str).collect();
    let ended = place.end(place.run_by(&starter, &[TWO_GROUPS]));
    ended.says(1, &["0 measured", " 0 failed", "starting a process to measure in", "the sandbox's filter"]);
    place.is_tidy();
}

/// A missing part of the system does not fail the case that reads it.
#[test]
fn a_missing_mount_of_a_container_fails_no_case() {
    for mount in
        ["mount -t tmpfs none /sys", "mount -t tmpfs none /dev", "mount -t tmpfs -o ro none /dev/shm"]
    {
        let within = format!("{mount} && exec \"$@\"");
        let starter = ["unshare", "-m", "sh", "-c", within.as_str(), "sh"];
        let works = Command::new(starter[0]).args(&starter[1..]).arg("true").status();
        if !works.is_ok_and(|status| status.success()) {
            print_skipped("no mount namespace may be made here, as root may");
            return;
        }
        let place = Place::new();
        let ended = place.end(place.run_by(
            &starter,
            &["^(syscall/read|syscall/write|counters/net-bytes/(kept|stateless)|fork/vfork)"],
        ));
        ended.says(0, &["0 failed"]);
        place.is_tidy();
    }
}

#[test]
fn a_program_that_may_be_executed_and_not_read_is_witnessed() {
    let Some(ordinary) = ordinary().filter(|_| nix::unistd::geteuid().is_root()) else {
        print_skipped("only root can make a program that another user may not read");
        return;
    };
    let place = Place::new();
    let program = place.path().join("unreadable");
    std::fs::copy(SYSCOST, &program).unwrap();
    std::fs::set_permissions(&program, PermissionsExt::from_mode(0o711)).unwrap();
    let run = || {
        let mut command = place.program(ordinary[0]);
        command.args(&ordinary[1..]).arg(&program).args(["run", "^(call/u64/3|syscall/getppid)$"]);
        command
    };
    let Some(ended) = place.succeeds(run) else { return };
    ended.says(0, &["2 measured, 0 skipped, 0 failed"]);
    assert!(!place.record().to_string().contains("no witness could be called"));
}

#[test]
fn an_event_that_may_not_be_counted_is_refused() {
    let Some((place, starter)) = forbidden(libc::SYS_perf_event_open) else { return };
    let starter: Vec<_> = starter.iter().map(String::as_str).collect();
    place.end(place.run_by(&starter, &[TWO_GROUPS, "--measure", "page-faults"])).refuses(&["page-faults"]);
}

#[test]
fn a_run_without_the_cycle_counter_says_so() {
    let place = Place::new();
    for _ in 0..3 {
        let run = || {
            let mut command = place.run(&["known_work"]);
            command.env("SYSCOST_CLOCK", "monotonic-raw");
            command
        };
        let Some(ended) = place.succeeds(run) else { return };
        ended.says(0, &["measured by monotonic-raw because SYSCOST_CLOCK asks"]);
    }
}

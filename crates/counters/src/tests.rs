//! Tests of the counters in unusual situations: a reused process number, a `/proc` that hides processes, a removed interface,
//! a user without privileges, thousands of short processes. Each test runs in a process of its own against the real kernel. A
//! test that this machine does not allow is skipped with a sentence.
#![allow(clippy::print_stdout, reason = "a test that cannot be done says so")]

use super::*;
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};
use nix::sys::resource::{Resource, setrlimit};
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::waitpid;
use nix::unistd::{Gid, Uid, setgid, setgroups, setuid};
use std::fs;
use std::fs::File;
use std::hint::black_box;
use std::io::{Read, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use syscost_platform::child::Child;
use syscost_platform::namespace;
use syscost_platform::testing::print_skipped;

const PATIENCE: Duration = Duration::from_secs(120);
const NOTHING: Option<&str> = None;

/// The result of a test. An error is the reason for skipping the test.
type Done = Result<(), String>;

/// Runs a test in a process of its own.
fn in_child_process(body: impl FnOnce() -> Done) {
    if let Err(why) = in_child(body) {
        print_skipped(&why.to_string());
    }
}

/// Runs `body` in a child process with one thread. A panic in the child fails the test here with its message.
fn in_child(body: impl FnOnce() -> Done) -> Done {
    let (words, said) = nix::unistd::pipe().expect("a pipe");
    let (mut words, mut said) = (File::from(words), File::from(said));
    let child = Child::start(|| {
        let text = match catch_unwind(AssertUnwindSafe(body)) {
            Ok(Ok(())) => String::new(),
            Ok(Err(why)) => format!("skipped: {why}"),
            Err(panic) => {
                let text = panic.downcast_ref::<String>().cloned();
                text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()))
                    .unwrap_or_else(|| "it panicked without words".into())
            }
        };
        let _ = said.write_all(text.as_bytes());
    })
    .expect("forked");
    let ended = child.wait_for_success(PATIENCE);
    drop(said);
    let mut text = String::new();
    words.read_to_string(&mut text).expect("words");
    ended.expect(&text);
    match text.strip_prefix("skipped: ") {
        Some(why) => Err(why.to_owned()),
        None => {
            assert!(text.is_empty(), "{text}");
            Ok(())
        }
    }
}

fn reason_if_refused(what: &str, answer: nix::Result<()>) -> Done {
    answer.map_err(|errno| format!("{what} is refused here: {errno}"))
}

/// Enters a new mount namespace.
fn own_mounts(more: CloneFlags) -> Done {
    reason_if_refused("a namespace of mounts", unshare(CloneFlags::CLONE_NEWNS | more))?;
    reason_if_refused(
        "a private mount",
        mount(NOTHING, "/", NOTHING, MsFlags::MS_REC | MsFlags::MS_PRIVATE, NOTHING),
    )
}

/// Becomes the user `nobody` without groups, since root's own group sees hidden processes.
fn nobody() -> Done {
    const NOBODY: u32 = 65534;
    let gone = setgroups(&[]).and_then(|()| setgid(Gid::from_raw(NOBODY)));
    reason_if_refused("another user", gone.and_then(|()| setuid(Uid::from_raw(NOBODY))))
}

fn sleeper() -> Child {
    Child::start(|| {
        loop {
            std::thread::sleep(PATIENCE);
        }
    })
    .expect("forked")
}

fn end(child: Child) {
    kill(child.pid(), Signal::SIGKILL).expect("sent");
    // Dropping the child kills it and waits for it.
    drop(child);
}

#[test]
fn a_process_with_a_reused_number_is_not_taken_for_the_earlier_one() {
    in_child_process(|| {
        own_mounts(CloneFlags::CLONE_NEWPID)?;
        // The first child is the first process of the namespace, where numbers can be chosen.
        in_child(reuse_process_number)
    });
}

fn reuse_process_number() -> Done {
    reason_if_refused(
        "a mount of /proc",
        mount(Some("proc"), "/proc", Some("proc"), MsFlags::empty(), NOTHING),
    )?;
    let before = sleeper();
    let pid = before.pid().as_raw();
    let kept = Process::open(pid).expect("a child");
    let mut cache = Processes::at_most(4);
    cache.get(pid).expect("a child");
    assert!(kept.cpu_time().is_ok() && kept.stat().is_ok());
    end(before);
    let last = "/proc/sys/kernel/ns_last_pid";
    fs::write(last, (pid - 1).to_string()).map_err(|e| format!("{last} cannot be written: {e}"))?;
    let after = sleeper();
    if after.pid().as_raw() != pid {
        return Err(format!("the number {pid} was not given again, but {}", after.pid()));
    }
    // A process with this number exists again, but it is another one.
    assert!(camp::num_page_faults(pid).is_ok());
    assert!(matches!(kept.cpu_time(), Err(Fault::Gone(_))), "{:?}", kept.cpu_time());
    assert!(matches!(kept.stat(), Err(Fault::Gone(_))), "{:?}", kept.stat());
    assert!(matches!(kept.resident(), Err(Fault::Gone(_))), "{:?}", kept.resident());
    assert!(matches!(kept.threads(), Err(Fault::Gone(_))), "{:?}", kept.threads());
    assert!(!kept.is_there());
    let anew = cache.get(pid).expect("the process that has the number now");
    assert!(anew.is_there() && anew.cpu_time().is_ok());
    Ok(())
}

#[test]
fn a_process_hidden_by_proc_is_denied_and_not_gone() {
    let other = std::process::id() as i32;
    in_child_process(move || {
        own_mounts(CloneFlags::empty())?;
        let hidden = mount(Some("proc"), "/proc", Some("proc"), MsFlags::empty(), Some("hidepid=2"));
        reason_if_refused("a /proc that hides", hidden)?;
        nobody()?;
        let denied = |fault: Fault| assert!(matches!(fault, Fault::Denied { .. }), "{fault}");
        denied(Process::open(other).expect_err("hidden"));
        denied(camp::num_page_faults(other).expect_err("hidden"));
        denied(camp::working_set_kb(other).expect_err("hidden"));
        denied(camp::thread_count(other).expect_err("hidden"));
        assert!(enumeration::hides_processes(), "and that is known");
        let pids = enumeration::pids().expect("the list");
        assert!(!pids.contains(&other) && pids.contains(&(std::process::id() as i32)), "{pids:?}");
        // Its CPU clock needs no file.
        assert!(camp::cpu_time_total(other, Duration::from_millis(1)).is_ok());
        assert!(
            matches!(camp::num_page_faults(i32::MAX), Err(Fault::Gone(_))),
            "a number without a process is gone"
        );
        Ok(())
    });
}

fn run_ip(words: &str) -> Done {
    namespace::run_ip_commands(words).map_err(|error| error.to_string())
}

#[test]
fn a_removed_interface_is_gone_and_its_successor_counts_from_zero() {
    in_child_process(|| {
        namespace::enter_new_namespace().map_err(|error| error.to_string())?;
        run_ip("link add here type veth peer name there")?;
        let kept = Interface::open("here").expect("it was made");
        assert_eq!(kept.bytes_sent().expect("read").value, 0);
        run_ip("link delete here")?;
        assert!(matches!(kept.bytes_sent(), Err(Fault::Gone(_))), "{:?}", kept.bytes_sent());
        run_ip("link add here type veth peer name there")?;
        assert!(matches!(kept.packets_received(), Err(Fault::Gone(_))), "{:?}", kept.packets_received());
        assert!(matches!(camp::net_bytes_sent("there"), Ok(reading) if reading.value == 0));
        Ok(())
    });
}

#[test]
fn an_unprivileged_user_reads_the_unrestricted_counters() {
    let other = std::process::id() as i32;
    in_child_process(move || {
        nobody()?;
        let own = std::process::id() as i32;
        for pid in [own, other] {
            let process = Process::open(pid).expect("everybody may");
            assert!(process.cpu_time().is_ok() && process.page_faults().is_ok() && process.threads().is_ok());
            assert!(process.resident().is_ok() && process.virtual_memory().is_ok() && process.is_there());
        }
        assert!(physical_memory::free().is_ok() && physical_memory::available().is_ok());
        assert!(camp::net_bytes_sent("lo").is_ok());
        assert!(camp::percent_processor_time(None, Duration::from_millis(20)).is_ok());
        for disk in camp::enum_physical_disks().expect("a list") {
            assert!(camp::num_reads_disk(&disk).is_ok(), "{disk}");
        }
        // The kernel's settings decide whether `/proc/zoneinfo` is readable by root alone or by all: the reading is denied,
        // or works.
        let truly = physical_memory::truly_free();
        assert!(matches!(truly, Ok(_) | Err(Fault::Denied { .. })), "{truly:?}");
        Ok(())
    });
}

#[test]
fn ten_thousand_short_processes_leak_no_descriptor() {
    const PROCESSES: usize = 10_000;
    const KEPT: usize = 16;
    in_child_process(|| {
        let mut cache = Processes::at_most(KEPT);
        let open = || fs::read_dir("/proc/self/fd").expect("our own").count();
        let limit = (open() + cache.max_descriptors() + 2) as u64;
        reason_if_refused("a limit of descriptors", setrlimit(Resource::RLIMIT_NOFILE, limit, limit))?;
        let (own, lasting) = (std::process::id() as i32, sleeper());
        let mut last = 0;
        for n in 0..PROCESSES {
            let child = Child::start(|| {}).expect("forked").into_pid();
            let pid = child.as_raw();
            // The process may be ending at this moment; it exists until it is waited for.
            match cache.get(pid) {
                Ok(process) => {
                    let readings = [
                        process.page_faults().map(drop),
                        process.cpu_time().map(drop),
                        process.threads().map(drop),
                    ];
                    for reading in readings {
                        assert!(matches!(reading, Ok(()) | Err(Fault::Gone(_))), "{reading:?}");
                    }
                }
                Err(fault) => assert!(matches!(fault, Fault::Gone(_)), "{fault}"),
            }
            waitpid(child, None).expect("waited for");
            if n % 8 == 0 {
                // Other processes stay readable. Earlier processes are gone, or another process has their number.
                let faults = cache.get(own).and_then(Process::page_faults).expect("ourselves").value;
                assert!(faults >= last, "{faults} after {last}");
                last = faults;
                assert!(cache.get(lasting.pid().as_raw()).and_then(Process::resident).is_ok());
                assert!(matches!(cache.get(pid), Err(Fault::Gone(_))));
            }
            if n % 1000 == 0 {
                assert!(enumeration::process_tree(own).is_ok());
            }
            assert!(cache.len() <= KEPT);
        }
        assert!(open() as u64 <= limit);
        drop(cache);
        Ok(())
    });
}

fn allocations<T>(call: impl FnOnce() -> T) -> u64 {
    allocation_counter::measure(|| {
        black_box(call());
    })
    .count_total
}

#[test]
fn a_handle_allocates_nothing_in_a_call() {
    let pid = std::process::id() as i32;
    let process = Process::open(pid).expect("ourselves");
    let interface = Interface::open("lo").expect("every namespace has it");
    let mut processors = Processors::open().expect("/proc");
    assert_eq!(allocations(|| process.cpu_time().is_ok()), 0);
    assert_eq!(allocations(|| process.page_faults().is_ok()), 0);
    assert_eq!(allocations(|| process.resident().is_ok()), 0);
    assert_eq!(allocations(|| process.threads().is_ok()), 0);
    assert_eq!(allocations(|| interface.bytes_sent().is_ok()), 0);
    assert_eq!(allocations(|| processors.idle().is_ok()), 0);
    assert_eq!(allocations(|| processors.time_spent(Some(0)).is_ok()), 0);
    assert_eq!(allocations(|| physical_memory::free().is_ok()), 0);
    let memory = physical_memory::Memory::open().expect("/proc");
    assert_eq!(allocations(|| memory.truly_free().is_ok()), 0);
    assert_eq!(allocations(|| memory.available().is_ok()), 0);
    let mut each = Vec::new();
    processors.time_spent_each(&mut each).expect("read");
    assert_eq!(allocations(|| processors.time_spent_each(&mut each).is_ok()), 0);
    let Ok(pressure) = Pressure::open(pressure::Resource::Cpu) else {
        return print_skipped("this kernel keeps no account of pressure");
    };
    assert_eq!(allocations(|| pressure.read().is_ok()), 0);
}

#[test]
fn a_call_without_a_handle_allocates_nothing() {
    let pid = std::process::id() as i32;
    assert_eq!(allocations(|| camp::cpu_time_total(pid, Duration::ZERO).is_ok()), 0);
    assert_eq!(allocations(|| camp::num_page_faults(pid).is_ok()), 0);
    assert_eq!(allocations(|| camp::working_set_kb(pid).is_ok()), 0);
    assert_eq!(allocations(|| camp::thread_count(pid).is_ok()), 0);
    assert_eq!(allocations(|| camp::net_bytes_sent("lo").is_ok()), 0);
    assert_eq!(allocations(|| camp::cpu_count().is_ok()), 0);
    assert_eq!(allocations(|| physical_memory::truly_free().is_ok()), 0);
    assert_eq!(allocations(|| camp::percent_processor_time(None, Duration::from_millis(20)).is_ok()), 0);
    assert_eq!(allocations(|| camp::percent_processor_time(Some(0), Duration::from_millis(20)).is_ok()), 0);
}

#[test]
fn every_function_of_figure_3_is_in_the_table() {
    let original = |line: &str| {
        line.trim().strip_prefix("#[doc(alias = \"").map(|rest| rest.trim_end_matches("\")]").to_owned())
    };
    let originals: Vec<_> = include_str!("camp.rs").lines().filter_map(original).collect();
    assert_eq!(originals.len(), 23, "{originals:?}");
    let rows = include_str!("lib.rs").lines().filter(|line| line.starts_with("//! | `"));
    let in_table: Vec<_> = rows.filter_map(|row| row.split('`').nth(1)).collect();
    assert_eq!(in_table, originals, "in the order of the paper");
}

#[test]
fn the_counter_of_allocations_counts_them() {
    assert!(allocations(|| vec![0u8; 17]) > 0);
}

//! Counters of large objects: a process of many threads, and one of many network interfaces.

use super::{Answer, CLOCK_AND_PIDFD, Call, FIELD, PREAD, READ, boxed_call, enters_claim, reading_case};
use crate::case::Case;
use crate::case::need::TAKES_SECONDS;
use crate::counters::{Interface, Process};
use crate::error::{Error, Result};
use crate::platform::child::Child;
use crate::platform::namespace;
use std::time::{Duration, Instant};

/// Threads of a server of the year 2000, and of some today.
const THREADS: u64 = 400;
/// Interfaces of a host with as many containers. They are made in pairs.
const INTERFACES: usize = 200;
/// How long the threads may take to start.
const PATIENCE: Duration = Duration::from_secs(10);
/// Bytes of a thread's stack: they only sleep.
const STACK: usize = 32 << 10;

pub(super) fn cases() -> Vec<Case> {
    vec![
        many_threads_case("page-faults", "page faults", |process| {
            process.page_faults().map(|reading| reading.value)
        })
        .claim(enters_claim(PREAD))
        .predict(4_500.0 + THREADS as f64 * 40.0, 100.0, "the kernel adds up over the threads"),
        many_threads_case("cpu-time", "CPU time", |process| {
            process.cpu_time().map(|reading| reading.value.as_nanos() as u64 | 1)
        })
        .claim(enters_claim(CLOCK_AND_PIDFD))
        .predict(600.0 + THREADS as f64 * 20.0, 400.0, "the kernel adds up over the threads"),
        many_threads_case("threads", "threads", |process| process.threads().map(|reading| reading.value))
            .predict(500.0, 100.0, FIELD),
        many_threads_case("resident", "resident set", |process| {
            process.resident().map(|reading| reading.value)
        })
        .claim(enters_claim(PREAD))
        .predict(1_200.0, 100.0, READ)
        .need(TAKES_SECONDS),
        reading_case("net-bytes/200-interfaces", "bytes sent by one of 200 interfaces", many_interfaces_call)
            .claim(enters_claim(PREAD))
            .predict(1_300.0, 100.0, READ),
    ]
}

fn many_threads_case(name: &str, words: &str, read: fn(&Process) -> Answer<u64>) -> Case {
    let open = move || {
        let (child, process) = start_many_threads()?;
        boxed_call(move || {
            let _alive = &child;
            read(&process)
        })
    };
    reading_case(
        format!("{name}/{THREADS}-threads"),
        &format!("{words} of a process of {THREADS} threads"),
        open,
    )
}

/// A child with [`THREADS`] sleeping threads.
fn start_many_threads() -> Result<(Child, Process)> {
    let child = Child::start(|| {
        let sleep = || loop {
            std::thread::park();
        };
        let more = (1..THREADS).map(|_| std::thread::Builder::new().stack_size(STACK).spawn(sleep));
        // A thread that is refused shows in the parent's count below.
        let _threads: Vec<_> = more.collect();
        sleep()
    })?;
    let (process, begun) = (Process::open(child.pid().as_raw())?, Instant::now());
    while process.threads()?.value < THREADS {
        if begun.elapsed() > PATIENCE {
            return Err(Error::Missing(format!(
                "a child did not start {THREADS} threads within {PATIENCE:?}: see `ulimit -u` and pids.max of its group"
            )));
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    Ok((child, process))
}

/// A reading of one of many interfaces, through a handle that was opened in their namespace.
fn many_interfaces_call() -> Result<Call> {
    let make = || {
        namespace::make_veth_pairs(INTERFACES / 2)?;
        Ok(Interface::open(&namespace::near_end_name(INTERFACES / 4))?)
    };
    let (interface, namespace) = namespace::run_in_new_namespace(make)?;
    boxed_call(move || {
        let _alive = &namespace;
        interface.bytes_sent().map(|reading| reading.value)
    })
}

//! Counters of large objects: a process of many threads, and one of many network interfaces.

use super::{Answer, CLOCK_AND_PIDFD, Call, Calls, FIELD, PREAD, READ, boxed_call, reading};
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

#[rustfmt::skip]
pub(super) fn cases() -> Vec<Case> {
    const SUMMED: &str = "the kernel adds up over the threads";
    vec![
        many_threads_case("page-faults", "page faults", PREAD, (4_500.0 + THREADS as f64 * 40.0, 100.0, SUMMED), |process| process.page_faults().map(|reading| reading.value)),
        many_threads_case("cpu-time", "CPU time", CLOCK_AND_PIDFD, (600.0 + THREADS as f64 * 20.0, 400.0, SUMMED), |process| process.cpu_time().map(|reading| reading.value.as_nanos() as u64 | 1)),
        many_threads_case("threads", "threads", &[], (500.0, 100.0, FIELD), |process| process.threads().map(|reading| reading.value)),
        many_threads_case("resident", "resident set", PREAD, (1_200.0, 100.0, READ), |process| process.resident().map(|reading| reading.value)).need(TAKES_SECONDS),
        reading("net-bytes/200-interfaces", "bytes sent by one of 200 interfaces", PREAD, (1_300.0, 100.0, READ), many_interfaces_call),
    ]
}

fn many_threads_case(
    name: &str,
    words: &str,
    calls: Calls,
    cycles: (f64, f64, &'static str),
    read: fn(&Process) -> Answer<u64>,
) -> Case {
    let open = move || {
        let (child, process) = start_many_threads()?;
        boxed_call(move || {
            let _alive = &child;
            read(&process)
        })
    };
    let title = format!("{words} of a process of {THREADS} threads");
    reading(format!("{name}/{THREADS}-threads"), &title, calls, cycles, open)
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

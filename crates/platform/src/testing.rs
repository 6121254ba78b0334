//! Functions that the tests of several crates share.

use crate::child::Child;
use crate::error;
use crate::time::thread_cpu_ns;
use nix::unistd::getppid;
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::PathBuf;
use std::time::Duration;

/// Reports that a test proves nothing, because this machine lacks something: in the line by which `scripts/test` counts it, and
/// in the list for [`skipped_tests`].
#[allow(clippy::print_stdout, reason = "a test that is skipped says so")]
pub fn print_skipped(reason: &str) {
    println!("skipped: {reason}");
    // If the list cannot be written, the test does not fail.
    let _ = list_skipped(reason);
}

/// The list's file, beside the test programs. A line has the process that started the test program, the test, and the reason.
const SKIPPED_TESTS: &str = "skipped-tests.tsv";

fn skipped_list() -> io::Result<PathBuf> {
    Ok(std::env::current_exe()?.with_file_name(SKIPPED_TESTS))
}

fn list_skipped(reason: &str) -> io::Result<()> {
    let thread = std::thread::current(); // its name is that of the test
    let reason = reason.split_whitespace().collect::<Vec<_>>().join(" ");
    let line = format!("{}\t{}\t{reason}\n", getppid(), thread.name().unwrap_or_default());
    OpenOptions::new().create(true).append(true).open(skipped_list()?)?.write_all(line.as_bytes())
}

/// The tests that were skipped by programs of the same `cargo test` as this one, each with its reason. The list is empty afterwards.
pub fn skipped_tests() -> Vec<(String, String)> {
    let Ok(list) = skipped_list() else { return Vec::new() };
    let text = std::fs::read_to_string(&list).unwrap_or_default();
    let _ = std::fs::remove_file(&list);
    let own = getppid().to_string();
    let of_own = |line: &str| {
        let [starter, test, reason] =
            line.splitn(3, '\t').map(str::to_owned).collect::<Vec<_>>().try_into().ok()?;
        (starter == own).then_some((test, reason))
    };
    text.lines().filter_map(of_own).collect()
}

/// Returns the value. If the machine lacks something for it, prints a line `skipped: …` and returns `None`.
///
/// # Panics
/// The value could not be made for another reason.
pub fn value_or_skip<T>(made: error::Result<T>) -> Option<T> {
    match made {
        Ok(made) => Some(made),
        Err(why) if why.is_machine_limitation() => {
            print_skipped(&why.to_string());
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// Runs `trial` at least `fewest` times and for at least `SYSCOST_FUZZ_SECONDS`. Panics if a trial takes a second
/// of CPU time. Returns the number of trials.
#[allow(clippy::print_stdout, reason = "a test says what it tried")]
pub fn run_random_trials(kind: &str, fewest: u64, mut trial: impl FnMut()) -> u64 {
    const SECOND_NS: u64 = 1_000_000_000;
    let seconds: f64 =
        std::env::var("SYSCOST_FUZZ_SECONDS").map_or(0.0, |text| text.parse().expect("seconds"));
    let (begun, mut trials, mut slowest) = (std::time::Instant::now(), 0, 0);
    while trials < fewest || begun.elapsed().as_secs_f64() < seconds {
        let before = thread_cpu_ns();
        trial();
        slowest = slowest.max(thread_cpu_ns() - before);
        trials += 1;
    }
    println!("{trials} {kind} in {seconds} s, the slowest {slowest} ns");
    assert!(trials > 0 && slowest < SECOND_NS, "{slowest} ns");
    trials
}

/// Runs a test in a process of its own, whose limits, signals, namespaces and control groups end with it.
pub fn run_in_child_process(body: impl FnOnce()) {
    use std::io::{Read, Seek};
    use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
    let mut report = tempfile::tempfile().expect("a file for what the child has to say");
    let mut child_report = report.try_clone().expect("the child's end of it");
    // A panic hook would not do: another test's thread may have held its lock when the child was forked.
    let reporting = || {
        if let Err(panic) = catch_unwind(AssertUnwindSafe(body)) {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            let text = text.or(panic.downcast_ref::<&str>().copied()).unwrap_or_default();
            let _ = child_report.write_all(text.as_bytes());
            resume_unwind(panic);
        }
    };
    if let Err(ended) = Child::start(reporting).expect("forked").wait_for_success(Duration::from_secs(60)) {
        let mut text = String::new();
        report.rewind().and_then(|()| report.read_to_string(&mut text)).expect("what the child said");
        panic!("{ended}: {text}");
    }
}

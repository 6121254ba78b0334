//! After every case of every group no child, thread or descriptor is left. This is the only test of its process, so
//! that the counts include nothing of other tests.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test may")]
#![allow(clippy::print_stdout, reason = "a case that is skipped is named")]

use std::path::Path;
use syscost::case::Cpus;
use syscost::clock::Clock;
use syscost::suite::GROUPS;
use syscost::{Case, Place, Scale};
use syscost_platform::cpu;

/// The numbers of descriptors, threads and children of this process.
fn possessions() -> [usize; 3] {
    let count = |path: &str| std::fs::read_dir(path).unwrap().count();
    let tasks = std::fs::read_dir("/proc/self/task").unwrap().flatten();
    let children = tasks.map(|task| {
        // Some kernels are built without this file; then children are not counted.
        let children = std::fs::read_to_string(task.path().join("children")).unwrap_or_default();
        children.split_whitespace().count()
    });
    [count("/proc/self/fd"), count("/proc/self/task"), children.sum()]
}

/// The numbers once they equal `before` again, or after half a minute. A joined thread may still be on the kernel's list
/// while the kernel takes its network namespace down.
fn possessions_when_settled(before: [usize; 3]) -> [usize; 3] {
    let begun = std::time::Instant::now();
    while possessions() != before && begun.elapsed() < std::time::Duration::from_secs(30) {
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    possessions()
}

/// Runs a case. The error is the reason why it could not be run.
fn run_case(case: &Case, place: &Place, clock: &Clock) -> Result<(), String> {
    case.missing_need(place).map_or(Ok(()), Err)?;
    let words = |error: syscost::Error| error.to_string();
    let mut subject = (case.set_up)(place).map_err(words)?;
    let mut control = case.control.as_ref().map(|set_up| set_up(place)).transpose().map_err(words)?;
    subject.run(2, clock).map_err(words)?;
    control.as_mut().map(|control| control.run(2, clock)).transpose().map_err(words)?;
    Ok(())
}

fn is_empty(directory: &Path) -> bool {
    // Files of a case may stay until the directory is removed; names of pipes may not.
    let names = std::fs::read_dir(directory).unwrap().flatten();
    names.filter(|name| name.file_name().to_string_lossy().starts_with("fifo")).count() == 0
}

#[test]
fn no_case_leaves_a_child_a_thread_or_a_descriptor() {
    let scratch = tempfile::tempdir().unwrap();
    let clock = Clock::start_up();
    let cpus = Cpus::for_measuring_process();
    let here = cpus.here.unwrap();
    let place = Place { scratch: scratch.path().to_path_buf(), scale: Scale::Smoke, cpus };
    let mut measured = 0;
    cpu::run_on_cpu(here, || {
        // A signal to the process goes to any of its threads, and a test has two: that group is asked by
        // `tests/surroundings/child.rs`, in a process of one.
        for group in GROUPS.iter().filter(|group| group.name != "signal") {
            for case in (group.cases)() {
                let before = possessions();
                match run_case(&case, &place, &clock) {
                    Ok(()) => measured += 1,
                    Err(sentence) => println!("{}: {sentence}", group.id(&case)),
                }
                assert_eq!(
                    possessions_when_settled(before),
                    before,
                    "{}: descriptors, threads, children",
                    group.id(&case)
                );
                assert!(is_empty(scratch.path()), "{}: a named pipe", group.id(&case));
            }
        }
    })
    .unwrap();
    assert!(measured > 20, "{measured}");
}

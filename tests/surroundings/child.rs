//! Children that end abnormally, and leftovers of groups that make tasks.

use crate::place::{Place, example};
use nix::sys::wait::waitpid;
use std::fmt::Write;
use std::path::Path;
use std::time::Duration;
use syscost::clock::Clock;
use syscost::suite;
use syscost::trial::{Bench, CaseEnd, Trial};
use syscost::{Group, Place as Where, Scale};
use syscost_platform::child::{Child, find_unreaped_child};
use syscost_platform::cpu;

#[test]
fn a_child_that_ends_badly_ends_its_case_and_nothing_else() {
    let Some(children) = example("children") else { return };
    let place = Place::new();
    let mut command = place.program(&children);
    command.args(["--bench", "--color=never"]);
    let ended = place.end(command);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    for (name, sentence) in [
        ("panics", "it panicked"),
        ("out-of-memory", "SIGABRT"),
        ("wrong-address", "SIGSEGV"),
        ("hangs", "did not end within 1 s and was killed"),
        ("hangs-while-timed", "nothing happened for 1 s, and it was ended"),
    ] {
        let line = ended.output.lines().find(|line| line.starts_with(&format!("FAILED children/{name}:")));
        assert!(line.is_some_and(|line| line.contains(sentence)), "{name}: {ended:?}");
    }
    assert!(!ended.output.contains("not measured"), "the others went on: {ended:?}");
    place.is_tidy();
}

/// The resources of a process: descriptors, threads, mappings, and whether there is a child.
#[derive(Debug)]
struct Held {
    descriptors: usize,
    threads: usize,
    mappings: usize,
    child: bool,
}

impl Held {
    /// Whether the resources did not grow. The allocator may have mapped a little more; a case that leaves mappings leaves dozens.
    fn is_no_more_than(&self, before: &Self) -> bool {
        const OF_THE_ALLOCATOR: usize = 4;
        (self.descriptors, self.threads, self.child) == (before.descriptors, before.threads, before.child)
            && self.mappings <= before.mappings + OF_THE_ALLOCATOR
    }

    fn now() -> Self {
        let entries = |path| std::fs::read_dir(path).unwrap().count();
        Self {
            descriptors: entries("/proc/self/fd"),
            threads: entries("/proc/self/task"),
            mappings: std::fs::read_to_string("/proc/self/maps").unwrap().lines().count(),
            child: find_unreaped_child().is_some(),
        }
    }
}

/// Sets up every case of a group at smoke scale, measures a batch and drops the case. Returns the sentences of failed
/// cases. No witness runs, because it would take minutes and has its own tests.
fn run_cases(group: &Group, place: &Where, clock: &Clock) -> Vec<String> {
    let pinned = Some(cpu::current_cpu());
    let mut failed = Vec::new();
    for case in (group.cases)() {
        let lived =
            Trial::prepare(&case, Bench { place, clock, pinned, lent: None, other_copies: None }, None)
                .and_then(|mut trial| {
                    trial.begin_sampling();
                    trial.measure_sample(3)?;
                    trial.conclude(1)
                });
        match lived {
            // A disturbed machine is not the subject of this test.
            Ok(_) | Err(CaseEnd::Skipped(_) | CaseEnd::Disturbed(_) | CaseEnd::Contradicted(_)) => {}
            Err(halt) => failed.push(format!("{}: {halt:?}", group.id(&case))),
        }
    }
    failed
}

/// Runs four groups twice. Returns sentences on failed cases, and on resources that the second time left behind.
fn leftovers(scratch: &Path) -> String {
    let place = Where { scratch: scratch.to_path_buf(), scale: Scale::Smoke, cpus: Default::default() };
    let clock = Clock::start_up();
    cpu::pin_thread(cpu::allowed_cpus()[0]).unwrap();
    let mut said = String::new();
    for name in ["fork", "thread", "signal", "wait"] {
        let group = suite::find_group(name).unwrap();
        run_cases(group, &place, &clock);
        let before = Held::now();
        let failed = run_cases(group, &place, &clock);
        let after = Held::now();
        if !failed.is_empty() {
            writeln!(said, "{failed:#?}").unwrap();
        }
        if !after.is_no_more_than(&before) {
            writeln!(said, "{name}: {before:?} before and {after:?} after").unwrap();
        }
    }
    said
}

#[test]
fn no_child_thread_descriptor_or_mapping_is_left() {
    let _alone = crate::place::alone();
    let scratch = tempfile::tempdir().unwrap();
    let said = scratch.path().join("said");
    // In a process of its own: the tests beside this one have children and descriptors as well.
    let child = Child::start(|| {
        let sentences = leftovers(scratch.path());
        std::fs::write(&said, sentences).unwrap();
    });
    let pid = child.unwrap();
    let number = pid.pid();
    pid.wait_for_success(Duration::from_secs(120)).unwrap();
    assert!(waitpid(number, None).is_err(), "it was reaped");
    assert_eq!(std::fs::read_to_string(&said).unwrap(), "");
}

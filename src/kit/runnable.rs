//! Shared by the tests of groups: a place to measure in, a clock, and the cases that can run there.

use crate::case::{Case, Cpus, Place, Scale};
use crate::clock::Clock;
use crate::platform::arch::Unfit;
use crate::platform::cpu;
use std::path::Path;

/// A clock for tests that do not look at the time.
pub fn test_clock() -> Clock {
    Clock::fallback(Unfit::Declined)
}

/// A place with this scratch directory and the CPUs of this process.
pub fn test_place(scratch: &Path, scale: Scale) -> Place {
    Place { scratch: scratch.to_path_buf(), scale, cpus: Cpus::for_measuring_process() }
}

/// Runs 20 iterations of each case whose needs are met, and of its control, on the CPU of the place.
pub fn assert_cases_run(cases: Vec<Case>, place: &Place) {
    let clock = Clock::start_up();
    let here = place.cpus.here.expect("a CPU");
    for case in runnable_cases(cases, place) {
        for set_up in [Some(&case.set_up), case.control.as_ref()].into_iter().flatten() {
            let ticks = cpu::run_on_cpu(here, || set_up(place)?.run(20, &clock)).expect("pinned");
            assert!(ticks.unwrap_or_else(|e| panic!("{}: {e}", case.name)).0 > 0, "{}", case.name);
        }
    }
}

/// The cases whose needs are met; prints the others.
pub fn runnable_cases(cases: Vec<Case>, place: &Place) -> impl Iterator<Item = Case> {
    cases.into_iter().filter(|case| {
        let missed = case.missing_need(place);
        if let Some(sentence) = &missed {
            println!("skipped {}: {sentence}", case.name);
        }
        missed.is_none()
    })
}

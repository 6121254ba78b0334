use super::*;
use crate::case::Scale;
use crate::kit::runnable::{runnable_cases, test_place};
use crate::platform::cpu;

#[test]
fn every_case_makes_round_trips() {
    let directory = tempfile::tempdir().unwrap();
    let mut place = test_place(directory.path(), Scale::Smoke);
    let clock = Clock::start_up();
    let here = place.cpus.here.unwrap();
    for case in runnable_cases(cases(), &place) {
        let ticks = cpu::run_on_cpu(here, || (case.set_up)(&place)?.run(20, &clock)).unwrap();
        assert!(ticks.unwrap_or_else(|e| panic!("{}: {e}", case.name)).0 > 0, "{}", case.name);
    }
    place.cpus.others.clear();
    let skipped = |case: &&Case| case.needs.iter().any(|need| need.check_place(&place).is_err());
    let cross = cases().iter().filter(|case| case.name.contains("cross-cpu")).count();
    assert_eq!(cases().iter().filter(skipped).count(), cross, "on one CPU");
}

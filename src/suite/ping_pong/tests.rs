use super::*;
use crate::case::Scale;
use crate::kit::runnable::{assert_cases_run, test_place};

#[test]
fn every_case_makes_round_trips() {
    let directory = tempfile::tempdir().unwrap();
    let mut place = test_place(directory.path(), Scale::Smoke);
    assert_cases_run(cases(), &place);
    place.cpus.others.clear();
    let skipped = |case: &&Case| case.needs.iter().any(|need| need.check_place(&place).is_err());
    let cross = cases().iter().filter(|case| case.name.contains("cross-cpu")).count();
    assert_eq!(cases().iter().filter(skipped).count(), cross, "on one CPU");
}

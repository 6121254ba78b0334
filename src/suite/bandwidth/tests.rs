use super::*;
use crate::kit::runnable::{runnable_cases, test_place};
use crate::kit::stream::{Means, Operation};
use crate::platform::testing::value_or_skip;

#[test]
fn every_case_does_its_work_or_says_what_is_missing() {
    let (place, clock) = (test_place(&std::env::temp_dir(), Scale::Smoke), Clock::start_up());
    for case in runnable_cases(cases(), &place) {
        let Some(mut subject) = value_or_skip((case.set_up)(&place)) else { continue };
        for n in [1, 3] {
            subject.run(n, &clock).unwrap_or_else(|error| panic!("{}: {error}", case.name));
        }
        let evidence = subject.report().evidence;
        assert!(evidence[0].contains("KiB in "), "{}: {evidence:?}", case.name);
    }
}

#[test]
fn a_page_fault_in_the_timed_part_is_reported() {
    let mut delta = Delta::default();
    assert!(claim_no_faults(&delta, 1).is_ok());
    delta.counted.minor_faults = 1;
    assert!(claim_no_faults(&delta, 1).expect_err("a fault").contains("1 minor"));
}

#[test]
fn an_iteration_moves_the_same_bytes_at_every_size() {
    for variant in variant::variants() {
        let plan = variant.plan();
        let expected = match (plan.calls_whole_array(), plan.operation) {
            (true, _) => plan.bytes as u64,
            (_, Operation::Add | Operation::Triad) => 15 << 10,
            _ => 16 << 10,
        };
        assert_eq!(plan.bytes_moved(), expected, "{}", variant.id());
    }
}

#[test]
fn more_than_half_of_the_memory_is_not_taken() {
    let plan = variant::variants()[0].plan();
    let Err(error) = single_workload(Plan { bytes: 1 << 46, means: Means::Scalar, ..plan }, None) else {
        panic!("taken")
    };
    assert!(error.is_machine_limitation(), "{error}");
}

use super::*;
use crate::clock::Reading;

fn sample(minor_faults: u64, major_faults: u64) -> Delta {
    let counted = Reading { minor_faults, major_faults, ..Reading::default() };
    Delta { counted, ..Delta::default() }
}

#[test]
fn memory_that_is_not_fresh_or_is_swapped_is_rejected() {
    let judged = |page, delta| check_fault_count(page, 4 << 20, &delta, 10);
    assert!(judged(2 << 20, sample(20, 0)).is_ok());
    assert!(judged(2 << 20, sample(19, 0)).is_err());
    assert!(claim_not_swapped(&sample(20, 0), 10).is_ok() && claim_not_swapped(&sample(20, 1), 10).is_err());
    assert!(judged(PAGE, sample(10_240, 0)).is_ok());
    assert!(judged(PAGE, sample(5_120, 0)).is_err(), "half of the memory");
}

#[test]
fn a_fault_per_iteration_without_a_touch_is_rejected() {
    assert!(claim_untouched(&sample(3, 0), 1000).is_ok());
    assert!(claim_untouched(&sample(1000, 0), 1000).is_err());
    assert!(claim_untouched(&sample(0, 1000), 1000).is_err());
}

#[test]
fn pages_that_were_kept_are_noticed() {
    assert!(check_pages_refaulted(Faults { minor: 256, major: 0 }, 256).is_ok());
    assert!(check_pages_refaulted(Faults { minor: 1, major: 0 }, 256).is_err());
}

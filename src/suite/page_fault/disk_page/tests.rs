use super::*;
use crate::clock::Reading;
use crate::kit::runnable::{test_clock, test_place};
use crate::platform::testing::value_or_skip;

#[test]
fn a_sample_without_a_major_fault_per_iteration_is_rejected() {
    let sample = |major_faults| {
        let counted = Reading { major_faults, minor_faults: 7, ..Reading::default() };
        check_major_faults(&Delta { counted, ..Delta::default() }, 10)
    };
    assert!(sample(10).is_ok() && sample(9).is_err());
}

#[test]
fn a_byte_of_another_page_is_noticed() {
    assert!(
        check_mark(7, Evictable::first_byte_of(7)).is_ok()
            && check_mark(7, Evictable::first_byte_of(8)).is_err()
    );
}

fn single_in_scratch(touch: Touch) -> Option<Single> {
    let scratch = tempfile::tempdir().expect("a directory");
    let walk = value_or_skip(Walk::new(&test_place(scratch.path(), Scale::Smoke), Order::Random, 1, true))?;
    Some(Single { walk, touch })
}

#[test]
fn each_touch_is_the_fault_that_its_name_says() {
    for (touch, faults) in [(Touch::First, 20), (Touch::Second, 20), (Touch::Third, 0)] {
        let Some(mut single) = single_in_scratch(touch) else { return };
        single.run(20, &test_clock()).expect("touched");
        assert_eq!(single.report().events, Some(faults), "{touch:?}");
    }
}

#[test]
fn a_touch_of_a_cached_page_is_rejected_as_first_touch() {
    let Some(mut single) = single_in_scratch(Touch::First) else { return };
    let pages = single.walk.file.region().page_count();
    single.walk.file.region().read(0..pages, 1);
    single.walk.file.region().discard(0..pages).expect("unmapped");
    let Err(Error::Missing(sentence)) = single.run(pages as u64 / 2, &test_clock()) else {
        panic!("believed")
    };
    assert!(
        sentence.contains("not the fault that they had to be") && sentence.contains("TMPDIR"),
        "{sentence}"
    );
}

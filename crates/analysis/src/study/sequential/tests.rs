use super::*;
use crate::statistic::Random;

/// Pairs of a case that is flagged at the last look.
const MOST: usize = 64 + 32;

/// Pairs around a true difference, with this deviation and now and then a wild one, as measured pairs are.
fn pairs(random: &mut Random, truth: f64, deviation: f64, count: usize) -> Vec<f64> {
    let uniform = |random: &mut Random| random.number_below(1 << 20) as f64 / f64::from(1 << 20) - 0.5;
    let normal = |random: &mut Random| (0..12).map(|_| uniform(random)).sum::<f64>();
    let one = |_| match random.number_below(20) {
        0 => truth + 10.0 * deviation * normal(random),
        _ => truth + deviation * normal(random),
    };
    (0..count).map(one).collect()
}

fn verdict(differences: &[f64]) -> (Verdict, usize) {
    let mut pairs = 0;
    loop {
        match case_state(&differences[..pairs], &Rule::default(), 1) {
            Stand::Closed(judgement) => return (judgement.verdict, pairs),
            Stand::Open(next) => pairs = next,
        }
    }
}

fn share(truth: f64, deviation: f64, wanted: Verdict) -> f64 {
    let mut random = Random::new(17);
    let found = (0..500).filter(|_| verdict(&pairs(&mut random, truth, deviation, MOST)).0 == wanted);
    found.count() as f64 / 500.0
}

#[test]
fn nothing_is_found_where_nothing_is() {
    for deviation in [0.002, 0.01, 0.05] {
        assert_eq!(share(0.0, deviation, Verdict::Slower) + share(0.0, deviation, Verdict::Faster), 0.0);
    }
}

#[test]
fn a_slowdown_of_five_percent_is_found_in_pairs_that_deviate_by_one() {
    assert!(share(0.05, 0.01, Verdict::Slower) > 0.99);
    assert!(share(-0.05, 0.01, Verdict::Faster) > 0.99);
}

#[test]
fn three_percent_is_found_too() {
    assert!(share(0.03, 0.01, Verdict::Slower) > 0.95);
}

#[test]
fn a_quiet_case_is_the_same_after_eight_pairs() {
    let quiet = [0.001, -0.002, 0.0, 0.003, -0.001, 0.002, -0.003, 0.001];
    assert_eq!(verdict(&quiet), (Verdict::Same, 8));
}

#[test]
fn what_is_flagged_once_and_not_again_is_no_verdict() {
    let mut differences = vec![0.05; 8];
    differences.extend([0.0; 32]);
    let (verdict, pairs) = verdict(&differences);
    assert_eq!((verdict, pairs), (Verdict::Inconclusive, 40));
}

#[test]
fn among_many_cases_more_is_asked_of_each() {
    let eight = vec![0.05; 16];
    assert!(matches!(case_state(&eight, &Rule::default(), 50), Stand::Closed(_)));
    assert_eq!(case_state(&eight, &Rule::default(), 10_000), Stand::Open(24));
}

#[test]
fn the_same_pairs_give_the_same_bytes() {
    let differences = pairs(&mut Random::new(3), 0.03, 0.01, 64);
    let said = || format!("{:?}", case_state(&differences, &Rule::default(), 3));
    assert_eq!(said(), said());
}

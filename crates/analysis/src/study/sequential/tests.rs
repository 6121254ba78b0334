use super::*;
use crate::record::paired::{PairRecord, Why};
use crate::statistic::Random;

/// The most pairs of a case: 64 at the last look, and 32 more if it is flagged there.
const MOST: usize = 64 + 32;

/// Log ratios around a true difference with this deviation and some outliers, like those of measured pairs.
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
fn no_change_is_found_without_one() {
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
fn a_change_that_is_not_found_again_is_no_verdict() {
    let mut differences = vec![0.05; 8];
    differences.extend([0.0; 32]);
    let (verdict, pairs) = verdict(&differences);
    assert_eq!((verdict, pairs), (Verdict::Inconclusive, 40));
}

#[test]
fn more_cases_require_stronger_evidence_of_each() {
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

fn case(differences: &[f64]) -> CasePairs {
    let pair = |&difference| PairRecord { difference, cost_ns: [100.0, 100.0], rejected: None };
    CasePairs { id: "a/b".into(), pairs: differences.iter().map(pair).collect(), ..CasePairs::default() }
}

fn slower(by: f64, pairs: usize) -> Vec<f64> {
    (0..pairs).map(|i| by + 0.001 * (i % 5) as f64).collect()
}

#[test]
fn a_rejected_pair_does_not_count() {
    let mut case = case(&slower(0.05, 16));
    case.pairs
        .insert(3, PairRecord { difference: -9.0, rejected: Some("it moved".into()), ..Default::default() });
    let row = case.judged_row(&Rule::default(), 1);
    assert_eq!((row.judgement.verdict, row.pairs, row.rejected), (Verdict::Slower, 16, 1));
}

/// A case of which the first pairs were rejected.
fn case_with_rejections(rejected: usize, differences: &[f64]) -> CasePairs {
    let mut case = case(&[&vec![0.0; rejected][..], differences].concat());
    case.pairs.iter_mut().take(rejected).for_each(|pair| pair.rejected = Some("it moved".into()));
    case
}

#[test]
fn rejected_pairs_end_no_case_that_the_other_pairs_decide() {
    let rule = Rule::default();
    let open = case_with_rejections(20, &slower(0.05, 8));
    assert_eq!(open.pairs_needed(&rule, 1), Some(16), "flagged, and to be found again");
    let row = case_with_rejections(20, &slower(0.05, 16)).judged_row(&rule, 1);
    assert_eq!((row.judgement.verdict, row.pairs, row.rejected), (Verdict::Slower, 16, 20));
}

#[test]
fn too_many_rejected_pairs_make_the_machine_unfit() {
    let rule = Rule::default();
    for (rejected, counted) in [(8, 0), (64, 3)] {
        let case = case_with_rejections(rejected, &slower(0.05, counted));
        assert_eq!(case.pairs_needed(&rule, 1), None);
        let row = case.judged_row(&rule, 1);
        assert_eq!(row.judgement.verdict, Verdict::Inconclusive);
        let told = format!("{rejected} of {}", rejected + counted);
        assert!(
            row.judgement.reason.is_some_and(|reason| reason.contains(&told) && reason.contains("it moved"))
        );
    }
    for (rejected, counted) in [(7, 0), (63, 3)] {
        assert!(case_with_rejections(rejected, &slower(0.05, counted)).pairs_needed(&rule, 1).is_some());
    }
}

#[test]
fn a_difference_of_the_layout_alone_is_named_and_is_no_verdict() {
    let mut case = case(&[0.001, -0.002, 0.0, 0.003, -0.001, 0.002, -0.003, 0.001]);
    let as_built = |difference| Some(PairRecord { difference, ..PairRecord::default() });
    case.as_built = as_built(0.12);
    let row = case.judged_row(&Rule::default(), 1);
    assert_eq!((row.judgement.verdict, row.pairs), (Verdict::Same, 8), "that pair is not among the others");
    let sentence = layout_sentence([&row]).expect("one");
    assert!(
        sentence.contains("differ in a/b by +12.7 % (over random orders of the functions by "),
        "{sentence}"
    );
    case.as_built = as_built(0.01);
    assert_eq!(layout_sentence([&case.judged_row(&Rule::default(), 1)]), None, "within the margin");
}

#[test]
fn a_case_that_ended_is_incomparable_and_says_why() {
    let mut case = case(&slower(0.05, 16));
    case.end_without_verdict(Why::Failed, "side B died".into());
    let row = case.judged_row(&Rule::default(), 1);
    assert_eq!((row.judgement.verdict, row.pairs), (Verdict::Incomparable, 0), "no number");
    assert_eq!(row.judgement.reason.as_deref(), Some("side B died"));
}

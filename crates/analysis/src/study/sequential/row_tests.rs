use super::*;
use crate::record::paired::{PairRecord, Why};

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
fn rejected_pairs_end_no_case_that_the_others_decide() {
    let rule = Rule::default();
    let open = case_with_rejections(20, &slower(0.05, 8));
    assert_eq!(open.pairs_needed(&rule, 1), Some(16), "flagged, and to be found again");
    let row = case_with_rejections(20, &slower(0.05, 16)).judged_row(&rule, 1);
    assert_eq!((row.judgement.verdict, row.pairs, row.rejected), (Verdict::Slower, 16, 20));
}

#[test]
fn a_case_of_which_too_many_pairs_were_rejected_ends_as_the_machines_fault() {
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

//! A comparison by turns as the page's script reads it: the verdicts, derived from the pairs, and the pairs.

use serde::Serialize;
use syscost_analysis::record::paired::{CasePairs, Paired};
use syscost_analysis::study::sequential::Row;

#[derive(Serialize)]
pub(super) struct PairsData<'a> {
    run: &'a str,
    started: u64,
    by_turns: bool,
    sides: &'a [String; 2],
    threshold: f64,
    margin: f64,
    /// What the times are of, where they are not this machine's, and the notes on the whole.
    notes: Vec<String>,
    cases: Vec<Case<'a>>,
}

#[derive(Serialize)]
struct Case<'a> {
    #[serde(flatten)]
    row: Row,
    /// Each pair: B over A less 1, and why it does not count.
    points: Vec<(f64, Option<&'a str>)>,
}

impl<'a> PairsData<'a> {
    /// The comparison with its verdicts.
    pub(super) fn new(paired: &'a Paired) -> Self {
        let cases = paired.judge().into_iter().zip(&paired.cases);
        Self {
            run: &paired.run,
            started: paired.started,
            by_turns: paired.by_turns,
            sides: &paired.sides,
            threshold: paired.rule.threshold,
            margin: paired.rule.margin,
            notes: caution_and_notes(paired),
            cases: cases.map(|(row, case)| Case { row, points: pair_points(case) }).collect(),
        }
    }
}

fn caution_and_notes(paired: &Paired) -> Vec<String> {
    let caution = paired.clock_kind().clock_warning().map(|caution| format!("measured: {caution}"));
    caution.into_iter().chain(paired.notes.iter().cloned()).collect()
}

fn pair_points(case: &CasePairs) -> Vec<(f64, Option<&str>)> {
    case.pairs.iter().map(|pair| (pair.difference.exp_m1(), pair.rejected.as_deref())).collect()
}

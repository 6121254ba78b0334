//! A case as the page's script reads it.

use super::sample_shape::{Shape, case_shape};
use serde::Serialize;
use syscost_engine::record::{CaseRecord, Derived, GroupRun, Interval, Matrix, Measured};
use syscost_engine::study::basis::{best_cost, ratio_to_prediction};
use syscost_engine::study::disturbance::disturbance_summary;

#[derive(Serialize)]
pub(super) struct CaseData<'a> {
    id: &'a str,
    title: &'a str,
    /// `measured`, `unwitnessed`, `not settled`, `skipped`, `disturbed` or `failed`.
    outcome: &'static str,
    /// All of these that are true of it: an unsettled case counts as measured, too, as everywhere.
    outcomes: Vec<&'static str>,
    /// Why there is no number.
    #[serde(skip_serializing_if = "Option::is_none")]
    sentence: Option<&'a str>,
    #[serde(flatten)]
    figures: Option<Figures<'a>>,
}

/// Estimate and ends.
type Ends = [f64; 3];

#[derive(Serialize)]
struct Figures<'a> {
    /// The figure that is shown first, with the interval of the next run's.
    figure: Ends,
    /// Whether it is a quiet figure; else it is the median of one execution.
    quiet: bool,
    faster: Option<f64>,
    earlier: usize,
    typical: Ends,
    ticks: f64,
    net: Option<f64>,
    /// Hardware and software, ns.
    expected: Option<[f64; 2]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<&'a str>,
    ratio: Option<f64>,
    instructions: Option<f64>,
    samples: usize,
    disturbed: usize,
    /// Each execution: seconds after the beginning, lower quartile, median, the core's frequency in GHz.
    executions: Vec<(f64, f64, f64, Option<f64>)>,
    shape: Option<Shape>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    percentiles: &'a [(f64, f64)],
    derived: &'a [Derived],
    evidence: &'a [String],
    unasked: &'a [String],
    left_out: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    meanwhile: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    matrix: Option<&'a Matrix>,
}

impl<'a> CaseData<'a> {
    /// The case of this group, in this unit.
    pub(super) fn new(case: &'a CaseRecord, group: &GroupRun, unit: &str) -> Self {
        let is_open = case.measured().is_some_and(|measured| !measured.is_settled());
        let is_unwitnessed = case.measured().is_some_and(Measured::is_unwitnessed);
        let words =
            [(true, case.outcome.status_word()), (is_open, "not settled"), (is_unwitnessed, "unwitnessed")];
        let outcomes: Vec<_> = words.into_iter().filter_map(|(is_so, word)| is_so.then_some(word)).collect();
        let outcome = outcomes.last().copied().unwrap_or_default();
        let figures = case.measured().map(|measured| case_figures(measured, group, unit));
        Self { id: &case.id, title: &case.title, outcome, outcomes, sentence: case.outcome.reason(), figures }
    }
}

fn case_figures<'a>(m: &'a Measured, group: &GroupRun, unit: &str) -> Figures<'a> {
    let distribution = m.distribution.as_ref();
    Figures {
        figure: estimate_and_ends(m.figure()),
        quiet: m.quiet.is_some(),
        faster: m.quiet.and_then(|quiet| quiet.faster),
        earlier: m.quiet.map_or(0, |quiet| quiet.earlier),
        typical: estimate_and_ends(m.median),
        ticks: m.ticks,
        net: best_cost(m).map(|(_, figure)| figure.estimate),
        expected: m.predicted.as_ref().map(|p| [p.hardware, p.software]),
        why: m.predicted.as_ref().map(|p| p.why.as_str()),
        ratio: ratio_to_prediction(m),
        instructions: m.instructions,
        samples: m.counted.len(),
        disturbed: m.contamination.count_disturbed(),
        executions: m
            .executions
            .iter()
            .map(|e| (e.at, e.low, e.median, e.core_hz.map(|hz| hz / 1e9)))
            .collect(),
        shape: case_shape(m, group.clock.hz, unit),
        percentiles: distribution.map_or(&[], |d| &d.percentiles),
        derived: &m.derived,
        evidence: &m.evidence,
        unasked: &m.unasked,
        left_out: &m.left_out,
        meanwhile: m.meanwhile.as_ref().map(disturbance_summary),
        matrix: m.matrix.as_ref(),
    }
}

fn estimate_and_ends(Interval { estimate, low, high }: Interval) -> Ends {
    [estimate, low, high]
}

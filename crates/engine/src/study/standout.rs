//! The cases of a run that need a second look: those without a number, unsettled ones, and those far from their
//! prediction.

use super::basis::{figure_for_prediction, predicted_ns, ratio_to_prediction};
use crate::record::{CaseRecord, CurveRecord, LevelRecord, Measured, Outcome, Record, Tally};

/// A prediction counts as good if it is off by at most this factor, either way.
pub const FAR: f64 = 3.0;

/// Cases that need a second look, by reason.
#[derive(Debug, Default)]
pub struct Standouts<'a> {
    /// Cases that are disproved or broken, with the sentence.
    pub failed: Vec<(&'a str, &'a str)>,
    /// Cases without a number because of other activity on the machine, with the sentence.
    pub disturbed: Vec<(&'a str, &'a str)>,
    /// Cases with a claim that could not be checked, with the sentence.
    pub unwitnessed: Vec<(&'a str, &'a str)>,
    /// Cases that are not settled, with the relative half width of their intervals, the widest first.
    pub unsettled: Vec<(&'a str, f64)>,
    /// Cases with a prediction and a figure whose interval lies above zero, the farthest off first.
    pub predicted: Vec<PredictedCase<'a>>,
    /// Levels that end at another size than the kernel reports, with their curves.
    pub levels: Vec<(&'a CurveRecord, &'a LevelRecord)>,
}

/// The prediction for a case, and its ratio to the measured cost.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PredictedCase<'a> {
    /// The case.
    pub id: &'a str,
    /// The prediction, ns.
    pub predicted: f64,
    /// The measured cost divided by the prediction.
    pub ratio: f64,
}

impl PredictedCase<'_> {
    /// The factor between cost and prediction, at least 1.
    fn deviation_factor(&self) -> f64 {
        self.ratio.max(self.ratio.recip())
    }

    /// Whether cost and prediction differ by more than the factor [`FAR`].
    pub fn is_far(&self) -> bool {
        self.deviation_factor() > FAR
    }
}

/// The cases of this record that need a second look.
pub fn find_standouts(record: &Record) -> Standouts<'_> {
    let mut found = Standouts::default();
    record.cases().for_each(|(_, case)| found.add(case));
    found.unsettled.sort_by(|a, b| b.1.total_cmp(&a.1));
    found.predicted.sort_by(|a, b| b.deviation_factor().total_cmp(&a.deviation_factor()));
    let curves = record.groups.iter().flat_map(|group| &group.curves);
    let levels = curves.flat_map(|curve| curve.levels.iter().map(move |level| (curve, level)));
    found.levels = levels.filter(|(_, level)| level.agrees_with_kernel() == Some(false)).collect();
    found
}

impl<'a> Standouts<'a> {
    fn add(&mut self, case: &'a CaseRecord) {
        match &case.outcome {
            Outcome::Measured(measured) => self.add_measured(&case.id, measured),
            Outcome::Disturbed(sentence) => self.disturbed.push((&case.id, sentence)),
            Outcome::Failed(sentence) => self.failed.push((&case.id, sentence)),
            Outcome::Skipped(_) => (),
        }
    }

    fn add_measured(&mut self, id: &'a str, measured: &'a Measured) {
        self.unwitnessed.extend(measured.unwitnessed_claims().next().map(|sentence| (id, sentence.as_str())));
        if !measured.is_settled() {
            self.unsettled.push((id, measured.figure().relative_half_width()));
        }
        let Some((predicted, ratio)) = predicted_ns(measured).zip(ratio_to_prediction(measured)) else {
            return;
        };
        // If the interval of the figure reaches zero, its ratio to the prediction has no meaning.
        if figure_for_prediction(measured).is_none_or(|figure| figure.low <= 0.0) {
            return;
        }
        self.predicted.push(PredictedCase { id, predicted, ratio });
    }

    /// The cases whose cost is far from the prediction, the farthest first.
    pub fn far_cases(&self) -> impl Iterator<Item = &PredictedCase<'a>> {
        self.predicted.iter().take_while(|case| case.is_far())
    }
}

// Runs in which no case has a number: they count as failed, and the reason is reported.

/// The reason why these runs have no number. `None` if a case has a number, or there is no case.
pub fn nothing_measured<'a>(runs: impl IntoIterator<Item = &'a Record>) -> Option<NothingMeasured> {
    let mut found = NothingMeasured::default();
    for (_, case) in runs.into_iter().flat_map(Record::cases) {
        let sentence = case.outcome.reason()?;
        found.tally.add(&case.outcome);
        // The reason of a case that ran is more useful than that of a skipped one.
        let says_more = matches!(case.outcome, Outcome::Disturbed(_)) && found.tally.disturbed == 1;
        if found.first.is_none() || says_more {
            found.first = Some(format!("{}: {sentence}", case.id));
        }
    }
    found.first.is_some().then_some(found)
}

/// How the cases of such runs ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NothingMeasured {
    tally: Tally,
    first: Option<String>,
}

impl NothingMeasured {
    /// Whether every case was skipped because the machine lacks something that it needs.
    pub fn is_all_skipped(&self) -> bool {
        self.tally.disturbed == 0 && self.tally.failed == 0
    }

    /// The sentence for the user.
    pub fn sentence(&self) -> String {
        let Tally { skipped, disturbed, failed, .. } = self.tally;
        let counts = [(skipped, "skipped"), (disturbed, "disturbed"), (failed, "failed")];
        let parts: Vec<_> = counts
            .iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, word)| format!("{count} {word}"))
            .collect();
        let first = self.first.as_deref().unwrap_or_default();
        format!("nothing was measured ({}), so that this run has no number; {first}", parts.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::fixture_run;

    #[test]
    fn a_cost_far_below_its_prediction_is_as_far_off_as_one_far_above() {
        let at = |ratio| PredictedCase { id: "", predicted: 1.0, ratio };
        assert!(
            at(0.1).deviation_factor() > at(9.0).deviation_factor() && at(0.1).is_far() && !at(1.0).is_far()
        );
    }

    #[test]
    fn each_case_is_counted_where_it_belongs() {
        let record = fixture_run::fixture_record();
        let found = find_standouts(&record);
        let tally = record.tally();
        assert_eq!((found.failed.len(), found.disturbed.len()), (tally.failed, tally.disturbed));
        assert_eq!(found.unsettled.len(), record.unsettled_cases().count());
        assert!(
            found.far_cases().count() <= found.predicted.len() && found.predicted.len() <= tally.measured
        );
    }

    #[test]
    fn a_level_that_ends_elsewhere_is_found() {
        let mut record = fixture_run::fixture_record();
        let level = |reported| LevelRecord { step: Some((1024, 2048)), reported, ..LevelRecord::default() };
        let levels = vec![level(Some(1500)), level(Some(99_999)), level(None)];
        record.groups[0].curves = vec![CurveRecord { levels, ..CurveRecord::default() }];
        assert_eq!(find_standouts(&record).levels.len(), 1);
    }

    /// A run whose cases have these outcomes.
    fn run(outcomes: &[Outcome]) -> Record {
        let mut run = fixture_run::fixture_record();
        run.groups.truncate(1);
        let case = run.groups[0].cases[0].clone();
        let ended = |(at, outcome): (usize, &Outcome)| {
            let mut case = case.clone();
            (case.id, case.outcome) = (format!("case/{at}"), outcome.clone());
            case
        };
        run.groups[0].cases = outcomes.iter().enumerate().map(ended).collect();
        run
    }

    #[test]
    fn a_run_without_a_number_has_a_reason_and_one_with_a_number_has_none() {
        let skipped = Outcome::Skipped("no disk".into());
        let disturbed = Outcome::Disturbed("others had the CPU".into());
        let judge = |outcomes: &[Outcome]| nothing_measured([&run(outcomes)]);
        let all = judge(&[skipped.clone(), skipped.clone()]).expect("nothing");
        assert!(all.is_all_skipped());
        assert!(all.sentence().contains("(2 skipped)") && all.sentence().ends_with("case/0: no disk"));
        let tried = judge(&[skipped, disturbed]).expect("nothing");
        assert!(!tried.is_all_skipped());
        assert!(tried.sentence().contains("1 skipped, 1 disturbed"), "{}", tried.sentence());
        assert!(tried.sentence().ends_with("case/1: others had the CPU"), "{}", tried.sentence());
        assert_eq!(nothing_measured([&fixture_run::fixture_record()]), None);
        assert_eq!(judge(&[]), None, "no case was asked for");
    }
}

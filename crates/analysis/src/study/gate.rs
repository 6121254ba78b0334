//! The answer of a gate: one exit code for all verdicts. Muted cases are ignored.

mod mute;

pub use mute::{Mutes, SECONDS_A_DAY, parse_day};

use super::comparison::Comparison;
use super::exact_count::CountChange;
use crate::record::paired::{CasePairs, Ended, Paired, Why};
use crate::study::sequential::Row;
use serde::Serialize;
use syscost_engine::exit::Exit;
use syscost_engine::record::Verdict;

/// The result of one case, from a comparison by pairs or of records.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Finding {
    /// `group/variant/parameter`.
    pub id: String,
    /// The verdict.
    pub verdict: Verdict,
    /// The new value divided by the old one, less 1.
    pub change: Option<f64>,
    /// The reason why there is no stronger verdict.
    pub reason: Option<String>,
    /// Whether the case is a canary, which neither side can change.
    pub canary: bool,
    /// How the measurement ended.
    pub progress: Progress,
    /// The reason why the case is muted; `None` if it is not.
    pub muted: Option<String>,
    /// A sentence on a count that grew by more than the limit. A count is no time, so it is no part of the verdict.
    pub grown: Option<String>,
}

/// How the measurement of a case ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Progress {
    /// It was measured on both sides.
    #[default]
    Measured,
    /// The machine lacks something that the case needs.
    Skipped,
    /// A claim did not hold, or a side died.
    Failed,
    /// Too many pairs had to be rejected.
    Unfit,
}

/// The verdict of a case that failed, and of a gate that such a case decides.
pub const NOT_MEASURED: &str = "not measured";

impl Finding {
    /// Whether a claim did not hold or a side died: [`Verdict::Incomparable`] would name the wrong exit code.
    pub fn is_unmeasured(&self) -> bool {
        self.progress == Progress::Failed
    }

    /// The verdict in words that fit the exit code.
    pub fn verdict_name(&self) -> &'static str {
        if self.is_unmeasured() { NOT_MEASURED } else { self.verdict.name() }
    }
}

/// The answer. A slowdown outweighs all others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Answer {
    /// A case is slower.
    Slower,
    /// A case allocates more.
    Grown,
    /// The machine was unfit for a verdict: a canary changed, or too many pairs were rejected.
    Unfit,
    /// A case could not be measured at all.
    Unmeasured,
    /// A case has numbers that cannot be compared.
    Incomparable,
    /// Neither a change nor its absence was shown.
    Inconclusive,
    /// Unchanged or faster.
    Pass,
}

impl Answer {
    /// The exit code of a gate with this answer.
    pub fn exit_status(self) -> Exit {
        match self {
            Self::Pass => Exit::Success,
            Self::Slower | Self::Grown => Exit::Disproved,
            Self::Incomparable => Exit::Incomparable,
            Self::Inconclusive => Exit::Inconclusive,
            Self::Unfit => Exit::Unfit,
            Self::Unmeasured => Exit::Skipped,
        }
    }

    /// The exit code for `git bisect run`, which knows good, bad and skip.
    pub fn exit_for_bisect(self) -> Exit {
        match self {
            Self::Pass | Self::Slower | Self::Grown => self.exit_status(),
            _ => Exit::Skipped,
        }
    }

    /// A summary for people.
    pub fn summary(self) -> &'static str {
        match self {
            Self::Pass => "passed: nothing is slower",
            Self::Slower => "slower",
            Self::Grown => "more allocations",
            Self::Incomparable => "incomparable",
            Self::Inconclusive => "inconclusive",
            Self::Unfit => "the machine is unfit",
            Self::Unmeasured => NOT_MEASURED,
        }
    }
}

/// The answer that follows from these findings.
pub fn answer(findings: &[Finding]) -> Answer {
    let any = |ask: &dyn Fn(&Finding) -> bool| findings.iter().filter(|f| f.muted.is_none()).any(ask);
    // A canary checks the machine and is not a case that the user selected.
    let asked = |f: &Finding| f.progress != Progress::Skipped && !f.canary;
    match () {
        () if any(&|f| f.verdict == Verdict::Slower && !f.canary) => Answer::Slower,
        () if any(&|f| f.grown.is_some()) => Answer::Grown,
        () if any(&|f| f.canary && f.verdict.is_change()) => Answer::Unfit,
        () if !findings.iter().any(asked) => Answer::Unmeasured,
        // Another attempt may measure a case that failed, but two builds that cannot be compared stay incomparable.
        () if any(&|f| f.progress == Progress::Measured && f.verdict == Verdict::Incomparable) => {
            Answer::Incomparable
        }
        () if any(&Finding::is_unmeasured) => Answer::Unmeasured,
        () if any(&|f| f.progress == Progress::Unfit) => Answer::Unfit,
        () if any(&|f| f.verdict == Verdict::Inconclusive) => Answer::Inconclusive,
        () => Answer::Pass,
    }
}

/// The findings of a comparison by pairs.
pub fn findings_from_pairs(paired: &Paired, rows: &[Row]) -> Vec<Finding> {
    let finding = |row: &Row| {
        let progress = paired
            .cases
            .iter()
            .find(|case| case.id == row.id)
            .map_or(Progress::Measured, |case| progress_of_pairs(paired, case));
        Finding {
            id: row.id.clone(),
            verdict: row.judgement.verdict,
            change: (row.pairs > 0).then_some(row.judgement.change.estimate),
            reason: row.judgement.reason.clone().or_else(|| row.remark.clone()),
            canary: row.canary,
            progress,
            ..Finding::default()
        }
    };
    rows.iter().map(finding).collect()
}

fn progress_of_pairs(paired: &Paired, case: &CasePairs) -> Progress {
    match &case.ended {
        Some(Ended { why: Why::Skipped, .. }) => Progress::Skipped,
        Some(Ended { why: Why::Failed, .. }) => Progress::Failed,
        None if case.unfit_reason(&paired.rule, paired.cases.len()).is_some() => Progress::Unfit,
        _ => Progress::Measured,
    }
}

/// The findings of a comparison of two builds by counts. Counts may grow by the share `limit`.
pub fn findings_from_counts(paired: &Paired, changes: &[CountChange], limit: f64) -> Vec<Finding> {
    let finding = |case: &CasePairs| {
        let change = changes.iter().find(|change| change.id == case.id);
        let verdict = change.map_or(Verdict::Incomparable, |change| change.verdict(limit));
        let reason = match (change, &case.ended) {
            (Some(change), _) => (verdict != Verdict::Same).then(|| change.sentence()),
            (None, Some(ended)) => Some(ended.sentence.clone()),
            (None, None) => Some(
                "a side counts no instructions, since its build is older, or the sides have two versions of the operation"
                    .into(),
            ),
        };
        Finding {
            id: case.id.clone(),
            verdict,
            change: change.map(|change| change.ratio() - 1.0),
            reason,
            progress: progress_of_pairs(paired, case),
            ..Finding::default()
        }
    };
    paired.cases.iter().map(finding).collect()
}

/// The findings of a comparison of two records.
pub fn findings_from_comparison(comparison: &Comparison) -> Vec<Finding> {
    let finding = |row: &super::comparison::Row| {
        let change = row.changes().next().cloned().unwrap_or_default();
        let values = row.cells.iter().filter(|cell| cell.value.is_some()).count();
        Finding {
            id: row.id.clone(),
            verdict: change.verdict,
            change: change.ratio.map(|ratio| ratio - 1.0),
            reason: change.reason,
            // If neither side could measure a case, that is not a fault of the new side.
            progress: if values == 0 { Progress::Skipped } else { Progress::Measured },
            ..Finding::default()
        }
    };
    comparison.rows.iter().map(finding).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::study::exact_count::changes_of_pairs;
    use syscost_engine::record::quantity::INSTRUCTIONS;
    use syscost_engine::record::{EventRate, Interval};

    fn finding(verdict: Verdict) -> Finding {
        let (id, change, reason) = ("a/b".into(), Some(0.0), None);
        let progress = Progress::Measured;
        Finding { id, verdict, change, reason, canary: false, progress, muted: None, grown: None }
    }

    #[test]
    fn one_slower_case_outweighs_all_others() {
        let all = [Verdict::Same, Verdict::Faster, Verdict::Inconclusive, Verdict::Slower].map(finding);
        assert_eq!(answer(&all).exit_status().code(), 1);
    }

    #[test]
    fn an_inconclusive_case_is_no_pass() {
        assert_eq!(answer(&[Verdict::Same, Verdict::Inconclusive].map(finding)).exit_status().code(), 4);
        assert_eq!(answer(&[Verdict::Same, Verdict::Incomparable].map(finding)).exit_status().code(), 3);
        assert_eq!(answer(&[Verdict::Same, Verdict::Faster].map(finding)).exit_status().code(), 0);
    }

    #[test]
    fn a_failed_case_is_called_not_measured_and_hides_no_incomparable_one() {
        let failed = Finding { progress: Progress::Failed, ..finding(Verdict::Incomparable) };
        assert_eq!(failed.verdict_name(), answer(std::slice::from_ref(&failed)).summary());
        assert_eq!(answer(&[finding(Verdict::Same), failed.clone()]).exit_status().code(), 125);
        assert_eq!(answer(&[finding(Verdict::Incomparable), failed]).exit_status().code(), 3);
    }

    #[test]
    fn a_moved_canary_makes_the_machine_unfit_but_excuses_no_slowdown() {
        let canary = || Finding { canary: true, ..finding(Verdict::Slower) };
        assert_eq!(answer(&[finding(Verdict::Same), canary()]).exit_status().code(), 5);
        assert_eq!(answer(&[finding(Verdict::Slower), canary()]).exit_status().code(), 1);
    }

    #[test]
    fn a_canary_alone_is_no_pass_of_the_selected_cases() {
        let canary = Finding { canary: true, ..finding(Verdict::Same) };
        let skipped = Finding { progress: Progress::Skipped, ..finding(Verdict::Incomparable) };
        assert_eq!(answer(&[canary, skipped]).exit_status().code(), 125);
    }

    #[test]
    fn a_case_that_both_sides_skip_is_no_failure() {
        let skipped = Finding { progress: Progress::Skipped, ..finding(Verdict::Incomparable) };
        assert_eq!(answer(&[finding(Verdict::Same), skipped.clone()]).exit_status().code(), 0);
        assert_eq!(answer(&[skipped]).exit_status().code(), 125, "nothing at all was asked");
    }

    #[test]
    fn a_bisection_gets_only_good_bad_and_skip() {
        for verdict in Verdict::ALL {
            let code = answer(&[finding(verdict)]).exit_for_bisect().code();
            assert!([0, 1, 125].contains(&code), "{verdict}: {code}");
        }
    }

    #[test]
    fn builds_are_judged_by_what_they_count() {
        let counted = |instructions| {
            let rate = Some(Interval::exactly(instructions));
            vec![EventRate { name: INSTRUCTIONS.into(), rate, remark: None }]
        };
        let code = |counts| {
            let case = CasePairs { id: "a/b".into(), counts, ..CasePairs::default() };
            let paired = Paired { cases: vec![case], ..Paired::default() };
            answer(&findings_from_counts(&paired, &changes_of_pairs(INSTRUCTIONS, &paired), 0.0))
                .exit_status()
                .code()
        };
        assert_eq!(code([counted(100.0), counted(100.0)]), 0);
        assert_eq!(code([counted(100.0), counted(101.0)]), 1);
        assert_eq!(code([counted(100.0), counted(99.0)]), 0);
        assert_eq!(code([counted(100.0), Vec::new()]), 3, "an older build");
    }

    #[test]
    fn more_allocations_fail_for_any_times() {
        let grown = |verdict| Finding { grown: Some("3 allocations".into()), ..finding(verdict) };
        for verdict in [Verdict::Same, Verdict::Faster, Verdict::Inconclusive] {
            assert_eq!(answer(&[finding(Verdict::Same), grown(verdict)]).exit_status().code(), 1);
        }
        let muted = Finding { muted: Some("known".into()), ..grown(Verdict::Same) };
        assert_eq!(answer(&[finding(Verdict::Same), muted]).exit_status().code(), 0);
    }

    #[test]
    fn a_muted_case_is_ignored() {
        let muted = Finding { muted: Some("known".into()), ..finding(Verdict::Slower) };
        assert_eq!(answer(&[finding(Verdict::Same), muted]).exit_status().code(), 0);
    }
}

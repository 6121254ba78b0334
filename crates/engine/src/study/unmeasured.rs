//! Runs in which no case has a number: they are a failure, and the reason is reported.

use crate::record::{Outcome, Record};

/// Why these runs have no number, as a sentence. `None` if they have one, or no case.
pub fn nothing_measured<'a>(runs: impl IntoIterator<Item = &'a Record>) -> Option<NothingMeasured> {
    let mut found = NothingMeasured::default();
    for (_, case) in runs.into_iter().flat_map(Record::cases) {
        let (count, sentence) = match &case.outcome {
            Outcome::Measured(_) => return None,
            Outcome::Skipped(sentence) => (&mut found.skipped, sentence),
            Outcome::Disturbed(sentence) => (&mut found.disturbed, sentence),
            Outcome::Failed(sentence) => (&mut found.failed, sentence),
        };
        *count += 1;
        // The reason of a case that ran is more useful than that of a skipped one.
        let says_more = matches!(case.outcome, Outcome::Disturbed(_)) && found.disturbed == 1;
        if found.first.is_none() || says_more {
            found.first = Some(format!("{}: {sentence}", case.id));
        }
    }
    found.first.is_some().then_some(found)
}

/// How the cases of such runs ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NothingMeasured {
    skipped: usize,
    disturbed: usize,
    failed: usize,
    first: Option<String>,
}

impl NothingMeasured {
    /// Whether every case was skipped because the machine lacks something that it needs.
    pub fn is_all_skipped(&self) -> bool {
        self.disturbed == 0 && self.failed == 0
    }

    /// The sentence for the user.
    pub fn sentence(&self) -> String {
        let counts = [(self.skipped, "skipped"), (self.disturbed, "disturbed"), (self.failed, "failed")];
        let told: Vec<_> = counts
            .iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, word)| format!("{count} {word}"))
            .collect();
        let first = self.first.as_deref().unwrap_or_default();
        format!("nothing was measured ({}), so that this run has no number; {first}", told.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::fixture_run;

    /// A run of which the cases ended so.
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
    fn a_run_without_a_number_says_why_and_one_with_a_number_nothing() {
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

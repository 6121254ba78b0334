//! A trial of verdicts between two links of one source, where every change that is found is false: by one link a side, as
//! most comparisons have it, and by links of their own for every pair.

use syscost_analysis::pair::experiment::{Experiment, Plan, Testbed};
use syscost_analysis::pair::sequence::Progress;
use syscost_analysis::pair::turns::Pair;
use syscost_analysis::pair::{Launch, Relink};
use syscost_analysis::record::paired::Rule;
use syscost_analysis::study::sequential::{Stand, case_state};
use syscost_build::link::{LinkCommand, Links};
use syscost_build::revision::Built;
use syscost_engine::case::Scale;
use syscost_engine::record::{Interval, Verdict};
use syscost_engine::trial::scratch;
use syscost_platform::error::Result;
use syscost_platform::signal;
use syscost_statistic::{Random, proportion_interval};

/// What is tried.
pub struct RelinkTrial<'a> {
    /// The build, and how it is linked.
    pub built: &'a Built,
    /// The command that links it.
    pub link: &'a LinkCommand,
    /// The rule on trial.
    pub rule: Rule,
    /// Verdicts a case in either way.
    pub rounds: usize,
    /// Seed of all random choices.
    pub seed: u64,
}

/// The verdicts on one case.
#[derive(Clone, Debug, Default)]
pub struct RelinkOutcome {
    /// Id of the case.
    pub id: String,
    /// Verdicts with one link a side.
    pub one_link: Vec<Verdict>,
    /// Verdicts with links of their own for every pair.
    pub own_links: Vec<Verdict>,
    /// Verdicts with links of their own whose interval holds the truth, which is no change.
    pub covered: usize,
    /// The largest change between two links that one link a side has shown, as a share.
    pub largest: f64,
    /// Why there are fewer verdicts than asked for.
    pub ended: Option<String>,
}

/// Verdicts that name a change, all of them false.
pub fn false_alarms(verdicts: &[Verdict]) -> usize {
    verdicts.iter().filter(|verdict| verdict.is_change()).count()
}

/// The share of false alarms, with its interval.
pub fn alarm_share<'a>(all: impl Iterator<Item = &'a [Verdict]>) -> Interval {
    let (alarms, verdicts) =
        all.fold((0, 0), |(alarms, verdicts), one| (alarms + false_alarms(one), verdicts + one.len()));
    proportion_interval(alarms as u64, verdicts as u64)
}

impl RelinkTrial<'_> {
    /// Reaches the verdicts on these cases. `watch` is called after each verdict.
    ///
    /// # Errors
    /// The build cannot be linked, or a side cannot be started.
    pub fn run(
        &self,
        testbed: &Testbed,
        ids: &[String],
        watch: &mut dyn FnMut(&str),
    ) -> Result<Vec<RelinkOutcome>> {
        let mut outcomes: Vec<_> =
            ids.iter().map(|id| RelinkOutcome { id: id.clone(), ..RelinkOutcome::default() }).collect();
        let mut random = Random::new(self.seed);
        for _ in 0..self.rounds {
            // Every round draws its links anew, and their files go with it.
            let commands = [self.link.clone(), self.link.clone()];
            let ([a, b], _places) = Links::for_both_sides(commands, self.built.home(), &mut random)?;
            let pointers = scratch::make_directory()?;
            let fixed = pointers.path().join("fixed");
            let one =
                [Launch::new("A", &a.link(0)?, None, &fixed)?, Launch::new("B", &b.link(0)?, None, &fixed)?];
            let binary = self.built.binary();
            let own = [
                Launch::new("A", &binary, None, pointers.path())?.with_links(a),
                Launch::new("B", &binary, None, pointers.path())?.with_links(b),
            ];
            for outcome in outcomes.iter_mut().filter(|outcome| outcome.ended.is_none()) {
                self.judge_case(testbed, &one, false, &mut random, outcome)?;
                self.judge_case(testbed, &own, true, &mut random, outcome)?;
                if signal::pending().is_some() {
                    return Ok(outcomes);
                }
                watch(&outcome.id);
            }
        }
        Ok(outcomes)
    }

    /// Adds one verdict to those of a case.
    fn judge_case(
        &self,
        testbed: &Testbed,
        sides: &[Launch; 2],
        relinks: bool,
        random: &mut Random,
        outcome: &mut RelinkOutcome,
    ) -> Result<()> {
        let plan = Plan {
            sides: Default::default(),
            by_turns: true,
            rule: self.rule,
            seed: self.seed,
            scale: Scale::Default,
            placement: relinks.then(|| self.link.placement().description()),
        };
        let experiment = Experiment { starts: [&sides[0], &sides[1]], plan };
        let mut ignore = |_: &Progress<'_>, _: Option<&Pair>| ();
        let case = testbed.compare_case(&experiment, &outcome.id, 1, [0.0; 2], random, &mut ignore)?;
        if let Some(ended) = case.ended {
            outcome.ended = Some(ended.sentence);
            return Ok(());
        }
        if let Stand::Closed(judgement) = case_state(&case.valid_log_ratios(), &self.rule, 1) {
            let change = judgement.change;
            if relinks {
                outcome.covered += usize::from(change.low <= 0.0 && change.high >= 0.0);
                outcome.own_links.push(judgement.verdict);
            } else {
                outcome.largest = outcome.largest.max(change.estimate.abs());
                outcome.one_link.push(judgement.verdict);
            }
        }
        Ok(())
    }
}

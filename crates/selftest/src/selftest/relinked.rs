//! `syscost selftest --relinked`: false alarms between two links of one source, with one link per side and with many.

use super::Args;
use crate::error::{Error, Result};
use crate::platform::signal;
use serde::Serialize;
use std::process::ExitCode;
use syscost_analysis::pair::experiment::{Plan, Roster, Testbed};
use syscost_analysis::pair::sequence::{ByTurns, Progress};
use syscost_analysis::pair::turns::Pair;
use syscost_analysis::pair::{Launch, Relink, Start};
use syscost_analysis::record::paired::Rule;
use syscost_analysis::study::sequential::{Stand, case_state};
use syscost_build::link::{LinkCommand, Links};
use syscost_build::revision::{Built, build_revision};
use syscost_command_line::page::{self, Tone};
use syscost_engine::driver::layout;
use syscost_engine::exit::Exit;
use syscost_engine::record::{Interval, Verdict};
use syscost_engine::trial::scratch;
use syscost_statistic::{Random, proportion_interval};

/// The largest accepted share of false alarms.
const ALARMS: f64 = 0.01;

/// Links the revision repeatedly, compares links by pairs, and prints the number of changes that were found.
///
/// # Errors
/// An error where the revision does not build, cannot be linked again, or has no such case.
pub fn run(rev: &str, args: &Args) -> Result<ExitCode> {
    let built = build_revision(rev, &args.build.recipe(true), &page::write_to_stderr)?;
    let link =
        built.link.as_ref().ok_or_else(|| Error::Missing("this build cannot be linked again".into()))?;
    let testbed = Testbed::set_up()?;
    let ids = choose_ids(&testbed, &built.binary(), &args.cases)?;
    let rounds = args.verdicts.unwrap_or(3).max(1);
    let trial = RelinkTrial { built: &built, link, rule: Rule::default(), rounds, seed: args.seed };
    let bar = page::progress_bar(ids.len() * rounds, "{pos}/{len} {msg:.bold} {wide_bar} {eta} left");
    let outcomes = trial.run(&testbed, &ids, &mut |id| {
        bar.inc(1);
        bar.set_message(id.to_owned());
    })?;
    bar.finish_and_clear();
    page::write_json_or(args.json, &outcomes, || outcome_text(&outcomes))?;
    let own = alarm_share(outcomes.iter().map(|outcome| &*outcome.own_links));
    let is_empty = outcomes.iter().all(|outcome| outcome.own_links.is_empty());
    Ok(Exit::failed_if(is_empty || own.low > ALARMS).or_signal(signal::pending()).into())
}

fn choose_ids(testbed: &Testbed, binary: &std::path::Path, wanted: &[String]) -> Result<Vec<String>> {
    let place = scratch::make_directory()?;
    let side = Launch::new("A", binary, None, place.path())?;
    let Roster { ids, .. } = testbed.match_cases([&side as &dyn Start, &side])?;
    if let Some(missing) = wanted.iter().find(|id| !ids.contains(id)) {
        return Err(Error::Usage(format!(
            "this bench has no case {missing}; `syscost list` prints those of ours"
        )));
    }
    Ok(if wanted.is_empty() { ids } else { wanted.to_vec() })
}

fn outcome_text(outcomes: &[RelinkOutcome]) -> String {
    let head = ["case", "false, one link", "largest", "false, own links", "same", "inconclusive"];
    let count = |verdicts: &[Verdict], wanted| verdicts.iter().filter(|verdict| **verdict == wanted).count();
    let rows = outcomes.iter().map(|outcome| {
        let share = |verdicts: &[Verdict]| format!("{}/{}", false_alarms(verdicts), verdicts.len());
        let cells = [
            outcome.id.clone(),
            share(&outcome.one_link),
            format!("{:.1} %", 100.0 * outcome.largest),
            share(&outcome.own_links),
            count(&outcome.own_links, Verdict::Same).to_string(),
            count(&outcome.own_links, Verdict::Inconclusive).to_string(),
        ];
        (Tone::Plain, cells)
    });
    let ended =
        outcomes.iter().filter_map(|outcome| Some(format!("{}: {}", outcome.id, outcome.ended.as_ref()?)));
    let sentence = |what: &str, share: Interval, all: usize| {
        let percent = |value: f64| 100.0 * value;
        format!(
            "{what}: {:.1} % of {all} verdicts name a change that is none [{:.1}, {:.1}]",
            percent(share.estimate),
            percent(share.low),
            percent(share.high)
        )
    };
    let one = outcomes.iter().map(|outcome| &*outcome.one_link);
    let own = outcomes.iter().map(|outcome| &*outcome.own_links);
    let sentences = ended.chain([
        sentence("one link a side", alarm_share(one.clone()), one.map(<[_]>::len).sum()),
        sentence("links of their own for every pair", alarm_share(own.clone()), own.map(<[_]>::len).sum()),
    ]);
    let (held, all) = outcomes
        .iter()
        .fold((0, 0), |(held, all), outcome| (held + outcome.covered, all + outcome.own_links.len()));
    let covered =
        format!("{held} of {all} intervals over links of their own hold the truth, which is no change");
    let sentences = sentences.chain([covered]);
    page::table(head, rows, usize::MAX, layout()) + "\n" + &page::wrap_sentences(sentences, layout())
}

/// The subject of a trial: a build, the command that links it, and the rule to test.
struct RelinkTrial<'a> {
    built: &'a Built,
    link: &'a LinkCommand,
    rule: Rule,
    rounds: usize,
    seed: u64,
}

/// The verdicts on one case.
#[derive(Clone, Debug, Default, Serialize)]
struct RelinkOutcome {
    id: String,
    /// Verdicts with one link per side.
    one_link: Vec<Verdict>,
    /// Verdicts with new links for every pair.
    own_links: Vec<Verdict>,
    /// The number of verdicts with new links whose interval contains the true change, which is 0.
    covered: usize,
    /// The largest change between two links that was found with one link per side, as a share.
    largest: f64,
    /// The reason why there are fewer verdicts than requested.
    ended: Option<String>,
}

/// The number of verdicts that name a change, all of which are false.
fn false_alarms(verdicts: &[Verdict]) -> usize {
    verdicts.iter().filter(|verdict| verdict.is_change()).count()
}

/// The share of false alarms, with its interval.
fn alarm_share<'a>(all: impl Iterator<Item = &'a [Verdict]>) -> Interval {
    let (alarms, verdicts) =
        all.fold((0, 0), |(alarms, verdicts), one| (alarms + false_alarms(one), verdicts + one.len()));
    proportion_interval(alarms as u64, verdicts as u64)
}

impl RelinkTrial<'_> {
    /// Reaches the verdicts on these cases. It calls `watch` after each verdict.
    fn run(
        &self,
        testbed: &Testbed,
        ids: &[String],
        watch: &mut dyn FnMut(&str),
    ) -> Result<Vec<RelinkOutcome>> {
        let mut outcomes: Vec<_> =
            ids.iter().map(|id| RelinkOutcome { id: id.clone(), ..RelinkOutcome::default() }).collect();
        let mut random = Random::new(self.seed);
        for _ in 0..self.rounds {
            // Every round makes new links, whose files are removed at its end.
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

    /// Adds one verdict to the outcome of a case.
    fn judge_case(
        &self,
        testbed: &Testbed,
        sides: &[Launch; 2],
        relinks: bool,
        random: &mut Random,
        outcome: &mut RelinkOutcome,
    ) -> Result<()> {
        let placement = relinks.then(|| self.link.placement().description());
        let plan = Plan { placement, ..Plan::by_turns(Default::default(), self.rule, self.seed) };
        let pairing = testbed.case_pairing(&plan, [&sides[0], &sides[1]], 1);
        let mut ignore = |_: &Progress<'_>, _: Option<&Pair>| ();
        let case = pairing.compare_case(&outcome.id, [0.0; 2], &mut ByTurns, random, &mut ignore)?;
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

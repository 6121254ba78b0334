//! `syscost selftest --relinked`: false alarms between two links of one source, with one link a side and with many.

use crate::error::{Error, Result};
use crate::platform::signal;
use serde_json::{Value, json};
use std::process::ExitCode;
use syscost_analysis::pair::experiment::{Experiment, Plan, Roster, Testbed};
use syscost_analysis::pair::sequence::Progress;
use syscost_analysis::pair::turns::Pair;
use syscost_analysis::pair::{Launch, Relink, Start};
use syscost_analysis::record::paired::Rule;
use syscost_analysis::study::sequential::{Stand, case_state};
use syscost_build::link::{LinkCommand, Links};
use syscost_build::revision::{Built, build_revision};
use syscost_command_line::flag::BuildFlags;
use syscost_command_line::page::{self, Tone};
use syscost_engine::case::Scale;
use syscost_engine::driver::layout;
use syscost_engine::exit::Exit;
use syscost_engine::record::{Interval, Verdict};
use syscost_engine::trial::scratch;
use syscost_statistic::{Random, proportion_interval};

/// Largest share of false alarms.
const ALARMS: f64 = 0.01;

/// What is tried, as the command line has it.
pub struct Request<'a> {
    /// The revision to build.
    pub rev: &'a str,
    /// What to build of it.
    pub build: &'a BuildFlags,
    /// Ids of the cases; all if there are none.
    pub cases: &'a [String],
    /// Verdicts a case in either way.
    pub rounds: usize,
    /// Seed of everything random.
    pub seed: u64,
    /// Whether to print JSON.
    pub json: bool,
}

/// Links the revision anew again and again, compares links by pairs, and prints how many changes were found.
///
/// # Errors
/// The revision does not build, cannot be linked again, or has no such case.
pub fn run(request: &Request<'_>) -> Result<ExitCode> {
    let built = build_revision(request.rev, &request.build.recipe(true), &page::write_to_stderr)?;
    let link =
        built.link.as_ref().ok_or_else(|| Error::Missing("this build cannot be linked again".into()))?;
    let testbed = Testbed::set_up()?;
    let ids = choose_ids(&testbed, &built.binary(), request.cases)?;
    let trial = RelinkTrial { built: &built, link, rule: Rule::default(), request };
    let bar = page::progress_bar(ids.len() * request.rounds, "{pos}/{len} {msg:.bold} {wide_bar} {eta} left");
    let outcomes = trial.run(&testbed, &ids, &mut |id| {
        bar.inc(1);
        bar.set_message(id.to_owned());
    })?;
    bar.finish_and_clear();
    if request.json {
        page::write_json(&outcomes.iter().map(outcome_json).collect::<Value>())?;
    } else {
        page::write(&outcome_text(&outcomes))?;
    }
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

fn outcome_json(outcome: &RelinkOutcome) -> Value {
    let names = |verdicts: &[Verdict]| verdicts.iter().map(ToString::to_string).collect::<Vec<_>>();
    json!({
        "id": outcome.id, "one_link": names(&outcome.one_link), "own_links": names(&outcome.own_links),
        "covered": outcome.covered, "largest": outcome.largest, "ended": outcome.ended,
    })
}

/// What is tried: a build, the command that links it, and the rule on trial.
struct RelinkTrial<'a> {
    built: &'a Built,
    link: &'a LinkCommand,
    rule: Rule,
    request: &'a Request<'a>,
}

/// The verdicts on one case.
#[derive(Clone, Debug, Default)]
struct RelinkOutcome {
    id: String,
    /// Verdicts with one link a side.
    one_link: Vec<Verdict>,
    /// Verdicts with links of their own for every pair.
    own_links: Vec<Verdict>,
    /// Verdicts with links of their own whose interval holds the truth, which is no change.
    covered: usize,
    /// The largest change between two links that one link a side has shown, as a share.
    largest: f64,
    /// Why there are fewer verdicts than asked for.
    ended: Option<String>,
}

/// Verdicts that name a change, all of them false.
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
    /// Reaches the verdicts on these cases. `watch` is called after each verdict.
    fn run(
        &self,
        testbed: &Testbed,
        ids: &[String],
        watch: &mut dyn FnMut(&str),
    ) -> Result<Vec<RelinkOutcome>> {
        let mut outcomes: Vec<_> =
            ids.iter().map(|id| RelinkOutcome { id: id.clone(), ..RelinkOutcome::default() }).collect();
        let mut random = Random::new(self.request.seed);
        for _ in 0..self.request.rounds {
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
            seed: self.request.seed,
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

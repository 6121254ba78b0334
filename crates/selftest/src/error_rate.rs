//! Error rates of the comparison method: a side against itself, where every alarm is false, and a side against itself
//! with a slowdown of known size, which must be found.
//!
//! If an operation enters the kernel, the slowdown is in the kernel: both sides run under a seccomp filter, and the filter of
//! B is longer. Any other operation is followed by a known number of dependent additions, which take one core cycle each.

use crate::error::{Error, Result};
use crate::platform::process::tool::quote_for_shell;
use crate::platform::seccomp::LONGEST;
use crate::platform::signal;
use crate::statistic::{Change, Random, change_between, median};
use serde::Serialize;
use std::cell::Cell;
use std::fmt;
use std::path::Path;
use std::time::{Duration, Instant};
use syscost_analysis::pair::Launch;
use syscost_analysis::pair::experiment::{Plan, Testbed};
use syscost_analysis::pair::sequence::{ByTurns, Progress};
use syscost_analysis::pair::turns::Pair;
use syscost_analysis::record::paired::{CasePairs, Rule};
use syscost_analysis::study::sequential::{Stand, case_state};
use syscost_engine::case::{Claim, Group};
use syscost_engine::pair::side::find_case;
use syscost_engine::record::Verdict;
use syscost_engine::trial::scratch::{self, Scratch};

/// The number of corrections of the first guess at a slowdown.
const CORRECTIONS: usize = 6;
/// The accepted relative error of the injected slowdown, on a log scale.
const NEAR: f64 = 0.1;
/// The number of resamples of the two-process rule, which suffice for a p-value of 0.05.
const RESAMPLES: usize = 1_000;

/// Starts both sides, under seccomp filters of these lengths if there are any.
pub type Start<'a> = dyn Fn(Option<[usize; 2]>) -> Result<[Launch; 2]> + 'a;

/// Parameters of the trial of the method.
pub struct Parameters<'a> {
    /// The function that starts the sides.
    pub start: &'a Start<'a>,
    /// The rule on trial.
    pub rule: Rule,
    /// Seed of all random choices.
    pub seed: u64,
    /// Number of cases that a comparison would have.
    pub cases: usize,
    /// The groups of the cases.
    pub groups: &'a [Group],
}

/// The way in which a case is slowed.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Slowdown {
    /// Whether a seccomp filter slows each system call; otherwise a loop slows each iteration.
    by_filter: bool,
    additions: f64,
}

impl Slowdown {
    /// The same kind of slowdown with another number of additions.
    fn with_additions(self, additions: f64) -> Self {
        let of_filter = additions.round().clamp(1.0, (LONGEST - 2) as f64);
        Self { additions: if self.by_filter { of_filter } else { additions }, ..self }
    }
}

impl fmt::Display for Slowdown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { by_filter, additions } = self;
        if *by_filter { write!(f, "filter {additions}") } else { write!(f, "spin {additions:.3}") }
    }
}

/// The verdicts on one case at one true change.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Outcome {
    /// Id of the case.
    pub id: String,
    /// The intended slowdown, as a share; 0 for a side against itself.
    pub asked: f64,
    /// The slowdown measured as the median of all pairs.
    pub injected: f64,
    /// The kind of slowdown: a filter of that many additions per call, or a spin of that many per iteration.
    pub means: String,
    /// The verdicts that were reached.
    pub verdicts: Vec<Verdict>,
    /// The number of attempts without a verdict, because too many pairs were rejected.
    pub unfit: usize,
    /// Wall time of each verdict, seconds.
    pub seconds: Vec<f64>,
    /// The number of pairs that were used.
    pub pairs: usize,
    /// The number of pairs that were rejected.
    pub rejected: usize,
    /// The smallest change that the pairs of each verdict could show, as a share.
    pub detectable: Vec<f64>,
    /// The two-process rule on consecutive processes of side A: numbers of comparisons and of alarms.
    #[serde(rename = "two_processes_in_turn")]
    pub in_turn: (usize, usize),
    /// The two-process rule on the two sides of each pair: numbers of comparisons and of alarms in the right direction.
    #[serde(rename = "two_processes_side_by_side")]
    pub side_by_side: (usize, usize),
    /// The reason why there are fewer verdicts than requested.
    pub ended: Option<String>,
}

impl Outcome {
    /// The number of these verdicts.
    pub fn count_verdict(&self, verdict: Verdict) -> usize {
        self.verdicts.iter().filter(|v| **v == verdict).count()
    }

    fn add(&mut self, case: &CasePairs, parameters: &Parameters<'_>, seconds: f64) {
        let differences = case.valid_log_ratios();
        match case_state(&differences, &parameters.rule, parameters.cases) {
            Stand::Closed(judgement) => {
                self.verdicts.push(judgement.verdict);
                self.seconds.push(seconds);
            }
            Stand::Open(_) => self.unfit += 1,
        }
        self.pairs += differences.len();
        self.rejected += case.pairs.len() - differences.len();
        let detectable = parameters.rule.detectable_change(&differences);
        self.detectable.extend(detectable.is_finite().then_some(detectable));
    }

    /// Applies the two-process rule to the processes of a pair. `before` holds the values of side A of the previous pair.
    fn apply_two_process_rule(&mut self, pair: &Pair, before: &mut Option<Vec<f64>>) {
        let [a, b] = [0, 1].map(|side| pair.turn_means(side));
        let seed = self.side_by_side.0 as u64;
        let right = if self.asked > 0.0 { Change::Slower } else { Change::None };
        let change = change_between(&a, &b, RESAMPLES, seed);
        self.side_by_side.0 += 1;
        self.side_by_side.1 +=
            usize::from(change != Change::None && (right == Change::None || change == right));
        if let Some(before) = before.replace(a.clone()) {
            self.in_turn.0 += 1;
            self.in_turn.1 += usize::from(change_between(&before, &a, RESAMPLES, seed) != Change::None);
        }
    }
}

/// Reaches `count` verdicts on one case under a slowdown of this share. It calls `watch` after every verdict.
///
/// # Errors
/// An error where a side cannot be started.
pub fn reach_verdicts(
    testbed: &Testbed,
    parameters: &Parameters<'_>,
    id: &str,
    share: f64,
    count: usize,
    watch: &mut dyn FnMut(&Outcome),
) -> Result<Outcome> {
    let mut random = Random::new(parameters.seed ^ hash(id) ^ share.to_bits());
    let mut outcome = Outcome { id: id.to_owned(), asked: share, ..Outcome::default() };
    let injection = Injection { testbed, parameters, id };
    let slowdown = if share > 0.0 { Some(injection.calibrate_slowdown(share, &mut random)?) } else { None };
    outcome.means = slowdown.map_or_else(|| "–".into(), |slowdown| slowdown.to_string());
    let mut differences = Vec::new();
    let mut before = None;
    while outcome.verdicts.len() + outcome.unfit < count && signal::pending().is_none() {
        let begun = Instant::now();
        // The resampling of the two-process rule does not count as time of our rule.
        let mut resampling = Duration::ZERO;
        let mut record = |pair: &Pair| {
            let begun = Instant::now();
            outcome.apply_two_process_rule(pair, &mut before);
            resampling += begun.elapsed();
        };
        let case = injection.compare_slowed(
            slowdown,
            parameters.rule,
            parameters.cases,
            &mut random,
            &mut record,
        )?;
        if signal::pending().is_some() {
            break;
        }
        if let Some(ended) = case.ended {
            outcome.ended = Some(ended.sentence);
            break;
        }
        outcome.add(&case, parameters, (begun.elapsed() - resampling).as_secs_f64());
        differences.extend(case.valid_log_ratios());
        watch(&outcome);
    }
    outcome.injected = median(&differences).exp_m1();
    Ok(outcome)
}

/// The number of additions of a filter that slows this case, which enters the kernel, by this share.
///
/// # Errors
/// An error where a side cannot be started, or where the case does not enter the kernel.
pub fn calibrate_filter(
    testbed: &Testbed,
    parameters: &Parameters<'_>,
    id: &str,
    share: f64,
) -> Result<usize> {
    let mut random = Random::new(parameters.seed ^ hash(id) ^ share.to_bits());
    match (Injection { testbed, parameters, id }).calibrate_slowdown(share, &mut random)? {
        Slowdown { by_filter: true, additions } => Ok(additions as usize),
        Slowdown { by_filter: false, .. } => {
            Err(Error::Usage(format!("{id} makes no system call that a filter could slow")))
        }
    }
}

/// A case into which slowdowns are injected.
struct Injection<'a> {
    testbed: &'a Testbed,
    parameters: &'a Parameters<'a>,
    id: &'a str,
}

impl Injection<'_> {
    /// Compares the case with itself; side B is slowed.
    fn compare_slowed(
        &self,
        slowdown: Option<Slowdown>,
        rule: Rule,
        cases: usize,
        random: &mut Random,
        record: &mut dyn FnMut(&Pair),
    ) -> Result<CasePairs> {
        let (filters, spin) = match slowdown {
            Some(Slowdown { by_filter: true, additions }) => (Some([0, additions as usize]), 0.0),
            Some(Slowdown { by_filter: false, additions }) => (None, additions),
            None => (None, 0.0),
        };
        let launches = (self.parameters.start)(filters)?;
        let plan = Plan::by_turns(Default::default(), rule, self.parameters.seed);
        let pairing = self.testbed.case_pairing(&plan, [&launches[0], &launches[1]], cases);
        let mut watch = |_: &Progress<'_>, pair: Option<&Pair>| pair.into_iter().for_each(&mut *record);
        pairing.compare_case(self.id, [0.0, spin], &mut ByTurns, random, &mut watch)
    }

    /// A pilot run under this slowdown. Returns the log of the change, and the cost of an iteration on side A, ns.
    fn run_pilot(&self, slowdown: Option<Slowdown>, random: &mut Random) -> Result<(f64, f64)> {
        let mut pairs: Vec<(f64, f64)> = Vec::new();
        let mut record = |pair: &Pair| pairs.push((pair.log_ratio(), median(&pair.turn_costs(0))));
        // This rule ends the case after sixteen pairs, whatever they show.
        let soon = Rule { threshold: 0.9, margin: 0.0, looks: 2 };
        self.compare_slowed(slowdown, soon, 1, random, &mut record)?;
        let median_of = |value: fn(&(f64, f64)) -> f64| median(&pairs.iter().map(value).collect::<Vec<_>>());
        Ok((median_of(|pair| pair.0), self.testbed.ticks_to_nanoseconds(median_of(|pair| pair.1))))
    }

    /// Finds the slowdown of this share: a guess, corrected by pilot runs. The cost of a filter is not proportional to its
    /// length, because its first additions overlap with other work.
    fn calibrate_slowdown(&self, share: f64, random: &mut Random) -> Result<Slowdown> {
        let target = share.ln_1p();
        let mut slowdown = self.guess_slowdown(share, random)?;
        let (mut below, mut above) = (0.0, f64::INFINITY);
        let mut nearest = (f64::INFINITY, slowdown);
        for _ in 0..CORRECTIONS {
            let (found, _) = self.run_pilot(Some(slowdown), random)?;
            let by = target / found.max(target / 8.0);
            if by.ln().abs() < nearest.0 {
                nearest = (by.ln().abs(), slowdown);
            }
            if by.ln().abs() < NEAR {
                break;
            }
            let additions = slowdown.additions;
            if by > 1.0 {
                below = additions
            } else {
                above = additions
            }
            // Changes the number in proportion, or by bisection if the proportion leaves the known bounds.
            let next = additions * by;
            let inside = (below..above).contains(&next);
            slowdown = slowdown.with_additions(if inside || above.is_infinite() {
                next
            } else {
                (below + above) / 2.0
            });
        }
        Ok(nearest.1)
    }

    fn guess_slowdown(&self, share: f64, random: &mut Random) -> Result<Slowdown> {
        let (_, cost_ns) = self.run_pilot(None, random)?;
        // One addition takes one core cycle.
        let additions = share * cost_ns * self.testbed.core_hz() / 1e9;
        let by_filter = enters_the_kernel(self.parameters.groups, self.id);
        Ok(Slowdown { by_filter, additions }.with_additions(additions))
    }
}

/// Whether a filter at the kernel's entry can slow the case. `mapping` is excluded: it takes milliseconds between two
/// calls, and would need a filter longer than the kernel accepts.
fn enters_the_kernel(groups: &[Group], id: &str) -> bool {
    let case = find_case(groups, id).filter(|_| !id.starts_with("mapping/"));
    case.is_some_and(|(_, case)| case.claims.iter().any(|claim| matches!(claim, Claim::Enters(_))))
}

/// The FNV-1a hash, which gives every case its own random numbers.
fn hash(id: &str) -> u64 {
    id.bytes()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

/// Prepares sides of one binary; each pair of sides has a directory of its own.
pub struct SlowedSides<'a> {
    exe: &'a Path,
    links: Scratch,
    number: Cell<usize>,
}

impl<'a> SlowedSides<'a> {
    /// Sides that run this binary.
    ///
    /// # Errors
    /// An error where there is no scratch directory.
    pub fn new(exe: &'a Path) -> Result<Self> {
        Ok(Self { exe, links: scratch::make_directory()?, number: Cell::new(0) })
    }

    /// Describes how both sides are started, under seccomp filters of these numbers of additions if there are any.
    ///
    /// # Errors
    /// The errors of [`Launch::new`].
    pub fn prepare_launches(&self, filters: Option<[usize; 2]>) -> Result<[Launch; 2]> {
        self.number.set(self.number.get() + 1);
        let directory = self.links.path().join(self.number.get().to_string());
        let quoted = quote_for_shell(&self.exe.display().to_string());
        let wrap = |side: usize| {
            filters.map(|additions| format!("{quoted} burden --additions {} --", additions[side]))
        };
        Ok([
            Launch::new("A", self.exe, wrap(0), &directory)?,
            Launch::new("B", self.exe, wrap(1), &directory)?,
        ])
    }
}

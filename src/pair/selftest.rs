//! The method on trial: a side against itself, where every alarm is false, and a side against itself with a
//! slowdown of known size, which must be found.
//!
//! Where an operation enters the kernel the kernel itself slows it: both sides run under a seccomp filter, and that
//! of B is longer. Anything else spins for a known number of dependent additions, one core cycle each.

use super::contest::{Contest, Ring};
use super::process::Launch;
use super::turns::Pair;
use crate::Result;
use crate::case::Group;
use crate::case::{Case, Claim, Scale};
use crate::platform::signal;
use crate::platform::slowdown::LONGEST;
use crate::record::Verdict;
use crate::record::paired::{CasePairs, Rule};
use crate::statistic::{Change, Random, change_between, median};
use crate::study::sequential::{Stand, stand};
use crate::suite;
use std::time::{Duration, Instant};

/// Corrections of a first guess.
const CORRECTIONS: usize = 6;
/// A slowdown is near enough when it is off by this share of itself.
const NEAR: f64 = 0.1;
/// Resamples of the rule of two processes: as many as its p-value of 0.05 needs.
const RESAMPLES: usize = 1_000;

/// How both sides are started under filters of these lengths, where they are to be.
pub type Start<'a> = dyn Fn(Option<[usize; 2]>) -> Result<[Launch; 2]> + 'a;

/// What is asked of the method.
pub struct Asked<'a> {
    /// How sides are started.
    pub start: &'a Start<'a>,
    /// The rule on trial.
    pub rule: Rule,
    /// Seed of everything random.
    pub seed: u64,
    /// How many cases a suite would have.
    pub cases: usize,
}

/// How a case is slowed.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Burden {
    /// Additions of a filter at each system call.
    Filter(f64),
    /// Additions after each iteration.
    Spin(f64),
}

impl Burden {
    fn additions(self) -> f64 {
        match self {
            Self::Filter(additions) | Self::Spin(additions) => additions,
        }
    }

    /// The same means with so many additions.
    fn with(self, additions: f64) -> Self {
        match self {
            Self::Filter(_) => Self::Filter(additions.round().clamp(1.0, (LONGEST - 2) as f64)),
            Self::Spin(_) => Self::Spin(additions),
        }
    }
}

/// What came of the verdicts of one case and one true change.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// The case.
    pub id: String,
    /// The slowdown that was asked for; 0 for a side against itself.
    pub asked: f64,
    /// The slowdown that was there, by the median of all pairs.
    pub injected: f64,
    /// How it was slowed: by a filter of so many additions a call, or a spin of so many an iteration.
    pub means: String,
    /// Verdicts reached.
    pub verdicts: Vec<Verdict>,
    /// How often the machine was unfit for one.
    pub unfit: usize,
    /// Wall time of each, seconds.
    pub seconds: Vec<f64>,
    /// Pairs that were used.
    pub pairs: usize,
    /// Pairs that were rejected.
    pub rejected: usize,
    /// The smallest change that such pairs would show, as a share, verdict by verdict.
    pub detectable: Vec<f64>,
    /// What the rule of two processes says of two processes of one side, one after the other: comparisons, alarms.
    pub in_turn: (usize, usize),
    /// The same of the two sides of each pair: comparisons, alarms in the right direction.
    pub side_by_side: (usize, usize),
    /// Why there are fewer verdicts than asked for.
    pub ended: Option<String>,
}

impl Outcome {
    /// How many verdicts were this one.
    pub fn count(&self, verdict: Verdict) -> usize {
        self.verdicts.iter().filter(|v| **v == verdict).count()
    }
}

/// Reaches so many verdicts of one case under a slowdown of this share. `watch` hears of every verdict.
pub fn verdicts(
    ring: &Ring,
    asked: &Asked<'_>,
    id: &str,
    slowdown: f64,
    count: usize,
    watch: &mut dyn FnMut(&Outcome),
) -> Result<Outcome> {
    let mut random = Random::new(asked.seed ^ hash(id) ^ slowdown.to_bits());
    let mut outcome = Outcome { id: id.to_owned(), asked: slowdown, ..Outcome::default() };
    let mut examiner = Examiner { ring, asked, id };
    let burden = if slowdown > 0.0 { Some(examiner.burden(slowdown, &mut random)?) } else { None };
    outcome.means = burden.map_or_else(|| "–".into(), |burden| examiner.words(burden));
    let mut differences = Vec::new();
    let mut before: Option<Vec<f64>> = None;
    while outcome.verdicts.len() + outcome.unfit < count && signal::pending().is_none() {
        let begun = Instant::now();
        let mut aside = Duration::ZERO;
        let mut hear = |pair: &Pair| {
            let begun = Instant::now();
            two_processes(pair, slowdown, &mut before, &mut outcome);
            aside += begun.elapsed();
        };
        let case = examiner.case(burden, asked.rule, asked.cases, &mut random, &mut hear)?;
        if signal::pending().is_some() {
            break;
        }
        if let Some(ended) = case.ended {
            outcome.ended = Some(ended.sentence);
            break;
        }
        // The other rule's resampling is not part of ours.
        outcome.add(&case, asked, (begun.elapsed() - aside).as_secs_f64());
        differences.extend(case.differences());
        watch(&outcome);
    }
    outcome.injected = median(&differences).exp_m1();
    Ok(outcome)
}

impl Outcome {
    fn add(&mut self, case: &CasePairs, asked: &Asked<'_>, seconds: f64) {
        let differences = case.differences();
        match stand(&differences, &asked.rule, asked.cases) {
            Stand::Closed(judgement) if case.unfit().is_none() => {
                self.verdicts.push(judgement.verdict);
                self.seconds.push(seconds);
            }
            _ => self.unfit += 1,
        }
        self.pairs += differences.len();
        self.rejected += case.pairs.len() - differences.len();
        self.detectable.extend(Some(asked.rule.detectable(&differences)).filter(|share| share.is_finite()));
    }
}

/// What the rule of two processes would have said of the same processes.
fn two_processes(pair: &Pair, slowdown: f64, before: &mut Option<Vec<f64>>, outcome: &mut Outcome) {
    let [a, b] = [0, 1].map(|side| pair.means(side));
    let seed = outcome.side_by_side.0 as u64;
    let right = if slowdown > 0.0 { Change::Slower } else { Change::None };
    let said = change_between(&a, &b, RESAMPLES, seed);
    outcome.side_by_side.0 += 1;
    outcome.side_by_side.1 += usize::from(said != Change::None && (right == Change::None || said == right));
    if let Some(before) = before.replace(a.clone()) {
        outcome.in_turn.0 += 1;
        outcome.in_turn.1 += usize::from(change_between(&before, &a, RESAMPLES, seed) != Change::None);
    }
}

/// One case under examination.
struct Examiner<'a> {
    ring: &'a Ring,
    asked: &'a Asked<'a>,
    id: &'a str,
}

impl Examiner<'_> {
    fn case(
        &mut self,
        burden: Option<Burden>,
        rule: Rule,
        cases: usize,
        random: &mut Random,
        hear: &mut dyn FnMut(&Pair),
    ) -> Result<CasePairs> {
        let (filters, spin) = match burden {
            Some(Burden::Filter(additions)) => (Some([0, additions as usize]), 0.0),
            Some(Burden::Spin(additions)) => (None, additions),
            None => (None, 0.0),
        };
        let launches = (self.asked.start)(filters)?;
        let contest = Contest {
            launches: [&launches[0], &launches[1]],
            sides: [String::new(), String::new()],
            by_turns: true,
            rule,
            seed: self.asked.seed,
            scale: Scale::Default,
        };
        let mut watch =
            |_: &super::sequence::Progress<'_>, pair: Option<&Pair>| pair.into_iter().for_each(&mut *hear);
        self.ring.case(&contest, self.id, cases, [0.0, spin], random, &mut watch)
    }

    /// Some pairs under this burden: the change in log, and what an iteration costs on side A, ns.
    fn learn(&mut self, burden: Option<Burden>, random: &mut Random) -> Result<(f64, f64)> {
        let mut pairs: Vec<(f64, f64)> = Vec::new();
        let mut hear = |pair: &Pair| pairs.push((pair.difference(), median(&pair.costs(0))));
        // Only the pairs are wanted: a rule that ends after sixteen of them, whatever they say.
        let soon = Rule { threshold: 0.9, margin: 0.0, looks: 2 };
        self.case(burden, soon, 1, random, &mut hear)?;
        let of = |value: fn(&(f64, f64)) -> f64| median(&pairs.iter().map(value).collect::<Vec<_>>());
        Ok((of(|pair| pair.0), self.ring.nanoseconds(of(|pair| pair.1))))
    }

    /// How to slow this case by a share: a first guess, and corrections by what it does. The first additions of a
    /// filter hide behind other work, so its price is not in proportion to its length.
    fn burden(&mut self, share: f64, random: &mut Random) -> Result<Burden> {
        let target = share.ln_1p();
        let mut burden = self.first_guess(share, random)?;
        let (mut below, mut above) = (0.0, f64::INFINITY);
        let mut nearest = (f64::INFINITY, burden);
        for _ in 0..CORRECTIONS {
            let (found, _) = self.learn(Some(burden), random)?;
            let by = target / found.max(target / 8.0);
            if by.ln().abs() < nearest.0 {
                nearest = (by.ln().abs(), burden);
            }
            if by.ln().abs() < NEAR {
                break;
            }
            let additions = burden.additions();
            if by > 1.0 {
                below = additions
            } else {
                above = additions
            }
            // In proportion, unless that leads out of what is known to be too little and too much.
            let next = additions * by;
            let inside = (below..above).contains(&next);
            burden = burden.with(if inside || above.is_infinite() { next } else { (below + above) / 2.0 });
        }
        Ok(nearest.1)
    }

    fn first_guess(&mut self, share: f64, random: &mut Random) -> Result<Burden> {
        let (_, cost_ns) = self.learn(None, random)?;
        // One addition is one cycle of the core.
        let additions = share * cost_ns * self.ring.core_hz() / 1e9;
        let means = if enters_the_kernel(self.id) { Burden::Filter(0.0) } else { Burden::Spin(0.0) };
        Ok(means.with(additions))
    }

    fn words(&self, burden: Burden) -> String {
        match burden {
            Burden::Filter(additions) => format!("filter {additions}"),
            Burden::Spin(additions) => format!("spin {additions:.3}"),
        }
    }
}

/// Whether a filter at the entry of the kernel slows it.
fn enters_the_kernel(id: &str) -> bool {
    let is_it = |group: &&Group| id.starts_with(&format!("{}/", group.name));
    let case = suite::GROUPS
        .iter()
        .find(is_it)
        .and_then(|group| (group.cases)().into_iter().find(|case| group.id(case) == id));
    let enters = |case: &Case| case.claims.iter().any(|claim| matches!(claim, Claim::Enters(_)));
    // What takes milliseconds between two calls would need a filter longer than the kernel takes.
    case.is_some_and(|case| enters(&case)) && !id.starts_with("mapping/")
}

/// FNV-1a, so that every case has random numbers of its own.
fn hash(id: &str) -> u64 {
    id.bytes()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

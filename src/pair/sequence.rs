//! One case: pair after pair, until its verdict stands.

use super::process::Launch;
use super::turns::{self, Broken, Pair, Question, Shape};
use crate::Result;
use crate::case::Scale;
use crate::clock::{Clock, USER_HZ};
use crate::platform::cpu::Aside;
use crate::platform::signal;
use crate::record::paired::{CasePairs, PairRecord, Rule, Why};
use crate::statistic::{Random, median, percentile};
use crate::study::sequential::{Stand, stand};
use crate::trial::Turn;

/// Pairs of a case that may be lost, by a side that died, hung or talked nonsense, before the case is given up.
const LOST: usize = 1;
/// Share of a turn's time that other tasks may have the CPU, in the median turn of a side.
const OTHERS: f64 = 0.05;
/// Share of a pair's time that the hypervisor may take.
const STEAL: f64 = 0.10;
/// Share by which the core's frequency may differ between the sides.
const FREQUENCY: f64 = 0.01;

/// What is the same for all pairs.
pub struct Bout<'a> {
    /// How the sides are started.
    pub launches: [&'a Launch; 2],
    /// The clock of all processes.
    pub clock: &'a Clock,
    /// The CPU of the measurement.
    pub cpu: usize,
    /// Where the driver keeps itself.
    pub aside: &'a Aside,
    /// Size of the surroundings.
    pub scale: Scale,
    /// How verdicts are reached.
    pub rule: Rule,
    /// How many cases there are.
    pub cases: usize,
}

/// How the sides meet.
pub trait Meeting {
    /// Runs one pair.
    fn pair(
        &mut self,
        launches: [&Launch; 2],
        question: &Question<'_>,
        aside: &Aside,
        random: &mut Random,
    ) -> Result<std::result::Result<Pair, Broken>>;
    /// The pair's figure.
    fn difference(&self, pair: &Pair) -> f64;
    /// Whether both sides must have met the core at one frequency.
    fn is_one_frequency(&self) -> bool {
        true
    }
}

/// Both alive at once, in turns.
pub struct ByTurns;

impl Meeting for ByTurns {
    fn pair(
        &mut self,
        launches: [&Launch; 2],
        question: &Question<'_>,
        aside: &Aside,
        random: &mut Random,
    ) -> Result<std::result::Result<Pair, Broken>> {
        Ok(turns::pair(launches, question, aside, random))
    }

    fn difference(&self, pair: &Pair) -> f64 {
        pair.difference()
    }
}

/// One case's progress, for who shows it.
pub struct Progress<'a> {
    /// The case so far.
    pub case: &'a CasePairs,
    /// Pairs that the next look needs.
    pub wanted: usize,
}

impl Bout<'_> {
    /// Runs pairs of a case until its verdict stands, or it ends without one. `spin` slows a side on purpose.
    ///
    /// # Errors
    /// What the sides cannot mend: a setting that cannot be made.
    pub fn case(
        &self,
        id: &str,
        spin: [f64; 2],
        meeting: &mut dyn Meeting,
        random: &mut Random,
        watch: &mut dyn FnMut(&Progress<'_>, Option<&Pair>),
    ) -> Result<CasePairs> {
        let mut case = CasePairs { id: id.to_owned(), ..CasePairs::default() };
        let mut shape = None;
        let mut lost = 0;
        while let Stand::Open(wanted) = stand(&case.differences(), &self.rule, self.cases) {
            if signal::pending().is_some() || case.unfit().is_some() {
                break;
            }
            let question = self.question(id, shape, spin);
            watch(&Progress { case: &case, wanted }, None);
            let pair = meeting.pair(self.launches, &question, self.aside, random)?;
            if signal::pending().is_some() {
                break;
            }
            match pair {
                Ok(pair) => {
                    self.keep(&mut case, &pair, shape.is_none(), meeting);
                    shape = Some(pair.shape);
                    watch(&Progress { case: &case, wanted }, Some(&pair));
                }
                // It ran before: what is lacking now is a fault.
                Err(Broken::Skipped(sentence)) if shape.is_none() => case.end(Why::Skipped, sentence),
                Err(Broken::Skipped(sentence) | Broken::Failed(sentence)) => case.end(Why::Failed, sentence),
                Err(Broken::Disturbed(sentence)) => case.pairs.push(PairRecord::rejected(sentence)),
                Err(Broken::Lost(sentence)) => {
                    lost += 1;
                    case.notes.push(format!("a pair was lost: {sentence}"));
                    case.pairs.push(PairRecord::rejected(sentence.clone()));
                    if lost > LOST {
                        case.end(Why::Failed, sentence);
                    }
                }
            }
            if case.ended.is_some() {
                break;
            }
        }
        Ok(case)
    }

    fn question<'a>(&self, case: &'a str, shape: Option<Shape>, spin: [f64; 2]) -> Question<'a> {
        let (cpu, clock, scale) = (self.cpu, self.clock.scale(), self.scale);
        Question { case, cpu, clock, shape, scale, spin }
    }

    fn keep(&self, case: &mut CasePairs, pair: &Pair, first: bool, meeting: &dyn Meeting) {
        if first {
            case.evidence = pair.ready.each_ref().map(|ready| ready.evidence.clone());
            case.versions = pair.ready.each_ref().map(|ready| ready.version.clone());
            case.notes.extend(notes(pair));
        }
        let ns = |ticks: f64| ticks * 1e9 / self.clock.hz();
        let cost_ns = [0, 1].map(|side| ns(percentile(&pair.costs(side), 25.0)));
        let rejected = rejection(pair, meeting.is_one_frequency());
        case.pairs.push(PairRecord { difference: meeting.difference(pair), cost_ns, rejected });
    }
}

/// What the sides said when they were set up, each sentence once.
fn notes(pair: &Pair) -> Vec<String> {
    let mut notes = Vec::new();
    for (label, ready) in ["A", "B"].iter().zip(&pair.ready) {
        for note in &ready.notes {
            let both = pair.ready.iter().all(|ready| ready.notes.contains(note));
            let sentence = if both { note.clone() } else { format!("side {label}: {note}") };
            if !notes.contains(&sentence) {
                notes.push(sentence);
            }
        }
    }
    let [a, b] = pair.ready.each_ref().map(|ready| &ready.version);
    if a != b {
        notes.push(format!("the version of the operation differs between the sides: {a} and {b}"));
    }
    notes
}

/// Why a pair does not count: by what happened on the machine, and never by its figure.
fn rejection(pair: &Pair, one_frequency: bool) -> Option<String> {
    let turns = || pair.turns.iter().flatten();
    let stolen: u64 = turns().filter_map(|turn| turn.stolen_ticks).sum();
    let elapsed_s = turns().map(|turn| turn.elapsed_ns).sum::<f64>() / 1e9;
    let share = stolen as f64 / USER_HZ / elapsed_s.max(1e-9);
    // It is told in ticks of 10 ms: one of them proves nothing in a pair of a tenth of a second.
    if stolen > 1 && share > STEAL {
        return Some(format!("the hypervisor took {:.0} % of the CPU", 100.0 * share.min(1.0)));
    }
    let waited = |turn: &Turn| turn.waited_ns.unwrap_or(0) as f64 / turn.elapsed_ns.max(1.0);
    for (label, turns) in ["A", "B"].iter().zip(&pair.turns) {
        let waited = median(&turns.iter().map(waited).collect::<Vec<_>>());
        if waited > OTHERS {
            return Some(format!("other tasks had {:.0} % of side {label}'s CPU", 100.0 * waited.min(1.0)));
        }
    }
    let frequency =
        |side: usize| median(&pair.turns[side].iter().map(|turn| turn.core_hz).collect::<Vec<_>>());
    let apart = frequency(1) / frequency(0) - 1.0;
    (one_frequency && apart.abs() > FREQUENCY)
        .then(|| format!("the core's frequency for side B was {:+.1} % off that for side A", 100.0 * apart))
}

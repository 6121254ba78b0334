//! Compares one case: runs pairs until the sequential test reaches a verdict.

use super::experiment::{Plan, Testbed};
use super::running_side::Start;
use super::turns::{self, CaseResult, Pair, PairSpec, Shape, combine_halves, run_half};
use crate::error::Result;
use crate::platform::signal;
use crate::record::paired::{CasePairs, PairRecord, Why};
use crate::statistic::{Random, median, percentile};
use syscost_engine::clock::USER_HZ;
use syscost_engine::trial::{CaseEnd, Turn};

/// The most pairs of a case that may be lost before the case fails. A pair is lost if a side died, hung or sent an invalid
/// response.
const LOST: usize = 1;
/// Largest median share of a side's turns during which other tasks may have the CPU.
const OTHERS: f64 = 0.05;
/// Largest share of a pair's time that the hypervisor may take.
const STEAL: f64 = 0.10;

/// The parameters that all pairs of a comparison share.
pub struct CasePairing<'a> {
    /// The clock that both sides use, and the guard that keeps this process off their CPU.
    pub testbed: &'a Testbed,
    /// The parameters of the comparison.
    pub plan: &'a Plan,
    /// The starters of the sides.
    pub starts: [&'a dyn Start; 2],
    /// The CPU on which the sides run.
    pub cpu: usize,
    /// Number of cases in the comparison, by which the rule corrects for multiplicity.
    pub cases: usize,
    /// Whether both sides must run at the same core frequency.
    pub one_frequency: bool,
}

/// A case while its pairs are run.
pub struct OpenCase {
    /// The pairs of the case so far.
    pub case: CasePairs,
    /// The shape that the first pair chose; `None` before it.
    shape: Option<Shape>,
    /// Number of lost pairs.
    lost: usize,
}

impl OpenCase {
    /// A case without a pair.
    pub fn new(id: &str) -> Self {
        Self { case: CasePairs { id: id.to_owned(), ..CasePairs::default() }, shape: None, lost: 0 }
    }
}

/// The order in which the two processes of a pair run.
pub trait Schedule {
    /// Runs one pair. The inner error concerns only the pair or its case; the outer error ends the comparison.
    ///
    /// # Errors
    /// A side's state cannot be entered.
    fn run_pair(&mut self, spec: &PairSpec<'_>, random: &mut Random) -> Result<CaseResult<Pair>>;
    /// The log ratio of the pair: the logarithm of B's cost divided by A's.
    fn log_ratio(&self, pair: &Pair) -> f64;
}

/// Runs both processes at once, in turns.
pub struct ByTurns;

impl Schedule for ByTurns {
    fn run_pair(&mut self, spec: &PairSpec<'_>, random: &mut Random) -> Result<CaseResult<Pair>> {
        Ok(turns::run_pair_by_turns(spec, random))
    }

    fn log_ratio(&self, pair: &Pair) -> f64 {
        pair.log_ratio()
    }
}

/// The progress of one case, for display.
pub struct Progress<'a> {
    /// The case so far.
    pub case: &'a CasePairs,
    /// Number of pairs that the next look needs.
    pub wanted: usize,
}

impl CasePairing<'_> {
    /// Runs pairs of a case until it has a verdict or ends without one. `spin` slows each side by that many additions per
    /// iteration. `watch` is called before each pair, and again with the pair.
    ///
    /// # Errors
    /// A side's state cannot be entered.
    pub fn compare_case(
        &self,
        id: &str,
        spin: [f64; 2],
        schedule: &mut dyn Schedule,
        random: &mut Random,
        watch: &mut dyn FnMut(&Progress<'_>, Option<&Pair>),
    ) -> Result<CasePairs> {
        let mut open = OpenCase::new(id);
        while open.case.pairs_needed(&self.plan.rule, self.cases).is_some() && signal::pending().is_none() {
            self.run_next_pair(&mut open, spin, schedule, random, watch)?;
        }
        Ok(open.case)
    }

    /// Runs the next pair of an open case. A pair that a signal interrupts is not kept.
    ///
    /// # Errors
    /// A side's state cannot be entered.
    pub fn run_next_pair(
        &self,
        open: &mut OpenCase,
        spin: [f64; 2],
        schedule: &mut dyn Schedule,
        random: &mut Random,
        watch: &mut dyn FnMut(&Progress<'_>, Option<&Pair>),
    ) -> Result<()> {
        let Some(wanted) = open.case.pairs_needed(&self.plan.rule, self.cases) else { return Ok(()) };
        watch(&Progress { case: &open.case, wanted }, None);
        let pair = schedule.run_pair(
            &PairSpec { spin, ..self.pair_spec(&open.case.id, open.shape, self.next_link(open)) },
            random,
        )?;
        if signal::pending().is_some() {
            return Ok(());
        }
        let is_first = open.shape.is_none();
        match pair {
            Ok(pair) => {
                self.record_pair(&mut open.case, &pair, is_first, schedule);
                open.shape = Some(pair.shape);
                watch(&Progress { case: &open.case, wanted }, Some(&pair));
            }
            Err(end) => record_pair_end(&mut open.case, end, is_first, &mut open.lost),
        }
        Ok(())
    }

    /// The parameters of a pair of this case, without sampling and without slowing a side.
    pub(super) fn pair_spec<'a>(
        &'a self,
        case: &'a str,
        shape: Option<Shape>,
        link: Option<u32>,
    ) -> PairSpec<'a> {
        PairSpec {
            starts: self.starts,
            aside: &self.testbed.aside,
            case,
            cpu: self.cpu,
            clock: self.testbed.clock.scale(),
            shape,
            scale: self.plan.scale,
            spin: [0.0; 2],
            link,
            sampled: false,
        }
    }

    /// Whether every pair runs links of its own, with functions in another order.
    pub(super) fn is_relinked(&self) -> bool {
        self.plan.placement.is_some()
    }

    /// The number of the links of the next pair. The first pair of a case runs the builds as they were linked, which shows the
    /// effect of their own layout (`None`). Every other pair has links of its own, so that pairs are independent.
    fn next_link(&self, open: &OpenCase) -> Option<u32> {
        (self.is_relinked() && open.shape.is_some()).then(|| open.case.pairs.len() as u32 + 1)
    }

    fn record_pair(&self, case: &mut CasePairs, pair: &Pair, first: bool, schedule: &dyn Schedule) {
        if first {
            case.evidence = pair.ready.each_ref().map(|ready| ready.evidence.clone());
            case.versions = pair.ready.each_ref().map(|ready| ready.version.clone());
            case.counts = pair.ready.each_ref().map(|ready| ready.counts.clone());
            case.notes.extend(setup_notes(pair));
        }
        let cost = |side: usize| percentile(&pair.turn_costs(side), 25.0);
        let cost_ns = [0, 1].map(|side| self.testbed.ticks_to_nanoseconds(cost(side)));
        let rejected = rejection_reason(pair, self.one_frequency);
        let record = PairRecord { difference: schedule.log_ratio(pair), cost_ns, rejected };
        if self.is_relinked() && first {
            case.as_built = Some(record);
        } else {
            case.pairs.push(record);
        }
    }
}

/// Records a pair that gave no figure. This may end the case.
fn record_pair_end(case: &mut CasePairs, end: CaseEnd, first: bool, lost: &mut usize) {
    match end {
        // Only the first pair can skip. If a case ran in an earlier pair, the machine has everything that it needs.
        CaseEnd::Skipped(sentence) if first => case.end_without_verdict(Why::Skipped, sentence),
        CaseEnd::Skipped(sentence) | CaseEnd::Failed(sentence) => {
            case.end_without_verdict(Why::Failed, sentence)
        }
        CaseEnd::Disturbed(sentence) | CaseEnd::Contradicted(sentence) => {
            case.pairs.push(PairRecord::from_rejection(sentence));
        }
        CaseEnd::CutShort(_) | CaseEnd::Interrupted => {
            let sentence = end.into_sentence();
            *lost += 1;
            case.notes.push(format!("a pair was lost: {sentence}"));
            case.pairs.push(PairRecord::from_rejection(sentence.clone()));
            if *lost > LOST {
                case.end_without_verdict(Why::Failed, sentence);
            }
        }
    }
}

/// The notes of both sides from their set-up, each sentence once.
fn setup_notes(pair: &Pair) -> Vec<String> {
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

/// The reason to reject a pair; `None` if it counts. Only events on the machine decide this, never the pair's figure.
pub(super) fn rejection_reason(pair: &Pair, one_frequency: bool) -> Option<String> {
    let turns = || pair.turns.iter().flatten();
    let stolen: u64 = turns().filter_map(|turn| turn.stolen_ticks).sum();
    let elapsed_s = turns().map(|turn| turn.elapsed_ns).sum::<f64>() / 1e9;
    let share = stolen as f64 / USER_HZ / elapsed_s.max(1e-9);
    // Stolen time has a resolution of 10 ms, so one tick in a pair of 100 ms shows nothing.
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
    (one_frequency && !pair.runs_at_one_frequency()).then(|| {
        let frequency =
            |side: usize| median(&pair.turns[side].iter().map(|turn| turn.core_hz).collect::<Vec<_>>());
        let apart = 100.0 * (frequency(1) / frequency(0) - 1.0);
        format!("the core's frequency differed between neighbouring turns of the sides, by {apart:+.1} % in the median")
    })
}

// Pairs of sides that exclude each other. Each side runs alone, in its own state of the machine, in blocks of ABBA or BAAB.

/// Puts the machine into the state of a side (0 for A, 1 for B).
pub type Enter<'a> = dyn FnMut(usize) -> Result<()> + 'a;

/// Runs whole processes one after the other, each after its side's state was entered.
pub struct ByBlocks<'a> {
    enter: &'a mut Enter<'a>,
    /// The side that begins the next pair, if that pair is the second of a block.
    mirrored: Option<usize>,
    /// The side in whose state the machine is.
    state: Option<usize>,
}

impl<'a> ByBlocks<'a> {
    /// A schedule that calls this function to enter the state of a side.
    pub fn new(enter: &'a mut Enter<'a>) -> Self {
        Self { enter, mirrored: None, state: None }
    }

    /// The side that begins the pair: a random one in the first pair of a block, the other one in the second.
    fn first_side(&mut self, random: &mut Random) -> usize {
        self.mirrored.take().unwrap_or_else(|| {
            let first = random.number_below(2);
            self.mirrored = Some(1 - first);
            first
        })
    }
}

impl Schedule for ByBlocks<'_> {
    fn run_pair(&mut self, spec: &PairSpec<'_>, random: &mut Random) -> Result<CaseResult<Pair>> {
        let first = self.first_side(random);
        let mut found = [const { None }; 2];
        let mut shape = spec.shape;
        for side in [first, 1 - first] {
            if self.state != Some(side) {
                (self.enter)(side)?;
                self.state = Some(side);
            }
            let half = run_half(spec, side, shape, random);
            // Both sides must have the same turns, so the second side takes the shape of the first.
            shape = shape.or(half.as_ref().ok().map(|half| half.shape));
            let goes_on = matches!(half, Ok(_) | Err(CaseEnd::Skipped(_)));
            found[side] = Some(half);
            // If the first side skips, the second must run, to show whether it skips, too. Any other end decides the pair.
            if !goes_on {
                break;
            }
        }
        Ok(combine_halves(found).map(|[a, b]| Pair {
            shape: a.shape,
            ready: [a.ready, b.ready],
            turns: [a.turns, b.turns],
            samples: [a.samples, b.samples],
        }))
    }

    /// The log ratio of the lower quartiles of the sides' turns. Turns are not compared singly, as no turn of A is next to one
    /// of B.
    fn log_ratio(&self, pair: &Pair) -> f64 {
        let [a, b] = [0, 1].map(|side| percentile(&pair.turn_costs(side), 25.0));
        (b / a).ln()
    }
}

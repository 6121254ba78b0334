//! One pair by turns: two processes that run alternately on one CPU, each for about a millisecond at a time.

use super::running_side::{Draw, Side, Start, Taken};
use crate::error::{Error, Result};
use crate::platform::cpu::Aside;
use crate::statistic::{Random, median, percentile};
use serde::{Deserialize, Serialize};
use std::time::Duration;
use syscost_engine::case::Scale;
use syscost_engine::clock::ClockScale;
use syscost_engine::json_line::NoMessage;
use syscost_engine::pair::{BATCHES, Prepare, Ready, Request, Response};
use syscost_engine::trial::{CaseEnd, SampledStacks, Turn};

/// Silence after which a side counts as hung. A turn takes about a millisecond, or one iteration if that is longer.
const PATIENCE: Duration = Duration::from_secs(20);
/// [`PATIENCE`] while a side proves its case: single-stepping and a sweep, repeated up to four times.
const PATIENCE_OF_PROOF: Duration = Duration::from_secs(90);
/// [`PATIENCE`] for a command, whose side itself ends an execution that takes too long, within a day.
const PATIENCE_OF_COMMAND: Duration = Duration::from_secs(2 * 86_400);
/// Largest random padding of a side's environment, bytes: one page, because it shifts the stack within a page.
const PADDING: usize = 4096;
/// Number of consecutive turns of each side that are compared as a block: two blocks of ABBA or BAAB, which even out a drift.
const BLOCK: usize = 4;
/// Largest difference, as a share, of the core's frequency between the turns that a block compares. It equals the smallest
/// change that is reported: a larger step of the frequency would be taken for a change of the cost.
const FREQUENCY_DIFFERENCE: f64 = 0.01;

/// Number and length of turns: the same for both sides and for all pairs of a case.
///
/// There are many short turns, because the machine drifts within milliseconds. Also, some operations run in one of
/// several modes from one switch to the next (a branch predictor's memory). On a busy two-CPU guest, pairs of 48 turns of
/// 0.8 ms deviated half as much as pairs of 12 turns of 3 ms. 40 turns deviate by 7 % more than 48 (the median of ten
/// cases) and take a sixth less time. A turn has several batches, because a neighbour or an interrupt lengthens some
/// of them: their lower quartile deviated half as much as their median.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Shape {
    /// Number of turns of each side.
    pub rounds: usize,
    /// Number of batches of a turn.
    pub batches: usize,
    /// Number of iterations of a batch.
    pub iterations: u64,
}

impl Shape {
    /// Length of a batch, ns: longer than an interrupt, and 2 400 steps of the coarsest usual clock (24 MHz).
    pub const BATCH_NS: f64 = 100e3;
    const ROUNDS: f64 = 40.0;
    /// The fewest turns, for an operation so long that [`Self::ROUNDS`] turns would take seconds.
    const FEWEST_ROUNDS: f64 = 6.0;
    /// [`Self::FEWEST_ROUNDS`] of an operation that takes at least [`Self::LONG_NS`].
    const FEWEST_LONG_ROUNDS: f64 = 2.0;
    /// So long that nothing of a former turn is left in a cache.
    const LONG_NS: f64 = 50e6;

    /// The shape for these sides: that of the slower side.
    pub fn for_sides(sides: &[Ready]) -> Self {
        let batch = |side: &Ready| match side.iterations {
            0 => (Self::BATCH_NS / side.iteration_ns).round().max(1.0),
            iterations => iterations as f64,
        };
        let batches = sides.iter().map(|side| (batch(side), side.iteration_ns));
        let slower = batches.min_by(|a, b| a.0.total_cmp(&b.0).then(b.1.total_cmp(&a.1)));
        let (iterations, iteration_ns) = slower.unwrap_or((1.0, Self::BATCH_NS));
        let batch_ns = iterations * iteration_ns;
        let batches = (BATCHES * Self::BATCH_NS / batch_ns).round().clamp(1.0, BATCHES);
        let asked_ns = Self::ROUNDS * BATCHES * Self::BATCH_NS;
        let fewest = if batch_ns < Self::LONG_NS { Self::FEWEST_ROUNDS } else { Self::FEWEST_LONG_ROUNDS };
        let rounds = (asked_ns / (batches * batch_ns)).round().clamp(fewest, Self::ROUNDS);
        Self { rounds: rounds as usize, batches: batches as usize, iterations: iterations as u64 }
    }
}

/// The result of a side or a pair, or the way in which its case ended.
pub type CaseResult<T> = std::result::Result<T, CaseEnd>;

/// The parameters of one pair.
#[derive(Clone)]
pub struct PairSpec<'a> {
    /// The starters of the sides.
    pub starts: [&'a dyn Start; 2],
    /// Keeps this process off the CPU of the sides.
    pub aside: &'a Aside,
    /// Id of the case.
    pub case: &'a str,
    /// The CPU on which the sides run.
    pub cpu: usize,
    /// Scale of the clock that both sides use.
    pub clock: ClockScale,
    /// `None` in the first pair of a case, which chooses the shape and proves the case.
    pub shape: Option<Shape>,
    /// Scale of the case's parameters.
    pub scale: Scale,
    /// Additions per iteration by which each side is slowed.
    pub spin: [f64; 2],
    /// The number of the links of both builds; `None` for the links that the builds have made.
    pub link: Option<u32>,
    /// Whether the stacks of the operation are sampled in the turns.
    pub sampled: bool,
}

impl PairSpec<'_> {
    /// Silence after which a side counts as hung, where it is `usual` for an operation.
    fn patience(&self, usual: Duration) -> Duration {
        if self.case.starts_with("command/") { PATIENCE_OF_COMMAND } else { usual }
    }

    fn draw(&self, padding: usize) -> Draw {
        Draw { padding, link: self.link }
    }
}

/// A completed pair.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Pair {
    /// Number and length of its turns.
    pub shape: Shape,
    /// The responses of the sides to their set-up.
    pub ready: [Ready; 2],
    /// The turns of each side, in order.
    pub turns: [Vec<Turn>; 2],
    /// The stacks that were sampled in the turns, if the pair was sampled.
    #[serde(default)]
    pub samples: [Option<SampledStacks>; 2],
}

/// The results of one process of a pair.
pub(super) struct Half {
    pub(super) ready: Ready,
    pub(super) shape: Shape,
    pub(super) turns: Vec<Turn>,
    pub(super) samples: Option<SampledStacks>,
}

/// Runs one pair. All random choices come from `random`.
///
/// # Errors
/// The pair has no figure; the error is the reason.
pub fn run_pair_by_turns(spec: &PairSpec<'_>, random: &mut Random) -> CaseResult<Pair> {
    let failed = |error: Error| CaseEnd::CutShort(error.to_string());
    // The order of starting decides which pages a side gets, so it is random, too.
    let first = random.number_below(2);
    let padding = [random.number_below(PADDING), random.number_below(PADDING)];
    let start =
        |side: usize| spec.starts[side].start_side(spec.draw(padding[side]), spec.aside).map_err(failed);
    let one = start(first)?;
    let other = start(1 - first)?;
    let mut sides = if first == 0 { [one, other] } else { [other, one] };
    // The sides are prepared one after the other, because they share a CPU. The side that allocates first is random, too.
    let mut prepared = [const { None }; 2];
    for at in [first, 1 - first] {
        prepared[at] = Some(prepare_case(&mut sides[at], at, spec));
    }
    let ready = combine_halves(prepared)?;
    let shape = spec.shape.unwrap_or_else(|| Shape::for_sides(&ready));
    let mut turns = [Vec::new(), Vec::new()];
    for side in turn_order(shape.rounds, random) {
        turns[side].push(run_turn(&mut sides[side], spec, shape)?);
    }
    let samples = [take_samples(&mut sides[0], spec)?, take_samples(&mut sides[1], spec)?];
    Ok(Pair { shape, ready, turns, samples })
}

/// The ids of the cases of a side's build, and the build's description of its compiler.
///
/// # Errors
/// The side cannot be started, or does not respond like a bench of this version of syscost.
pub fn list_cases(start: &dyn Start, aside: &Aside) -> Result<(Vec<String>, Option<String>)> {
    let ask = |side: &mut Side| {
        let build = side.receive_hello(PATIENCE)?;
        side.send_request(&Request::Cases)?;
        match side.receive_response(PATIENCE)? {
            Response::Cases(ids) => match first_duplicate(&ids) {
                None => Ok((ids, build)),
                Some(id) => Err(side.duplicate_case_sentence(id)),
            },
            other => Err(side.invalid_answer_sentence(&NoMessage::unexpected(&other))),
        }
    };
    ask(&mut start.start_side(Draw::default(), aside)?).map_err(Error::Usage)
}

/// The first id that occurs twice.
fn first_duplicate(ids: &[String]) -> Option<&String> {
    let mut known = std::collections::BTreeSet::new();
    ids.iter().find(|id| !known.insert(*id))
}

/// Combines the results of both sides. If only one side skips, that is a failure of that side.
pub(super) fn combine_halves<T>(halves: [Option<CaseResult<T>>; 2]) -> CaseResult<[T; 2]> {
    let only = |label: &str, sentence: String| {
        CaseEnd::Failed(format!("side {label} cannot run it, and the other side can: {sentence}"))
    };
    match halves {
        [Some(Ok(a)), Some(Ok(b))] => Ok([a, b]),
        [Some(Err(CaseEnd::Skipped(sentence))), Some(Err(CaseEnd::Skipped(_)))] => {
            Err(CaseEnd::Skipped(sentence))
        }
        [Some(Err(CaseEnd::Skipped(sentence))), Some(Ok(_))] => Err(only("A", sentence)),
        [Some(Ok(_)), Some(Err(CaseEnd::Skipped(sentence)))] => Err(only("B", sentence)),
        // A failure of one side outweighs a skip of the other.
        [Some(Err(CaseEnd::Skipped(_))) | Some(Ok(_)) | None, Some(Err(broken))] => Err(broken),
        [Some(Err(broken)), _] => Err(broken),
        [None, _] | [_, None] => Err(CaseEnd::CutShort("a side was not asked".into())),
    }
}

/// The stacks that a side has sampled in its turns; `None` if the pair is not sampled.
fn take_samples(side: &mut Side, spec: &PairSpec<'_>) -> CaseResult<Option<SampledStacks>> {
    if !spec.sampled {
        return Ok(None);
    }
    side.send_request(&Request::Samples).map_err(CaseEnd::CutShort)?;
    match side.receive_response(PATIENCE).map_err(CaseEnd::CutShort)? {
        Response::Samples(samples) => Ok(Some(samples)),
        other => Err(end_from_response(side, other)),
    }
}

/// Runs one half of a pair: side `at` alone, its turns one after the other. `shape` is that of the other half, if it has run.
pub(super) fn run_half(
    spec: &PairSpec<'_>,
    at: usize,
    shape: Option<Shape>,
    random: &mut Random,
) -> CaseResult<Half> {
    let started = spec.starts[at].start_side(spec.draw(random.number_below(PADDING)), spec.aside);
    let mut side = started.map_err(|error| CaseEnd::CutShort(error.to_string()))?;
    let ready = prepare_case(&mut side, at, spec)?;
    let shape = shape.unwrap_or_else(|| Shape::for_sides(std::slice::from_ref(&ready)));
    let turns =
        (0..shape.rounds).map(|_| run_turn(&mut side, spec, shape)).collect::<std::result::Result<_, _>>()?;
    let samples = take_samples(&mut side, spec)?;
    Ok(Half { ready, shape, turns, samples })
}

/// Lets a side set up the case, and returns its response.
fn prepare_case(side: &mut Side, at: usize, spec: &PairSpec<'_>) -> CaseResult<Ready> {
    let request = Prepare {
        case: spec.case.to_owned(),
        cpu: spec.cpu,
        clock: spec.clock,
        batch_ns: Shape::BATCH_NS,
        prove: spec.shape.is_none(),
        scale: spec.scale,
        spin: spec.spin[at],
        instructions: false,
        sampled: spec.sampled,
    };
    let patience = spec.patience(if spec.shape.is_none() { PATIENCE_OF_PROOF } else { PATIENCE });
    request_preparation(side, request, patience)
}

/// Sends a side this request to prepare a case, and returns its response.
pub(super) fn request_preparation(
    side: &mut Side,
    request: Prepare,
    patience: Duration,
) -> CaseResult<Ready> {
    side.receive_hello(PATIENCE).map_err(CaseEnd::CutShort)?;
    side.send_request(&Request::Prepare(request)).map_err(CaseEnd::CutShort)?;
    match side.receive_response(patience).map_err(CaseEnd::CutShort)? {
        Response::Ready(ready) => Ok(ready),
        other => Err(end_from_response(side, other)),
    }
}

fn run_turn(side: &mut Side, spec: &PairSpec<'_>, shape: Shape) -> CaseResult<Turn> {
    let Shape { iterations, batches, .. } = shape;
    let before = side.taken_time();
    side.send_request(&Request::Turn { iterations, batches }).map_err(CaseEnd::CutShort)?;
    match side.receive_response(spec.patience(PATIENCE)).map_err(CaseEnd::CutShort)? {
        Response::Turn(turn) if turn.ticks.len() == batches && !turn.ticks.contains(&0) => {
            Ok(add_taken_time(turn, before, side.taken_time()))
        }
        other => Err(end_from_response(side, other)),
    }
}

/// Adds to a turn the CPU time that the host took between these two readings, which a guest cannot measure itself.
fn add_taken_time(mut turn: Turn, before: Option<Taken>, after: Option<Taken>) -> Turn {
    if let (Some(before), Some(after)) = (before, after) {
        let waited_ns = after.waited_ns.saturating_sub(before.waited_ns);
        let stolen_ticks = after.stolen_ticks.saturating_sub(before.stolen_ticks);
        turn.waited_ns = Some(turn.waited_ns.unwrap_or(0) + waited_ns);
        turn.stolen_ticks = Some(turn.stolen_ticks.unwrap_or(0) + stolen_ticks);
    }
    turn
}

fn end_from_response(side: &Side, answer: Response) -> CaseEnd {
    match answer {
        Response::Ended(end) => end,
        other => CaseEnd::CutShort(side.invalid_answer_sentence(&NoMessage::unexpected(&other))),
    }
}

/// The order of turns: random blocks of ABBA or BAAB, within which a linear drift affects both sides alike.
fn turn_order(rounds: usize, random: &mut Random) -> Vec<usize> {
    let blocks = (0..rounds.div_ceil(2)).flat_map(|_| match random.number_below(2) {
        0 => [0, 1, 1, 0],
        _ => [1, 0, 0, 1],
    });
    blocks.take(2 * rounds).collect()
}

impl Pair {
    /// Ticks per iteration in each turn of a side: the lower quartile over its batches.
    pub fn turn_costs(&self, side: usize) -> Vec<f64> {
        let iterations = self.shape.iterations as f64;
        let cost = |turn: &Turn| {
            let batches: Vec<_> = turn.ticks.iter().map(|&ticks| ticks as f64 / iterations).collect();
            percentile(&batches, 25.0)
        };
        self.turns[side].iter().map(cost).collect()
    }

    /// Ticks per iteration in each turn of a side, the mean over its batches. Other harnesses call it a sample.
    pub fn turn_means(&self, side: usize) -> Vec<f64> {
        let iterations = (self.shape.iterations * self.shape.batches as u64) as f64;
        self.turns[side].iter().map(|turn| turn.ticks.iter().sum::<u64>() as f64 / iterations).collect()
    }

    /// The pair's figure: the median, over blocks of neighbouring turns, of the log ratio B/A of the fastest turn
    /// of each side.
    ///
    /// It takes the fastest of a few turns because, on some processors, a system call runs in one of two modes, tens of
    /// nanoseconds apart. The mode changes at a switch or a tick, not with the side: reading a byte from /dev/zero
    /// took 201 or 252 ns, under a longer filter 217 or 268 ns. Neighbours in different modes differ by more than
    /// the changes of interest, but of four turns nearly always one is in the fast mode. The deviation of such a
    /// case's pairs fell from 2.2 to 0.4 %; that of cases with one mode rose from 0.1 to 0.2 %.
    ///
    /// Blocks during which the core's frequency stepped are left out, if the other blocks are at least half.
    pub fn log_ratio(&self) -> f64 {
        let blocks = self.blocks();
        let leaves_out = are_mostly_at_one_frequency(&blocks);
        let is_used = |block: &&Block| !leaves_out || block.is_at_one_frequency();
        median(&blocks.iter().filter(is_used).map(|block| block.log_ratio).collect::<Vec<_>>())
    }

    /// Whether the sides ran at the same frequency in at least half of the blocks. The median frequency of a side would not
    /// show this: on a core that steps between two frequencies, it is one of them by chance.
    pub fn runs_at_one_frequency(&self) -> bool {
        are_mostly_at_one_frequency(&self.blocks())
    }

    fn blocks(&self) -> Vec<Block> {
        let fastest_turns = |side: usize| -> Vec<(f64, f64)> {
            let hz = self.turns[side].iter().map(|turn| turn.core_hz);
            let turns: Vec<_> = self.turn_costs(side).into_iter().zip(hz).collect();
            let fastest = |turns: &[(f64, f64)]| turns.iter().copied().min_by(|a, b| a.0.total_cmp(&b.0));
            turns.chunks(BLOCK).filter_map(fastest).collect()
        };
        let pairs = fastest_turns(0).into_iter().zip(fastest_turns(1));
        pairs.map(|(a, b)| Block { log_ratio: (b.0 / a.0).ln(), frequency_ratio: b.1 / a.1 }).collect()
    }
}

/// The log ratio of the fastest turns of sides B and A, among neighbouring turns.
struct Block {
    log_ratio: f64,
    frequency_ratio: f64,
}

impl Block {
    fn is_at_one_frequency(&self) -> bool {
        (self.frequency_ratio - 1.0).abs() <= FREQUENCY_DIFFERENCE
    }
}

/// Whether at least half of these blocks compare turns at one frequency.
fn are_mostly_at_one_frequency(blocks: &[Block]) -> bool {
    2 * blocks.iter().filter(|block| block.is_at_one_frequency()).count() >= blocks.len()
}

#[cfg(test)]
mod tests;

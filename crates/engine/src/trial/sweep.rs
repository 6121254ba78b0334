//! Time against the number of iterations: the slope is the cost of an iteration, the intercept the overhead of a batch, and
//! twice the iterations must take twice the time.
//!
//! Batches of 1, 2, 3 and 4 units, of the subject and its control, run in random order, round after round. Each round gives
//! one line by least squares, so a disturbed round is one outlier that the medians over the rounds ignore. The net cost
//! is the difference of the two slopes of a round.

use super::CaseEnd;
use super::batch_size::{BatchSize, Enough};
use super::retraining::retrain_by_batches;
use crate::case::{Scale, Subject};
use crate::clock::{Clock, Ticks};
use crate::error::Result;
use crate::record::Interval;
use crate::statistic::{Random, fit_line, median_interval, percentile};

/// Length of the smallest batch, ns: a hundred times the clock's own cost, and short enough that most batches run between
/// two timer interrupts (250 to 1000 per second).
const UNIT_NS: f64 = 10_000.0;
/// Least length of the smallest batch in steps of the clock: one step is then 0.4 % of it. This limit matters for AArch64's
/// usual 24 MHz and for emulators that count microseconds.
const UNIT_STEPS: f64 = 250.0;
/// Longest round that may run after every sample, ns.
const BESIDE_NS: f64 = 2e6;
/// Fewest rounds whose medians have a useful interval.
const FEWEST_ROUNDS: usize = 20;
const SIZES: [u64; 4] = [1, 2, 3, 4];

/// How long to sweep before the samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Effort {
    /// Only enough rounds to show whether one may run after every sample. The case is already proved.
    Brief,
    /// The proof at this scale.
    Proof(Scale),
}

impl Effort {
    /// The fewest and the most rounds, and the time after which no further round begins, ns. The time is limited because the
    /// untimed part of an iteration may be long.
    fn round_limits(self) -> (usize, usize, f64) {
        match self {
            Self::Brief => (5, 21, 4e6),
            Self::Proof(Scale::Smoke) => (7, 16, 60e6),
            Self::Proof(Scale::Default) => (21, 48, 30e6),
            Self::Proof(Scale::Full) => (21, 500, 60e6),
        }
    }
}

/// The result of a sweep: medians over the rounds, ns.
#[derive(Clone, Debug)]
pub(super) struct Sweep {
    pub slope: Interval,
    /// Upper quartile of the slopes of the rounds. A single interrupted batch does not make it large.
    pub slope_quartile: f64,
    pub intercept: Interval,
    pub control: Option<Interval>,
    pub net: Option<Interval>,
    /// The control's slope over the subject's.
    pub ratio: Option<Interval>,
    /// Ratio of the time of 2n iterations to that of n, without the constant overhead; 2 if time is proportional to iterations.
    pub doubling: Interval,
    /// Iterations of the smallest batch.
    pub unit: u64,
}

impl Sweep {
    /// Time per iteration in the largest batch, including its share of the batch's overhead, ns.
    pub(super) fn ns_each_in_largest(&self) -> f64 {
        let largest = SIZES[SIZES.len() - 1] * self.unit;
        self.slope.estimate + self.intercept.estimate / largest as f64
    }
}

/// Wanted length of the timed part of the smallest batch with this clock, ns. A mostly untimed batch has a shorter one.
pub(super) fn smallest_batch_ns(clock: &Clock) -> f64 {
    UNIT_NS.max(UNIT_STEPS * clock.step_ns())
}

/// Returns the number of iterations that takes [`smallest_batch_ns`], and the batch from which it was computed. The operation
/// is warm afterwards.
///
/// # Errors
/// The subject fails, or takes no time.
pub(super) fn find_unit(
    subject: &mut dyn Subject,
    clock: &Clock,
) -> std::result::Result<(u64, BatchSize), CaseEnd> {
    let unit_ns = smallest_batch_ns(clock);
    let enough = Enough { timed_ns: unit_ns, wall_ns: 100.0 * unit_ns };
    let size = BatchSize::find(subject, clock, enough)?;
    if !size.is_long_enough(enough) {
        return Err(CaseEnd::Failed(format!(
            "time does not grow with the number of iterations: {} of them took {:.0} ns; the operation was optimised away",
            size.iterations, size.timed_ns
        )));
    }
    let fitting = size.iterations as f64 * unit_ns / size.timed_ns.max(1.0);
    Ok(((fitting as u64).clamp(1, size.iterations), size))
}

/// A sweep in progress. Rounds may be added at any time, such as between the samples of a case.
pub(super) struct Sweeper {
    unit: u64,
    random: Random,
    rounds: Vec<Round>,
    spent_ns: f64,
}

impl Sweeper {
    /// A sweep with batches of one to four times `unit` iterations.
    pub(super) fn new(unit: u64) -> Self {
        Self { unit, random: Random::new(super::SEED), rounds: Vec::with_capacity(512), spent_ns: 0.0 }
    }

    /// Runs the rounds of the first sweep.
    ///
    /// # Errors
    /// The subject or its control fails.
    pub(super) fn run_first_sweep(
        &mut self,
        subject: &mut dyn Subject,
        mut control: Option<&mut (dyn Subject + '_)>,
        clock: &Clock,
        effort: Effort,
    ) -> Result<()> {
        let (fewest, most, budget_ns) = effort.round_limits();
        while self.rounds.len() < most && (self.rounds.len() < fewest || self.spent_ns < budget_ns) {
            self.run_round(subject, control.as_deref_mut(), clock, true)?;
        }
        Ok(())
    }

    /// Runs one round; `resets`: the branch predictor is reset before it.
    ///
    /// # Errors
    /// The subject or its control fails.
    pub(super) fn run_round(
        &mut self,
        subject: &mut dyn Subject,
        control: Option<&mut (dyn Subject + '_)>,
        clock: &Clock,
        resets: bool,
    ) -> Result<()> {
        let began = clock.start();
        // Reset once per round, as once per sample, so that slope and median belong to the same mode of the predictor.
        if resets {
            retrain_by_batches(subject, self.unit, clock)?;
        }
        self.rounds.push(time_round(subject, control, self.unit, clock, &mut self.random)?);
        self.spent_ns += clock.nanoseconds(clock.stop() - began).0;
        Ok(())
    }

    /// Whether a round is short enough to run after every sample.
    pub(super) fn has_quick_rounds(&self) -> bool {
        self.spent_ns / self.rounds.len().max(1) as f64 <= BESIDE_NS
    }

    /// Number of rounds so far.
    pub(super) fn len(&self) -> usize {
        self.rounds.len()
    }

    /// The result of the rounds from this one on, or of all rounds if those are too few for an interval.
    pub(super) fn result_since(&self, first: usize) -> Sweep {
        let late = self.rounds.get(first..).filter(|rounds| rounds.len() >= FEWEST_ROUNDS);
        summarize_rounds(late.unwrap_or(&self.rounds), self.unit)
    }
}

/// Times of one round, ns, by size, of the subject and its control.
struct Round {
    subject: [f64; 4],
    control: Option<[f64; 4]>,
}

fn time_round(
    subject: &mut dyn Subject,
    mut control: Option<&mut (dyn Subject + '_)>,
    unit: u64,
    clock: &Clock,
    random: &mut Random,
) -> Result<Round> {
    let mut order: Vec<(usize, bool)> = (0..SIZES.len()).map(|i| (i, false)).collect();
    if control.is_some() {
        order.extend((0..SIZES.len()).map(|i| (i, true)));
    }
    random.shuffle(&mut order);
    let mut times = [[0.0; 4]; 2];
    for (size, of_control) in order {
        let runs: &mut dyn Subject = match (&mut control, of_control) {
            (Some(control), true) => &mut **control,
            _ => subject,
        };
        let Ticks(ticks) = runs.run(SIZES[size] * unit, clock)?;
        times[usize::from(of_control)][size] = clock.nanoseconds(Ticks(ticks)).0;
    }
    Ok(Round { subject: times[0], control: control.is_some().then_some(times[1]) })
}

fn summarize_rounds(rounds: &[Round], unit: u64) -> Sweep {
    let line = |times: &[f64; 4]| {
        let points: Vec<_> = SIZES.iter().zip(times).map(|(&s, &t)| ((s * unit) as f64, t)).collect();
        // Four different sizes always have a line.
        fit_line(&points).unwrap_or_default()
    };
    let lines: Vec<_> = rounds.iter().map(|r| (line(&r.subject), r.control.as_ref().map(line))).collect();
    let median_of = |values: Vec<f64>| (!values.is_empty()).then(|| median_interval(&values));
    let slopes: Vec<f64> = lines.iter().map(|(s, _)| s.slope.estimate).collect();
    Sweep {
        slope_quartile: percentile(&slopes, 75.0),
        slope: median_of(slopes).unwrap_or_default(),
        intercept: median_of(lines.iter().map(|(s, _)| s.intercept.estimate).collect()).unwrap_or_default(),
        control: median_of(lines.iter().filter_map(|(_, c)| Some(c.as_ref()?.slope.estimate)).collect()),
        net: median_of(
            lines.iter().filter_map(|(s, c)| Some(s.slope.estimate - c.as_ref()?.slope.estimate)).collect(),
        ),
        ratio: median_of(
            lines
                .iter()
                .filter_map(|(s, c)| Some(c.as_ref()?.slope.estimate / s.slope.estimate))
                .filter(|ratio| ratio.is_finite())
                .collect(),
        ),
        doubling: doubling_factor(rounds),
        unit,
    }
}

/// The factor by which twice the iterations take longer: the median over the rounds, since the core has one speed within a
/// short round. Medians per size mix speeds where the core is at times nearly twice as fast, as beside a busy hyperthread. They
/// accepted a parabola 3 times in 100, and rejected a line one time in three.
fn doubling_factor(rounds: &[Round]) -> Interval {
    median_interval(&rounds.iter().map(|round| doubling_of_round(round.subject)).collect::<Vec<_>>())
}

/// 1 plus the ratio of the growth of time over the second half of the sizes to that over the first half; 2 for a straight line.
fn doubling_of_round([one, two, three, four]: [f64; 4]) -> f64 {
    let first = (two - one) + (three - two) / 2.0;
    let second = (four - three) + (three - two) / 2.0;
    if first <= 0.0 { 0.0 } else { 1.0 + second / first }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rounds(time: impl Fn(f64) -> f64) -> Vec<Round> {
        let subject = SIZES.map(|s| time(s as f64 * 10.0));
        (0..8).map(|_| Round { subject, control: Some(SIZES.map(|s| s as f64 * 10.0)) }).collect()
    }

    #[test]
    fn slope_intercept_and_net_cost_of_a_line_are_found() {
        let found = summarize_rounds(&rounds(|n| 40.0 + 3.0 * n), 10);
        assert!((found.slope.estimate - 3.0).abs() < 1e-9);
        assert!((found.intercept.estimate - 40.0).abs() < 1e-9);
        assert!((found.net.expect("a control").estimate - 2.0).abs() < 1e-9);
        assert_eq!(found.doubling, Interval::exactly(2.0));
    }

    #[test]
    fn an_interrupted_batch_does_not_raise_the_slope_quartile() {
        let mut flat = rounds(|_| 60.0);
        flat[3].subject[3] = 9_000.0;
        assert!(summarize_rounds(&flat, 10).slope_quartile.abs() < 1e-9);
        assert!((summarize_rounds(&rounds(|n| 60.0 + 3.0 * n), 10).slope_quartile - 3.0).abs() < 1e-9);
    }

    #[test]
    fn the_doubling_of_a_parabola_is_above_that_of_a_line() {
        assert!(summarize_rounds(&rounds(|n| n * n), 10).doubling.low > 2.5);
    }

    #[test]
    fn changes_of_the_core_speed_hide_neither_a_line_nor_a_parabola() {
        // Half of the rounds are slow; in one further round a single batch is slow.
        let fast = [1.0; 4];
        let speeds =
            [vec![fast; 7], vec![fast.map(|one| 1.78 * one); 7], vec![[1.0, 1.78, 1.0, 1.0]]].concat();
        let doubling_of = |law: fn(f64) -> f64| {
            let times = |speed: &[f64; 4]| [0, 1, 2, 3].map(|at| speed[at] * law(SIZES[at] as f64));
            let rounds: Vec<_> =
                speeds.iter().map(|speed| Round { subject: times(speed), control: None }).collect();
            summarize_rounds(&rounds, 10).doubling
        };
        let (line, parabola) = (doubling_of(|n| n), doubling_of(|n| n * n));
        assert!((line.estimate - 2.0).abs() < 1e-9, "{line:?}");
        assert!(parabola.low > 2.5, "{parabola:?}");
    }

    #[test]
    fn an_overhead_below_zero_is_published_as_it_is() {
        assert!(summarize_rounds(&rounds(|n| 3.0 * n - 5.0), 10).intercept.estimate < 0.0);
    }
}

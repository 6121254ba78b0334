//! The CPU time of an operation, from the time that a fluid process lost to it (Woodside, Courtois and Schramm, *A
//! "Displacement" Technique for Robust Portable Measurement of Communications Processing Overheads*, 1997).
//!
//! A fluid process uses up whatever time others leave of one CPU and counts turns of a loop. Alone, it shows how long
//! a turn is; beside the process under test, covering it, it shows how much time was taken from it. Four estimators
//! look at the same windows. All times are nanoseconds.
//!
//! | estimator | cost of `n` operations | what it trusts |
//! |---|---|---|
//! | paper | `T − L·τ`, with `τ = T/L` of the fluid alone | only the wall clock; no other task runs, and a turn is as long as before |
//! | gap | `P + (X − L·m − g·L)·c`, with `m` the mean turn of *this* window that was neither interrupted nor the next, `g` what interrupts cost a turn of the fluid alone | nothing from before but the rate of ticks |
//! | daemon-free | `P + (X − L·x)·c`, with `x = X/L` of the fluid alone | a turn is as long as before |
//! | accounting | `P`, by the process clock, and what `getrusage` says | the kernel charges whom it should |
//!
//! `T` is the wall time of the window, `L` the turns in it, `X` what the kernel charged to the fluid and `P` what it
//! charged to the process under test (and to the thread that runs deferred interrupt work on that CPU). What was
//! charged to the fluid beyond its own turns were interrupts in its time, and with a minus sign what was charged to
//! others while it still ran. What is left, `O = T − X − P`, others had. While they had the CPU the interrupts of the
//! operation were charged to them: `c` counts those as often as the fluid met its own. An interrupt that works for the
//! operation ends one of its `w` waits, and takes the CPU from the fluid if the fluid had it, which happened `k` times:
//! `c = w/k`, and no more than `1 + O/X`. On a quiet CPU it is 1.

mod fluid_run;

pub use fluid_run::{NOT_QUIET, Replicate, Spoilt, Summary};

/// Largest share of a window that other tasks may have before a calibration by the wall clock is doubted.
pub const QUIET: f64 = 0.005;

/// Largest plausible share of interrupted turns: with turns of 100 ns it is a million interrupts a second.
const SELDOM: f64 = 0.1;
/// Up to this many interrupted turns are no sign of uneven speed, for windows in which the fluid hardly ran.
const FEW: f64 = 1e3;

/// The counts of the fluid in one window.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Window {
    /// Wall time, T.
    pub elapsed: f64,
    /// Turns of the loop, L.
    pub loops: f64,
    /// Time that the kernel charged to the fluid, X.
    pub own: f64,
    /// Turns that were interrupted.
    pub gaps: f64,
    /// Time of those turns.
    pub gapped: f64,
    /// Time of the turns that came next after an interrupted one and were not interrupted.
    pub after: f64,
    /// Number of those turns.
    pub afters: f64,
    /// Number of times that another task took the CPU from the fluid.
    pub preempted: f64,
}

impl Window {
    /// The mean turn that was neither interrupted nor the next after one that was; `None` without such a turn.
    pub fn mean_undisturbed_turn(&self) -> Option<f64> {
        let plain = self.loops - self.gaps - self.afters;
        let turn = (self.elapsed - self.gapped - self.after) / plain;
        (plain >= 1.0 && turn.is_finite() && turn > 0.0).then_some(turn)
    }

    /// Whether the speed of the processor changed within the window: many turns took a little longer than the others
    /// and count as interrupted. A busy thread on the same core does this.
    pub fn is_uneven(&self) -> bool {
        self.gaps > SELDOM * self.loops + FEW
    }

    /// The window counted in turns of another CPU, on which a turn takes `by` times as long.
    pub fn rescale_turns(&self, by: f64) -> Self {
        Self { loops: self.loops * by, gaps: self.gaps * by, afters: self.afters * by, ..*self }
    }

    /// The sum of two windows, one after the other or on two CPUs of the same speed.
    pub fn combined_with(&self, other: &Self) -> Self {
        Self {
            elapsed: self.elapsed + other.elapsed,
            loops: self.loops + other.loops,
            own: self.own + other.own,
            gaps: self.gaps + other.gaps,
            gapped: self.gapped + other.gapped,
            after: self.after + other.after,
            afters: self.afters + other.afters,
            preempted: self.preempted + other.preempted,
        }
    }

    /// The share of the window in which others than the fluid were charged.
    pub fn others_share(&self) -> f64 {
        (self.elapsed - self.own) / self.elapsed
    }
}

/// The fluid when it runs alone.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Calibration {
    /// Wall time a turn, τ: ticks, daemons and whatever else there always is are in it.
    pub wall: f64,
    /// Time charged to the fluid a turn, x.
    pub own: f64,
    /// A turn that was neither interrupted nor the next after one that was.
    pub plain: f64,
    /// Cost of interrupts for each turn, g.
    pub interrupts: f64,
    /// Time of others for each turn: the paper's α.
    pub daemons: f64,
    /// Turns of one window, L(1).
    pub turns: f64,
}

impl Calibration {
    /// The medians over the quiet windows, or over all usable ones if none was quiet (interrupts and daemons are
    /// means). `None` if no window has an undisturbed turn.
    pub fn from_windows(windows: &[Window]) -> Option<Self> {
        let usable: Vec<_> =
            windows.iter().filter(|w| w.mean_undisturbed_turn().is_some()).copied().collect();
        let quiet: Vec<_> = usable.iter().filter(|w| w.others_share() <= QUIET).copied().collect();
        let trusted = if quiet.is_empty() { &usable } else { &quiet };
        let each = |field: fn(&Window) -> f64| super::median(&trusted.iter().map(field).collect::<Vec<_>>());
        let sums = |field: fn(&Window) -> f64| trusted.iter().map(field).sum::<f64>();
        let loops = sums(|w| w.loops);
        (!usable.is_empty()).then(|| Self {
            wall: each(|w| w.elapsed / w.loops),
            own: each(|w| w.own / w.loops),
            plain: each(|w| w.mean_undisturbed_turn().unwrap_or_default()),
            // Interrupts come too seldom for a median: most windows see the one or the other.
            interrupts: sums(|w| w.own - w.loops * w.mean_undisturbed_turn().unwrap_or_default()) / loops,
            daemons: sums(|w| w.elapsed - w.own) / loops,
            turns: each(|w| w.loops),
        })
    }

    /// The mean of two, one before and one after.
    pub fn average(before: &Self, after: &Self) -> Self {
        let mean = |field: fn(&Self) -> f64| 0.5 * (field(before) + field(after));
        Self {
            wall: mean(|c| c.wall),
            own: mean(|c| c.own),
            plain: mean(|c| c.plain),
            interrupts: mean(|c| c.interrupts),
            daemons: mean(|c| c.daemons),
            turns: mean(|c| c.turns),
        }
    }

    /// The calibration of a fluid that was never alone, because the operation ran already. It uses only turns without
    /// interrupts, so the interrupts of the CPU itself are counted as cost.
    pub fn without_interrupts(&self) -> Self {
        Self { wall: self.plain, own: self.plain, interrupts: 0.0, daemons: 0.0, ..*self }
    }

    /// The relative change of a turn from one calibration to the other.
    pub fn drift(before: &Self, after: &Self) -> f64 {
        (after.own / before.own - 1.0).abs().max((after.wall / before.wall - 1.0).abs())
    }
}

/// A run of the process under test, covered by one window of the fluid.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Covered {
    /// The window.
    pub window: Window,
    /// Time that the process clock charged to the process under test and its children on that CPU.
    pub charged: f64,
    /// The same time by `getrusage`.
    pub rusage: f64,
    /// Time of the thread that runs deferred interrupt work on that CPU.
    pub deferred: f64,
    /// Operations.
    pub operations: f64,
    /// Number of times that the process under test gave up the CPU to wait.
    pub waits: f64,
    /// The kernel charges interrupts to no task: `X` and `P` do not contain them, only the wall clock does.
    pub interrupts_apart: bool,
}

impl Covered {
    /// Time that neither the fluid nor the process under test was charged.
    pub fn others_time(&self) -> f64 {
        self.window.elapsed - self.window.own - self.charged - self.deferred
    }

    /// [`Covered::others_time`] as a share of the window. Never negative, as it could be when clocks are read one after the
    /// other.
    pub fn others_share(&self) -> f64 {
        (self.others_time() / self.window.elapsed).max(0.0)
    }

    /// Interrupts of the operation that hit other tasks, as a multiple of those that hit the fluid. A process that
    /// computes has none. One that waits is woken by one, which hit another task if the fluid did not lose the CPU. If
    /// waits are long, others may have had much time and few interrupts, so their time is an upper bound.
    pub fn unmet_interrupt_ratio(&self) -> f64 {
        let by_time = self.others_time().max(0.0) / self.window.own.max(1.0);
        let met = self.window.preempted;
        let by_waits = (self.waits - met).max(0.0) / met.max(1.0);
        by_time.min(by_waits)
    }

    /// The share that the fluid had.
    pub fn fluid_share(&self) -> f64 {
        self.window.own / self.window.elapsed
    }
}

/// A possible cost: above zero, and no more than the time of the window.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Cost(f64);

/// Why a computed value cannot be a cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Nonsense {
    /// It is not a number, by a division by zero.
    #[error("it could not be computed: the fluid was never seen uninterrupted")]
    NoNumber,
    /// It is zero or negative: the fluid was faster during the operation than alone.
    #[error(
        "the cost is zero or negative: the fluid was slower in its calibration than beside the operation, so the \
         calibration was disturbed, or all operations of a run cost less than the empty runs differ by"
    )]
    NotPositive,
    /// It is more than the wall time of the window.
    #[error(
        "more CPU time came out than there was time: the fluid was slower beside the operation than in its \
         calibration, so one of the two was disturbed"
    )]
    MoreThanTime,
}

impl Cost {
    /// The cost of one operation, if what was computed for all can be their cost.
    pub fn per_operation(total: f64, covered: &Covered) -> Result<Self, Nonsense> {
        // The clocks of the window and of the two tasks are read one after the other.
        const SLACK: f64 = 1.001;
        match total {
            _ if !total.is_finite() || covered.operations < 1.0 => Err(Nonsense::NoNumber),
            _ if total <= 0.0 => Err(Nonsense::NotPositive),
            _ if total > SLACK * covered.window.elapsed => Err(Nonsense::MoreThanTime),
            _ => Ok(Self(total / covered.operations)),
        }
    }

    /// Nanoseconds.
    pub fn ns(self) -> f64 {
        self.0
    }
}

/// The estimates of one run, per operation: each is a cost, or the reason why it cannot be one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// By the paper's formula.
    pub paper: Result<Cost, Nonsense>,
    /// From the gaps that the fluid saw, by its own pace in the same window.
    pub gap: Result<Cost, Nonsense>,
    /// Without the time of others. Not if interrupts are charged to no task: they would count as others.
    pub daemon_free: Option<Result<Cost, Nonsense>>,
    /// By the process clock.
    pub charged: Result<Cost, Nonsense>,
    /// By `getrusage`.
    pub rusage: Result<Cost, Nonsense>,
}

/// The estimates for a whole window, ns, before the check whether they can be costs. For a run without operations they
/// are the cost of beginning and ending, which the paper calls S.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Totals {
    /// By the paper's formula.
    pub paper: f64,
    /// From the gaps. `None` if every turn was interrupted.
    pub gap: Option<f64>,
    /// Without the time of others.
    pub daemon_free: f64,
    /// By the process clock.
    pub charged: f64,
    /// By `getrusage`.
    pub rusage: f64,
    /// Time of other tasks.
    pub others: f64,
}

impl Totals {
    /// The totals of a run between two calibrations.
    pub fn from_run(covered: &Covered, calibration: &Calibration) -> Self {
        let window = &covered.window;
        let known = covered.charged + covered.deferred;
        let all = 1.0 + covered.unmet_interrupt_ratio();
        let gap = window.mean_undisturbed_turn().map(|turn| {
            let usual = calibration.interrupts * window.loops;
            if covered.interrupts_apart {
                return window.elapsed - window.loops * (turn + calibration.daemons) - usual;
            }
            known + (window.own - window.loops * turn - usual) * all
        });
        Self {
            paper: window.elapsed - window.loops * calibration.wall,
            gap,
            daemon_free: known + (window.own - window.loops * calibration.own) * all,
            charged: covered.charged,
            rusage: covered.rusage,
            others: covered.others_time(),
        }
    }

    /// The medians of several.
    pub fn median(all: &[Self]) -> Self {
        let each = |field: fn(&Self) -> f64| super::median(&all.iter().map(field).collect::<Vec<_>>());
        let gaps: Vec<_> = all.iter().filter_map(|totals| totals.gap).collect();
        Self {
            paper: each(|t| t.paper),
            gap: (!gaps.is_empty()).then(|| super::median(&gaps)),
            daemon_free: each(|t| t.daemon_free),
            charged: each(|t| t.charged),
            rusage: each(|t| t.rusage),
            others: each(|t| t.others),
        }
    }
}

/// The estimates of a run between two calibrations, less what a run without operations shows.
pub fn estimate_costs(covered: &Covered, calibration: &Calibration, empty: &Totals) -> Estimate {
    let totals = Totals::from_run(covered, calibration);
    let cost = |total: f64, empty: f64| Cost::per_operation(total - empty, covered);
    let gap = totals.gap.ok_or(Nonsense::NoNumber);
    Estimate {
        paper: cost(totals.paper, empty.paper),
        gap: gap.and_then(|gap| cost(gap, empty.gap.unwrap_or_default())),
        daemon_free: (!covered.interrupts_apart).then(|| cost(totals.daemon_free, empty.daemon_free)),
        charged: cost(totals.charged, empty.charged),
        rusage: cost(totals.rusage, empty.rusage),
    }
}

/// The terms by which an estimate may be off, a single operation (section 3 of the paper).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ErrorTerms {
    /// `[D(2) − D(1)·L(2)/L(1)]/n`: more daemons during the operation than during the calibration. Only the paper's
    /// estimate contains it.
    pub daemons: f64,
    /// `S/n`: beginning and ending, which was subtracted.
    pub start: f64,
    /// `±Δ·(1 + L(2)/L(1))/2n`: a turn more or less at the edges of each window. `L(1)` are the turns of a single window
    /// of the calibration: what its edges add is in all of them.
    pub resolution: f64,
    /// Extra time of the fluid's turns after an interruption, caused by its caches: a part of the cost. Their effect on
    /// the interrupted turn itself cannot be separated from the interruption.
    pub cache: f64,
    /// The fluid's turns in a window of the calibration and in the run: `L(1)` and `L(2)`.
    pub turns: [f64; 2],
}

impl ErrorTerms {
    /// The terms of a run.
    pub fn from_run(covered: &Covered, calibration: &Calibration, empty: &Totals) -> Self {
        let (window, n) = (&covered.window, covered.operations.max(1.0));
        let turn = window.mean_undisturbed_turn().unwrap_or_default();
        Self {
            daemons: (covered.others_time() - empty.others - calibration.daemons * window.loops) / n,
            start: empty.paper / n,
            resolution: turn * (1.0 + window.loops / calibration.turns.max(1.0)) / (2.0 * n),
            cache: (window.after - window.afters * turn) / n,
            turns: [calibration.turns, window.loops],
        }
    }
}

#[cfg(test)]
mod tests;

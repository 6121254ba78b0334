//! The CPU time of an operation, from the time that a fluid process lost to it (Woodside, Courtois and Schramm, *A
//! "Displacement" Technique for Robust Portable Measurement of Communications Processing Overheads*, 1997).
//!
//! A fluid process uses all the time that other tasks leave on one CPU, and counts turns of a loop. When it runs alone,
//! the count gives the length of a turn. When it shares the CPU with the process under test ("covers" it), the missing
//! turns give the time that was taken from it. Four estimators use the same windows. All times are nanoseconds.
//!
//! | estimator | cost of `n` operations | what it relies on |
//! |---|---|---|
//! | paper | `T − L·τ`, with `τ = T/L` of the fluid alone | the wall clock alone, no other task, the calibrated length of a turn |
//! | gap | `P + (X − L·m − g·L)·c`, with `m` the mean undisturbed turn of *this* window, `g` the interrupt time per turn of the fluid alone | only the rate of ticks from the calibration |
//! | daemon-free | `P + (X − L·x)·c`, with `x = X/L` of the fluid alone | the calibrated length of a turn |
//! | accounting | `P`, by the process clock and by `getrusage` | that the kernel charges the right task |
//!
//! An undisturbed turn was neither interrupted nor directly after an interrupted one.
//! `T` is the wall time of the window, `L` the turns in it, `X` what the kernel charged to the fluid and `P` what it
//! charged to the process under test (and to the thread that runs deferred interrupt work on that CPU). The charge to
//! the fluid beyond its own turns is the time of interrupts that hit it, less what was charged to other tasks while
//! the fluid still ran. The rest of the window, `O = T − X − P`, went to other tasks. The operation's interrupts that hit
//! those tasks were charged to them, so the factor `c` scales the interrupts that hit the fluid up to all of them. Each
//! such interrupt ends one of the operation's `w` waits; in `k` cases the fluid had the CPU and lost it. So `c = w/k`, but
//! at most `1 + O/X`. On a quiet CPU `c` is 1.

mod fluid_run;

pub use fluid_run::{NOT_QUIET, Replicate, Spoilt, Summary};

/// Largest share of a window that other tasks may use; a calibration window with more is not quiet.
pub const QUIET: f64 = 0.005;

/// Largest plausible share of interrupted turns: for turns of 100 ns, 0.1 means a million interrupts a second.
const SELDOM: f64 = 0.1;
/// Interrupted turns that are allowed beyond that share, for windows in which the fluid hardly ran.
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
    /// Total time of the interrupted turns.
    pub gapped: f64,
    /// Total time of the uninterrupted turns directly after an interrupted one.
    pub after: f64,
    /// Number of uninterrupted turns directly after an interrupted one.
    pub afters: f64,
    /// Number of times that another task took the CPU from the fluid.
    pub preempted: f64,
}

impl Window {
    /// The mean length of a turn that was neither interrupted nor directly after an interrupted one; `None` without such
    /// a turn.
    pub fn mean_undisturbed_turn(&self) -> Option<f64> {
        let plain = self.loops - self.gaps - self.afters;
        let turn = (self.elapsed - self.gapped - self.after) / plain;
        (plain >= 1.0 && turn.is_finite() && turn > 0.0).then_some(turn)
    }

    /// Whether the speed of the processor changed within the window, for example because of a busy thread on the same core.
    /// Many turns then take a little longer than the others and count as interrupted.
    pub fn is_uneven(&self) -> bool {
        self.gaps > SELDOM * self.loops + FEW
    }

    /// The same window counted in turns that take `1/by` times as long: its counts of turns multiplied by `by`.
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

    /// The share of the window that was not charged to the fluid.
    pub fn others_share(&self) -> f64 {
        (self.elapsed - self.own) / self.elapsed
    }
}

/// The fluid when it runs alone.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Calibration {
    /// Wall time per turn, τ. It includes ticks, daemons and everything else that always runs.
    pub wall: f64,
    /// Time charged to the fluid per turn, x.
    pub own: f64,
    /// Length of a turn that was neither interrupted nor directly after an interrupted one.
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
            // Interrupts are too rare for a median over windows: most windows have one or none.
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

    /// The relative change of the length of a turn from one calibration to the other: the larger of the changes by
    /// charged time and by wall time.
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
    /// Time of the process under test and its children by `getrusage`.
    pub rusage: f64,
    /// Time of the thread that runs deferred interrupt work on that CPU.
    pub deferred: f64,
    /// Operations.
    pub operations: f64,
    /// Number of times that the process under test gave up the CPU to wait.
    pub waits: f64,
    /// Whether the kernel charges interrupts to no task: then only the wall time contains them, not `X` and `P`.
    pub interrupts_apart: bool,
}

impl Covered {
    /// Time, ns, that was charged neither to the fluid nor to the process under test nor to deferred interrupt work.
    pub fn others_time(&self) -> f64 {
        self.window.elapsed - self.window.own - self.charged - self.deferred
    }

    /// [`Covered::others_time`] as a share of the window. A negative time, possible because the clocks are not read at the
    /// same instant, counts as 0.
    pub fn others_share(&self) -> f64 {
        (self.others_time() / self.window.elapsed).max(0.0)
    }

    /// Interrupts of the operation that hit other tasks, as a multiple of those that hit the fluid. A process that only
    /// computes has none. An interrupt ends each wait; it hit another task if it did not take the CPU from the fluid. The
    /// ratio of the other tasks' time to the fluid's is an upper bound: in long waits they may meet few interrupts.
    pub fn unmet_interrupt_ratio(&self) -> f64 {
        let by_time = self.others_time().max(0.0) / self.window.own.max(1.0);
        let met = self.window.preempted;
        let by_waits = (self.waits - met).max(0.0) / met.max(1.0);
        by_time.min(by_waits)
    }

    /// The share of the window that was charged to the fluid.
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
    /// The cost of one operation from the `total` of all, or why `total` cannot be a cost.
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
    /// From the gaps in the fluid's turns, with the turn length of the same window.
    pub gap: Result<Cost, Nonsense>,
    /// Without the time of other tasks. `None` if the kernel charges interrupts to no task: they would count as other tasks.
    pub daemon_free: Option<Result<Cost, Nonsense>>,
    /// By the process clock.
    pub charged: Result<Cost, Nonsense>,
    /// By `getrusage`.
    pub rusage: Result<Cost, Nonsense>,
}

/// The estimates for a whole window, ns, before the check whether they can be costs. For a run without operations the
/// totals are the cost of beginning and ending, which the paper calls S.
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

    /// The median of each field over several totals.
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

/// The estimates of a run per operation, after the totals of a run without operations (`empty`) are subtracted.
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

/// The terms by which an estimate may be off, ns per operation (section 3 of the paper).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ErrorTerms {
    /// `[D(2) − D(1)·L(2)/L(1)]/n`: more daemons during the operation than during the calibration. Only the paper's
    /// estimate contains it.
    pub daemons: f64,
    /// `S/n`: the cost of beginning and ending. The estimates have it already subtracted.
    pub start: f64,
    /// `±Δ·(1 + L(2)/L(1))/2n`: up to a turn more or less at the edges of each window. `L(1)` is the number of turns of a
    /// single window of the calibration: every calibration window has the error of its own edges.
    pub resolution: f64,
    /// Extra time of the fluid's turns directly after an interruption, caused by cold caches. It is a part of the cost. The
    /// effect of the caches on the interrupted turn itself cannot be separated from the interruption.
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

//! What an operation costs in CPU time, from what a fluid process lost to it (Woodside, Courtois and Schramm, *A
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

/// Others may have so much of a window before a calibration by the wall clock is doubted.
pub const QUIET: f64 = 0.005;

/// A larger share of the turns is not interrupted: with turns of 100 ns it would be a million times a second.
const SELDOM: f64 = 0.1;
/// Interrupted turns that say nothing of a window in which the fluid hardly came to run.
const FEW: f64 = 1e3;

/// What the fluid counted in one window.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Window {
    /// Wall time, T.
    pub elapsed: f64,
    /// Turns of the loop, L.
    pub loops: f64,
    /// What the kernel charged to the fluid, X.
    pub own: f64,
    /// Turns that were interrupted.
    pub gaps: f64,
    /// Time of those turns.
    pub gapped: f64,
    /// Time of the turns that came next after an interrupted one and were not interrupted.
    pub after: f64,
    /// How many those were.
    pub afters: f64,
    /// How often another task took the CPU from the fluid.
    pub preempted: f64,
}

impl Window {
    /// The mean turn that was neither interrupted nor the next after one that was. Nothing where there was none.
    pub fn plain_turn(&self) -> Option<f64> {
        let plain = self.loops - self.gaps - self.afters;
        let turn = (self.elapsed - self.gapped - self.after) / plain;
        (plain >= 1.0 && turn.is_finite() && turn > 0.0).then_some(turn)
    }

    /// Whether the processor changed its pace within the window: many turns took a little longer than the others, which
    /// counts as interrupted and is not. Beside a busy thread of the same core it is so.
    pub fn is_uneven(&self) -> bool {
        self.gaps > SELDOM * self.loops + FEW
    }

    /// The same window beside others of other CPUs, where a turn takes `by` times as long as here: counted in turns of
    /// theirs.
    pub fn in_turns_of(&self, by: f64) -> Self {
        Self { loops: self.loops * by, gaps: self.gaps * by, afters: self.afters * by, ..*self }
    }

    /// Both together, one after the other or on two CPUs of one pace.
    pub fn and(&self, other: &Self) -> Self {
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

/// What the fluid does alone.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Calibration {
    /// Wall time a turn, τ: ticks, daemons and whatever else there always is are in it.
    pub wall: f64,
    /// Time charged to the fluid a turn, x.
    pub own: f64,
    /// A turn that was neither interrupted nor the next after one that was.
    pub plain: f64,
    /// What interrupts cost a turn, g.
    pub interrupts: f64,
    /// What others had, a turn: the paper's α.
    pub daemons: f64,
    /// Windows in which others had no more than [`QUIET`], and all.
    pub quiet: (usize, usize),
}

impl Calibration {
    /// The medians over several windows; over the quiet ones alone where the wall clock is trusted and there are
    /// any. Nothing where no turn was uninterrupted.
    pub fn of(windows: &[Window]) -> Option<Self> {
        let usable: Vec<_> = windows.iter().filter(|w| w.plain_turn().is_some()).copied().collect();
        let quiet: Vec<_> = usable.iter().filter(|w| w.others_share() <= QUIET).copied().collect();
        let trusted = if quiet.is_empty() { &usable } else { &quiet };
        let each = |of: fn(&Window) -> f64| super::median(&trusted.iter().map(of).collect::<Vec<_>>());
        let sums = |of: fn(&Window) -> f64| trusted.iter().map(of).sum::<f64>();
        let loops = sums(|w| w.loops);
        (!usable.is_empty()).then(|| Self {
            wall: each(|w| w.elapsed / w.loops),
            own: each(|w| w.own / w.loops),
            plain: each(|w| w.plain_turn().unwrap_or_default()),
            // Interrupts come too seldom for a median: most windows see the one or the other.
            interrupts: sums(|w| w.own - w.loops * w.plain_turn().unwrap_or_default()) / loops,
            daemons: sums(|w| w.elapsed - w.own) / loops,
            quiet: (quiet.len(), windows.len()),
        })
    }

    /// The mean of two, one before and one after.
    pub fn between(before: &Self, after: &Self) -> Self {
        let mean = |of: fn(&Self) -> f64| 0.5 * (of(before) + of(after));
        Self {
            wall: mean(|c| c.wall),
            own: mean(|c| c.own),
            plain: mean(|c| c.plain),
            interrupts: mean(|c| c.interrupts),
            daemons: mean(|c| c.daemons),
            quiet: (before.quiet.0 + after.quiet.0, before.quiet.1 + after.quiet.1),
        }
    }

    /// Of a fluid that was never alone: what it is to cover was there already, and so were its interrupts. Only its
    /// turns without any are its own; what the CPU's own interrupts take is counted with the rest.
    pub fn bare(&self) -> Self {
        Self { wall: self.plain, own: self.plain, interrupts: 0.0, daemons: 0.0, ..*self }
    }

    /// By how much a turn became longer or shorter from one to the other, as a share.
    pub fn drift(before: &Self, after: &Self) -> f64 {
        (after.own / before.own - 1.0).abs().max((after.wall / before.wall - 1.0).abs())
    }
}

/// A run of the process under test, covered by one window of the fluid.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Covered {
    /// The window.
    pub window: Window,
    /// What the process clock charged to the process under test, and to its own on that CPU.
    pub charged: f64,
    /// What `getrusage` said of the same.
    pub rusage: f64,
    /// What the thread that runs deferred interrupt work on that CPU was charged.
    pub deferred: f64,
    /// Operations.
    pub operations: f64,
    /// How often the process under test gave up the CPU to wait.
    pub waits: f64,
    /// The kernel charges interrupts to no task: `X` and `P` do not contain them, only the wall clock does.
    pub interrupts_apart: bool,
}

impl Covered {
    /// What neither the fluid nor the process under test was charged.
    pub fn others(&self) -> f64 {
        self.window.elapsed - self.window.own - self.charged - self.deferred
    }

    /// The same as a share of the window. Never negative: a clock that is read a moment later is no guest.
    pub fn others_share(&self) -> f64 {
        (self.others() / self.window.elapsed).max(0.0)
    }

    /// What others met of the interrupts that work for the operation, as a multiple of what the fluid met. Who computes
    /// has none; who waits is woken by one, and another task than the fluid had the CPU then if the fluid did not lose
    /// it. While the waits are long, others may have had much time and met little; never more than their time allows.
    pub fn unmet(&self) -> f64 {
        let by_time = self.others().max(0.0) / self.window.own.max(1.0);
        let met = self.window.preempted;
        let by_waits = (self.waits - met).max(0.0) / met.max(1.0);
        by_time.min(by_waits)
    }

    /// The share that the fluid had.
    pub fn fluid_share(&self) -> f64 {
        self.window.own / self.window.elapsed
    }
}

/// A cost that can be one: above nothing, and no more than the time that there was.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Cost(f64);

/// What was computed is no cost, and why.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Nonsense {
    /// It is no number: something was divided by nothing.
    NoNumber,
    /// It is zero or negative: the fluid was faster during the operation than alone.
    NotPositive(f64),
    /// It is more than the wall time of the window.
    MoreThanTime(f64, f64),
}

impl std::fmt::Display for Nonsense {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NoNumber => f.write_str("it could not be computed: the fluid was never seen uninterrupted"),
            Self::NotPositive(_) => f.write_str(
                "nothing or less came out: the fluid was slower in its calibration than beside the operation, so the \
                 calibration was disturbed",
            ),
            Self::MoreThanTime(..) => f.write_str(
                "more CPU time came out than there was time: the fluid was slower beside the operation than in its \
                 calibration, so one of the two was disturbed",
            ),
        }
    }
}

impl Cost {
    /// The cost of one operation, if what was computed for all can be their cost.
    pub fn of(total: f64, covered: &Covered) -> Result<Self, Nonsense> {
        // The clocks of the window and of the two tasks are read one after the other.
        const SLACK: f64 = 1.001;
        match total {
            _ if !total.is_finite() || covered.operations < 1.0 => Err(Nonsense::NoNumber),
            _ if total <= 0.0 => Err(Nonsense::NotPositive(total)),
            _ if total > SLACK * covered.window.elapsed => {
                Err(Nonsense::MoreThanTime(total, covered.window.elapsed))
            }
            _ => Ok(Self(total / covered.operations)),
        }
    }

    /// Nanoseconds.
    pub fn ns(self) -> f64 {
        self.0
    }
}

/// The four estimates of one run, a single operation; each is a cost, or is none and says why.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// By the paper's formula.
    pub paper: Result<Cost, Nonsense>,
    /// From the gaps that the fluid saw, by its own pace in the same window.
    pub gap: Result<Cost, Nonsense>,
    /// Without what others had. Not if interrupts are charged to no task: they would count as others.
    pub daemon_free: Option<Result<Cost, Nonsense>>,
    /// By the process clock.
    pub charged: Result<Cost, Nonsense>,
    /// By `getrusage`.
    pub rusage: Result<Cost, Nonsense>,
}

/// What the estimators make of a whole window, ns, before anybody asks whether it can be a cost. Of a run without
/// operations it is what it takes to begin and to end, which the paper calls S.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Totals {
    /// By the paper's formula.
    pub paper: f64,
    /// From the gaps. Nothing where no turn was uninterrupted.
    pub gap: Option<f64>,
    /// Without what others had.
    pub daemon_free: f64,
    /// By the process clock.
    pub charged: f64,
    /// By `getrusage`.
    pub rusage: f64,
    /// What others had.
    pub others: f64,
}

impl Totals {
    /// Of a run between calibrations.
    pub fn of(covered: &Covered, calibration: &Calibration) -> Self {
        let window = &covered.window;
        let known = covered.charged + covered.deferred;
        let all = 1.0 + covered.unmet();
        let gap = window.plain_turn().map(|turn| {
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
            others: covered.others(),
        }
    }

    /// The medians of several.
    pub fn median(all: &[Self]) -> Self {
        let each = |of: fn(&Self) -> f64| super::median(&all.iter().map(of).collect::<Vec<_>>());
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
pub fn estimate(covered: &Covered, calibration: &Calibration, empty: &Totals) -> Estimate {
    let totals = Totals::of(covered, calibration);
    let cost = |total: f64, empty: f64| Cost::of(total - empty, covered);
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
    /// `[D(2) − D(1)·L(2)/L(1)]/n`: more daemons beside the operation than in the calibration. It is in the paper's
    /// estimate and in no other.
    pub daemons: f64,
    /// `S/n`: beginning and ending, which was taken off.
    pub start: f64,
    /// `±Δ·(1 + L(2)/L(1))/2n`: a turn more or less at the edges of the windows.
    pub resolution: f64,
    /// What the fluid's turns after an interruption took more than others, a part of the cost that its caches made. What
    /// they made the interrupted turn take itself cannot be told from the interruption.
    pub cache: f64,
}

impl ErrorTerms {
    /// Of a run between calibrations of `calibrated` turns.
    pub fn of(covered: &Covered, calibration: &Calibration, calibrated: f64, empty: &Totals) -> Self {
        let (window, n) = (&covered.window, covered.operations.max(1.0));
        let turn = window.plain_turn().unwrap_or_default();
        Self {
            daemons: (covered.others() - empty.others - calibration.daemons * window.loops) / n,
            start: empty.paper / n,
            resolution: turn * (1.0 + window.loops / calibrated.max(1.0)) / (2.0 * n),
            cache: (window.after - window.afters * turn) / n,
        }
    }
}

#[cfg(test)]
mod tests;

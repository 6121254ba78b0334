//! Throughput of a CPU that never idles: what an estimate predicts is held against what is seen.

use super::{Displacement, Halt, Run};
use crate::record::{Interval, Throughput};
use crate::statistic::displacement::Totals;
use crate::statistic::student::{FEWEST, mean_interval};

/// A CPU that never idles charges the process for all of the time but this share, unless others had it or the message
/// took longer than the computation.
const IDLE: f64 = 0.02;
/// Share of a run's iterations that are enough: each takes several times as long.
const SHARE: f64 = 0.1;

/// What one iteration takes with computation between, and what the computation takes alone, ns.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Saturated {
    both: f64,
    compute: f64,
    /// The share of the time that the process was charged for.
    busy: f64,
}

impl Saturated {
    fn is_idle(&self) -> bool {
        self.busy < 1.0 - IDLE
    }

    /// The mean of before and after a run: a machine that changes its pace on the way does so for both.
    pub(super) fn between(before: Option<Self>, after: Option<Self>) -> Option<Self> {
        let (before, after) = before.zip(after)?;
        let mean = |a: f64, b: f64| 0.5 * (a + b);
        Some(Self {
            both: mean(before.both, after.both),
            compute: mean(before.compute, after.compute),
            busy: before.busy.min(after.busy),
        })
    }
}

/// Measures it beside a run, while the fluid stands still; nothing for a case that has no such thing.
pub(super) fn saturate(displacement: &mut Displacement<'_>) -> Result<Option<Saturated>, Halt> {
    let iterations = ((displacement.iterations as f64 * SHARE) as u64).max(1);
    let Displacement { subject, clock, meter, account, .. } = displacement;
    let found = meter.aside(|| {
        let (charged, start) = (account.charge()?.clock, clock.start());
        let ticks = subject.saturated(iterations, clock).transpose()?;
        let elapsed = clock.nanoseconds(clock.stop() - start).0;
        Ok(ticks.zip(Some((account.charge()?.clock - charged) / elapsed)))
    })?;
    Ok(found.map(|(ticks, busy)| {
        let [both, compute] = ticks.map(|ticks| clock.nanoseconds(ticks).0 / iterations as f64);
        Saturated { both, compute, busy }
    }))
}

/// Why there is no rate although there should be one.
pub(super) fn no_rate(runs: &[&Run]) -> Option<String> {
    let all: Vec<_> = runs.iter().filter_map(|run| run.saturated).collect();
    let idle = all.iter().filter(|saturated| saturated.is_idle()).count();
    (all.len() - idle < FEWEST && !all.is_empty()).then(|| {
        format!(
            "there is no rate of a CPU that never idles: beside {idle} of {} runs others had it, or a message and its reply \
             took longer than the computation between two of them",
            all.len()
        )
    })
}

/// What the runs say together in which the CPU never idled.
pub(super) fn throughput(runs: &[&Run], empty: &Totals) -> Option<Throughput> {
    let each = |run: &&Run| {
        let saturated = run.saturated.filter(|saturated| !saturated.is_idle())?;
        let estimate = run.replicate.estimate(empty);
        let (gap, charged) = (estimate.gap.ok()?.ns(), estimate.charged.ok()?.ns());
        let rate = |ns: f64| 1e9 / ns;
        let real = rate(saturated.both);
        let [displaced, charged] = [gap, charged].map(|cost| rate(cost + saturated.compute));
        Some([saturated.compute, real, displaced, displaced / real - 1.0, charged, charged / real - 1.0])
    };
    let rows: Vec<_> = runs.iter().filter_map(each).collect();
    let column = |at: usize| -> Option<Interval> {
        mean_interval(&rows.iter().map(|row| row[at]).collect::<Vec<_>>())
    };
    Some(Throughput {
        compute: column(0)?.estimate,
        real: column(1)?,
        displaced: column(2)?,
        displaced_off: column(3)?,
        charged: column(4)?,
        charged_off: column(5)?,
    })
}

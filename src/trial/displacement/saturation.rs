//! Throughput of a CPU that never idles: what an estimate predicts is held against what is seen.

use super::{CaseEnd, Displacement, Run};
use crate::record::{Interval, Throughput};
use crate::statistic::fluid_cost::Totals;
use crate::statistic::student::{FEWEST, mean_interval};

/// A CPU that never idles charges the process and its partners for all of the time but this share, unless others had it.
const IDLE: f64 = 0.02;

/// A CPU that several shared.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Saturated {
    /// Time of an iteration of any of them, ns.
    iteration: f64,
    /// The share of the time that they were charged for.
    busy: f64,
}

impl Saturated {
    fn is_idle(&self) -> bool {
        self.busy < 1.0 - IDLE
    }

    /// The mean of before and after a run: a machine that changes its pace on the way does so for both.
    pub(super) fn between(before: Option<Self>, after: Option<Self>) -> Option<Self> {
        let (before, after) = before.zip(after)?;
        Some(Self {
            iteration: 0.5 * (before.iteration + after.iteration),
            busy: before.busy.min(after.busy),
        })
    }
}

/// Measures it beside a run, while the fluid stands still; nothing for a case that has no such thing.
pub(super) fn saturate(displacement: &mut Displacement<'_>) -> Result<Option<Saturated>, CaseEnd> {
    let Displacement { subject, clock, meter, account, effort, .. } = displacement;
    let found = meter.aside(|| {
        let (charged, start) = (account.charge()?.clock, clock.start());
        let done = subject.saturated(effort.run, clock).transpose()?;
        let elapsed = clock.nanoseconds(clock.stop() - start).0;
        Ok(done.zip(Some((account.charge()?.clock - charged) / elapsed)))
    })?;
    Ok(found.map(|((iterations, ticks), busy)| Saturated {
        iteration: clock.nanoseconds(ticks).0 / iterations as f64,
        busy,
    }))
}

/// Why there is no rate although there should be one.
pub(super) fn no_rate(runs: &[&Run]) -> Option<String> {
    let all: Vec<_> = runs.iter().filter_map(|run| run.saturated).collect();
    let idle = all.iter().filter(|saturated| saturated.is_idle()).count();
    (all.len() - idle < FEWEST && !all.is_empty()).then(|| {
        format!(
            "there is no rate of a CPU that never idles: beside {idle} of {} runs others had it, or all who shared it \
             waited at once",
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
        let [real, displaced, charged] = [saturated.iteration, gap, charged].map(rate);
        Some([real, displaced, displaced / real - 1.0, charged, charged / real - 1.0])
    };
    let rows: Vec<_> = runs.iter().filter_map(each).collect();
    let column = |at: usize| -> Option<Interval> {
        mean_interval(&rows.iter().map(|row| row[at]).collect::<Vec<_>>())
    };
    Some(Throughput {
        real: column(0)?,
        displaced: column(1)?,
        displaced_off: column(2)?,
        charged: column(3)?,
        charged_off: column(4)?,
    })
}

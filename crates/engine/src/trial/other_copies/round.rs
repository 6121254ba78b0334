//! The samples that a trial takes beside other copies.

use super::{ALONE, OtherCopies, Times, least_company};
use crate::clock::{Reading, Ticks};
use crate::record::Derived;
use crate::record::quantity::NANOSECONDS;
use crate::statistic;
use crate::trial::{CaseEnd, Sample, Trial};

/// Least share of a copy's batch during which each other copy must run too (its *company*). Readings of the counters at the end
/// of a batch of 4 ms take 1 or 2 % of it.
const LEAST_COMPANY: f64 = 0.9;
/// Share of company below which two copies ran one after the other: one began when the other had ended, or was about to.
const APART_COMPANY: f64 = 0.1;
/// After its batch, a copy runs further batches, shorter than a sample by this factor.
const SHORTER_BY: u64 = 8;
/// Most rounds of an execution that may lack company: twice as many as it keeps at default scale. With more, the execution is
/// given up.
const VOID_ROUNDS: u32 = 20;

/// The other copies, and the rounds that a trial has measured beside them.
pub(in crate::trial) struct Accompanied<'a> {
    pub(in crate::trial) other_copies: &'a OtherCopies,
    /// Cost of an iteration in each batch that the first copy ran alone, ns.
    pub(in crate::trial) alone: Vec<f64>,
    /// The smallest share of company in a sample that counts.
    least: f64,
    /// Rounds that do not count.
    void: u32,
    /// Rounds among `void` in which a copy was kept from its CPU.
    hindered: u32,
    /// Rounds among `void` in which two copies ran one after the other.
    apart: u32,
}

impl<'a> Accompanied<'a> {
    pub(in crate::trial) fn new(other_copies: &'a OtherCopies) -> Self {
        Self { other_copies, alone: Vec::new(), least: 1.0, void: 0, hindered: 0, apart: 0 }
    }

    /// Whether a round with these times counts.
    ///
    /// # Errors
    /// Too many rounds did not count: [`CaseEnd::Contradicted`] if copies ran one after the other in each of them, and
    /// otherwise [`CaseEnd::Disturbed`]: by other tasks, by slow timers, or by a host that seldom runs two virtual CPUs at
    /// once.
    fn judge_round(&mut self, times: &[Times]) -> Result<bool, CaseEnd> {
        let share = least_company(times);
        if share >= LEAST_COMPANY {
            self.least = self.least.min(share);
            return Ok(true);
        }
        let is_hindered = |times: &Times| {
            let [began, ended] = times.batch;
            times.waited as f64 > (1.0 - LEAST_COMPANY) * ended.saturating_sub(began) as f64
        };
        self.void += 1;
        self.hindered += u32::from(times.iter().any(is_hindered));
        self.apart += u32::from(share < APART_COMPANY);
        if self.void <= VOID_ROUNDS {
            return Ok(false);
        }
        let sentence = format!(
            "the {} copies did not run at the same time: in {} rounds a copy had no company for {:.0} % of its batch or more",
            self.other_copies.count(),
            self.void,
            100.0 * (1.0 - LEAST_COMPANY)
        );
        Err(match (self.apart == self.void, 2 * self.hindered >= self.void) {
            (_, true) => CaseEnd::Disturbed(
                sentence + ", since others had its CPU: stop other tasks, or take fewer copies",
            ),
            (true, false) => CaseEnd::Contradicted(sentence + ", and one ran after the other"),
            (false, false) => CaseEnd::Disturbed(sentence + ": stop other tasks, also those of the host"),
        })
    }

    /// The figure for the cost in the first copy alone, measured in turns with the cost beside the others; `None` if it was not
    /// measured.
    pub(in crate::trial) fn alone_figure(&self) -> Option<Derived> {
        let value = (!self.alone.is_empty()).then(|| statistic::median_interval(&self.alone))?;
        Some(Derived { name: ALONE.into(), unit: NANOSECONDS.into(), value })
    }

    pub(in crate::trial) fn evidence(&self) -> String {
        let share = 100.0 * self.least;
        format!(
            "{} copies ran at the same time, for {share:.0} % or more of every sample",
            self.other_copies.count()
        )
    }
}

/// Time during which other tasks had this copy's CPU, ns; `u64::MAX` if the hypervisor took any of it, or the kernel does not
/// count it.
fn hindered_ns(counted: &Reading) -> u64 {
    let is_stolen = counted.stolen_ticks.is_some_and(|ticks| ticks > 0);
    counted.waited_ns.filter(|_| !is_stolen).unwrap_or(u64::MAX)
}

impl Trial<'_> {
    /// The other copies, if this sample is taken beside them.
    pub(in crate::trial) fn other_copies_of_sample(&self) -> Option<&OtherCopies> {
        self.accompanied.as_ref().map(|accompanied| accompanied.other_copies).filter(|_| self.began)
    }

    /// Measures a sample beside the other copies, in as many rounds as it takes.
    ///
    /// # Errors
    /// As of [`Trial::measure_sample`], or the copies do not run at the same time.
    pub(in crate::trial) fn measure_beside_copies(
        &mut self,
        other_copies: &OtherCopies,
        iterations: u64,
    ) -> Result<(), CaseEnd> {
        let kept = self.clock.count_single_times();
        loop {
            other_copies.meet_all()?;
            if other_copies.is_first() {
                let ticks = self.run_batch(iterations)?;
                let cost = self.clock.nanoseconds(Ticks(ticks)).0 / iterations.max(1) as f64;
                self.accompanied.iter_mut().for_each(|accompanied| accompanied.alone.push(cost));
                self.clock.shorten_single_times(kept);
            }
            other_copies.meet_all()?;
            let before = self.clock.core_hz();
            let sample = self.batch_between_readings(iterations)?;
            let own = self.clock.count_single_times();
            other_copies.keep_company(hindered_ns(&sample.delta.counted), || {
                self.subject.run((iterations / SHORTER_BY).max(1), self.clock)?;
                Ok(())
            })?;
            let core_hz = 0.5 * (before + self.clock.core_hz());
            let counts = match &mut self.accompanied {
                Some(accompanied) => accompanied.judge_round(&other_copies.times())?,
                None => true,
            };
            self.clock.shorten_single_times(if counts { own } else { kept });
            if counts {
                return self.judge_and_keep_sample(Sample { core_hz, ..sample });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::pair;
    use super::*;

    #[test]
    fn copies_that_run_one_after_another_without_other_tasks_are_contradicted() {
        let [first, _second] = pair();
        let round = |share: u64, waited| {
            let other = Times { batch: [0, share], after: [share, share], waited: 0 };
            [Times { batch: [0, 100], after: [100, 100], waited }, other]
        };
        for (share, waited, is_disturbed) in
            [(5, 0, false), (5, 50, true), (5, u64::MAX, true), (80, 0, true), (0, 0, false)]
        {
            let mut accompanied = Accompanied::new(&first);
            assert!((0..VOID_ROUNDS).all(|_| accompanied.judge_round(&round(share, waited)) == Ok(false)));
            assert_eq!(accompanied.judge_round(&round(95, waited)), Ok(true));
            let end = accompanied.judge_round(&round(share, waited)).expect_err("too many");
            assert_eq!(matches!(end, CaseEnd::Disturbed(_)), is_disturbed, "{share} {waited}: {end:?}");
        }
    }
}

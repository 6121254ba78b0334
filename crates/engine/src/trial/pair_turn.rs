//! Turns of a paired comparison: about a millisecond of one case, while the other side waits.

use super::retraining::retrain_predictor;
use super::{CaseEnd, Trial, judge};
use crate::clock::{Delta, Ticks};
use crate::platform::emulator_mark::Mark;
use crate::platform::time;
use crate::record::EventRate;
use serde::{Deserialize, Serialize};

/// Times of one turn, with what else happened on the CPU.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Turn {
    /// Ticks of each batch.
    pub ticks: Vec<u64>,
    /// Wall time of the whole turn, ns, including untimed preparation.
    pub elapsed_ns: f64,
    /// Frequency of the core just before, Hz, inferred from a chain of additions.
    pub core_hz: f64,
    /// Time that the thread was ready while a task outside the case ran, ns.
    pub waited_ns: Option<u64>,
    /// Stolen time of the CPU, clock ticks of 10 ms.
    pub stolen_ticks: Option<u64>,
    /// Involuntary context switches.
    pub involuntary_switches: u64,
}

impl Trial<'_> {
    /// Runs `batches` batches of `iterations` between two readings of the counters, and judges them.
    ///
    /// # Errors
    /// The subject fails, or a claim does not hold.
    pub fn run_turn(&mut self, iterations: u64, batches: usize) -> Result<Turn, CaseEnd> {
        // A case that prepares each iteration resets the branch predictor by itself.
        if !self.case.one_by_one {
            let lap = self.lap_length();
            retrain_predictor(&mut *self.subject, iterations, lap, self.clock)?;
        }
        let core_hz = self.clock.core_hz();
        self.partners.read();
        let before = self.counters.read()?;
        let mut ticks = Vec::with_capacity(batches);
        let (start, ran) = (self.clock.start(), time::thread_cpu_ns());
        if let Some(sampler) = &self.sampler {
            sampler.begin_turn()?;
        }
        for _ in 0..batches {
            self.clock.mark(Mark::BeginBatch);
            ticks.push(self.run_batch(iterations)?);
            self.clock.mark(Mark::EndBatch);
        }
        self.clock.mark(Mark::EndTurn);
        if let Some(sampler) = &mut self.sampler {
            sampler.end_turn()?;
        }
        let ran_ns = time::thread_cpu_ns() - ran;
        let elapsed_ns = self.clock.nanoseconds(self.clock.stop() - start).0;
        let mut delta = Delta::between(&before, &self.counters.read()?);
        delta.partners = self.partners.read();
        if self.event.is_none() {
            let told_ns = self.clock.nanoseconds(Ticks(ticks.iter().sum())).0;
            judge::check_reported_time(told_ns, elapsed_ns, iterations * batches as u64)?;
        }
        judge::judge_sample(self.case, &delta, iterations * batches as u64, self.pinned)?;
        // An emulator that counts instructions at the marks needs no ticks, which may be longer than a batch.
        if ticks.contains(&0) && !self.clock.is_marked() {
            return Err(CaseEnd::Failed(
                "a batch took no time at all: nothing was done in the timed part".into(),
            ));
        }
        Ok(Turn {
            ticks,
            elapsed_ns,
            core_hz,
            waited_ns: judge::other_tasks_ns(self.case.own_tasks, &delta, elapsed_ns, ran_ns),
            stolen_ticks: delta.counted.stolen_ticks,
            involuntary_switches: delta.counted.involuntary_switches,
        })
    }

    /// One sentence per claim that has held so far.
    pub fn evidence(&self) -> &[String] {
        &self.evidence
    }

    /// What was counted an iteration.
    pub fn counts(&self) -> &[EventRate] {
        &self.rates
    }

    /// One sentence per claim that could not be checked here.
    pub fn unchecked_claims(&self) -> &[String] {
        &self.unasked
    }
}

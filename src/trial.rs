//! Measures one case: set up, read counters, run, read counters, judge the claims.
//!
//! [`Trial::prepare`] checks the needs and sets the case up. [`Trial::prove`] calls the witness and sweeps over numbers of
//! iterations. [`Trial::sample`] measures one batch between two readings of the counters; the caller decides how many
//! samples there are. [`Trial::conclude`] judges the claims about all samples. Each step may end the case by a
//! [`CaseEnd`], and then there is no number.

/// Seed of the order in which batches of a sweep run.
pub const SEED: u64 = 0x5eed;

/// Rounds of the sweep after each sample: a hundred over the fifty samples of the default scale.
const ROUNDS_BESIDE: usize = 2;

/// Time that the samples of a case may take at default scale, ns.
const PATIENCE_NS: f64 = 0.5e9;
/// Fewest samples whose median has a useful interval.
const FEWEST_SAMPLES: usize = 20;

mod case_end;
mod derived;
mod displacement;
mod distribution;
mod judge;
mod pair_turn;
mod preparation;
pub mod scratch;
mod sweep;

use crate::case::{Case, OwnTasks, Place, Rule, Scale, Subject};
use crate::clock::{Beside, Clock, Counters, Delta, PartnerMonitor, Ticks};
use crate::platform::perf_event::Counter;
use crate::platform::{cpu, signal, time};
use crate::record::{Contamination, Interval, Measured, Predicted};
use crate::statistic;
pub use case_end::{CaseEnd, repeated};
pub use displacement::displaced;
pub use pair_turn::Turn;
pub use preparation::lock_memory;
use sweep::{Sweep, Sweeper};

/// One case while it is measured.
pub struct Trial<'a> {
    case: &'a Case,
    place: &'a Place,
    clock: &'a Clock,
    counters: Counters,
    partners: PartnerMonitor,
    beside: Option<Beside>,
    pinned: Option<usize>,
    event: Option<Counter>,
    subject: Box<dyn Subject>,
    control: Option<Box<dyn Subject>>,
    samples: Vec<Sample>,
    evidence: Vec<String>,
    unasked: Vec<String>,
    /// Evidence of the case's own claims about the last sample.
    counted: Vec<String>,
    /// Whether sampling has begun.
    began: bool,
    witnessed: bool,
    instructions: Option<f64>,
    sweeper: Option<Sweeper>,
    core_hz: f64,
    /// Whether a derived figure is per event instead of per iteration.
    counts_events: bool,
}

/// One batch, with the change of the counters over it.
#[derive(Clone, Debug)]
struct Sample {
    iterations: u64,
    counted: u64,
    elapsed_ns: f64,
    /// CPU time of the measuring thread, ns.
    ran_ns: u64,
    delta: Delta,
    /// Events that the subject counted.
    events: Option<u64>,
    /// Rounds of the sweep so far.
    rounds: usize,
}

/// What all cases of a process share.
#[derive(Clone, Copy)]
pub struct Bench<'a> {
    /// Scratch directory, scale and CPUs.
    pub place: &'a Place,
    /// The clock.
    pub clock: &'a Clock,
    /// The CPU that the process is pinned to, if any.
    pub pinned: Option<usize>,
}

impl<'a> Trial<'a> {
    /// Checks the needs and sets the case up. With an `event`, samples count it instead of ticks.
    ///
    /// # Errors
    /// A need is not met, or the set-up fails.
    pub fn prepare(case: &'a Case, bench: Bench<'a>, event: Option<Counter>) -> Result<Self, CaseEnd> {
        let Bench { place, clock, pinned } = bench;
        for need in &case.needs {
            need.ask(place).map_err(CaseEnd::Skipped)?;
        }
        if case.displaced.is_some() {
            let sentence = "it is measured by what it displaces, which takes a CPU of its own for a while: `syscost run` does";
            return Err(CaseEnd::Skipped(sentence.into()));
        }
        if event.is_some() && case.one_by_one {
            let sentence = "it times single operations: counting would include what prepares each of them";
            return Err(CaseEnd::Skipped(sentence.into()));
        }
        clock.take_singles(); // left by an attempt that was given up
        let subject = (case.set_up)(place).map_err(CaseEnd::of_set_up)?;
        let here = pinned.unwrap_or_else(cpu::current);
        let partners = subject.report().partners;
        let own = || partners.iter().map(|task| task.cpu).chain([here]).collect();
        Ok(Self {
            case,
            place,
            clock,
            counters: Counters::open(here),
            partners: PartnerMonitor::open(&partners, here).map_err(CaseEnd::of_set_up)?,
            beside: case.shares_memory.then(|| Beside::open(own())),
            pinned,
            event,
            subject,
            control: case
                .control
                .as_ref()
                .map(|set_up| set_up(place))
                .transpose()
                .map_err(CaseEnd::of_set_up)?,
            samples: Vec::with_capacity(256),
            evidence: Vec::new(),
            unasked: Vec::new(),
            counted: Vec::new(),
            began: false,
            witnessed: false,
            instructions: None,
            sweeper: None,
            core_hz: clock.core_hz(),
            counts_events: case.derived.iter().any(|figure| figure.rule == Rule::PerEvent),
        })
    }

    /// Calls the witness, sweeps over several numbers of iterations, and judges both.
    ///
    /// # Errors
    /// A claim does not hold, or the sweep was disturbed.
    pub fn prove(&mut self) -> Result<(), CaseEnd> {
        self.call_witness()?;
        match (&self.event, self.case.one_by_one) {
            (Some(_), _) => self.unasked.extend(judge::of_time(self.case)),
            (None, true) => {}
            (None, false) => self.sweep()?,
        }
        Ok(())
    }

    /// The number of samples to take where `samples` are wanted. At default scale a case whose iteration takes tens of
    /// milliseconds gets fewer, but at least [`FEWEST_SAMPLES`].
    ///
    /// # Errors
    /// The subject fails.
    pub fn affordable(&mut self, samples: usize) -> Result<usize, CaseEnd> {
        if self.place.scale != Scale::Default {
            return Ok(samples);
        }
        let start = self.clock.start();
        self.subject.run(1, self.clock)?;
        let iteration_ns = self.clock.nanoseconds(self.clock.stop() - start).0;
        Ok(samples.min(((PATIENCE_NS / iteration_ns) as usize).max(FEWEST_SAMPLES)))
    }

    fn call_witness(&mut self) -> Result<(), CaseEnd> {
        if !self.case.claims.iter().any(crate::case::Claim::wants_witness) {
            return Ok(());
        }
        let (testimony, judgements) = judge::witness(self.case, &mut *self.subject, self.clock)?;
        self.witnessed = testimony.is_some();
        self.instructions = testimony.and_then(|t| t.instructions);
        judgements.into_iter().for_each(|judgement| self.add(judgement));
        Ok(())
    }

    fn add(&mut self, judgement: judge::Judgement) {
        match judgement {
            judge::Judgement::Held(sentence) => self.evidence.push(sentence),
            judge::Judgement::Unasked(sentence) => self.unasked.push(sentence),
        }
    }

    fn sweep(&mut self) -> Result<(), CaseEnd> {
        let control = self.control.as_deref_mut();
        let (sweeper, sentences) =
            judge::sweep(self.case, &mut *self.subject, control, self.clock, self.place.scale)?;
        self.sweeper = Some(sweeper);
        self.evidence.extend(sentences);
        Ok(())
    }

    /// Measures one batch between two readings of the counters, judges it, and returns its count in the record's unit.
    ///
    /// # Errors
    /// A signal has arrived, the subject fails, or a claim does not hold for this batch.
    pub fn sample(&mut self, iterations: u64) -> Result<u64, CaseEnd> {
        if signal::pending().is_some() {
            return Err(CaseEnd::Interrupted);
        }
        self.partners.read();
        let before = self.counters.read()?;
        let start = self.clock.start();
        let ran = time::thread_cpu_ns();
        let counted = self.batch(iterations)?;
        let ran_ns = time::thread_cpu_ns() - ran;
        let elapsed_ns = self.clock.nanoseconds(self.clock.stop() - start).0;
        let mut delta = Delta::between(&before, &self.counters.read()?);
        delta.partners = self.partners.read();
        let events = self.counts_events.then(|| self.subject.report().events).flatten();
        self.keep(Sample { iterations, counted, elapsed_ns, ran_ns, delta, events, rounds: 0 })?;
        Ok(counted)
    }

    fn batch(&mut self, iterations: u64) -> Result<u64, CaseEnd> {
        let Some(event) = &self.event else {
            let Ticks(ticks) = self.subject.run(iterations, self.clock)?;
            return Ok(ticks);
        };
        let before = event.read()?;
        self.subject.run(iterations, self.clock)?;
        Ok(event.read()? - before)
    }

    fn keep(&mut self, sample: Sample) -> Result<(), CaseEnd> {
        self.counted = judge::sample(self.case, &sample.delta, sample.iterations, self.pinned)?;
        let rounds = self.sweeper.as_ref().map_or(0, Sweeper::len);
        self.samples.push(Sample { rounds, ..sample });
        Ok(())
    }

    /// Continues the sweep between samples, so that slope and median cover the same period: a shared machine changes its
    /// speed within tenths of a second.
    ///
    /// # Errors
    /// The subject or its control fails.
    pub fn sweep_on(&mut self) -> Result<(), CaseEnd> {
        if let Some(sweeper) = self.sweeper.as_mut().filter(|sweeper| sweeper.is_quick()) {
            for _ in 0..ROUNDS_BESIDE {
                sweeper.round(&mut *self.subject, self.control.as_deref_mut(), self.clock)?;
            }
        }
        Ok(())
    }

    /// Judges the remaining claims and returns the result of the last `samples` batches; earlier ones were the warm-up.
    ///
    /// # Errors
    /// A claim does not hold, or the samples were disturbed.
    pub fn conclude(mut self, samples: usize) -> Result<Measured, CaseEnd> {
        let kept = self.samples.split_off(self.samples.len().saturating_sub(samples));
        if kept.is_empty() {
            return Err(CaseEnd::Failed("no sample was taken".into()));
        }
        if kept.iter().any(|sample| sample.counted == 0) && self.event.is_none() {
            return Err(CaseEnd::Failed(
                "a sample took no time at all: nothing was done in the timed part".into(),
            ));
        }
        self.clock.verify().map_err(|reason| CaseEnd::Disturbed(format!("the clock changed: {reason}")))?;
        self.evidence.push(judge::interference(self.case, &kept)?);
        let busy_beside = self.beside.as_mut().and_then(Beside::busy);
        self.evidence.extend(busy_beside.map(judge::other_cpus));
        let counted = std::mem::take(&mut self.counted);
        self.evidence.extend(counted);
        self.evidence.extend(self.subject.report().evidence);
        if !self.witnessed {
            judge::by_accounting(self.case, &kept)?.into_iter().for_each(|judgement| self.add(judgement));
        }
        let singles = self.singles(&kept)?;
        let values: Vec<f64> = kept.iter().map(|s| self.value(s)).collect();
        let median = statistic::median_interval(&values);
        let sweep = self.sweeper.as_ref().map(|sweeper| sweeper.since(kept[0].rounds));
        if let Some(sweep) = &sweep {
            judge::grows(sweep).map_err(CaseEnd::Disturbed)?;
            self.evidence.extend(judge::large_batches(self.case, sweep, median, &kept)?);
        }
        let mut measured = self.outcome(&kept, &values, median, sweep, singles);
        measured.contamination.busy_beside = busy_beside;
        Ok(measured)
    }

    /// Times of the single operations of the samples, ns.
    ///
    /// # Errors
    /// Not every operation was timed.
    fn singles(&self, kept: &[Sample]) -> Result<Vec<f64>, CaseEnd> {
        let singles = self.clock.take_singles();
        let iterations: u64 = kept.iter().map(|sample| sample.iterations).sum();
        let wanted = iterations.min(Clock::SINGLES as u64);
        if self.case.one_by_one && (singles.len() as u64) < wanted {
            return Err(CaseEnd::Failed(format!(
                "only {} of {iterations} operations were timed one by one",
                singles.len()
            )));
        }
        Ok(singles)
    }

    /// Ends the warm-up: samples begin. Later calls have no effect.
    pub fn begin(&mut self) {
        if self.case.one_by_one && !self.began {
            self.clock.keep_singles();
        }
        if let Some(beside) = self.beside.as_mut().filter(|_| !self.began) {
            beside.begin();
        }
        self.began = true;
    }

    /// Cost of one iteration of a sample, in the record's unit.
    fn value(&self, sample: &Sample) -> f64 {
        let counted = match self.event {
            Some(_) => sample.counted as f64,
            None => self.clock.nanoseconds(Ticks(sample.counted)).0,
        };
        counted / sample.iterations.max(1) as f64
    }

    /// Cost of one event that the subject counted, ns; `None` if a sample had no event.
    fn event_cost(&self, kept: &[Sample]) -> Option<Interval> {
        let cost = |s: &Sample| {
            let events = s.events.filter(|events| *events > 0)?;
            Some(self.clock.nanoseconds(Ticks(s.counted)).0 / events as f64)
        };
        let costs: Option<Vec<_>> = kept.iter().map(cost).collect();
        costs.map(|costs| statistic::median_interval(&costs))
    }

    fn outcome(
        self,
        kept: &[Sample],
        values: &[f64],
        median: Interval,
        sweep: Option<Sweep>,
        singles: Vec<f64>,
    ) -> Measured {
        let core_after = self.clock.core_hz();
        let ticks: Vec<f64> = kept.iter().map(|s| s.counted as f64 / s.iterations.max(1) as f64).collect();
        let costs = derived::Costs {
            sweep: sweep.as_ref(),
            median,
            event: self.event_cost(kept),
            core_hz: self.core_hz,
            cpus: self.place.cpus.others.len() + 1,
        };
        let mut derived = if self.event.is_some() { Vec::new() } else { derived::figures(self.case, &costs) };
        let report = self.subject.report();
        derived.extend(report.found.into_iter().filter_map(derived::found));
        Measured {
            iterations: kept.iter().map(|s| s.iterations).collect(),
            counted: kept.iter().map(|s| s.counted).collect(),
            median,
            standard_deviation: statistic::standard_deviation(values),
            ticks: statistic::median(&ticks),
            slope: sweep.as_ref().map_or(median, |s| s.slope),
            intercept: sweep.as_ref().map(|s| s.intercept).unwrap_or_default(),
            control: sweep.as_ref().and_then(|s| s.control),
            net: sweep.as_ref().and_then(|s| s.net),
            predicted: if self.event.is_some() { None } else { predicted(self.case, self.core_hz) },
            instructions: self.instructions,
            core_hz: Some((self.core_hz, core_after)),
            evidence: self.evidence,
            unasked: self.unasked,
            contamination: contamination(self.case.own_tasks, kept),
            meanwhile: None, // the caller adds it, since it spans set-up and drop
            distribution: if self.case.one_by_one { distribution::of(&singles) } else { None },
            matrix: report.matrix.map(derived::matrix),
            derived,
            displaced: None,
            peer: report.wire.as_ref().map(crate::environment::Wire::key),
            wire: report.wire.map(Box::new),
        }
    }
}

/// The prediction in nanoseconds, at this core frequency.
fn predicted(case: &Case, core_hz: f64) -> Option<Predicted> {
    let prediction = case.prediction?;
    let ns = |cycles: f64| cycles * 1e9 / core_hz;
    Some(Predicted {
        hardware: ns(prediction.hardware),
        software: ns(prediction.software),
        why: prediction.why.to_owned(),
    })
}

fn contamination(own_tasks: OwnTasks, samples: &[Sample]) -> Contamination {
    let each = |f: &dyn Fn(&Sample) -> Option<u64>| samples.iter().filter_map(f).collect();
    Contamination {
        waited_ns: each(&|s| s.delta.counted.waited_ns),
        stolen_ticks: each(&|s| s.delta.counted.stolen_ticks),
        // Switches to a partner or a child on the same CPU belong to the case.
        involuntary_switches: each(&|s| {
            let partner = s.delta.partners.is_some_and(|partners| partners.here);
            let beside = partner || own_tasks == OwnTasks::SameCpu;
            Some(if beside { 0 } else { s.delta.counted.involuntary_switches })
        }),
        faults: each(&|s| Some(s.delta.counted.minor_faults + s.delta.counted.major_faults)),
        migrated: samples.iter().map(|s| s.delta.migrated).collect(),
        busy_beside: None,
    }
}

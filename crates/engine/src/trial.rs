//! Measures one case: set up, read counters, run, read counters, judge the claims.
//!
//! [`Trial::prepare`] checks the needs and sets the case up. [`Trial::prove_operation`] calls the witness and sweeps over
//! numbers of iterations. [`Trial::measure_sample`] measures one batch between two readings of the counters; the caller decides
//! how many samples there are. [`Trial::conclude`] judges the claims about all samples. Each step may end the case with a
//! [`CaseEnd`] instead of a number.

use crate::case::{Case, Lent, Place, Rule, Subject};
use crate::clock::witness::WitnessReport;
use crate::clock::{Clock, Counters, Delta, OtherCpus, PartnerMonitor, Ticks};
use crate::platform::perf_event::Counter;
use crate::platform::{allocation, cpu, signal, time};
use crate::record::EventRate;
use batch_size::Enough;
use other_copies::Accompanied;
use retraining::{LONG_NS, retrain_predictor};
use sweep::{Effort, Sweeper};

/// Seed of the order in which batches of a sweep run.
pub const SEED: u64 = 0x5eed;

/// Rounds of the sweep after each sample. With Criterion's least number of samples they add up to what an interval
/// needs.
const ROUNDS_BESIDE: usize = 2;

mod batch_size;
mod case_end;
mod conclusion;
mod derived;
pub mod displaced_process;
mod displacement;
mod event_count;
mod judge;
pub mod other_copies;
mod pair_turn;
mod retraining;
pub mod scratch;
mod sweep;

pub use batch_size::{BatchSize, SAMPLE_STRETCH};
pub use case_end::refused_call_sentence;
pub use case_end::{CaseEnd, repeat_while_disturbed, under_one_clock_source};
pub use displacement::measure_displaced;
pub use event_count::measure_instructions;
pub use other_copies::OtherCopies;
pub use pair_turn::Turn;
pub use pair_turn::{CodeAddress, SampledStacks, TurnSampler};
pub use retraining::prepare_memory;

/// One case while it is measured.
pub struct Trial<'a> {
    case: &'a Case,
    place: &'a Place,
    clock: &'a Clock,
    counters: Counters,
    partners: PartnerMonitor,
    beside: Option<OtherCpus>,
    pinned: Option<usize>,
    event: Option<Counter>,
    subject: Box<dyn Subject + 'a>,
    control: Option<Box<dyn Subject>>,
    samples: Vec<Sample>,
    evidence: Vec<String>,
    unasked: Vec<String>,
    /// Evidence of the case's own claims about the last sample.
    counted: Vec<String>,
    /// Whether sampling has begun.
    began: bool,
    /// Rates of the events and allocations that were counted in untimed batches.
    rates: Vec<EventRate>,
    /// The witness's report, if the witness was called in this process.
    testimony: Option<WitnessReport>,
    witnessed: bool,
    /// Whether another process has proved the case.
    resumed: bool,
    sweeper: Option<Sweeper>,
    core_hz: f64,
    /// Whether a derived figure is per event instead of per iteration.
    counts_events: bool,
    /// Samples the stacks of the operation in its turns, if that was requested.
    sampler: Option<TurnSampler>,
    /// The other copies that run at the same time, if any.
    accompanied: Option<Accompanied<'a>>,
}

/// One batch, with the change of the counters over it.
#[derive(Clone, Debug, Default)]
struct Sample {
    iterations: u64,
    counted: u64,
    elapsed_ns: f64,
    /// CPU time of the measuring thread, ns.
    ran_ns: u64,
    /// The core's frequency, Hz: the mean of a reading just before and one just after.
    core_hz: f64,
    delta: Delta,
    /// Events that the subject counted.
    events: Option<u64>,
    /// Rounds of the sweep so far.
    rounds: usize,
    /// Number of single times that this batch added; `None` if they are not kept, or their memory is full.
    noted: Option<usize>,
}

/// The settings that all cases of a process share.
#[derive(Clone, Copy)]
pub struct Bench<'a> {
    /// Scratch directory, scale and CPUs.
    pub place: &'a Place,
    /// The clock.
    pub clock: &'a Clock,
    /// The CPU that the process is pinned to, if any.
    pub pinned: Option<usize>,
    /// An operation to measure in place of the one that the case's set-up makes.
    pub lent: Option<Lent<'a>>,
    /// The other copies, if this process is one of several copies that measure at the same time.
    pub other_copies: Option<&'a OtherCopies>,
}

impl<'a> Bench<'a> {
    /// Returns the operation of this case: the lent one, or else the one that its set-up makes.
    ///
    /// # Errors
    /// The set-up fails.
    pub fn set_up(self, case: &Case) -> crate::error::Result<Box<dyn Subject + 'a>> {
        match self.lent {
            Some(lent) => Ok(Box::new(lent)),
            None => Ok((case.set_up)(self.place)?),
        }
    }
}

impl<'a> Trial<'a> {
    /// Checks the needs and sets the case up. With an `event`, samples count it instead of ticks.
    ///
    /// # Errors
    /// A need is not met, or the set-up fails.
    pub fn prepare(case: &'a Case, bench: Bench<'a>, event: Option<Counter>) -> Result<Self, CaseEnd> {
        let Bench { place, clock, pinned, other_copies, .. } = bench;
        check_needs(case, place, event.is_some(), other_copies)?;
        // Discards what an abandoned attempt has left.
        clock.take_single_times();
        allocation::take_counts();
        let subject = bench.set_up(case).map_err(CaseEnd::from_set_up_error)?;
        let here = pinned.unwrap_or_else(cpu::current_cpu);
        let partners = subject.report().partners;
        let monitor = PartnerMonitor::open(&partners, here).map_err(CaseEnd::from_set_up_error)?;
        let copies = other_copies.iter().flat_map(|other_copies| other_copies.cpus.iter().copied());
        let own = || partners.iter().map(|task| task.cpu).chain([here]).chain(copies).collect();
        Ok(Self {
            case,
            place,
            clock,
            counters: Counters::open(here),
            unasked: Vec::from_iter(monitor.hidden_sentence()),
            partners: monitor,
            beside: case.shares_memory.then(|| OtherCpus::open(own())),
            pinned,
            event,
            subject,
            control: case
                .control
                .as_ref()
                .map(|set_up| set_up(place))
                .transpose()
                .map_err(CaseEnd::from_set_up_error)?,
            samples: Vec::with_capacity(256),
            evidence: Vec::new(),
            counted: Vec::new(),
            began: false,
            rates: Vec::new(),
            testimony: None,
            witnessed: false,
            resumed: false,
            sweeper: None,
            core_hz: clock.core_hz(),
            counts_events: case.derived.iter().any(|figure| figure.rule == Rule::PerEvent),
            sampler: None,
            accompanied: other_copies.map(Accompanied::new),
        })
    }

    /// Calls the witness, sweeps over several numbers of iterations, and judges both.
    ///
    /// # Errors
    /// A claim does not hold, or the sweep was disturbed.
    pub fn prove_operation(&mut self) -> Result<(), CaseEnd> {
        self.call_witness()?;
        let counted = self.subject.count(self.clock)?;
        self.rates.extend(counted);
        match (&self.event, self.case.one_by_one) {
            (Some(_), _) => self.unasked.extend(judge::unchecked_time_claims(self.case, "a count")),
            (None, true) => {}
            (None, false) => self.sweep_iterations(Effort::Proof(self.place.scale))?,
        }
        Ok(())
    }

    /// Replaces [`Trial::prove_operation`] in later executions of a case that another process has proved. The code is the same,
    /// so no witness is called and the sweep is brief. The samples are judged as in the first process.
    ///
    /// # Errors
    /// A claim about time does not hold, or the subject fails.
    pub fn prove_briefly(&mut self) -> Result<(), CaseEnd> {
        (self.witnessed, self.resumed) = (true, true);
        match (&self.event, self.case.one_by_one) {
            (None, false) => self.sweep_iterations(Effort::Brief),
            _ => Ok(()),
        }
    }

    fn call_witness(&mut self) -> Result<(), CaseEnd> {
        if !self.case.claims.iter().any(crate::case::Claim::wants_witness) {
            return Ok(());
        }
        if let Some(why) = self.subject.report().untraced {
            self.unasked.push(format!("no witness could be called: {why}"));
            return Ok(());
        }
        let (testimony, judgements) = judge::judge_by_witness(self.case, &mut *self.subject, self.clock)?;
        self.witnessed = testimony.is_some();
        self.testimony = testimony;
        judgements.into_iter().for_each(|judgement| self.add(judgement));
        Ok(())
    }

    fn add(&mut self, judgement: judge::Judgement) {
        judgement.sort_sentence_into(&mut self.evidence, &mut self.unasked);
    }

    fn sweep_iterations(&mut self, effort: Effort) -> Result<(), CaseEnd> {
        let control = self.control.as_deref_mut();
        let swept = judge::sweep_and_judge(self.case, &mut *self.subject, control, self.clock, effort);
        if matches!(swept, Err(CaseEnd::Disturbed(_) | CaseEnd::Contradicted(_))) {
            self.judge_exact_claims()?;
        }
        let (sweeper, sentences) = swept?;
        self.sweeper = Some(sweeper);
        self.evidence.extend(sentences);
        Ok(())
    }

    /// Runs one batch of some milliseconds and judges the claims that no disturbance can change. Work that is left to threads
    /// makes the sweep uneven, and would otherwise pass for a busy machine.
    fn judge_exact_claims(&mut self) -> Result<(), CaseEnd> {
        const MILLISECONDS: Enough = Enough { timed_ns: 4e6, wall_ns: 4e6 };
        let size = BatchSize::find(&mut *self.subject, self.clock, MILLISECONDS)?;
        let sample = self.batch_between_readings(size.iterations)?;
        judge::judge_plausible(self.case, &sample, Some(self.clock.nanoseconds(Ticks(sample.counted)).0))?;
        judge::judge_sample(self.case, &sample.delta, sample.iterations, self.pinned).map(drop)
    }

    /// Measures one batch between two readings of the counters, and judges it.
    ///
    /// # Errors
    /// A signal has arrived, the subject fails, or a claim does not hold for this batch.
    pub fn measure_sample(&mut self, iterations: u64) -> Result<(), CaseEnd> {
        if signal::pending().is_some() {
            return Err(CaseEnd::Interrupted);
        }
        let other_copies = self.accompanied.as_ref().map(|accompanied| accompanied.other_copies);
        if let Some(other_copies) = other_copies.filter(|_| self.began) {
            return self.measure_beside_copies(other_copies, iterations);
        }
        if self.wants_retraining() {
            let lap = self.lap_length();
            retrain_predictor(&mut *self.subject, iterations, lap, self.clock)?;
        }
        let before = self.clock.core_hz();
        let sample = self.batch_between_readings(iterations)?;
        let core_hz = 0.5 * (before + self.clock.core_hz());
        self.judge_and_keep_sample(Sample { core_hz, ..sample })
    }

    /// Whether the next sample begins with [`retrain_predictor`]: only if samples are kept and short. The warm-up, in which
    /// Criterion finds out how long a batch takes, has no such reset, nor has a case that prepares each iteration by itself.
    fn wants_retraining(&self) -> bool {
        let short = self.samples.last().is_none_or(|last| last.elapsed_ns < LONG_NS);
        self.began && short && !self.case.one_by_one
    }

    fn lap_length(&self) -> u64 {
        self.case.lap_at(self.place.scale)
    }

    fn batch_between_readings(&mut self, iterations: u64) -> Result<Sample, CaseEnd> {
        self.partners.read();
        let kept = self.clock.count_single_times();
        let before = self.counters.read()?;
        self.other_copies_of_sample().map_or(Ok(()), OtherCopies::begin_batch)?;
        let start = self.clock.start();
        let ran = time::thread_cpu_ns();
        let counted = self.run_batch(iterations)?;
        let ran_ns = time::thread_cpu_ns() - ran;
        let elapsed_ns = self.clock.nanoseconds(self.clock.stop() - start).0;
        self.other_copies_of_sample().into_iter().for_each(OtherCopies::end_batch);
        let after = self.counters.read()?;
        if let Some(name) = before.find_decreased_counter(&after) {
            return Err(CaseEnd::Disturbed(format!(
                "the kernel's counter of {name} went back in a sample, so that it proves nothing: run again"
            )));
        }
        let mut delta = Delta::between(&before, &after);
        delta.partners = self.partners.read();
        let events = self.counts_events.then(|| self.subject.report().events).flatten();
        let noted = self.clock.count_single_times().zip(kept).map(|(now, kept)| now - kept);
        Ok(Sample { iterations, counted, elapsed_ns, ran_ns, delta, events, noted, ..Sample::default() })
    }

    fn run_batch(&mut self, iterations: u64) -> Result<u64, CaseEnd> {
        let Some(event) = &self.event else {
            let Ticks(ticks) = self.subject.run(iterations, self.clock)?;
            return Ok(ticks);
        };
        let before = event.read()?;
        self.subject.run(iterations, self.clock)?;
        Ok(event.count_since(before)?)
    }

    fn judge_and_keep_sample(&mut self, sample: Sample) -> Result<(), CaseEnd> {
        let reported_ns = self.event.is_none().then(|| self.clock.nanoseconds(Ticks(sample.counted)).0);
        judge::judge_plausible(self.case, &sample, reported_ns)?;
        self.counted = judge::judge_sample(self.case, &sample.delta, sample.iterations, self.pinned)?;
        let rounds = self.sweeper.as_ref().map_or(0, Sweeper::len);
        self.samples.push(Sample { rounds, ..sample });
        Ok(())
    }

    /// Continues the sweep between samples, so that slope and median cover the same period: a shared machine changes its
    /// speed within tenths of a second.
    ///
    /// # Errors
    /// The subject or its control fails.
    pub fn continue_sweep(&mut self) -> Result<(), CaseEnd> {
        // Beside other copies, these small batches would run alone at some times and beside a copy at others.
        if self.accompanied.is_some() {
            return Ok(());
        }
        // A reset of the branch predictor evicts data from the caches. Only an untimed lap before the next sample brings the
        // data back.
        let resets = self.wants_retraining();
        if let Some(sweeper) = self.sweeper.as_mut().filter(|sweeper| sweeper.has_quick_rounds()) {
            for _ in 0..ROUNDS_BESIDE {
                sweeper.run_round(&mut *self.subject, self.control.as_deref_mut(), self.clock, resets)?;
            }
        }
        Ok(())
    }

    /// Ends the warm-up: samples begin. Later calls have no effect.
    pub fn begin_sampling(&mut self) {
        if self.case.one_by_one && !self.began {
            self.clock.keep_single_times();
        }
        if let Some(beside) = self.beside.as_mut().filter(|_| !self.began) {
            beside.begin_interval();
        }
        self.began = true;
    }
}

/// Returns [`CaseEnd::Skipped`] if the case cannot be measured here.
fn check_needs(
    case: &Case,
    place: &Place,
    counts: bool,
    other_copies: Option<&OtherCopies>,
) -> Result<(), CaseEnd> {
    for need in &case.needs {
        need.check_place(place).map_err(|sentence| {
            CaseEnd::Skipped(
                other_copies
                    .and_then(|other_copies| other_copies.skip_sentence(need, place))
                    .unwrap_or(sentence),
            )
        })?;
    }
    let sentence = match () {
        () if case.displaced.is_some() => {
            "it is measured by what it displaces, which takes a CPU of its own for a while: `syscost run` does"
        }
        () if counts && case.one_by_one => {
            "it times single operations: counting would include what prepares each of them"
        }
        () => return Ok(()),
    };
    Err(CaseEnd::Skipped(sentence.into()))
}

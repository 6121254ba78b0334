//! The end of a trial: claims about all samples, and the result.

use super::derived::{self, convert_to_mean_frequency};
use super::other_copies::Accompanied;
use super::sweep::{self, Sweep};
use super::{CaseEnd, Sample, Trial, judge};
use crate::case::{Case, OwnTasks};
use crate::clock::{Clock, OtherCpus, Ticks};
use crate::record::{Contamination, Execution, Interval, Measured, Predicted};
use crate::statistic;

/// Fewest single times for which the share of equal ones is judged.
const FEWEST_SINGLES: usize = 16;
/// Single times of at least this many clock steps are not repeated exactly by any machine.
const UNREPEATED_STEPS: f64 = 500.0;
/// Fewest single times, over all samples, for the judgement whether they are constant within each sample.
const FEWEST_EQUAL: usize = 64;
/// Fewest single times of one sample for that judgement.
const FEWEST_OF_SAMPLE: usize = 4;
/// Fewest clock steps in a single time for that judgement. An operation begins anywhere within a step, so its measured
/// time takes at least two values.
const FEW_STEPS: f64 = 20.0;
/// Share of single times equal to the one before from which on the times cannot have been measured.
const EQUAL_SHARE: f64 = 0.5;

/// Whether within each sample all single times are equal. `numbers` are the samples' numbers of single times. A sample without
/// a number has filled the memory for them: the remaining times are its first ones, and later samples have none.
fn is_constant_in_each(singles: &[f64], numbers: impl IntoIterator<Item = Option<usize>>) -> bool {
    let mut rest = singles;
    numbers.into_iter().all(|number| {
        let (own, others) = rest.split_at(number.unwrap_or(rest.len()).min(rest.len()));
        rest = others;
        own.is_empty() || own.len() >= FEWEST_OF_SAMPLE && own.iter().all(|ns| *ns == own[0])
    })
}

impl Trial<'_> {
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
            let sentence = "a sample took no time at all: nothing was done in the timed part";
            return Err(CaseEnd::Failed(sentence.into()));
        }
        self.clock
            .verify_frequency()
            .map_err(|reason| CaseEnd::Disturbed(format!("the clock changed: {reason}")))?;
        let busy_beside = self.beside.as_mut().and_then(OtherCpus::mean_busy_cpus);
        // Judged first, since its counts are exact however busy the machine is.
        self.judge_later_batch(&kept)?;
        self.judge_all(&kept, busy_beside)?;
        let singles = self.single_times(&kept)?;
        self.judge_brackets(&kept)?;
        let values: Vec<f64> = kept.iter().map(|s| self.sample_cost(s)).collect();
        let median = self.widen_to_clock_step(statistic::median_interval(&values), &kept);
        if self.event.is_none() {
            judge::check_instruction_rate(self.case, median.estimate, self.core_hz)?;
            if self.testimony.as_ref().is_none_or(|seen| seen.instructions.is_none()) && !self.resumed {
                let judged = judge::judge_work_by_time(self.case, median.estimate, self.core_hz);
                judged.into_iter().for_each(|judgement| self.add(judgement));
            }
        }
        // Beside several copies, other copies run only during parts of the sweep: it proves the operation, but gives no cost.
        let sweeper = self.sweeper.as_ref().filter(|_| self.accompanied.is_none());
        let sweep = sweeper.map(|sweeper| sweeper.result_since(kept[0].rounds));
        if let Some(sweep) = &sweep {
            judge::check_time_grows(sweep, sweep::smallest_batch_ns(self.clock))?;
            let large = [statistic::percentile(&values, 25.0), median.estimate];
            let iterations = kept.last().map_or(0, |sample| sample.iterations);
            let judged = judge::judge_large_batches(self.case, sweep.slope, sweep.unit, large, iterations)?;
            self.evidence.extend(judged);
        }
        let mut measured = self.into_measured(&kept, &values, median, sweep, singles);
        measured.contamination.busy_beside = busy_beside;
        Ok(measured)
    }

    /// Widens the interval to at least one clock step a batch to either side. If all batches took the same number
    /// of steps, the interval would otherwise have no width.
    fn widen_to_clock_step(&self, median: Interval, kept: &[Sample]) -> Interval {
        let iterations = kept.iter().map(|sample| sample.iterations).min().unwrap_or(1).max(1);
        let step = if self.event.is_some() { 0.0 } else { self.clock.step_ns() / iterations as f64 };
        let Interval { estimate, low, high } = median;
        Interval { estimate, low: low.min((estimate - step).max(0.0)), high: high.max(estimate + step) }
    }

    /// Judges the claims that need all samples together, and collects the evidence.
    fn judge_all(&mut self, kept: &[Sample], busy_beside: Option<f64>) -> Result<(), CaseEnd> {
        self.evidence.push(judge::judge_interference(self.case, kept)?);
        self.evidence.extend(busy_beside.map(judge::other_cpus_sentence));
        self.evidence.append(&mut self.counted);
        self.evidence.extend(self.accompanied.as_ref().map(Accompanied::evidence));
        let report = self.subject.report();
        self.evidence.extend(report.evidence);
        self.unasked.extend(report.unchecked);
        if self.event.is_none() {
            let reported_ns = |sample: &Sample| self.clock.nanoseconds(Ticks(sample.counted)).0;
            let timed_samples: Vec<_> = kept.iter().map(|sample| (reported_ns(sample), sample)).collect();
            judge::check_batch_length(&timed_samples, self.clock.step_ns())?;
            let share = judge::judge_timed_share(self.case, &timed_samples)?;
            share.into_iter().for_each(|judgement| self.add(judgement));
        }
        self.judge_by_accounting(kept)
    }

    /// Judges the claims by the kernel's accounting. If a witness has judged them already, the coarse accounting
    /// can only contradict.
    fn judge_by_accounting(&mut self, kept: &[Sample]) -> Result<(), CaseEnd> {
        match (judge::judge_by_accounting(self.case, kept), self.witnessed) {
            (Err(CaseEnd::Failed(sentence)), true) => return Err(CaseEnd::Contradicted(sentence)),
            (Ok(Some(judge::Judgement::Unasked(_))), true) => {}
            (judged, _) => judged?.into_iter().for_each(|judgement| self.add(judgement)),
        }
        Ok(())
    }

    /// Calls the later witness in the execution that proves the case.
    fn judge_later_batch(&mut self, kept: &[Sample]) -> Result<(), CaseEnd> {
        let Some(seen) = &self.testimony else { return Ok(()) };
        let iterations = kept.iter().map(|sample| sample.iterations).max().unwrap_or(1);
        let judged = judge::judge_later_batch(self.case, &mut *self.subject, self.clock, iterations, seen)?;
        judged.into_iter().for_each(|judgement| self.add(judgement));
        Ok(())
    }

    /// Compares the returned time with the brackets of the clock, in the execution that proves the case.
    fn judge_brackets(&mut self, kept: &[Sample]) -> Result<(), CaseEnd> {
        if self.event.is_some() || self.resumed {
            return Ok(());
        }
        let iterations = kept.last().map_or(1, |sample| sample.iterations);
        judge::judge_brackets(self.case, &mut *self.subject, self.clock, iterations)
    }

    /// Times of the single operations of the samples, ns.
    ///
    /// # Errors
    /// Not every operation was timed.
    fn single_times(&mut self, kept: &[Sample]) -> Result<Vec<f64>, CaseEnd> {
        let singles = self.clock.take_single_times();
        let iterations: u64 = kept.iter().map(|sample| sample.iterations).sum();
        let wanted = iterations.min(Clock::SINGLES as u64);
        if self.case.one_by_one && (singles.len() as u64) < wanted {
            return Err(CaseEnd::Failed(format!(
                "only {} of {iterations} operations were timed one by one",
                singles.len()
            )));
        }
        self.check_singles_vary(&singles)?;
        self.check_singles_vary_within(&singles, kept)?;
        if self.case.one_by_one && self.event.is_none() && !self.resumed {
            let coarse = coarse_singles_sentence(&singles, self.clock.step_ns());
            self.unasked.extend(coarse);
        }
        Ok(singles)
    }

    /// Judges that single times vary as measured ones do.
    ///
    /// # Errors
    /// Most of them repeat the one before.
    fn check_singles_vary(&self, singles: &[f64]) -> Result<(), CaseEnd> {
        let same = derived::repeated_share(singles);
        let is_coarse = statistic::median(singles) < UNREPEATED_STEPS * self.clock.step_ns();
        if !self.case.one_by_one || singles.len() < FEWEST_SINGLES || is_coarse || same < EQUAL_SHARE {
            return Ok(());
        }
        Err(CaseEnd::Failed(format!(
            "{:.0} % of {} single operations are said to have taken exactly as long as the one before, {:.0} ns in steps of \
             {:.1} ns: the kept times are not the measured ones",
            100.0 * same,
            singles.len(),
            statistic::median(singles),
            self.clock.step_ns()
        )))
    }

    /// Judges that the single times of some sample differ, however short they are.
    ///
    /// # Errors
    /// In each sample all are equal, over many steps of the clock.
    fn check_singles_vary_within(&self, singles: &[f64], kept: &[Sample]) -> Result<(), CaseEnd> {
        let is_known = self.case.one_by_one && singles.len() >= FEWEST_EQUAL;
        if !is_known || statistic::median(singles) < FEW_STEPS * self.clock.step_ns() {
            return Ok(());
        }
        if !is_constant_in_each(singles, kept.iter().map(|sample| sample.noted)) {
            return Ok(());
        }
        Err(CaseEnd::Failed(format!(
            "in each sample all single operations are said to have taken exactly as long, {:.0} ns in steps of {:.1} ns: not the \
             times that were measured are kept",
            statistic::median(singles),
            self.clock.step_ns()
        )))
    }

    /// Cost of one iteration of a sample, in the record's unit.
    fn sample_cost(&self, sample: &Sample) -> f64 {
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

    fn into_measured(
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
        let mut derived =
            if self.event.is_some() { Vec::new() } else { derived::derived_figures(self.case, &costs) };
        let timed: Vec<_> =
            kept.iter().map(|sample| (self.clock.nanoseconds(Ticks(sample.counted)).0, sample)).collect();
        derived.extend(derived::waiting_share(self.case, &timed).filter(|_| self.event.is_none()));
        let report = self.subject.report();
        derived.extend(report.found.into_iter().filter_map(derived::median_of_found));
        derived.extend(self.accompanied.iter().filter_map(Accompanied::alone_figure));
        let paced = convert_to_mean_frequency(kept, values, self.event.is_none() && self.beside.is_none());
        Measured {
            executions: vec![Execution {
                at: 0.0, // the driver adds it: it knows when the run began
                samples: kept.len(),
                low: statistic::percentile(&paced.values, 25.0),
                median: statistic::median(&paced.values),
                core_hz: Some(paced.core_hz),
            }],
            iterations: kept.iter().map(|s| s.iterations).collect(),
            counted: kept.iter().map(|s| s.counted).collect(),
            core_mhz: paced.mhz,
            median,
            standard_deviation: statistic::standard_deviation(values),
            ticks: statistic::median(&ticks),
            slope: sweep.as_ref().map_or(median, |s| s.slope),
            intercept: sweep.as_ref().map(|s| s.intercept).unwrap_or_default(),
            control: sweep.as_ref().and_then(|s| s.control),
            net: sweep.as_ref().and_then(|s| s.net),
            predicted: if self.event.is_some() { None } else { predicted_cost(self.case, self.core_hz) },
            instructions: self.testimony.and_then(|seen| seen.instructions),
            core_hz: Some((self.core_hz, core_after)),
            evidence: self.evidence,
            unasked: self.unasked,
            contamination: contamination(self.case.own_tasks, kept),
            distribution: if self.case.one_by_one { derived::summarize(&singles) } else { None },
            matrix: report.matrix.map(derived::median_matrix),
            derived,
            events: self.rates,
            peer: report.wire.as_ref().map(crate::environment::Wire::comparison_key),
            wire: report.wire.map(Box::new),
            // The caller adds `meanwhile`, since it spans set-up and drop.
            ..Measured::default()
        }
    }
}

/// The prediction in nanoseconds, at this core frequency.
fn predicted_cost(case: &Case, core_hz: f64) -> Option<Predicted> {
    let prediction = case.prediction?;
    let ns = |cycles: f64| cycles * 1e9 / core_hz;
    Some(Predicted {
        hardware: ns(prediction.hardware),
        software: ns(prediction.software),
        why: prediction.why.to_owned(),
        whole: prediction.whole,
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
        held_up: judge::held_up_samples(samples),
        busy_beside: None,
    }
}

/// A sentence if single times have so few clock steps that they prove nothing: measured ones are often equal, too.
fn coarse_singles_sentence(singles: &[f64], step_ns: f64) -> Option<String> {
    let steps = statistic::median(singles) / step_ns;
    (!singles.is_empty() && steps < FEW_STEPS).then(|| {
        format!("single times: half of them have at most {steps:.0} steps of the clock, and measured ones are often equal there")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn single_times_of_a_sample_that_fills_the_memory_are_judged_too() {
        let (vary, constant) = ([5.0, 6.0, 5.0, 6.0, 6.0], [5.0; 5]);
        assert!(!is_constant_in_each(&vary, [None, None]));
        assert!(is_constant_in_each(&constant, [None, None]));
        assert!(is_constant_in_each(&[constant, [7.0; 5]].concat(), [Some(5), None, None]));
        assert!(!is_constant_in_each(&[constant, vary].concat(), [Some(5), None]));
    }

    #[test]
    fn single_times_of_few_clock_steps_are_said_to_prove_nothing() {
        let times = [500.0, 500.0, 600.0];
        let sentence = coarse_singles_sentence(&times, 100.0);
        assert!(sentence.is_some_and(|sentence| sentence.contains("at most 5 steps")));
        assert_eq!(coarse_singles_sentence(&times, 10.0), None);
        assert_eq!(coarse_singles_sentence(&[], 100.0), None);
    }
}

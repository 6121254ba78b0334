//! Judges claims. Each claim that holds gives a sentence of evidence; the first that does not gives a [`CaseEnd`].

mod interference;
mod later;
mod mid_batch;
mod plausible;
mod testimony;

pub(super) use interference::held_up_samples;
pub(super) use interference::{judge_interference, other_cpus_sentence, other_tasks_ns};
pub(super) use later::judge_later_batch;
pub(super) use plausible::judge_brackets;
pub(super) use plausible::{check_batch_length, check_reported_time, judge_plausible, judge_timed_share};
pub(super) use testimony::judge_by_witness;

use super::batch_size::BatchSize;
use super::sweep::{self, Effort, Sweep, Sweeper};
use super::{CaseEnd, Sample};
use crate::case::{Case, Claim, Subject};
use crate::clock::{Clock, Delta};
use crate::platform::cpu;
use crate::platform::time::{self, KernelClock};
use crate::record::{HELD_LATE, Interval, NEVER_ASKED};

/// Accepted ratio of the time of twice the iterations: three times the worst deviation over hundreds of honest sweeps beside
/// a loaded CPU, and far from the 1.0 of a remembered result.
const DOUBLING: std::ops::RangeInclusive<f64> = 1.8..=2.2;
/// The range in which the interval of that ratio must lie for the claim to hold. Work that grows with each iteration gives 2.7,
/// a remembered result 1.0. Beside two tasks per CPU, the estimate alone is now and then in the accepted range by chance,
/// whatever is executed.
const DOUBLING_INTERVAL: std::ops::RangeInclusive<f64> = 1.4..=2.6;
/// Time does not grow if the interval of the slope reaches zero and ends below this share of the time per iteration in the
/// largest batch. Threads that take a lock sometimes in turns and sometimes in a row have slopes of either sign.
const NO_GROWTH: f64 = 0.2;
/// Least growth of a batch's time when one more unit of iterations is added, as a share of the smallest batch.
/// Time does not grow if three rounds of four show less. The interval alone cannot decide: with seven rounds it is
/// the whole range, and one interrupt exceeds the whole time of a case that does not do its operation.
const LEAST_GROWTH: f64 = 0.01;
/// The advice if rounds contradict each other.
const AT_REST: &str = "run again when the machine, or its host, does less";
/// Least net cost of an operation as a share of its control, at the lower end of the interval. A limit of zero would be passed
/// by chance once in forty cases. An operation with this claim enters the kernel, waits for another core, or is atomic.
const LEAST_NET_SHARE: f64 = 0.02;
/// Accepted ratio of the cost in large batches to the slope over small ones. An operation that was optimised away or cached
/// costs a fraction, and one that grows with the number of iterations costs a multiple. A branch predictor may learn different
/// patterns in small and in large batches: system calls on Zen 4 (safe returns) took 339 ns in small ones and 505 in large
/// ones, 1.49 times as long.
const LARGE_BATCH_RATIO: std::ops::RangeInclusive<f64> = 0.7..=1.8;
/// [`LARGE_BATCH_RATIO`] for [`Claim::KeepsWorking`]: an honest operation may grow, as a list does.
const LARGE_BATCH_RATIO_OF_GROWING: std::ops::RangeInclusive<f64> = 0.5..=f64::INFINITY;
/// An iteration of at least this many core cycles does more than the empty loop, which takes one or two.
const MORE_THAN_EMPTY_CYCLES: f64 = 20.0;
/// Least charged time from which a share can be computed, µs: some kernels account in ticks of 4 ms.
const LEAST_CHARGED_US: f64 = 60_000.0;
/// Sweeps before a result that is not proportional is believed.
const ATTEMPTS: u32 = 3;

/// The judgement of one claim.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Judgement {
    /// It holds; the sentence is its evidence.
    Held(String),
    /// It could not be checked here; the sentence says why.
    Unasked(String),
}

impl Judgement {
    /// Puts its sentence where it belongs.
    pub(super) fn sort_sentence_into(self, evidence: &mut Vec<String>, unasked: &mut Vec<String>) {
        match self {
            Self::Held(sentence) => evidence.push(sentence),
            Self::Unasked(sentence) => unasked.push(sentence),
        }
    }
}

type Judgements = Vec<Judgement>;

/// Sweeps and judges proportionality, repeatedly and with larger batches before it gives up, since a disturbance passes.
///
/// # Errors
/// The subject takes no time or fails, or no sweep fulfils the claims.
pub(super) fn sweep_and_judge(
    case: &Case,
    subject: &mut dyn Subject,
    mut control: Option<&mut (dyn Subject + '_)>,
    clock: &Clock,
    effort: Effort,
) -> Result<(Sweeper, Vec<String>), CaseEnd> {
    let (first, size) = sweep::find_unit(subject, clock)?;
    check_timed_part(case, size)?;
    let (mut attempt, mut uneven) = (0, None);
    loop {
        // Larger batches after the first attempt: they average out bursts, but are interrupted more often.
        let unit = first << (2 * attempt.min(1));
        let mut sweeper = Sweeper::new(unit);
        sweeper.run_first_sweep(subject, control.as_deref_mut(), clock, effort)?;
        let end = match judge_proportional(case, &sweeper.result_since(0), sweep::smallest_batch_ns(clock)) {
            Ok(mut sentences) => {
                let late = format!("proportional time {HELD_LATE}{attempt} of {} sweeps", attempt + 1);
                sentences.extend((attempt > 0).then_some(late));
                return Ok((sweeper, sentences));
            }
            // Ignored in a brief sweep: the execution that proved the case has reported disturbances.
            Err(CaseEnd::Disturbed(_)) if effort == Effort::Brief => return Ok((sweeper, Vec::new())),
            // The case is contradicted only if every attempt is: the first disturbed attempt outweighs it.
            Err(end) => uneven.unwrap_or(end),
        };
        attempt += 1;
        if attempt == ATTEMPTS {
            return Err(end);
        }
        uneven = Some(end).filter(|end| matches!(end, CaseEnd::Disturbed(_)));
    }
}

/// Notes on the claims about time, which cannot be checked where something else is measured: `what`.
pub(super) fn unchecked_time_claims(case: &Case, what: &str) -> impl Iterator<Item = String> {
    let about_time = case.claims.iter().filter(|claim| matches!(claim, Claim::Linear | Claim::AboveControl));
    about_time.map(move |claim| format!("{NEVER_ASKED}{what}: {claim}"))
}

fn judge_proportional(case: &Case, sweep: &Sweep, unit_ns: f64) -> Result<Vec<String>, CaseEnd> {
    check_time_grows(sweep, unit_ns)?;
    let mut sentences = Vec::new();
    for claim in &case.claims {
        match claim {
            Claim::Linear => sentences.push(judge_doubling(sweep)?),
            Claim::AboveControl => sentences.push(judge_above_control(sweep).map_err(CaseEnd::Contradicted)?),
            _ => {}
        }
    }
    Ok(sentences)
}

/// Checks that the batch by which the unit was found has a timed part: noise alone may look like growing time.
///
/// # Errors
/// The timed part is less than a fiftieth of the share that the case declares ([`CaseEnd::Contradicted`]).
fn check_timed_part(case: &Case, size: BatchSize) -> Result<(), CaseEnd> {
    const FIFTIETH: f64 = 0.02;
    if size.timed_ns >= FIFTIETH * case.timed_share * size.wall_ns {
        return Ok(());
    }
    Err(CaseEnd::Contradicted(format!(
        "time does not grow with the number of iterations: of a batch of {} iterations that took {:.0} ns, {:.0} ns are timed",
        size.iterations, size.wall_ns, size.timed_ns
    )))
}

/// Checks for every case that the slope is positive; otherwise there is no cost and no rate. `unit_ns` is what the smallest
/// batch should take.
///
/// # Errors
/// A batch takes as long whatever its length ([`CaseEnd::Contradicted`]), or the rounds contradict each other
/// ([`CaseEnd::Disturbed`]).
pub(super) fn check_time_grows(sweep: &Sweep, unit_ns: f64) -> Result<(), CaseEnd> {
    let Interval { estimate, low, high } = sweep.slope;
    let cost = format!("one costs {estimate:.4} ns, interval {low:.4} to {high:.4}");
    let by_unit_ns = sweep.slope_quartile * sweep.unit as f64;
    // Noise can give an operation that does nothing a positive slope.
    let is_flat = low <= 0.0 && high < NO_GROWTH * sweep.ns_each_in_largest();
    if is_flat || by_unit_ns < LEAST_GROWTH * unit_ns {
        let sentence = format!("time does not grow with the number of iterations: {cost}");
        return Err(CaseEnd::Contradicted(sentence));
    }
    if low > 0.0 {
        return Ok(());
    }
    Err(CaseEnd::Disturbed(format!(
        "{cost}: too uneven to tell whether time grows with the number of iterations; {AT_REST}"
    )))
}

/// Judges that twice the iterations take twice the time.
///
/// # Errors
/// The rounds say otherwise ([`CaseEnd::Contradicted`]), or contradict each other ([`CaseEnd::Disturbed`]).
fn judge_doubling(sweep: &Sweep) -> Result<String, CaseEnd> {
    let (by, twice) = (sweep.doubling, 2 * sweep.unit);
    let excludes_lies = [by.low, by.high].iter().all(|bound| DOUBLING_INTERVAL.contains(bound));
    if DOUBLING.contains(&by.estimate) && excludes_lies {
        return Ok(format!("twice {twice} iterations took {:.2} times as long", by.estimate));
    }
    if by.high < *DOUBLING.start() || by.low > *DOUBLING.end() {
        return Err(CaseEnd::Contradicted(format!(
            "time is not proportional to the number of iterations: twice {twice} of them took {:.2} times as long; the \
             operation remembers, or the machine is too busy",
            by.estimate
        )));
    }
    Err(CaseEnd::Disturbed(format!(
        "twice {twice} iterations took {:.2} to {:.2} times as long: too uneven to tell whether time is proportional to \
         their number; {AT_REST}",
        by.low, by.high
    )))
}

fn judge_above_control(sweep: &Sweep) -> Result<String, String> {
    let control = sweep.control.map_or(0.0, |control| control.estimate);
    match sweep.net {
        Some(net) if net.low > LEAST_NET_SHARE * control => {
            Ok(format!("{:.4} ns above the same loop without it", net.estimate))
        }
        Some(net) => Err(format!(
            "the operation costs no more than the same loop without it: {:.4} ns, interval {:.4} to {:.4}; \
             it was inlined or optimised away",
            net.estimate, net.low, net.high
        )),
        None => Err("the case claims to cost more than its control and has none".into()),
    }
}

/// Judges one batch: CPUs, throttling and the case's own claims. Returns the evidence.
///
/// # Errors
/// A claim does not hold, or the batch was disturbed.
pub(super) fn judge_sample(
    case: &Case,
    delta: &Delta,
    iterations: u64,
    pinned: Option<usize>,
) -> Result<Vec<String>, CaseEnd> {
    if let Some(cpu) = pinned {
        if delta.migrated || delta.counted.cpu != cpu {
            let now = delta.counted.cpu;
            let seen = cpu::why_lost(cpu);
            return Err(CaseEnd::Disturbed(format!(
                "the thread was kept on CPU {cpu} and ran on CPU {now} in the middle of the case: {seen}"
            )));
        }
    }
    if let Some((own, now)) = delta.partners.and_then(|partners| partners.strayed) {
        return Err(CaseEnd::Disturbed(format!(
            "a partner was kept on CPU {own} and ran on CPU {now} in the middle of the case, so that what was measured is not what \
             the id says; {}",
            cpu::why_partner_lost(own)
        )));
    }
    if delta.counted.throttled.is_some_and(|times| times > 0) {
        return Err(CaseEnd::Disturbed(
            "the control group's CPU quota stopped the process in the middle of a sample; raise cpu.max"
                .into(),
        ));
    }
    let is_hidden = delta.partners.is_some_and(|partners| partners.hidden);
    let own = case.claims.iter().filter_map(|claim| match claim {
        // Not judged if the partners' accounts are hidden: the case is then unwitnessed.
        Claim::Counted(_) | Claim::AtMost(_) | Claim::Regime(_) if is_hidden => None,
        Claim::Counted(ask) => Some(ask(delta, iterations).map_err(CaseEnd::Failed)),
        Claim::AtMost(ask) => Some(ask(delta, iterations).map_err(CaseEnd::Contradicted)),
        Claim::Regime(ask) => Some(ask(delta, iterations).map_err(CaseEnd::Disturbed)),
        // If it did not hold the operation would have failed, and there would be no sample.
        Claim::Checked(what) => Some(Ok((*what).to_owned())),
        _ => None,
    });
    let own: Vec<_> = own.collect();
    // A disproved claim takes precedence over a missed regime.
    let disproved = own.iter().find(|judged| matches!(judged, Err(CaseEnd::Failed(_)))).cloned();
    disproved.map_or_else(|| own.into_iter().collect(), |end| end.map(|sentence| vec![sentence]))
}

/// Judges claims about system calls without a witness, by the kernel's accounting: an operation that enters the kernel is
/// charged mostly system time, one that never does hardly any.
///
/// # Errors
/// The accounting contradicts the claim.
pub(super) fn judge_by_accounting(case: &Case, samples: &[Sample]) -> Result<Option<Judgement>, CaseEnd> {
    let enters = case.claims.iter().any(|claim| matches!(claim, Claim::Enters(_)));
    if !enters && !case.claims.iter().any(|claim| matches!(claim, Claim::NeverEnters)) {
        return Ok(None);
    }
    let sum = |f: fn(&Sample) -> u64| samples.iter().map(f).sum::<u64>() as f64;
    let (user, system) = (sum(|s| s.delta.counted.user_us), sum(|s| s.delta.counted.system_us));
    if user + system < LEAST_CHARGED_US {
        let sentence = "too short for the kernel's accounting to tell where the time went";
        return Ok(Some(Judgement::Unasked(sentence.into())));
    }
    let share = system / (user + system);
    let sentence = format!("{:.0} % of the time was charged in the kernel", 100.0 * share);
    match (enters, share) {
        // The untimed preparation of each operation is charged to the process too, and is most of the time.
        (true, _) if case.one_by_one => {
            Ok(Some(Judgement::Unasked(sentence + ", with what prepares each operation")))
        }
        (true, share) if share < 0.3 => {
            Err(CaseEnd::Failed(sentence + ", which is too little for a system call"))
        }
        (false, share) if share > 0.3 && time::enters_kernel(KernelClock::Precise) == Some(true) => {
            Ok(Some(Judgement::Unasked(
                sentence + ", with readings of the clock, each of which enters the kernel here",
            )))
        }
        (false, share) if share > 0.3 => {
            Err(CaseEnd::Failed(sentence + ", where the case claims never to be"))
        }
        _ => Ok(Some(Judgement::Held(sentence))),
    }
}

/// Upper bound of the instructions a core executes in a cycle: twice the ten that the widest cores retire.
const MOST_A_CYCLE: f64 = 20.0;

/// Checks that a core of frequency `core_hz` can execute the claimed instructions within the measured time.
///
/// # Errors
/// The claimed instructions need more cycles than were measured.
pub(super) fn check_instruction_rate(case: &Case, cost_ns: f64, core_hz: f64) -> Result<(), CaseEnd> {
    let cycles = cost_ns * core_hz / 1e9;
    let claimed = case.claims.iter().filter_map(|claim| match claim {
        Claim::Executes(least) => Some(*least),
        _ => None,
    });
    match claimed.reduce(f64::max) {
        Some(least) if least > MOST_A_CYCLE * cycles.max(1.0) => Err(CaseEnd::Failed(format!(
            "an iteration takes {cycles:.0} core cycles, in which no core executes the {least} instructions that are claimed: \
             the operation remembers its answer, or does not happen"
        ))),
        _ => Ok(()),
    }
}

/// Judges by the time of an iteration that it is no empty loop, where the witness could not count its instructions.
pub(super) fn judge_work_by_time(case: &Case, cost_ns: f64, core_hz: f64) -> Option<Judgement> {
    let claim = case.claims.iter().find(|claim| matches!(claim, Claim::KeepsWorking(_)))?;
    let cycles = cost_ns * core_hz / 1e9;
    let sentence = format!("an iteration takes {cycles:.0} core cycles");
    Some(if cycles >= MORE_THAN_EMPTY_CYCLES {
        Judgement::Held(sentence + ", more than the empty loop")
    } else {
        Judgement::Unasked(format!("{sentence}, and its instructions could not be counted: {claim}"))
    })
}

/// Compares the cost in large batches (lower quartile and median of the samples) with the interval of the slope over small
/// ones: proportionality over three decades.
///
/// # Errors
/// They differ too much.
pub(super) fn judge_large_batches(
    case: &Case,
    slope: Interval,
    unit: u64,
    [quick, middle]: [f64; 2],
    iterations: u64,
) -> Result<Option<String>, CaseEnd> {
    let accepted = case.claims.iter().find_map(|claim| match claim {
        Claim::Linear => Some(LARGE_BATCH_RATIO),
        Claim::KeepsWorking(_) => Some(LARGE_BATCH_RATIO_OF_GROWING),
        _ => None,
    });
    // A batch below the unit is not large: its overhead would dominate.
    let Some(accepted) = accepted.filter(|_| iterations >= unit) else { return Ok(None) };
    let sentence = format!(
        "batches of {iterations} iterations cost {:.3} times the slope of small ones",
        middle / slope.estimate
    );
    // Some samples are disturbed, and so are some of the small batches.
    if middle / slope.low >= *accepted.start() && quick / slope.high <= *accepted.end() {
        Ok(Some(sentence))
    } else {
        Err(CaseEnd::Contradicted(sentence + "; it should be 1"))
    }
}

#[cfg(test)]
mod tests;

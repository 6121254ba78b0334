//! Claims, judged: a sentence of evidence for each that holds, a [`CaseEnd`] with its sentence for the first
//! that does not.

mod interference;

use super::sweep::{self, NoTime, Sweep, Sweeper};
use super::{CaseEnd, Sample};
use crate::Error;
use crate::case::{Case, Claim, Scale, Subject};
use crate::clock::witness::{self, Testimony};
use crate::clock::{Clock, Delta};
use crate::platform::ptrace::PANICKED;
use crate::record::Interval;
pub(super) use interference::{by_other_tasks, interference, other_cpus};

/// Twice the iterations may take 1.8 to 2.2 times as long: three times the worst seen over hundreds of
/// honest sweeps beside a loaded CPU, and far from the 1.0 of something that was remembered.
const DOUBLING: std::ops::RangeInclusive<f64> = 1.8..=2.2;
/// What an operation must cost beyond its control, as a share of the control, at the lower end of the interval.
/// Zero would be passed by chance once in forty, by a thousandth of the control. The cheapest call costs four
/// times its empty loop, and in a build that is not optimised, where the loop is dear, a tenth of it.
const ABOVE: f64 = 0.02;
/// A case's median over large batches may differ so much from the slope over small ones: a frequency that
/// ramps or a neighbour that comes and goes moves it by tens of per cent, a loop that is not one by all.
const LARGE: std::ops::RangeInclusive<f64> = 0.7..=1.43;
/// Time charged, µs, below which a share of it means nothing: some kernels account by ticks of 4 ms.
const LEAST_CHARGED_US: f64 = 60_000.0;
/// Sweeps before a line that is none is believed.
const ATTEMPTS: u32 = 3;
/// Testimonies before one against a claim is believed. Where the clock is the kernel's, each of them reads it
/// through the vDSO, and stepping takes so long that every third is overtaken by a tick.
const TESTIMONIES: u32 = 8;

/// What was heard of a claim.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Judgement {
    /// It holds; the sentence is its evidence.
    Held(String),
    /// It could not be asked here; the sentence says why.
    Unasked(String),
}

type Judgements = Vec<Judgement>;

/// Calls the witness and asks what it saw.
pub(super) fn witness(
    case: &Case,
    subject: &mut dyn Subject,
    clock: &Clock,
) -> Result<(Option<Testimony>, Judgements), CaseEnd> {
    let callee = case.claims.iter().find_map(|c| if let Claim::Calls(at) = c { Some(at()) } else { None });
    let mut verdict = Err(CaseEnd::Failed(String::new()));
    for _ in 0..TESTIMONIES {
        // A refusal in the forked child is met again, and reported, when the subject runs here.
        let run = |n| drop(subject.run(n, clock));
        let testimony = match witness::testify(run, callee, !case.one_by_one) {
            Ok(testimony) => testimony,
            Err(died @ Error::Died(_)) => return Err(died_watched(subject, clock, &died)),
            // A sandbox may forbid ptrace: that is said, and the other claims carry the case.
            Err(error) => {
                let word = Judgement::Unasked(format!("no witness could be called: {error}"));
                return Ok((None, vec![word]));
            }
        };
        // The vDSO reads the kernel's clock again when a tick overtakes it, which in one of the two runs is a
        // few instructions more. What is against a claim each time is no tick.
        let sentences = case.claims.iter().filter_map(|claim| by_witness(claim, &testimony).transpose());
        match sentences.collect() {
            Ok(sentences) => return Ok((Some(testimony), sentences)),
            Err(sentence) => verdict = Err(CaseEnd::Failed(sentence)),
        }
    }
    verdict
}

/// An operation that panicked under the witness is run here as well: its panic then has words.
fn died_watched(subject: &mut dyn Subject, clock: &Clock, died: &Error) -> CaseEnd {
    if matches!(died, Error::Died(how) if how == PANICKED) {
        drop(subject.run(witness::ITERATIONS, clock));
    }
    CaseEnd::Failed(died.to_string())
}

/// What a claim says of a testimony: nothing, a word, or why it does not hold.
fn by_witness(claim: &Claim, seen: &Testimony) -> Result<Option<Judgement>, String> {
    let held = |sentence: Result<String, String>| sentence.map(|sentence| Some(Judgement::Held(sentence)));
    match claim {
        Claim::Calls(_) => held(called(seen)),
        Claim::Enters(calls) => held(entered(calls, seen)),
        Claim::NeverEnters => held(never_entered(seen)),
        Claim::Executes(least) => executed(*least, seen).map(Some),
        _ => Ok(None),
    }
}

fn called(seen: &Testimony) -> Result<String, String> {
    match (seen.visits, seen.iterations) {
        (None, _) => Err("the call could not be followed: it is too long to step through".into()),
        (Some(visits), n) if visits == n => Ok(format!("the callee was entered {n} times in {n} iterations")),
        (Some(visits), n) => Err(format!(
            "the call was inlined or skipped: the callee was entered {visits} times in {n} iterations; \
             keep the compiler from seeing into it"
        )),
    }
}

fn entered(calls: &[(&'static str, i64)], seen: &Testimony) -> Result<String, String> {
    let n = seen.iterations as usize;
    let times = |number| seen.entries.iter().filter(|&&e| e == number).count();
    for (name, number) in calls {
        // A call that is named twice is entered twice.
        let claimed = n * calls.iter().filter(|(_, other)| other == number).count();
        if times(*number) != claimed {
            return Err(format!(
                "the kernel was not entered as claimed: {name} {} times in {n} iterations, claimed were {claimed}",
                times(*number)
            ));
        }
    }
    if seen.entries.len() != n * calls.len() {
        let others = seen.entries.len() - n * calls.len();
        return Err(format!("the kernel was entered {others} times more than claimed in {n} iterations"));
    }
    let names: Vec<_> = calls.iter().map(|(name, _)| *name).collect();
    Ok(format!("{} entered the kernel {n} times each in {n} iterations", names.join(" and ")))
}

fn never_entered(seen: &Testimony) -> Result<String, String> {
    if seen.entries.is_empty() {
        return Ok(format!("the kernel was not entered in {} iterations", seen.iterations));
    }
    Err(format!(
        "the kernel was entered {} times in {} iterations, which was claimed not to happen (call {})",
        seen.entries.len(),
        seen.iterations,
        seen.entries[0]
    ))
}

fn executed(least: f64, seen: &Testimony) -> Result<Judgement, String> {
    match seen.instructions {
        Some(count) if count < least => Err(format!(
            "the loop was optimised away: {count:.2} instructions an iteration where at least {least} are claimed"
        )),
        Some(count) => Ok(Judgement::Held(format!("{count:.2} instructions an iteration"))),
        None => {
            let sentence = format!("too many instructions to count in {} iterations", seen.iterations);
            Ok(Judgement::Unasked(sentence))
        }
    }
}

/// Sweeps and judges the line; tries again with larger batches before it condemns. What bends a line for a
/// moment is a disturbance; what bends it in every attempt is the operation.
pub(super) fn line(
    case: &Case,
    subject: &mut dyn Subject,
    mut control: Option<&mut (dyn Subject + '_)>,
    clock: &Clock,
    scale: Scale,
) -> Result<(Sweeper, Vec<String>), CaseEnd> {
    let found = sweep::find_unit(subject, clock)?;
    let first = found.map_err(|nothing| CaseEnd::Failed(took_no_time(&nothing)))?;
    let mut verdict = Err(String::new());
    for attempt in 0..ATTEMPTS {
        // Larger batches once: they even out what comes in bursts, but are themselves hit more often.
        let unit = first << (2 * attempt.min(1));
        let mut sweeper = Sweeper::new(unit);
        sweeper.sweep(subject, control.as_deref_mut(), clock, scale)?;
        match straight(case, &sweeper.since(0)) {
            Ok(sentences) => return Ok((sweeper, sentences)),
            Err(sentence) => verdict = Err(sentence),
        }
    }
    verdict.map_err(CaseEnd::Disturbed)
}

/// The claims about time, which no count of events can answer.
pub(super) fn of_time(case: &Case) -> Vec<String> {
    let about_time = |claim: &&Claim| matches!(claim, Claim::Linear | Claim::AboveControl);
    case.claims.iter().filter(about_time).map(|claim| format!("not asked of a count: {claim}")).collect()
}

fn took_no_time(nothing: &NoTime) -> String {
    format!(
        "time does not grow with the number of iterations: {} of them took {:.0} ns; the operation was optimised away",
        nothing.iterations, nothing.ns
    )
}

pub(super) fn straight(case: &Case, sweep: &Sweep) -> Result<Vec<String>, String> {
    grows(sweep)?;
    let mut sentences = Vec::new();
    for claim in &case.claims {
        match claim {
            Claim::Linear => sentences.push(doubles(sweep)?),
            Claim::AboveControl => sentences.push(above(sweep)?),
            _ => {}
        }
    }
    Ok(sentences)
}

/// Whatever a case claims: what takes no time has no cost, no rate and no efficiency.
pub(super) fn grows(sweep: &Sweep) -> Result<(), String> {
    if sweep.slope.low > 0.0 {
        return Ok(());
    }
    Err(format!(
        "time does not grow with the number of iterations: one costs {:.4} ns, interval {:.4} to {:.4}",
        sweep.slope.estimate, sweep.slope.low, sweep.slope.high
    ))
}

fn doubles(sweep: &Sweep) -> Result<String, String> {
    let (by, unit) = (sweep.doubling, sweep.unit);
    if !DOUBLING.contains(&by) {
        return Err(format!(
            "time is not proportional to the number of iterations: twice {} of them took {by:.2} times as long; \
             the operation remembers, or the machine is too busy",
            2 * unit
        ));
    }
    Ok(format!("twice {} iterations took {by:.2} times as long", 2 * unit))
}

fn above(sweep: &Sweep) -> Result<String, String> {
    let control = sweep.control.map_or(0.0, |control| control.estimate);
    match sweep.net {
        Some(net) if net.low > ABOVE * control => {
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

/// What must hold for every single batch; what the case's own claims say of it.
pub(super) fn sample(
    case: &Case,
    delta: &Delta,
    iterations: u64,
    pinned: Option<usize>,
) -> Result<Vec<String>, CaseEnd> {
    if let Some(cpu) = pinned {
        if delta.migrated || delta.counted.cpu != cpu {
            let now = delta.counted.cpu;
            return Err(CaseEnd::Failed(format!(
                "the thread was moved from CPU {cpu} to CPU {now} in the middle of the case: \
                 something else sets its affinity"
            )));
        }
    }
    if let Some((own, now)) = delta.partners.and_then(|partners| partners.strayed) {
        return Err(CaseEnd::Failed(format!(
            "a partner was moved from CPU {own} to CPU {now} in the middle of the case: something else sets its \
             affinity, and what was measured is not what the id says"
        )));
    }
    if delta.counted.throttled.is_some_and(|times| times > 0) {
        return Err(CaseEnd::Disturbed(
            "the control group's CPU quota stopped the process in the middle of a sample; raise cpu.max"
                .into(),
        ));
    }
    let own = case.claims.iter().filter_map(|claim| match claim {
        Claim::Counted(ask) => Some(ask(delta, iterations).map_err(CaseEnd::Failed)),
        Claim::Regime(ask) => Some(ask(delta, iterations).map_err(CaseEnd::Disturbed)),
        // Where it does not hold the operation has answered an error, and there is no sample.
        Claim::Checked(what) => Some(Ok((*what).to_owned())),
        _ => None,
    });
    own.collect()
}

/// Without a witness the kernel's own accounting must do: who enters the kernel each time is charged mostly
/// there, who never does is hardly charged at all.
pub(super) fn by_accounting(case: &Case, samples: &[Sample]) -> Result<Option<Judgement>, CaseEnd> {
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
        // What prepares each single operation is charged to the process as well, and is most of it.
        (true, _) if case.one_by_one => {
            Ok(Some(Judgement::Unasked(sentence + ", with what prepares each operation")))
        }
        (true, share) if share < 0.3 => {
            Err(CaseEnd::Failed(sentence + ", which is too little for a system call"))
        }
        (false, share) if share > 0.3 => {
            Err(CaseEnd::Failed(sentence + ", where the case claims never to be"))
        }
        _ => Ok(Some(Judgement::Held(sentence))),
    }
}

/// Large batches must agree with small ones: proportionality over three decades.
pub(super) fn large_batches(
    case: &Case,
    sweep: &Sweep,
    median: Interval,
    samples: &[Sample],
) -> Result<Option<String>, CaseEnd> {
    if !case.claims.iter().any(|claim| matches!(claim, Claim::Linear)) {
        return Ok(None);
    }
    let iterations = samples.last().map_or(0, |s| s.iterations);
    if iterations < sweep.unit {
        return Ok(None); // not a large batch: its own overhead would be on trial
    }
    let ratio = median.estimate / sweep.slope.estimate;
    let sentence =
        format!("batches of {iterations} iterations cost {ratio:.3} times the slope of small ones");
    if LARGE.contains(&ratio) {
        Ok(Some(sentence))
    } else {
        Err(CaseEnd::Disturbed(sentence + "; it should be 1"))
    }
}

#[cfg(test)]
mod tests;

//! Tests of the claims: cases that have the claims of real cases, and operations that do something else.
//!
//! [`liars`] returns one for each way to lie that a kind of claim must catch, [`real_cases`] the real cases, whose claims must
//! hold. [`judge_claims`] executes a case as a run does, only shorter.

pub mod late_copy;
mod roster;
mod stranger;
mod twisted;

use syscost_engine::case::Case;
use syscost_engine::harness::size_as_run;
use syscost_engine::record::{HELD_LATE, Measured};
use syscost_engine::trial::{Bench, CaseEnd, Trial};

pub use roster::{OPEN, liars, real_cases};

/// A case that lies.
pub struct Liar {
    /// The id of the case whose claims it has.
    pub id: String,
    /// What it does instead.
    pub lie: &'static str,
    /// The claim that must catch it.
    pub claim: &'static str,
    /// Iterations of a batch from which it leaves out a twentieth of the work or of the time: in shorter ones it is no lie.
    pub from: u64,
    /// The case.
    pub case: Case,
}

/// The result of judging the claims of a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ruling {
    /// The claims do not hold: one execution disproved them.
    Disproved,
    /// A claim about time was contradicted in all executions. A machine that is always busy contradicts it, too.
    Contradicted,
    /// The claims hold.
    Held,
    /// One claim could not be checked, the others hold: the number is saved as unwitnessed.
    Unwitnessed,
    /// The machine lacks something that the case needs.
    Skipped,
    /// The machine disturbed every execution.
    Disturbed,
}

/// A ruling, the number of executions that led to it, and the sentence of the last execution.
#[derive(Clone, Debug, PartialEq)]
pub struct ClaimTrial {
    pub ruling: Ruling,
    pub executions: u32,
    /// Empty if the claims hold.
    pub sentence: String,
    /// Iterations of a sample, if there was one.
    pub iterations: u64,
    /// Evidence of claims that held, and in some attempts did not.
    pub late: Vec<String>,
}

/// Executions that must all contradict a claim about time before it counts as disproved. They are short, and follow one
/// another: a busy machine contradicts three of them.
const CONTRADICTED: u32 = 6;
/// Executions of a case that the machine disturbs.
const DISTURBED: u32 = 24;

/// Executes a case with samples as a run has them, on a machine `slowness` times as slow, until its claims have held or are disproved.
pub fn judge_claims(case: &Case, bench: Bench<'_>, slowness: f64) -> ClaimTrial {
    let (mut iterations, mut late) = (0, Vec::new());
    let tried = judge_executions(|| {
        let mut trial = Trial::prepare(case, bench, None)?;
        trial.prove_operation()?;
        let size = size_as_run(&mut trial, case, slowness)?;
        iterations = size.1;
        let measured = sample_and_conclude(trial, size)?;
        late = measured.evidence.iter().filter(|sentence| sentence.contains(HELD_LATE)).cloned().collect();
        Ok(measured.unwitnessed_claims().next().cloned())
    });
    ClaimTrial { iterations, late, ..tried }
}

/// An execution without Criterion.
fn sample_and_conclude(
    mut trial: Trial<'_>,
    (samples, iterations): (usize, u64),
) -> Result<Measured, CaseEnd> {
    trial.begin_sampling();
    for _ in 0..samples {
        trial.measure_sample(iterations)?;
        trial.continue_sweep()?;
    }
    trial.conclude(samples)
}

/// The sentence of an execution that held names a claim that could not be checked.
fn judge_executions(mut execute: impl FnMut() -> Result<Option<String>, CaseEnd>) -> ClaimTrial {
    let (mut contradicted, mut executions) = (0, 0);
    loop {
        executions += 1;
        let (ruling, sentence) = match execute() {
            Ok(None) => (Ruling::Held, String::new()),
            Ok(Some(sentence)) => (Ruling::Unwitnessed, sentence),
            Err(CaseEnd::Failed(sentence)) => (Ruling::Disproved, sentence),
            Err(CaseEnd::Skipped(sentence)) => (Ruling::Skipped, sentence),
            Err(end @ (CaseEnd::CutShort(_) | CaseEnd::Interrupted)) => {
                (Ruling::Disturbed, end.into_sentence())
            }
            Err(CaseEnd::Contradicted(sentence)) => {
                contradicted += 1;
                if contradicted < CONTRADICTED {
                    continue;
                }
                (Ruling::Contradicted, sentence)
            }
            Err(CaseEnd::Disturbed(sentence)) => {
                if executions < DISTURBED {
                    continue;
                }
                (Ruling::Disturbed, sentence)
            }
        };
        return ClaimTrial { ruling, executions, sentence, iterations: 0, late: Vec::new() };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heard(ends: &[Result<Option<String>, CaseEnd>]) -> (Ruling, u32) {
        let mut ends = ends.iter().cycle();
        let tried = judge_executions(|| ends.next().expect("endless").clone());
        (tried.ruling, tried.executions)
    }

    #[test]
    fn a_claim_about_time_is_disproved_by_all_executions_and_any_other_by_one() {
        let contradicted = Err(CaseEnd::Contradicted("flat".into()));
        let disturbed = Err(CaseEnd::Disturbed("busy".into()));
        assert_eq!(heard(&[Err(CaseEnd::Failed("no".into()))]), (Ruling::Disproved, 1));
        assert_eq!(heard(std::slice::from_ref(&contradicted)), (Ruling::Contradicted, 6));
        assert_eq!(heard(&[contradicted.clone(), Ok(None)]), (Ruling::Held, 2));
        assert_eq!(heard(&[Ok(Some("no ptrace".into()))]), (Ruling::Unwitnessed, 1));
        assert_eq!(heard(&[disturbed.clone(), contradicted]), (Ruling::Contradicted, 12));
        assert_eq!(heard(&[disturbed]), (Ruling::Disturbed, 24));
        assert_eq!(heard(&[Err(CaseEnd::Skipped("no disk".into()))]), (Ruling::Skipped, 1));
    }

    #[test]
    fn every_real_case_is_there_and_no_liar_is_twice() {
        let (liars, twins) = (liars(), real_cases());
        assert_eq!(liars.len(), roster::LIARS.len(), "an id of the roster is no case");
        assert!(liars.iter().all(|liar| twins.iter().any(|(id, _)| *id == liar.id)));
        for (at, liar) in liars.iter().enumerate() {
            assert!(liars[..at].iter().all(|other| (&other.id, other.lie) != (&liar.id, liar.lie)));
        }
    }
}

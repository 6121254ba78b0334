//! Tests of the claims: cases that have the claims of real cases, and operations that do something else.
//!
//! [`liars`] returns one for each way to lie that a kind of claim must catch, [`real_cases`] the real cases, whose claims must
//! hold. [`judge_claims`] executes a case as a run does, only shorter.

mod roster;
mod stranger;
mod twisted;

use crate::error::{Error, Result};
use crate::platform::arch;
use crate::platform::partner::{Class, Kind, Partner};
use crate::platform::shared::Table;
use std::time::Duration;
use syscost::suite;
use syscost_engine::case::Case;
use syscost_engine::harness::size_as_run;
use syscost_engine::record::{HELD_LATE, Measured};
use syscost_engine::trial::{Bench, CaseEnd, OtherCopies, Trial};

pub use roster::{OPEN, liars, real_cases};

type CaseResult<T> = std::result::Result<T, CaseEnd>;

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
fn sample_and_conclude(mut trial: Trial<'_>, (samples, iterations): (usize, u64)) -> CaseResult<Measured> {
    trial.begin_sampling();
    for _ in 0..samples {
        trial.measure_sample(iterations)?;
        trial.continue_sweep()?;
    }
    trial.conclude(samples)
}

/// The sentence of an execution that held names a claim that could not be checked.
fn judge_executions(mut execute: impl FnMut() -> CaseResult<Option<String>>) -> ClaimTrial {
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

// The claim that copies run at the same time: one that only begins when the other has ended must be caught, and one that keeps
// company must not be condemned.

/// The case of the first copy.
const ID: &str = "syscall/getppid";
/// The claim.
pub const CLAIM: &str = "run at the same time";
/// What the second copy does in place of its operation, if it lies.
pub const LIE: &str = "begins when the other has ended";
/// Turns of the second copy's loop at a time, far less than a sample.
const TURNS: u64 = 10_000;
/// Much longer than a sample.
const LATE: Duration = Duration::from_millis(10);

/// Judges the claims of the case beside a second copy, which is a process that lies or does not. Skipped where there is one CPU.
pub fn judge_copies(bench: Bench<'_>, lies: bool) -> (String, ClaimTrial) {
    let skipped = |sentence| ClaimTrial {
        ruling: Ruling::Skipped,
        executions: 1,
        sentence,
        iterations: 0,
        late: Vec::new(),
    };
    let tried = judge_beside(bench, lies).unwrap_or_else(|why| skipped(why.to_string()));
    (format!("{ID} by 2 copies"), tried)
}

fn judge_beside(bench: Bench<'_>, lies: bool) -> Result<ClaimTrial> {
    let cpus = bench.pinned.into_iter().chain(bench.place.cpus.others.first().copied());
    let cpus = cpus.collect::<Vec<_>>();
    let &[_, second] = &cpus[..] else {
        return Err(Error::Missing("each copy needs a CPU of its own, and one is allowed".into()));
    };
    let group =
        suite::find_group("syscall").ok_or_else(|| Error::Usage("there is no group syscall".into()))?;
    let case = (group.cases)().into_iter().find(|case| group.id(case) == ID);
    let case = case.ok_or_else(|| Error::Usage(format!("there is no case {ID}")))?;
    let file =
        tempfile::tempfile_in(&bench.place.scratch).map_err(|e| Error::file("a table", "making", e))?;
    file.set_len(Table::file_length(2)).map_err(|e| Error::file("a table", "making", e))?;
    let copy = |own| Ok::<_, Error>(OtherCopies::new(Table::map(&file, 2)?, own, cpus.clone()));
    let (first, other) = (copy(0)?, copy(1)?);
    let step = move || take_round(&other, lies).map_or(-i64::from(libc::ECANCELED), |()| 0);
    let _second = Partner::start(Kind::Process, (second, Class::Ordinary), step, || {})?;
    Ok(judge_claims(&case, Bench { other_copies: Some(&first), ..bench }, 1.0))
}

/// One round of the second copy.
fn take_round(other_copies: &OtherCopies, lies: bool) -> CaseResult<()> {
    other_copies.meet_all()?;
    other_copies.meet_all()?;
    other_copies.begin_batch()?;
    if lies {
        std::thread::sleep(LATE);
        other_copies.mark_begin();
    }
    arch::register_loop(TURNS);
    other_copies.end_batch();
    other_copies.keep_company(0, || {
        arch::register_loop(TURNS);
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::platform::cpu;
    use crate::platform::testing::run_in_child_process;
    use syscost_engine::case::{Cpus, Place, Scale};
    use syscost_engine::clock::Clock;

    fn heard(ends: &[CaseResult<Option<String>>]) -> (Ruling, u32) {
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

    #[test]
    fn a_copy_that_comes_late_is_caught_and_one_that_keeps_company_is_not() {
        let directory = tempfile::tempdir().expect("a directory");
        run_in_child_process(|| {
            let (clock, allowed) = (Clock::start_up(), cpu::allowed_cpus());
            let here = allowed.iter().copied().max().expect("a CPU");
            cpu::pin_thread(here).expect("pinned");
            let cpus = Cpus::from_allowed(Some(here), allowed);
            let place = Place { scratch: directory.path().to_path_buf(), scale: Scale::Smoke, cpus };
            let bench =
                Bench { place: &place, clock: &clock, pinned: Some(here), lent: None, other_copies: None };
            let [late, honest] = [true, false].map(|lies| judge_copies(bench, lies).1);
            // Other tests disturb either.
            assert!(!matches!(late.ruling, Ruling::Held | Ruling::Unwitnessed), "{late:?}");
            assert!(honest.ruling != Ruling::Disproved, "{honest:?}");
        });
    }
}

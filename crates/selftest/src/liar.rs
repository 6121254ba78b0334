//! Tests of the claims. A liar is a case that has the claims of a real case and an operation that does something else.
//!
//! [`liars`] returns a liar for each kind of lie that a claim must catch. [`real_cases`] returns the real cases, whose claims
//! must hold. [`judge_claims`] executes a case as a run does, for a shorter time.

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
    /// The description of what it does instead.
    pub lie: &'static str,
    /// The claim that must catch it.
    pub claim: &'static str,
    /// The smallest number of iterations of a batch in which it leaves out a twentieth of the work or of the time. Shorter
    /// batches are no lie.
    pub from: u64,
    /// The case.
    pub case: Case,
}

/// The result of judging the claims of a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ruling {
    /// The claims do not hold: one execution disproved them.
    Disproved,
    /// All executions contradicted a claim about time. A machine that is always busy contradicts it too.
    Contradicted,
    /// The claims hold.
    Held,
    /// One claim could not be checked, and the others hold: the number is saved as unwitnessed.
    Unwitnessed,
    /// The machine lacks a requirement of the case.
    Skipped,
    /// The machine disturbed every execution.
    Disturbed,
}

/// A ruling, the number of executions that led to it, and the sentence of the last execution.
#[derive(Clone, Debug, PartialEq)]
pub struct ClaimTrial {
    pub ruling: Ruling,
    pub executions: u32,
    /// The sentence of the last execution; empty if the claims hold.
    pub sentence: String,
    /// The number of iterations of a sample; 0 if no sample was taken.
    pub iterations: u64,
    /// Evidence for claims that held at last and failed in some attempts.
    pub late: Vec<String>,
}

/// The number of executions that must all contradict a claim about time before it counts as disproved. They are short and
/// follow one another, and a busy machine can contradict three of them.
const CONTRADICTED: u32 = 6;
/// The number of disturbed executions after which a case counts as disturbed.
const DISTURBED: u32 = 24;

/// Executes a case until its claims have held or are disproved. Samples are taken as in a run on a machine `slowness` times
/// as slow.
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

/// Takes the samples of one execution without Criterion, and concludes it.
fn sample_and_conclude(mut trial: Trial<'_>, (samples, iterations): (usize, u64)) -> CaseResult<Measured> {
    trial.begin_sampling();
    for _ in 0..samples {
        trial.measure_sample(iterations)?;
        trial.continue_sweep()?;
    }
    trial.conclude(samples)
}

/// Repeats `execute` until there is a ruling. The sentence of an execution that held names a claim that could not be checked.
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

// The claim that copies run at the same time. A copy that begins only when the other has ended must be caught. A copy that
// runs beside the other must not be condemned.

/// The case of the first copy.
const ID: &str = "syscall/getppid";
/// The name of the claim.
pub const CLAIM: &str = "run at the same time";
/// The description of what the second copy does instead of its operation, if it lies.
pub const LIE: &str = "begins when the other has ended";
/// The iterations of the second copy's loop at a time, which take far less than a sample.
const TURNS: u64 = 10_000;
/// The delay of a lying copy, which is much longer than a sample.
const LATE: Duration = Duration::from_millis(10);

/// Judges the claims of the case beside a second copy, a process that lies if `lies`. Skipped where only one CPU is allowed.
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

/// Takes part in one round as the second copy.
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

    fn ruling_of(ends: &[CaseResult<Option<String>>]) -> (Ruling, u32) {
        let mut ends = ends.iter().cycle();
        let tried = judge_executions(|| ends.next().expect("endless").clone());
        (tried.ruling, tried.executions)
    }

    #[test]
    fn a_claim_about_time_is_disproved_by_all_executions_and_any_other_by_one() {
        let contradicted = Err(CaseEnd::Contradicted("flat".into()));
        let disturbed = Err(CaseEnd::Disturbed("busy".into()));
        assert_eq!(ruling_of(&[Err(CaseEnd::Failed("no".into()))]), (Ruling::Disproved, 1));
        assert_eq!(ruling_of(std::slice::from_ref(&contradicted)), (Ruling::Contradicted, 6));
        assert_eq!(ruling_of(&[contradicted.clone(), Ok(None)]), (Ruling::Held, 2));
        assert_eq!(ruling_of(&[Ok(Some("no ptrace".into()))]), (Ruling::Unwitnessed, 1));
        assert_eq!(ruling_of(&[disturbed.clone(), contradicted]), (Ruling::Contradicted, 12));
        assert_eq!(ruling_of(&[disturbed]), (Ruling::Disturbed, 24));
        assert_eq!(ruling_of(&[Err(CaseEnd::Skipped("no disk".into()))]), (Ruling::Skipped, 1));
    }

    #[test]
    fn every_liar_has_a_real_case_and_is_listed_once() {
        let (liars, twins) = (liars(), real_cases());
        assert_eq!(liars.len(), roster::LIARS.len(), "an id of the roster is no case");
        assert!(liars.iter().all(|liar| twins.iter().any(|(id, _)| *id == liar.id)));
        for (at, liar) in liars.iter().enumerate() {
            assert!(liars[..at].iter().all(|other| (&other.id, other.lie) != (&liar.id, liar.lie)));
        }
    }

    #[test]
    fn a_late_copy_is_caught_and_a_concurrent_one_is_not() {
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
            // Other tests may disturb both copies.
            assert!(!matches!(late.ruling, Ruling::Held | Ruling::Unwitnessed), "{late:?}");
            assert!(honest.ruling != Ruling::Disproved, "{honest:?}");
        });
    }
}

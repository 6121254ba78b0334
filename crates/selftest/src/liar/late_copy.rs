//! The claim that copies run at the same time: one that only begins when the other has ended must be caught, and one that keeps
//! company must not be condemned.

use super::{ClaimTrial, Ruling, judge_claims};
use crate::error::{Error, Result};
use crate::platform::arch;
use crate::platform::partner::{Class, Kind, Partner};
use crate::platform::shared::Table;
use std::time::Duration;
use syscost::suite;
use syscost_engine::trial::{Bench, CaseEnd, OtherCopies};

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
fn take_round(other_copies: &OtherCopies, lies: bool) -> std::result::Result<(), CaseEnd> {
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

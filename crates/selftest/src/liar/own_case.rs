//! Cases outside the suite: operations as a user may write them, with claims that no case of the suite has.

use crate::platform::arch;
use std::hint::black_box;
use std::sync::Mutex;
use syscost_engine::case::{Case, Claim, SetUp, set_up};
use syscost_engine::clock::{Clock, Counts};

/// Multiplications of a hash: an instruction each.
const MULTIPLICATIONS: u64 = 4_096;
/// Additions of a single operation: half a microsecond, which is few steps of some clocks.
const ADDITIONS: u64 = 2_000;

/// The case of this name.
pub(super) fn find(name: &str) -> Option<Case> {
    match name {
        "hash" => Some(
            Case::looped("hash", "a hash of 4096 multiplications", run_hashes)
                .claim(Claim::Executes(4_000.0))
                .claim(Claim::Linear),
        ),
        "single" => Some(Case::new("single", "single short operations", single_additions()).one_by_one()),
        _ => None,
    }
}

fn hash() -> u64 {
    arch::multiply_chain(black_box(MULTIPLICATIONS))
}

fn run_hashes(n: u64) {
    (0..n).for_each(|_| _ = black_box(hash()));
}

/// A hash that is worked out once, and then kept behind a lock.
pub(super) fn remembered_hash() -> SetUp {
    set_up(|_| {
        let answer: Mutex<Option<u64>> = Mutex::new(None);
        Ok(move |n: u64, clock: &Clock| {
            Ok(clock.time(|| {
                for _ in 0..n {
                    let mut kept = answer.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                    _ = black_box(*kept.get_or_insert_with(hash));
                }
            }))
        })
    })
}

fn single_additions() -> SetUp {
    set_up(|_| {
        Ok(|n: u64, clock: &Clock| {
            let add = |(): &mut ()| arch::add_chain(ADDITIONS);
            clock.time_each(n, &mut (), |()| Ok(()), add, |(), _| Ok(Counts::Yes))
        })
    })
}

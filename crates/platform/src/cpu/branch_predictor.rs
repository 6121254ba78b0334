//! Flushing the branch predictor.
//!
//! The cost of the same call in the same kernel depends on what the predictor has learnt. The predictor can learn the
//! wrong thing and keep it for as long as a process lives. On Zen 4 (safe returns, retpolines) opening and closing a file
//! took 1.46, 1.68 or 2.12 µs, depending on the process. On Zen 5 most procedure calls took five cycles in place of four.
//! Executing more jumps than the predictor can remember ends such a state.
//!
//! # Invariants
//!
//! * **JUMPS**: the executable mapping holds jumps, each to the next, and a return in the last place. It
//!   was written and published before it became executable, and lives as long as the value that calls into it.
//! * **OWNER**: a forked child does not inherit the mapping, so only the process that made it executes the jumps.
#![allow(unsafe_code)]

use crate::arch::{self, JUMP, JUMP_BYTES, RETURN};
use memmap2::{Advice, Mmap, MmapMut};
use std::sync::OnceLock;

/// Number of jumps: more than the branch target buffers of Golden Cove (12 288) and Zen 5 (24 576) hold. Half of a buffer's
/// capacity had no effect. In a program of procedure calls alone, on Zen 5, 252 of 320 turns were in the slower mode
/// after 16 384 jumps, 118 after 24 576, 60 after 32 768, 11 after 49 152, 8 after 65 536, none after 131 072.
const JUMPS: usize = 65_536;
/// Number of jumps on AMD before Zen 5: the same multiple of what Zen 4 holds (about 8 700 entries). Its predecessors hold less
/// (Zen 3: 6 656). There 65 536 jumps take 0.5 ms.
const JUMPS_BEFORE_ZEN_5: usize = 24_576;

fn jump_count() -> usize {
    if arch::is_amd_before_zen_5() { JUMPS_BEFORE_ZEN_5 } else { JUMPS }
}

/// Flushes the branch predictor of this CPU by executing more jumps than it remembers, 16 bytes apart. This code of 1 MiB (on
/// AMD before Zen 5: 384 KiB) displaces cache lines too. Returns false if it did nothing: in a forked child, or where memory
/// cannot be mapped or made executable.
pub fn flush_branch_predictor() -> bool {
    static WALK: OnceLock<Option<JumpWalk>> = OnceLock::new();
    let walk = WALK.get_or_init(JumpWalk::new).as_ref().filter(|walk| walk.owner == std::process::id());
    walk.inspect(|walk| walk.walk_jumps()).is_some()
}

/// The jumps, in the process that made them.
struct JumpWalk {
    code: Mmap,
    owner: u32,
}

impl JumpWalk {
    fn new() -> Option<Self> {
        if JUMP.is_empty() {
            return None;
        }
        let count = jump_count();
        let mut code = MmapMut::map_anon((count + 1) * JUMP_BYTES).ok()?;
        // Measured forks must not copy the page tables of this memory.
        code.advise(Advice::DontFork).ok()?;
        let (jumps, last) = code.split_at_mut(count * JUMP_BYTES);
        jumps.chunks_exact_mut(JUMP_BYTES).for_each(|jump| jump[..JUMP.len()].copy_from_slice(JUMP));
        last[..RETURN.len()].copy_from_slice(RETURN);
        arch::publish(&code);
        Some(Self { code: code.make_exec().ok()?, owner: std::process::id() })
    }

    /// Walks over all jumps once.
    fn walk_jumps(&self) {
        // SAFETY: JUMPS: every jump leads to the next, and the last to a return, which needs no arguments. OWNER: the only
        // caller has checked the owner.
        unsafe { std::mem::transmute::<*const u8, extern "C" fn()>(self.code.as_ptr())() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::child::Child;
    use crate::ptrace::step_through;
    use crate::testing::print_skipped;
    use std::time::Duration;

    #[test]
    fn every_jump_is_taken_once() {
        let walk = JumpWalk::new().expect("a mapping");
        walk.code.advise(Advice::DoFork).expect("what is stepped through is a forked child");
        let begins = walk.code.as_ptr() as usize;
        let last = begins + jump_count() * JUMP_BYTES;
        for at in [begins, begins + jump_count() / 2 * JUMP_BYTES, last] {
            let seen = step_through(|| walk.walk_jumps(), 1 << 20).expect("traced").expect("short");
            assert!(seen.visits(at) == 1 && seen.instructions > jump_count() as u64, "{seen:?}");
        }
    }

    #[test]
    fn a_forked_child_does_not_execute_the_unmapped_jumps() {
        if !flush_branch_predictor() {
            print_skipped("written memory may not be executed here");
            return;
        }
        let child = Child::start(|| assert!(!flush_branch_predictor())).expect("forked");
        child.wait_for_success(Duration::from_secs(20)).expect("neither walked nor crashed");
    }
}

//! Making the branch predictor forget.
//!
//! What the predictor has learnt decides what the same kernel charges for the same call, and it can learn the wrong thing
//! and stay with it for as long as a process lives: on Zen 4 (safe returns, retpolines) opening and closing a file took
//! 1.46, 1.68 or 2.12 µs by process, until a walk over more jumps than it can remember.
//!
//! # Invariants
//!
//! * **JUMPS**: the executable mapping holds a jump to the next line at the start of every line, and a return in the last. It
//!   was written and published before it became executable, and lives as long as the value that calls into it.
#![allow(unsafe_code)]

use crate::platform::arch::{self, JUMP, JUMP_BYTES, RETURN};
use memmap2::{Mmap, MmapMut};

/// More than the branch target buffers of Zen 4 (about 8 700 entries) and Golden Cove (12 288) hold. Half as many left the
/// modes as they were.
const JUMPS: usize = 16_384;

/// A walk over 16 384 jumps, 64 bytes apart: 60 µs, and 1 MiB of code, which displaces what it displaces of the caches too.
pub struct JumpWalk(Mmap);

impl JumpWalk {
    /// Writes the jumps; `None` where memory cannot be mapped, or written memory cannot be made executable.
    pub fn new() -> Option<Self> {
        let mut code = MmapMut::map_anon((JUMPS + 1) * JUMP_BYTES).ok()?;
        let (jumps, last) = code.split_at_mut(JUMPS * JUMP_BYTES);
        jumps.chunks_exact_mut(JUMP_BYTES).for_each(|line| line[..JUMP.len()].copy_from_slice(JUMP));
        last[..RETURN.len()].copy_from_slice(RETURN);
        arch::publish(&code);
        code.make_exec().ok().map(Self)
    }

    /// Walks over all jumps once.
    pub fn walk(&self) {
        // SAFETY: JUMPS: every jump leads to the next, and the last to a return, which needs no arguments.
        unsafe { std::mem::transmute::<*const u8, extern "C" fn()>(self.0.as_ptr())() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::platform::ptrace::step_through;

    #[test]
    fn every_jump_is_taken_once() {
        let walk = JumpWalk::new().expect("a mapping");
        let begins = walk.0.as_ptr() as usize;
        let last = begins + JUMPS * JUMP_BYTES;
        for at in [begins, begins + JUMPS / 2 * JUMP_BYTES, last] {
            let seen = step_through(|| walk.walk(), Some(at), 100_000).expect("traced").expect("short");
            assert!(seen.visits == 1 && seen.instructions > JUMPS as u64, "{seen:?}");
        }
    }
}

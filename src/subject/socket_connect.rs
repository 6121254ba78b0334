//! # What is timed
//! Say what one iteration does, in one sentence. Then name the variants, as they stand in the ids.
//!
//! # What is not
//! Say what happens around it and is not in the number, and what of the loop is.
//!
//! # How we know
//! A witness counts the instructions of 64 turns. Time grows in proportion to their number. Say what else must
//! be true if the operation really happened, and make a claim of it.
//!
//! # What fools it
//! Say how a compiler, a cache, a hypervisor or another program could make the number smaller or larger than
//! the truth, and what was done about each.
//!
//! # Reading the number
//! Say what the number should be near to, what it should be held against, and what it does not say.
//!
//! # Source
//! Name the paper, the manual page or the earlier measurement that this comes from.

use super::remote;
use super::{Case, Claim, Group};

/// The group.
pub const GROUP: Group = Group {
    name: "socket_connect",
    manual: include_str!("socket_connect.rs"),
    sources: &[remote::CONNECTION, remote::SERVED],
    cases,
    fits: &[],
};

fn cases() -> Vec<Case> {
    let mut cases = vec![
        Case::looped("example", "one turn of the example's loop", example)
            .claim(Claim::Executes(1.0))
            .claim(Claim::Linear)
            .predict(1.0, 0.0, "say why, before the first measurement"),
    ];
    cases.extend(remote::connections());
    cases
}

/// The operation, `n` times. It stays out of line, so that it can be held against its disassembly.
#[inline(never)]
fn example(n: u64) {
    for i in 0..n {
        std::hint::black_box(i);
    }
}

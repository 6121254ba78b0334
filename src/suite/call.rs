//! # What is timed
//! A call of a procedure that returns at once: with 0 to 8 arguments of one type or of mixed types, with a structure by
//! value, through a pointer, through a table of methods (`dyn`), and through the procedure linkage table of a shared
//! object. Each argument is loaded from the stack. The raw figure includes the loop; *net* does not.
//!
//! # What is not
//! Work inside the procedure: there is none, not even a stack frame. The callee is one `ret` (for `plt` the C library's
//! `gnu_get_libc_version`, which has one `lea` more).
//!
//! # How we know
//! A witness steps through 64 iterations and counts how often execution reaches the callee's first instruction: once an
//! iteration, so the call was not inlined. The control, the same loop without the call, is measured in alternation. It is
//! not claimed that a call costs more: a core may overlap the call with the loop.
//!
//! # What fools it
//! A compiler that sees an empty body drops its arguments even under a ban on inlining. If it does not see the
//! body, it calls through a register, even where the source names the function (as in version 1 of this group). Hence the loops are
//! in assembly, each with its callee beside it. An argument that stays in its register need not be moved: here each is loaded again, since a
//! callee may change these registers. Beyond six integer arguments (eight on AArch64) or eight floating-point ones the stack is
//! used. An out-of-order core overlaps the loads with the call: a slope below one cycle an argument is no error. `mixed` repeats
//! u32, f64, u64, f32. Where the callee lies and what the branch predictor has learnt decide a cycle in five (`syscost help limits`).
//!
//! # Reading the number
//! An iteration has three taken branches: the call, the return, which the return-stack buffer predicts, and the loop's own.
//! Zen 4 and Zen 5 take four cycles for them. Redwood Cove takes one, as it does for the loop without the call; two calls in a
//! row take two and four of them four, so that a call costs a cycle there and *net* says nothing. The line through arity 0 to 8
//! shows what one more argument costs, with its confidence interval: a third of a cycle on a core that does three loads a cycle.
//!
//! # Source
//! CSC501 project report (0.357 ns an argument, 0 to 7 unsigned arguments, unoptimised), CSE 221 project report (a
//! table of sixteen, float and double). Calling conventions: System V AMD64 psABI, AAPCS64.

pub mod operation;

use crate::kit::contract::*;
use operation::Call;

pub const GROUP: Group = Group::new("call", include_str!("call.rs"), cases)
    .version(3)
    .fits(&[
        Fit { step: "a further u32 argument", prefix: "call/u32/" },
        Fit { step: "a further u64 argument", prefix: "call/u64/" },
        Fit { step: "a further f32 argument", prefix: "call/f32/" },
        Fit { step: "a further f64 argument", prefix: "call/f64/" },
        Fit { step: "a further argument of mixed types", prefix: "call/mixed/" },
    ])
    .curves(&[
        by_arity_curve("call/u32/", "u32"),
        by_arity_curve("call/u64/", "u64"),
        by_arity_curve("call/f32/", "f32"),
        by_arity_curve("call/f64/", "f64"),
        by_arity_curve("call/mixed/", "mixed"),
    ])
    .headlines(&[
        Headline::new(8, "u64/0", "a call without arguments"),
        Headline::new(9, "u64/7", "a call with 7 arguments"),
    ]);

/// A curve of cost along the number of arguments.
const fn by_arity_curve(prefix: &'static str, title: &'static str) -> Curve {
    Curve::new(prefix, title, Axis::Count("arguments"))
}

fn cases() -> Vec<Case> {
    let by_arity = operation::TYPES.into_iter().flat_map(|(name, calls)| {
        calls.into_iter().enumerate().map(move |(arity, call)| {
            let title = format!("direct call, {arity} {name} arguments");
            call_case(format!("{name}/{arity}"), title, call).predict(3.0, 0.5 * arity as f64, DIRECT)
        })
    });
    by_arity.chain(special_cases()).map(Case::prediction_includes_control).collect()
}

const DIRECT: &str = "three taken branches, and half a cycle for each argument loaded";

#[rustfmt::skip]
fn special_cases() -> [Case; 5] {
    [
        call_case("struct/16B", "direct call, 16 bytes by value", operation::STRUCT[0]).predict(3.0, 1.0, "two registers"),
        call_case("struct/64B", "direct call, 64 bytes by value", operation::STRUCT[1]).predict(3.0, 8.0, "four 16-byte copies to the stack"),
        call_case("pointer/3", "call through a pointer, 3 arguments", operation::POINTER_3)
            .predict(3.0, 1.5, "the indirect branch predictor is never wrong here"),
        call_case("dyn/3", "call through a table of methods, 3 arguments", operation::DYN_3)
            .predict(3.0, 3.0, "one more argument, self, and a load of the method"),
        call_case("plt/0", "call into a shared object through its linkage table", operation::PLT_0)
            .need(Need::new(require_dynamic_linking)).predict(4.0, 1.0, "the stub's jump is a fourth taken branch"),
    ]
}

fn call_case(name: impl Into<String>, title: impl Into<String>, call: Call) -> Case {
    let is_written = Need::new(|_| match operation::ARE_WRITTEN {
        true => Ok(()),
        false => Err("the loops of calls are in assembly, and not written for this processor".into()),
    });
    Case::looped(name, title, call.turns)
        .need(is_written)
        .control(operation::control)
        .claim(Claim::Calls(call.callee))
        .claim(Claim::Linear)
}

/// A static executable has no linkage table.
fn require_dynamic_linking(_: &Place) -> std::result::Result<(), String> {
    ensure(!cfg!(target_feature = "crt-static"), || {
        "this binary is linked statically and has no linkage table; build it without +crt-static".into()
    })
}

#[cfg(test)]
mod tests {
    use super::operation::{self, TYPES};
    use crate::platform::ptrace::{Step, step_each, step_through};
    use std::collections::BTreeMap;

    /// Executions of the instruction at this address in one iteration of the loop.
    fn per_turn(body: fn(u64), address: usize) -> u64 {
        let [few, many] = [8, 16]
            .map(|n| step_through(|| body(n), 100_000).expect("traced").expect("short").visits(address));
        (many - few) / 8
    }

    #[test]
    fn every_call_is_seen() {
        let others = [operation::POINTER_3, operation::DYN_3, operation::PLT_0];
        for call in operation::U64.into_iter().chain(operation::STRUCT).chain(others) {
            assert_eq!(per_turn(call.turns, (call.callee)()), 1);
        }
    }

    #[test]
    fn the_control_calls_nothing() {
        assert_eq!(per_turn(operation::control, (operation::U64[3].callee)()), 0);
    }

    /// Whether these bytes are a call that names its callee: `e8` on x86-64, `bl` on AArch64.
    fn is_direct(code: [u8; 8]) -> bool {
        if cfg!(target_arch = "aarch64") { code[3] >> 2 == 0x25 } else { code[0] == 0xe8 }
    }

    #[test]
    fn a_direct_call_names_its_callee() {
        for call in TYPES.into_iter().flat_map(|(_, calls)| calls).chain(operation::STRUCT) {
            assert!(instructions_before_callee(call).into_iter().all(is_direct));
        }
        assert!(!instructions_before_callee(operation::POINTER_3).into_iter().any(is_direct));
    }

    /// The instructions from which the callee is reached in three turns.
    fn instructions_before_callee(call: operation::Call) -> [[u8; 8]; 3] {
        let (callee, mut before, mut seen) = ((call.callee)(), [0; 8], Vec::new());
        let ended = step_each(
            || (call.turns)(3),
            100_000,
            |step| {
                if step.address == callee {
                    seen.push(before);
                }
                before = step.code;
            },
        );
        assert!(ended.expect("traced"), "short");
        seen.try_into().expect("one call a turn")
    }

    #[test]
    fn every_loop_is_within_a_cache_line_and_its_callee_in_the_one_before() {
        let calls = TYPES.into_iter().flat_map(|(_, calls)| calls).chain(operation::STRUCT);
        for call in calls.chain([operation::POINTER_3, operation::DYN_3]) {
            let mut visits = BTreeMap::<usize, u64>::new();
            let count = |step: &Step| *visits.entry(step.address).or_default() += 1;
            assert!(step_each(|| (call.turns)(50), 100_000, count).expect("traced"), "short");
            visits.remove(&(call.callee)());
            let turned: Vec<usize> = visits.into_iter().filter(|(_, n)| *n == 50).map(|(at, _)| at).collect();
            let [first, branch] = [turned[0], turned[turned.len() - 1]];
            assert!(first % 128 == 64 && branch - first < 60, "{turned:x?}");
            assert_eq!((call.callee)(), first - 64);
        }
    }
}

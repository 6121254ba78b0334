//! # What is timed
//! A call of a procedure that returns at once: with 0 to 8 arguments of one type or of mixed types, with a structure by
//! value, through a pointer, through a table of methods (`dyn`), and through the procedure linkage table of a shared
//! object. The raw figure includes the loop; *net* does not.
//!
//! # What is not
//! Work inside the procedure: there is none, not even a stack frame. The callee is one `ret` written in assembly (for
//! `plt` the C library's `gnu_get_libc_version`, which has one `lea` more).
//!
//! # How we know
//! A witness steps through 64 iterations and counts how often execution reaches the callee's first instruction: once an
//! iteration, so the call was not inlined. The control, the same loop without the call, is measured in alternation, and
//! the interval of the difference must lie above zero.
//!
//! # What fools it
//! A compiler that sees an empty body drops its arguments even if told not to inline, which is why the callee is
//! opaque. Arguments of the same value in the same registers need not be moved: here every call loses all caller-saved
//! registers, so each argument is loaded again, as in real code. Beyond six integer arguments (eight on AArch64) or
//! eight floating-point ones the stack is used. An out-of-order core overlaps the moves with the call: a slope below
//! one cycle an argument is no error. `mixed` repeats u32, f64, u64, f32.
//!
//! # Reading the number
//! The two taken branches, call and return, cost at least two cycles; the return-stack buffer predicts the second. The
//! line through arity 0 to 8 shows what one more argument costs, with its interval.
//!
//! # Source
//! CSC501 project report (0.357 ns an argument, 0 to 7 unsigned arguments, unoptimised), CSE 221 project report (a
//! table of sixteen, float and double). Calling conventions: System V AMD64 psABI, AAPCS64.

pub mod operation;

use crate::case::{Case, Claim, Fit, Group, Need, Place};
use crate::record::{Axis, Curve, Headline};

pub const GROUP: Group = Group::new("call", include_str!("call.rs"), cases)
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
    .headlines(&HEADLINES);

const HEADLINES: [Headline; 2] = [
    Headline::new(8, "u64/0", "a call without arguments"),
    Headline::new(9, "u64/7", "a call with 7 arguments"),
];

/// A curve of cost along the number of arguments.
const fn by_arity_curve(prefix: &'static str, title: &'static str) -> Curve {
    Curve::new(prefix, title, Axis::Count("arguments"))
}

/// Loops for arity 0 to 8.
type Loops = [fn(u64); 9];

/// Types of the arguments: name in the id, and the loops.
const TYPES: [(&str, Loops); 5] = [
    ("u32", operation::U32),
    ("u64", operation::U64),
    ("f32", operation::F32),
    ("f64", operation::F64),
    ("mixed", operation::MIXED),
];

fn cases() -> Vec<Case> {
    let by_arity = TYPES.iter().flat_map(|(name, loops)| {
        loops.iter().enumerate().map(move |(arity, &turns)| {
            let title = format!("direct call, {arity} {name} arguments");
            direct(format!("{name}/{arity}"), title, turns).predict(2.0, 0.5 * arity as f64, DIRECT)
        })
    });
    by_arity.chain(other_ways()).collect()
}

const DIRECT: &str = "two taken branches, and half a cycle for each argument loaded";

fn other_ways() -> [Case; 5] {
    [
        direct("struct/16B".into(), "direct call, 16 bytes by value".into(), operation::STRUCT[0]).predict(
            2.0,
            1.0,
            "two registers",
        ),
        direct("struct/64B".into(), "direct call, 64 bytes by value".into(), operation::STRUCT[1]).predict(
            2.0,
            8.0,
            "four 16-byte copies to the stack",
        ),
        direct("pointer/3".into(), "call through a pointer, 3 arguments".into(), operation::pointer_3)
            .predict(2.0, 1.5, "the indirect branch predictor is never wrong here"),
        calling(
            "dyn/3".into(),
            "call through a table of methods, 3 arguments".into(),
            operation::dyn_3,
            operation::dyn_callee,
        )
        .predict(2.0, 2.0, "one more argument, self, and a load of the method"),
        calling(
            "plt/0".into(),
            "call into a shared object through its linkage table".into(),
            operation::plt_0,
            operation::plt_callee,
        )
        .need(Need::new(shared_object))
        .predict(3.0, 1.0, "the stub's jump is a third taken branch"),
    ]
}

fn direct(name: String, title: String, turns: fn(u64)) -> Case {
    calling(name, title, turns, operation::callee)
}

fn calling(name: String, title: String, turns: fn(u64), callee: fn() -> usize) -> Case {
    Case::looped(name, title, turns)
        .control(operation::control)
        .claim(Claim::Calls(callee))
        .claim(Claim::AboveControl)
        .claim(Claim::Linear)
}

/// A static executable has no linkage table.
fn shared_object(_: &Place) -> Result<(), String> {
    if cfg!(target_feature = "crt-static") {
        return Err(
            "this binary is linked statically and has no linkage table; build it without +crt-static".into(),
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::operation;
    use crate::platform::ptrace::step_through;

    /// Executions of the instruction at this address in one iteration of the loop.
    fn per_turn(body: fn(u64), address: usize) -> u64 {
        let [few, many] = [8, 16].map(|n| {
            step_through(|| body(n), Some(address), 100_000).expect("traced").expect("short").visits
        });
        (many - few) / 8
    }

    #[test]
    fn every_call_is_seen() {
        for (arity, body) in operation::U64.iter().enumerate() {
            assert_eq!(per_turn(*body, operation::callee()), 1, "u64/{arity}");
        }
        assert_eq!(per_turn(operation::pointer_3, operation::callee()), 1);
        assert_eq!(per_turn(operation::dyn_3, operation::dyn_callee()), 1);
        assert_eq!(per_turn(operation::plt_0, operation::plt_callee()), 1);
    }

    #[test]
    fn the_control_calls_nothing() {
        assert_eq!(per_turn(operation::control, operation::callee()), 0);
    }
}

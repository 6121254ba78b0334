//! Registers of eight bytes, unrolled: the bandwidth of a program without vectors.
//!
//! # Invariants
//!
//! * **INSIDE** and **OFFERED**: as in `stream`.
#![allow(unsafe_code)]

use super::super::{BLOCK, Loop, Operation};
use std::arch::asm;

nine_turns!(pub(super));

/// Repeats a text for each of eight words.
macro_rules! words {
    ($($text:expr),+) => {
        concat!(".irp o,0,8,16,24,32,40,48,56\n", $($text, "\n",)+ ".endr")
    };
}

/// Repeats a text for each of four pairs of words.
macro_rules! pairs {
    ($($text:expr),+) => {
        concat!(".irp o,0,16,32,48\n", $($text, "\n",)+ ".endr")
    };
}

turns!(
    read,
    "mov x12, #0\nmov x13, #0",
    [pairs!("ldp x10, x11, [x1, #\\at+\\o]", "add x12, x12, x10", "add x13, x13, x11")],
    "stp x12, x13, [x7]"
);
turns!(write, "", [words!("str x6, [x0, #\\at+\\o]")], "");
turns!(write_non_temporal, "", [pairs!("stnp x6, x6, [x0, #\\at+\\o]")], "");
turns!(copy, "", [words!("ldr x10, [x1, #\\at+\\o]", "str x10, [x0, #\\at+\\o]")], "");
turns!(
    copy_non_temporal,
    "",
    [pairs!("ldp x10, x11, [x1, #\\at+\\o]", "stnp x10, x11, [x0, #\\at+\\o]")],
    ""
);
turns!(update, "", [words!("ldr x10, [x0, #\\at+\\o]", "add x10, x10, x6", "str x10, [x0, #\\at+\\o]")], "");
turns!(
    scale,
    "fmov d31, x6",
    [words!("ldr d16, [x1, #\\at+\\o]", "fmul d16, d16, d31", "str d16, [x0, #\\at+\\o]")],
    ""
);
turns!(
    add,
    "",
    [words!(
        "ldr d16, [x1, #\\at+\\o]",
        "ldr d17, [x2, #\\at+\\o]",
        "fadd d16, d16, d17",
        "str d16, [x0, #\\at+\\o]"
    )],
    ""
);
turns!(
    triad,
    "fmov d31, x6",
    [words!(
        "ldr d16, [x2, #\\at+\\o]",
        "ldr d17, [x1, #\\at+\\o]",
        "fmul d16, d16, d31",
        "fadd d16, d16, d17",
        "str d16, [x0, #\\at+\\o]"
    )],
    ""
);

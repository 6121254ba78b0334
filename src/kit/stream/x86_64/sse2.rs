//! Vectors of 16 bytes. Arithmetic needs aligned memory operands, so the loops load unaligned words first.
//!
//! # Invariants
//!
//! * **INSIDE** and **OFFERED**: as in `stream`.
#![allow(unsafe_code)]

use super::super::{BLOCK, Loop, Operation};
use std::arch::asm;

nine_turns!(pub(super));

/// Repeats a text for each of eight registers at four offsets.
macro_rules! rows {
    ($($text:expr),+) => {
        at!("0,128,256,384", $(each!("0,1,2,3,4,5,6,7", $text)),+)
    };
}

macro_rules! constant {
    () => {
        "movq xmm15, r10\npunpcklqdq xmm15, xmm15"
    };
}

turns!(
    read,
    [each!("0,1,2,3,4,5,6,7", "pxor xmm\\i, xmm\\i")],
    [rows!("movdqu xmm8, [rsi + \\at + 16*\\i]\npaddq xmm\\i, xmm8")],
    [".irp i,1,2,3,4,5,6,7\npaddq xmm0, xmm\\i\n.endr", "movdqu [r11], xmm0"]
);
turns!(write, [constant!()], [rows!("movdqu [rdi + \\at + 16*\\i], xmm15")], [""]);
turns!(write_non_temporal, [constant!()], [rows!("movntdq [rdi + \\at + 16*\\i], xmm15")], ["sfence"]);
turns!(
    copy,
    [""],
    [rows!("movdqu xmm\\i, [rsi + \\at + 16*\\i]", "movdqu [rdi + \\at + 16*\\i], xmm\\i")],
    [""]
);
turns!(
    copy_non_temporal,
    [""],
    [rows!("movdqu xmm\\i, [rsi + \\at + 16*\\i]", "movntdq [rdi + \\at + 16*\\i], xmm\\i")],
    ["sfence"]
);
turns!(
    update,
    [constant!()],
    [rows!(
        "movdqu xmm\\i, [rdi + \\at + 16*\\i]\npaddq xmm\\i, xmm15",
        "movdqu [rdi + \\at + 16*\\i], xmm\\i"
    )],
    [""]
);
turns!(
    scale,
    [constant!()],
    [rows!(
        "movupd xmm\\i, [rsi + \\at + 16*\\i]\nmulpd xmm\\i, xmm15",
        "movupd [rdi + \\at + 16*\\i], xmm\\i"
    )],
    [""]
);
turns!(
    add,
    [""],
    [rows!(
        "movupd xmm\\i, [rsi + \\at + 16*\\i]\nmovupd xmm8, [rdx + \\at + 16*\\i]\naddpd xmm\\i, xmm8",
        "movupd [rdi + \\at + 16*\\i], xmm\\i"
    )],
    [""]
);
turns!(
    triad,
    [constant!()],
    [rows!(
        "movupd xmm\\i, [rdx + \\at + 16*\\i]\nmulpd xmm\\i, xmm15\n\
         movupd xmm8, [rsi + \\at + 16*\\i]\naddpd xmm\\i, xmm8",
        "movupd [rdi + \\at + 16*\\i], xmm\\i"
    )],
    [""]
);

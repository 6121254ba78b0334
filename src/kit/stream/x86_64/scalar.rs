//! Registers of eight bytes, unrolled: the bandwidth of a program without vectors.
//!
//! # Invariants
//!
//! * **INSIDE** and **OFFERED**: as in `stream`.
#![allow(unsafe_code)]

use super::super::{BLOCK, Loop, Operation};
use std::arch::asm;

nine_turns!(pub(super));

/// Repeats a text for the four words at each of sixteen offsets.
macro_rules! words {
    ($($text:expr),+) => {
        at!(
            "0,32,64,96,128,160,192,224,256,288,320,352,384,416,448,480",
            $(".irp n,0,1,2,3", $text, ".endr"),+
        )
    };
}

turns!(
    read,
    ["xor r12d, r12d", "xor r13d, r13d", "xor r14d, r14d", "xor r15d, r15d"],
    [at!(
        "0,32,64,96,128,160,192,224,256,288,320,352,384,416,448,480",
        "add r12, [rsi + \\at]",
        "add r13, [rsi + \\at + 8]",
        "add r14, [rsi + \\at + 16]",
        "add r15, [rsi + \\at + 24]"
    )],
    ["add r12, r13", "add r14, r15", "add r12, r14", "mov [r11], r12"]
);
turns!(write, [""], [words!("mov [rdi + \\at + 8*\\n], r10")], [""]);
turns!(write_non_temporal, [""], [words!("movnti [rdi + \\at + 8*\\n], r10")], ["sfence"]);
turns!(copy, [""], [words!("mov r12, [rsi + \\at + 8*\\n]\nmov [rdi + \\at + 8*\\n], r12")], [""]);
turns!(
    copy_non_temporal,
    [""],
    [words!("mov r12, [rsi + \\at + 8*\\n]\nmovnti [rdi + \\at + 8*\\n], r12")],
    ["sfence"]
);
turns!(update, [""], [words!("add [rdi + \\at + 8*\\n], r10")], [""]);
turns!(
    scale,
    ["movq xmm15, r10"],
    [words!("movsd xmm\\n, [rsi + \\at + 8*\\n]\nmulsd xmm\\n, xmm15\nmovsd [rdi + \\at + 8*\\n], xmm\\n")],
    [""]
);
turns!(
    add,
    [""],
    [words!(
        "movsd xmm\\n, [rsi + \\at + 8*\\n]\naddsd xmm\\n, [rdx + \\at + 8*\\n]\n\
         movsd [rdi + \\at + 8*\\n], xmm\\n"
    )],
    [""]
);
turns!(
    triad,
    ["movq xmm15, r10"],
    [words!(
        "movsd xmm\\n, [rdx + \\at + 8*\\n]\nmulsd xmm\\n, xmm15\naddsd xmm\\n, [rsi + \\at + 8*\\n]\n\
         movsd [rdi + \\at + 8*\\n], xmm\\n"
    )],
    [""]
);

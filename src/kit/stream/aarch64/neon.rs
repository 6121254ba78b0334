//! Vectors of 16 bytes, four at a time.
//!
//! # Invariants
//!
//! * **INSIDE** and **OFFERED**: as in `stream`.
#![allow(unsafe_code)]

use super::super::{BLOCK, Loop, Operation};
use std::arch::asm;

nine_turns!(pub(super));

/// Loads four vectors of an array into these four registers.
macro_rules! load {
    ($array:literal, $a:literal, $b:literal, $c:literal, $d:literal) => {
        concat!(
            "ldp ",
            $a,
            ", ",
            $b,
            ", [",
            $array,
            ", #\\at]\n",
            "ldp ",
            $c,
            ", ",
            $d,
            ", [",
            $array,
            ", #\\at+32]"
        )
    };
}

/// Stores vector registers 16 to 19.
macro_rules! store {
    ($instruction:literal) => {
        concat!($instruction, " q16, q17, [x0, #\\at]\n", $instruction, " q18, q19, [x0, #\\at+32]")
    };
}

/// Applies an instruction to registers 16 to 19 and these four; the results replace registers 16 to 19.
macro_rules! of_four {
    ($instruction:literal, $a:literal, $b:literal, $c:literal, $d:literal) => {
        concat!(
            $instruction,
            concat!(" v16.2d, v16.2d, ", $a, ".2d\n"),
            $instruction,
            concat!(" v17.2d, v17.2d, ", $b, ".2d\n"),
            $instruction,
            concat!(" v18.2d, v18.2d, ", $c, ".2d\n"),
            $instruction,
            concat!(" v19.2d, v19.2d, ", $d, ".2d")
        )
    };
}

/// Applies an instruction to registers 16 to 19 and the constant.
macro_rules! with_constant {
    ($instruction:literal) => {
        of_four!($instruction, "v31", "v31", "v31", "v31")
    };
}

/// Applies an instruction to registers 16 to 19 and 20 to 23, pair by pair.
macro_rules! pairwise {
    ($instruction:literal) => {
        of_four!($instruction, "v20", "v21", "v22", "v23")
    };
}

turns!(
    read,
    "movi v0.2d, #0\nmovi v1.2d, #0\nmovi v2.2d, #0\nmovi v3.2d, #0",
    [
        load!("x1", "q16", "q17", "q18", "q19"),
        "add v0.2d, v0.2d, v16.2d",
        "add v1.2d, v1.2d, v17.2d",
        "add v2.2d, v2.2d, v18.2d",
        "add v3.2d, v3.2d, v19.2d"
    ],
    "stp q0, q1, [x7]\nstp q2, q3, [x7, #32]"
);
turns!(write, "dup v16.2d, x6\ndup v17.2d, x6\ndup v18.2d, x6\ndup v19.2d, x6", [store!("stp")], "");
turns!(
    write_non_temporal,
    "dup v16.2d, x6\ndup v17.2d, x6\ndup v18.2d, x6\ndup v19.2d, x6",
    [store!("stnp")],
    ""
);
turns!(copy, "", [load!("x1", "q16", "q17", "q18", "q19"), store!("stp")], "");
turns!(copy_non_temporal, "", [load!("x1", "q16", "q17", "q18", "q19"), store!("stnp")], "");
turns!(
    update,
    "dup v31.2d, x6",
    [load!("x0", "q16", "q17", "q18", "q19"), with_constant!("add"), store!("stp")],
    ""
);
turns!(
    scale,
    "dup v31.2d, x6",
    [load!("x1", "q16", "q17", "q18", "q19"), with_constant!("fmul"), store!("stp")],
    ""
);
turns!(
    add,
    "",
    [
        load!("x1", "q16", "q17", "q18", "q19"),
        load!("x2", "q20", "q21", "q22", "q23"),
        pairwise!("fadd"),
        store!("stp")
    ],
    ""
);
turns!(
    triad,
    "dup v31.2d, x6",
    [
        load!("x2", "q16", "q17", "q18", "q19"),
        load!("x1", "q20", "q21", "q22", "q23"),
        with_constant!("fmul"),
        pairwise!("fadd"),
        store!("stp")
    ],
    ""
);

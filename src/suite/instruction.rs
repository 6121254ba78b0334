//! # What is timed
//! Single instructions of the processor. `latency` is a chain, in which each needs the result of the one before.
//! `throughput` is four or eight that do not depend on each other, so that several are executed at the same time. The
//! memory that they use is two lines of the first-level cache.
//!
//! # What is not
//! The loop around them: 64 operations stand in a row, and its counting runs beside them.
//!
//! # How we know
//! A witness counts the instructions of an operation. Time grows in proportion to their number.
//!
//! # What fools it
//! The values: a division of small numbers is faster than one of large ones on some cores. Recent cores forward a stored value
//! through a register instead of the cache, so that `store-load` takes less than a load. A program on the sibling hyper-thread
//! takes half of the units for `throughput`.
//!
//! # Reading the number
//! Divide by the time of `known_work/add`, which is one core cycle. The ratio of latency to throughput is the number that the
//! core executes at once.
//!
//! # Source
//! Fog, *Instruction tables*; Abel and Reineke, *uops.info* (2019); lmbench's `lat_ops` and `par_ops`.

use crate::kit::contract::*;
use crate::platform::instruction::{Instruction, LATENCY, THROUGHPUT};

pub const GROUP: Group = Group::new("instruction", include_str!("instruction.rs"), cases);

/// Cases that a default run measures; a full run measures all.
const BY_DEFAULT: [&str; 4] =
    ["latency/divide-64", "latency/store-load", "latency/atomic-add-64", "latency/fence"];

fn cases() -> Vec<Case> {
    let kinds = [("latency", LATENCY), ("throughput", THROUGHPUT)];
    kinds
        .into_iter()
        .flat_map(|(kind, table)| table.iter().map(move |row| instruction_case(kind, row)))
        .collect()
}

fn instruction_case(kind: &str, instruction: &Instruction) -> Case {
    let Instruction { name, title, cycles, count, run } = *instruction;
    let case = Case::looped(format!("{kind}/{name}"), title, run)
        .claim(Claim::Executes(count))
        .claim(Claim::Linear)
        .predict(cycles, 0.0, "the tables of optimisation manuals");
    if BY_DEFAULT.contains(&&*case.name) { case } else { case.need(FULL_SCALE) }
}

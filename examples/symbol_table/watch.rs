//! Who watches the compiler: one monitor for the symbol table alone, one for every routine. Either may be off.

use syscost::technique::trace::Monitor;

/// A clock: the cycle counter or the virtual clock.
pub type Now = fn() -> u64;

/// The routines of the compiler, by their place in [`ROUTINES`].
pub const NEXT_TOKEN: usize = 0;
pub const STATEMENT: usize = 1;
pub const BLOCK: usize = 2;
pub const EXPRESSION: usize = 3;
pub const TERM: usize = 4;
pub const FACTOR: usize = 5;
pub const EMIT: usize = 6;
pub const INSERT: usize = 7;
pub const LOOK_UP: usize = 8;
pub const LEAVE: usize = 9;

pub const ROUTINES: [&str; 10] = [
    "next_token",
    "statement",
    "block",
    "expression",
    "term",
    "factor",
    "emit",
    "symbol insert",
    "symbol look_up",
    "symbol leave",
];

pub struct Watch {
    pub table: Monitor<Now>,
    pub routines: Monitor<Now>,
}

impl Watch {
    pub fn new(now: Now) -> Self {
        Self { table: Monitor::new(&["symbol table"], now), routines: Monitor::new(&ROUTINES, now) }
    }
}

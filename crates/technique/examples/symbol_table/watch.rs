//! The monitors of the compiler: one for the symbol table, one for every routine; each can be switched off. The cost of
//! a probe in this program is measured by a second probe in each of the table's, or by one more reading of the clock
//! there.

use std::cell::Cell;
use std::hint::black_box;
use syscost_technique::call_graph::CallGraph;
use syscost_technique::trace::{Monitor, Span};

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
    /// A second probe in each of the table's.
    pub again: Monitor<Now>,
    /// Whether each probe of the table reads the clock once more.
    pub reads_again: Cell<bool>,
    pub routines: CallGraph<Now>,
    now: Now,
}

impl Watch {
    pub fn new(now: Now) -> Self {
        let table = || Monitor::new(&["symbol table"], now);
        let (table, again, routines) = (table(), table(), CallGraph::new(&ROUTINES, now));
        Self { table, again, reads_again: Cell::new(false), routines, now }
    }

    /// Opens the spans of the table. The inner one is first, since it must be dropped first.
    #[inline(always)]
    pub fn table(&self) -> [Span<'_, Now>; 2] {
        let around = self.table.open_span(0);
        let inside = self.again.open_span(0);
        if self.reads_again.get() {
            black_box((self.now)());
        }
        [inside, around]
    }
}

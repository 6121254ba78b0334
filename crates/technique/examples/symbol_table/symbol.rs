//! The symbol table: it maps a name to a slot, scope by scope. It is a list that is searched from its end. This is correct
//! and simple, and it makes the compiler slower than its author expected. The remedy is a better data structure: an index of
//! the slots of each name.
//!
//! The compiler has two monitors, one for the symbol table and one for every routine; each can be switched off. The cost of a
//! probe in this program is measured by a second probe inside each of the table's probes, or by one more reading of the clock
//! there.

use std::cell::Cell;
use std::collections::HashMap;
use std::hint::black_box;
use syscost_technique::call_graph::CallGraph;
use syscost_technique::trace::{Monitor, Span};

/// One operation on the table.
#[derive(Clone, Copy)]
pub enum Operation<'s> {
    Enter,
    Leave,
    Insert(&'s str),
    LookUp(&'s str),
}

pub struct SymbolTable<'s, 'w> {
    symbols: Vec<&'s str>,
    /// The beginnings of the open scopes in the list.
    scopes: Vec<usize>,
    /// The slots of each name, the innermost last, if the watch has the index switched on.
    index: Option<HashMap<&'s str, Vec<usize>>>,
    /// The log of the operations, if logging was requested.
    log: Option<Vec<Operation<'s>>>,
    watch: &'w Watch,
}

impl<'s, 'w> SymbolTable<'s, 'w> {
    pub fn new(watch: &'w Watch, logged: bool) -> Self {
        let (index, log) = (watch.has_index.get().then(HashMap::new), logged.then(Vec::new));
        Self { symbols: Vec::new(), scopes: Vec::new(), index, log, watch }
    }

    fn note(&mut self, operation: Operation<'s>) {
        if let Some(log) = &mut self.log {
            log.push(operation);
        }
    }

    pub fn enter(&mut self) {
        self.note(Operation::Enter);
        self.scopes.push(self.symbols.len());
    }

    #[inline(never)]
    pub fn leave(&mut self) {
        let _spans = (self.watch.table(), self.watch.routines.open_span(LEAVE));
        self.note(Operation::Leave);
        let left = self.symbols.drain(self.scopes.pop().unwrap_or(0)..);
        if let Some(index) = &mut self.index {
            left.for_each(|name| _ = index.get_mut(name).and_then(Vec::pop));
        }
    }

    /// Makes a new symbol, and returns its slot.
    #[inline(never)]
    pub fn insert(&mut self, name: &'s str) -> usize {
        let _spans = (self.watch.table(), self.watch.routines.open_span(INSERT));
        self.note(Operation::Insert(name));
        let slot = self.symbols.len();
        self.symbols.push(name);
        if let Some(index) = &mut self.index {
            index.entry(name).or_default().push(slot);
        }
        slot
    }

    /// The slot of the innermost symbol of this name.
    #[inline(never)]
    pub fn look_up(&mut self, name: &'s str) -> Option<usize> {
        let _spans = (self.watch.table(), self.watch.routines.open_span(LOOK_UP));
        self.note(Operation::LookUp(name));
        match &self.index {
            Some(index) => index.get(name)?.last().copied(),
            None => self.symbols.iter().rposition(|symbol| *symbol == name),
        }
    }

    pub fn into_log(self) -> Vec<Operation<'s>> {
        self.log.unwrap_or_default()
    }

    /// Repeats the logged operations.
    #[inline(never)]
    pub fn replay(&mut self, operations: &[Operation<'s>]) -> usize {
        let mut sum = 0;
        for operation in operations {
            match *operation {
                Operation::Enter => self.enter(),
                Operation::Leave => self.leave(),
                Operation::Insert(name) => sum += self.insert(name),
                Operation::LookUp(name) => sum += self.look_up(name).unwrap_or(0),
            }
        }
        sum
    }
}

/// The loop of a replay without the operations on the table.
#[inline(never)]
pub fn dispatch(operations: &[Operation<'_>]) -> usize {
    let mut sum = 0;
    for operation in operations {
        sum += match *operation {
            Operation::Enter => black_box(1),
            Operation::Leave => black_box(2),
            Operation::Insert(name) => black_box(name).len(),
            Operation::LookUp(name) => black_box(3 + name.len()),
        };
    }
    sum
}

/// A clock: the cycle counter or the virtual clock.
pub type Now = fn() -> u64;

/// The routines of the compiler, by their index in [`ROUTINES`].
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
    /// A second probe inside each of the table's probes.
    pub again: Monitor<Now>,
    /// Whether each probe of the table reads the clock once more.
    pub reads_again: Cell<bool>,
    /// Whether symbol tables have an index.
    pub has_index: Cell<bool>,
    pub routines: CallGraph<Now>,
    now: Now,
}

impl Watch {
    pub fn new(now: Now) -> Self {
        let table = || Monitor::new(&["symbol table"], now);
        let (table, again, routines) = (table(), table(), CallGraph::new(&ROUTINES, now));
        let (reads_again, has_index) = (Cell::new(false), Cell::new(false));
        Self { table, again, reads_again, has_index, routines, now }
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

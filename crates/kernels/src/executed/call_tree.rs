//! The callers of each function, from the order in which instructions were executed.
//!
//! An executed first instruction of a function is taken as a call of it, even if another function jumps to it at its end (a tail
//! call). An instruction in the middle of a function is taken as a return to it, if the function is on the stack. If it is not,
//! the kernel has switched to another task, whose stack was saved when that task was switched away.

use std::collections::HashMap;
use std::io::Read;
use syscost_platform::symbols::Symbols;

/// The function of the kernel that exchanges the stacks of two tasks.
const SWITCH: &str = "__switch_to_asm";
/// The most stacks of switched-away tasks that are kept.
const MOST_ASIDE: usize = 64;

/// The tree of calls: each function below its caller. A function is its first address, or `None` outside the kernel.
#[derive(Clone, Debug)]
pub struct CallTree {
    nodes: Vec<Node>,
}

#[derive(Clone, Debug)]
struct Node {
    function: Option<u64>,
    caller: usize,
    own: u64,
    children: HashMap<Option<u64>, usize>,
}

/// The root stands for the program, which is the caller of everything.
const ROOT: usize = 0;

impl CallTree {
    /// The tree of the next `length` addresses of an order of execution.
    ///
    /// # Errors
    /// `order` has fewer addresses, or cannot be read.
    pub fn read(order: &mut impl Read, length: usize, symbols: &Symbols) -> std::io::Result<Self> {
        let mut walk = Walk::new(symbols);
        let mut word = [0; 8];
        for _ in 0..length {
            order.read_exact(&mut word)?;
            walk.step(u64::from_le_bytes(word));
        }
        Ok(walk.tree)
    }

    /// Each path from the outermost function to the innermost, with the innermost one's own instructions; only paths with some.
    pub fn paths(&self) -> impl Iterator<Item = (Vec<Option<u64>>, u64)> {
        self.nodes.iter().filter(|node| node.own > 0).map(|node| {
            let (mut path, mut at) = (vec![node.function], node);
            while at.caller != ROOT {
                at = &self.nodes[at.caller];
                path.push(at.function);
            }
            path.reverse();
            (path, node.own)
        })
    }
}

/// The state while the order of execution is read.
struct Walk<'a> {
    symbols: &'a Symbols,
    switch: Option<u64>,
    tree: CallTree,
    /// The nodes from the root to the running function.
    stack: Vec<usize>,
    /// Stacks of tasks that do not run; the task that was switched away last is last.
    aside: Vec<Vec<usize>>,
}

impl<'a> Walk<'a> {
    fn new(symbols: &'a Symbols) -> Self {
        let root = Node { function: None, caller: ROOT, own: 0, children: HashMap::new() };
        let switch = symbols.address(SWITCH);
        Self { symbols, switch, tree: CallTree { nodes: vec![root] }, stack: vec![ROOT], aside: Vec::new() }
    }

    /// Adds the next executed instruction to the function that executes it.
    fn step(&mut self, address: u64) {
        let function = if address == 0 { None } else { self.symbols.start(address).or(Some(0)) };
        let top = self.stack.last().copied().unwrap_or(ROOT);
        let running = if function.is_none() {
            self.stack.truncate(1);
            ROOT
        } else if self.function(top) == function && !self.symbols.is_entry(address) {
            top
        } else if self.symbols.is_entry(address) {
            self.call(function)
        } else {
            self.return_to(function)
        };
        self.tree.nodes[running].own += 1;
    }

    fn function(&self, node: usize) -> Option<u64> {
        self.tree.nodes[node].function
    }

    /// Calls a function: returns its node. A call of [`SWITCH`] saves the stack of the task.
    fn call(&mut self, function: Option<u64>) -> usize {
        if function.is_some() && function == self.switch {
            if self.aside.len() == MOST_ASIDE {
                self.aside.remove(0);
            }
            self.aside.push(self.stack.clone());
        }
        self.push(function)
    }

    fn push(&mut self, function: Option<u64>) -> usize {
        let caller = self.stack.last().copied().unwrap_or(ROOT);
        let new = self.tree.nodes.len();
        let node = *self.tree.nodes[caller].children.entry(function).or_insert(new);
        if node == new {
            self.tree.nodes.push(Node { function, caller, own: 0, children: HashMap::new() });
        }
        self.stack.push(node);
        node
    }

    /// Returns to a function on the stack, or else switches to the saved stack that contains it: returns its node.
    fn return_to(&mut self, function: Option<u64>) -> usize {
        if let Some(at) = self.stack.iter().rposition(|node| self.function(*node) == function) {
            self.stack.truncate(at + 1);
            return self.stack[at];
        }
        // The oldest stack is that of the task which has waited longest.
        let is_its_own = |stack: &Vec<usize>| stack.iter().any(|node| self.function(*node) == function);
        if let Some(at) = self.aside.iter().position(is_its_own) {
            self.stack = self.aside.remove(at);
            return self.return_to(function);
        }
        // The function was called before the batch began, so that its call was not seen.
        if self.stack.len() > 1 {
            self.stack.pop();
        }
        self.push(function)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn symbols() -> Symbols {
        let functions =
            [(0x1000, "entry"), (0x1100, "f"), (0x1200, "g"), (0x1300, SWITCH), (0x1400, "other")];
        Symbols::new(functions.map(|(address, name)| (address, name.to_owned())).to_vec())
    }

    /// Own instructions by path.
    fn paths(order: &[u64]) -> BTreeMap<String, u64> {
        let bytes: Vec<u8> = order.iter().flat_map(|address| address.to_le_bytes()).collect();
        let tree = CallTree::read(&mut bytes.as_slice(), order.len(), &symbols()).expect("all are there");
        let name = |start: &Option<u64>| start.map_or("user".into(), |start| format!("{start:x}"));
        let text = |path: Vec<Option<u64>>| path.iter().map(name).collect::<Vec<_>>().join(" ");
        tree.paths().map(|(path, own)| (text(path), own)).collect()
    }

    fn expected(paths: &[(&str, u64)]) -> BTreeMap<String, u64> {
        paths.iter().map(|(path, own)| ((*path).to_owned(), *own)).collect()
    }

    #[test]
    fn a_first_instruction_is_a_call_and_one_in_the_middle_is_a_return() {
        let order = [0, 0x1000, 0x1001, 0x1100, 0x1200, 0x1101, 0x1002, 0, 0x1000, 0x1200, 0x1003];
        let found = paths(&order);
        let wanted = [("user", 2), ("1000", 5), ("1000 1100", 2), ("1000 1100 1200", 1), ("1000 1200", 1)];
        assert_eq!(found, expected(&wanted));
    }

    #[test]
    fn a_function_that_calls_itself_is_on_the_stack_twice() {
        assert_eq!(paths(&[0x1100, 0x1100, 0x1101]), expected(&[("1100", 1), ("1100 1100", 2)]));
    }

    #[test]
    fn a_task_that_is_switched_back_in_keeps_its_stack() {
        // f is switched away; another task enters from user space and is switched away; f continues.
        let order = [0x1000, 0x1100, 0x1300, 0, 0x1400, 0x1300, 0x1101, 0x1001];
        let wanted = [
            ("user", 1),
            ("1000", 2),
            ("1000 1100", 2),
            ("1000 1100 1300", 1),
            ("1400", 1),
            ("1400 1300", 1),
        ];
        assert_eq!(paths(&order), expected(&wanted));
    }

    #[test]
    fn a_truncated_order_of_execution_is_an_error() {
        assert!(CallTree::read(&mut [0; 9].as_slice(), 2, &symbols()).is_err());
    }
}

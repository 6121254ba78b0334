//! A cache of process handles with a limited number of descriptors.

use super::{Fault, Process};
use std::collections::HashMap;

/// Descriptors of one handle.
const DESCRIPTORS: usize = 4;

/// Handles of processes, at most a fixed number: for the next one the least recently used is closed. A monitor that
/// reads many processes repeatedly keeps most of them open and cannot run out of descriptors.
///
/// A handle of a process that has ended is replaced when its number is requested again, so that the answer is always
/// the process that has this number now.
#[derive(Debug)]
pub struct Processes {
    kept: HashMap<i32, Kept>,
    most: usize,
    /// Grows with every request: the smallest value among the handles is the least recently used.
    asked: u64,
}

#[derive(Debug)]
struct Kept {
    process: Process,
    asked: u64,
}

impl Processes {
    /// A cache of at most this many handles, and at least one, with four descriptors each.
    pub fn at_most(processes: usize) -> Self {
        let most = processes.max(1);
        Self { kept: HashMap::with_capacity(most), most, asked: 0 }
    }

    /// The process that has this number now. A cached handle costs one system call, which tests that the process still
    /// exists, and no allocation.
    ///
    /// # Errors
    /// As of [`Process::open`].
    pub fn get(&mut self, pid: i32) -> Result<&Process, Fault> {
        self.asked += 1;
        if !self.kept.get(&pid).is_some_and(|kept| kept.process.is_there()) {
            self.kept.remove(&pid);
            // Opened first: an unused number must not evict a handle.
            let process = Process::open(pid)?;
            self.make_room();
            self.kept.insert(pid, Kept { process, asked: 0 });
        }
        let kept =
            self.kept.get_mut(&pid).ok_or_else(|| Fault::Gone(super::process_handle::process_label(pid)))?;
        kept.asked = self.asked;
        Ok(&kept.process)
    }

    fn make_room(&mut self) {
        if self.kept.len() < self.most {
            return;
        }
        // Processes that have ended go first.
        self.kept.retain(|_, kept| kept.process.is_there());
        while self.kept.len() >= self.most {
            let oldest = self.kept.iter().min_by_key(|(_, kept)| kept.asked).map(|(pid, _)| *pid);
            oldest.map(|pid| self.kept.remove(&pid));
        }
    }

    /// Handles in the cache.
    pub fn len(&self) -> usize {
        self.kept.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.kept.is_empty()
    }

    /// The most descriptors that are ever open: those of one handle more than the limit, for the moment of a
    /// replacement.
    pub fn max_descriptors(&self) -> usize {
        DESCRIPTORS * (self.most + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Child, Command};

    fn sleeper() -> Child {
        Command::new("sleep").arg("60").spawn().expect("a child")
    }

    fn end(mut child: Child) {
        child.kill().expect("killed");
        child.wait().expect("waited for");
    }

    #[test]
    fn the_one_that_was_asked_for_longest_ago_is_closed() {
        let children = [sleeper(), sleeper(), sleeper()];
        let [a, b, c] = children.each_ref().map(|child| child.id() as i32);
        let mut processes = Processes::at_most(2);
        for pid in [a, b, a, c] {
            assert_eq!(processes.get(pid).expect("a child").pid(), pid);
        }
        assert_eq!(processes.len(), 2);
        let mut kept: Vec<_> = processes.kept.keys().copied().collect();
        kept.sort_unstable();
        let mut expected = [a, c];
        expected.sort_unstable();
        assert_eq!(kept, expected);
        children.into_iter().for_each(end);
    }

    #[test]
    fn one_that_is_kept_costs_no_allocation() {
        let own = std::process::id() as i32;
        let mut processes = Processes::at_most(4);
        processes.get(own).expect("ourselves");
        let allocated = allocation_counter::measure(|| {
            processes.get(own).and_then(Process::page_faults).expect("read");
        });
        assert_eq!(allocated.count_total, 0);
    }

    #[test]
    fn one_that_has_ended_is_let_go() {
        let child = sleeper();
        let pid = child.id() as i32;
        let mut processes = Processes::at_most(4);
        processes.get(pid).expect("a child");
        end(child);
        assert!(matches!(processes.get(pid), Err(Fault::Gone(_))));
        assert!(processes.is_empty());
    }
}

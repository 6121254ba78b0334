//! A cache of process handles with a limited number of descriptors.

use super::{Fault, Process};
use std::collections::HashMap;

/// The number of descriptors of one handle.
const DESCRIPTORS: usize = 4;

/// A cache of at most a fixed number of process handles. For a further one, it closes the least recently used handle. A
/// monitor that reads many processes repeatedly keeps most of them open, and cannot run out of descriptors.
///
/// If a process has ended, its handle is replaced when the number is requested again. The result is always a handle of the
/// process that has this number now.
#[derive(Debug)]
pub struct Processes {
    kept: HashMap<i32, Kept>,
    most: usize,
    /// A counter of requests. Among the handles, the smallest value marks the least recently used.
    asked: u64,
}

#[derive(Debug)]
struct Kept {
    process: Process,
    asked: u64,
}

impl Processes {
    /// A cache of at most this many handles, and of at least one, with four descriptors each.
    pub fn at_most(processes: usize) -> Self {
        let most = processes.max(1);
        Self { kept: HashMap::with_capacity(most), most, asked: 0 }
    }

    /// The process that has this number now. For a cached handle the call costs one system call, which tests that the process
    /// still exists, and does not allocate.
    ///
    /// # Errors
    /// The errors of [`Process::open`].
    pub fn get(&mut self, pid: i32) -> Result<&Process, Fault> {
        self.asked += 1;
        if !self.kept.get(&pid).is_some_and(|kept| kept.process.is_there()) {
            self.kept.remove(&pid);
            // The process is opened first, so that an unused number evicts no handle.
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
        // Handles of ended processes are closed first.
        self.kept.retain(|_, kept| kept.process.is_there());
        while self.kept.len() >= self.most {
            let oldest = self.kept.iter().min_by_key(|(_, kept)| kept.asked).map(|(pid, _)| *pid);
            oldest.map(|pid| self.kept.remove(&pid));
        }
    }

    /// The number of handles in the cache.
    pub fn len(&self) -> usize {
        self.kept.len()
    }

    /// Whether the cache is empty.
    pub fn is_empty(&self) -> bool {
        self.kept.is_empty()
    }

    /// The maximum number of open descriptors: those of one handle more than the limit, during a replacement.
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
    fn the_least_recently_used_handle_is_closed() {
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
    fn a_cached_handle_costs_no_allocation() {
        let own = std::process::id() as i32;
        let mut processes = Processes::at_most(4);
        processes.get(own).expect("ourselves");
        let allocated = allocation_counter::measure(|| {
            processes.get(own).and_then(Process::page_faults).expect("read");
        });
        assert_eq!(allocated.count_total, 0);
    }

    #[test]
    fn the_handle_of_an_ended_process_is_closed() {
        let child = sleeper();
        let pid = child.id() as i32;
        let mut processes = Processes::at_most(4);
        processes.get(pid).expect("a child");
        end(child);
        assert!(matches!(processes.get(pid), Err(Fault::Gone(_))));
        assert!(processes.is_empty());
    }
}

//! A call graph from traced calls: how often each routine called each other one, and the time spent there. It can be written
//! to a file.
//!
//! gprof knows the times of routines by sampling, and divides the time of a routine among its callers by the number of
//! their calls. Here each call is traced, so that the time of an arc is that of its own calls.
//!
//! ```
//! use std::time::Instant;
//! use syscost_technique::call_graph::CallGraph;
//!
//! # fn main() -> syscost_technique::Result<()> {
//! let begun = Instant::now();
//! let graph = CallGraph::new(&["parse", "look up"], || begun.elapsed().as_nanos() as u64);
//! graph.set_enabled(true);
//! {
//!     let _parse = graph.open_span(0);
//!     drop(graph.open_span(1));
//! }
//! assert!(graph.arcs().iter().any(|arc| arc.caller == Some("parse") && arc.routine == "look up"));
//! # let directory = tempfile::tempdir().expect("a directory");
//! # let path = directory.path().join("profile");
//! graph.write_profile(&path, "ns")?;
//! # Ok(())
//! # }
//! ```
//!
//! The graph is a [`trace::Monitor`](super::trace) with one entry for each pair of routines. A span costs as much as a span
//! of that monitor, and one store more at its beginning and at its end.
//!
//! Source: Kraemer, slide 38; S. L. Graham and others, *gprof: a Call Graph Execution Profiler* (1982).

use crate::estimate::ProbeCost;
use crate::profile::{Row, flat_profile};
use crate::trace::{Monitor, Span, Tally};
use std::cell::Cell;
use std::fmt::Write;
use std::path::Path;
use syscost_platform::error::{Error, Result};

/// Measures the routines of a program with one thread, by their callers.
#[derive(Debug)]
pub struct CallGraph<N> {
    routines: Vec<&'static str>,
    /// One entry for each pair of caller and routine, caller by caller. The last caller stands for code outside of all
    /// routines.
    arcs: Monitor<N>,
    /// The index of the innermost routine whose span is open.
    inside: Cell<usize>,
}

/// The calls of one routine by another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallArc {
    /// The calling routine; `None` for calls from outside of all routines.
    pub caller: Option<&'static str>,
    /// The routine that was called.
    pub routine: &'static str,
    /// The number of calls and their times, in units of the clock.
    pub tally: Tally,
}

impl<N: Fn() -> u64 + Copy> CallGraph<N> {
    /// A graph of these routines, which reads times from the clock `now`; it starts switched off.
    pub fn new(routines: &[&'static str], now: N) -> Self {
        let pairs = routines.repeat(routines.len() + 1);
        Self {
            routines: routines.to_vec(),
            arcs: Monitor::new(&pairs, now),
            inside: Cell::new(routines.len()),
        }
    }

    /// Switches the graph on or off. This has no effect on spans that are open.
    pub fn set_enabled(&self, on: bool) {
        self.arcs.set_enabled(on);
    }

    /// Opens a span of a routine, by its index. It ends when it is dropped.
    ///
    /// # Panics
    /// The graph is on and there is no such routine.
    #[inline(always)]
    pub fn open_span(&self, routine: usize) -> CallSpan<'_, N> {
        let caller = self.inside.replace(routine);
        let _span = self.arcs.open_span(caller * self.routines.len() + routine);
        CallSpan { _span, inside: &self.inside, caller }
    }

    /// The cost of an empty span, as in [`Monitor::probe_cost`].
    pub fn probe_cost(&self) -> ProbeCost {
        self.arcs.probe_cost()
    }

    /// The arcs with at least one ended call, caller by caller; the arcs from outside of all routines are last.
    pub fn arcs(&self) -> Vec<CallArc> {
        let count = self.routines.len();
        let arc = |(at, (routine, tally)): (usize, (&'static str, Tally))| CallArc {
            caller: self.routines.get(at / count).copied(),
            routine,
            tally,
        };
        self.arcs.tallies().enumerate().map(arc).filter(|arc| arc.tally.calls > 0).collect()
    }

    /// The flat profile: calls and own time of each routine, without the cost of the probes.
    pub fn flat_profile(&self, probe: ProbeCost) -> Vec<Row<'_>> {
        let arcs = self.arcs();
        flat_profile(self.routines.iter().map(|name| {
            let own = arcs.iter().filter(|arc| arc.routine == *name);
            let sum = own.fold((0, 0.0), |(calls, time), arc| {
                (calls + arc.tally.calls, time + arc.tally.own_time_without_probes(probe))
            });
            (*name, sum.0, sum.1)
        }))
    }

    /// Writes the flat profile and the call graph to a file. `unit` is that of the clock.
    ///
    /// # Errors
    /// [`Error::File`] where the file cannot be written.
    pub fn write_profile(&self, path: &Path, unit: &str) -> Result<()> {
        std::fs::write(path, self.profile_text(unit)).map_err(|e| Error::file(path, "writing a profile", e))
    }

    fn profile_text(&self, unit: &str) -> String {
        let mut text = format!("flat profile, times in {unit} without the probes\n");
        let _ = writeln!(text, "{:>10} {:>14} {:>12}  routine", "calls", "own time", "up to it");
        for Row { name, calls, own, up_to_here } in self.flat_profile(self.probe_cost()) {
            let _ = writeln!(text, "{calls:>10} {own:>14.0} {:>10.1} %  {name}", 100.0 * up_to_here);
        }
        let _ = writeln!(text, "\ncall graph, times in {unit} with the probes");
        let _ = writeln!(text, "{:>10} {:>14} {:>14}  caller -> routine", "calls", "total time", "own time");
        for CallArc { caller, routine, tally: Tally { calls, total, own, .. } } in self.arcs() {
            let caller = caller.unwrap_or("(outside)");
            let _ = writeln!(text, "{calls:>10} {total:>14} {own:>14}  {caller} -> {routine}");
        }
        text
    }
}

/// An open span of a routine, from its creation to its drop.
#[must_use = "a span that is dropped at once measures nothing"]
pub struct CallSpan<'a, N: Fn() -> u64 + Copy> {
    _span: Span<'a, N>,
    inside: &'a Cell<usize>,
    caller: usize,
}

impl<N: Fn() -> u64 + Copy> Drop for CallSpan<'_, N> {
    #[inline(always)]
    fn drop(&mut self) {
        self.inside.set(self.caller);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROUTINES: [&str; 3] = ["main", "left", "shared"];

    /// `main` calls `shared` once itself and three times through `left`; each of the calls takes a different time.
    fn run(graph: &CallGraph<impl Fn() -> u64 + Copy>, time: &Cell<u64>) {
        let pass = |steps| time.set(time.get() + steps);
        let _main = graph.open_span(0);
        pass(1);
        {
            let _shared = graph.open_span(2);
            pass(100);
        }
        for _ in 0..3 {
            let _left = graph.open_span(1);
            pass(10);
            let _shared = graph.open_span(2);
            pass(5);
        }
    }

    fn traced() -> CallGraph<impl Fn() -> u64 + Copy> {
        let time: &Cell<u64> = Box::leak(Box::default());
        let graph = CallGraph::new(&ROUTINES, || time.get());
        graph.set_enabled(true);
        run(&graph, time);
        graph
    }

    #[test]
    fn the_time_of_an_arc_is_that_of_its_own_calls() {
        let graph = traced();
        let arcs: Vec<_> = graph
            .arcs()
            .into_iter()
            .map(|arc| (arc.caller, arc.routine, arc.tally.calls, arc.tally.total, arc.tally.own))
            .collect();
        let expected = [
            (Some("main"), "left", 3, 45, 30),
            (Some("main"), "shared", 1, 100, 100),
            // gprof would divide by the number of calls and report three quarters of 115.
            (Some("left"), "shared", 3, 15, 15),
            (None, "main", 1, 146, 1),
        ];
        assert_eq!(arcs, expected);
    }

    #[test]
    fn the_flat_profile_is_the_sum_of_the_arcs() {
        let graph = traced();
        let rows = graph.flat_profile(ProbeCost::default());
        let found: Vec<_> = rows.iter().map(|row| (row.name, row.calls, row.own)).collect();
        assert_eq!(found, [("shared", 4, 115.0), ("left", 3, 30.0), ("main", 1, 1.0)]);
    }

    #[test]
    fn the_file_holds_profile_and_graph_and_an_unwritable_path_is_named_in_the_error() {
        let (graph, directory) = (traced(), tempfile::tempdir().expect("a directory"));
        let path = directory.path().join("profile");
        graph.write_profile(&path, "steps").expect("written");
        let text = std::fs::read_to_string(&path).expect("written");
        let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
        let lines: Vec<_> = text.lines().map(words).collect();
        for line in ["4 115 78.8 % shared", "3 15 15 left -> shared", "1 146 1 (outside) -> main"] {
            assert!(lines.iter().any(|found| found == line), "{line}: {text}");
        }
        let error = graph.write_profile(directory.path(), "steps").expect_err("a directory").to_string();
        assert!(error.contains(&directory.path().display().to_string()), "{error}");
    }

    #[test]
    fn a_graph_that_is_off_records_nothing_and_keeps_the_nesting() {
        let time: &Cell<u64> = Box::leak(Box::default());
        let graph = CallGraph::new(&ROUTINES, || time.get());
        let main = graph.open_span(0);
        graph.set_enabled(true);
        drop(graph.open_span(1));
        drop(main);
        let arcs = graph.arcs();
        assert_eq!((arcs.len(), arcs[0].caller, arcs[0].routine), (1, Some("main"), "left"));
        drop(graph.open_span(2));
        assert_eq!(graph.arcs()[1].caller, None);
    }
}

//! Several measuring processes that carry out one task at the same time, each on a CPU of its own (`-P N`).
//!
//! Each copy runs the cases as if it were alone on a machine with one CPU. [`OtherCopies`](crate::trial::OtherCopies) makes the
//! copies take their samples together. The joined result has the slowest copy's figures, the sum of the rates, and the efficiency.

use super::options::Options;
use super::process_task::{CaseExecution, Copied, ExecutionEnd, Task, make_inheritable_file};
use super::supervision::{ProcessRun, Supervisor};
use super::terminal::{Progress, Telling};
use crate::error::{Error, Result};
use crate::platform::cpu::cpu_class::choose_own_cpus;
use crate::platform::cpu::cpu_list;
use crate::platform::shared::Table;
use crate::platform::signal;
use crate::record::quantity::NANOSECONDS;
use crate::record::{Derived, Interval, Measured};
use crate::trial::CaseEnd;
use crate::trial::other_copies::{ALONE, LEFT, mark_gone};
use std::fs::File;
use std::os::fd::AsRawFd;

/// The CPUs of the copies. The first is the CPU on which a process without copies would measure.
///
/// # Errors
/// [`Error::Usage`]: there are fewer CPUs than copies, or several copies are to count events.
pub(super) fn choose_copy_cpus(options: &Options) -> Result<Vec<usize>> {
    let copies = options.copies;
    if copies > 1 && options.unit != NANOSECONDS {
        let unit = &options.unit;
        return Err(Error::Usage(format!(
            "-P {copies}: copies are timed, and this run counts {unit}: leave out one"
        )));
    }
    let (mut cpus, class) = choose_own_cpus()?;
    if cpus.len() < copies {
        let (most, class) = (cpus.len(), class.map(|class| format!(" of class {class}")).unwrap_or_default());
        cpus.sort_unstable();
        return Err(Error::Usage(format!(
            "-P {copies}: expected at most {most}, since each copy takes a CPU of its own and this run may use {}{class}: take fewer \
             copies, or allow more CPUs (--cpu, taskset, cpuset.cpus)",
            if cpus.is_empty() { "none that the kernel names".to_owned() } else { cpu_list::format(&cpus) }
        )));
    }
    cpus.truncate(copies);
    Ok(cpus)
}

/// The settings with which the process of one copy starts.
pub(super) struct CopyStart<'a> {
    own: usize,
    cpus: &'a [usize],
    /// The file of the table that the copies share; the process must inherit it.
    pub(super) table: &'a File,
}

impl CopyStart<'_> {
    pub(super) fn is_first(&self) -> bool {
        self.own == 0
    }

    /// The one CPU that the process inherits, as under taskset(1).
    pub(super) fn cpu(&self) -> usize {
        self.cpus[self.own]
    }

    pub(super) fn describe(&self) -> Copied {
        Copied { own: self.own, cpus: self.cpus.to_vec(), table: self.table.as_raw_fd() }
    }
}

impl Supervisor<'_> {
    /// Carries out a task in one process per copy, and joins their results.
    pub(super) fn run_copies(&self, group: &str, task: &Task) -> ProcessRun {
        match self.start_copies(group, task) {
            Ok(runs) => {
                let mut joined = join_runs(runs);
                joined.run.notes.push(format!(
                    "{} copies measured at the same time, each on a CPU of its own: figures are those of the slowest one",
                    self.options.copies
                ));
                joined.cases.iter().for_each(|case| self.print_verdict(case));
                joined
            }
            // CPUs may go offline in the middle of a run.
            Err(error) => ProcessRun { cut_short: Some(error.to_string()), ..ProcessRun::default() },
        }
    }

    /// Starts one process per copy, each but the first from a thread, and waits for the results, in the order of the copies.
    fn start_copies(&self, group: &str, task: &Task) -> Result<Vec<ProcessRun>> {
        let failed = |cause| Error::file("the table of the copies", "making", cause);
        let cpus = choose_copy_cpus(self.options)?;
        let file = make_inheritable_file().map_err(failed)?;
        file.set_len(Table::file_length(cpus.len())).map_err(failed)?;
        let table = Table::map(&file, cpus.len())?;
        let Self { arguments, options, home, time, clock, .. } = *self;
        let run = |supervisor: &Supervisor<'_>, own| {
            let start = CopyStart { own, cpus: &cpus, table: &file };
            let run = supervisor.run_process(group, task, Some(&start));
            // Mark a copy that stopped early, so that others do not wait for it. No copy waits for one that has measured all cases.
            let stopped = matches!(task, Task::Measure(cases) if run.cases.len() < cases.len());
            if stopped || run.cut_short.is_some() || signal::pending().is_some() {
                mark_gone(&table, own);
            }
            run
        };
        // Each thread must live as long as the process that it starts: the kernel kills the process when the thread ends.
        let in_thread = |own| {
            let progress = Progress::over(0, Telling::Nothing);
            run(&Supervisor { arguments, options, home, progress: &progress, time, clock }, own)
        };
        Ok(std::thread::scope(|scope| {
            let others: Vec<_> = (1..cpus.len()).map(|own| scope.spawn(move || in_thread(own))).collect();
            let first = run(self, 0);
            let others = others
                .into_iter()
                .map(|other| other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
            std::iter::once(first).chain(others).collect()
        }))
    }
}

/// Joins the runs of all copies into one: clock and CPU of the first copy, the notes of all, and their joined cases.
fn join_runs(mut runs: Vec<ProcessRun>) -> ProcessRun {
    let reason = |run: &ProcessRun| run.cut_short.clone();
    // The reason of a copy that ended only because another copy had ended is not the cause.
    let causes = runs.iter().filter_map(reason).find(|reason| !reason.contains(LEFT));
    let cut_short = causes.or_else(|| runs.iter().find_map(reason));
    let ids: Vec<String> = runs[0].cases.iter().map(|case| case.id.clone()).collect();
    let all = runs.len();
    let joined = |id: &String| {
        let of_case: Vec<CaseExecution> = runs.iter_mut().filter_map(|run| take_case(run, id)).collect();
        join_executions(of_case, all)
    };
    let cases: Vec<_> = ids.iter().filter_map(joined).collect();
    let notes: Vec<String> = runs.iter_mut().flat_map(|run| std::mem::take(&mut run.run.notes)).collect();
    let mut first = runs.swap_remove(0);
    first.run.notes = notes;
    ProcessRun { cases, cut_short, ..first }
}

fn take_case(run: &mut ProcessRun, id: &str) -> Option<CaseExecution> {
    let at = run.cases.iter().position(|case| case.id == id)?;
    Some(run.cases.swap_remove(at))
}

/// One execution of a case by all copies; `None` if a signal or an earlier end kept one of the copies from executing it.
fn join_executions(copies: Vec<CaseExecution>, all: usize) -> Option<CaseExecution> {
    let seconds = copies.iter().map(|copy| copy.seconds).fold(0.0, f64::max);
    let CaseExecution { id, title, .. } = copies.first()?;
    let (id, title) = (id.clone(), title.clone());
    let is_whole = copies.len() == all;
    let ends = copies.into_iter().map(|copy| copy.end).fold(Ok(Vec::new()), join_end);
    let is_known = ends.as_ref().map_or_else(|end| gravity(end) > CAUSED_BY_ANOTHER, |_| is_whole);
    let end = ends.map(|copies| Box::new(join_measured(copies)));
    (is_whole || is_known).then_some(CaseExecution { id, title, seconds, end })
}

/// The gravity of an end that another copy caused.
const CAUSED_BY_ANOTHER: u32 = 1;

/// The rank of a reason to have no figure. Of several copies' reasons, the one of the highest rank is reported.
fn gravity(end: &CaseEnd) -> u32 {
    match end {
        CaseEnd::Failed(_) => 5,
        CaseEnd::CutShort(sentence) if !sentence.contains(LEFT) => 5,
        CaseEnd::Contradicted(_) => 4,
        CaseEnd::Skipped(_) => 3,
        CaseEnd::Disturbed(sentence) if !sentence.contains(LEFT) => 2,
        CaseEnd::Disturbed(_) | CaseEnd::CutShort(_) => CAUSED_BY_ANOTHER,
        CaseEnd::Interrupted => 0,
    }
}

/// Adds the end of one copy to those of others. Of two reasons to have no figure, the one of higher [`gravity`] stays.
fn join_end(
    ends: std::result::Result<Vec<Measured>, CaseEnd>,
    end: ExecutionEnd,
) -> std::result::Result<Vec<Measured>, CaseEnd> {
    match (ends, end) {
        (Ok(mut measured), Ok(one)) => {
            measured.push(*one);
            Ok(measured)
        }
        (Err(known), Err(other)) => Err(if gravity(&other) > gravity(&known) { other } else { known }),
        (Err(end), Ok(_)) | (Ok(_), Err(end)) => Err(end),
    }
}

/// The measurement of the slowest copy, with the sum of all copies' rates and their efficiency as derived figures.
fn join_measured(mut copies: Vec<Measured>) -> Measured {
    let alone = copies[0].derived.iter().find(|figure| figure.name == ALONE).cloned();
    let costs: Vec<Interval> = copies.iter().map(|copy| copy.median).collect();
    let mean = 1.0 / copies.len() as f64;
    let efficiency = alone.as_ref().map(|alone| Derived {
        name: "efficiency".into(),
        unit: String::new(),
        value: sum_of(costs.iter().map(|&cost| ratio(alone.value, cost))).map(|sum| sum * mean),
    });
    let sum = sum_of_rates(&copies, &costs);
    let slowest = (0..copies.len()).max_by(|&a, &b| costs[a].estimate.total_cmp(&costs[b].estimate));
    let mut measured = copies.swap_remove(slowest.unwrap_or(0));
    measured.derived.retain(|figure| figure.name != ALONE);
    measured.derived.extend([Some(sum), alone, efficiency].into_iter().flatten());
    measured
}

/// The sum of the copies' rates: of a derived figure in GB/s or elem/s, or else of iterations per second.
fn sum_of_rates(copies: &[Measured], costs: &[Interval]) -> Derived {
    let rates = |unit: &str| -> Vec<Interval> {
        copies
            .iter()
            .filter_map(|copy| copy.derived.iter().find(|figure| figure.unit == unit))
            .map(|f| f.value)
            .collect()
    };
    let own = ["GB/s", "elem/s"]
        .into_iter()
        .map(|unit| (unit, rates(unit)))
        .find(|(_, rates)| rates.len() == copies.len());
    let second = Interval::exactly(1e9);
    let (unit, rates) =
        own.unwrap_or_else(|| ("/s", costs.iter().map(|&cost| ratio(second, cost)).collect()));
    Derived { name: "sum".into(), unit: unit.into(), value: sum_of(rates.into_iter()) }
}

fn ratio(a: Interval, b: Interval) -> Interval {
    Interval { estimate: a.estimate / b.estimate, low: a.low / b.high, high: a.high / b.low }
}

fn sum_of(all: impl Iterator<Item = Interval>) -> Interval {
    let add = |a: Interval, b: Interval| Interval {
        estimate: a.estimate + b.estimate,
        low: a.low + b.low,
        high: a.high + b.high,
    };
    all.fold(Interval::exactly(0.0), add)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn copy(id: &str, end: ExecutionEnd) -> CaseExecution {
        CaseExecution { id: id.into(), title: "a call".into(), seconds: 0.1, end }
    }

    fn measured(ns: f64, derived: &[(&str, &str, f64)]) -> Measured {
        let figure = |&(name, unit, value): &(&str, &str, f64)| Derived {
            name: name.into(),
            unit: unit.into(),
            value: Interval::exactly(value),
        };
        Measured {
            median: Interval::exactly(ns),
            derived: derived.iter().map(figure).collect(),
            ..Measured::default()
        }
    }

    fn figures(measured: &Measured) -> Vec<(String, f64)> {
        measured.derived.iter().map(|figure| (figure.name.clone(), figure.value.estimate)).collect()
    }

    #[test]
    fn the_figure_is_that_of_the_slowest_copy_beside_the_sum_and_the_efficiency() {
        let joined = join_measured(vec![measured(100.0, &[(ALONE, "ns", 100.0)]), measured(200.0, &[])]);
        assert_eq!(joined.median.estimate, 200.0);
        let expected = [("sum", 15e6), (ALONE, 100.0), ("efficiency", 0.75)];
        assert_eq!(figures(&joined), expected.map(|(name, value)| (name.to_owned(), value)));
        let copies =
            vec![measured(2.0, &[("bandwidth", "GB/s", 5.0)]), measured(1.0, &[("bandwidth", "GB/s", 10.0)])];
        let joined = join_measured(copies);
        assert_eq!(figures(&joined), [("bandwidth".to_owned(), 5.0), ("sum".to_owned(), 15.0)]);
    }

    #[test]
    fn a_case_has_no_figure_if_one_copy_has_none_and_reports_the_gravest_reason() {
        let end = |ends: Vec<ExecutionEnd>| {
            let all = ends.len();
            join_executions(ends.into_iter().map(|end| copy("a/b", end)).collect(), all)
                .map(|joined| joined.end)
        };
        let figure = || Ok(Box::new(measured(1.0, &[])));
        let left = || Err(CaseEnd::Disturbed(format!("{LEFT}: that on CPU 1")));
        assert!(
            matches!(end(vec![left(), Err(CaseEnd::Disturbed("busy".into()))]), Some(Err(CaseEnd::Disturbed(s))) if s == "busy")
        );
        assert!(matches!(
            end(vec![Err(CaseEnd::Failed("no".into())), left()]),
            Some(Err(CaseEnd::Failed(_)))
        ));
        assert!(matches!(
            end(vec![figure(), Err(CaseEnd::Skipped("no PMU".into()))]),
            Some(Err(CaseEnd::Skipped(_)))
        ));
        assert!(matches!(end(vec![figure(), figure()]), Some(Ok(_))));
        assert!(join_executions(vec![copy("a/b", figure())], 2).is_none(), "a signal came");
        let gone = Err(CaseEnd::CutShort(format!("could not go on: {LEFT}")));
        assert!(
            join_executions(vec![copy("a/c", gone)], 2).is_none(),
            "the next case is left to the next round"
        );
    }

    #[test]
    fn more_copies_than_cpus_are_refused_by_name() {
        let options = |copies, unit: &str| Options {
            copies,
            unit: unit.into(),
            ..Options::from_environment().expect("options")
        };
        let sentence = choose_copy_cpus(&options(100_000, "ns")).expect_err("too many").to_string();
        assert!(
            sentence.contains("-P 100000: expected at most") && sentence.contains("take fewer"),
            "{sentence}"
        );
        let sentence = choose_copy_cpus(&options(2, "page-faults")).expect_err("counts").to_string();
        assert!(sentence.contains("counts page-faults"), "{sentence}");
        assert_eq!(choose_copy_cpus(&options(1, "page-faults")).expect("one").len(), 1);
    }
}

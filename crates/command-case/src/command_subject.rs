//! The executions of one process, as the subject of a case.

use crate::declaration::{CommandSpec, ExpectedOutput};
use crate::error::{Error, Result};
use crate::execution::{Executed, Outputs, command, execute, run_untimed};
use crate::platform::cpu;
use crate::platform::process::usage::{TreeUsage, children};
use crate::platform::ptrace::{TreeCalls, count_tree_calls};
use nix::sys::prctl::set_child_subreaper;
use std::collections::BTreeMap;
use std::time::Duration;
use syscalls::Sysno;
use syscost_engine::case::{Found, Place, Report, Subject};
use syscost_engine::clock::{Clock, Ticks};
use syscost_engine::record::{EventRate, Interval};

/// Executions whose counts are kept in the process that proves the case.
const COUNTED: usize = 2;
/// The most time that a traced execution may take.
const TRACED: Duration = Duration::from_secs(30);
/// A first execution that uses this many times the CPU time of the later ones found no answer that they found …
const FIRST_RATIO: f64 = 1.5;
/// … if it is also this much longer, ns: pages of the program that are read from a disk cost less CPU time.
const FIRST_EXCESS_NS: f64 = 3e6;
/// The share of CPU time below which a command is said to wait.
const WAITS: f64 = 0.5;

/// A command that is executed once an iteration.
pub struct CommandSubject {
    spec: CommandSpec,
    outputs: Outputs,
    /// Children of this process that are no part of a command.
    known: Vec<i32>,
    /// The CPU of this thread, and all CPUs on which the command may run.
    cpus: (Option<usize>, Vec<usize>),
    /// The CPU time of the first execution, ns, and its output.
    first: Option<(f64, [u8; 32])>,
    /// Executions whose output was not that of the first one.
    different: usize,
    /// What later executions used.
    used: Vec<TreeUsage>,
    /// The elapsed time of later executions, ns.
    elapsed_ns: f64,
}

fn cpu_ns(usage: &TreeUsage) -> f64 {
    1e3 * (usage.user_us + usage.system_us) as f64
}

fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

impl CommandSubject {
    /// A command that was not executed yet. From now on this process is the reaper of what its children leave behind.
    ///
    /// # Errors
    /// The kernel has no such reapers (before Linux 3.4).
    pub fn new(spec: CommandSpec, place: &Place) -> Result<Self> {
        set_child_subreaper(true).map_err(|e| Error::from_case_errno("prctl PR_SET_CHILD_SUBREAPER", e))?;
        let all = place.cpus.here.iter().chain(&place.cpus.others).copied().collect();
        Ok(Self {
            outputs: Outputs::new(&place.scratch),
            spec,
            known: children(),
            cpus: (place.cpus.here, all),
            first: None,
            different: 0,
            used: Vec::new(),
            elapsed_ns: 0.0,
        })
    }

    fn execute_once(&mut self, clock: &Clock) -> Result<Ticks> {
        let Executed { ticks, usage, output } = execute(&self.spec, &self.outputs, &self.known, clock)?;
        let Some((_, expected)) = self.first else {
            self.first = Some((cpu_ns(&usage), output));
            return Ok(ticks);
        };
        self.used.push(usage);
        self.elapsed_ns += clock.nanoseconds(ticks).0;
        if output != expected {
            self.different += 1;
            if self.spec.expect.output == ExpectedOutput::Same {
                return Err(Error::Disproved("the output of two executions differs".into()));
            }
        }
        Ok(ticks)
    }

    /// Runs `f` with this thread, and the children that it starts, on all CPUs of the command.
    fn on_all_cpus<T>(&mut self, f: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        cpu::allow_cpus(&self.cpus.1)?;
        let value = f(self);
        self.cpus.0.map_or(Ok(()), cpu::pin_thread)?;
        value
    }

    /// The system calls of one execution, or why they are unknown.
    fn count_calls(&self) -> Result<std::result::Result<TreeCalls, String>> {
        run_untimed(&self.spec, "prepare", self.spec.prepare.as_ref())?;
        let counted = count_tree_calls(&mut command(&self.spec, &self.outputs)?, TRACED);
        run_untimed(&self.spec, "clean", self.spec.clean.as_ref())?;
        Ok(match counted {
            Ok(Some(calls)) => Ok(calls),
            Ok(None) => Err(format!("it takes more than {} s under ptrace", TRACED.as_secs())),
            Err(error) => Err(error.to_string()),
        })
    }

    /// A sentence if the first execution did more than the later ones.
    fn first_sentence(&self) -> Option<String> {
        let (first_ns, later_ns) = (self.first?.0, median(self.used.iter().map(cpu_ns).collect())?);
        let is_longer = first_ns > FIRST_RATIO * later_ns && first_ns - later_ns > FIRST_EXCESS_NS;
        is_longer.then(|| {
            format!(
                "the first execution used {:.1} ms of CPU time and later ones {:.1} ms: what it left behind may spare them work; \
                 `prepare` in syscost.toml can remove it",
                first_ns / 1e6,
                later_ns / 1e6
            )
        })
    }

    fn output_sentence(&self) -> std::result::Result<String, String> {
        let all = self.used.len() + 1;
        match (&self.spec.expect.output, self.different) {
            (ExpectedOutput::Any, _) => Ok("its output may differ, and was not compared".into()),
            (_, 0) => Ok(format!("{all} executions wrote the same output")),
            (_, different) => Err(format!(
                "whether it does the same each time: the output of {different} of {all} executions differs from the first one; \
                 expect = {{ output = \"any\" }} in syscost.toml allows that"
            )),
        }
    }
}

/// The executions of one count: exact where they agree.
fn rate(name: String, values: &[f64]) -> EventRate {
    let low = values.iter().copied().fold(f64::INFINITY, f64::min);
    let high = values.iter().copied().fold(0.0, f64::max);
    let rate = median(values.to_vec()).map(|estimate| Interval { estimate, low, high });
    EventRate { name, rate, remark: None }
}

/// The calls of two executions, by name, and all together.
fn call_rates(executions: &[TreeCalls]) -> Vec<EventRate> {
    let name = |number: i64| {
        let known = usize::try_from(number).ok().and_then(Sysno::new);
        known.map_or_else(|| format!("call {number}"), |call| call.name().to_owned())
    };
    let mut by_name: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    for (at, tree) in executions.iter().enumerate() {
        for (number, count) in &tree.calls {
            by_name.entry(name(*number)).or_insert_with(|| vec![0.0; executions.len()])[at] += *count as f64;
        }
    }
    let all: Vec<f64> = executions.iter().map(|tree| tree.calls.values().sum::<u64>() as f64).collect();
    let created: Vec<f64> = executions.iter().map(|tree| tree.created as f64).collect();
    let peak: Vec<f64> = executions.iter().map(|tree| tree.peak_kib as f64).collect();
    let totals = [("peak-memory-kib", peak), ("tasks-created", created), ("system-calls", all)];
    let totals = totals.map(|(name, counts)| rate(name.into(), &counts));
    totals.into_iter().chain(by_name.into_iter().map(|(name, counts)| rate(name, &counts))).collect()
}

impl Subject for CommandSubject {
    fn run(&mut self, iterations: u64, clock: &Clock) -> Result<Ticks> {
        self.on_all_cpus(|subject| {
            (0..iterations).try_fold(Ticks(0), |sum, _| Ok(Ticks(sum.0 + subject.execute_once(clock)?.0)))
        })
    }

    fn count(&mut self, clock: &Clock) -> Result<Vec<EventRate>> {
        // One more, which is the first.
        self.run(1 + COUNTED as u64, clock)?;
        let used = &self.used[self.used.len() - COUNTED..];
        let of_usage = |name: &str, value: fn(&TreeUsage) -> u64| {
            rate(name.into(), &used.iter().map(|usage| value(usage) as f64).collect::<Vec<_>>())
        };
        let mut rates = vec![
            of_usage("page-faults", |usage| usage.minor_faults + usage.major_faults),
            of_usage("waits", |usage| usage.voluntary_switches),
            of_usage("blocks-read", |usage| usage.blocks_read),
            of_usage("blocks-written", |usage| usage.blocks_written),
        ];
        let counted = self.on_all_cpus(|subject| Ok([subject.count_calls()?, subject.count_calls()?]))?;
        match counted {
            [Ok(one), Ok(other)] => rates.extend(call_rates(&[one, other])),
            [Err(why), _] | [_, Err(why)] => {
                rates.push(EventRate { name: "system-calls".into(), rate: None, remark: Some(why) });
            }
        }
        Ok(rates)
    }

    fn report(&self) -> Report {
        let values = |value: fn(&TreeUsage) -> f64| self.used.iter().map(value).collect();
        let found = vec![
            Found::new("user", "ns", values(|usage| 1e3 * usage.user_us as f64)),
            Found::new("system", "ns", values(|usage| 1e3 * usage.system_us as f64)),
        ];
        let (mut evidence, mut unchecked) = (Vec::new(), Vec::new());
        match self.output_sentence() {
            Ok(sentence) => evidence.push(sentence),
            Err(sentence) => unchecked.push(sentence),
        }
        unchecked.extend(self.first_sentence());
        let share = self.used.iter().map(cpu_ns).sum::<f64>() / self.elapsed_ns.max(1.0);
        if share < WAITS && !self.used.is_empty() {
            evidence.push(format!("it waits {:.0} % of its time", 100.0 * (1.0 - share)));
        }
        Report { found, evidence, unchecked, ..Report::default() }
    }
}

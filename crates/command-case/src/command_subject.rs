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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::declaration::Run;
    use crate::platform::testing::run_in_child_process;
    use syscost_engine::case::{Cpus, Scale};

    fn place(scratch: &std::path::Path) -> Place {
        let cpus = Cpus { here: None, others: cpu::allowed_cpus() };
        Place { scratch: scratch.to_owned(), scale: Scale::Smoke, cpus }
    }

    /// Executes this shell line some times in a directory of its own. Returns the report, or the sentence of the error.
    fn executed(line: &str, change: fn(&mut CommandSpec)) -> std::result::Result<Report, String> {
        let directory = tempfile::tempdir().expect("a directory");
        let scratch = directory.path().join("scratch");
        std::fs::create_dir(&scratch).expect("made");
        std::fs::write(directory.path().join("input"), "from the input\n").expect("written");
        let mut spec = CommandSpec::new("it", Run::Line(line.to_owned()));
        spec.directory = Some(directory.path().to_owned());
        change(&mut spec);
        let clock = Clock::start_up();
        let run = || {
            let mut subject = CommandSubject::new(spec, &place(&scratch))?;
            subject.count(&clock)?;
            subject.run(8, &clock)?;
            Ok(subject.report())
        };
        run().map_err(|error: Error| error.to_string())
    }

    fn refused(line: &str, change: fn(&mut CommandSpec)) -> String {
        executed(line, change).expect_err("an error")
    }

    const BUSY: &str = "i=0; while [ $i -lt 60000 ]; do i=$((i+1)); done";

    #[test]
    fn honest_commands_of_odd_kinds_are_not_condemned() {
        run_in_child_process(|| {
            for line in [
                "true & true & wait",
                "echo a | cat | cat >/dev/null",
                "seq 100000",
                "cat input; cat >other <input; rm other",
                "for i in 1 2 3 4; do seq 1000 | sort -n >/dev/null & done; wait",
                "sleep 0.002",
                "echo error >&2",
            ] {
                let report = executed(line, |_| ()).unwrap_or_else(|error| panic!("{line}: {error}"));
                assert!(report.unchecked.is_empty(), "{line}: {:?}", report.unchecked);
                assert!(report.evidence.iter().any(|words| words.contains("the same output")), "{line}");
            }
            let waits = executed("sleep 0.05", |_| ()).expect("a report").evidence.join(" ");
            assert!(waits.contains("it waits 9"), "{waits}");
            executed("cat; exit 3", |spec| spec.expect.exit = 3).expect("the declared exit code");
        });
    }

    #[test]
    fn a_command_that_caches_its_answer_is_unwitnessed() {
        run_in_child_process(|| {
            let line = format!("[ -e answer ] || {{ {BUSY}; echo 42 >answer; }}; cat answer");
            let report = executed(&line, |_| ()).expect("a report");
            assert!(
                report.unchecked.join(" ").contains("the first execution used"),
                "{:?}",
                report.unchecked
            );
            let report =
                executed(&line, |spec| spec.prepare = Some("rm -f answer".into())).expect("a report");
            assert_eq!(report.unchecked, [""; 0]);
        });
    }

    #[test]
    fn a_command_that_ends_before_its_children_is_disproved_and_they_are_killed() {
        run_in_child_process(|| {
            let error = refused("sleep 60 & sleep 60 & echo done", |_| ());
            assert!(error.contains("while 2 of its processes still ran"), "{error}");
            assert_eq!(children(), [0; 0]);
        });
    }

    #[test]
    fn a_differing_output_is_disproved_if_declared_the_same_and_unwitnessed_otherwise() {
        run_in_child_process(|| {
            let line = "echo x >>count; [ $(wc -l <count) -eq 9 ] && echo wrong; echo right";
            let sentence = refused(line, |spec| spec.expect.output = ExpectedOutput::Same);
            assert_eq!(sentence, "the output of two executions differs");
            let report = executed(line, |_| ()).expect("a report");
            assert!(report.unchecked.join(" ").contains("the output of 1 of "), "{:?}", report.unchecked);
            let report = executed(line, |spec| spec.expect.output = ExpectedOutput::Any).expect("a report");
            assert_eq!(report.unchecked, [""; 0]);
        });
    }

    #[test]
    fn a_command_that_fails_hangs_or_is_missing_is_a_sentence() {
        run_in_child_process(|| {
            let failed = refused("echo why >&2; exit 4", |_| ());
            assert_eq!(failed, "the command ended with exit code 4, expected exit code 0: why");
            assert!(refused("kill -9 $$", |_| ()).contains("signal: 9"));
            let hung = refused("sleep 60", |spec| spec.timeout = 0.1);
            assert!(hung.contains("did not end within 0.1 s"), "{hung}");
            assert!(refused("no-such-program", |_| ()).contains("no-such-program cannot be started"));
            let prepared = refused("true", |spec| spec.prepare = Some("exit 2".into()));
            assert!(prepared.starts_with("prepare of the"), "{prepared}");
            let missing = refused("cat", |spec| spec.input = Some("/no/such/file".into()));
            assert!(missing.starts_with("/no/such/file: opening"), "{missing}");
        });
    }

    #[test]
    fn system_calls_are_counted_by_name_and_repeat_exactly() {
        run_in_child_process(|| {
            let directory = tempfile::tempdir().expect("a directory");
            let counted = |line: &str| {
                let spec = CommandSpec::new("it", Run::Line(line.to_owned()));
                let subject = CommandSubject::new(spec, &place(directory.path()));
                subject.and_then(|mut subject| subject.count(&Clock::start_up())).expect(line)
            };
            let rate = |rates: &[EventRate], name: &str| {
                rates.iter().find(|rate| rate.name == name).and_then(|rate| rate.rate).expect("counted")
            };
            let lines = [100, 300].map(|count| format!("dd if=/dev/zero of=/dev/null bs=1 count={count}"));
            let [one, three] = lines.map(|line| counted(&line));
            let reads = [&one, &three].map(|rates| rate(rates, "read"));
            assert_eq!(reads[0].low, reads[0].high);
            assert_eq!(reads[1].estimate - reads[0].estimate, 200.0);
            assert!(rate(&one, "peak-memory-kib").estimate > 100.0);
            assert_eq!(rate(&one, "tasks-created").estimate, 0.0);
        });
    }
}

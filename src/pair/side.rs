//! The measuring end of a pair: one process, one case, one CPU, silent between its turns.

use super::protocol::{Answer, Ask, How, Prepare, Ready, VERSION};
use crate::case::{Case, Cpus, Group, Place, Report, SetUp, Subject};
use crate::clock::{Clock, Ticks};
use crate::platform::partner::Task;
use crate::platform::{arch, cpu, output, process};
use crate::trial::{Bench, CaseEnd, Trial, scratch};
use crate::{Error, Result};
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::process::ExitCode;

/// Attempts at a proof that is disturbed.
const ATTEMPTS: u32 = 4;

/// Answers the driver's questions until it asks no more.
pub fn process(groups: &[Group]) -> ExitCode {
    // A driver that has gone has heard enough.
    match converse(groups) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

/// The driver's questions and our answers. The standard streams themselves lead nowhere from here on: an
/// operation may read or write them.
struct Driver {
    questions: BufReader<File>,
    answers: File,
}

impl Driver {
    fn new() -> Result<Self> {
        let [questions, answers] = output::take_streams()?;
        Ok(Self { questions: BufReader::new(questions), answers })
    }

    /// The next question; `None` when there is none.
    fn question(&mut self) -> Result<Option<Ask>> {
        let lost = |cause| Error::Kernel { call: "read from the driver of a pair".into(), cause };
        let mut line = String::new();
        if self.questions.read_line(&mut line).map_err(lost)? == 0 {
            return Ok(None);
        }
        serde_json::from_str(&line).map(Some).map_err(|e| lost(e.into()))
    }

    fn answer(&mut self, answer: &Answer) -> Result<()> {
        let lost = |cause| Error::Kernel { call: "write to the driver of a pair".into(), cause };
        let mut line = serde_json::to_vec(answer).map_err(|e| lost(e.into()))?;
        line.push(b'\n');
        self.answers.write_all(&line).map_err(lost)
    }
}

fn converse(groups: &[Group]) -> Result<()> {
    let mut driver = Driver::new()?;
    // Without it a driver that is killed still closes our input, which ends us at the next turn.
    let _ = process::die_with_parent();
    driver.answer(&Answer::Hello { version: VERSION })?;
    let asked = match driver.question()? {
        Some(Ask::Prepare(asked)) => asked,
        Some(Ask::Cases) => return driver.answer(&Answer::Cases(ids(groups))),
        _ => return Ok(()),
    };
    let ended = match found(groups, &asked.case) {
        Some((group, case)) => case_by_turns(group, case, &asked, &mut driver),
        None => Err(CaseEnd::Skipped(format!("this build has no case {}", asked.case))),
    };
    match ended {
        Ok(()) | Err(CaseEnd::Interrupted) => Ok(()),
        Err(CaseEnd::Skipped(sentence)) => driver.answer(&Answer::Ended { how: How::Skipped, sentence }),
        Err(CaseEnd::Failed(sentence)) => driver.answer(&Answer::Ended { how: How::Failed, sentence }),
        Err(CaseEnd::Disturbed(sentence)) => driver.answer(&Answer::Ended { how: How::Disturbed, sentence }),
    }
}

fn ids(groups: &[Group]) -> Vec<String> {
    let of = |group: &Group| (group.cases)().iter().map(|case| group.id(case)).collect::<Vec<_>>();
    groups.iter().flat_map(of).collect()
}

fn found<'a>(groups: &'a [Group], id: &str) -> Option<(&'a Group, Case)> {
    groups.iter().find_map(|group| {
        let case = (group.cases)().into_iter().find(|case| group.id(case) == id)?;
        Some((group, case))
    })
}

fn case_by_turns(
    group: &Group,
    case: Case,
    asked: &Prepare,
    driver: &mut Driver,
) -> std::result::Result<(), CaseEnd> {
    let case = if asked.spin > 0.0 { slowed(case, asked.spin) } else { case };
    let allowed = cpu::allowed();
    let (cpu, mut notes) = settle(asked.cpu);
    let clock = Clock::with_scale(asked.clock);
    let scratch = scratch::make()?;
    let place = Place {
        scratch: scratch.path().to_path_buf(),
        scale: asked.scale,
        cpus: Cpus::around(Some(cpu), allowed),
    };
    let bench = Bench { place: &place, clock: &clock, pinned: Some(cpu) };
    let mut trial = prepared(&case, bench, asked.prove)?;
    let iteration_ns = trial.iteration_ns(asked.batch_ns)?;
    let evidence = trial.evidence().to_vec();
    notes.extend(trial.unasked().iter().map(|sentence| format!("not asked: {sentence}")));
    driver.answer(&Answer::Ready(Ready {
        version: group.version_text(),
        cpu,
        iteration_ns,
        evidence,
        notes,
    }))?;
    while let Some(question) = driver.question()? {
        if let Ask::Turn { iterations, batches } = question {
            let turn = trial.turn(iterations, batches)?;
            driver.answer(&Answer::Turn(turn))?;
        }
    }
    Ok(())
}

/// Sets up and, if asked, proves; again if the machine was not ours meanwhile.
fn prepared<'a>(case: &'a Case, bench: Bench<'a>, prove: bool) -> std::result::Result<Trial<'a>, CaseEnd> {
    let attempt = || {
        let mut trial = Trial::prepare(case, bench, None)?;
        if prove {
            trial.prove()?;
        }
        Ok(trial)
    };
    let mut outcome = attempt();
    for _ in 1..ATTEMPTS {
        if !matches!(outcome, Err(CaseEnd::Disturbed(_))) {
            break;
        }
        outcome = attempt();
    }
    outcome
}

/// Stays on the CPU that the driver names or, where a wrapper has forbidden it, on the last that is allowed.
fn settle(wanted: usize) -> (usize, Vec<String>) {
    let mut notes = Vec::new();
    let allowed = cpu::allowed();
    let last = allowed.iter().copied().max();
    let chosen = if allowed.contains(&wanted) { wanted } else { last.unwrap_or(wanted) };
    if chosen != wanted {
        notes.push(format!("CPU {wanted} is not allowed to this side: it runs on CPU {chosen}"));
    }
    if let Err(error) = cpu::pin(chosen) {
        notes.push(format!("not pinned to a CPU: {error}"));
    }
    process::touch_stack();
    if let Err(error) = process::lock_memory() {
        notes.push(format!("not locked in memory: {error}"));
    }
    (chosen, notes)
}

/// The same case with a slowdown of known size: dependent additions after each batch, so many an iteration,
/// and their time added to it.
fn slowed(mut case: Case, additions: f64) -> Case {
    let set_up: SetUp = case.set_up;
    case.set_up = Box::new(move |place: &Place| Ok(Box::new(Slowed { subject: set_up(place)?, additions })));
    case
}

struct Slowed {
    subject: Box<dyn Subject>,
    additions: f64,
}

impl Subject for Slowed {
    fn run(&mut self, iterations: u64, clock: &Clock) -> Result<Ticks> {
        let ticks = self.subject.run(iterations, clock)?;
        let start = clock.start();
        std::hint::black_box(arch::add_chain((iterations as f64 * self.additions).round() as u64));
        Ok(Ticks(ticks.0 + (clock.stop() - start).0))
    }

    fn report(&self) -> Report {
        self.subject.report()
    }
}

//! The cost of a function beside that of starting a program for the same answer (Figures 6 and 7 of CAMP's paper).

use super::cost_table::duration_of;
use super::page;
use crate::counters::camp;
use crate::error::Result;
use crate::platform::signal;
use crate::statistic::median;
use serde_json::{Value, json};
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

/// Calls of a function and starts of a program, of which the medians are shown.
const CALLS: usize = 1000;
const STARTS: usize = 15;

/// A question, a function that answers it, and a program that does.
struct Question {
    name: &'static str,
    ours: fn(i32) -> Option<u64>,
    program: &'static [&'static str],
}

const QUESTIONS: [Question; 5] = [
    Question { name: "threads of a process", ours: threads, program: &["ps", "-o", "thcount=", "-p"] },
    Question { name: "its resident set", ours: resident, program: &["ps", "-o", "rss=", "-p"] },
    Question { name: "free memory", ours: |_| free(), program: &["vmstat"] },
    Question { name: "the same", ours: |_| free(), program: &["cat", "/proc/meminfo"] },
    Question {
        name: "bytes sent by lo",
        ours: |_| sent(),
        program: &["cat", "/sys/class/net/lo/statistics/tx_bytes"],
    },
];

fn threads(pid: i32) -> Option<u64> {
    Some(camp::thread_count(pid).ok()?.value)
}

fn resident(pid: i32) -> Option<u64> {
    Some(camp::working_set_kb(pid).ok()?.value)
}

fn free() -> Option<u64> {
    Some(camp::free_physical_memory().ok()?.value)
}

fn sent() -> Option<u64> {
    Some(camp::net_bytes_sent("lo").ok()?.value)
}

/// Nanoseconds of either way; `None` where it gives no answer.
struct Costs {
    question: &'static Question,
    ours: Option<f64>,
    forked: Option<f64>,
}

pub(super) fn run(pid: i32, as_json: bool) -> Result<ExitCode> {
    let mut found = Vec::new();
    for question in &QUESTIONS {
        let ours = timed(CALLS, || (question.ours)(pid).is_some());
        let forked = timed(STARTS, || start(question.program, pid));
        if let Some(signal) = signal::pending() {
            return Ok(ExitCode::from(128 + signal as u8));
        }
        found.push(Costs { question, ours, forked });
    }
    match as_json {
        true => page::write_json(&found.iter().map(object).collect())?,
        false => page::write(&table(&found))?,
    }
    Ok(ExitCode::SUCCESS)
}

/// The median time of what succeeds; `None` once it does not.
fn timed(times: usize, run: impl Fn() -> bool) -> Option<f64> {
    let once = |_| {
        let begun = Instant::now();
        let answered = run();
        answered.then(|| begun.elapsed()).map(|time: Duration| time.as_nanos() as f64)
    };
    let all: Option<Vec<f64>> = (0..times).map(once).collect();
    all.map(|all| median(&all))
}

/// Starts a program and takes its answer, which must not be empty. One that asks for a process gets its number.
fn start(words: &[&str], pid: i32) -> bool {
    let Some((program, arguments)) = words.split_first() else { return false };
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stderr(Stdio::null());
    if arguments.last() == Some(&"-p") {
        command.arg(pid.to_string());
    }
    command.output().is_ok_and(|output| output.status.success() && !output.stdout.is_empty())
}

fn object(costs: &Costs) -> Value {
    json!({
        "question": costs.question.name,
        "program": costs.question.program.join(" "),
        "call_ns": costs.ours,
        "start_ns": costs.forked,
    })
}

fn table(found: &[Costs]) -> String {
    let head = ["question", "a call", "a program", "", "times"].map(str::to_owned);
    let time = |ns: Option<f64>| ns.map_or_else(|| "none here".to_owned(), duration_of);
    let row = |costs: &Costs| {
        let times =
            costs.ours.zip(costs.forked).map(|(ours, forked)| format!("{:.0}", forked / ours.max(1.0)));
        let program = costs.question.program.first().copied().unwrap_or_default().to_owned();
        [
            costs.question.name.to_owned(),
            time(costs.ours),
            program,
            time(costs.forked),
            times.unwrap_or_default(),
        ]
    };
    let rows: Vec<_> = std::iter::once(head).chain(found.iter().map(row)).collect();
    page::aligned(&rows, usize::MAX).into_iter().map(|line| line.trim_end().to_owned() + "\n").collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_is_not_there_gives_no_time() {
        assert!(!start(&["no-such-program-of-anybody", "-p"], 1) && !start(&[], 1));
        assert_eq!(timed(3, || false), None);
        assert!(timed(3, || true).is_some());
        let found = [Costs { question: &QUESTIONS[0], ours: Some(200.0), forked: None }];
        assert!(table(&found).contains("none here") && object(&found[0])["start_ns"].is_null());
    }

    #[test]
    fn every_function_answers_of_this_process() {
        let own = std::process::id() as i32;
        assert!(QUESTIONS.iter().all(|question| (question.ours)(own).is_some()));
    }
}

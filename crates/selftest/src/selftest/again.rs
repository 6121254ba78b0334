//! `syscost selftest --again`: whether the figures of a further run lie in the intervals of the run before.

use crate::error::{Error, Result};
use crate::platform::signal;
use crate::seen_again::{Again, compare_successive};
use std::path::PathBuf;
use std::process::ExitCode;
use syscost::suite::GROUPS;
use syscost_command_line::page::{self, count_with_noun};
use syscost_engine::driver::{Arguments, Options, Session, layout};
use syscost_engine::exit::Exit;
use syscost_engine::record::Record;
use syscost_engine::record::store::Store;

/// Cases of every kind: arithmetic, calls, the vDSO, system calls, memory, faults, switches, tasks, sockets and files.
const CASES: [&str; 24] = [
    "known_work/multiply",
    "empty_loop/memory",
    "call/u64/3",
    "syscall/clock-gettime-vdso",
    "syscall/getppid",
    "syscall/fstat",
    "syscall/read-zero",
    "syscall/pipe",
    "syscall/open-close",
    "chase/random/16KiB",
    "chase/random/256KiB",
    "chase/random/4MiB",
    "bandwidth/read/256KiB",
    "mapping/first-touch/1MiB",
    "page_fault/anonymous/4KiB",
    "signal/mask",
    "fork/touched-mib/0",
    "thread/same-cpu/hand-off",
    "ping_pong/pipe-processes/same-cpu",
    "ping_pong/pipe-processes/cross-cpu",
    "socket_round_trip/unix-stream-same-cpu/56B",
    "socket_round_trip/tcp-same-cpu/56B",
    "cached_read/pread/4KiB",
    "file_ops/create/1",
];
/// What the intervals promise.
const PROMISED: f64 = 0.95;

/// Measures these cases in several runs, or reads stored runs, and prints what was promised and what came true.
///
/// # Errors
/// A file is no record, no case has the id, or no two runs have a figure in common.
pub fn run(ids: &[String], files: &[PathBuf], runs: usize, json: bool) -> Result<ExitCode> {
    let mut records = match files {
        [] => measure_runs(ids, runs)?,
        files => files.iter().map(|file| Store::load(file)).collect::<Result<_>>()?,
    };
    if let Some(signal) = signal::pending() {
        page::warn(&format!("interrupted by {signal}: there is no answer"));
        return Ok(Exit::Signal(signal).into());
    }
    records.sort_by_key(|record| record.started);
    let seen = compare_successive(&records).ok_or_else(|| {
        Error::Usage(
            "no case has a quiet figure in two of these runs: name at least two runs of one suite at default scale".into(),
        )
    })?;
    match json {
        true => page::write_json(&seen)?,
        false => page::write(&agreement_text(&seen))?,
    }
    Ok(Exit::failed_if(seen.inside.high < PROMISED).into())
}

/// Several runs over the cases, saved nowhere.
fn measure_runs(ids: &[String], runs: usize) -> Result<Vec<Record>> {
    let of_ours = CASES.map(str::to_owned);
    let ids = if ids.is_empty() { &of_ours } else { ids };
    let filter = format!("^({})$", ids.iter().map(|id| regex::escape(id)).collect::<Vec<_>>().join("|"));
    let arguments = Arguments::parse(vec!["--bench".into(), filter.into()])?;
    let options = Options { known: GROUPS, ..Options::from_environment()? };
    Ok(Session::plan(GROUPS, &arguments, &options, runs, true)?.collect())
}

fn agreement_text(seen: &Again) -> String {
    let percent = |share: f64| format!("{:.1} %", 100.0 * share);
    let pair = |[median, tenth]: [f64; 2]| {
        format!("{} (median) and {} (90th percentile)", percent(median), percent(tenth))
    };
    let mut lines = vec![
        format!(
            "figures in the interval of the run before: {} of {} [{}, {}]; promised are {}",
            percent(seen.inside.estimate),
            count_with_noun(seen.figures, "figure", "figures"),
            percent(seen.inside.low),
            percent(seen.inside.high),
            percent(PROMISED)
        ),
        format!("two runs differ by {}", pair(seen.distance)),
        format!("half an interval is {}", pair(seen.half_width)),
        format!(
            "settled by their executions: {} of the cases, in {}; by these or by the run before: {} of those that it had",
            percent(seen.agreeing),
            count_with_noun(seen.runs, "run", "runs"),
            percent(seen.settled)
        ),
    ];
    let far = |(id, [a, b]): &(String, [f64; 2])| format!("{id} {a:.4} and {b:.4}");
    lines.push(format!("furthest apart: {}", seen.furthest.iter().map(far).collect::<Vec<_>>().join("; ")));
    page::wrap_sentences(lines, layout())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_case_exists_and_is_of_the_default_suite() {
        let known = syscost_engine::pair::side::case_ids(GROUPS);
        for id in CASES {
            assert!(known.iter().any(|known| known == id), "{id}");
        }
    }
}

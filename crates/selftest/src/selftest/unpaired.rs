//! `syscost selftest --unpaired`: the rates of false alarms and of missed slowdowns of `syscost compare` on this machine.

use super::{interval_percent, syscost_program, verdict_bar};
use crate::comparison_trial::{Judged, SESSIONS, Trial, found_share};
use crate::error::{Error, Result};
use crate::error_rate::SlowedSides;
use crate::error_rate::{Parameters, calibrate_filter};
use crate::platform::signal;
use std::cell::Cell;
use std::path::Path;
use std::process::{Command, ExitCode};
use syscost::suite::GROUPS;
use syscost_analysis::pair::experiment::Testbed;
use syscost_analysis::record::bundle::{Head, read_any};
use syscost_analysis::record::paired::Rule;
use syscost_command_line::page::{self, Tone};
use syscost_engine::case::Group;
use syscost_engine::driver::layout;
use syscost_engine::exit::Exit;
use syscost_engine::record::Record;
use syscost_engine::render::table::Layout;
use syscost_engine::trial::scratch;

pub fn run(seed: u64, as_json: bool) -> Result<ExitCode> {
    let bar = verdict_bar(STEPS);
    let show = |step: Step| match step {
        Step::Calibration(id) => bar.set_message(format!("how to slow {id}")),
        Step::Session(number) => bar.set_message(format!("session {number} of {}", 2 * SESSIONS)),
        Step::Ended => bar.inc(1),
    };
    let sessions = record_sessions(GROUPS, &syscost_program()?, seed, &show);
    bar.finish_and_clear();
    if let Some(signal) = signal::pending() {
        page::warn(&format!("interrupted by {signal}: there is no answer"));
        return Ok(Exit::Signal(signal).into());
    }
    let trial = Trial::from_heads(&sessions?, seed);
    page::write_json_or(as_json, &trial, || trial_table(&trial, layout()))?;
    Ok(Exit::failed_if(trial.has_failed()).into())
}

fn trial_table(trial: &Trial, layout: Layout) -> String {
    let rows = trial.unchanged.iter().chain(&trial.slowed).map(|judged| (Tone::Plain, judged_cells(judged)));
    let head = ["case", "injected", "found", "smallest seen"];
    let sentences = [
        found_line("false alarms", &trial.unchanged),
        found_line("+5 % slowdowns found", &trial.slowed),
        smallest_found_line(trial),
    ];
    page::table(head, rows, usize::MAX, layout) + "\n" + &page::wrap_sentences(sentences, layout)
}

fn found_line(what: &str, all: &[Judged]) -> String {
    let sum = |field: fn(&Judged) -> usize| all.iter().map(field).sum::<usize>();
    let (found, rows) = (sum(|judged| judged.found), sum(|judged| judged.comparisons));
    format!("{what}: {found} of {rows} rows, {}", interval_percent(found_share(all)))
}

fn smallest_found_line(trial: &Trial) -> String {
    let seen = trial.detectable_percents();
    format!(
        "smallest slowdown that {SESSIONS} sessions of {PROCESSES} processes a side see here four times in five: {:.1} % \
         in the median case [{:.1}, {:.1}]",
        seen.estimate, seen.low, seen.high
    )
}

fn judged_cells(judged: &Judged) -> [String; 4] {
    [
        judged.id.clone(),
        judged.injected.map_or_else(|| "–".into(), |share| format!("{:+.1} %", 100.0 * share)),
        format!("{}/{}", judged.found, judged.comparisons),
        format!("{:.1} %", judged.detectable_percent),
    ]
}

/// System calls, which a filter can slow.
const CALLS: [&str; 5] =
    ["syscall/getppid", "syscall/read-zero", "syscall/write-null", "syscall/fstat", "syscall/open-close"];
/// A loop, a call and memory accesses.
const OTHERS: [&str; 4] =
    ["empty_loop/memory", "call/u64/3", "chase/random/256KiB", "mapping/first-touch/1MiB"];
/// The number of processes per session.
const PROCESSES: usize = 3;
/// The slowdown, as a share.
const SLOWDOWN: f64 = 0.05;
/// The number of steps that end with [`Step::Ended`].
const STEPS: usize = CALLS.len() + 2 * SESSIONS * (2 * CALLS.len() + OTHERS.len());

/// An event of the trial.
enum Step {
    /// A search begins for the length of the filter that slows this case.
    Calibration(&'static str),
    /// This session begins; sessions are counted from 1.
    Session(usize),
    /// The calibration or the recording of a case has ended.
    Ended,
}

/// Records ten plain and ten slowed sessions with this binary, which measures these groups.
fn record_sessions(groups: &[Group], exe: &Path, seed: u64, watch: &dyn Fn(Step)) -> Result<[Head; 2]> {
    let filters = find_slowing_filters(groups, exe, seed, watch)?;
    let place = scratch::make_directory()?;
    let recorder = Recorder { exe, place: place.path(), number: Cell::new(0), watch };
    let (mut plain, mut slowed) = (Vec::new(), Vec::new());
    for session in 0..2 * SESSIONS {
        watch(Step::Session(session + 1));
        for id in CALLS.iter().chain(&OTHERS) {
            plain.extend(recorder.record_case(id, 0, &format!("plain-{session}"))?);
        }
        for (id, additions) in CALLS.iter().zip(&filters) {
            slowed.extend(recorder.record_case(id, *additions, &format!("slowed-{session}"))?);
        }
    }
    Ok([Head::from_records("plain", 0, &plain), Head::from_records("slowed", 0, &slowed)])
}

/// Finds, by pairs, the number of filter additions that slows each of the system calls by 5 %. It releases the CPU that the
/// pairs claimed.
fn find_slowing_filters(groups: &[Group], exe: &Path, seed: u64, watch: &dyn Fn(Step)) -> Result<Vec<usize>> {
    let testbed = Testbed::set_up()?;
    let sides = SlowedSides::new(exe)?;
    let start = |filters| sides.prepare_launches(filters);
    let parameters = Parameters { start: &start, rule: Rule::default(), seed, cases: 1, groups };
    let of_case = |id: &&'static str| {
        watch(Step::Calibration(id));
        let additions = calibrate_filter(&testbed, &parameters, id, SLOWDOWN);
        watch(Step::Ended);
        additions
    };
    CALLS.iter().take_while(|_| signal::pending().is_none()).map(of_case).collect()
}

/// Starts this binary for a record of one case.
struct Recorder<'a> {
    exe: &'a Path,
    place: &'a Path,
    number: Cell<usize>,
    watch: &'a dyn Fn(Step),
}

impl Recorder<'_> {
    /// The records of one case under a filter, as part of this session. Empty after a signal.
    fn record_case(&self, id: &str, additions: usize, session: &str) -> Result<Vec<Record>> {
        self.number.set(self.number.get() + 1);
        let file = self.place.join(format!("{}.syscost", self.number.get()));
        if signal::pending().is_some() || !self.run_record_command(id, additions, &file)? {
            return Ok(Vec::new());
        }
        (self.watch)(Step::Ended);
        let records = read_any(&file)?.records.into_iter();
        Ok(records.map(|record| Record { session: Some(session.to_owned()), ..record }).collect())
    }

    /// Runs `syscost record` under the filter. Returns false if it wrote no record, which happens only after a signal.
    fn run_record_command(&self, id: &str, additions: usize, file: &Path) -> Result<bool> {
        let mut command = Command::new(self.exe);
        command.args(["burden", "--additions", &additions.to_string(), "--"]).arg(self.exe);
        command.args(["record", "--exact", id, "--processes", &PROCESSES.to_string()]);
        command.arg("--home").arg(self.place).arg("--output").arg(file);
        let output = command.output().map_err(|e| Error::file(self.exe, "starting", e))?;
        if file.exists() || signal::pending().is_some() {
            return Ok(file.exists());
        }
        let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        Err(Error::Child(format!("`syscost record --exact {id}` recorded nothing: {said}")))
    }
}

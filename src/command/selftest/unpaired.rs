//! `syscost selftest --unpaired`: the rates of false alarms and of overlooked slowdowns of `syscost compare` on this machine.

use super::{interval_percent, side_launches, verdict_bar};
use crate::command::ab::own_executable;
use crate::command::page::{self, Tone};
use crate::driver::layout;
use crate::error::{Error, Result};
use crate::exit::Exit;
use crate::pair::error_rate::{Parameters, calibrate_filter};
use crate::pair::experiment::Testbed;
use crate::platform::signal;
use crate::record::Record;
use crate::record::bundle::{Head, read_any};
use crate::record::paired::Rule;
use crate::render::table::Layout;
use crate::statistic::median;
use crate::study::comparison_trial::{self, Judged, SESSIONS, judge_against_itself, judge_against_slowed};
use crate::trial::scratch;
use indicatif::ProgressBar;
use serde_json::json;
use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

/// System calls, which a filter can slow.
const CALLS: [&str; 5] =
    ["syscall/getppid", "syscall/read-zero", "syscall/write-null", "syscall/fstat", "syscall/open-close"];
/// A loop, a call and memory.
const OTHERS: [&str; 4] =
    ["empty_loop/memory", "call/u64/3", "chase/random/256KiB", "mapping/first-touch/1MiB"];
/// Processes a session.
const PROCESSES: usize = 3;
/// The slowdown, a share.
const SLOWDOWN: f64 = 0.05;
/// Largest share of false alarms.
const ALARMS: f64 = 0.01;
/// Smallest share of slowdowns that must be found.
const FOUND: f64 = 0.8;

pub fn run(seed: u64, as_json: bool) -> Result<ExitCode> {
    let bar = verdict_bar(CALLS.len() + 2 * SESSIONS * (2 * CALLS.len() + OTHERS.len()));
    let filters = find_slowing_filters(seed, &bar)?;
    let sessions = record_sessions(&filters, &bar);
    bar.finish_and_clear();
    if let Some(signal) = signal::pending() {
        page::warn(&format!("interrupted by {signal}: there is no answer"));
        return Ok(Exit::Signal(signal).into());
    }
    let trial = Trial::from_heads(sessions?, seed);
    match as_json {
        true => page::write_json(&json!({ "unchanged": trial.unchanged, "slowed": trial.slowed }))?,
        false => page::write(&trial.render(layout()))?,
    }
    Ok(trial.exit_code())
}

/// Finds, by pairs, the number of filter additions that slows each of the system calls by 5 %. Frees the CPU that
/// the pairs claimed.
fn find_slowing_filters(seed: u64, bar: &ProgressBar) -> Result<Vec<usize>> {
    let testbed = Testbed::set_up()?;
    let links = scratch::make_directory()?;
    let (exe, number) = (own_executable()?, Cell::new(0));
    let start = |filters: Option<[usize; 2]>| {
        number.set(number.get() + 1);
        side_launches(&exe, filters, &links.path().join(number.get().to_string()))
    };
    let parameters = Parameters { start: &start, rule: Rule::default(), seed, cases: 1 };
    let of_case = |id: &&str| {
        bar.set_message(format!("how to slow {id}"));
        let additions = calibrate_filter(&testbed, &parameters, id, SLOWDOWN);
        bar.inc(1);
        additions
    };
    CALLS.iter().take_while(|_| signal::pending().is_none()).map(of_case).collect()
}

/// Records ten sessions under filters without additions and ten under filters that slow, by turns.
fn record_sessions(filters: &[usize], bar: &ProgressBar) -> Result<[Head; 2]> {
    let place = scratch::make_directory()?;
    let recorder = Recorder { exe: own_executable()?, place: place.path(), number: Cell::new(0) };
    let (mut plain, mut slowed) = (Vec::new(), Vec::new());
    for session in 0..2 * SESSIONS {
        bar.set_message(format!("session {} of {}", session + 1, 2 * SESSIONS));
        for id in CALLS.iter().chain(&OTHERS) {
            plain.extend(recorder.record_case(id, 0, &format!("plain-{session}"), bar)?);
        }
        for (id, additions) in CALLS.iter().zip(filters) {
            slowed.extend(recorder.record_case(id, *additions, &format!("slowed-{session}"), bar)?);
        }
    }
    Ok([Head::from_records("plain", 0, &plain), Head::from_records("slowed", 0, &slowed)])
}

/// Starts this binary for a record of one case.
struct Recorder<'a> {
    exe: PathBuf,
    place: &'a Path,
    number: Cell<usize>,
}

impl Recorder<'_> {
    /// The processes of one case under a filter, as part of this session. None after a signal.
    fn record_case(
        &self,
        id: &str,
        additions: usize,
        session: &str,
        bar: &ProgressBar,
    ) -> Result<Vec<Record>> {
        self.number.set(self.number.get() + 1);
        let file = self.place.join(format!("{}.syscost", self.number.get()));
        if signal::pending().is_some() || !self.run_record_command(id, additions, &file)? {
            return Ok(Vec::new());
        }
        bar.inc(1);
        let records = read_any(&file)?.records.into_iter();
        Ok(records.map(|record| Record { session: Some(session.to_owned()), ..record }).collect())
    }

    /// Runs `syscost record` under the filter. False if it wrote no record, which happens only after a signal.
    fn run_record_command(&self, id: &str, additions: usize, file: &Path) -> Result<bool> {
        let mut command = Command::new(&self.exe);
        command.args(["burden", "--additions", &additions.to_string(), "--"]).arg(&self.exe);
        command.args(["record", "--exact", id, "--processes", &PROCESSES.to_string()]);
        command.arg("--home").arg(self.place).arg("--output").arg(file);
        let output = command.output().map_err(|e| Error::file(&self.exe, "starting", e))?;
        if file.exists() || signal::pending().is_some() {
            return Ok(file.exists());
        }
        let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        Err(Error::Child(format!("`syscost record --exact {id}` recorded nothing: {said}")))
    }
}

/// The comparisons that should find nothing, and those that should.
struct Trial {
    unchanged: Vec<Judged>,
    slowed: Vec<Judged>,
}

impl Trial {
    fn from_heads([plain, slowed]: [Head; 2], seed: u64) -> Self {
        let mut unchanged = judge_against_itself(&plain);
        let as_slow = |judged: Judged| Judged { id: format!("{}, both slowed", judged.id), ..judged };
        unchanged.extend(judge_against_itself(&slowed).into_iter().map(as_slow));
        Self { unchanged, slowed: judge_against_slowed(&plain, &slowed, seed) }
    }

    /// Exit code 1 if the intervals show too many false alarms or too many overlooked slowdowns, or if nothing was compared.
    fn exit_code(&self) -> ExitCode {
        let nothing = self.unchanged.is_empty() || self.slowed.is_empty();
        let alarms = comparison_trial::found_share(&self.unchanged).low > ALARMS;
        let overlooked = comparison_trial::found_share(&self.slowed).high < FOUND;
        Exit::failed_if(nothing || alarms || overlooked).into()
    }

    fn render(&self, layout: Layout) -> String {
        let rows =
            self.unchanged.iter().chain(&self.slowed).map(|judged| (Tone::Plain, judged_cells(judged)));
        let head = ["case", "injected", "found", "smallest seen"];
        page::table(head, rows, usize::MAX, layout)
            + "\n"
            + &page::wrap_sentences(self.summary_sentences(), layout)
    }

    fn summary_sentences(&self) -> [String; 3] {
        [
            found_line("false alarms", &self.unchanged),
            found_line("+5 % slowdowns found", &self.slowed),
            smallest_found_line(&self.unchanged),
        ]
    }
}

fn found_line(what: &str, all: &[Judged]) -> String {
    let sum = |field: fn(&Judged) -> usize| all.iter().map(field).sum::<usize>();
    let (found, rows) = (sum(|judged| judged.found), sum(|judged| judged.comparisons));
    format!("{what}: {found} of {rows} rows, {}", interval_percent(comparison_trial::found_share(all)))
}

fn smallest_found_line(all: &[Judged]) -> String {
    let mut seen: Vec<f64> = all.iter().map(|judged| judged.detectable_percent).collect();
    seen.sort_by(f64::total_cmp);
    let [best, worst] = [seen.first(), seen.last()].map(|end| end.copied().unwrap_or_default());
    format!(
        "smallest slowdown that {SESSIONS} sessions of {PROCESSES} processes a side see here four times in five: {:.1} % \
         in the median case [{best:.1}, {worst:.1}]",
        median(&seen)
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

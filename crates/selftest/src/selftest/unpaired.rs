//! `syscost selftest --unpaired`: the rates of false alarms and of overlooked slowdowns of `syscost compare` on this machine.

use super::{interval_percent, syscost_program, verdict_bar};
use crate::comparison_trial::{Judged, SESSIONS, Trial, found_share};
use crate::error::Result;
use crate::platform::signal;
use crate::unpaired_sessions::{PROCESSES, STEPS, Step, record_sessions};
use std::process::ExitCode;
use syscost::suite::GROUPS;
use syscost_command_line::page::{self, Tone};
use syscost_engine::driver::layout;
use syscost_engine::exit::Exit;
use syscost_engine::render::table::Layout;

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
    match as_json {
        true => page::write_json(&trial)?,
        false => page::write(&trial_table(&trial, layout()))?,
    }
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

//! `syscost selftest --claims`: tests whether the claims catch false operations and hold for real ones.

use crate::error::{Error, Result};
use crate::liar::{
    CLAIM, ClaimTrial, LIE, Liar, OPEN, Ruling, judge_claims, judge_copies, liars, real_cases,
};
use crate::platform::process::inheritance;
use crate::platform::{cpu, signal};
use serde_json::{Value, json};
use std::process::ExitCode;
use std::time::Instant;
use syscost_command_line::page::{self, Tone};
use syscost_engine::case::{Case, Cpus, Place, Scale};
use syscost_engine::clock::{Clock, check_clocks};
use syscost_engine::driver::layout;
use syscost_engine::exit::Exit;
use syscost_engine::render::table::Layout;
use syscost_engine::trial::{self, Bench, scratch};

/// A case whose claims were judged.
struct Row {
    id: String,
    /// The lie and the claim that must catch it; `None` for a real case.
    lie: Option<(&'static str, &'static str)>,
    /// The value of [`Liar::from`].
    from: u64,
    tried: ClaimTrial,
    seconds: f64,
}

impl Row {
    fn untried(id: String, lie: Option<(&'static str, &'static str)>, from: u64) -> Self {
        let (sentence, late) = (String::new(), Vec::new());
        let tried = ClaimTrial { ruling: Ruling::Disturbed, executions: 0, sentence, iterations: 0, late };
        Self { id, lie, from, tried, seconds: 0.0 }
    }

    /// The ruling in a word, in capitals if it must not happen.
    fn ruling_word(&self) -> &'static str {
        let is_lie = self.lie.is_some();
        match self.tried.ruling {
            Ruling::Skipped => "skipped",
            Ruling::Disproved | Ruling::Contradicted if is_lie => "caught",
            Ruling::Unwitnessed => "unwitnessed",
            Ruling::Held if is_lie && self.tried.iterations < self.from => "no lie",
            Ruling::Held if self.lie.is_some_and(|(_, claim)| claim == OPEN) => "believed",
            Ruling::Held if is_lie => "BELIEVED",
            Ruling::Disturbed if is_lie => "DISTURBED",
            Ruling::Held => "held",
            // Six short executions that follow one another meet the same state of the machine. A run spreads them over
            // minutes before it condemns a case for its times.
            Ruling::Contradicted => "contradicted",
            Ruling::Disturbed => "disturbed",
            Ruling::Disproved => "CONDEMNED",
        }
    }

    /// Replaces a disturbed trial by a later one. The executions of both are counted.
    fn replace_by_later_trial(&mut self, later: ClaimTrial) {
        self.tried = ClaimTrial { executions: self.tried.executions + later.executions, ..later };
    }

    /// Whether the ruling is acceptable. A liar must not be believed or left undecided by disturbance; a real case must not
    /// be condemned.
    fn is_as_expected(&self) -> bool {
        !matches!(self.ruling_word(), "BELIEVED" | "DISTURBED" | "CONDEMNED")
    }
}

/// Judges the claims of every liar and every real case, or of those with these ids. Returns exit code 1 if a liar was not
/// caught or a real case was condemned.
///
/// # Errors
/// An error where there is no scratch directory, or where no case on trial has one of the ids.
pub fn run(ids: &[String], slowness: f64, as_json: bool) -> Result<ExitCode> {
    signal::watch_signals()?;
    let on_trial = cases_on_trial(ids)?;
    inheritance::prepare_measuring_process().iter().for_each(page::warn);
    check_clocks()?;
    // The clock starts before the pinning, since it compares the counters of all CPUs.
    let (clock, allowed) = (Clock::start_up(), cpu::allowed_cpus());
    let claimed = cpu::claim_cpu().filter(|claimed| cpu::pin_thread(claimed.cpu).is_ok());
    let pinned = claimed.as_ref().map(|claimed| claimed.cpu);
    // If it is refused, a disturbed execution is only more likely.
    let _ = trial::prepare_memory();
    let scratch = scratch::make_directory()?;
    let cpus = Cpus::from_allowed(pinned, allowed);
    let place = Place { scratch: scratch.path().to_path_buf(), scale: Scale::Smoke, cpus };
    let bench = Bench { place: &place, clock: &clock, pinned, lent: None, other_copies: None };
    let mut rows = judge_cases(on_trial, bench, slowness);
    let copies = [true, false].into_iter().filter(|_| ids.is_empty() && signal::pending().is_none());
    rows.extend(copies.map(|lies| judge_second_copy(bench, lies)));
    let json = rows.iter().map(row_json).collect::<Vec<_>>();
    page::write_json_or(as_json, &json, || claims_table(&rows, layout()))?;
    Ok(Exit::failed_if(!rows.iter().all(Row::is_as_expected)).or_signal(signal::pending()).into())
}

/// The number of passes over the undecided cases. The executions of one pass follow one another within milliseconds, so one
/// burst of a neighbour disturbs them all.
const PASSES: usize = 4;

/// The liars and the real cases with these ids, or all of them.
fn cases_on_trial(ids: &[String]) -> Result<Vec<(Row, Case)>> {
    let lie = |Liar { id, lie, claim, from, case }| (Row::untried(id, Some((lie, claim)), from), case);
    let real = |(id, case)| (Row::untried(id, None, 1), case);
    let mut all: Vec<_> = liars().into_iter().map(lie).chain(real_cases().into_iter().map(real)).collect();
    if let Some(id) = ids.iter().find(|id| all.iter().all(|(row, _)| row.id != **id)) {
        return Err(Error::Usage(format!(
            "no case on trial has the id `{id}`: `syscost selftest --claims` alone names all of them"
        )));
    }
    all.retain(|(row, _)| ids.is_empty() || ids.contains(&row.id));
    Ok(all)
}

/// Judges these cases one after the other, until a signal arrives, and then repeats the disturbed ones.
fn judge_cases(mut cases: Vec<(Row, Case)>, bench: Bench<'_>, slowness: f64) -> Vec<Row> {
    for _ in 0..PASSES {
        let undecided = cases.iter_mut().filter(|(row, _)| row.tried.ruling == Ruling::Disturbed);
        for (row, case) in undecided.take_while(|_| signal::pending().is_none()) {
            let begun = Instant::now();
            row.replace_by_later_trial(judge_claims(case, bench, slowness));
            row.seconds += begun.elapsed().as_secs_f64();
        }
    }
    cases.into_iter().map(|(row, _)| row).filter(|row| row.tried.executions > 0).collect()
}

/// Judges a case beside a second copy, which lies if `lies`.
fn judge_second_copy(bench: Bench<'_>, lies: bool) -> Row {
    let begun = Instant::now();
    let (id, tried) = judge_copies(bench, lies);
    Row { id, lie: lies.then_some((LIE, CLAIM)), from: 1, tried, seconds: begun.elapsed().as_secs_f64() }
}

fn claims_table(rows: &[Row], layout: Layout) -> String {
    let mut text = String::new();
    for (head, is_lie) in [("lie", true), ("true operation", false)] {
        let part = rows.iter().filter(|row| row.lie.is_some() == is_lie);
        let head = ["case", head, "claim", "", "executions", "sentence"];
        let part = part.map(|row| (Tone::Plain, row_cells(row)));
        text += &(page::table(head, part, usize::MAX, layout) + "\n");
    }
    text += &[true, false].map(|is_lie| attempts_line(rows, is_lie)).concat();
    text + &summary_line(rows) + "\n"
}

/// The number of cases that were decided after each number of executions, and the claims that held late.
fn attempts_line(rows: &[Row], is_lie: bool) -> String {
    let part = || rows.iter().filter(|row| row.lie.is_some() == is_lie && row.ruling_word() != "skipped");
    let mut counts = std::collections::BTreeMap::<u32, usize>::new();
    part().for_each(|row| *counts.entry(row.tried.executions).or_default() += 1);
    let counts = counts.iter().map(|(executions, cases)| format!("{cases} by {executions}"));
    let counts = counts.collect::<Vec<_>>().join(", ");
    let late = part().flat_map(|row| row.tried.late.iter().map(|late| format!("  {}: {late}\n", row.id)));
    let what = if is_lie { "lies" } else { "true cases" };
    format!("{what} decided by executions: {counts}\n{}", late.collect::<String>())
}

fn row_cells(row: &Row) -> [String; 6] {
    let (lie, claim) = row.lie.unwrap_or(("", ""));
    [
        row.id.clone(),
        lie.into(),
        claim.into(),
        row.ruling_word().into(),
        row.tried.executions.to_string(),
        match row.ruling_word() {
            "no lie" => format!("batches of {}: it is one from {} on", row.tried.iterations, row.from),
            _ => row.tried.sentence.clone(),
        },
    ]
}

fn summary_line(rows: &[Row]) -> String {
    let count = |word: &str| rows.iter().filter(|row| row.ruling_word() == word).count();
    let [lies, real] = [true, false].map(|is| rows.iter().filter(|row| row.lie.is_some() == is).count());
    format!(
        "{} of {lies} lies caught, {} believed, {} no lies at this size, {} saved as unwitnessed; {} of {real} true cases held, {} condemned, {} contradicted; {} skipped, \
         {} disturbed",
        count("caught"),
        count("BELIEVED") + count("believed"),
        count("no lie"),
        rows.iter().filter(|row| row.lie.is_some() && row.ruling_word() == "unwitnessed").count(),
        count("held"),
        count("CONDEMNED"),
        count("contradicted"),
        count("skipped"),
        count("disturbed") + count("DISTURBED")
    )
}

fn row_json(row: &Row) -> Value {
    let ClaimTrial { executions, sentence, iterations, late, .. } = &row.tried;
    json!({
        "id": row.id, "lie": row.lie.map(|(lie, _)| lie), "claim": row.lie.map(|(_, claim)| claim),
        "ruling": row.ruling_word().to_lowercase(), "executions": executions, "sentence": sentence, "well": row.is_as_expected(),
        "seconds": row.seconds, "iterations": iterations, "from": row.from, "late": late,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(is_lie: bool, ruling: Ruling) -> Row {
        let mut row = Row::untried("a/b".into(), is_lie.then_some(("lies", "Claim")), 100);
        row.tried = ClaimTrial { ruling, executions: 1, iterations: 100, ..row.tried };
        row
    }

    #[test]
    fn the_lies_and_the_true_case_of_an_id_are_on_trial() {
        let ids = |wanted: &[String]| {
            cases_on_trial(wanted).map(|all| all.into_iter().map(|(row, _)| row.id).collect::<Vec<_>>())
        };
        let wanted = "stolen_time/spin/ordinary".to_owned();
        let some = ids(std::slice::from_ref(&wanted)).expect("known");
        assert!(some.len() > 1 && some.iter().all(|id| *id == wanted), "{some:?}");
        assert!(ids(&[]).expect("all").len() > some.len());
        assert!(ids(&[wanted, "a/b".into()]).is_err_and(|error| error.to_string().contains("`a/b`")));
    }

    #[test]
    fn a_disturbed_case_is_judged_by_its_later_trial_and_counts_all_executions() {
        let mut disturbed = row(true, Ruling::Disturbed);
        let later = ClaimTrial { sentence: "later".into(), ..row(true, Ruling::Held).tried };
        disturbed.replace_by_later_trial(ClaimTrial { executions: 2, ..later });
        assert_eq!((disturbed.ruling_word(), disturbed.tried.executions), ("BELIEVED", 3));
        assert_eq!(disturbed.tried.sentence, "later");
    }

    #[test]
    fn only_caught_lies_and_uncondemned_real_cases_are_as_expected() {
        use Ruling::{Contradicted, Disproved, Disturbed, Held, Skipped, Unwitnessed};
        let ends = [Disproved, Contradicted, Held, Skipped, Disturbed, Unwitnessed];
        let well = |is_lie| ends.map(|ruling| row(is_lie, ruling).is_as_expected());
        assert_eq!(well(true), [true, true, false, true, false, true]);
        assert_eq!(
            well(false),
            [false, true, true, true, true, true],
            "claims about time need executions far apart"
        );
        assert_eq!(row(true, Held).ruling_word(), "BELIEVED");
        assert_eq!(row(false, Disproved).ruling_word(), "CONDEMNED");
        let mut short = row(true, Held);
        short.tried.iterations = 99;
        assert!(
            short.ruling_word() == "no lie" && row_cells(&short)[5].contains("99: it is one from 100 on")
        );
    }
}

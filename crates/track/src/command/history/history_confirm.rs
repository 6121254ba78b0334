//! `syscost history confirm`: compares the two sides of a reported change again, which confirms or refutes it.

use super::history_bisect::{Chosen, Origin, Suspicion, comparison_sides, exact_id_pattern};
use crate::study::change_event::Moved;
use std::process::ExitCode;
use syscost_analysis::study::gate::{Answer, Finding, answer, findings_from_pairs};
use syscost_command_line::flag::{BuildFlags, Filter};
use syscost_command_line::page;
use syscost_command_line::sides::{Manner, Pairs, compare_sides};
use syscost_engine::case::Scale;
use syscost_engine::record::Verdict;
use syscost_engine::record::guest_side::ClockKind;
use syscost_kernels::kernels::{self, Counting};
use syscost_platform::error::{Error, Result};
use syscost_platform::signal;

/// A difference counts as a change above this share of the smallest reported change. It counts as no change if its interval lies
/// within the share [`MARGIN`].
const THRESHOLD: f64 = 0.25;
const MARGIN: f64 = 0.5;
/// The smallest change that pairs can show, a share.
const LEAST: f64 = 0.001;

/// Compare both sides of a change again, now
///
/// A history reports suspicions: an outlier of two nights looks like a change. This takes the newest change, or the one at LABEL,
/// finds its two sides (a kept reference of that name, the git revision that the label begins with, a kernel) and compares the cases
/// that changed by turns, as `syscost ab` does. A change is confirmed if more than a quarter of the smallest one is found again.
#[derive(clap::Args)]
#[command(
    after_help = "Exit code 0: nothing is slower; 1: a slowdown is confirmed; 3: incomparable; 4: neither was shown; 5: \
    the machine is unfit; 125: a side is gone, or could not be measured; 128 and the signal: interrupted."
)]
pub(in crate::command) struct Confirm {
    #[command(flatten)]
    chosen: Chosen,
    /// The most cases that are compared again, the farthest first
    #[arg(long, value_name = "N", default_value_t = 12, value_parser = clap::value_parser!(u16).range(1..))]
    cases: u16,
    #[command(flatten)]
    build: BuildFlags,
    /// The last look at a case: after 8, 16 or 32 pairs
    #[arg(long, value_name = "N", value_enum, default_value_t = Pairs::ThirtyTwo)]
    pairs: Pairs,
    /// Seed of everything random
    #[arg(long, default_value_t = 0x5eed)]
    seed: u64,
    /// Size of what surrounds the operations: smoke, default, full
    #[arg(long, default_value = "default", value_parser = syscost_command_line::flag::scale_parser())]
    scale: Scale,
    #[command(flatten)]
    counting: Counting,
}

pub(super) fn confirm(args: &Confirm) -> Result<ExitCode> {
    let suspicion = args.chosen.find_suspicion()?;
    let moved = suspicion.moved_cases(args.cases.into());
    if moved.is_empty() {
        return Err(Error::Usage(
            "canaries alone moved: the machine did, and no side can be compared".into(),
        ));
    }
    let found = args
        .chosen
        .find_origins(&suspicion)
        .and_then(|origins| confirm_cases(args, &suspicion, &moved, &origins));
    let answer = match found {
        Ok(findings) => {
            page::write(&confirmation_lines(&moved, &findings))?;
            answer(&findings)
        }
        Err(error @ Error::Usage(_)) => return Err(error),
        // Exit code 1 would mean "slower", so an error must not end with it.
        Err(error) => {
            page::warn(&error);
            Answer::Unmeasured
        }
    };
    Ok(answer.exit_status().or_signal(signal::pending()).into())
}

/// Compares both sides again for these cases, and returns a finding for each.
fn confirm_cases(
    args: &Confirm,
    suspicion: &Suspicion,
    moved: &[&Moved],
    origins: &[Origin; 2],
) -> Result<Vec<Finding>> {
    let smallest = moved.iter().map(|moved| moved.change.abs()).fold(1.0, f64::min);
    let threshold = (THRESHOLD * smallest).max(LEAST);
    let filter = Filter::new(Some(exact_id_pattern(moved)));
    let home = &args.chosen.place.home;
    let Some(sides) = comparison_sides(origins, &args.build) else {
        let [Origin::Kernel(before), Origin::Kernel(after)] = origins else {
            return Err(no_common_clock(suspicion.after.clock));
        };
        let names = [before.as_str(), after.as_str()];
        return kernels::comparison_findings(
            names,
            suspicion.after.clock,
            &filter,
            &args.counting,
            threshold,
            home,
        );
    };
    let manner = Manner {
        threshold,
        margin: Some((MARGIN * smallest).max(2.0 * LEAST)),
        pairs: Some(args.pairs),
        seed: args.seed,
        scale: args.scale,
        no_canaries: false,
    };
    let paired = compare_sides(&filter, &sides, &manner, &home.directory())?;
    Ok(findings_from_pairs(&paired, &paired.judge()))
}

fn no_common_clock(clock: ClockKind) -> Error {
    Error::Missing(format!(
        "one side is a kernel ({clock}) and the other is none: they have no clock in common"
    ))
}

/// A line for each case: the outcome, the change in the history, the change that was measured now, and the reason.
fn confirmation_lines(moved: &[&Moved], findings: &[Finding]) -> String {
    let fresh = |moved: &Moved| findings.iter().find(|finding| finding.id == moved.id);
    let percent = |share: f64| format!("{:+.2} %", 100.0 * share);
    let row = |moved: &&Moved| {
        let finding = fresh(moved);
        let now = finding.and_then(|finding| finding.change).filter(|change| change.is_finite());
        let why = finding.map_or(Some("neither side has it"), |finding| finding.reason.as_deref());
        [
            outcome_word(moved, finding).to_owned(),
            percent(moved.change),
            now.map_or("–".into(), percent),
            moved.id.clone(),
            why.unwrap_or_default().to_owned(),
        ]
    };
    let mut rows: Vec<_> = moved.iter().map(row).collect();
    if page::is_piped() {
        return page::tabbed_rows(&rows);
    }
    let confirmed = moved.iter().filter(|moved| outcome_word(moved, fresh(moved)) == CONFIRMED).count();
    rows.insert(0, ["", "history", "now", "case", ""].map(str::to_owned));
    let canaries = findings.iter().filter(|finding| finding.canary && finding.verdict.is_change()).count();
    let disturbed = if canaries > 0 { "; canaries moved too: the machine is unfit, try again" } else { "" };
    let sum = format!(
        "{confirmed} of {} confirmed{disturbed}\n",
        page::count_with_noun(moved.len(), "change", "changes")
    );
    page::columns_text(&rows, page::table_width(syscost_engine::driver::layout())) + &sum
}

const CONFIRMED: &str = "confirmed";

/// The outcome for a reported change, in a word.
fn outcome_word(moved: &Moved, finding: Option<&Finding>) -> &'static str {
    match (finding.map(|finding| finding.verdict), moved.change > 0.0) {
        (Some(Verdict::Slower), true) | (Some(Verdict::Faster), false) => CONFIRMED,
        (Some(Verdict::Slower | Verdict::Faster), _) => "reversed",
        (Some(Verdict::Same), _) => "refuted",
        _ => "open",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use syscost_analysis::study::gate::Progress;

    #[test]
    fn a_change_is_confirmed_only_in_its_own_direction() {
        let moved =
            |change| Moved { id: "a/b".into(), canary: false, change, error: 0.001, functions: Vec::new() };
        let finding = |verdict| Finding {
            id: "a/b".into(),
            verdict,
            change: Some(0.0),
            reason: None,
            canary: false,
            progress: Progress::Measured,
            muted: None,
            grown: None,
        };
        let word = |change, verdict| outcome_word(&moved(change), Some(&finding(verdict)));
        assert_eq!(word(0.02, Verdict::Slower), "confirmed");
        assert_eq!(word(-0.02, Verdict::Faster), "confirmed");
        assert_eq!(word(0.02, Verdict::Faster), "reversed");
        assert_eq!(word(0.02, Verdict::Same), "refuted");
        assert_eq!(word(0.02, Verdict::Inconclusive), "open");
        assert_eq!(super::outcome_word(&moved(0.02), None), "open");
    }
}

//! The answer of a gate, shared by `syscost gate` and `syscost kernels gate`: an exit code and the text that explains it.

use crate::error::{Error, Kind, Result};
use crate::page::{self, Tone};
use crate::platform::{inert, output, plain_file, signal};
use crate::sides::parse_share;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use syscost_analysis::render::answer::{self, id_list, sentence_shape};
use syscost_analysis::render::sheet::markdown_table;
use syscost_analysis::study::gate::{Answer, Finding, Mutes, NOT_MEASURED, Progress, answer};
use syscost_engine::driver::layout;
use syscost_engine::record::{Verdict, quantity};
use syscost_engine::render::table::Layout;

/// Flags for the allowed slowdown and for the form of the answer.
#[derive(Clone, clap::Args)]
pub struct Judging {
    /// A slowdown up to this share is let through: 1% at least
    #[arg(long, value_name = "PERCENT", default_value = "3%", value_parser = parse_max_regress)]
    pub max_regress: f64,
    /// TOML file of cases to overlook: a table an id, with reason and until
    #[arg(long, value_name = "FILE")]
    mute: Option<PathBuf>,
    /// Answer as `git bisect run` wants it
    #[arg(long)]
    bisect: bool,
    /// Append a summary in Markdown to this file, such as "$GITHUB_STEP_SUMMARY"
    #[arg(long, value_name = "FILE")]
    summary: Option<PathBuf>,
}

/// Parses a share of at least 1 %. The layout of a binary alone causes smaller differences, which could rarely be shown.
fn parse_max_regress(text: &str) -> Result<f64> {
    let share = parse_share(text)?;
    if share >= 0.01 {
        Ok(share)
    } else {
        Err(Error::Usage(format!("{text:?} is too little to be shown: expected 1% or more")))
    }
}

/// The findings of a comparison, and the notes below them.
pub type Compared = (Vec<Finding>, Vec<String>);

impl Judging {
    /// Compares, prints the answer, and returns its exit code. After a signal it returns the code of the signal, in a
    /// bisection, too: this code ends `git bisect run`, which would otherwise go on with the next revision.
    ///
    /// # Errors
    /// The command line or a file must be changed. Other errors are printed, and the exit code means "not measured".
    pub fn judge_comparison(&self, compare: impl FnOnce() -> Result<Compared>) -> Result<ExitCode> {
        let answer = match self.compare_and_print(compare) {
            Ok(answer) => answer,
            Err(error @ Error::Incomparable(_)) => {
                page::warn(&error);
                Answer::Incomparable
            }
            // Exit code 2: the command line or a file must be changed. A bisection skips the revision even then.
            Err(error) if !self.bisect && matches!(error.kind(), Kind::Usage | Kind::File) => {
                return Err(error);
            }
            // Exit code 1 would say "slower".
            Err(error) => {
                page::warn(&error);
                Answer::Unmeasured
            }
        };
        let exit = if self.bisect { answer.exit_for_bisect() } else { answer.exit_status() };
        Ok(exit.or_signal(signal::pending()).into())
    }

    fn compare_and_print(&self, compare: impl FnOnce() -> Result<Compared>) -> Result<Answer> {
        // The file of mutes may be invalid, so it is read before minutes of measuring.
        let mutes = self.mute.as_deref().map_or_else(|| Ok(Mutes::default()), Mutes::read)?;
        output::check_stdout()?;
        self.summary.as_deref().map_or(Ok(()), plain_file::check_can_append)?;
        let (mut findings, mut notes) = compare()?;
        if let Some(signal) = signal::pending() {
            page::warn(&format!("interrupted by {signal}: there is no answer"));
            return Ok(Answer::Unmeasured);
        }
        notes.extend(mutes.apply(&mut findings, quantity::unix_now()));
        let answer = answer(&findings);
        page::write(&render_answer(&findings, &notes, answer, layout()))?;
        if let Some(file) = &self.summary {
            // The answer holds even if the summary cannot be written.
            if let Err(error) =
                append_text(file, &markdown_summary(self.max_regress, &findings, &notes, answer))
            {
                page::warn(&error);
            }
        }
        Ok(answer)
    }
}

/// The text for a terminal: the notable findings, the notes, and the answer.
fn render_answer(findings: &[Finding], said: &[String], answer: Answer, layout: Layout) -> String {
    let width = page::prose_width(layout);
    let mut text = String::new();
    for alike in group_findings(findings) {
        text += &(page::wrap("• ", &finding_sentence(&alike), width) + "\n");
    }
    text.extend(said.iter().map(|sentence| page::wrap("note: ", sentence, width) + "\n"));
    text += &(page::wrap("", &answer_sentence(findings), width) + "\n");
    let tone = if answer == Answer::Pass { Tone::Bold } else { Tone::Red };
    text + &page::paint(tone, &format!("gate: {}; {}", answer.summary(), verdict_counts(findings)), layout)
        + "\n"
}

/// The findings that were compared, without the canaries, which the user did not select.
fn compared_findings(findings: &[Finding]) -> impl Iterator<Item = &Finding> {
    findings.iter().filter(|finding| finding.progress != Progress::Skipped && !finding.canary)
}

/// One sentence that sums up all compared findings.
fn answer_sentence(findings: &[Finding]) -> String {
    let compared = compared_findings(findings).map(|finding| answer::Compared {
        id: &finding.id,
        verdict: finding.verdict,
        change: finding.change,
    });
    answer::answer_sentence(&compared.collect::<Vec<_>>())
}

/// Whether a finding says more than "nothing changed".
fn is_notable(finding: &Finding) -> bool {
    finding.muted.is_some()
        || finding.grown.is_some()
        || (finding.verdict != Verdict::Same && finding.progress != Progress::Skipped)
}

/// The findings to show, in order. Cases without a verdict for the same reason share a line.
fn group_findings(findings: &[Finding]) -> Vec<Vec<&Finding>> {
    let mut groups: Vec<Vec<&Finding>> = Vec::new();
    for finding in findings.iter().filter(|finding| is_notable(finding)) {
        let same = |group: &&mut Vec<&Finding>| {
            let first = group[0];
            let why = |finding: &Finding| finding.reason.as_deref().map(sentence_shape);
            !first.verdict.is_change()
                && first.grown.is_none()
                && finding.grown.is_none()
                && (first.verdict, why(first), &first.muted)
                    == (finding.verdict, why(finding), &finding.muted)
        };
        match groups.iter_mut().find(same) {
            Some(group) => group.push(finding),
            None => groups.push(vec![finding]),
        }
    }
    groups
}

fn finding_sentence(alike: &[&Finding]) -> String {
    let finding = alike[0];
    let ids: Vec<_> = alike.iter().map(|finding| finding.id.as_str()).collect();
    let mut words = format!("{}: {}", id_list(&ids), finding.verdict_name());
    if let Some(change) = finding.change.filter(|change| change.is_finite() && alike.len() == 1) {
        words += &format!(" by {:+.2} %", 100.0 * change);
    }
    if let Some(reason) = &finding.reason {
        words += &format!(": {reason}");
    }
    if let Some(grown) = &finding.grown {
        words += &format!("; {grown}");
    }
    if let Some(reason) = &finding.muted {
        words += &format!("; overlooked: {reason}");
    }
    words
}

fn verdict_counts(findings: &[Finding]) -> String {
    let (failed, compared): (Vec<_>, Vec<_>) =
        compared_findings(findings).partition(|one| one.is_unmeasured());
    let verdicts: Vec<_> = compared.iter().map(|finding| finding.verdict).collect();
    let failed = (!failed.is_empty()).then(|| format!("{} {NOT_MEASURED}", failed.len()));
    let counts = (!verdicts.is_empty()).then(|| Verdict::format_counts(&verdicts));
    let all: Vec<_> = counts.into_iter().chain(failed).collect();
    if all.is_empty() { "no case was compared".into() } else { all.join(", ") }
}

fn markdown_summary(max_regress: f64, findings: &[Finding], said: &[String], answer: Answer) -> String {
    let mut text = format!(
        "### syscost gate: {}\n\n{}, slowdowns up to {} % let through\n\n",
        answer.summary(),
        verdict_counts(findings),
        100.0 * max_regress
    );
    let rows: Vec<_> = findings.iter().filter(|finding| is_notable(finding)).collect();
    let cells = |finding: &&Finding| {
        let change = finding.change.map_or("–".into(), |change| format!("{:+.2} %", 100.0 * change));
        let muted = finding.muted.as_ref().map(|reason| format!("overlooked: {reason}"));
        let why: Vec<_> = finding.reason.iter().chain(&finding.grown).chain(&muted).cloned().collect();
        vec![format!("`{}`", finding.id), finding.verdict_name().into(), change, why.join("; ")]
    };
    if !rows.is_empty() {
        let heads = ["case", "verdict", "change", "why"];
        text += &markdown_table(heads, |column| column != 2, rows.iter().map(cells));
    }
    text.extend(said.iter().map(|sentence| format!("\n* {sentence}\n")));
    text + "\n"
}

/// Appends text to a file. Other steps of a build may write to the same file.
fn append_text(file: &Path, text: &str) -> Result<()> {
    let written =
        plain_file::open_to_append(file)?.write_all(inert::neutralize_output(text, false).as_bytes());
    written.map_err(|e| Error::file(file, "appending to", e))
}

#[cfg(test)]
mod tests {
    use super::*;
    use syscost_engine::exit::Exit;

    #[test]
    fn an_error_ends_a_gate_as_the_manual_says_and_skips_a_step_of_a_bisection() {
        let missing = || Error::file("typo", "looking for", std::io::ErrorKind::NotFound.into());
        let errors: [(Error, Exit); 5] = [
            (Error::Usage("no such case".into()), Exit::Usage),
            (missing(), Exit::Usage),
            (Error::invalid_content("f", "unit", "ns", "x", "mend it"), Exit::Usage),
            (Error::Incomparable("release against debug".into()), Exit::Incomparable),
            (Error::Disturbed("a side died".into()), Exit::Skipped),
        ];
        for (error, exit) in errors {
            let judging = |bisect| Judging { max_regress: 0.03, mute: None, bisect, summary: None };
            let (kind, text) = (error.kind(), error.to_string());
            let ended = judging(false).judge_comparison(|| Err(error));
            let code = ended.unwrap_or_else(|error| Exit::from(error.kind()).into());
            assert_eq!(code, exit.into(), "{kind:?} {text}");
        }
        let judging = Judging { max_regress: 0.03, mute: None, bisect: true, summary: None };
        for error in [missing(), Error::Incomparable("release against debug".into())] {
            assert_eq!(judging.judge_comparison(|| Err(error)).unwrap(), Exit::Skipped.into());
        }
    }
}

//! The end of a run: tables, what went wrong, and the exit code.

use super::arguments::{Arguments, Mode};
use super::options::Options;
use super::plan::Planned;
use super::terminal::{layout, output_error, print, report_error};
use crate::case::Group;
use crate::environment::Fingerprint;
use crate::environment::doctor::examine;
use crate::error::Result;
use crate::exit::Exit;
use crate::platform::kernel_files::KernelFiles;
use crate::platform::process::{find_on_path, own_program_file};
use crate::platform::signal;
use crate::record::baseline::Complaint;
use crate::record::{CaseRecord, Headline, Outcome, Record, Tally};
use crate::render::summary::{Summary, answer_lines, answer_screen};
use crate::render::table::{Layout, record_table};
use crate::study::prediction::{Overrides, apply_overrides};
use crate::study::published::{UsualRange, find_reference, reference_names, usual_ranges};
use crate::study::standout::nothing_measured;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// How a run ended.
pub(super) struct RunEnd {
    pub(super) record: Record,
    pub(super) complaints: Vec<Complaint>,
    /// Sentences about what could not be saved.
    pub(super) unsaved: Vec<String>,
    /// The file of the record; `None` if no record was to be saved.
    pub(super) saved: Result<Option<PathBuf>>,
    /// The screen that ends a whole run; `None` if tables are printed.
    pub(super) screen: Option<FirstScreen>,
    /// Comparable runs before it, the newest first.
    pub(super) earlier: Vec<Record>,
    /// A sentence on the cases that had not begun when the time limit was reached, if there are any.
    pub(super) not_begun: Option<String>,
}

/// Prints the tables of a run, with the user's own predictions.
pub(super) struct FinalReport {
    overrides: Overrides,
}

impl FinalReport {
    /// Reads the file of predictions before anything is measured.
    ///
    /// # Errors
    /// The file cannot be read, or is malformed.
    pub(super) fn new(options: &Options) -> Result<Self> {
        let overrides = options.predictions.as_deref().map(Overrides::read).transpose()?.unwrap_or_default();
        Ok(Self { overrides })
    }

    /// Prints the table and reports everything that went wrong. Returns the exit code of the run.
    pub(super) fn print_all(&self, end: RunEnd, arguments: &Arguments, options: &Options) -> Exit {
        let RunEnd { mut record, complaints, unsaved, saved, screen, earlier, not_begun } = end;
        apply_overrides(&self.overrides, &mut record);
        if arguments.bencher {
            record.cases().for_each(|(_, case)| print(&bencher_line(case, &record.unit)));
        }
        // Neither a test nor bencher's format has a table.
        if arguments.mode == Mode::Measure && !arguments.bencher {
            let layout = layout();
            let screen = screen.map(|screen| screen.render(&record, &earlier, None, layout));
            let tables = || record_table(&record, None, &[], layout);
            print(screen.unwrap_or_else(tables).trim_end());
        }
        let wrong: Vec<_> =
            complaints.into_iter().map(|complaint| complaint.sentence).chain(unsaved).collect();
        report_first_errors(&wrong);
        if let Some(name) = &arguments.compare {
            report_error(format_args!(
                "the verdicts on {name} above are Criterion's, by samples, and say that unchanged operations changed; `syscost compare` and \
                 `syscost ab` tell whether something did"
            ));
        }
        not_begun.iter().for_each(report_error);
        let Tally { measured, unwitnessed, failed, disturbed, .. } = record.tally();
        if let Some(signal) = signal::pending() {
            let kept = if matches!(saved, Ok(Some(_))) { ", and are kept" } else { "" };
            report_error(format_args!("interrupted by {signal}: {measured} cases were measured{kept}"));
        }
        if let Err(error) = &saved {
            report_error(error);
            report_error("the run was not saved to its end; the table above is complete");
        }
        let lost = output_error();
        if let Some(error) = &lost {
            report_error(error);
        }
        let without = nothing_measured([&record]).filter(|_| arguments.mode == Mode::Measure);
        let without = without.filter(|without| options.wants_a_number || !without.is_all_skipped());
        if let Some(without) = without.as_ref().filter(|_| signal::pending().is_none()) {
            report_error(without.sentence());
        }
        let open =
            options.strict && (disturbed > 0 || unwitnessed > 0 || record.unsettled_cases().next().is_some());
        let nothing = not_begun.is_some() && record.cases().next().is_none();
        let incomplete = saved.is_err() || lost.is_some() || without.is_some() || nothing;
        match failed > 0 || incomplete || !wrong.is_empty() {
            true => Exit::Disproved,
            false if open => Exit::Unsettled,
            false => Exit::Success,
        }
        .or_signal(signal::pending())
    }
}

/// Prints the first three of these sentences and the number of the others.
fn report_first_errors(sentences: &[String]) {
    const FEW: usize = 3;
    sentences.iter().take(FEW).for_each(report_error);
    if let Some(more) = sentences.len().checked_sub(FEW).filter(|&more| more > 0) {
        report_error(format_args!("and {more} more of that kind"));
    }
}

/// `--list`: prints the ids as Criterion does.
///
/// # Errors
/// The standard output cannot be written to.
pub(super) fn print_ids(planned: &[Planned]) -> Result<Exit> {
    for id in planned.iter().flat_map(|planned| &planned.ids) {
        print(&format!("{id}: benchmark"));
    }
    output_error().map_or(Ok(Exit::Success), Err)
}

// `--output-format bencher`: the lines of Rust's own `#[bench]`, which several CI tools read.
//
// Criterion's version of this format cuts values to whole numbers, so a third of a nanosecond becomes 0.

/// `test ID ... bench: VALUE UNIT/iter (+/- STANDARD DEVIATION)`, with decimals as recent versions of libtest print.
pub(super) fn bencher_line(case: &CaseRecord, unit: &str) -> String {
    match &case.outcome {
        Outcome::Measured(m) => format!(
            "test {} ... bench: {:>14.4} {unit}/iter (+/- {:.4})",
            case.id,
            m.figure().estimate,
            m.standard_deviation
        ),
        Outcome::Skipped(sentence) => format!("test {} ... ignored, {sentence}", case.id),
        Outcome::Disturbed(sentence) => format!("test {} ... ignored, disturbed: {sentence}", case.id),
        Outcome::Failed(sentence) => format!("test {} ... FAILED: {sentence}", case.id),
    }
}

// The end of a whole run: one screen in place of every table.

/// Data collected at the beginning of a whole run for the screen at its end.
pub(super) struct FirstScreen {
    headlines: Vec<(String, Headline)>,
    doctor: Vec<String>,
    usual: BTreeMap<String, UsualRange>,
}

impl FirstScreen {
    /// Collects the data for a run over several whole groups; `None` if the user selected cases or asked for all tables.
    pub(super) fn for_run(planned: &[Planned], arguments: &Arguments, options: &Options) -> Option<Self> {
        let is_part = arguments.filter.is_some() || !arguments.skip.is_empty();
        let chosen = is_part || arguments.all;
        let whole = planned.len() > 1 && !chosen;
        whole.then(|| {
            let (files, scratch) = (KernelFiles::live(), options.scratch_parent());
            let known = Fingerprint::take(&files, &scratch);
            // The machine is examined before the run, so that the findings do not include the run's own load.
            let doctor = examine(&files, &known, &scratch).into_iter().map(|finding| finding.fact).collect();
            let headlines = group_headlines(planned.iter().map(|planned| planned.group));
            let references: Vec<_> = reference_names().filter_map(find_reference).collect();
            let usual = known.machine_kind().map(|kind| usual_ranges(&references, &kind)).unwrap_or_default();
            Self { headlines, doctor, usual }
        })
    }

    /// The screen of this record as text; `state` describes an unfinished run.
    pub(super) fn render(
        &self,
        record: &Record,
        earlier: &[Record],
        state: Option<&str>,
        layout: Layout,
    ) -> String {
        let (doctor, program) = (Some(&self.doctor[..]), program_command());
        let summary = Summary { record, headlines: &self.headlines, earlier, doctor, program: &program };
        answer_screen(&summary, &self.usual, state, layout)
    }

    /// A line for each answer of an unfinished run, for a log.
    pub(super) fn answer_lines(&self, record: &Record) -> Vec<String> {
        let summary = Summary { record, headlines: &self.headlines, earlier: &[], doctor: None, program: "" };
        answer_lines(&summary)
    }
}

/// The command that starts the program `syscost` from here: its name if it is on the search path or not found, else its path
/// relative to the current directory. A bench is in `target/release/deps`, and the program in the directory above.
pub fn program_command() -> String {
    const NAME: &str = "syscost";
    if find_on_path(NAME).is_some() {
        return NAME.into();
    }
    let own = own_program_file().unwrap_or_default();
    let near = own.ancestors().skip(1).take(2).map(|directory| directory.join(NAME));
    let Some(path) = near.into_iter().find(|path| path.is_file()) else { return NAME.into() };
    let here = std::env::current_dir().unwrap_or_default();
    path.strip_prefix(&here).unwrap_or(&path).display().to_string()
}

/// The headlines of these groups, each with the id of its case.
pub fn group_headlines<'a>(groups: impl Iterator<Item = &'a Group>) -> Vec<(String, Headline)> {
    let named_headlines = |group: &'a Group| {
        group.headlines.iter().map(|headline| (format!("{}/{}", group.name, headline.case), *headline))
    };
    groups.flat_map(named_headlines).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{Interval, Measured, fixture_run};

    #[test]
    fn a_third_of_a_nanosecond_is_not_zero() {
        let median = Interval { estimate: 0.3134, low: 0.31, high: 0.32 };
        let measured = Measured { median, standard_deviation: 0.0021, ..Default::default() };
        assert_eq!(
            bencher_line(&fixture_run::measured_case("empty_loop/register", measured), "ns"),
            "test empty_loop/register ... bench:         0.3134 ns/iter (+/- 0.0021)"
        );
    }
}

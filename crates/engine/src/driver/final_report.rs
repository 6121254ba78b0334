//! The end of a run: tables, what went wrong, and the exit code.

use super::arguments::{Arguments, Mode};
use super::bencher;
use super::first_screen::FirstScreen;
use super::options::Options;
use super::plan::Planned;
use super::terminal::{layout, output_error, print, report_error};
use crate::error::Result;
use crate::exit::Exit;
use crate::platform::signal;
use crate::record::baseline::Complaint;
use crate::record::{Record, Tally};
use crate::render::table::{Against, Layout, format_sentences, record_table};
use crate::study::prediction::{Overrides, apply_overrides};
use crate::study::published::{self, Published};
use crate::study::unmeasured::nothing_measured;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// How a run ended.
pub(super) struct Outcome {
    pub(super) record: Record,
    pub(super) complaints: Vec<Complaint>,
    /// Sentences about what could not be saved.
    pub(super) unsaved: Vec<String>,
    /// Where the record is, if it was to be saved.
    pub(super) saved: Result<Option<PathBuf>>,
    /// The end of a whole run; `None` where tables are asked for.
    pub(super) screen: Option<FirstScreen>,
    /// Comparable runs before it, the newest first.
    pub(super) earlier: Vec<Record>,
    /// How many cases had no time.
    pub(super) not_begun: Option<String>,
}

/// Prints the tables of a run, with the predictions and published machines that the user asked for.
pub(super) struct FinalReport {
    overrides: Overrides,
    against: Vec<Machine>,
}

type Below = dyn Fn(&Record) -> Vec<String>;

/// A published machine as a column of the table.
struct Machine {
    name: String,
    /// Nanoseconds by case id.
    values: BTreeMap<String, f64>,
    /// Sentences about it that belong below the table of a record.
    below: Box<Below>,
}

impl FinalReport {
    /// Reads the user's files before anything is measured.
    ///
    /// # Errors
    /// A file of predictions is broken, or a published machine is unknown.
    pub(super) fn new(options: &Options) -> Result<Self> {
        Ok(Self { overrides: overrides(options)?, against: against(options)? })
    }

    /// Prints the table, and everything that went wrong.
    pub(super) fn print_all(&self, outcome: Outcome, arguments: &Arguments, options: &Options) -> Exit {
        let Outcome { mut record, complaints, unsaved, saved, screen, earlier, not_begun } = outcome;
        apply_overrides(&self.overrides, &mut record);
        if arguments.bencher {
            record.cases().for_each(|(_, case)| print(&bencher::bencher_line(case, &record.unit)));
        }
        if has_table(arguments) {
            let layout = layout();
            let screen = screen.map(|screen| screen.render(&record, &earlier, None, layout));
            let tables = || {
                record_table(&record, None, &self.against_columns(), layout)
                    + &self.source_notes(&record, layout)
            };
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

    fn against_columns(&self) -> Vec<Against<'_>> {
        self.against.iter().map(|Machine { name, values, .. }| Against { name, values }).collect()
    }

    /// The sources of the published values.
    fn source_notes(&self, record: &Record, layout: Layout) -> String {
        let said: Vec<_> = self.against.iter().flat_map(|machine| (machine.below)(record)).collect();
        format_sentences(&said, layout)
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

/// Whether the run ends with a table: not for tests, nor in bencher's format.
fn has_table(arguments: &Arguments) -> bool {
    arguments.mode == Mode::Measure && !arguments.bencher
}

/// `--list`: prints the ids as Criterion does.
///
/// # Errors
/// The standard output does not take them.
pub(super) fn print_ids(planned: &[Planned]) -> Result<Exit> {
    for id in planned.iter().flat_map(|planned| &planned.ids) {
        print(&format!("{id}: benchmark"));
    }
    output_error().map_or(Ok(Exit::Success), Err)
}

fn overrides(options: &Options) -> Result<Overrides> {
    options.predictions.as_deref().map_or_else(|| Ok(Overrides::default()), Overrides::read)
}

fn against(options: &Options) -> Result<Vec<Machine>> {
    let Some(names) = &options.against else { return Ok(Vec::new()) };
    let machine = |published: Published| Machine {
        name: published.name.clone(),
        values: published.values_ns(),
        below: Box::new(move |record| published.notes(record)),
    };
    Ok(published::find(names)?.into_iter().map(machine).collect())
}

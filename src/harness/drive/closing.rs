//! The last word: the table, what could not be done, and the exit code.

use super::super::arguments::{Arguments, Mode};
use super::super::plan::Planned;
use super::super::progress::{Progress, layout, print};
use super::{Options, report};
use crate::platform::signal;
use crate::record::Record;
use crate::record::baseline::Complaint;
use crate::render::table::{Against, Layout, sentences, table};
use crate::study::prediction::Overrides;
#[cfg(feature = "cli")]
use crate::study::published::Published;
use crate::{Error, Result};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;

/// How a run ended.
pub(super) struct Outcome {
    pub(super) record: Record,
    pub(super) complaints: Vec<Complaint>,
    pub(super) unsaved: Vec<String>,
    pub(super) saved: Result<Option<PathBuf>>,
}

/// What a reader asked to see beside the numbers.
pub(super) struct Closing {
    overrides: Overrides,
    against: Vec<Machine>,
    /// Whether the table of the whole run follows the parts.
    more: bool,
}

type Below = dyn Fn(&Record) -> Vec<String>;

/// A published machine.
struct Machine {
    name: String,
    values: BTreeMap<String, f64>,
    /// What must be said about it below the table of a record.
    below: Box<Below>,
}

impl Closing {
    /// Reads the reader's files now, so that a mistake in them is told before minutes of measuring.
    pub(super) fn new(options: &Options, groups: usize) -> Result<Self> {
        Ok(Self { overrides: overrides(options)?, against: against(options)?, more: groups > 1 })
    }

    /// The table of the group that was measured last.
    pub(super) fn part(&self, record: &Record, arguments: &Arguments, progress: &Progress) {
        if let (Some(run), true) = (record.groups.last(), shown(arguments)) {
            let mut record = record.clone();
            let name = run.name.clone();
            crate::study::prediction::apply(&self.overrides, &mut record);
            let layout = Layout { brief: self.more, ..layout() };
            let below = if self.more { String::new() } else { self.below(&record, layout) };
            progress.print(&(table(&record, Some(&name), &self.columns(), layout) + &below));
        }
    }

    /// The table of the whole run, unless its one part has just been shown, and everything that went wrong.
    pub(super) fn whole(&self, outcome: Outcome, arguments: &Arguments) -> ExitCode {
        let Outcome { mut record, complaints, unsaved, saved } = outcome;
        // Each has a case, as was checked beforehand; a filter may have left it out.
        crate::study::prediction::apply(&self.overrides, &mut record);
        if self.more && shown(arguments) {
            let layout = layout();
            print(&(table(&record, None, &self.columns(), layout) + &self.below(&record, layout)));
        }
        let sentences = complaints.into_iter().map(|complaint| complaint.sentence).chain(unsaved);
        let told = tell(&sentences.collect::<Vec<_>>());
        if let Some(signal) = signal::pending() {
            let (measured, _, _) = record.tally();
            let kept = if matches!(saved, Ok(Some(_))) { ", and are kept" } else { "" };
            report(&Error::Usage(format!("interrupted by {signal}: {measured} cases were measured{kept}")));
        }
        let saved = saved.inspect_err(report_unsaved).is_ok();
        code(&record, saved && !told)
    }

    fn columns(&self) -> Vec<Against<'_>> {
        self.against.iter().map(|Machine { name, values, .. }| Against { name, values }).collect()
    }

    /// Whose the values beside ours are.
    fn below(&self, record: &Record, layout: Layout) -> String {
        let said: Vec<_> = self.against.iter().flat_map(|machine| (machine.below)(record)).collect();
        sentences(&said, layout)
    }
}

/// Tells the first few of many sentences of one kind. Whether there was any.
fn tell(sentences: &[String]) -> bool {
    const FEW: usize = 3;
    sentences.iter().take(FEW).for_each(|sentence| report(&Error::Usage(sentence.clone())));
    if let Some(more) = sentences.len().checked_sub(FEW).filter(|&more| more > 0) {
        report(&Error::Usage(format!("and {more} more of that kind")));
    }
    !sentences.is_empty()
}

fn report_unsaved(error: &Error) {
    report(error);
    report(&Error::Usage("the run was not saved to its end; the table above is complete".into()));
}

/// Criterion's lines, libtest's lines and tests need no table.
fn shown(arguments: &Arguments) -> bool {
    arguments.mode == Mode::Measure && !arguments.bencher
}

fn code(record: &Record, well: bool) -> ExitCode {
    let (_, _, failed) = record.tally();
    match signal::pending() {
        Some(signal) => ExitCode::from(128 + signal as u8),
        None => ExitCode::from(u8::from(failed > 0 || !well)),
    }
}

/// `--list`, in Criterion's words.
pub(super) fn list(planned: &[Planned]) -> ExitCode {
    for id in planned.iter().flat_map(|planned| &planned.ids) {
        print(&format!("{id}: benchmark"));
    }
    ExitCode::SUCCESS
}

#[cfg(feature = "cli")]
fn overrides(options: &Options) -> Result<Overrides> {
    options.predictions.as_deref().map_or_else(|| Ok(Overrides::default()), Overrides::read)
}

#[cfg(feature = "cli")]
fn against(options: &Options) -> Result<Vec<Machine>> {
    let Some(names) = &options.against else { return Ok(Vec::new()) };
    let found = crate::study::published::find(names)?;
    let machine = |published: Published| Machine {
        name: published.name.clone(),
        values: published.ns(),
        below: Box::new(move |record| published.below(record)),
    };
    Ok(found.into_iter().map(machine).collect())
}

#[cfg(not(feature = "cli"))]
fn overrides(options: &Options) -> Result<Overrides> {
    match &options.predictions {
        Some(_) => Err(Error::Usage("reading predictions needs the crate's feature cli".into())),
        None => Ok(Overrides::default()),
    }
}

#[cfg(not(feature = "cli"))]
fn against(options: &Options) -> Result<Vec<Machine>> {
    match &options.against {
        Some(_) => Err(Error::Usage("published values need the crate's feature cli".into())),
        None => Ok(Vec::new()),
    }
}

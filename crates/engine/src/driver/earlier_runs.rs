//! The use of earlier runs of this machine: they give the spread of a figure from run to run, which a single run cannot show.

use crate::record::store::Store;
use crate::record::{GroupRun, Outcome, Quiet, Record};
use crate::study::alike::{is_same_series, series_remark};
use crate::study::quiet::{check_against_last, widen_to_earlier};
use crate::study::reference_frequency::undisturbed_frequency_of_run;
use std::collections::BTreeMap;

/// Runs that are looked at, the newest of this machine.
const NEWEST: usize = 8;
/// Largest number of stored runs that are opened to find earlier runs of the same series.
const FILES: usize = 12;

/// Earlier runs of the same series, the newest first.
#[derive(Default)]
pub(super) struct EarlierRuns {
    pub(super) records: Vec<Record>,
    /// The highest frequency that the core had in one of them when it was left alone, Hz.
    pub(super) core_hz: Option<f64>,
    /// The differences from the last run, or why there is no last run.
    pub(super) remark: Option<String>,
    /// A sentence if the clock was set back since one of them was stored.
    pub(super) set_back: Option<String>,
}

impl EarlierRuns {
    /// Those that are stored beside this run.
    pub(super) fn load(record: &Record, store: &Store) -> Self {
        // The saving of this run reports a store that cannot be listed.
        let files = store.run_files().unwrap_or_default();
        let newest = files.iter().rev().take(FILES).filter_map(|path| Store::load(path).ok());
        let mut newest = newest.peekable();
        let first = newest.peek().cloned();
        let set_back = first.as_ref().and_then(|newest| set_back_sentence(newest, record));
        let records: Vec<Record> =
            newest.filter(|earlier| is_same_series(earlier, record)).take(NEWEST).collect();
        let core_hz = records.iter().filter_map(undisturbed_frequency_of_run).reduce(f64::max);
        let remark = series_remark(record, &records, first.as_ref());
        Self { records, core_hz, remark, set_back }
    }

    /// Compares the figures of a run with those of the last earlier run, and widens its intervals by the figures
    /// of all earlier runs.
    pub(super) fn widen_intervals(&self, record: &mut Record) {
        let mut known: BTreeMap<(&str, &str), Vec<Quiet>> = BTreeMap::new();
        for (group, case) in self.records.iter().flat_map(Record::cases) {
            let quiet = case.measured().and_then(|measured| measured.quiet);
            known.entry((&case.id, &group.version)).or_default().extend(quiet);
        }
        for GroupRun { version, cases, .. } in &mut record.groups {
            for case in cases {
                let Outcome::Measured(measured) = &mut case.outcome else { continue };
                let earlier = known.get(&(case.id.as_str(), version.as_str()));
                if let (Some(quiet), Some(earlier)) = (&mut measured.quiet, earlier) {
                    earlier.first().inspect(|last| check_against_last(quiet, last));
                    widen_to_earlier(quiet, earlier);
                }
            }
        }
    }
}

/// A sentence if a run that is stored when this one begins began later by the clock. A run that began meanwhile is stored
/// later, and says nothing about the clock.
fn set_back_sentence(newest: &Record, own: &Record) -> Option<String> {
    let ahead = newest.started.checked_sub(own.started).filter(|&seconds| seconds > 0)?;
    let cause = match newest.boot.is_some() && newest.boot == own.boot {
        true => "the clock was set back",
        false => "the clock was set back, or the clock of the machine that stored it is ahead",
    };
    let (newest, own) = (&newest.run, &own.run);
    Some(format!(
        "the stored run {newest} began {ahead} s later than this one, {own}: {cause}; `syscost report` takes the newest by \
         name, and `syscost report {own}` this one"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::fixture_run;

    fn run(started: u64, boot: &str) -> Record {
        Record { started, boot: Some(boot.into()), run: started.to_string(), ..fixture_run::fixture_record() }
    }

    #[test]
    fn only_a_stored_run_that_began_later_says_that_the_clock_was_set_back() {
        assert_eq!(set_back_sentence(&run(7, "a"), &run(7, "a")), None);
        assert_eq!(set_back_sentence(&run(6, "a"), &run(7, "a")), None);
        let sentence = set_back_sentence(&run(67, "a"), &run(7, "a")).expect("set back");
        assert!(sentence.contains("67 began 60 s later") && !sentence.contains("ahead"), "{sentence}");
        assert!(set_back_sentence(&run(8, "a"), &run(7, "b")).expect("or ahead").contains("is ahead"));
    }
}

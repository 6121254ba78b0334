//! What earlier runs of this machine say about a run: how far a figure lies from run to run, which no single run can know.

use crate::record::store::Store;
use crate::record::{GroupRun, Outcome, Record};
use crate::study::quiet::widen as widened;
use std::collections::BTreeMap;

/// Runs that are looked at, the newest of this machine.
const NEWEST: usize = 10;
/// Files that are opened to find them.
const FILES: usize = 30;

/// Widens the intervals of a run to the figures of earlier ones of the same machine, kernel, scale and unit.
pub(super) fn widen(record: &mut Record, store: &Store) {
    // What cannot be listed is reported by the saving of this run.
    let files = store.run_files().unwrap_or_default();
    let newest = files.iter().rev().take(FILES).filter_map(|path| Store::load(path).ok());
    let earlier: Vec<_> = newest.filter(|earlier| is_alike(earlier, record)).take(NEWEST).collect();
    let mut figures: BTreeMap<(&str, &str), Vec<f64>> = BTreeMap::new();
    for (group, case) in earlier.iter().flat_map(Record::cases) {
        if let Some(quiet) = case.measured().and_then(|measured| measured.quiet) {
            figures.entry((&case.id, &group.version)).or_default().push(quiet.figure.estimate);
        }
    }
    for GroupRun { version, cases, .. } in &mut record.groups {
        for case in cases {
            if let Outcome::Measured(measured) = &mut case.outcome {
                let known = figures.get(&(case.id.as_str(), version.as_str()));
                if let (Some(quiet), Some(known)) = (&mut measured.quiet, known) {
                    widened(quiet, known);
                }
            }
        }
    }
}

/// Whether the figures of two runs may be compared without further ado.
fn is_alike(earlier: &Record, record: &Record) -> bool {
    let (a, b) = (&earlier.fingerprint, &record.fingerprint);
    earlier.run != record.run
        && (&earlier.unit, &earlier.scale) == (&record.unit, &record.scale)
        && (&a.cpu_model, &a.product, &a.cpus_online) == (&b.cpu_model, &b.product, &b.cpus_online)
        && (&a.kernel_release, &a.mitigations) == (&b.kernel_release, &b.mitigations)
        && (&a.opt_level, a.debug_assertions) == (&b.opt_level, b.debug_assertions)
}

//! The curves of a finished group, and lines through series of its cases.

use crate::case::Group;
use crate::environment::Fingerprint;
use crate::record::GroupRun;
#[cfg(feature = "cli")]
use crate::record::Record;
use crate::study::{drawn_curve, fit};
use crate::suite;

/// Adds the curves to a record that was written before curves were stored.
#[cfg(feature = "cli")]
pub fn add_missing_curves(record: &mut Record) {
    let old = record.groups.iter_mut().filter(|run| run.curves.is_empty());
    old.for_each(|run| add_curves(run, &record.fingerprint));
}

/// Adds the curves of a group of this crate. They are computed from the cases alone, so this works for old records.
pub(super) fn add_curves(run: &mut GroupRun, fingerprint: &Fingerprint) {
    let Some(group) = suite::find_group(&run.name) else { return };
    run.curves =
        group.curves.iter().filter_map(|curve| drawn_curve::draw_curve(curve, run, fingerprint)).collect();
}

/// Adds the fitted lines that the group asks for.
pub(super) fn add_fits(run: &mut GroupRun, group: &Group) {
    run.fits = group.fits.iter().filter_map(|f| fit::fit_cases(f.step, f.prefix, &run.cases)).collect();
}

//! The curves of a finished group, and lines through series of its cases.

use crate::case::Group;
use crate::environment::Fingerprint;
use crate::record::Record;
use crate::record::{Axis, Curve, CurveRecord, GroupRun};
use crate::study::{drawn_curve, fit};

/// Adds the curves to a record of these groups that was written before curves were stored: they are computed from the
/// cases alone.
pub fn add_missing_curves(record: &mut Record, groups: &[Group]) {
    for run in record.groups.iter_mut().filter(|run| run.curves.is_empty()) {
        if let Some(group) = groups.iter().find(|group| group.name == run.name) {
            run.curves = draw_curves(group.curves, run, &record.fingerprint);
        }
    }
}

/// Adds the curves and the fitted lines that the group asks for, and those of its sweeps.
pub(super) fn add_series(run: &mut GroupRun, group: &Group, fingerprint: &Fingerprint) {
    let sweeps = sweeps(group);
    run.fits = group.fits.iter().filter_map(|f| fit::fit_cases(f.step, f.prefix, &run.cases)).collect();
    run.fits.extend(sweeps.iter().filter_map(|(prefix, of)| fit::fit_sweep(of, prefix, &run.cases)));
    run.curves = draw_curves(group.curves, run, fingerprint);
    for (prefix, parameter) in sweeps {
        // A few bytes, once a run: the curves of a group are constants.
        let prefix: &'static str = prefix.leak();
        let title = prefix.split_once('/').map_or(prefix, |(_, name)| name.trim_end_matches('/'));
        let curve = Curve::new(prefix, title, Axis::Count(parameter));
        run.curves.extend(drawn_curve::draw_curve(&curve, run, fingerprint));
    }
}

fn draw_curves(curves: &[Curve], run: &GroupRun, fingerprint: &Fingerprint) -> Vec<CurveRecord> {
    curves.iter().filter_map(|curve| drawn_curve::draw_curve(curve, run, fingerprint)).collect()
}

/// The beginnings of the ids of sweeps, with the names of their parameters.
fn sweeps(group: &Group) -> Vec<(String, &'static str)> {
    let mut sweeps = Vec::new();
    for case in (group.cases)() {
        let id = group.id(&case);
        let sweep = case.parameter.zip(id.rfind('/')).map(|(of, at)| (id[..=at].to_owned(), of));
        sweeps.extend(sweep.filter(|sweep| !sweeps.contains(sweep)));
    }
    sweeps
}

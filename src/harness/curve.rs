//! The joint between the table of curves and what was measured.

use crate::environment::Fingerprint;
use crate::record::GroupRun;
use crate::study::drawn_curve;
use crate::suite;

/// Draws the curves of a group that this crate knows. Those of an older record, which has none, can be drawn from
/// its cases as well.
pub fn add_curves(run: &mut GroupRun, fingerprint: &Fingerprint) {
    let Some(group) = suite::find(&run.name) else { return };
    run.curves = group.curves.iter().filter_map(|curve| drawn_curve::draw(curve, run, fingerprint)).collect();
}

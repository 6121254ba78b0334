//! Cases measured by displacement while the machine was not quiet, and other flags of their estimates.

use crate::record::GroupRun;
use crate::statistic::fluid_cost::NOT_QUIET;

/// Notes on cases measured by displacement: one for each flag of an estimate, and one that lists all cases that
/// ran while the machine was not quiet.
pub(super) fn unquiet_notes(run: &GroupRun) -> Vec<String> {
    let (mut notes, mut ids, mut most) = (Vec::new(), Vec::new(), 0.0_f64);
    for case in &run.cases {
        let Some(displaced) = case.measured().and_then(|measured| measured.displaced.as_ref()) else {
            continue;
        };
        if !displaced.quiet {
            ids.push(case.id.as_str());
            most = most.max(displaced.others);
        }
        // The flag that says how the machine was not quiet stays in the record; the note below sums these up.
        let flags = displaced.flags.iter().filter(|flag| !flag.starts_with(NOT_QUIET));
        notes.extend(flags.map(|flag| format!("{}: {flag}", case.id)));
    }
    if !ids.is_empty() {
        notes.push(format!(
            "{NOT_QUIET} in {} cases (other tasks had up to {:.0} % of the median run): they have no estimate by the \
             paper's formula: {}",
            ids.len(),
            100.0 * most,
            ids.join(", ")
        ));
    }
    notes
}

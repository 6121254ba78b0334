//! Which runs may be compared without further ado.

use crate::record::{Measured, Record};

/// Whether an earlier run is of the same machine, kernel, build, scale and unit.
pub fn is_alike(earlier: &Record, record: &Record) -> bool {
    let (a, b) = (&earlier.fingerprint, &record.fingerprint);
    earlier.run != record.run
        && (&earlier.unit, &earlier.scale) == (&record.unit, &record.scale)
        && (&a.cpu_model, &a.product, &a.cpus_online) == (&b.cpu_model, &b.product, &b.cpus_online)
        && (&a.kernel_release, &a.mitigations) == (&b.kernel_release, &b.mitigations)
        && (&a.opt_level, a.debug_assertions) == (&b.opt_level, b.debug_assertions)
}

/// The figure of a case in this run over that of an earlier run, both at one frequency of the core. `None` if the case was not
/// measured in both, or is of another version.
pub fn change(record: &Record, earlier: &Record, id: &str) -> Option<f64> {
    let find = |of: &Record| {
        let (group, case) = of.cases().find(|(_, case)| case.id == id)?;
        Some((group.version.clone(), case.measured().map(figure)??))
    };
    let ((version, (now, hz)), (then_version, (then, then_hz))) = (find(record)?, find(earlier)?);
    let by = hz.zip(then_hz).map_or(1.0, |(wanted, own)| own / wanted);
    (version == then_version && then > 0.0).then(|| now / (by * then))
}

/// The figure, and the frequency of the core for which it holds.
fn figure(measured: &Measured) -> Option<(f64, Option<f64>)> {
    let figure = measured.figure().estimate;
    figure.is_finite().then(|| (figure, measured.quiet.and_then(|quiet| quiet.core_hz)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::fixture_run;

    #[test]
    fn a_run_is_not_its_own_predecessor_and_another_kernel_is_another_machine() {
        let record = fixture_run::record();
        let mut earlier = record.clone();
        assert!(!is_alike(&earlier, &record));
        earlier.run = "earlier".into();
        assert!(is_alike(&earlier, &record));
        assert_eq!(change(&record, &earlier, "call/u64/3"), Some(1.0));
        earlier.groups[0].version = "99".into();
        let id = &record.groups[0].cases[0].id;
        assert_eq!(change(&record, &earlier, id), None);
        earlier.fingerprint.kernel_release = Some("another".into());
        assert!(!is_alike(&earlier, &record));
    }
}

//! The rule by which runs belong to one series. Runs of one series are compared without a warning.

use crate::environment::{Difference, Series};
use crate::record::{Measured, Record};

/// Whether an earlier run belongs to the same series: scale and unit are the same, and no known property on which all
/// numbers depend differs (`src/manual/series.md`).
pub fn is_same_series(earlier: &Record, record: &Record) -> bool {
    is_comparable_run(earlier, record) && earlier.fingerprint.is_same_series(&record.fingerprint)
}

/// Whether `earlier` is another run, with the same unit and scale.
fn is_comparable_run(earlier: &Record, record: &Record) -> bool {
    earlier.run != record.run && (&earlier.unit, &earlier.scale) == (&record.unit, &record.scale)
}

/// A sentence on the fields that differ from the last run of the same series and may change the numbers. If there is no
/// such run, a sentence on why the newest run belongs to another series. `None` if no such field differs.
pub fn series_remark(record: &Record, alike: &[Record], newest: Option<&Record>) -> Option<String> {
    let (last, asked) = match (alike.first(), newest.filter(|newest| is_comparable_run(newest, record))) {
        (Some(last), _) => (last, Series::Reported),
        (None, Some(newest)) => (newest, Series::Another),
        (None, None) => return None,
    };
    let all = record.fingerprint.differences(&last.fingerprint);
    let text = |d: &Difference| format!("{} is {}, and was {}", d.field, d.ours, d.theirs);
    let changes: Vec<String> = all.iter().filter(|difference| difference.series == asked).map(text).collect();
    let (changes, run) = (changes.join("; "), &last.run);
    match asked {
        _ if changes.is_empty() => None,
        Series::Another => Some(format!(
            "this run begins a series of its own, and no earlier run is its last one: {changes}, as the run {run} was made; \
             `syscost help series` says what makes another series"
        )),
        _ => Some(format!(
            "the last run, {run}, was made otherwise, and its figures may differ for that reason: {changes}"
        )),
    }
}

/// The figure of a case in this run divided by that in an earlier run, both converted to one core frequency. `None` if the
/// case was not measured in both, or its group has another version.
pub fn change_ratio(record: &Record, earlier: &Record, id: &str) -> Option<f64> {
    let find = |of: &Record| {
        let (group, case) = of.cases().find(|(_, case)| case.id == id)?;
        Some((group.version.clone(), case.measured().map(figure_and_frequency)??))
    };
    let ((version, (now, hz)), (then_version, (then, then_hz))) = (find(record)?, find(earlier)?);
    let by = hz.zip(then_hz).map_or(1.0, |(wanted, own)| own / wanted);
    (version == then_version && then > 0.0).then(|| now / (by * then))
}

/// The figure, and the core frequency for which it holds, Hz.
fn figure_and_frequency(measured: &Measured) -> Option<(f64, Option<f64>)> {
    let figure = measured.figure().estimate;
    figure.is_finite().then(|| (figure, measured.quiet.and_then(|quiet| quiet.core_hz)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::fixture_run;

    #[test]
    fn a_run_is_not_its_own_predecessor_and_another_kernel_begins_another_series() {
        let mut record = fixture_run::fixture_record();
        record.fingerprint.kernel_release = Some("this".into());
        let mut earlier = record.clone();
        assert!(!is_same_series(&earlier, &record));
        earlier.run = "earlier".into();
        assert!(is_same_series(&earlier, &record));
        assert_eq!(change_ratio(&record, &earlier, "call/u64/3"), Some(1.0));
        earlier.groups[0].version = "99".into();
        let id = &record.groups[0].cases[0].id;
        assert_eq!(change_ratio(&record, &earlier, id), None);
        earlier.fingerprint.kernel_release = Some("another".into());
        assert!(!is_same_series(&earlier, &record));
    }

    /// An earlier run and a later one of the same series.
    fn runs() -> [Record; 2] {
        let mut record = fixture_run::fixture_record();
        record.fingerprint.surroundings.seccomp = Some("off".into());
        record.fingerprint.governor = Some("performance".into());
        [Record { run: "earlier".into(), ..record.clone() }, record]
    }

    #[test]
    fn another_seccomp_filter_begins_a_series_and_an_unknown_one_does_not() {
        let [mut earlier, record] = runs();
        earlier.fingerprint.surroundings.seccomp = Some("1 filter".into());
        assert!(!is_same_series(&earlier, &record));
        let remark = series_remark(&record, &[], Some(&earlier)).expect("a remark");
        assert!(remark.contains("seccomp is off, and was 1 filter, as the run earlier was made"), "{remark}");
        earlier.fingerprint.surroundings.seccomp = None;
        assert!(is_same_series(&earlier, &record), "a record from before it was kept");
    }

    #[test]
    fn a_difference_within_a_series_is_reported_with_the_last_run() {
        let [mut earlier, record] = runs();
        assert_eq!(series_remark(&record, std::slice::from_ref(&earlier), None), None);
        earlier.fingerprint.governor = Some("powersave".into());
        assert!(is_same_series(&earlier, &record));
        let remark = series_remark(&record, &[earlier.clone()], Some(&earlier)).expect("a remark");
        assert!(
            remark.contains("the last run, earlier,") && remark.contains("governor is performance"),
            "{remark}"
        );
        earlier.scale = "another".into();
        assert_eq!(
            series_remark(&record, &[], Some(&earlier)),
            None,
            "another scale was chosen, and is no news"
        );
    }
}

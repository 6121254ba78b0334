//! Pools the records of several processes into one record, as if one run had measured all of them.

use syscost_engine::record::{CaseRecord, GroupRun, Measured, Outcome, Record};
use syscost_engine::study::executions::pool_executions;
use syscost_engine::study::interval::draw_to_kind;
use syscost_engine::study::reference_frequency::{core_frequency, undisturbed_frequency};

/// These records pooled into one of this name. Each case has the measurements of all records. A case that no record measured
/// has its outcome in the first record with the case. `None` without records.
pub fn pool_records(name: &str, records: &[Record]) -> Option<Record> {
    let first = records.first()?;
    let measured = || records.iter().flat_map(Record::cases).filter_map(|(_, case)| case.measured());
    let frequencies: Vec<f64> = measured().filter_map(core_frequency).collect();
    let core_hz = undisturbed_frequency(&frequencies);
    let mut groups: Vec<GroupRun> = Vec::new();
    for run in records.iter().flat_map(|record| &record.groups) {
        match groups.iter_mut().find(|known| known.name == run.name) {
            Some(known) => add_unknown_cases(known, run),
            None => groups.push(GroupRun { fits: Vec::new(), curves: Vec::new(), ..run.clone() }),
        }
    }
    for case in groups.iter_mut().flat_map(|group| &mut group.cases) {
        let of_case = |record: &Record| {
            record
                .cases()
                .find(|(_, other)| other.id == case.id)
                .and_then(|(_, other)| other.measured().cloned())
        };
        let parts: Vec<Measured> = records.iter().filter_map(of_case).collect();
        if let Some(pooled) = pool_executions(&parts, core_hz) {
            case.outcome = Outcome::Measured(Box::new(pooled));
        }
    }
    for group in &mut groups {
        draw_to_kind(group.cases.iter_mut().filter_map(CaseRecord::measured_mut));
    }
    Some(Record { run: name.to_owned(), groups, ..first.clone() })
}

fn add_unknown_cases(known: &mut GroupRun, run: &GroupRun) {
    let is_new = |case: &&CaseRecord| known.cases.iter().all(|other| other.id != case.id);
    let new: Vec<_> = run.cases.iter().filter(is_new).cloned().collect();
    known.cases.extend(new);
    for note in &run.notes {
        if !known.notes.contains(note) {
            known.notes.push(note.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use syscost_engine::record::fixture_run;

    #[test]
    fn cases_of_all_records_are_pooled_and_those_of_one_kept() {
        let whole = fixture_run::fixture_record();
        let ids: Vec<_> = whole.cases().map(|(_, case)| case.id.clone()).collect();
        let mut part = whole.clone();
        part.groups.iter_mut().for_each(|group| group.cases.truncate(1));
        let pooled = pool_records("night", &[part, whole.clone()]).expect("two records");
        let found: Vec<_> = pooled.cases().map(|(_, case)| case.id.clone()).collect();
        assert_eq!((pooled.run.as_str(), found), ("night", ids));
        let executions = |record: &Record, at: usize| {
            record.cases().filter_map(|(_, case)| case.measured()).nth(at).map(|m| m.executions.len())
        };
        assert_eq!(executions(&pooled, 0), executions(&whole, 0).map(|count| 2 * count));
        assert!(pool_records("none", &[]).is_none());
    }
}

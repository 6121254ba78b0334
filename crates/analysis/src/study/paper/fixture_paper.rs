//! Cases of the paper for tests.

use super::GROUP;
use syscost_engine::record::{
    CaseRecord, Displaced, GroupRun, Interval, Measured, Outcome, Record, fixture_run,
};

/// A measured case of the paper, with this displacement.
pub fn measured_case(name: &str, displaced: Displaced) -> CaseRecord {
    let outcome = Outcome::Measured(Box::new(Measured { displaced: Some(displaced), ..Measured::default() }));
    CaseRecord { id: format!("{GROUP}/{name}"), title: String::new(), outcome }
}

/// A run that has these cases alone.
pub fn record_of_cases(cases: Vec<CaseRecord>) -> Record {
    let mut record = fixture_run::fixture_record();
    record.groups = vec![GroupRun { name: GROUP.into(), cases, ..GroupRun::default() }];
    record
}

/// An interval of a tenth to each side.
pub fn ten_percent_interval(estimate: f64) -> Option<Interval> {
    Some(Interval { estimate, low: 0.9 * estimate, high: 1.1 * estimate })
}

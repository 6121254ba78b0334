//! An invented run in the form in which `cargo bench` stores it, so that a test need not measure one.

use crate::place::Place;
use serde_json::Value;
use std::path::PathBuf;
use syscost::environment::Fingerprint;
use syscost::record::{
    CaseRecord, ClockRun, FORMAT, GroupRun, Interval, Measured, Outcome, Record, store::Store,
};

pub const NAME: &str = "20261120T134405-1";

/// A run of two cases.
pub fn run(name: &str) -> Record {
    let clock = ClockRun { source: "tsc".into(), hz: 2e9, uncertainty_ppm: 1.0, ..ClockRun::default() };
    let cases = ["call/u64/3", "call/u64/4"].map(case).into();
    let group = GroupRun { name: "call".into(), version: "1".into(), clock, cases, ..GroupRun::default() };
    Record {
        format: FORMAT,
        tool: "syscost".into(),
        run: name.into(),
        session: None,
        boot: None,
        started: 1_795_182_245,
        scale: "smoke".into(),
        unit: "ns".into(),
        seed: 1,
        fingerprint: Fingerprint::default(),
        unfinished: false,
        groups: vec![group],
    }
}

fn case(id: &str) -> CaseRecord {
    let measured = Measured {
        iterations: vec![1_000; 10],
        counted: (2_000..2_010).collect(),
        median: Interval { estimate: 1.0, low: 0.9, high: 1.1 },
        ticks: 2.0,
        ..Measured::default()
    };
    CaseRecord { id: id.into(), title: id.into(), outcome: Outcome::Measured(Box::new(measured)) }
}

/// The text of a stored run without its seal, to be edited by hand.
pub fn unsealed(text: &str) -> String {
    let mut open: Value = serde_json::from_str(text).unwrap();
    open.as_object_mut().unwrap().retain(|field, _| !field.starts_with("seal"));
    open.to_string()
}

/// Stores a run of this name in the place, and returns its file.
pub fn save(place: &Place, name: &str) -> PathBuf {
    Store::at(&place.home()).save_run(&run(name)).unwrap()
}

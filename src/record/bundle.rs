//! A record that can be carried: the runs of one or several sessions in one file, and at its head what a
//! comparison needs of them.
//!
//! The unit of comparison is a process. A *session* is one go of processes, one after another, in one place;
//! a *boot* is one start of a kernel. Two processes of one session have the machine's mood in common, two
//! sessions of one boot its kernel.

#[cfg(feature = "cli")]
mod check;
#[cfg(feature = "cli")]
mod file;
#[cfg(feature = "cli")]
mod member;
#[cfg(feature = "cli")]
mod shelf;

#[cfg(feature = "cli")]
pub use file::{Bundle, read, read_any, read_any_head, read_head, write_new};
#[cfg(feature = "cli")]
pub use shelf::name_of;

use super::{Interval, Outcome, Record};
use crate::environment::Fingerprint;
use serde::{Deserialize, Serialize};

/// The version of the file's layout. Newer code reads older versions; older code refuses newer ones.
pub const LAYOUT: u32 = 1;

/// What a comparison needs: small, and read without the rest.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Head {
    /// Layout version, [`LAYOUT`].
    pub bundle: u32,
    /// `syscost` and its version.
    pub tool: String,
    /// The name under which it was recorded.
    pub name: String,
    /// When the file was made, Unix seconds.
    pub created: u64,
    /// What a value counts: `ns`, or the name of a perf event.
    pub unit: String,
    /// Smoke, default or full; of runs that differ in it, each of theirs.
    pub scale: String,
    /// The machines, kernels and builds, each once.
    pub fingerprints: Vec<Fingerprint>,
    /// The processes' runs, in the order in which they were made.
    pub runs: Vec<Run>,
    /// The cases, in table order.
    pub series: Vec<Series>,
}

/// One go over the groups: a process each.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// Its unique name.
    pub name: String,
    /// The session that it belongs to; its own name if it stands alone.
    pub session: String,
    /// The kernel's own name of this boot; empty if it was not recorded.
    pub boot: String,
    /// When it began, Unix seconds.
    pub started: u64,
    /// Which of the head's fingerprints is its own.
    pub fingerprint: usize,
}

/// What all processes said of one case.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Series {
    /// `group/variant/parameter`.
    pub id: String,
    /// Hash of the source of the operation. Of two bodies in one bundle each has its own series.
    pub body: String,
    /// The clock by which it was measured, `tsc` for one.
    pub clock: String,
    /// One value a process.
    pub values: Vec<Value>,
    /// Why other processes have no value: each sentence once.
    pub without: Vec<String>,
}

/// One process's word on one case.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Value {
    /// Which of the head's runs.
    pub run: usize,
    /// The median over its samples, in the head's unit.
    pub median: Interval,
}

impl Head {
    /// The head of these runs. They count in the same unit; who puts them together has seen to that.
    pub fn of(name: &str, created: u64, records: &[Record]) -> Self {
        let first = records.first();
        let text = |f: fn(&Record) -> &String| first.map(f).cloned().unwrap_or_default();
        let mut head = Self {
            bundle: LAYOUT,
            tool: text(|r| &r.tool),
            name: name.to_owned(),
            created,
            unit: text(|r| &r.unit),
            scale: scales(records),
            fingerprints: Vec::new(),
            runs: Vec::new(),
            series: Vec::new(),
        };
        records.iter().for_each(|record| head.add(record));
        head
    }

    fn add(&mut self, record: &Record) {
        let known = self.fingerprints.iter().position(|known| *known == record.fingerprint);
        let fingerprint = known.unwrap_or_else(|| {
            self.fingerprints.push(record.fingerprint.clone());
            self.fingerprints.len() - 1
        });
        let run = self.runs.len();
        self.runs.push(Run {
            name: record.run.clone(),
            session: record.session.clone().unwrap_or_else(|| record.run.clone()),
            boot: record.boot.clone().unwrap_or_default(),
            started: record.started,
            fingerprint,
        });
        for (group, case) in record.cases() {
            let series = self.series_of(&case.id, &group.body, &group.clock.source);
            match &case.outcome {
                Outcome::Measured(measured) => series.values.push(Value { run, median: measured.median }),
                Outcome::Skipped(sentence) | Outcome::Failed(sentence) => {
                    if !series.without.contains(sentence) {
                        series.without.push(sentence.clone());
                    }
                }
            }
        }
    }

    fn series_of(&mut self, id: &str, body: &str, clock: &str) -> &mut Series {
        let same = |s: &Series| s.id == id && s.body == body && s.clock == clock;
        let at = self.series.iter().position(same).unwrap_or_else(|| {
            let series = Series {
                id: id.to_owned(),
                body: body.to_owned(),
                clock: clock.to_owned(),
                values: Vec::new(),
                without: Vec::new(),
            };
            self.series.push(series);
            self.series.len() - 1
        });
        &mut self.series[at]
    }
}

/// The scale of these runs. Baselines of Criterion's may have been saved at several.
fn scales(records: &[Record]) -> String {
    let mut scales: Vec<&str> = Vec::new();
    for record in records {
        if !scales.contains(&record.scale.as_str()) {
            scales.push(&record.scale);
        }
    }
    scales.join(", ")
}

//! A bundle: the runs of one or more sessions in one file. A head before the runs has the data that a comparison needs.
//!
//! Each process gives one value of a case. A *session* is a sequence of processes in one place; a *boot* is one start
//! of a kernel. Values within a session are correlated because its processes share the machine's state. Sessions of one
//! boot share its kernel, so their values are correlated, too.

mod bundle_file;
mod by_kernel;
mod check;

pub use bundle_file::{Bundle, read, read_any, read_any_head, read_head, write_new};
pub use by_kernel::split_by_kernel;

use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use syscost_engine::environment::Fingerprint;
use syscost_engine::record::{GroupRun, Interval, Measured, Record};

/// The version of the file's layout. Other versions are refused, because none was released.
pub const LAYOUT: u32 = 3;

/// The data that a comparison needs. The head is small and is read without the runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Head {
    /// Layout version, `LAYOUT`.
    pub bundle: u32,
    /// `syscost` and its version.
    pub tool: String,
    /// The name under which it was recorded.
    pub name: String,
    /// When the file was made, Unix seconds.
    pub created: u64,
    /// What a value counts: `ns`, or the name of a perf event.
    pub unit: String,
    /// Smoke, default or full; a list if the runs differ in their scales.
    pub scale: String,
    /// The machines, kernels and builds, each once.
    pub fingerprints: Vec<Fingerprint>,
    /// The processes' runs, in the order in which they were made.
    pub runs: Vec<Run>,
    /// In a file, the end of the gzip member of the runs, which shows that the head belongs to these runs. `None` after reading,
    /// and in files that are older than this field.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runs_end: Option<u64>,
    /// The cases, in table order.
    pub series: Vec<Series>,
}

/// One run over the groups, each in a process of its own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// The unique name of the run.
    pub name: String,
    /// The session of the run; the run's own name if it belongs to no session.
    pub session: String,
    /// The kernel's boot id; empty if it was not recorded.
    pub boot: String,
    /// Start of the run, Unix seconds.
    pub started: u64,
    /// Index of the run's fingerprint in the head's fingerprints.
    pub fingerprint: usize,
}

/// The values of one case in all processes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Series {
    /// `group/variant/parameter`; of single operations also `group/variant/parameter p99` and the like, whose
    /// values are the processes' percentiles.
    pub id: String,
    /// The version of the group. Each version in a bundle has its own series.
    pub version: String,
    /// The clock by which the case was measured, for example `tsc`.
    pub clock: String,
    /// The peer of the case, if it was measured against one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peer: Option<String>,
    /// One value per process.
    pub values: Vec<Value>,
    /// The reasons why other processes have no value, each sentence once.
    pub without: Vec<String>,
}

/// The value of one case in one process.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Value {
    /// Index of the process's run in the head's runs.
    pub run: usize,
    /// The cost, in the head's unit: the quiet figure, or for a single execution the lower quartile of its samples. In records
    /// without executions it is the median of the samples, which gave the field its name.
    pub median: Interval,
    /// The core's frequency, Hz, at which the cost holds: measured beside it, or the one to which a quiet figure was converted.
    /// `None` if it was not inferred.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub core_hz: Option<f64>,
}

impl Head {
    /// The head of these runs, which the caller has checked to have one unit.
    pub fn from_records(name: &str, created: u64, records: &[Record]) -> Self {
        let first = records.first();
        let text = |f: fn(&Record) -> &String| first.map(f).cloned().unwrap_or_default();
        let mut head = Self {
            bundle: LAYOUT,
            tool: text(|r| &r.tool),
            name: name.to_owned(),
            created,
            unit: text(|r| &r.unit),
            scale: joined_scales(records),
            fingerprints: Vec::new(),
            runs: Vec::new(),
            runs_end: None,
            series: Vec::new(),
        };
        let mut index = Index::default();
        records.iter().for_each(|record| head.add(record, &mut index));
        head.merge_clockless_series();
        head
    }

    fn add<'a>(&mut self, record: &'a Record, index: &mut Index<'a>) {
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
            let peer = case.measured().and_then(|measured| measured.peer.as_deref());
            let at = self.series_index((&case.id, None, peer), group, index);
            if let Some(sentence) = case.outcome.reason().filter(|new| index.without.insert((at, *new))) {
                self.series[at].without.push(sentence.to_owned());
            }
            let Some(measured) = case.measured() else { continue };
            let (median, core_hz) = cost_and_frequency(measured);
            self.series[at].values.push(Value { run, median, core_hz });
            let core_hz = core_frequency(measured);
            for (percentile, value) in compared_percentiles(measured) {
                let at = self.series_index((&case.id, Some(percentile), peer), group, index);
                self.series[at].values.push(Value { run, median: Interval::exactly(value), core_hz });
            }
        }
    }

    fn series_index<'a>(
        &mut self,
        (id, percentile, peer): (&'a str, Option<u8>, Option<&'a str>),
        group: &'a GroupRun,
        index: &mut Index<'a>,
    ) -> usize {
        let (version, clock) = (&group.version, &group.clock.source);
        *index.series.entry((id, percentile, version, clock, peer)).or_insert_with(|| {
            self.series.push(Series {
                id: percentile.map_or_else(|| id.to_owned(), |p| format!("{id} p{p}")),
                version: version.clone(),
                clock: clock.clone(),
                peer: peer.map(str::to_owned),
                values: Vec::new(),
                without: Vec::new(),
            });
            self.series.len() - 1
        })
    }
}

impl Head {
    /// A process that died before it had a clock has no series of its own: its reasons are added to the series of the
    /// same case that has a clock.
    fn merge_clockless_series(&mut self) {
        let is_clockless = |series: &Series| series.clock.is_empty() && series.values.is_empty();
        let key = |series: &Series| (series.id.clone(), series.version.clone());
        let (clockless, clocked): (Vec<_>, Vec<_>) = self.series.drain(..).partition(is_clockless);
        self.series = clocked;
        let at: BTreeMap<_, _> = self.series.iter().enumerate().rev().map(|(at, s)| (key(s), at)).collect();
        for series in clockless {
            match at.get(&key(&series)).map(|&at| &mut self.series[at].without) {
                None => self.series.push(series),
                Some(known) => {
                    let new: Vec<_> = series.without.into_iter().filter(|s| !known.contains(s)).collect();
                    known.extend(new);
                }
            }
        }
    }
}

/// The core's frequency, Hz, beside a case: the higher of those measured before and after it.
fn core_frequency(measured: &Measured) -> Option<f64> {
    measured.core_hz.map(|(before, after)| before.max(after))
}

/// The cost of a case in one run, and the core's frequency for which it holds.
fn cost_and_frequency(measured: &Measured) -> (Interval, Option<f64>) {
    let mut executions = measured.executions.clone();
    executions.sort_by(|a, b| a.low.total_cmp(&b.low));
    executions.truncate(2);
    let known: Vec<f64> = executions.iter().filter_map(|execution| execution.core_hz).collect();
    let mean = (!known.is_empty()).then(|| crate::statistic::mean(&known));
    // A quiet figure has its own frequency.
    let core_hz = measured.quiet.and_then(|quiet| quiet.core_hz).or(mean).or(core_frequency(measured));
    let figure = match (measured.quiet, executions.first()) {
        (Some(quiet), _) => quiet.figure,
        (None, Some(only)) => {
            Interval { estimate: only.low, low: only.low, high: measured.median.high.max(only.low) }
        }
        (None, None) => measured.median,
    };
    (figure, core_hz)
}

/// The percentiles that are compared: the median, and the 99th, the highest that a few hundred operations support.
fn compared_percentiles(measured: &Measured) -> impl Iterator<Item = (u8, f64)> {
    let distribution = measured.distribution.as_ref();
    [50, 99].into_iter().filter_map(move |p| Some((p, distribution?.value_at(f64::from(p))?)))
}

/// The key of a series: id, percentile, version, clock, peer.
type Place<'a> = (&'a str, Option<u8>, &'a str, &'a str, Option<&'a str>);

/// Finds series by key and records the sentences that each has, because a linear search would be slow for thousands of
/// cases.
#[derive(Default)]
struct Index<'a> {
    series: BTreeMap<Place<'a>, usize>,
    without: BTreeSet<(usize, &'a str)>,
}

/// The scale of these runs, or a list of scales, because a Criterion baseline may have been saved at several scales.
fn joined_scales(records: &[Record]) -> String {
    let mut scales: Vec<&str> = Vec::new();
    for record in records {
        if !scales.contains(&record.scale.as_str()) {
            scales.push(&record.scale);
        }
    }
    scales.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use syscost_engine::record::{Outcome, fixture_run};

    #[test]
    fn a_process_has_one_value_of_a_case_and_its_machine_stands_once() {
        let run = |name: &str| Record { run: name.into(), ..fixture_run::fixture_record() };
        let other =
            syscost_engine::environment::Fingerprint { governor: Some("x".into()), ..Default::default() };
        let records = [run("a"), run("b"), Record { fingerprint: other, ..run("c") }];
        let head = Head::from_records("main", 1, &records);
        assert_eq!(head.runs.iter().map(|run| run.fingerprint).collect::<Vec<_>>(), [0, 0, 1]);
        let series = head.series.iter().find(|series| series.id == "call/u64/3").unwrap();
        assert_eq!(series.values.iter().map(|value| value.run).collect::<Vec<_>>(), [0, 1, 2]);
        let skipped = head.series.iter().find(|series| series.id == "clock_read/cntvct").unwrap();
        assert_eq!((skipped.values.len(), skipped.without.len()), (0, 1));
    }

    #[test]
    fn the_percentiles_of_single_operations_are_series_of_processes_too() {
        let records =
            [fixture_run::fixture_record(), Record { run: "b".into(), ..fixture_run::fixture_record() }];
        let head = Head::from_records("x", 1, &records);
        let series_of = |id: &str| head.series.iter().find(|series| series.id == id).unwrap();
        let values: Vec<_> =
            series_of("syscall/getpid/cold p99").values.iter().map(|v| v.median.estimate).collect();
        assert_eq!(values, [7_400.0, 7_400.0]);
        assert_eq!(series_of("syscall/getpid/cold p50").values.len(), 2);
    }

    #[test]
    fn another_version_or_clock_is_another_series() {
        let mut other = fixture_run::fixture_record();
        other.groups[0].version = "another".into();
        other.groups[1].clock.source = "monotonic-raw".into();
        let one = Head::from_records("x", 1, &[fixture_run::fixture_record()]).series.len();
        let cases: usize = other.groups[..2].iter().map(|group| group.cases.len()).sum();
        assert_eq!(
            Head::from_records("x", 1, &[fixture_run::fixture_record(), other]).series.len(),
            one + cases
        );
    }

    #[test]
    fn another_peer_is_another_series() {
        let against = |peer: &str| {
            let mut record = fixture_run::fixture_record();
            let case = record.groups.iter_mut().flat_map(|group| &mut group.cases);
            let measured = case.filter_map(|case| match &mut case.outcome {
                Outcome::Measured(measured) => Some(measured),
                _ => None,
            });
            measured.for_each(|measured| measured.peer = Some(peer.into()));
            Head::from_records("x", 1, &[record])
        };
        let (one, other) = (against("a by veth"), against("b by veth"));
        assert_eq!(
            one.series.len(),
            Head::from_records("x", 1, &[fixture_run::fixture_record()]).series.len()
        );
        assert_eq!(
            one.series.iter().filter(|series| series.peer.is_some()).count(),
            one.series.iter().filter(|series| !series.values.is_empty()).count()
        );
        assert_ne!(one.series, other.series);
    }

    #[test]
    fn a_process_that_died_before_it_had_a_clock_is_no_series_of_its_own() {
        let mut dead = fixture_run::fixture_record();
        dead.groups.retain(|group| group.name == "call");
        dead.groups[0].clock = Default::default();
        dead.groups[0].cases.truncate(1);
        dead.groups[0].cases[0].outcome = Outcome::Failed("It died.".into());
        let whole = Head::from_records("x", 1, &[fixture_run::fixture_record()]);
        for records in
            [[dead.clone(), fixture_run::fixture_record()], [fixture_run::fixture_record(), dead.clone()]]
        {
            let head = Head::from_records("x", 1, &records);
            assert_eq!(head.series.len(), whole.series.len());
            let series = head.series.iter().find(|series| series.id == "call/u64/0").unwrap();
            assert_eq!((series.values.len(), series.without.as_slice()), (1, &["It died.".to_owned()][..]));
        }
        assert_eq!(Head::from_records("x", 1, &[dead]).series.len(), 1);
    }

    #[test]
    fn scales_that_differ_are_all_named() {
        let smoke = Record { scale: "smoke".into(), ..fixture_run::fixture_record() };
        assert_eq!(
            Head::from_records(
                "x",
                1,
                &[fixture_run::fixture_record(), smoke, fixture_run::fixture_record()]
            )
            .scale,
            "default, smoke"
        );
    }
}

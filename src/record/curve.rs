//! Cases that are points of a curve: latency against size, bandwidth against size, efficiency against the
//! number of processes; and what the curve shows, levels or a fall.

mod cache;
mod parameter;
#[cfg(test)]
mod tests;

use super::cost::Basis;
use super::{CaseRecord, GroupRun, Interval, Measured};
use crate::environment::Fingerprint;
use crate::statistic::level::WIDEST;
use crate::statistic::{fall, levels, median, spacing};
use serde::{Deserialize, Serialize};

/// A series of cases whose ids begin alike and end in a size or a number.
#[derive(Clone, Copy, Debug)]
pub struct Curve {
    /// The ids' common beginning, with the group: `chase/random/`.
    pub prefix: &'static str,
    /// What tells it from the others of its chart: "random order".
    pub title: &'static str,
    /// Curves of a group with the same name here are drawn together.
    pub chart: &'static str,
    /// What the end of an id is.
    pub axis: Axis,
    /// Name of the derived figure that is drawn; without one, what a single operation costs.
    pub figure: Option<&'static str>,
    /// What is looked for.
    pub study: Study,
    /// A point that needs no measurement: one alone has the efficiency 1.
    pub start: Option<(u64, f64)>,
}

/// What the last part of an id says, with its name in words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Axis {
    /// A size with its unit: `256KiB`.
    Bytes(&'static str),
    /// A number of mebibytes: `64`.
    Mebibytes(&'static str),
    /// A number of these, or `all`: as many as there are CPUs.
    Count(&'static str),
    /// A number of these beside the one that measures, or `all`: one fewer than there are CPUs.
    Others(&'static str),
}

/// What is looked for in a curve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Study {
    /// Nothing: it is drawn.
    Plain,
    /// Levels of latency, and the caches that they are.
    Levels,
    /// The one fall of a rate, and the size of the cache that ends there.
    Fall,
}

impl Curve {
    /// The cost of one operation against what the ids end in.
    pub const fn new(prefix: &'static str, title: &'static str, axis: Axis) -> Self {
        let (chart, figure, study, start) = ("cost", None, Study::Plain, None);
        Self { prefix, title, chart, axis, figure, study, start }
    }

    /// The same of a derived figure, drawn on the chart of its name.
    pub const fn figure(self, name: &'static str) -> Self {
        Self { figure: Some(name), chart: name, ..self }
    }

    /// Looks for something in it.
    pub const fn study(self, study: Study) -> Self {
        Self { study, ..self }
    }

    /// On a chart of this name.
    pub const fn chart(self, chart: &'static str) -> Self {
        Self { chart, ..self }
    }

    /// Beginning at a point that needs no measurement.
    pub const fn start(self, at: u64, value: f64) -> Self {
        Self { start: Some((at, value)), ..self }
    }
}

/// A curve as it was measured.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CurveRecord {
    /// The ids' common beginning.
    pub prefix: String,
    /// What tells it from the others of its chart.
    pub title: String,
    /// Curves with the same name here are drawn together.
    pub chart: String,
    /// What it runs along: "ring", "processes".
    pub parameter: String,
    /// Whether that is a size in bytes; else it is a number.
    pub bytes: bool,
    /// Unit of the values: `ns`, `GB/s`, or nothing for a ratio.
    pub unit: String,
    /// Its points, from the smallest parameter to the largest.
    pub points: Vec<Point>,
    /// Its levels, from the lowest to the highest.
    #[serde(default)]
    pub levels: Vec<LevelRecord>,
    /// Where it falls.
    #[serde(default)]
    pub fall: Option<FallRecord>,
    /// What a reader must know, in sentences.
    #[serde(default)]
    pub remarks: Vec<String>,
}

/// A point of a curve.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// Bytes, or a number.
    pub at: u64,
    /// The value there.
    pub value: Interval,
}

/// A stretch on which a curve stays.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LevelRecord {
    /// `L1`, `L2`, `memory`; nothing where it could not be told.
    pub name: Option<String>,
    /// The smallest size on it, bytes.
    pub first: u64,
    /// The largest size on it, bytes.
    pub last: u64,
    /// Latency, ns.
    pub latency: Interval,
    /// The same in ticks of the counter.
    pub ticks: Option<f64>,
    /// The same in core cycles, at the frequency that the additions of the clock's test showed.
    pub cycles: Option<f64>,
    /// Two neighbouring sizes, bytes: at the first most loads still stay on this level, at the second they do not.
    pub step: Option<(u64, u64)>,
    /// What the kernel reports of the cache that ends there, bytes.
    pub reported: Option<u64>,
}

/// Where a curve falls.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FallRecord {
    /// The last size before it and the first after it, bytes.
    pub step: (u64, u64),
    /// The median before.
    pub before: Interval,
    /// The median after.
    pub after: Interval,
}

/// The curve through the measured cases of a group, if there are two at least.
pub fn draw(curve: &Curve, run: &GroupRun, fingerprint: &Fingerprint) -> Option<CurveRecord> {
    let cpus = fingerprint.cpus_allowed.as_deref().map_or(0, |list| cpus(list) as u64);
    let members: Vec<_> = run.cases.iter().filter_map(|case| member(curve, case, cpus)).collect();
    let (unit, mut points) = values(curve.figure, &members)?;
    points.extend(curve.start.map(|(at, value)| Point { at, value: exactly(value) }));
    points.sort_by_key(|point| point.at);
    points.dedup_by_key(|point| point.at);
    if points.len() < 2 {
        return None;
    }
    let (bytes, parameter) = match curve.axis {
        Axis::Bytes(of) | Axis::Mebibytes(of) => (true, of),
        Axis::Count(of) | Axis::Others(of) => (false, of),
    };
    let mut drawn = CurveRecord {
        prefix: curve.prefix.into(),
        title: curve.title.into(),
        chart: curve.chart.into(),
        parameter: parameter.into(),
        bytes,
        unit,
        points,
        ..CurveRecord::default()
    };
    match curve.study {
        Study::Plain => {}
        Study::Levels => find_levels(&mut drawn, &members, run, fingerprint),
        Study::Fall => drawn.fall = find_fall(&drawn.points),
    }
    Some(drawn)
}

fn cpus(list: &str) -> usize {
    crate::environment::cpu_list::parse(list).len()
}

fn member<'a>(curve: &Curve, case: &'a CaseRecord, cpus: u64) -> Option<(u64, &'a Measured)> {
    let end = case.id.strip_prefix(curve.prefix)?;
    Some((parameter::read(end, curve.axis, cpus)?, case.measured()?))
}

/// The points and their unit. Costs stand all on the same basis, the best that every one of them has.
fn values(figure: Option<&str>, members: &[(u64, &Measured)]) -> Option<(String, Vec<Point>)> {
    let Some(name) = figure else {
        let of = |basis: Basis| {
            let point = |(at, m): &(u64, &Measured)| Some(Point { at: *at, value: basis.of(m)? });
            members.iter().map(point).collect::<Option<Vec<_>>>()
        };
        return Some((super::quantity::NANOSECONDS.into(), Basis::ALL.into_iter().find_map(of)?));
    };
    let figures = members.iter().filter_map(|(at, measured)| {
        let figure = measured.derived.iter().find(|derived| derived.name == name)?;
        Some((figure.unit.clone(), Point { at: *at, value: figure.value }))
    });
    let (units, points): (Vec<_>, Vec<_>) = figures.unzip();
    Some((units.into_iter().next()?, points))
}

fn find_levels(
    drawn: &mut CurveRecord,
    members: &[(u64, &Measured)],
    run: &GroupRun,
    fingerprint: &Fingerprint,
) {
    let values: Vec<Interval> = drawn.points.iter().map(|point| point.value).collect();
    let caches: Vec<(u8, u64)> = fingerprint
        .caches
        .iter()
        .filter(|cache| cache.serves(run.cpu))
        .map(|cache| (cache.level, cache.bytes))
        .collect();
    let speeds: Vec<f64> =
        members.iter().filter_map(|(_, m)| m.core_hz.map(|(a, b)| 0.5 * (a + b))).collect();
    let core_hz = (!speeds.is_empty()).then(|| median(&speeds));
    let octaves: Vec<f64> = drawn.points.iter().map(|point| (point.at.max(1) as f64).log2()).collect();
    if spacing(&octaves) > 1.01 * WIDEST {
        drawn.remarks = vec![
            "its sizes lie too far apart to tell levels: at full scale (`SYSCOST_SCALE=full`) there are more"
                .into(),
        ];
        return;
    }
    drawn.levels = cache::named(&levels(&octaves, &values), &drawn.points, &caches);
    for level in &mut drawn.levels {
        let per_ns = level.latency.estimate / 1e9;
        level.ticks = (run.clock.hz > 0.0).then_some(per_ns * run.clock.hz);
        level.cycles = core_hz.map(|hz| per_ns * hz);
    }
    drawn.remarks = cache::remarks(&drawn.levels, &caches, fingerprint.hypervisor.is_some());
}

fn find_fall(points: &[Point]) -> Option<FallRecord> {
    let values: Vec<f64> = points.iter().map(|point| point.value.estimate).collect();
    let found = fall(&values)?;
    let step = (points[found.last].at, points[found.last + 1].at);
    Some(FallRecord { step, before: found.before, after: found.after })
}

fn exactly(value: f64) -> Interval {
    Interval { estimate: value, low: value, high: value }
}

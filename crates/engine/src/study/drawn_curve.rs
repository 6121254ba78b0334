//! Curves drawn through measured cases (latency or bandwidth against size, efficiency against the number of
//! processes), with their levels or their fall.

mod cache_level;
mod parameter;
#[cfg(test)]
mod tests;

pub use parameter::parse_size as bytes_of;

use super::basis::Basis;
use crate::environment::Fingerprint;
use crate::record::{Axis, Curve, CurveRecord, FallRecord, LevelRecord, Point, Study};
use crate::record::{CaseRecord, GroupRun, Interval, Measured};
use crate::statistic::level::WIDEST;
use crate::statistic::{find_levels, locate_fall, median, median_spacing};

/// The curve through the measured cases of a group, if there are two at least.
pub fn draw_curve(curve: &Curve, run: &GroupRun, fingerprint: &Fingerprint) -> Option<CurveRecord> {
    let cpus = fingerprint.cpus_allowed.as_deref().map_or(0, |list| count_cpus(list) as u64);
    let members: Vec<_> =
        run.cases.iter().filter_map(|case| member_with_parameter(curve, case, cpus)).collect();
    let (basis, unit, mut points) = points_and_unit(curve.figure, &members)?;
    points.extend(curve.start.map(|(at, value)| Point { at, value: Interval::exactly(value) }));
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
        title: format!("{}{basis}", curve.title),
        chart: curve.chart.into(),
        parameter: parameter.into(),
        bytes,
        unit,
        points,
        ..CurveRecord::default()
    };
    match curve.study {
        Study::Plain => {}
        Study::Levels => add_levels(&mut drawn, &members, run, fingerprint),
        Study::Fall => drawn.fall = find_fall(&drawn.points),
        Study::Bound(ns) => drawn.remarks = vec![describe_bound(&drawn, ns)],
    }
    Some(drawn)
}

fn count_cpus(list: &str) -> usize {
    crate::environment::cpu_list::parse(list).len()
}

fn member_with_parameter<'a>(curve: &Curve, case: &'a CaseRecord, cpus: u64) -> Option<(u64, &'a Measured)> {
    let end = case.id.strip_prefix(curve.prefix)?;
    Some((parameter::read(end, curve.axis, cpus)?, case.measured()?))
}

/// The basis as the title names it, the unit, and the points. Costs stand all on the same basis, the best that every one of them
/// has.
fn points_and_unit(
    figure: Option<&str>,
    members: &[(u64, &Measured)],
) -> Option<(&'static str, String, Vec<Point>)> {
    let Some(name) = figure else {
        let points_on = |basis: Basis| {
            let point = |(at, m): &(u64, &Measured)| Some(Point { at: *at, value: basis.figure(m)? });
            let points = members.iter().map(point).collect::<Option<Vec<_>>>()?;
            Some((basis.title_part(), crate::record::quantity::NANOSECONDS.into(), points))
        };
        return Basis::ALL.into_iter().find_map(points_on);
    };
    let figures = members.iter().filter_map(|(at, measured)| {
        let figure = measured.derived.iter().find(|derived| derived.name == name)?;
        Some((figure.unit.clone(), Point { at: *at, value: figure.value }))
    });
    let (units, points): (Vec<_>, Vec<_>) = figures.unzip();
    Some(("", units.into_iter().next()?, points))
}

fn add_levels(
    drawn: &mut CurveRecord,
    members: &[(u64, &Measured)],
    run: &GroupRun,
    fingerprint: &Fingerprint,
) {
    let values: Vec<Interval> = drawn.points.iter().map(|point| point.value).collect();
    let caches: Vec<(u8, u64)> = fingerprint
        .caches
        .iter()
        .filter(|cache| cache.serves_data_of(run.cpu))
        .map(|cache| (cache.level, cache.bytes))
        .collect();
    let speeds: Vec<f64> =
        members.iter().filter_map(|(_, m)| m.core_hz.map(|(a, b)| 0.5 * (a + b))).collect();
    let core_hz = (!speeds.is_empty()).then(|| median(&speeds));
    let octaves: Vec<f64> = drawn.points.iter().map(|point| (point.at.max(1) as f64).log2()).collect();
    if median_spacing(&octaves) > 1.01 * WIDEST {
        drawn.remarks = vec![
            "its sizes lie too far apart to tell levels: at full scale (`SYSCOST_SCALE=full`) there are more"
                .into(),
        ];
        return;
    }
    drawn.levels = cache_level::name_levels(&find_levels(&octaves, &values), &drawn.points, &caches);
    for level in &mut drawn.levels {
        let per_ns = level.latency.estimate / 1e9;
        level.ticks = (run.clock.hz > 0.0).then_some(per_ns * run.clock.hz);
        level.cycles = core_hz.map(|hz| per_ns * hz);
    }
    drawn.remarks = cache_level::level_remarks(&drawn.levels, &caches, fingerprint.hypervisor.is_some());
}

/// Where a cost that grows passes this bound.
fn describe_bound(drawn: &CurveRecord, bound_ns: f64) -> String {
    let (ms, parameter) = (bound_ns / 1e6, &drawn.parameter);
    let passes = |point: &Point| point.value.estimate > bound_ns;
    let at = |index: usize| drawn.points.get(index).map_or(0, |point| point.at);
    match drawn.points.iter().position(passes) {
        None => format!("it stays below {ms} ms up to {} {parameter}", at(drawn.points.len() - 1)),
        Some(0) => format!("it is above {ms} ms at {} {parameter} already", at(0)),
        Some(first) => format!("it passes {ms} ms between {} and {} {parameter}", at(first - 1), at(first)),
    }
}

/// The one fall of a rate, if there is one.
pub fn find_fall(points: &[Point]) -> Option<FallRecord> {
    let values: Vec<f64> = points.iter().map(|point| point.value.estimate).collect();
    let found = locate_fall(&values)?;
    let step = (points[found.last].at, points[found.last + 1].at);
    Some(FallRecord { step, before: found.before, after: found.after })
}

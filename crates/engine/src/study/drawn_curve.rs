//! Curves drawn through measured cases (latency or bandwidth against size, efficiency against the number of
//! processes), with their levels or their fall.

mod cache_level;
#[cfg(test)]
mod tests;

use super::basis::Basis;
use crate::environment::{Fingerprint, cpu_list};
use crate::record::{
    Axis, CaseRecord, Curve, CurveRecord, FallRecord, FitRecord, GroupRun, Interval, LevelRecord, Measured,
    Point, Predicted, Study,
};
use crate::statistic::level::WIDEST;
use crate::statistic::{Law, find_levels, fit_growth, fit_line, locate_fall, median, median_spacing};

/// The curve through the measured cases of a group; `None` if there are fewer than two points.
pub fn draw_curve(curve: &Curve, run: &GroupRun, fingerprint: &Fingerprint) -> Option<CurveRecord> {
    let cpus = fingerprint.cpus_allowed.as_deref().map_or(0, |list| cpu_list::parse(list).len() as u64);
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

fn member_with_parameter<'a>(curve: &Curve, case: &'a CaseRecord, cpus: u64) -> Option<(u64, &'a Measured)> {
    let end = case.id.strip_prefix(curve.prefix)?;
    Some((parse_parameter(end, curve.axis, cpus)?, case.measured()?))
}

/// The end of the title for the basis, the unit, and the points. All costs have the same basis: the best one that every case
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

/// A sentence that says between which points a growing cost passes this bound.
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

// The last part of an id as a number.

/// The number in `256KiB`, `1.5MiB`, `64`, or `all`, which stands for `cpus`. `None` for any other text: its case is no
/// point of the curve.
fn parse_parameter(text: &str, axis: Axis, cpus: u64) -> Option<u64> {
    match axis {
        Axis::Bytes(_) => bytes_of(text),
        Axis::Mebibytes(_) => parse_digits(text)?.checked_mul(1 << 20),
        Axis::Count(_) if text == "all" => Some(cpus).filter(|&cpus| cpus > 0),
        Axis::Others(_) if text == "all" => cpus.checked_sub(1),
        Axis::Count(_) | Axis::Others(_) => parse_digits(text),
    }
}

/// The number of a text of digits only: "inf" and "+1" would parse as numbers, too.
fn parse_digits(text: &str) -> Option<u64> {
    text.chars().all(|c| c.is_ascii_digit()).then(|| text.parse().ok())?
}

/// The bytes in `64KiB`, `1.5MiB`; `None` for any other text.
pub fn bytes_of(text: &str) -> Option<u64> {
    const UNITS: [(&str, u64); 5] = [("KiB", 10), ("MiB", 20), ("GiB", 30), ("TiB", 40), ("B", 0)];
    let (digits, shift) = UNITS.iter().find_map(|(unit, shift)| Some((text.strip_suffix(unit)?, shift)))?;
    let plain = digits.chars().all(|c| c.is_ascii_digit() || c == '.');
    let number: f64 = plain.then(|| digits.parse().ok())??;
    Some((number * (1u64 << shift) as f64).round() as u64)
}

// Lines through the cases of a group: the cost of one more argument or one more byte, and the law by which the cost of a
// sweep grows.

/// Fits a line through the measured cases whose ids begin with `prefix` and end in a number; `step` says what one
/// step of that number is. All points have the same basis, the best one that every case has: values with and
/// without the cost of the loop do not lie on one line.
pub fn fit_cases(step: &str, prefix: &str, cases_of_line: &[CaseRecord]) -> Option<FitRecord> {
    let points = points(prefix, cases_of_line)?;
    let line = fit_line(&points)?;
    let (slope, intercept, cases) = (line.slope, line.intercept, points.len());
    let expected = expected_slopes(prefix, cases_of_line);
    Some(FitRecord { step: step.into(), slope, intercept, cases, expected, worst: None })
}

/// Slopes of the lines through the predictions of these cases, ns per step: of the hardware's part and of the software's.
fn expected_slopes(prefix: &str, cases: &[CaseRecord]) -> Option<[f64; 2]> {
    let members = || cases.iter().filter_map(|case| member_with_number(prefix, case));
    let slope = |part: fn(&Predicted) -> f64| {
        let point = |(x, measured): (f64, &Measured)| Some((x, part(measured.predicted.as_ref()?)));
        Some(fit_line(&members().map(point).collect::<Option<Vec<_>>>()?)?.slope.estimate)
    };
    Some([slope(|p| p.hardware)?, slope(|p| p.software)?])
}

/// Fits the law by which the cost of a sweep's cases grows with the parameter, whose name is a plural.
pub fn fit_sweep(parameter: &str, prefix: &str, cases: &[CaseRecord]) -> Option<FitRecord> {
    let points = points(prefix, cases)?;
    let growth = fit_growth(&points)?;
    let step = match growth.law {
        Law::Linear => format!("a further one of the {parameter}"),
        Law::Logarithm => format!("doubling the {parameter}"),
        Law::Linearithmic => format!("each unit of n·log₂n, with n {parameter},"),
        Law::Square => format!("each unit of n², with n {parameter},"),
    };
    let name = prefix.split_once('/').map_or(prefix, |(_, name)| name).trim_end_matches('/');
    Some(FitRecord {
        step: format!("{name}: {step}"),
        slope: growth.line.slope,
        intercept: growth.line.intercept,
        cases: points.len(),
        expected: None,
        worst: Some(growth.worst),
    })
}

/// Parameter and cost of each measured case with this prefix, all on the best basis that every case has.
fn points(prefix: &str, cases: &[CaseRecord]) -> Option<Vec<(f64, f64)>> {
    let members: Vec<(f64, &Measured)> =
        cases.iter().filter_map(|case| member_with_number(prefix, case)).collect();
    let points_on = |basis: Basis| {
        members.iter().map(|(x, measured)| Some((*x, basis.figure(measured)?.estimate))).collect()
    };
    Basis::ALL.into_iter().find_map(points_on)
}

fn member_with_number<'a>(prefix: &str, case: &'a CaseRecord) -> Option<(f64, &'a Measured)> {
    // Whole numbers only: "inf" and "nan" would parse as floating point.
    let parameter: u64 = case.id.strip_prefix(prefix)?.parse().ok()?;
    Some((parameter as f64, case.measured()?))
}

#[cfg(test)]
mod parameter_tests {
    use super::*;

    #[test]
    fn sizes_are_read_with_their_unit() {
        let sizes =
            [("0KiB", 0), ("512B", 512), ("256KiB", 256 << 10), ("1.5MiB", 3 << 19), ("1GiB", 1 << 30)];
        for (text, bytes) in sizes {
            assert_eq!(parse_parameter(text, Axis::Bytes("size"), 2), Some(bytes), "{text}");
        }
        for text in ["", "KiB", "256", "64KB", "infKiB", "-1KiB", "1e3KiB", "8MiB-unguarded"] {
            assert_eq!(parse_parameter(text, Axis::Bytes("size"), 2), None, "{text}");
        }
    }

    #[test]
    fn numbers_are_parsed_and_all_stands_for_the_number_of_cpus() {
        assert_eq!(parse_parameter("64", Axis::Mebibytes("memory"), 2), Some(64 << 20));
        assert_eq!(parse_parameter("64", Axis::Count("processes"), 2), Some(64));
        assert_eq!(parse_parameter("all", Axis::Count("processes"), 2), Some(2));
        assert_eq!(parse_parameter("all", Axis::Count("processes"), 0), None);
        assert_eq!(parse_parameter("all", Axis::Others("readers"), 8), Some(7));
        for text in ["inf", "+1", "all", "2x", ""] {
            assert_eq!(parse_parameter(text, Axis::Mebibytes("memory"), 2), None, "{text}");
        }
    }
}

#[cfg(test)]
mod fit_tests {
    use super::*;
    use crate::record::{Interval, Outcome};

    fn fitted(cases: &[CaseRecord]) -> Option<FitRecord> {
        fit_cases("a further u64 argument", "call/u64/", cases)
    }

    fn case(id: &str, slope: f64, net: Option<f64>) -> CaseRecord {
        let measured = Measured {
            slope: Interval::exactly(slope),
            net: net.map(Interval::exactly),
            ..Measured::default()
        };
        CaseRecord { id: id.into(), title: String::new(), outcome: Outcome::Measured(Box::new(measured)) }
    }

    #[test]
    fn only_measured_cases_with_a_number_count() {
        let mut cases: Vec<_> =
            (0..4).map(|i| case(&format!("call/u64/{i}"), 9.0, Some(1.0 + 0.5 * f64::from(i)))).collect();
        cases.push(case("call/u64/many", 100.0, Some(100.0)));
        cases.push(case("call/u32/4", 100.0, Some(100.0)));
        cases.push(CaseRecord { outcome: Outcome::Skipped("no".into()), ..case("call/u64/9", 0.0, None) });
        let record = fitted(&cases).unwrap();
        assert_eq!((record.cases, record.step.as_str()), (4, "a further u64 argument"));
        assert!((record.slope.estimate - 0.5).abs() < 1e-12);
        assert!((record.intercept.estimate - 1.0).abs() < 1e-12);
    }

    #[test]
    fn one_case_without_a_control_makes_the_line_use_slopes() {
        let cases: Vec<_> = (0..4)
            .map(|i| case(&format!("call/u64/{i}"), 2.0 * f64::from(i) + 1.0, (i > 0).then_some(7.0)))
            .collect();
        assert!((fitted(&cases).unwrap().slope.estimate - 2.0).abs() < 1e-12);
    }

    #[test]
    fn the_fit_of_a_sweep_names_its_law_and_its_largest_error() {
        let fitted = |cost: fn(f64) -> f64| {
            let sizes = [10_u32, 100, 1_000, 10_000];
            let cases = sizes.map(|n| case(&format!("mine/sort/{n}"), cost(f64::from(n)), None));
            fit_sweep("numbers", "mine/sort/", &cases).expect("four cases")
        };
        let linear = fitted(|n| 3.0 + 0.5 * n);
        assert_eq!((linear.step.as_str(), linear.cases), ("sort: a further one of the numbers", 4));
        assert!((linear.slope.estimate - 0.5).abs() < 1e-9 && linear.worst.is_some_and(|worst| worst < 1e-9));
        assert_eq!(fitted(|n| n * n.log2()).step, "sort: each unit of n·log₂n, with n numbers,");
        assert_eq!(fitted(|n| 2.0 + n.log2()).step, "sort: doubling the numbers");
    }

    #[test]
    fn too_few_cases_give_no_line() {
        assert!(fitted(&[]).is_none());
        assert!(fitted(&[case("call/u64/1", 1.0, None), case("call/u64/2", 2.0, None)]).is_none());
    }
}

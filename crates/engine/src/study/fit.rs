//! Lines through the cases of a group: what one argument more costs, what one byte more costs, and the law by which a sweep
//! grows.

use crate::record::{CaseRecord, FitRecord, Measured};
use crate::statistic::{Law, fit_growth, fit_line};
use crate::study::basis::Basis;

/// Draws a line through the measured cases whose ids begin with `prefix` and end in a number; `step` says what
/// one step of that number is. All its points stand on the same basis, the best that every
/// one of them has: a line through some values with the loop and some without it would be no line.
pub fn fit_cases(step: &str, prefix: &str, cases: &[CaseRecord]) -> Option<FitRecord> {
    let points = points(prefix, cases)?;
    let line = fit_line(&points)?;
    let (slope, intercept, cases) = (line.slope, line.intercept, points.len());
    Some(FitRecord { step: step.into(), slope, intercept, cases, worst: None })
}

/// The law by which the cost of the cases of a sweep grows with its parameter, which is named in the plural.
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
        worst: Some(growth.worst),
    })
}

fn points(prefix: &str, cases: &[CaseRecord]) -> Option<Vec<(f64, f64)>> {
    let members: Vec<(f64, &Measured)> =
        cases.iter().filter_map(|case| member_with_parameter(prefix, case)).collect();
    Basis::ALL.into_iter().find_map(|basis| points_on_basis(basis, &members))
}

fn member_with_parameter<'a>(prefix: &str, case: &'a CaseRecord) -> Option<(f64, &'a Measured)> {
    // Whole numbers only: "inf" and "nan" would parse as floating point.
    let parameter: u64 = case.id.strip_prefix(prefix)?.parse().ok()?;
    Some((parameter as f64, case.measured()?))
}

fn points_on_basis(basis: Basis, members: &[(f64, &Measured)]) -> Option<Vec<(f64, f64)>> {
    members.iter().map(|(x, measured)| Some((*x, basis.figure(measured)?.estimate))).collect()
}

#[cfg(test)]
mod tests {
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
    fn one_case_without_a_control_puts_all_on_the_slope() {
        let cases: Vec<_> = (0..4)
            .map(|i| case(&format!("call/u64/{i}"), 2.0 * f64::from(i) + 1.0, (i > 0).then_some(7.0)))
            .collect();
        assert!((fitted(&cases).unwrap().slope.estimate - 2.0).abs() < 1e-12);
    }

    #[test]
    fn a_sweep_says_its_law_and_how_well_it_fits() {
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

//! An axis: the position of a value, and the marks.

use syscost_engine::record::CurveRecord;
use syscost_engine::record::quantity::format_size;
use syscost_engine::render::terminal_plot::logarithmic_points;

/// Values that span more than this factor are drawn on a logarithmic axis.
const WIDE: f64 = 8.0;
/// The most marks on an axis.
const MOST: usize = 12;

/// One axis.
pub(super) struct Scale {
    low: f64,
    high: f64,
    is_logarithmic: bool,
    /// Positions and labels of its marks.
    pub(super) marks: Vec<(f64, String)>,
}

impl Scale {
    /// The position of a value as a share of the axis: 0 at its beginning, 1 at its end.
    pub(super) fn position_share(&self, value: f64) -> f64 {
        let value = if self.is_logarithmic { value.max(f64::MIN_POSITIVE).log2() } else { value };
        (value - self.low) / (self.high - self.low)
    }

    /// The horizontal axis: always logarithmic.
    pub(super) fn parameter_axis(curves: &[&CurveRecord]) -> Self {
        let at: Vec<f64> =
            curves.iter().flat_map(|curve| logarithmic_points(&curve.points)).map(|p| p.0).collect();
        let (low, high) = padded_ends(&at, 0.3);
        let bytes = curves.iter().any(|curve| curve.bytes);
        let named = |exponent: i32| match (bytes, u64::try_from(exponent).ok()) {
            (true, Some(exponent)) => format_size(1 << exponent.min(62)),
            _ => 2f64.powi(exponent).to_string(),
        };
        let zero = curves.iter().any(|curve| curve.points.iter().any(|point| point.at == 0));
        // If a curve begins at zero, the mark at its first position is `0`, not the power of two that belongs to this position.
        let first = if zero { low.ceil() + 1.0 } else { low.ceil() };
        let exponents = first as i32..=high.floor() as i32;
        let step =
            [1, 2, 5, 10].into_iter().find(|step| exponents.clone().count() / step <= MOST).unwrap_or(20);
        let shown = exponents.filter(|exponent| exponent.rem_euclid(step as i32) == 0);
        let mut marks: Vec<(f64, String)> = shown.map(|e| (2f64.powi(e), named(e))).collect();
        if zero {
            marks.insert(0, (at.iter().copied().fold(f64::MAX, f64::min).exp2(), "0".into()));
        }
        Self { low, high, is_logarithmic: true, marks }
    }

    /// The vertical axis: linear from zero, or from the lowest end of an interval below zero, if the values are ratios, may be negative
    /// or span at most the factor [`WIDE`]; else logarithmic.
    pub(super) fn value_axis(curves: &[&CurveRecord]) -> Self {
        let all: Vec<f64> =
            curves.iter().flat_map(|curve| &curve.points).map(|point| point.value.estimate).collect();
        let least = all.iter().copied().filter(|value| *value > 0.0).fold(f64::MAX, f64::min);
        let most = all.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
        let is_time = curves.iter().any(|curve| curve.unit == "ns");
        let named = |value: f64| if is_time { time_label(value) } else { trimmed_number(value) };
        // Ratios always have a linear axis, however small they are.
        let is_ratio = curves.iter().all(|curve| matches!(curve.unit.as_str(), "" | "%"));
        // The ends of the intervals are drawn as well.
        let values = curves.iter().flat_map(|curve| &curve.points).map(|point| point.value);
        let (lowest, highest) = values
            .fold((0.0, 0.0), |(low, high): (f64, f64), value| (low.min(value.low), high.max(value.high)));
        let is_negative = |value: &f64| *value < 0.0;
        if all.iter().any(is_negative) || (lowest < 0.0 && curves.iter().any(|curve| curve.unit == "%")) {
            return Self::linear_axis(1.1 * lowest, 1.1 * highest, named);
        }
        // A cost whose interval includes negative values, such as a difference, has no logarithm.
        if is_ratio || lowest < 0.0 || most / least.min(most) <= WIDE {
            return Self::linear_axis(
                1.1 * lowest.min(0.0).max(-0.05 * most),
                1.1 * most.max(highest),
                named,
            );
        }
        let (low, high) = padded_ends(&[least.log2(), most.log2()], 0.06);
        // The name of the lowest level needs room below it.
        let low = low - 0.06 * (high - low);
        Self { low, high, is_logarithmic: true, marks: decade_marks(low, high, named) }
    }

    /// A logarithmic axis for these values, which are above zero.
    pub(super) fn logarithmic_axis(values: &[f64], named: impl Fn(f64) -> String) -> Self {
        let exponents: Vec<f64> = values.iter().map(|value| value.log2()).collect();
        let (low, high) = padded_ends(&exponents, 0.06);
        Self { low, high, is_logarithmic: true, marks: decade_marks(low, high, named) }
    }

    /// A linear axis with at most seven marks, at multiples of 1, 2 or 5 times a power of ten.
    fn linear_axis(low: f64, high: f64, named: impl Fn(f64) -> String) -> Self {
        let rough = (high - low) / 6.0;
        let decade = 10f64.powf(rough.log10().floor());
        let step =
            [1.0, 2.0, 5.0, 10.0].map(|m| m * decade).into_iter().find(|s| *s >= rough).unwrap_or(rough);
        let steps = (low / step).ceil() as i64..=(high / step).floor() as i64;
        let marks = steps.map(|i| step * i as f64).map(|v| (v, named(v))).collect();
        Self { low, high, is_logarithmic: false, marks }
    }
}

/// Marks at powers of ten, and at 2 and 5 between them if the axis has few powers.
fn decade_marks(low: f64, high: f64, named: impl Fn(f64) -> String) -> Vec<(f64, String)> {
    let (first, last) = (low.exp2().log10().floor() as i32, high.exp2().log10().ceil() as i32);
    let digits: &[f64] = if last - first <= 5 { &[1.0, 2.0, 5.0] } else { &[1.0] };
    let values = (first..=last).flat_map(|e| digits.iter().map(move |digit| digit * 10f64.powi(e)));
    values.filter(|v| (low..=high).contains(&v.log2())).map(|v| (v, named(v))).collect()
}

/// The least and the greatest value with a margin beyond them. A `room` up to 0.1 is a share of the range, or of 1 if that is larger;
/// a larger `room` is the margin itself.
fn padded_ends(values: &[f64], room: f64) -> (f64, f64) {
    let low = values.iter().copied().fold(f64::MAX, f64::min);
    let high = values.iter().copied().fold(f64::MIN, f64::max);
    let room = if room > 0.1 { room } else { room * (high - low).max(1.0) };
    (low - room, high + room)
}

/// A duration as the label of a mark: `5 ns`, `0.2 µs`.
pub(super) fn time_label(ns: f64) -> String {
    const UNITS: [(f64, &str); 4] = [(1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1.0, "ns")];
    let (divisor, unit) = UNITS.into_iter().find(|(divisor, _)| ns >= 0.999 * divisor).unwrap_or(UNITS[3]);
    format!("{} {unit}", trimmed_number(ns / divisor))
}

/// A number without zeros at its end.
pub(super) fn trimmed_number(value: f64) -> String {
    let text = format!("{value:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use syscost_engine::record::{Interval, Point};

    fn curve(unit: &str, values: &[(u64, f64)]) -> CurveRecord {
        let points = values.iter().map(|&(at, v)| Point { at, value: Interval::exactly(v) }).collect();
        CurveRecord { bytes: true, unit: unit.into(), points, ..CurveRecord::default() }
    }

    fn says(scale: &Scale) -> Vec<&str> {
        scale.marks.iter().map(|(_, name)| name.as_str()).collect()
    }

    #[test]
    fn sizes_are_marked_in_their_units() {
        let wide = curve("ns", &[(1 << 10, 1.0), (1 << 28, 100.0)]);
        let names = says(&Scale::parameter_axis(&[&wide])).join(" ");
        assert_eq!(names, "1 KiB 4 KiB 16 KiB 64 KiB 256 KiB 1 MiB 4 MiB 16 MiB 64 MiB 256 MiB");
    }

    #[test]
    fn zero_has_a_mark_before_the_smallest_size() {
        let from_zero = curve("ns", &[(0, 1.0), (1 << 12, 2.0), (1 << 14, 3.0)]);
        let scale = Scale::parameter_axis(&[&from_zero]);
        assert_eq!(says(&scale), ["0", "4 KiB", "8 KiB", "16 KiB"]);
        assert!(
            scale
                .marks
                .windows(2)
                .all(|pair| scale.position_share(pair[0].0) < scale.position_share(pair[1].0))
        );
    }

    #[test]
    fn similar_values_have_a_linear_axis_and_others_a_logarithmic_one() {
        let flat = Scale::value_axis(&[&curve("", &[(1, 1.0), (2, 0.9)])]);
        assert_eq!((flat.position_share(0.0), says(&flat)[0]), (0.0, "0"));
        assert_eq!(says(&Scale::value_axis(&[&curve("", &[(1, 1.0), (64, 0.01)])]))[0], "0");
        let steep = Scale::value_axis(&[&curve("ns", &[(1, 1.0), (2, 3000.0)])]);
        assert!(says(&steep).contains(&"1 ns") && says(&steep).contains(&"2 µs"), "{:?}", says(&steep));
        for scale in [flat, steep] {
            assert!(scale.marks.iter().all(|(v, _)| (0.0..=1.0).contains(&scale.position_share(*v))));
        }
    }

    #[test]
    fn negative_values_are_on_the_axis() {
        let scale = Scale::value_axis(&[&curve("%", &[(1, -12.0), (2, 80.0), (3, 0.1)])]);
        assert!(
            (0.0..0.1).contains(&scale.position_share(-12.0))
                && scale.position_share(0.0) > scale.position_share(-12.0)
        );
        assert!(says(&scale).contains(&"0") && says(&scale).contains(&"80"), "{:?}", says(&scale));
        assert!(scale.marks.iter().all(|(v, _)| (0.0..=1.0).contains(&scale.position_share(*v))));
    }

    #[test]
    fn equal_values_have_an_axis() {
        let scale = Scale::value_axis(&[&curve("ns", &[(8, 5.0), (8, 5.0)])]);
        assert!(scale.position_share(5.0) > 0.5 && !scale.marks.is_empty());
        assert!(
            (0.0..=1.0).contains(&Scale::parameter_axis(&[&curve("ns", &[(8, 5.0)])]).position_share(8.0))
        );
    }
}

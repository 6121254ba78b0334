//! The best figure for the cost of one operation.

use crate::record::{Interval, Measured};

/// The figure that is taken as the cost of one operation, the best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Basis {
    /// Slope minus the cost of the same loop without the operation.
    Net,
    /// Slope of time against iterations: without constant overhead, but with the cost of the loop.
    Slope,
    /// The quiet figure or the median of the samples: with the cost of reading the clock.
    Median,
}

impl Basis {
    /// The bases in the order in which they are preferred.
    pub const ALL: [Self; 3] = [Self::Net, Self::Slope, Self::Median];

    /// The end of the title of a curve on this basis, so that its figures are not confused with the column `quiet`.
    pub fn title_part(self) -> &'static str {
        match self {
            Self::Net => ", net",
            Self::Slope => ", slope",
            Self::Median => "",
        }
    }

    /// The figure on this basis; `None` if the case has none. A case that times one operation at a time has no slope:
    /// its record holds 0.
    pub fn figure(self, measured: &Measured) -> Option<Interval> {
        let figure = match self {
            Self::Net => measured.net,
            Self::Slope => Some(measured.slope).filter(|s| s.estimate != 0.0),
            Self::Median => Some(measured.figure()),
        };
        figure.filter(|f| f.estimate.is_finite())
    }
}

/// The cost of one operation, on the best basis that the case has.
pub fn best_cost(measured: &Measured) -> Option<(Basis, Interval)> {
    Basis::ALL.into_iter().find_map(|basis| basis.figure(measured).map(|figure| (basis, figure)))
}

/// The measured figure to compare with the prediction: the net cost if known, unless the prediction covers everything timed.
pub fn figure_for_prediction(measured: &Measured) -> Option<Interval> {
    let whole = || Basis::Median.figure(measured);
    let net = Basis::Net.figure(measured).filter(|_| measured.predicted.as_ref().is_some_and(|p| !p.whole));
    net.or_else(whole)
}

/// The predicted cost, ns. `None` without a prediction above zero.
pub fn predicted_ns(measured: &Measured) -> Option<f64> {
    measured.predicted.as_ref().map(|p| p.hardware + p.software).filter(|predicted| *predicted > 0.0)
}

/// The measured cost divided by the predicted one. `None` without a prediction above zero.
pub fn ratio_to_prediction(measured: &Measured) -> Option<f64> {
    Some(figure_for_prediction(measured)?.estimate / predicted_ns(measured)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Predicted;

    #[test]
    fn the_control_is_taken_off_where_there_is_one() {
        let mut measured = Measured { median: Interval::exactly(3.0), ..Measured::default() };
        assert_eq!(best_cost(&measured), Some((Basis::Median, Interval::exactly(3.0))));
        measured.slope = Interval::exactly(2.5);
        assert_eq!(best_cost(&measured), Some((Basis::Slope, Interval::exactly(2.5))));
        measured.net = Some(Interval::exactly(-0.1));
        assert_eq!(best_cost(&measured), Some((Basis::Net, Interval::exactly(-0.1))));
    }

    #[test]
    fn without_a_prediction_above_zero_there_is_no_ratio() {
        let mut measured = Measured { median: Interval::exactly(3.0), ..Measured::default() };
        assert_eq!(ratio_to_prediction(&measured), None);
        measured.predicted = Some(Predicted::default());
        assert_eq!(ratio_to_prediction(&measured), None);
        measured.predicted = Some(Predicted { hardware: 1.0, software: 0.5, ..Predicted::default() });
        assert_eq!(ratio_to_prediction(&measured), Some(2.0));
        // The ratio uses the net figure, unless the prediction covers everything timed.
        (measured.median, measured.net) = (Interval::exactly(6.0), Some(Interval::exactly(-1.5)));
        assert_eq!(ratio_to_prediction(&measured), Some(-1.0));
        measured.predicted.as_mut().unwrap().whole = true;
        assert_eq!(ratio_to_prediction(&measured), Some(4.0));
    }
}

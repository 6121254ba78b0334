//! The figure of a case that speaks for its group: its cost, or a rate that is derived from it.

use crate::record::quantity::{NANOSECONDS, format_amount, format_count, format_interval, format_ratio};
use crate::record::{Headline, Interval, Measured};
use crate::study::basis::{figure_for_prediction, predicted_ns, ratio_to_prediction};

/// The cost, or the derived figure that stands for it.
pub struct HeadlineFigure {
    /// The cost without interference.
    pub value: Interval,
    /// The median of all samples; a derived figure has none.
    pub typical: Option<f64>,
    unit: String,
    /// Whether it falls where the cost rises.
    pub is_rate: bool,
}

impl HeadlineFigure {
    /// Of a measured case, in a record of this unit.
    pub fn new(headline: &Headline, measured: &Measured, unit: &str) -> Self {
        let named = |name| measured.derived.iter().find(|figure| figure.name == name);
        match headline.figure.and_then(named) {
            Some(figure) => {
                Self { value: figure.value, typical: None, unit: figure.unit.clone(), is_rate: true }
            }
            None => Self {
                value: measured.figure(),
                typical: Some(measured.median.estimate),
                unit: unit.into(),
                is_rate: false,
            },
        }
    }

    /// A value of this figure's kind, with its unit.
    pub fn format_value(&self, value: f64) -> String {
        match self.is_rate {
            true => format!("{} {}", format_count(value), self.unit),
            false => format_amount(value, &self.unit),
        }
    }

    /// Where the next run's figure will lie.
    pub fn next_run_interval(&self) -> String {
        format_interval(&self.value, if self.is_rate { "" } else { &self.unit })
    }

    /// What was expected of the figure.
    pub fn expected_value(&self, measured: &Measured) -> Option<f64> {
        let predicted = predicted_ns(measured)?;
        match self.is_rate {
            true => Some(self.value.estimate * ratio_to_prediction(measured)?),
            false => (self.unit == NANOSECONDS).then_some(predicted),
        }
    }

    /// The ratio of the figure to its prediction. `net` marks a prediction of the cost less the control.
    pub fn ratio_to_expected(&self, measured: &Measured) -> Option<String> {
        let over = ratio_to_prediction(measured)?;
        let is_net = figure_for_prediction(measured) != Some(measured.figure());
        Some(match self.is_rate {
            true => format_ratio(over.recip()),
            false if is_net => format!("{} net", format_ratio(over)),
            false => format_ratio(over),
        })
    }
}

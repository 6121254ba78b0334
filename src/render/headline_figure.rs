//! The figure of a case that speaks for its group: its cost, or a rate that is derived from it.

use crate::record::quantity::{NANOSECONDS, amount, count, ends, times};
use crate::record::{Headline, Interval, Measured};
use crate::study::basis::{predicted, predicted_figure, ratio};

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
    pub fn amount(&self, value: f64) -> String {
        match self.is_rate {
            true => format!("{} {}", count(value), self.unit),
            false => amount(value, &self.unit),
        }
    }

    /// Where the next run's figure will lie.
    pub fn ends(&self) -> String {
        ends(&self.value, if self.is_rate { "" } else { &self.unit })
    }

    /// What was expected of the figure.
    pub fn expected(&self, measured: &Measured) -> Option<f64> {
        let predicted = predicted(measured)?;
        match self.is_rate {
            true => Some(self.value.estimate * ratio(measured)?),
            false => (self.unit == NANOSECONDS).then_some(predicted),
        }
    }

    /// The figure over what was expected, or what remains of it when the control is taken off, if that was predicted.
    pub fn ratio(&self, measured: &Measured) -> Option<String> {
        let over = ratio(measured)?;
        let is_net = predicted_figure(measured) != Some(measured.figure());
        Some(match self.is_rate {
            true => times(over.recip()),
            false if is_net => format!("{} net", times(over)),
            false => times(over),
        })
    }
}

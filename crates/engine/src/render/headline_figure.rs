//! The figure of a case that speaks for its group: its cost, or a rate that is derived from it.

use crate::record::quantity::{NANOSECONDS, format_amount, format_count, format_interval, format_ratio};
use crate::record::{Headline, Interval, Measured};
use crate::study::basis::{figure_for_prediction, predicted_ns, ratio_to_prediction};

/// What a headline shows of its case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shown {
    /// The cost of an iteration.
    Cost,
    /// A time that is derived from it: one of the switches of a round.
    Time,
    /// A figure that falls where the cost rises: a bandwidth.
    Rate,
}

/// The cost, or the derived figure that stands for it.
pub struct HeadlineFigure {
    /// The cost without interference.
    pub value: Interval,
    /// The median of all samples; a derived figure has none.
    pub typical: Option<f64>,
    unit: String,
    shown: Shown,
}

impl HeadlineFigure {
    /// Of a measured case, in a record of this unit. None if the headline shows a derived figure that this case lacks.
    pub fn new(headline: &Headline, measured: &Measured, unit: &str) -> Option<Self> {
        let Some(name) = headline.figure else {
            let (value, typical) = (measured.figure(), Some(measured.median.estimate));
            return Some(Self { value, typical, unit: unit.into(), shown: Shown::Cost });
        };
        let figure = measured.derived.iter().find(|figure| figure.name == name)?;
        let shown = if figure.unit == NANOSECONDS { Shown::Time } else { Shown::Rate };
        Some(Self { value: figure.value, typical: None, unit: figure.unit.clone(), shown })
    }

    /// Whether it falls where the cost rises.
    pub fn is_rate(&self) -> bool {
        self.shown == Shown::Rate
    }

    /// `ns`, `GB/s`.
    pub fn unit(&self) -> &str {
        &self.unit
    }

    /// A value of this figure's kind, with its unit.
    pub fn format_value(&self, value: f64) -> String {
        match self.shown {
            Shown::Rate => format!("{} {}", format_count(value), self.unit),
            Shown::Cost | Shown::Time => format_amount(value, &self.unit),
        }
    }

    /// Where the next run's figure will lie.
    pub fn next_run_interval(&self) -> String {
        format_interval(&self.value, if self.is_rate() { "" } else { &self.unit })
    }

    /// What was expected of the figure.
    pub fn expected_value(&self, measured: &Measured) -> Option<f64> {
        let predicted = predicted_ns(measured)?;
        let ratio = || ratio_to_prediction(measured);
        match self.shown {
            Shown::Rate => Some(self.value.estimate * ratio()?),
            Shown::Time => Some(self.value.estimate / ratio()?),
            Shown::Cost => (self.unit == NANOSECONDS).then_some(predicted),
        }
    }

    /// What was expected of the whole figure: a prediction of the net cost, and what the control costs.
    pub fn expected_whole(&self, measured: &Measured) -> Option<f64> {
        let expected = self.expected_value(measured)?;
        let net = figure_for_prediction(measured).filter(|_| self.shown == Shown::Cost);
        Some(expected + net.map_or(0.0, |net| (self.value.estimate - net.estimate).max(0.0)))
    }

    /// The ratio of the figure to its prediction. `net` marks a prediction of the cost less the control.
    pub fn ratio_to_expected(&self, measured: &Measured) -> Option<String> {
        let over = ratio_to_prediction(measured)?;
        let is_net = figure_for_prediction(measured) != Some(measured.figure());
        Some(match self.shown {
            Shown::Rate => format_ratio(over.recip()),
            Shown::Cost if is_net => format!("{} net", format_ratio(over)),
            Shown::Cost | Shown::Time => format_ratio(over),
        })
    }
}

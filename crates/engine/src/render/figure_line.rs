//! Formats figures of one case on one line.

use crate::record::quantity::{
    NANOSECONDS, format_amount, format_count, format_duration, format_interval, format_ratio,
};
use crate::record::{Bar, Derived, Distribution, FitRecord, Headline, Interval, Measured};
use crate::study::basis::{figure_for_prediction, predicted_ns, ratio_to_prediction};

/// The percentiles of single operations and the shape of their histogram:
/// `p5 1.902 µs · p50 2.314 µs · max 48.21 µs, 200 calls ▃█▁ ▁`.
pub fn distribution_line(distribution: &Distribution) -> String {
    let named = |(percentile, ns): &(f64, f64)| match *percentile {
        p if p <= 0.0 => format!("min {}", format_duration(*ns)),
        p if p >= 100.0 => format!("max {}", format_duration(*ns)),
        p => format!("p{p} {}", format_duration(*ns)),
    };
    let values: Vec<String> = distribution.percentiles.iter().map(named).collect();
    let text = format!("{}, {} calls", values.join(" · "), distribution.count);
    format!("{text} {}", histogram_line(&distribution.histogram)).trim_end().to_owned()
}

/// A histogram on one line: one character for each factor of 1.25 between the least and the greatest value. Its height is
/// the logarithm of the count, so that the tail is visible. Empty if the histogram has fewer than two characters.
fn histogram_line(bars: &[Bar]) -> String {
    const LEVELS: [char; 9] = ['·', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    const STEP: f64 = 1.25;
    let Some(first) = bars.first().map(|bar| bar.low.max(1e-3)) else { return String::new() };
    let mut counts: Vec<u64> = Vec::new();
    for bar in bars {
        let place = ((bar.low / first).max(1.0).ln() / STEP.ln()) as usize;
        counts.resize(counts.len().max(place + 1), 0);
        counts[place] += bar.count;
    }
    let highest = counts.iter().copied().max().unwrap_or(1) as f64;
    let level = |count: u64| match count {
        0 => 0,
        count => 1 + (7.0 * (count as f64).ln_1p() / highest.ln_1p()).round() as usize,
    };
    if counts.len() < 2 { String::new() } else { counts.into_iter().map(|c| LEVELS[level(c)]).collect() }
}

/// Formats a derived figure: `switch 812.0 ns [803.1, 820.4]`, `efficiency 0.9712 [0.9650, 0.9760]`.
pub fn derived_line(derived: &Derived) -> String {
    let Derived { name, unit, value } = derived;
    let counted = if unit == NANOSECONDS { "" } else { unit };
    format!("{name} {}{counted} {}", format_amount(value.estimate, unit), format_interval(value, unit))
}

/// A sentence on the cost of one step of a fitted line, and for a sweep on the largest error of the fit.
pub fn fit_sentence(fit: &FitRecord, unit: &str) -> String {
    let FitRecord { step, slope, cases, worst, .. } = fit;
    let (cost, ends) = (format_amount(slope.estimate, unit), format_interval(slope, unit));
    let counted = if unit == NANOSECONDS { String::new() } else { format!(" {unit}") };
    let off = worst.map(|worst| format!(", the worst off by {:.1} %", 100.0 * worst)).unwrap_or_default();
    format!("{step} costs {cost}{counted} {ends}, fitted over {cases} cases{off}")
}

// The figure of a headline case: its cost, or a rate that is derived from it.

/// The kind of figure that a headline shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shown {
    /// The cost of an iteration.
    Cost,
    /// A time that is derived from the cost, such as one of the switches of a round.
    Time,
    /// A figure that falls when the cost rises, such as a bandwidth.
    Rate,
}

/// The figure that a headline shows: the cost, or a derived figure.
pub struct HeadlineFigure {
    /// The figure without interference.
    pub value: Interval,
    /// The median of all samples; `None` for a derived figure.
    pub typical: Option<f64>,
    unit: String,
    shown: Shown,
}

impl HeadlineFigure {
    /// The headline's figure of a measured case, in a record with this unit. `None` if the case lacks the derived figure to show.
    pub fn new(headline: &Headline, measured: &Measured, unit: &str) -> Option<Self> {
        let Some(name) = headline.figure else {
            let (value, typical) = (measured.figure(), Some(measured.median.estimate));
            return Some(Self { value, typical, unit: unit.into(), shown: Shown::Cost });
        };
        let figure = measured.derived.iter().find(|figure| figure.name == name)?;
        let shown = if figure.unit == NANOSECONDS { Shown::Time } else { Shown::Rate };
        Some(Self { value: figure.value, typical: None, unit: figure.unit.clone(), shown })
    }

    /// Whether the figure falls when the cost rises.
    pub fn is_rate(&self) -> bool {
        self.shown == Shown::Rate
    }

    /// The unit of the figure, such as `ns` or `GB/s`.
    pub fn unit(&self) -> &str {
        &self.unit
    }

    /// Formats a value in this figure's unit.
    pub fn format_value(&self, value: f64) -> String {
        match self.shown {
            Shown::Rate => format!("{} {}", format_count(value), self.unit),
            Shown::Cost | Shown::Time => format_amount(value, &self.unit),
        }
    }

    /// The interval in which the next run's figure is expected, as text.
    pub fn next_run_interval(&self) -> String {
        format_interval(&self.value, if self.is_rate() { "" } else { &self.unit })
    }

    /// The expected value of the figure, in its unit; `None` without a prediction.
    pub fn expected_value(&self, measured: &Measured) -> Option<f64> {
        let predicted = predicted_ns(measured)?;
        let ratio = || ratio_to_prediction(measured);
        match self.shown {
            Shown::Rate => Some(self.value.estimate * ratio()?),
            Shown::Time => Some(self.value.estimate / ratio()?),
            Shown::Cost => (self.unit == NANOSECONDS).then_some(predicted),
        }
    }

    /// The expected value of the whole figure: the prediction, plus the control's cost (figure minus net) if it is of the net cost.
    pub fn expected_whole(&self, measured: &Measured) -> Option<f64> {
        let expected = self.expected_value(measured)?;
        let net = figure_for_prediction(measured).filter(|_| self.shown == Shown::Cost);
        Some(expected + net.map_or(0.0, |net| (self.value.estimate - net.estimate).max(0.0)))
    }

    /// The ratio of the figure to its prediction, as text. `net` marks a prediction of the cost minus the control.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Interval;

    #[test]
    fn the_sentence_on_a_sweep_has_the_largest_error_of_the_fit() {
        let slope = Interval { estimate: 2.0, low: 1.5, high: 2.5 };
        let (step, intercept) = ("find: doubling the keys".to_owned(), Interval::default());
        let fit = FitRecord { step, slope, intercept, cases: 5, expected: None, worst: Some(0.031) };
        let sentence = "find: doubling the keys costs 2.000 ns [1.500, 2.500], fitted over 5 cases, the worst off by 3.1 %";
        assert_eq!(fit_sentence(&fit, NANOSECONDS), sentence);
    }

    #[test]
    fn a_derived_figure_is_shown_in_its_unit() {
        let line = |unit: &str, estimate: f64| {
            let value = Interval { estimate, low: 0.5 * estimate, high: 2.0 * estimate };
            super::derived_line(&Derived { name: "it".into(), unit: unit.into(), value })
        };
        assert_eq!(line("ns", 812.0), "it 812.0 ns [406.0, 1624.0]");
        assert_eq!(line("", 0.5), "it 0.5000 [0.2500, 1.0000]");
        assert_eq!(line("/s", 4e6), "it 4.000 M/s [2.000, 8.000]");
    }

    #[test]
    fn the_histogram_line_shows_the_tail() {
        let bars = [(100.0, 1000), (126.0, 30), (300.0, 1)].map(|(low, count)| Bar { low, count });
        assert_eq!(histogram_line(&bars), "█▄··▂");
        assert_eq!(histogram_line(&bars[..1]), "");
        assert_eq!(histogram_line(&[]), "");
    }
}

//! Converts times to one frequency of the core. A neighbour on the same processor takes power and thereby lowers the frequency.
//! On a shared machine it moves by several per cent within minutes; its medians in two whole runs were 1.6 % apart. An
//! operation that does not wait for memory takes the same number of cycles at each frequency.

use crate::record::quantity::NANOSECONDS;
use crate::record::{Derived, Execution, Interval, Measured, Predicted, Quiet, Record};
use crate::statistic::percentile;

/// The percentile of a run's frequencies that counts as the frequency of an undisturbed core. The highest reading is not used,
/// because it is sometimes a misreading.
const UNDISTURBED_PERCENTILE: f64 = 90.0;

/// The fewest readings from which the 90th percentile is taken: among fewer, one misreading would be the percentile.
const FEWEST_READINGS: usize = 20;

/// The frequency of an undisturbed core, Hz: the 90th percentile of the executions' readings, or the median of few readings.
pub fn undisturbed_frequency(frequencies: &[f64]) -> Option<f64> {
    let percent = if frequencies.len() < FEWEST_READINGS { 50.0 } else { UNDISTURBED_PERCENTILE };
    (!frequencies.is_empty()).then(|| percentile(frequencies, percent))
}

/// The frequency of an undisturbed core, Hz, from the executions of an earlier run; `None` if there are too few readings.
pub fn undisturbed_frequency_of_run(record: &Record) -> Option<f64> {
    let measured = record.cases().filter_map(|(_, case)| case.measured());
    let frequencies: Vec<f64> = measured.flat_map(|m| &m.executions).filter_map(|e| e.core_hz).collect();
    undisturbed_frequency(&frequencies).filter(|_| frequencies.len() >= FEWEST_READINGS)
}

/// The frequency for which the figures of these cases hold, and the 5th and 95th percentile of the core's frequency in their
/// executions, Hz; `None` if no figure was converted.
pub fn frequency_range<'a>(cases: impl Iterator<Item = &'a Measured> + Clone) -> Option<[f64; 3]> {
    let wanted = cases.clone().find_map(|measured| measured.quiet?.core_hz)?;
    let own: Vec<f64> = cases.flat_map(|m| &m.executions).filter_map(|execution| execution.core_hz).collect();
    Some([wanted, percentile(&own, 5.0), percentile(&own, 95.0)])
}

/// The core's frequency at which the figures of an outcome were timed, or to which they were converted, Hz. `None` if the cost
/// does not depend on it: in a case that waits for memory, and in one measured by displacement, which is compared with its
/// own calibration.
pub fn core_frequency(part: &Measured) -> Option<f64> {
    let timed = || part.executions.first().and_then(|execution| execution.core_hz);
    core_bound(part, part.quiet.map_or_else(timed, |quiet| quiet.core_hz))
}

fn core_bound(part: &Measured, hz: Option<f64>) -> Option<f64> {
    let is_core_bound = part.contamination.busy_beside.is_none() && part.displaced.is_none();
    hz.filter(|hz| is_core_bound && *hz > 0.0)
}

/// The figure of an outcome in core cycles, if its unit is nanoseconds. It is the same at each frequency. `None` if
/// [`core_frequency`] is `None`.
pub fn core_cycles(part: &Measured) -> Option<f64> {
    Some(part.figure().estimate * core_frequency(part)? / 1e9)
}

/// The executions of an outcome, converted to a core that runs at `wanted` Hz; unchanged if `wanted` is `None`.
pub fn convert_executions(part: &Measured, wanted: Option<f64>) -> Vec<Execution> {
    let by =
        |e: &Execution| core_bound(part, e.core_hz).zip(wanted).map_or(1.0, |(own, wanted)| own / wanted);
    part.executions.iter().map(|e| Execution { low: by(e) * e.low, median: by(e) * e.median, ..*e }).collect()
}

/// Converts the costs of an outcome to a core that runs at `wanted` Hz. The samples stay as they were counted.
pub fn convert_to_frequency(part: &Measured, wanted: Option<f64>) -> Measured {
    let Some((wanted, own)) = wanted.zip(core_frequency(part)) else { return part.clone() };
    let by = own / wanted;
    let cost = |interval: Interval| interval.map(|ns| by * ns);
    Measured {
        executions: convert_executions(part, Some(wanted)),
        quiet: part.quiet.map(|quiet| Quiet { figure: cost(quiet.figure), core_hz: Some(wanted), ..quiet }),
        slope: cost(part.slope),
        intercept: cost(part.intercept),
        control: part.control.map(cost),
        net: part.net.map(cost),
        derived: part.derived.iter().map(|figure| convert_derived(figure, by)).collect(),
        predicted: part.predicted.as_ref().map(|p| convert_prediction(p, part, wanted)),
        ..part.clone()
    }
}

/// Multiplies a time by this factor and divides a rate by it; shares and bytes per cycle stay as they are.
fn convert_derived(figure: &Derived, by: f64) -> Derived {
    let value = match figure.unit.as_str() {
        NANOSECONDS => figure.value.map(|ns| by * ns),
        "/s" | "GB/s" => figure.value.map(|rate| rate / by),
        _ => figure.value,
    };
    Derived { value, ..figure.clone() }
}

/// Converts a prediction to `wanted` Hz, from the frequency to which the figures were converted, or that before the execution.
fn convert_prediction(prediction: &Predicted, part: &Measured, wanted: f64) -> Predicted {
    let held = part.quiet.and_then(|quiet| quiet.core_hz).or(part.core_hz.map(|(before, _)| before));
    let by = held.map_or(1.0, |held| held / wanted);
    Predicted { hardware: by * prediction.hardware, software: by * prediction.software, ..prediction.clone() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Contamination;

    fn part(hz: f64, ns: f64) -> Measured {
        let execution = Execution { low: ns, median: ns, core_hz: Some(hz), ..Execution::default() };
        let figure = |unit: &str, value| Derived {
            unit: unit.into(),
            value: Interval::exactly(value),
            ..Derived::default()
        };
        Measured {
            executions: vec![execution],
            slope: Interval::exactly(ns),
            derived: vec![figure("ns", ns), figure("/s", 1e9 / ns), figure("", 0.5)],
            predicted: Some(Predicted { hardware: 30.0, ..Predicted::default() }),
            core_hz: Some((hz, hz)),
            ..Measured::default()
        }
    }

    #[test]
    fn conversion_to_a_faster_core_shortens_times_and_keeps_shares() {
        let fast = convert_to_frequency(&part(3e9, 100.0), Some(4e9));
        assert_eq!((fast.executions[0].low, fast.slope.estimate), (75.0, 75.0));
        let figures: Vec<_> = fast.derived.iter().map(|figure| figure.value.estimate).collect();
        assert!(
            (figures[0] - 75.0).abs() < 1e-9 && (figures[1] * 75.0 - 1e9).abs() < 1.0 && figures[2] == 0.5
        );
        assert_eq!(fast.predicted.map(|p| p.hardware), Some(22.5));
    }

    #[test]
    fn a_case_that_waits_for_memory_is_not_converted() {
        let contamination = Contamination { busy_beside: Some(0.0), ..Contamination::default() };
        let memory = Measured { contamination, ..part(3e9, 100.0) };
        assert_eq!(
            (core_frequency(&memory), convert_to_frequency(&memory, Some(4e9)).slope.estimate),
            (None, 100.0)
        );
        assert_eq!(convert_to_frequency(&part(3e9, 100.0), None).slope.estimate, 100.0);
    }

    #[test]
    fn a_misreading_does_not_become_the_undisturbed_frequency() {
        let mut frequencies = vec![3.7e9; 99];
        frequencies.push(9e9);
        assert_eq!(undisturbed_frequency(&frequencies), Some(3.7e9));
        assert_eq!(
            (undisturbed_frequency(&[3.7e9, 3.7e9, 9e9]), undisturbed_frequency(&[])),
            (Some(3.7e9), None)
        );
    }
}

//! The frequency of the core around each sample. It changes within milliseconds, by several per cent on a machine whose
//! power is shared, and the time-stamp counter does not show it. An operation that does not wait for memory takes the same
//! number of cycles at each frequency. After conversion sample by sample, the executions of a case agree within tenths of
//! a per cent where their times differ by several.

use super::Sample;

/// The costs of an execution's samples, converted to one frequency.
pub(super) struct Paced {
    /// Mean frequency around the samples, Hz.
    pub core_hz: f64,
    /// Cost of an iteration in each sample, in the record's unit, converted to this frequency. Unconverted if the
    /// cost does not follow the core's frequency.
    pub values: Vec<f64>,
    /// Frequency around each sample, MHz; empty where nothing was converted.
    pub mhz: Vec<u32>,
}

/// Converts the costs of these samples, if they follow the core.
pub(super) fn convert_to_mean_frequency(samples: &[Sample], values: &[f64], follows_core: bool) -> Paced {
    let core_hz = samples.iter().map(|sample| sample.core_hz).sum::<f64>() / samples.len().max(1) as f64;
    if !follows_core || samples.iter().any(|sample| sample.core_hz <= 0.0) {
        return Paced { core_hz, values: values.to_vec(), mhz: Vec::new() };
    }
    let converted = samples.iter().zip(values).map(|(sample, value)| value * sample.core_hz / core_hz);
    Paced {
        core_hz,
        values: converted.collect(),
        mhz: samples.iter().map(|sample| (sample.core_hz / 1e6).round() as u32).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ghz: f64) -> Sample {
        Sample { core_hz: ghz * 1e9, ..Sample::default() }
    }

    #[test]
    fn equal_cycles_at_several_frequencies_are_equal_costs() {
        let samples = [at(3.0), at(2.0), at(4.0)];
        let found = convert_to_mean_frequency(&samples, &[40.0, 60.0, 30.0], true);
        assert_eq!((found.core_hz, found.mhz), (3e9, vec![3000, 2000, 4000]));
        assert!(found.values.iter().all(|ns| (ns - 40.0).abs() < 1e-9), "{:?}", found.values);
    }

    #[test]
    fn what_does_not_follow_the_core_stays_as_it_was_measured() {
        let samples = [at(3.0), at(2.0)];
        assert_eq!(convert_to_mean_frequency(&samples, &[40.0, 60.0], false).values, [40.0, 60.0]);
        let unknown = convert_to_mean_frequency(&[at(3.0), Sample::default()], &[40.0, 60.0], true);
        assert!(unknown.values == [40.0, 60.0] && unknown.mhz.is_empty());
    }
}

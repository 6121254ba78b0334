//! The course of a run under control: settling time, overshoot, jitter.

use syscost_statistic::standard_deviation;

/// Blocks at the end of a run that must lie in the band for the run to count as settled.
const STAYS: usize = 3;

/// The course of an index towards its goal.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Transient {
    /// Blocks until the index stays in the band around the goal; `None` if it does not.
    pub settled: Option<usize>,
    /// The largest deviation beyond the goal, as a share of the initial distance.
    pub overshoot: f64,
    /// Standard deviation of the index after it has settled; if it has not, of the second half.
    pub jitter: f64,
}

impl Transient {
    /// The course of `series`, the index after each block, with a band of ±`band` around `goal`. The first value gives
    /// the direction.
    pub fn from_series(series: &[f64], goal: f64, band: f64) -> Self {
        let way = series.first().map_or(0.0, |first| first - goal);
        let beyond = series.iter().map(|index| -(index - goal) / way).fold(0.0, f64::max);
        let inside = series.iter().rev().take_while(|index| (*index - goal).abs() <= band).count();
        // An oscillation that happens to end in the band has not settled.
        let settled = (inside >= STAYS.min(series.len()).max(1)).then(|| series.len() - inside);
        let rest = &series[settled.unwrap_or(series.len() / 2)..];
        let jitter = if rest.len() > 1 { standard_deviation(rest) } else { 0.0 };
        Self { settled, overshoot: if way == 0.0 { 0.0 } else { beyond }, jitter }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_it_was_like_is_read_off() {
        let transient = Transient::from_series(&[20.0, 12.0, 8.0, 9.5, 10.5, 9.5, 10.5], 10.0, 1.0);
        assert_eq!(transient.settled, Some(3));
        assert!((transient.overshoot - 0.2).abs() < 1e-12, "{transient:?}");
        assert!((transient.jitter - standard_deviation(&[9.5, 10.5, 9.5, 10.5])).abs() < 1e-12);
    }

    #[test]
    fn what_never_stays_has_not_settled() {
        let transient = Transient::from_series(&[20.0, 10.0, 20.0, 10.0, 20.0], 10.0, 1.0);
        assert_eq!((transient.settled, transient.overshoot), (None, 0.0));
        assert!(transient.jitter > 4.0);
        let by_chance = Transient::from_series(&[20.0, 10.0, 20.0, 10.0], 10.0, 1.0);
        assert_eq!(by_chance.settled, None);
    }

    #[test]
    fn nothing_is_nothing() {
        let empty = Transient { settled: None, overshoot: 0.0, jitter: 0.0 };
        assert_eq!(Transient::from_series(&[], 1.0, 1.0), empty);
    }
}
